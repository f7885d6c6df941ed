// The symbols of outcomes and events: each has a shape of its own, colour only helps.

const OUTCOME_WORDS = {
  met: "met",
  late: "late",
  aborted: "aborted",
  skipped: "skipped",
  shed: "shed",
};

/** Draw the symbol of an outcome that is not met, or of an event, around (x, y). */
function drawSymbol(pen, kind, x, y, size = 4) {
  const tint = colour(SYMBOL_COLOURS[kind] ?? "soft");
  pen.fillStyle = tint;
  pen.strokeStyle = tint;
  pen.lineWidth = 1.6;
  pen.beginPath();
  SYMBOL_SHAPES[kind]?.(pen, x, y, size);
}

const SYMBOL_COLOURS = {
  late: "late",
  aborted: "aborted",
  skipped: "skipped",
  shed: "shed",
  fault: "aborted",
  overrun: "late",
  window: "late",
  start_late: "skipped",
  incomplete: "skipped",
  broken: "late",
  anomaly: "skipped",
  resource: "aborted",
  mode: "accent",
  vote: "soft",
  sensor: "aborted",
};

const polygon = (pen, ...points) => {
  pen.moveTo(...points[0]);
  for (const point of points.slice(1)) pen.lineTo(...point);
  pen.closePath();
};

const SYMBOL_SHAPES = {
  late: (pen, x, y, s) => {
    polygon(pen, [x - s, y - s], [x + s, y - s], [x, y + s]);
    pen.fill();
  },
  aborted: (pen, x, y, s) => {
    pen.moveTo(x - s, y - s);
    pen.lineTo(x + s, y + s);
    pen.moveTo(x + s, y - s);
    pen.lineTo(x - s, y + s);
    pen.stroke();
  },
  skipped: (pen, x, y, s) => {
    polygon(pen, [x, y - s], [x + s, y], [x, y + s], [x - s, y]);
    pen.stroke();
  },
  shed: (pen, x, y, s) => {
    pen.arc(x, y, s * 0.9, 0, 7);
    pen.moveTo(x - s * 0.6, y + s * 0.6);
    pen.lineTo(x + s * 0.6, y - s * 0.6);
    pen.stroke();
  },
  fault: (pen, x, y, s) => SYMBOL_SHAPES.aborted(pen, x, y, s * 0.8),
  overrun: (pen, x, y, s) => {
    pen.moveTo(x - s, y + s * 0.6);
    pen.lineTo(x, y - s * 0.6);
    pen.lineTo(x + s, y + s * 0.6);
    pen.stroke();
  },
  window: (pen, x, y, s) => {
    pen.rect(x - s * 0.8, y - s * 0.8, s * 1.6, s * 1.6);
    pen.fill();
  },
  start_late: (pen, x, y, s) => {
    pen.moveTo(x - s * 0.5, y - s);
    pen.lineTo(x + s * 0.5, y);
    pen.lineTo(x - s * 0.5, y + s);
    pen.stroke();
  },
  incomplete: (pen, x, y, s) => {
    pen.arc(x, y, s * 0.8, 0.5, 5.5);
    pen.stroke();
  },
  broken: (pen, x, y, s) => {
    polygon(pen, [x, y - s], [x + s, y], [x, y + s], [x - s, y]);
    pen.fill();
  },
  anomaly: (pen, x, y, s) => {
    pen.fillRect(x - 1, y - s, 2, s * 1.2);
    pen.fillRect(x - 1, y + s * 0.6, 2, 2);
  },
  mode: (pen, x, y, s) => {
    polygon(pen, [x - s, y - s], [x + s, y], [x - s, y + s]);
    pen.fill();
  },
  vote: (pen, x, y, s) => {
    pen.arc(x, y, s * 0.6, 0, 7);
    pen.fill();
  },
  sensor: (pen, x, y, s) => {
    pen.ellipse(x, y, s, s * 0.6, 0, 0, 7);
    pen.stroke();
    pen.fillRect(x - 1, y - 1, 2, 2);
  },
};

/** What fills the bar of a job: met is plain, late is hatched, aborted is crossed. */
function barFill(pen, outcome) {
  if (outcome === "late") return hatch(pen, colour("late"), colour("late-soft"));
  if (outcome === "aborted") return hatch(pen, colour("aborted"), colour("aborted-soft"), true);
  return colour("met");
}
