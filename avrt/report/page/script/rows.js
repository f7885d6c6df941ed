// Which rows the timeline has, and where. Two runs that are compared share the rows of a task, one
// above the other.

const LABELS = 158;
const AXIS = 26;
const OVERVIEW = 30;
const CROWDED = data.runs[0].tasks.length * data.runs.length + data.runs[0].sources.length > 9;
const SOURCE_ROW = CROWDED ? 13 : 18;
const TASK_ROW = CROWDED ? 19 : 26;

/** The rows from top to bottom: { kind, y, height, label, ... }. */
function layRows() {
  const rows = [];
  let y = AXIS + 4;
  const add = (row) => {
    rows.push({ ...row, y });
    y += row.height;
  };
  data.runs.forEach((run, number) => {
    const second = runs.length > 1 ? run.name : "";
    const label = number ? "" : "events";
    if (hasEvents()) add({ kind: "events", label, second, run: number, height: SOURCE_ROW + 4 });
  });
  data.runs[0].sources.forEach((source) => {
    add({ kind: "source", label: source.name, source, height: SOURCE_ROW });
  });
  if (rows.length) y += 6;
  data.runs[0].tasks.forEach((task, number) => {
    runs.forEach((jobs, run) => {
      const label = run ? "" : task.name;
      const second = runs.length > 1 ? jobs.run.name : "";
      const height = runs.length > 1 ? 21 : TASK_ROW;
      add({ kind: "task", label, second, run, task: number, name: task.name, jobs, height });
    });
    if (runs.length > 1) y += 6;
  });
  return { rows, bottom: y + 4, height: y + 4 + OVERVIEW };
}

/** Whether anything happened that belongs to no task's row. */
function hasEvents() {
  return data.runs.some((run) => run.broken.length || run.marks.some((mark) => isEvent(mark, run)));
}

const isEvent = (mark, run) => mark.kind === "mode" || !run.tasks.some((task) => task.name === mark.task || task.stage === mark.task);
const layout = layRows();

/** From time to place on the canvas and back. */
const scaleX = (ns, width) => LABELS + ((ns - view.from) / (view.to - view.from)) * (width - LABELS - 12);
const timeAt = (x, width) => view.from + ((x - LABELS) / (width - LABELS - 12)) * (view.to - view.from);
