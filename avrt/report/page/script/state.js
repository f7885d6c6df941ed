// What the reader looks at: the cursor, the window of time, the chosen job. Everything that is drawn
// hangs on it.

const data = JSON.parse(document.getElementById("run-data").textContent);
const view = {
  cursor: data.from_ns,
  from: data.from_ns,
  to: data.to_ns,
  chosen: null, // { run, place }
  hovered: null,
  playing: false,
};
const WINDOW_LEAST_NS = 1e5;

const within = (value, low, high) => Math.min(Math.max(value, low), high);

function setCursor(ns) {
  view.cursor = within(Math.round(ns), data.from_ns, data.to_ns);
  tell("cursor");
}

/** Show the window from `from` to `to`, kept within the run. */
function setWindow(from, to) {
  const size = within(to - from, WINDOW_LEAST_NS, data.to_ns - data.from_ns);
  view.from = within(from, data.from_ns, data.to_ns - size);
  view.to = view.from + size;
  tell("window");
}

/** Zoom by a factor about a point of time that stays where it is. */
function zoom(factor, about) {
  const left = (about - view.from) * factor;
  const right = (view.to - about) * factor;
  setWindow(about - left, about + right);
}

/** Move the window, if need be, so that `from` to `to` is in it. */
function reveal(from, to) {
  const size = Math.max(view.to - view.from, (to - from) * 1.5);
  if (from < view.from || to > view.to) setWindow((from + to - size) / 2, (from + to + size) / 2);
}

function choose(chosen) {
  view.chosen = chosen;
  tell("chosen");
}
