// One row of jobs: bars from start to end, a thin line from release to start, ticks at due times.

const BAR = 12;

/** Draw the jobs of a task that lie in the window. */
function drawTask(pen, row, width) {
  const middle = row.y + row.height / 2;
  const places = row.jobs.between(row.task, view.from, view.to);
  const room = width - LABELS;
  const { met, missed } = row.jobs.run.thinned;
  drawDensity(pen, row, width, places.length > room / 2 ? 0.9 : met > 1 || missed > 1 ? 0.4 : 0);
  if (places.length > room * 1.5) return drawMissesOnly(pen, row, places, middle, width);
  const detailed = places.length < room / 30;
  const spots = { met: [], late: [], aborted: [], skipped: [], shed: [] };
  for (const place of places) {
    const job = row.jobs.at(place);
    drawJob(pen, row.jobs, job, middle, width, detailed);
    if (job.outcome !== "met") spots[job.outcome].push([scaleX(symbolAt(job), width), symbolY(job, middle)]);
  }
  for (const [outcome, found] of Object.entries(spots)) drawSpaced(pen, outcome, found, 4);
}

/** Symbols that would touch the one before them are ticks: a cluster is a symbol and ticks. */
function drawSpaced(pen, kind, spots, size) {
  let last = -Infinity;
  for (const [x, y] of spots) {
    if (x - last >= 2 * size + 1) {
      drawSymbol(pen, kind, x, y, size);
    } else {
      pen.fillStyle = colour(SYMBOL_COLOURS[kind]);
      pen.fillRect(x - 0.5, y - size, 1, 2 * size);
    }
    last = x;
  }
}

/** Shade by how many jobs there are, where they are too many to tell apart or not all are drawn. */
function drawDensity(pen, row, width, strength) {
  const { begin_ns: begin, bin_ns: bin, tasks } = row.jobs.run.density;
  const counts = tasks[row.name];
  if (!strength || !counts) return;
  const most = Math.max(1, ...counts.met.map((met, i) => met + counts.missed[i]));
  counts.met.forEach((met, i) => {
    const all = met + counts.missed[i];
    const [from, to] = [begin + i * bin, begin + (i + 1) * bin];
    if (!all || to < view.from || from > view.to) return;
    const [x0, x1] = [scaleX(from, width), scaleX(to, width)];
    pen.globalAlpha = strength * (0.25 + (0.75 * all) / most);
    pen.fillStyle = colour("met");
    pen.fillRect(x0, row.y + row.height / 2 - BAR / 2, Math.max(1, x1 - x0), BAR);
    pen.globalAlpha = 1;
  });
}

function drawMissesOnly(pen, row, places, middle, width) {
  for (const outcome of ["late", "aborted", "skipped", "shed"]) {
    const number = row.jobs.run.outcomes.indexOf(outcome);
    const mine = places.filter((place) => row.jobs.columns.outcome[place] === number);
    drawSpaced(pen, outcome, mine.map((place) => [scaleX(row.jobs.columns.release[place], width), middle]), 3.5);
  }
}

/** Draw one job around the middle of its row. */
function drawJob(pen, jobs, job, middle, width, detailed) {
  const x = (ns) => scaleX(ns, width);
  const top = middle - BAR / 2;
  const began = job.start ?? job.end;
  if (detailed || job.outcome !== "met") line(pen, x(job.release), middle, x(began), middle, colour("wait"), 2);
  if (detailed) line(pen, x(job.release), middle - 4, x(job.release), middle + 4, colour("wait"));
  drawStretches(pen, jobs, job, x, top, BAR);
  if (job.more.busy_until_ns) outline(pen, x(job.end), top, x(job.more.busy_until_ns), "faint", [2, 2]);
  if (detailed) drawDue(pen, x(job.due), middle);
}

const AROUND = 0.4;

/** Where a job was on its slot: solid while its device worked, lighter while it was handed over or reported. */
function drawStretches(pen, jobs, job, x, top, height) {
  pen.fillStyle = barFill(pen, job.outcome);
  for (const [start, end, busy] of jobs.stretches(job)) {
    pen.globalAlpha = busy ? 1 : AROUND;
    pen.fillRect(x(start), top, Math.max(busy ? 1.5 : 0, x(end) - x(start)), height);
  }
  pen.globalAlpha = 1;
}

/** The due time: a tick with a foot, above and below the bar. */
function drawDue(pen, x, middle) {
  const half = CROWDED ? 7 : 9;
  line(pen, x, middle - half, x, middle + half, colour("due"));
  line(pen, x - 3, middle - half, x, middle - half, colour("due"));
}

const symbolAt = (job) => (job.start === null ? job.release : job.end);
const symbolY = (job, middle) => (job.start === null ? middle : middle - BAR / 2 - 1);

function outline(pen, x0, top, x1, tint, dash = []) {
  pen.strokeStyle = colour(tint);
  pen.lineWidth = 1.5;
  pen.setLineDash(dash);
  pen.strokeRect(x0 - 1, top - 1.5, Math.max(3, x1 - x0 + 2), BAR + 3);
  pen.setLineDash([]);
}

/** Frame a job that the pointer is over or that was chosen. */
function drawFrame(pen, row, job, width, tint) {
  const middle = row.y + row.height / 2;
  const from = job.start ?? job.release - (view.to - view.from) / 400;
  const to = job.start === null ? job.release + (view.to - view.from) / 400 : job.end;
  outline(pen, scaleX(from, width), middle - BAR / 2, scaleX(to, width), tint);
  drawDue(pen, scaleX(job.due, width), middle);
}
