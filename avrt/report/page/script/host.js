// What a live run used of its host over time: cores as steps, one on the other, and memory.

const MIB = 2 ** 20;
const CORES = { process_cores: ["this process", "met"], others_cores: ["others", "wait"], steal_cores: ["taken by the hypervisor", "late"] };
const hostCharts = [];

function buildHost() {
  for (const place of document.querySelectorAll(".host-charts")) {
    const number = Number(place.dataset.run);
    const { host, object } = data.runs[number];
    const { levels } = object.host;
    const add = (title, figures, paint) => {
      const { card, canvas } = chartCard(title, figures);
      place.append(card);
      hostCharts.push({ canvas, host, jobs: runs[number], paint });
      return card;
    };
    const cores = add("Cores", spread(levels.process_cores, 1, 2), paintCores);
    cores.append(coreKeys(host));
    if (host.rss_bytes.some((bytes) => bytes !== null)) add("Memory of this process, MiB", spread(levels.rss_bytes, MIB, 0), paintMemory);
  }
}

/** The middle and the most of a figure as the report has them; nothing in the middle of a run. */
function spread(level, unit, digits) {
  if (!level || level.p50 === null) return "";
  return `p50 ${(level.p50 / unit).toFixed(digits)} \u00b7 max ${(level.max / unit).toFixed(digits)}`;
}

function coreKeys(host) {
  const known = Object.entries(CORES).filter(([name]) => host[name].some((value) => value !== null));
  return element("p", { class: "quiet" }, ...known.flatMap(([, [text, tint]]) => [element("span", { class: `swatch ${tint}` }), `${text} `]));
}

function paintHost() {
  for (const { canvas, host, jobs, paint } of hostCharts) {
    const frame = paint(canvas, host);
    drawMissTicks(frame, jobs);
    followCursor(canvas, frame.x);
  }
}

function paintCores(canvas, host) {
  const most = Math.max(...host.cores);
  const frame = chartFrame(canvas, most * 1.15, false, 1);
  const { pen, x, y } = frame;
  host.at_ns.forEach((at, i) => {
    const [left, right] = [x(Math.max(host.since_ns[i], data.from_ns)), x(at)];
    let below = 0;
    for (const [name, [, tint]] of Object.entries(CORES)) {
      const above = below + (host[name][i] ?? 0);
      pen.fillStyle = colour(tint);
      pen.fillRect(left, y(above), Math.max(1, right - left + 0.5), y(below) - y(above));
      below = above;
    }
  });
  drawLimit(frame, most, most === 1 ? "1 core" : `${most} cores`, "soft");
  return frame;
}

function paintMemory(canvas, host) {
  const frame = chartFrame(canvas, Math.max(1, ...host.rss_bytes) * 1.2, false, MIB);
  const { pen, x, y } = frame;
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 1.5;
  pen.beginPath();
  host.at_ns.forEach((at, i) => {
    if (host.rss_bytes[i] !== null) pen.lineTo(x(at), y(host.rss_bytes[i]));
  });
  pen.stroke();
  return frame;
}

/** A tick at the top at every due time that a job did not keep. */
function drawMissTicks({ pen, x, high }, jobs) {
  pen.fillStyle = colour("late");
  const { release, due } = jobs.columns;
  for (const place of jobs.missed) pen.fillRect(x(release[place] + due[place]), high - 8, 1, 6);
}
