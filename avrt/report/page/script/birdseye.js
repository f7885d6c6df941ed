// The bird's-eye view, in the frame of the tracks: x ahead is to the right, y to the left is up.

const GROUND = { scale: 1, x: 0, y: 0 }; // what the reader zoomed and moved by
const AHEAD = 60; // metres that are seen at first, and behind the sensor where it looks back
const BEHIND = { around: 34, ahead: 7 };

const birdseyeCanvas = document.getElementById("birdseye-canvas");
let looksBack = true;

/** Whether sweeps show anything to speak of behind the sensor. */
function lookAround() {
  const sweep = scene.clouds.find((cloud) => cloud.sweeps.length)?.sweeps[0];
  if (!sweep) return;
  const { count, xy } = pointsOf(sweep);
  let behind = 0;
  for (let i = 0; i < count; i++) behind += xy[2 * i] < -100;
  looksBack = behind > count / 50;
}

function birdseyeHeight() {
  return printing ? 300 : within(innerHeight - 446, 300, 520);
}

/** From metres to places on the canvas. */
function groundMap(width, height) {
  const behind = looksBack ? BEHIND.around : BEHIND.ahead;
  const scale = (width / (AHEAD + behind)) * GROUND.scale;
  return {
    scale,
    x: (x) => behind * (width / (AHEAD + behind)) + GROUND.x + x * scale,
    y: (y) => height / 2 + GROUND.y - y * scale,
  };
}

function paintBirdseye() {
  if (!scene || !birdseyeCanvas) return;
  const { pen, width, height } = prepare(birdseyeCanvas, birdseyeHeight());
  const map = groundMap(width, height);
  const sweeps = scene.clouds.map((cloud) => newestAt(cloud.sweeps, view.cursor)).filter(Boolean);
  drawRings(pen, map, width, height);
  for (const sweep of sweeps) drawPoints(pen, map, sweep, width, height);
  const plan = newestAt(scene.plans, view.cursor);
  const tracks = newestAt(scene.tracks, view.cursor);
  const targets = newestAt(scene.targets, view.cursor);
  const truth = newestAt(scene.truth, view.cursor);
  if (targets) drawTargets(pen, map, targets);
  if (truth) for (const row of truth.objects) drawTruth(pen, map, truthOf(row));
  if (plan) drawPlan(pen, map, plan);
  drawEgo(pen, map);
  if (tracks) drawTracks(pen, map, tracks.objects.map(trackOf));
  drawGroundLegend(pen, width, height, { tracks, plan, targets, truth });
  birdseyeNote(sweeps[0], tracks, plan);
}

function drawGroundLegend(pen, width, height, { tracks, plan, targets, truth }) {
  const items = [
    tracks?.objects.length && ["95 % ellipse, arrow 1 s", "soft"],
    plan && ["plan", "plan"],
    plan && ["braking", "late"],
    targets && ["radar", "target"],
    truth && ["truth", "truth"],
  ].filter(Boolean);
  pen.font = SMALL;
  let x = 10;
  const wide = items.reduce((sum, [text]) => sum + pen.measureText(text).width + 30, 0);
  pen.globalAlpha = 0.85;
  pen.fillStyle = colour("card");
  pen.fillRect(0, 0, wide, 22);
  pen.globalAlpha = 1;
  for (const [text, tint] of items) {
    pen.fillStyle = colour(tint);
    pen.fillRect(x, 9, 10, 3);
    pen.fillText(text, x + 14, 11);
    x += pen.measureText(text).width + 30;
  }
}

function birdseyeNote(sweep, tracks, plan) {
  const parts = [];
  if (sweep) parts.push(`sweep ${seconds(sweep.t)}`);
  const when = tracks && tracks.t !== sweep?.t ? ` of ${seconds(tracks.t)}` : "";
  if (tracks) parts.push(`${tracks.objects.length} objects${when}, ${published(tracks)}`);
  const gap = plan?.time_gap == null ? "" : `, gap ${plan.time_gap.toFixed(1)} s`;
  if (plan?.speed.length) parts.push(`${plan.kind}${gap}, ${plan.speed[0].toFixed(1)} m/s`);
  document.getElementById("birdseye-note").textContent = parts.join(" · ") || "nothing yet";
}
