// What lies between two jobs of a stream, where its device has a clock: on the timeline, and in words.

const GAP_PARTS = ["reporting", "idle", "waiting for a slot or the driver", "handing over"];
const exact = (ns) => `${(ns / NS_PER_MS).toFixed(2)} ms`;

const hasParts = (job) => partsOf(job, runs[job.run].pieces(job)) !== null;

/** How long a job was handed over, worked on and reported. */
function partsText(job) {
  const { start, began, done, end } = partsOf(job, runs[job.run].pieces(job));
  return `handing over ${exact(began - start)}, working ${exact(done - began)}, reporting ${exact(end - done)}`;
}

/** A gap in words: how long, and what it was. */
function gapText(gap) {
  const parts = GAP_PARTS.map((name, i) => (gap[i] ? `${exact(gap[i])} ${name}` : "")).filter(Boolean);
  return parts.length ? parts.join(", ") : "none";
}

const total = (gap) => gap.reduce((sum, ns) => sum + ns, 0);

/** What the gap on a row at a time was, part by part, or null where no gap is known. */
function gapLines(row, at) {
  if (row.kind !== "task") return null;
  const works = worksOf(row.jobs)[row.task];
  const next = works[firstAtLeast(works.length, (i) => works[i].began > at)];
  if (!next || next.began - total(next.gap) > at) return null;
  const { columns } = row.jobs;
  const lines = [`gap of ${exact(total(next.gap))} before ${row.name} ${columns.index[next.place]}`];
  let from = next.began - total(next.gap);
  next.gap.forEach((ns, i) => {
    const here = at >= from && at < from + ns;
    if (ns) lines.push(`${exact(ns)} ${GAP_PARTS[i]}${here ? " \u2190 here" : ""}`);
    from += ns;
  });
  return lines;
}

const knownWorks = new Map();

/** By task, the works before which a gap is known, in the order of time. */
function worksOf(jobs) {
  if (!knownWorks.has(jobs)) {
    const works = jobs.run.tasks.map(() => []);
    for (const [place, more] of Object.entries(jobs.columns.more)) {
      if (more.gap_ns) works[jobs.columns.task[place]].push({ place: Number(place), began: more.device_ns[0], gap: more.gap_ns });
    }
    for (const found of works) found.sort((a, b) => a.began - b.began);
    knownWorks.set(jobs, works);
  }
  return knownWorks.get(jobs);
}
