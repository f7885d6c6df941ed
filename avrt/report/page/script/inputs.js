// The health of the inputs over the whole run: messages, pauses, anomalies, and the counts.

const INPUT_ROW = 30;

function paintInputs() {
  const canvas = document.getElementById("input-canvas");
  if (!canvas) return;
  const { sources } = data.runs[0];
  const { pen, width } = prepare(canvas, sources.length * INPUT_ROW + 24);
  const right = width - 230;
  const x = (ns) => LABELS + ((ns - data.from_ns) / (data.to_ns - data.from_ns)) * (right - LABELS);
  drawInputAxis(pen, x, sources.length * INPUT_ROW, right);
  sources.forEach((source, number) => {
    const middle = number * INPUT_ROW + INPUT_ROW / 2;
    pen.font = FONT;
    pen.fillStyle = colour("ink");
    pen.fillText(fitted(pen, source.name, LABELS - 16), 2, middle);
    pen.fillStyle = colour("message");
    for (const ns of source.arrivals) pen.fillRect(x(ns), middle - 6, 1, 12);
    drawGaps(pen, source, middle, 8, x);
    pen.font = SMALL;
    pen.fillStyle = colour("soft");
    pen.fillText(fitted(pen, inputCounts(source), 214), right + 14, middle);
  });
  followCursor(canvas, x);
}

function inputCounts(source) {
  const { counts } = source;
  const came = counts ? `${counts.delivered} of ${counts.messages}, ${counts.lost} lost` : `${source.count} came`;
  const gaps = source.period_ns === null ? "no rate declared" : source.gap_count === 1 ? "1 gap" : `${source.gap_count} gaps`;
  return `${came}, ${gaps}`;
}

function drawInputAxis(pen, x, bottom, right) {
  const { ticks, digits } = ticksOf(data.from_ns, data.to_ns, (right - LABELS) / 90);
  pen.font = SMALL;
  pen.textAlign = "center";
  for (const t of ticks) {
    line(pen, x(t), 0, x(t), bottom, colour("grid"));
    pen.fillStyle = colour("soft");
    pen.fillText(`${(t / NS_PER_S).toFixed(digits)} s`, within(x(t), LABELS + 12, right), bottom + 12);
  }
  pen.textAlign = "left";
}
