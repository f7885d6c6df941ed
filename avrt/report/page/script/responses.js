// Responses of every stage: over time, how they are spread, and the deadline they have.

const stageCharts = [];

function buildResponses() {
  const place = document.getElementById("response-charts");
  const stages = Object.keys(data.responses);
  for (const stage of stages) {
    const objects = data.runs.map((run) => run.object.stages[stage]);
    const said = ["p50", "max"].map((name) => `${name} ${arrows(objects, (one) => one.response_ns[name])}`);
    said.push(`n ${[...new Set(objects.map((one) => one.response_ns.count))].join(" → ")}`);
    const { card, canvas } = chartCard(stage, said.join(" · "));
    place.append(card);
    stageCharts.push({ stage, canvas, objects });
  }
}

/** A figure in ms, or before → after where two runs differ in it. */
function arrows(objects, figure) {
  const texts = objects.map((one) => (figure(one) === null ? "-" : (figure(one) / NS_PER_MS).toFixed(1)));
  return [...new Set(texts)].join(" → ");
}

function paintResponses() {
  for (const chart of stageCharts) paintResponse(chart);
}

function paintResponse({ stage, canvas, objects }) {
  const { slice_ns: slice, counts } = data.responses[stage];
  const frame = chartFrame(canvas, slice * counts[0].length, true);
  const last = runs.length - 1;
  runs.forEach((jobs, number) => {
    const faded = number < last;
    drawSpread(frame, counts[number], slice, faded ? "faint" : "met", faded);
    drawResponsePoints(frame, jobs, stage, faded);
  });
  const taken = [];
  objects.forEach((object) => {
    if (taken.includes(frame.y(object.deadline_ns))) return;
    const current = object.deadline_ns === objects[last].deadline_ns;
    drawLimit(frame, object.deadline_ns, "deadline", current ? "ink" : "faint");
    taken.push(frame.y(object.deadline_ns));
  });
  drawPercentiles(frame, objects[last].response_ns, taken);
  followCursor(canvas, frame.x);
}

function drawResponsePoints({ pen, x, y }, jobs, stage, faded) {
  const c = jobs.columns;
  jobs.run.tasks.forEach((task, number) => {
    if (task.stage !== stage) return;
    for (const place of jobs.byTask[number]) {
      const outcome = jobs.run.outcomes[c.outcome[place]];
      if (outcome !== "met" && outcome !== "late") continue;
      const [px, py] = [x(c.release[place]), y(c.end[place])];
      if (outcome === "late" && !faded) {
        drawSymbol(pen, "late", px, py, 2.6);
      } else {
        pen.fillStyle = colour(faded ? "faint" : "met");
        pen.fillRect(px - 1.1, py - 1.1, 2.2, 2.2);
      }
    }
  });
}
