// The pointer on the timeline: click to choose, drag to move, wheel with Ctrl to zoom.

const DRAG_LEAST = 4;

/** The job under a place on the canvas, or null. */
function jobUnder(x, y, width) {
  const row = layout.rows.find((one) => one.kind === "task" && y >= one.y && y < one.y + one.height);
  if (!row || x < LABELS) return null;
  const near = ((view.to - view.from) / (width - LABELS)) * 6;
  const at = timeAt(x, width);
  let best = null;
  for (const place of row.jobs.between(row.task, at - near, at + near)) {
    const job = row.jobs.at(place);
    const from = job.start ?? job.release;
    const to = job.start === null ? job.release : job.end;
    const away = Math.max(0, from - at, at - to) - (job.outcome === "met" ? 0 : near / 2);
    if (away <= near && (!best || away < best.away)) best = { away, run: row.run, place };
  }
  return best && { run: best.run, place: best.place };
}

/** The passed chain limit under a place on the canvas, or null. */
function passedUnder(x, y, width) {
  const row = layout.rows.find((one) => one.kind === "events" && y >= one.y && y < one.y + one.height);
  if (!row) return null;
  const passed = data.runs[row.run].broken.findIndex(([, at]) => Math.abs(scaleX(at, width) - x) <= 6);
  return passed < 0 ? null : { run: row.run, passed };
}

/** What is said about the place under the pointer. */
function tipLines(x, y, width) {
  const found = jobUnder(x, y, width);
  if (found) return jobLines(runs[found.run].at(found.place));
  const row = layout.rows.find((one) => y >= one.y && y < one.y + one.height);
  if (!row || x < LABELS) return row?.kind === "source" ? sourceLines(row.source) : null;
  const near = ((view.to - view.from) / (width - LABELS)) * 6;
  const at = timeAt(x, width);
  if (row.kind === "source") return sourceLines(row.source, at, near);
  return markLines(row, at, near) ?? gapLines(row, at);
}

function jobLines(job) {
  const ended = { met: "met", late: `late by ${duration(job.end - job.due)}` }[job.outcome] ?? `${job.outcome}: ${job.reason}`;
  const lines = [`${job.task} ${job.index} · ${ended}`];
  if (runs.length > 1) lines.push(data.runs[job.run].name);
  lines.push(`released ${seconds(job.release)}, due ${seconds(job.due)}`);
  if (job.start !== null) lines.push(`ran ${seconds(job.start)} to ${seconds(job.end)}`);
  if (hasParts(job)) lines.push(partsText(job));
  return lines;
}

function sourceLines(source, at = null, near = 0) {
  const lines = [source.name, source.topic ?? "fed by the program"];
  if (source.counts) lines.push(`${source.counts.delivered} of ${source.counts.messages} delivered, ${source.counts.lost} lost`);
  if (at !== null) {
    for (const [from, to] of source.gaps) if (at >= from && at <= to) lines.push(`no message for ${duration(to - from)}`);
    for (const { from, to, state } of outages(source)) if (at >= from && at <= to) lines.push(`sensor ${state} for ${duration(to - from)}`);
    for (const one of source.anomalies) {
      if (one.at_ns !== null && Math.abs(one.at_ns - at) <= near) lines.push(`${one.kind}: ${one.detail} (${one.count}x)`);
    }
  }
  return lines;
}

function markLines(row, at, near) {
  const found = [];
  const run = data.runs[row.run];
  for (const mark of run.marks) {
    const here = row.kind === "events" ? isEvent(mark, run) : mark.task === row.name;
    if (here && Math.abs(mark.at_ns - at) <= near) found.push(mark.text);
  }
  if (row.kind === "events") {
    for (const [chain, ns, promise, limit] of run.broken) {
      if (Math.abs(ns - at) <= near) found.push(`${chain}: ${promise} limit of ${duration(limit)} passed`);
    }
  }
  return found.length ? [seconds(at), ...found.slice(0, 4)] : null;
}

function startPointer() {
  const canvas = timelineCanvas;
  let drag = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top, box.width];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const [x, y] = place(event);
    const zone = y < AXIS ? "axis" : y > layout.bottom ? "overview" : "rows";
    drag = { x, zone, from: view.from, to: view.to, moved: false };
    canvas.setPointerCapture(event.pointerId);
    if (zone !== "rows") follow(drag, ...place(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y, width] = place(event);
    if (drag) return follow(drag, x, y, width);
    hover(event, x, y, width);
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y, width] = place(event);
    if (drag && !drag.moved && drag.zone === "rows") clicked(x, y, width);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { hideTip(); hoverOver(null); });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, timeAt(place(event)[0], place(event)[2])));
  canvas.addEventListener("wheel", (event) => wheel(event, ...place(event)), { passive: false });
}

/** Follow a drag: the axis moves the cursor, the overview the window, the rows are moved. */
function follow(drag, x, _y, width) {
  if (drag.zone === "axis") return setCursor(timeAt(x, width));
  if (drag.zone === "overview") {
    const at = data.from_ns + ((x - LABELS) / (width - LABELS - 12)) * (data.to_ns - data.from_ns);
    const half = (drag.to - drag.from) / 2;
    return setWindow(at - half, at + half);
  }
  drag.moved ||= Math.abs(x - drag.x) > DRAG_LEAST;
  if (!drag.moved) return undefined;
  const shift = ((drag.x - x) / (width - LABELS - 12)) * (drag.to - drag.from);
  timelineCanvas.style.cursor = "grabbing";
  return setWindow(drag.from + shift, drag.to + shift);
}

function hover(event, x, y, width) {
  const found = jobUnder(x, y, width);
  hoverOver(found);
  timelineCanvas.style.cursor = found ? "pointer" : y < AXIS ? "ew-resize" : "default";
  const lines = tipLines(x, y, width);
  if (lines) showTip(lines, event.clientX, event.clientY);
  else hideTip();
}

function hoverOver(found) {
  if (found?.place === view.hovered?.place && found?.run === view.hovered?.run) return;
  view.hovered = found;
  tell("hovered");
}

function clicked(x, y, width) {
  const found = jobUnder(x, y, width) ?? passedUnder(x, y, width);
  if (x >= LABELS) setCursor(timeAt(x, width));
  choose(found);
}

function wheel(event, x, _y, width) {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(Math.max(x, LABELS), width));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    const shift = ((event.deltaX || event.deltaY) / width) * (view.to - view.from);
    setWindow(view.from + shift, view.to + shift);
  }
}
