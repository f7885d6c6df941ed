// What lies under the objects of the bird's-eye view: rings of distance and the points of a sweep.

const RING_LABELS = -0.5; // radians: where on a ring its distance stands

/** Rings of equal distance with their metres. */
function drawRings(pen, map, width, height) {
  const step = niceStep(width / map.scale, 6);
  pen.font = SMALL;
  for (let r = step; r * map.scale < 2 * width; r += step) {
    pen.strokeStyle = colour("ring");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.arc(map.x(0), map.y(0), r * map.scale, 0, 7);
    pen.stroke();
    const [px, py] = [map.x(r * Math.cos(RING_LABELS)), map.y(r * Math.sin(RING_LABELS))];
    pen.fillStyle = colour("faint");
    if (px < width - 34 && py < height - 8) pen.fillText(`${r} m`, px + 4, py);
  }
}

/** Points by height: what lies on the road is faint, what stands on it is strong. */
function drawPoints(pen, map, sweep, width, height) {
  const { count, xy, z } = pointsOf(sweep);
  const size = within(map.scale * 0.12, 1.1, 2.4);
  const layers = [[], [], []];
  let lowest = 127;
  for (let i = 0; i < count; i += 7) lowest = Math.min(lowest, z[i]);
  for (let i = 0; i < count; i++) {
    const [px, py] = [map.x(xy[2 * i] * 0.02), map.y(xy[2 * i + 1] * 0.02)];
    if (px < 0 || py < 0 || px > width || py > height) continue;
    const above = (z[i] - lowest) / 10;
    layers[above < 0.9 ? 0 : above < 1.8 ? 1 : 2].push(px, py);
  }
  layers.forEach((layer, i) => {
    pen.fillStyle = colour(`point-${i}`);
    for (let k = 0; k < layer.length; k += 2) pen.fillRect(layer[k], layer[k + 1], size, size);
  });
}
