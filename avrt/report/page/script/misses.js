// From miss to miss, and to any job that is named somewhere.

/** Choose a job, bring it into the window and put the cursor on it. */
function showJob(run, place) {
  const job = runs[run].at(place);
  reveal(Math.min(job.release, job.start ?? job.release), Math.max(job.end, job.due));
  setCursor(job.start ?? job.release);
  choose({ run, place });
}

/** Show the chosen job and what was before and after it. */
function zoomToChosen() {
  if (!view.chosen) return;
  const job = runs[view.chosen.run].at(view.chosen.place);
  const size = Math.max(job.end, job.due) - job.release;
  setWindow(job.release - 2 * size, job.release + 3.5 * size);
}

/** The misses to go through: changed ones of a what-if first, else those of the last run. */
const missed = runs
  .flatMap((jobs) => jobs.missed.map((place) => ({ run: jobs.number, place, release: jobs.columns.release[place] })))
  .sort((a, b) => a.release - b.release || a.run - b.run || a.place - b.place);

/** Go to the next miss (1) or the one before (-1), from the chosen job or from the cursor. */
function goToMiss(way) {
  if (!missed.length) return;
  const here = missed.findIndex((one) => one.run === view.chosen?.run && one.place === view.chosen?.place);
  let next = here + way;
  if (here < 0) {
    const after = firstAtLeast(missed.length, (i) => missed[i].release > view.cursor);
    next = way > 0 ? after : after - 1;
  }
  const { run, place } = missed[(next + missed.length) % missed.length];
  showJob(run, place);
}

function startMisses() {
  const [back, onward] = ["miss-back", "miss-on"].map((id) => document.getElementById(id));
  back.disabled = onward.disabled = !missed.length;
  back.addEventListener("click", () => goToMiss(-1));
  onward.addEventListener("click", () => goToMiss(1));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-task]");
    if (!button) return;
    const run = Number(button.dataset.run);
    const place = runs[run].find(button.dataset.task, Number(button.dataset.index));
    if (place === undefined) return;
    showJob(run, place);
    document.getElementById("timeline").scrollIntoView({ block: "start" });
  });
}
