// The time slider and its buttons. It stops at every frame; the cursor may also stand between two.

const slider = document.getElementById("time");
const SPAN_NS = data.to_ns - data.from_ns;
const speed = document.getElementById("speed");

/** Go so many frames on (or back, when negative). */
function step(frames) {
  const { steps } = data;
  const after = firstAtLeast(steps.length, (i) => steps[i] > view.cursor);
  const here = after - 1;
  const on = here >= 0 && steps[here] === view.cursor;
  const next = frames > 0 ? here + frames : here + frames + (on ? 0 : 1);
  setCursor(steps[within(next, 0, steps.length - 1)]);
  follows();
}

/** Keep the cursor in the window. */
function follows() {
  const size = view.to - view.from;
  if (view.cursor < view.from || view.cursor > view.to) setWindow(view.cursor - size / 2, view.cursor + size / 2);
}

function paintPlayer() {
  slider.value = ((view.cursor - data.from_ns) / SPAN_NS) * 1000;
  slider.style.setProperty("--part", `${((view.cursor - data.from_ns) / SPAN_NS) * 100}%`);
  slider.setAttribute("aria-valuetext", seconds(view.cursor));
  document.getElementById("clock").textContent = seconds(view.cursor);
}

function play(wanted) {
  view.playing = wanted;
  const button = document.getElementById("play");
  button.setAttribute("aria-pressed", String(wanted));
  button.setAttribute("aria-label", wanted ? "Pause" : "Play");
  if (!wanted) return;
  if (view.cursor >= data.to_ns) setCursor(data.from_ns);
  let before = null;
  const tick = (now) => {
    if (!view.playing) return;
    if (before !== null) setCursor(view.cursor + (now - before) * NS_PER_MS * Number(speed.value));
    before = now;
    follows();
    if (view.cursor >= data.to_ns) play(false);
    else requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function startPlayer() {
  slider.max = 1000;
  slider.step = "any";
  slider.addEventListener("input", () => {
    setCursor(data.from_ns + (slider.value / 1000) * SPAN_NS);
    follows();
  });
  const click = (id, action) => document.getElementById(id).addEventListener("click", action);
  click("play", () => play(!view.playing));
  click("step-back", () => step(-1));
  click("step-on", () => step(1));
  click("zoom-in", () => zoom(0.5, view.cursor >= view.from && view.cursor <= view.to ? view.cursor : (view.from + view.to) / 2));
  click("zoom-out", () => zoom(2, (view.from + view.to) / 2));
  click("zoom-all", () => setWindow(data.from_ns, data.to_ns));
  painter(["cursor"], paintPlayer);
}
