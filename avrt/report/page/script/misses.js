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
  if (view.chosen?.place === undefined) return;
  const job = runs[view.chosen.run].at(view.chosen.place);
  const size = Math.max(job.end, job.due) - job.release;
  setWindow(job.release - 2 * size, job.release + 3.5 * size);
}

/** Choose a chain limit that was passed. */
function showPassed(run, passed) {
  const [, at] = data.runs[run].broken[passed];
  reveal(at, at);
  setCursor(at);
  choose({ run, passed });
}

/** What was not kept, by time: jobs that were not met, and chain limits that were passed. */
const missed = runs
  .flatMap((jobs) => [
    ...jobs.missed.map((place) => ({ run: jobs.number, place, at: jobs.columns.release[place] })),
    ...jobs.run.broken.map(([, at], passed) => ({ run: jobs.number, passed, at })),
  ])
  .sort((a, b) => a.at - b.at || a.run - b.run || (a.place ?? -1) - (b.place ?? -1));

const isChosen = ({ run, place, passed }) =>
  run === view.chosen?.run && place === view.chosen.place && passed === view.chosen.passed;

function showMiss({ run, place, passed }) {
  if (passed === undefined) showJob(run, place);
  else showPassed(run, passed);
}

/** Go to the next miss (1) or the one before (-1), from the chosen job or from the cursor. */
function goToMiss(way) {
  if (!missed.length) return;
  const here = missed.findIndex(isChosen);
  let next = here + way;
  if (here < 0) {
    const after = firstAtLeast(missed.length, (i) => missed[i].at > view.cursor);
    next = way > 0 ? after : after - 1;
  }
  showMiss(missed[(next + missed.length) % missed.length]);
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
