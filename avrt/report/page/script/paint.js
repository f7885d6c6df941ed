// Who hears of what changes, and what is drawn again then: at most once a frame.

const painters = [];
const heard = {};
const due = new Set();
let printing = false;

/** Call `handler` whenever one of these changes: cursor, window, chosen, hovered, style, scene. */
function on(names, handler) {
  for (const name of names) (heard[name] ??= []).push(handler);
}

function tell(name) {
  for (const handler of heard[name] ?? []) handler();
}

/** Draw with `paint` at the next frame after one of these has changed. */
function painter(names, paint) {
  painters.push(paint);
  on([...names, "style"], () => {
    if (!due.size) requestAnimationFrame(paintDue);
    due.add(paint);
  });
}

function paintDue() {
  const ready = [...due];
  due.clear();
  for (const paint of ready) paint();
}

/** Draw everything at once: before it is printed, or when its size has changed. */
function paintNow() {
  due.clear();
  for (const paint of painters) paint();
}
