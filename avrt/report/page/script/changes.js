// What a what-if changed, on the timeline: misses that appear, vanish or move.

/** Misses that appear, vanish or move between two runs. */
function drawChanges(pen, width) {
  const shown = changes.filter(({ before, after }) => {
    const { job } = after ?? before;
    return job.end >= view.from && job.release <= view.to;
  });
  const dense = shown.length > (width - LABELS) / 18;
  for (const change of shown) {
    const tint = CHANGE_COLOURS[change.kind];
    if (dense) {
      markChange(pen, change, width, tint);
      continue;
    }
    if (change.before && change.after) joinRows(pen, change, width, tint);
    const ring = change.kind === "vanishes" ? change.before : change.after;
    if (ring) ringAround(pen, ring, width, tint, change.kind === "vanishes");
  }
}

const CHANGE_COLOURS = { appears: "late", vanishes: "good", moves: "skipped" };

/** Where rings would touch: a tick between the two rows of the task, broken where it vanishes. */
function markChange(pen, change, width, tint) {
  const { row, job } = change.after ?? change.before;
  const between = row.run ? row.y : row.y + row.height;
  pen.fillStyle = colour(tint);
  const x = scaleX(symbolAt(job), width) - 1;
  pen.fillRect(x, between - 3, 2, change.kind === "vanishes" ? 2 : 6);
  if (change.kind === "vanishes") pen.fillRect(x, between + 1, 2, 2);
}

function joinRows(pen, change, width, tint) {
  const [above, below] = [change.before, change.after].map(({ row, job }) => [
    scaleX(symbolAt(job), width),
    row.y + row.height / 2,
  ]);
  line(pen, above[0], above[1] + 7, below[0], below[1] - 14, colour(tint), 1.5);
}

function ringAround(pen, { row, job }, width, tint, dashed) {
  pen.strokeStyle = colour(tint);
  pen.lineWidth = 1.5;
  pen.setLineDash(dashed ? [3, 2] : []);
  pen.beginPath();
  pen.arc(scaleX(symbolAt(job), width), symbolY(job, row.y + row.height / 2), 7, 0, 7);
  pen.stroke();
  pen.setLineDash([]);
}

/** The changes with their rows and jobs, found once. */
const changes = data.changes.map((change) => {
  const side = (run, index) => {
    if (index === null) return null;
    const row = layout.rows.find((one) => one.kind === "task" && one.run === run && one.name === change.task);
    const place = runs[run].find(change.task, index);
    return row && place !== undefined ? { row, job: runs[run].at(place) } : null;
  };
  return { kind: change.kind, before: side(0, change.before), after: side(1, change.after) };
}).filter((change) => change.before || change.after);
