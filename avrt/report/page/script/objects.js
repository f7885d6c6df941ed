// The objects of the bird's-eye view: tracks, truth, radar targets, the plan, the vehicle itself.

/** Trace an oriented box. */
function traceBox(pen, map, { x, y, length, width, yaw }) {
  const [c, s] = [Math.cos(yaw), Math.sin(yaw)];
  pen.beginPath();
  for (const [a, b] of [[0.5, 0.5], [0.5, -0.5], [-0.5, -0.5], [-0.5, 0.5]]) {
    pen.lineTo(map.x(x + a * length * c - b * width * s), map.y(y + a * length * s + b * width * c));
  }
  pen.closePath();
}

function drawTrack(pen, map, track) {
  const tint = classColour(track.label);
  traceBox(pen, map, track);
  pen.globalAlpha = track.confirmed ? 0.2 : 0.05;
  pen.fillStyle = tint;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = tint;
  pen.lineWidth = track.confirmed ? 1.8 : 1;
  pen.setLineDash(track.confirmed ? [] : [3, 3]);
  pen.stroke();
  pen.setLineDash([]);
  if (track.major) drawEllipse(pen, map, track, tint);
  drawVelocity(pen, map, track, tint);
}

/** Draw tracks, and names of those that are confirmed, the nearest first; none over another. */
function drawTracks(pen, map, tracks) {
  for (const track of tracks) drawTrack(pen, map, track);
  const taken = [];
  pen.font = SMALL;
  tracks.sort((a, b) => Math.hypot(a.x, a.y) - Math.hypot(b.x, b.y));
  for (const track of tracks.filter((one) => one.confirmed)) {
    const text = track.id === null ? track.label : `${track.id} ${track.label}`;
    const across = (Math.abs(track.length * Math.sin(track.yaw)) + Math.abs(track.width * Math.cos(track.yaw))) / 2;
    drawLabel(pen, text, map.x(track.x), map.y(track.y + across) - 9, classColour(track.label), taken);
  }
}

/** Whether a box of text is free of those before it; then it is taken. */
function isFree(taken, left, top, width, height) {
  const free = taken.every(([x, y, w, h]) => left + width < x || x + w < left || top + height < y || y + h < top);
  if (free) taken.push([left, top, width, height]);
  return free;
}

/** Text in the middle over a place, with a ground of its own so that points do not disturb it. */
function drawLabel(pen, text, x, y, tint, taken) {
  const wide = pen.measureText(text).width;
  if (!isFree(taken, x - wide / 2 - 2, y - 7, wide + 4, 14)) return;
  pen.globalAlpha = 0.8;
  pen.fillStyle = colour("card");
  pen.fillRect(x - wide / 2 - 2, y - 7, wide + 4, 14);
  pen.globalAlpha = 1;
  pen.fillStyle = tint;
  pen.fillText(text, x - wide / 2, y);
}

/** Where the centre is believed to be, with 95 %. */
function drawEllipse(pen, map, track, tint) {
  pen.strokeStyle = tint;
  pen.lineWidth = 1;
  pen.setLineDash([1.5, 2]);
  pen.beginPath();
  pen.ellipse(map.x(track.x), map.y(track.y), track.major * map.scale, track.minor * map.scale, -track.turn, 0, 7);
  pen.stroke();
  pen.setLineDash([]);
}

/** The velocity over ground: as far as it goes in one second. */
function drawVelocity(pen, map, { x, y, vx, vy }, tint) {
  if (Math.hypot(vx, vy) < 0.5) return;
  const [x0, y0, x1, y1] = [map.x(x), map.y(y), map.x(x + vx), map.y(y + vy)];
  line(pen, x0, y0, x1, y1, tint, 1.5);
  const turn = Math.atan2(y1 - y0, x1 - x0);
  pen.fillStyle = tint;
  pen.beginPath();
  pen.moveTo(x1 + 3 * Math.cos(turn), y1 + 3 * Math.sin(turn));
  for (const side of [2.6, -2.6]) pen.lineTo(x1 + 5 * Math.cos(turn + side), y1 + 5 * Math.sin(turn + side));
  pen.fill();
}

function drawTruth(pen, map, one) {
  traceBox(pen, map, one);
  pen.strokeStyle = colour("truth");
  pen.lineWidth = 1.5;
  pen.setLineDash([6, 3]);
  pen.stroke();
  pen.setLineDash([]);
}

function drawTargets(pen, map, { xy_dm: flat }) {
  pen.strokeStyle = colour("target");
  pen.lineWidth = 1;
  for (let i = 0; i < flat.length; i += 2) {
    const [px, py] = [map.x(flat[i] / 10), map.y(flat[i + 1] / 10)];
    pen.strokeRect(px - 2, py - 2, 4, 4);
  }
}

const BRAKING = -0.5; // m/s^2: below it a stretch of the plan is drawn as braking

/** The plan: where it brakes it is dashed and red, where it speeds up green. */
function drawPlan(pen, map, plan) {
  for (let i = 1; i < plan.xy.length; i++) {
    const a = plan.acceleration[i - 1];
    const braking = a < BRAKING;
    const [[x0, y0], [x1, y1]] = [plan.xy[i - 1], plan.xy[i]];
    pen.lineCap = "round";
    line(pen, map.x(x0), map.y(y0), map.x(x1) + 0.01, map.y(y1) + 0.01, colour(braking ? "late" : a > -BRAKING ? "good" : "plan"), braking ? 5 : 3);
    pen.lineCap = "butt";
  }
}

function drawEgo(pen, map) {
  pen.fillStyle = colour("ink");
  polygon((pen.beginPath(), pen), [map.x(0.9), map.y(0)], [map.x(-0.9), map.y(0.7)], [map.x(-0.4), map.y(0)], [map.x(-0.9), map.y(-0.7)]);
  pen.fill();
}
