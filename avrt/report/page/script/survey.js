// The pointer on the bird's-eye view: what an object is, drag to move, wheel with Ctrl to zoom.

const NEAR_PX = 10;

/** The track under a place on the canvas, the smallest of several, or null. */
function trackUnder(x, y) {
  const tracks = scene && newestAt(scene.tracks, view.cursor);
  if (!tracks) return null;
  const map = groundMap(birdseyeCanvas.clientWidth, birdseyeCanvas.clientHeight);
  const hits = tracks.objects.map(trackOf).filter((track) => {
    const [dx, dy] = [(x - map.x(track.x)) / map.scale, (map.y(track.y) - y) / map.scale];
    const [c, s] = [Math.cos(track.yaw), Math.sin(track.yaw)];
    const room = NEAR_PX / map.scale;
    const along = Math.abs(dx * c + dy * s) - track.length / 2;
    const across = Math.abs(dy * c - dx * s) - track.width / 2;
    return Math.max(along, across) < room / 2;
  });
  return hits.sort((a, b) => a.length * a.width - b.length * b.width)[0] ?? null;
}

function trackLines(track) {
  const name = track.id === null ? track.label : `${track.label}, track ${track.id}`;
  const lines = [track.confirmed ? name : `${name} (tentative)`];
  lines.push(`${Math.hypot(track.vx, track.vy).toFixed(1)} m/s over ground, closing at ${track.closing.toFixed(1)} m/s`);
  lines.push(`x ${track.x.toFixed(1)} m, y ${track.y.toFixed(1)} m; ${track.length.toFixed(1)} x ${track.width.toFixed(1)} m`);
  if (track.existence !== null) lines.push(`existence ${track.existence.toFixed(2)}, ${track.sensors || "predicted only"}`);
  return lines;
}

function startSurvey() {
  if (!birdseyeCanvas) return;
  let held = null;
  birdseyeCanvas.addEventListener("pointerdown", (event) => {
    held = [event.clientX - GROUND.x, event.clientY - GROUND.y];
    birdseyeCanvas.setPointerCapture(event.pointerId);
    hideTip();
  });
  birdseyeCanvas.addEventListener("pointermove", (event) => {
    if (held) {
      [GROUND.x, GROUND.y] = [event.clientX - held[0], event.clientY - held[1]];
      tell("ground");
      return;
    }
    const box = birdseyeCanvas.getBoundingClientRect();
    const track = trackUnder(event.clientX - box.left, event.clientY - box.top);
    if (track) showTip(trackLines(track), event.clientX, event.clientY);
    else hideTip();
  });
  birdseyeCanvas.addEventListener("pointerleave", hideTip);
  for (const name of ["pointerup", "pointercancel"]) birdseyeCanvas.addEventListener(name, () => { held = null; });
  birdseyeCanvas.addEventListener("dblclick", () => {
    Object.assign(GROUND, { scale: 1, x: 0, y: 0 });
    tell("ground");
  });
  birdseyeCanvas.addEventListener("wheel", zoomGround, { passive: false });
}

/** Zoom about the pointer. */
function zoomGround(event) {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const box = birdseyeCanvas.getBoundingClientRect();
  const map = groundMap(box.width, box.height);
  const scale = within(GROUND.scale * (event.deltaY > 0 ? 0.85 : 1.18), 0.2, 12);
  const factor = scale / GROUND.scale;
  GROUND.x += (event.clientX - box.left - map.x(0)) * (1 - factor);
  GROUND.y += (event.clientY - box.top - map.y(0)) * (1 - factor);
  GROUND.scale = scale;
  tell("ground");
}
