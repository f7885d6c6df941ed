// Light or dark: the system's choice until the reader makes one. Colours live in the style sheet.

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let colours = null;

/** The value of a colour of the style sheet, such as "late" for --late. */
function colour(name) {
  colours ??= getComputedStyle(root);
  return colours.getPropertyValue(`--${name}`).trim();
}

const isDark = () => root.dataset.theme === "dark";
let wanted = null; // what the reader chose: "light", "dark", or null for the system's

/** Show the page as it is wanted, or for once in given colours. */
function setTheme(name = wanted) {
  root.dataset.theme = name ?? (prefersDark.matches ? "dark" : "light");
  colours = null;
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", `Show in ${isDark() ? "light" : "dark"} colours`);
  tell("style");
}

function startTheme() {
  setTheme();
  document.getElementById("theme").addEventListener("click", () => {
    wanted = isDark() ? "light" : "dark";
    setTheme();
  });
  prefersDark.addEventListener("change", () => setTheme());
  addEventListener("beforeprint", () => {
    printing = true;
    root.classList.add("printing");
    setTheme("light");
    paintNow();
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.classList.remove("printing");
    setTheme();
  });
}
