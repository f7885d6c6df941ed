// The keyboard, wherever the focus is: a focused button or choice keeps its own keys.

const KEYS = {
  ArrowRight: (event) => move(event, 1),
  ArrowLeft: (event) => move(event, -1),
  Home: () => { setCursor(data.steps[0]); follows(); },
  End: () => { setCursor(data.steps[data.steps.length - 1]); follows(); },
  " ": () => play(!view.playing),
  n: () => goToMiss(1),
  p: () => goToMiss(-1),
  z: zoomToChosen,
  "+": () => zoom(0.5, view.cursor),
  "=": () => zoom(0.5, view.cursor),
  "-": () => zoom(2, view.cursor),
  0: () => setWindow(data.from_ns, data.to_ns),
  Escape: () => { choose(null); hideTip(); },
};

function move(event, way) {
  if (!event.shiftKey) return step(way);
  setCursor(view.cursor + way * NS_PER_S);
  return follows();
}

function startKeys() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    if (target.closest("select")) return;
    if (target.closest("button, a, summary") && (event.key === " " || event.key === "Enter")) return;
    const action = KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
