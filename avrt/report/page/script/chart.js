// A small chart over the whole run: values as marks over time, limits as lines, and at its right how
// the values are spread. The numbers at the edge are the report's; nothing is computed here.

const CHART_HEIGHT = 168;
const SPREAD = 74;
const EDGE = 56;

/** Make a place for a chart with a title and a line of figures. */
function chartCard(title, figures) {
  const canvas = element("canvas", { role: "img", "aria-label": `${title}: ${figures}` });
  const head = element("figcaption", {}, element("b", {}, title), element("span", { class: "quiet" }, figures));
  return { card: element("figure", {}, head, element("div", { class: "plot" }, canvas)), canvas };
}

const chartCursors = [];

/** Let a line over a canvas follow the cursor, so that nothing is drawn anew; `x` gives its place. */
function followCursor(canvas, x) {
  let known = chartCursors.find((one) => one.canvas === canvas);
  if (!known) {
    known = { canvas, mark: element("i") };
    canvas.after(known.mark);
    chartCursors.push(known);
  }
  known.x = x;
  known.width = canvas.clientWidth;
  placeCursor(known);
}

const placeCursor = ({ mark, x, width }) => { mark.style.left = `${(x(view.cursor) / width) * 100}%`; };
const placeCursors = () => chartCursors.forEach(placeCursor);

/** The frame of a chart: scales, grid, axis labels in units of so many ns, or of what else it shows. */
function chartFrame(canvas, top, spread, unit = NS_PER_MS) {
  const { pen, width } = prepare(canvas, CHART_HEIGHT);
  const right = width - EDGE - (spread ? SPREAD : 0);
  const [high, low] = [10, CHART_HEIGHT - 22];
  const x = (ns) => 40 + ((ns - data.from_ns) / (data.to_ns - data.from_ns)) * (right - 44);
  const y = (ns) => low - (Math.min(ns, top) / top) * (low - high);
  pen.font = SMALL;
  const step = niceStep(top / unit, 5) * unit;
  for (let value = 0; value <= top; value += step) {
    line(pen, 40, y(value), right, y(value), colour("grid"));
    pen.fillStyle = colour("soft");
    pen.textAlign = "right";
    pen.fillText(`${+(value / unit).toPrecision(3)}`, 34, y(value));
  }
  const { ticks, digits } = ticksOf(data.from_ns, data.to_ns, (right - 40) / 70);
  pen.textAlign = "center";
  for (const t of ticks) pen.fillText(`${(t / NS_PER_S).toFixed(digits)} s`, within(x(t), 52, right - 10), CHART_HEIGHT - 8);
  pen.textAlign = "left";
  return { pen, width, right, high, low, x, y };
}

/** A dashed line at a limit, with its name at the right edge. */
function drawLimit({ pen, width, y }, ns, name, tint) {
  line(pen, 40, y(ns), width - EDGE, y(ns), colour(tint), 1.5, [5, 3]);
  pen.fillStyle = colour(tint);
  pen.fillText(name, width - EDGE + 4, y(ns));
}

/** Percentiles as ticks at the right edge; labels that would touch are left out. */
function drawPercentiles({ pen, width, y }, figures, taken) {
  for (const name of ["max", "p99", "p95", "p50"]) {
    const ns = figures[name];
    if (ns == null) continue;
    const at = y(ns);
    line(pen, width - EDGE - 4, at, width - EDGE, at, colour("soft"));
    if (taken.some((other) => Math.abs(other - at) < 11)) continue;
    taken.push(at);
    pen.fillStyle = colour("soft");
    pen.fillText(name, width - EDGE + 4, at);
  }
}

/** How values are spread: bars that grow from the right end of the time axis. */
function drawSpread({ pen, width, right, y }, counts, slice, tint, hollow) {
  const most = Math.max(1, ...counts);
  const room = width - EDGE - right - 10;
  counts.forEach((count, i) => {
    if (!count) return;
    const [top, bottom] = [y((i + 1) * slice), y(i * slice)];
    const long = Math.max(1.5, (count / most) * room);
    pen.fillStyle = pen.strokeStyle = colour(tint);
    pen.lineWidth = 1;
    if (hollow) pen.strokeRect(right + 6.5, top + 0.5, long, Math.max(1, bottom - top - 1));
    else pen.fillRect(right + 6, top, long, Math.max(1, bottom - top - 0.6));
  });
}
