// Reaction (dots) and age (rings) of every chain over time, against their limits.

const chainCharts = [];

function buildChains() {
  const place = document.getElementById("chain-charts");
  if (!place) return;
  for (const name of Object.keys(data.runs[0].chains)) {
    const objects = data.runs.map((run) => run.object.chains[name]);
    const longest = ["reaction", "age"].map((which) => `${which} max ${arrows(objects, (one) => one[`${which}_ns`].max)}`);
    const { card, canvas } = chartCard(name, `${longest.join(" · ")} ms`);
    place.append(card);
    chainCharts.push({ name, canvas });
  }
}

function paintChains() {
  for (const { name, canvas } of chainCharts) {
    const chains = data.runs.map((run) => run.chains[name]);
    const frame = chartFrame(canvas, chainTop(name, chains), false);
    chains.forEach((chain, number) => drawOutputs(frame, chain.outputs, number < chains.length - 1));
    const { reaction_limit_ns: reaction, age_limit_ns: age } = chains[chains.length - 1];
    if (reaction !== null) drawLimit(frame, reaction, "reaction", "ink");
    if (age !== null && age !== reaction) drawLimit(frame, age, "age", "soft");
    followCursor(canvas, frame.x);
  }
}

function chainTop(name, chains) {
  const values = chains.flatMap((chain) => [chain.reaction_limit_ns, chain.age_limit_ns]);
  for (const run of data.runs) values.push(run.object.chains[name].reaction_ns.max, run.object.chains[name].age_ns.max);
  return Math.max(1, ...values.filter((value) => value !== null)) * 1.08;
}

function drawOutputs({ pen, x, y }, outputs, faded) {
  for (const [at, reaction, age] of outputs) {
    if (age !== null) {
      pen.strokeStyle = colour(faded ? "faint" : "skipped");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.arc(x(at), y(age), 2.4, 0, 7);
      pen.stroke();
    }
    if (reaction !== null) {
      pen.fillStyle = colour(faded ? "faint" : "met");
      pen.fillRect(x(at) - 1.2, y(reaction) - 1.2, 2.4, 2.4);
    }
  }
}
