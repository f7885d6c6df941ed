// What the marks of the timeline mean: those that this run has, drawn as they are drawn there.

/** What the marks mean, those that this run has. */
function writeLegend() {
  const outcomes = new Set(["met"]);
  for (const jobs of runs) for (const place of jobs.missed) outcomes.add(jobs.run.outcomes[jobs.columns.outcome[place]]);
  const kinds = new Map(Object.keys(OUTCOME_WORDS).filter((one) => outcomes.has(one)).map((one) => [one, one]));
  const words = { fault: "fault", overrun: "budget overrun", window: "(m,k) broken", start_late: "late start", incomplete: "incomplete set", mode: "mode", sensor: "sensor out or back" };
  for (const run of data.runs) {
    for (const mark of run.marks) if (words[mark.kind]) kinds.set(mark.kind, words[mark.kind]);
    if (Object.values(run.jobs.more).some((one) => (one.device_ns ?? [null])[0] !== null)) kinds.set("around", "handing over, reporting");
    if (run.broken.length) kinds.set("broken", "chain limit passed");
    if (run.sources.some((source) => source.gaps.length)) kinds.set("gap", "gap");
    if (run.sources.some((source) => source.anomalies.length)) kinds.set("anomaly", "anomaly");
  }
  const step = Math.max(...data.runs.flatMap((run) => [run.thinned.met, run.thinned.missed]));
  if (step > 1) kinds.set("shade", `all jobs; bars are up to 1 in ${step}`);
  for (const change of changes) kinds.set(change.kind, change.kind);
  kinds.set("due", "due");
  const items = [...kinds].map(([kind, text]) => {
    const canvas = element("canvas", { "aria-hidden": "true" });
    canvas.dataset.kind = kind;
    return element("li", {}, canvas, text);
  });
  document.getElementById("legend").replaceChildren(...items);
}

function paintLegend() {
  for (const canvas of document.querySelectorAll("#legend canvas")) {
    const { kind } = canvas.dataset;
    const { pen, width } = prepare(canvas, 16);
    if (["met", "late", "aborted", "gap"].includes(kind)) {
      pen.fillStyle = barFill(pen, kind === "gap" ? "late" : kind);
      pen.fillRect(0, kind === "gap" ? 5 : 3, width, kind === "gap" ? 6 : 10);
    }
    if (kind === "around") {
      pen.fillStyle = barFill(pen, "met");
      pen.globalAlpha = AROUND;
      pen.fillRect(0, 3, width, 10);
      pen.globalAlpha = 1;
      pen.fillRect(width * 0.3, 3, width * 0.4, 10);
    } else if (kind === "shade") {
      pen.globalAlpha = 0.4;
      pen.fillStyle = colour("met");
      pen.fillRect(0, 3, width, 10);
      pen.globalAlpha = 1;
    } else if (CHANGE_COLOURS[kind]) drawChangeSign(pen, kind, width / 2);
    else if (kind === "due") drawDue(pen, width / 2, 9);
    else if (kind !== "gap" && kind !== "met") drawSymbol(pen, kind, kind === "late" || kind === "aborted" ? width - 4 : width / 2, kind === "late" || kind === "aborted" ? 4 : 8, 4);
  }
}

function drawChangeSign(pen, kind, x) {
  pen.strokeStyle = colour(CHANGE_COLOURS[kind]);
  pen.lineWidth = 1.5;
  pen.setLineDash(kind === "vanishes" ? [3, 2] : []);
  pen.beginPath();
  pen.arc(x, 8, 5.5, 0, 7);
  pen.stroke();
  pen.setLineDash([]);
  if (kind === "moves") line(pen, x - 8, 1, x + 8, 15, colour(CHANGE_COLOURS[kind]), 1.5);
}
