// Which runs are shown: those of one kind, and always the one that the address names.

const choices = [...document.querySelectorAll(".filter button")];
const shownRuns = [...document.querySelectorAll("tbody.run[data-kinds]")];

/** Show the runs of a kind; "" is all. */
function showKind(kind) {
  for (const choice of choices) {
    choice.setAttribute("aria-pressed", String(choice.dataset.kind === kind));
  }
  for (const run of shownRuns) run.hidden = Boolean(kind) && !run.dataset.kinds.split(" ").includes(kind);
}

/** Bring the run that the address names into view, though another kind was chosen. */
function showNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!named?.hidden) return;
  showKind("");
  named.scrollIntoView();
}

for (const choice of choices) choice.addEventListener("click", () => showKind(choice.dataset.kind));
addEventListener("hashchange", showNamed);
startTheme();
