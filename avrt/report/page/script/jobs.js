// The jobs of a run out of their columns, and where to find them by time.

/** Jobs of one run, sorted by release. */
class Jobs {
  constructor(run, number) {
    this.run = run;
    this.number = number;
    this.columns = run.jobs;
    this.count = run.jobs.release.length;
    this.byTask = run.tasks.map(() => []);
    this.byId = new Map();
    this.missed = [];
    this.longest = run.tasks.map(() => 0);
    for (let place = 0; place < this.count; place++) {
      const task = this.columns.task[place];
      this.byTask[task].push(place);
      this.byId.set(this.columns.job[place], place);
      this.longest[task] = Math.max(this.longest[task], this.columns.end[place]);
      if (run.outcomes[this.columns.outcome[place]] !== "met") this.missed.push(place);
    }
  }

  /** Everything about one job, times absolute. */
  at(place) {
    const c = this.columns;
    const release = c.release[place];
    const task = this.run.tasks[c.task[place]];
    return {
      place,
      run: this.number,
      task: task.name,
      spec: task,
      job: c.job[place],
      index: c.index[place],
      release,
      due: release + c.due[place],
      start: c.start[place] === null ? null : release + c.start[place],
      end: release + c.end[place],
      outcome: this.run.outcomes[c.outcome[place]],
      reason: c.reasons[c.reason[place]],
      executed: c.executed[place],
      more: c.more[place] ?? {},
    };
  }

  /** The stretches in which a job ran: [start, end]. */
  pieces(job) {
    if (job.more.pieces) return job.more.pieces;
    return job.start === null ? [] : [[job.start, job.end]];
  }

  /** The same, each with whether its device was at work then, as far as the device's clock told. */
  stretches(job) {
    const pieces = this.pieces(job);
    const parts = partsOf(job, pieces);
    if (!parts) return pieces.map(([start, end]) => [start, end, true]);
    const { start, began, done, end } = parts;
    const before = pieces.slice(0, -1).map(([from, to]) => [from, to, true]);
    return [...before, [start, began, false], [began, done, true], [done, end, false]].filter(([from, to, busy]) => busy || to > from);
  }

  /** The places of a task's jobs that may show between two times. */
  between(task, from, to) {
    const places = this.byTask[task];
    const release = this.columns.release;
    const first = firstAtLeast(places.length, (i) => release[places[i]] >= from - this.longest[task]);
    const last = firstAtLeast(places.length, (i) => release[places[i]] > to);
    return places.slice(first, last);
  }

  /** The place of job `index` of a task, or undefined. */
  find(task, index) {
    const number = this.run.tasks.findIndex((one) => one.name === task);
    return this.byTask[number]?.find((place) => this.columns.index[place] === index);
  }
}

/** When the last stretch of a job began to be handed over, to be worked on, to be reported; or null. */
function partsOf(job, pieces) {
  const [began, done] = job.more.device_ns ?? [null, null];
  if (began === null || !pieces.length) return null;
  const [start, end] = pieces[pieces.length - 1];
  return { start, began: within(began, start, end), done: within(done, start, end), end };
}

/** The first of 0 .. count - 1 for which a test that never turns false again holds, else count. */
function firstAtLeast(count, test) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The newest of rows with a time `t` at or before a point of time, or null. */
function newestAt(rows, ns) {
  const place = firstAtLeast(rows.length, (i) => rows[i].t > ns);
  return place ? rows[place - 1] : null;
}

const runs = data.runs.map((run, number) => new Jobs(run, number));
const lastRun = runs[runs.length - 1];
