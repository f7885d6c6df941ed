// Light or dark: the system's choice until the reader makes one. Colours live in the style sheet.

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let colours = null;

/** The value of a colour of the style sheet, such as "late" for --late. */
function colour(name) {
  colours ??= getComputedStyle(root);
  return colours.getPropertyValue(`--${name}`).trim();
}

const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

function setTheme(name) {
  if (name === null) delete root.dataset.theme;
  else root.dataset.theme = name;
  colours = null;
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `Show in ${isDark() ? "light" : "dark"} colours`);
  tell("style");
}

function startTheme() {
  setTheme(root.dataset.theme ?? null);
  document.getElementById("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  prefersDark.addEventListener("change", () => setTheme(root.dataset.theme ?? null));
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme ?? null;
    printing = true;
    setTheme("light");
    paintNow();
  });
  addEventListener("afterprint", () => {
    printing = false;
    setTheme(before);
  });
}
