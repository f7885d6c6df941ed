// Start: text is there already; the timeline and the charts are drawn first, the views after them.

function start() {
  buildResponses();
  buildChains();
  buildHost();
  writeLegend();
  on(["scene"], () => {
    buildCameras();
    lookAround();
  });
  painter(["cursor", "window", "chosen", "hovered"], paintTimeline);
  painter([], paintLegend);
  painter(["chosen"], paintWhy);
  for (const paint of [paintResponses, paintChains, paintHost, paintInputs]) painter([], paint);
  painter(["cursor"], placeCursors);
  painter(["cursor", "scene", "ground"], paintBirdseye);
  painter(["cursor", "scene", "picture"], paintCamera);
  startPlayer();
  startPointer();
  startSurvey();
  startMisses();
  startKeys();
  startTheme();
  setCursor(openingTime());
  openWindow();
  paintNow();
  new ResizeObserver(() => tell("style")).observe(document.querySelector("main"));
  requestAnimationFrame(() => setTimeout(readScene));
}

/** Where the cursor stands at first: at an incident, at the first job not met, else in the middle. */
function openingTime() {
  const { incident } = data.runs[0];
  if (incident) {
    const place = runs[0].byId.get(incident.job);
    if (place !== undefined) view.chosen = { run: 0, place };
    return incident.at_ns;
  }
  const first = missed.find((one) => one.place !== undefined);
  if (first) {
    view.chosen = { run: first.run, place: first.place };
    return runs[first.run].at(first.place).due;
  }
  return data.steps[data.steps.length >> 1];
}

const OPENING_JOBS = 300; // of one task: with more, the window does not show the whole run at first

function openWindow() {
  const most = Math.max(...runs.flatMap((jobs) => jobs.byTask.map((places) => places.length)));
  if (most <= OPENING_JOBS) return;
  const size = ((data.to_ns - data.from_ns) * OPENING_JOBS) / 2 / most;
  setWindow(view.cursor - size / 2, view.cursor + size / 2);
}

start();
