// The timeline: axis, sources, jobs of every task, the whole run below, the cursor over all.

const timelineCanvas = document.getElementById("timeline-canvas");

function paintTimeline() {
  const { pen, width } = prepare(timelineCanvas, layout.height);
  drawAxis(pen, width);
  drawBackground(pen, width);
  pen.save();
  pen.beginPath();
  pen.rect(LABELS - 6, AXIS, width - LABELS, layout.bottom - AXIS);
  pen.clip();
  for (const row of layout.rows) {
    if (row.kind === "task") drawTask(pen, row, width);
    else if (row.kind === "source") drawSource(pen, row, width);
    else drawEvents(pen, row, width);
  }
  drawTaskMarks(pen, width);
  drawChanges(pen, width);
  drawChosen(pen, width);
  pen.restore();
  drawOverview(pen, width);
  drawCursor(pen, width);
}

function drawAxis(pen, width) {
  const { ticks, digits } = ticksOf(view.from, view.to, (width - LABELS) / 90);
  pen.font = SMALL;
  pen.textAlign = "center";
  for (const t of ticks) {
    const x = scaleX(t, width);
    if (x < LABELS + 12 || x > width - 24) continue;
    line(pen, x, AXIS, x, layout.bottom, colour("grid"));
    pen.fillStyle = colour("soft");
    pen.fillText(`${(t / NS_PER_S).toFixed(digits)} s`, x, AXIS / 2 + 1);
  }
  pen.textAlign = "left";
}

function drawBackground(pen, width) {
  for (const row of layout.rows) {
    const middle = row.y + row.height / 2;
    line(pen, LABELS, middle, width - 12, middle, colour("grid"));
    if (row.label) {
      pen.font = row.kind === "task" ? FONT : SMALL;
      pen.fillStyle = colour(row.kind === "task" ? "ink" : "soft");
      pen.fillText(fitted(pen, row.label, row.second ? 84 : LABELS - 16), 2, middle);
    }
    if (row.second) {
      pen.font = SMALL;
      pen.fillStyle = colour(row.run ? "accent" : "soft");
      pen.textAlign = "right";
      pen.fillText(row.second, LABELS - 10, middle);
      pen.textAlign = "left";
    }
  }
}

/** Messages as ticks, pauses as hatched stretches, anomalies where they were first seen. */
function drawSource(pen, row, width) {
  const { source } = row;
  const middle = row.y + row.height / 2;
  pen.fillStyle = colour("message");
  let last = -9;
  for (const ns of source.arrivals) {
    if (ns < view.from || ns > view.to) continue;
    const x = Math.round(scaleX(ns, width));
    if (x > last) pen.fillRect(x, middle - 4, 1.5, 8);
    last = x;
  }
  drawGaps(pen, source, middle, 4, (ns) => scaleX(ns, width));
}

/** Where a source paused, when its sensor was out of use, and what was odd about it. */
function drawGaps(pen, source, middle, half, x) {
  for (const [from, to] of source.gaps) {
    pen.fillStyle = hatch(pen, colour("late"), colour("late-soft"));
    pen.fillRect(x(from), middle - half, Math.max(2, x(to) - x(from)), 2 * half);
  }
  for (const { from, to } of outages(source)) {
    pen.fillStyle = hatch(pen, colour("aborted"), colour("aborted-soft"), true);
    pen.fillRect(x(from), middle - half - 4, Math.max(2, x(to) - x(from)), 3);
  }
  for (const anomaly of source.anomalies) {
    if (anomaly.at_ns !== null) drawSymbol(pen, "anomaly", x(anomaly.at_ns), middle, 5);
  }
}

/** The stretches in which a sensor was out of use, or its lens blocked. */
const outages = (source) => source.outages.map(([from, to, state]) => ({ from, to: to ?? data.to_ns, state }));

/** What belongs to no task: lost devices as stretches, modes and passed chain limits as symbols. */
function drawEvents(pen, row, width) {
  const middle = row.y + row.height / 2;
  const run = data.runs[row.run];
  drawLosses(pen, run, middle, width);
  for (const mark of run.marks) {
    if (isEvent(mark, run) && mark.kind !== "resource") drawSymbol(pen, mark.kind, scaleX(mark.at_ns, width), middle, 4);
  }
  drawLabels(pen, run, middle, width);
  drawSpaced(pen, "broken", run.broken.map(([, at]) => [scaleX(at, width), middle]), 4.5);
  if (view.chosen?.run !== row.run || view.chosen.passed === undefined) return;
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 1.5;
  pen.strokeRect(scaleX(run.broken[view.chosen.passed][1], width) - 7, middle - 7, 14, 14);
}

function drawLosses(pen, run, middle, width) {
  for (const { from, to } of losses(run)) {
    const [x0, x1] = [scaleX(from, width), scaleX(to, width)];
    pen.fillStyle = hatch(pen, colour("aborted"), colour("aborted-soft"), true);
    pen.fillRect(x0, middle - 8, Math.max(3, x1 - x0), 3);
  }
}

/** What was lost and which level was entered, each beside its place where there is room for it. */
function drawLabels(pen, run, middle, width) {
  const labels = [...levelLabels(run, width), ...lossLabels(run, width)].sort((a, b) => a.x - b.x);
  pen.font = SMALL;
  let free = LABELS;
  for (const { x, text, tint } of labels) {
    const at = Math.max(x, free);
    if (at > x + 60 || x > width) continue;
    pen.fillStyle = colour(tint);
    pen.fillText(text, at, middle + 4);
    free = at + pen.measureText(text).width + 6;
  }
}

function levelLabels(run, width) {
  const entered = run.marks.filter((mark) => mark.kind === "mode" && mark.task && mark.at_ns >= view.from);
  return entered.map((mark) => ({ x: scaleX(mark.at_ns, width) + 6, text: mark.task, tint: "accent" }));
}

function lossLabels(run, width) {
  const found = losses(run).filter((one) => scaleX(one.to, width) >= LABELS);
  return [...new Set(found.map((one) => one.from))].map((from) => {
    const names = found.filter((one) => one.from === from).map((one) => one.name);
    return { x: Math.max(scaleX(from, width), LABELS) + 2, text: `${names.join(", ")} lost`, tint: "aborted" };
  });
}

/** The stretches in which a device or stream was lost. */
function losses(run) {
  const found = [];
  for (const mark of run.marks) {
    if (mark.kind !== "resource") continue;
    const open = found.find((one) => one.name === mark.task && one.to === data.to_ns);
    if (mark.text.endsWith("came back")) {
      if (open) open.to = mark.at_ns;
    } else found.push({ name: mark.task, from: mark.at_ns, to: data.to_ns });
  }
  return found;
}

/** Faults, overruns, broken windows: small, below the bar of their task. */
function drawTaskMarks(pen, width) {
  for (const row of layout.rows) {
    if (row.kind !== "task") continue;
    const { stage } = row.jobs.run.tasks[row.task];
    const spots = {};
    for (const mark of row.jobs.run.marks) {
      if ((mark.task !== row.name && mark.task !== stage) || mark.kind === "resource") continue;
      if (mark.at_ns < view.from || mark.at_ns > view.to) continue;
      (spots[mark.kind] ??= []).push([scaleX(mark.at_ns, width), row.y + row.height - 3]);
    }
    for (const [kind, found] of Object.entries(spots)) drawSpaced(pen, kind, found, 2.6);
  }
}

function drawChosen(pen, width) {
  for (const [chosen, tint] of [[view.hovered, "soft"], [view.chosen, "accent"]]) {
    if (chosen?.place === undefined) continue;
    const job = runs[chosen.run].at(chosen.place);
    const row = layout.rows.find((one) => one.kind === "task" && one.run === chosen.run && one.name === job.task);
    drawFrame(pen, row, job, width, tint);
  }
}

/** The whole run in one strip, with the window in it. */
function drawOverview(pen, width) {
  const top = layout.bottom + 8;
  const high = OVERVIEW - 12;
  const x = (ns) => LABELS + ((ns - data.from_ns) / (data.to_ns - data.from_ns)) * (width - LABELS - 12);
  pen.fillStyle = colour("strip");
  pen.fillRect(LABELS, top, width - LABELS - 12, high);
  for (const jobs of runs) {
    for (const place of jobs.missed) {
      const release = jobs.columns.release[place];
      pen.fillStyle = colour(jobs.run.outcomes[jobs.columns.outcome[place]]);
      const half = high / runs.length;
      pen.fillRect(x(release), top + jobs.number * half, 1.2, half);
    }
  }
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 1.5;
  pen.strokeRect(x(view.from), top - 1, Math.max(4, x(view.to) - x(view.from)), high + 2);
  line(pen, x(view.cursor), top - 1, x(view.cursor), top + high + 1, colour("accent"));
  pen.font = SMALL;
  pen.fillStyle = colour("soft");
  pen.fillText("whole run", 2, top + high / 2);
}

function drawCursor(pen, width) {
  const x = scaleX(view.cursor, width);
  if (x < LABELS - 1 || x > width - 10) return;
  line(pen, x, AXIS - 2, x, layout.bottom, colour("accent"), 1.5);
  const text = seconds(view.cursor);
  pen.font = SMALL;
  const wide = pen.measureText(text).width + 12;
  const left = within(x - wide / 2, LABELS, width - wide);
  pen.fillStyle = colour("accent");
  pen.beginPath();
  pen.roundRect(left, 3, wide, 19, 4);
  pen.fill();
  pen.fillStyle = colour("on-accent");
  pen.fillText(text, left + 6, 13);
}
