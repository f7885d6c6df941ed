// What the views draw, read after the first paint: it is most of the page's bytes.

let scene = null;
const unpacked = new Map();
const SWEEPS_HELD = 40;

function readScene() {
  scene = JSON.parse(document.getElementById("scene-data").textContent);
  if (scene) tell("scene");
}

/** The points of a sweep: { xy: Int16Array in 2 cm, z: Int8Array in dm }, the newest ones held. */
function pointsOf(sweep) {
  const known = unpacked.get(sweep);
  if (known) return known;
  const text = atob(sweep.xyz);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const count = bytes.length / 5;
  const points = { count, xy: new Int16Array(bytes.buffer, 0, 2 * count), z: new Int8Array(bytes.buffer, 4 * count, count) };
  unpacked.set(sweep, points);
  if (unpacked.size > SWEEPS_HELD) unpacked.delete(unpacked.keys().next().value);
  return points;
}

/** A track's row by name. */
function trackOf(row) {
  const [id, label, x, y, z, length, width, height, yaw, vx, vy, major, minor, turn, existence, confirmed, sensors, closing] = row;
  return { id, label: scene.labels[label], x, y, z, length, width, height, yaw, vx, vy, major, minor, turn, existence, confirmed: Boolean(confirmed), sensors, closing };
}

/** A true object's row by name. */
function truthOf(row) {
  const [id, label, x, y, z, length, width, height, yaw, vx, vy] = row;
  return { id, label: scene.labels[label], x, y, z, length, width, height, yaw, vx, vy };
}

const CLASS_COLOURS = { car: "car", truck: "truck", pedestrian: "person", cyclist: "cyclist" };
const classColour = (label) => colour(CLASS_COLOURS[label] ?? "other");

/** When something could be read, seen from its capture. */
const published = (row) => `out ${duration(row.published - row.t)} later`;
