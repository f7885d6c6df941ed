// Why a job was late: its times, and where the time from its release to its due time went.

const CAUSES = { running: "running", blocking: "blocked by", waiting: "waiting for", planned: "until its start in the table" };

/** The intervals of a job's miss with text, and the job that each names, if it is on the page. */
function intervalsOf(job) {
  return (job.more.miss ?? []).map(([kind, start, end, by, number]) => {
    const place = number === null ? undefined : runs[job.run].byId.get(number);
    const own = by === job.task && kind === "waiting";
    const whom = own ? "its own predecessor" : by || "a report of its release";
    const text = kind === "running" || kind === "planned" ? CAUSES[kind] : `${CAUSES[kind]} ${whom}`;
    return { kind, start, end, text, place };
  });
}

function paintWhy() {
  const body = document.getElementById("why-body");
  document.body.classList.toggle("has-chosen", Boolean(view.chosen));
  if (!view.chosen) return;
  if (view.chosen.passed !== undefined) {
    body.replaceChildren(...whyPassed(view.chosen));
    return;
  }
  const job = runs[view.chosen.run].at(view.chosen.place);
  const canvas = element("canvas", { id: "why-canvas", role: "img", "aria-label": "The job from release to its end" });
  body.replaceChildren(whyTitle(job), element("div", { class: "strip" }, canvas), ...intervalList(job), whyTimes(job));
  drawWhy(canvas, job);
}

/** What is said of a chain limit that was passed. */
function whyPassed({ run, passed }) {
  const [chain, at, promise, limit, capture] = data.runs[run].broken[passed];
  const name = element("p", { class: "job" }, element("strong", {}, chain), element("span", { class: "outcome late" }, `${promise} limit passed`));
  const long = promise === "reaction" ? "no output knew of what came after it" : "the newest output still rested on it";
  const text = `At ${seconds(at)}, ${duration(limit)} after the capture at ${seconds(capture)}, ${long}.`;
  return [name, element("p", {}, text)];
}

function whyTitle(job) {
  const ended = job.reason ? `${job.outcome}: ${job.reason}` : job.outcome === "late" ? `late by ${duration(job.end - job.due)}` : job.outcome;
  const run = runs.length > 1 ? element("span", { class: "quiet" }, data.runs[job.run].name) : "";
  const near = element("button", { type: "button", class: "link", title: "Zoom to it (z)" }, "zoom to it");
  near.addEventListener("click", zoomToChosen);
  const name = element("strong", {}, `${job.task} ${job.index}`);
  return element("p", { class: "job" }, name, run, element("span", { class: `outcome ${job.outcome}` }, ended), near);
}

function intervalList(job) {
  const intervals = intervalsOf(job);
  if (!intervals.length) return [];
  const items = intervals.map((one) => {
    const item = element("li", {}, element("span", { class: `swatch ${one.kind}` }), element("b", {}, duration(one.end - one.start)), ` ${one.text}`);
    if (one.place !== undefined && one.place !== job.place) item.append(" ", jobButton(job.run, one.place));
    return item;
  });
  const head = element("p", { class: "quiet" }, "From its release to its due time:");
  return [head, element("ol", { class: "intervals" }, ...items)];
}

/** A button that shows a job. */
function jobButton(run, place) {
  const job = runs[run].at(place);
  const button = element("button", { type: "button", class: "link" }, `${job.task} ${job.index}`);
  button.addEventListener("click", () => showJob(run, place));
  return button;
}

function whyTimes(job) {
  const { more } = job;
  const devices = runs[job.run].columns.devices;
  const pairs = [
    ["release", seconds(job.release)],
    more.arrival_ns !== undefined && ["known at", seconds(more.arrival_ns)],
    ["start", job.start === null ? "never" : after(job, job.start)],
    ["end", after(job, job.end)],
    ["due", after(job, job.due)],
    ["executed", job.start === null ? "-" : duration(job.executed)],
    more.device !== undefined && ["device", devices[more.device]],
    more.device_ns && ["device times", deviceTimes(...more.device_ns)],
    hasParts(job) && ["of that", partsText(job)],
    more.gap_ns && ["gap before", gapText(more.gap_ns)],
    more.host_ns !== undefined && ["took here", `${duration(more.host_ns)} of host time`],
    more.busy_until_ns !== undefined && ["work went on", `until ${seconds(more.busy_until_ns)}`],
    more.absent && ["ran without", more.absent.join(", ")],
  ].filter(Boolean);
  const entries = pairs.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text)));
  return element("dl", { class: "times" }, ...entries);
}

const after = (job, ns) => (ns === job.release ? `${seconds(ns)}, at release` : `${seconds(ns)}, ${duration(ns - job.release)} after release`);
const deviceTimes = (start, end) => (start === null ? `done at ${seconds(end, 6)}` : `${seconds(start, 6)} to ${seconds(end, 6)}`);

/** The job in its own scale: how it waited and ran above, what held it up below. */
function drawWhy(canvas, job) {
  const { pen, width } = prepare(canvas, 62);
  const last = Math.max(job.end, job.due);
  const x = (ns) => 4 + ((ns - job.release) / Math.max(1, last - job.release)) * (width - 8);
  line(pen, x(job.release), 20, x(job.start ?? job.end), 20, colour("wait"), 2);
  drawStretches(pen, runs[job.run], job, x, 13, 14);
  for (const one of intervalsOf(job)) {
    pen.fillStyle = causeFill(pen, one.kind);
    pen.fillRect(x(one.start), 32, Math.max(1, x(one.end) - x(one.start) - 1), 8);
  }
  line(pen, x(job.due), 8, x(job.due), 44, colour("due"), 1.5);
  pen.font = SMALL;
  pen.fillStyle = colour("soft");
  pen.fillText("release", x(job.release) - 2, 53);
  const place = within(x(job.due) - 10, 52, width - 24);
  pen.fillText("due", place, 53);
  if (job.end > job.due && x(job.end) - place > 50) {
    pen.textAlign = "right";
    pen.fillText("end", x(job.end), 53);
    pen.textAlign = "left";
  }
}

function causeFill(pen, kind) {
  if (kind === "blocking") return hatch(pen, colour("late"), colour("late-soft"));
  if (kind === "planned") return hatch(pen, colour("soft"), colour("strip"));
  return colour(kind === "running" ? "met" : "skipped");
}
