// The image taken last before the cursor, with the tracks and what the network found in it.

const cameraCanvas = document.getElementById("camera-canvas");
const pictures = new Map();
const PICTURES_HELD = 24;
let cameraNumber = 0;

/** The decoded picture of an image's row; null until it is decoded, then the view is drawn. */
function pictureOf(row) {
  const known = pictures.get(row);
  if (known) return known.complete && known.naturalWidth ? known : null;
  const picture = new Image();
  picture.onload = () => tell("picture");
  picture.src = `data:image/jpeg;base64,${row.jpeg}`;
  pictures.set(row, picture);
  if (pictures.size > PICTURES_HELD) pictures.delete(pictures.keys().next().value);
  return null;
}

function paintCamera() {
  if (!scene || !cameraCanvas) return;
  const { images } = scene.cameras[cameraNumber];
  const row = newestAt(images, view.cursor) ?? images[0];
  if (!row) return;
  const wide = cameraCanvas.clientWidth;
  const scale = wide / row.width;
  const { pen, width, height } = prepare(cameraCanvas, Math.round(row.height * scale));
  const picture = pictureOf(row);
  if (picture) pen.drawImage(picture, 0, 0, width, height);
  else {
    pen.fillStyle = colour("strip");
    pen.fillRect(0, 0, width, height);
  }
  for (const one of row.found) drawFound(pen, one, scale);
  const taken = [];
  const boxes = row.boxes.map((one) => ({ one, extent: extentOf(one[2]) }));
  boxes.sort((a, b) => a.extent.area - b.extent.area);
  for (const { one } of boxes) drawOutline(pen, one, scale);
  for (const { one, extent } of boxes.reverse()) tagImage(pen, one, extent, scale, taken);
  const early = row.t > view.cursor ? "the first image" : "image";
  const drawn = row.boxes.length === 1 ? "1 track" : `${row.boxes.length} tracks`;
  document.getElementById("camera-note").textContent = `${early} ${seconds(row.t)} · ${drawn} in it`;
}

function drawOutline(pen, [, label, edges], scale) {
  const tint = imageColour(label);
  for (const [width, style] of [[3.2, "rgb(0 0 0 / 0.45)"], [1.6, tint]]) {
    pen.strokeStyle = style;
    pen.lineWidth = width;
    pen.beginPath();
    for (let i = 0; i < edges.length; i += 4) {
      pen.moveTo(edges[i] * scale, edges[i + 1] * scale);
      pen.lineTo(edges[i + 2] * scale, edges[i + 3] * scale);
    }
    pen.stroke();
  }
}

/** The rectangle around an outline. */
function extentOf(edges) {
  const us = edges.filter((_, i) => i % 2 === 0);
  const vs = edges.filter((_, i) => i % 2 === 1);
  const [left, top, right, bottom] = [Math.min(...us), Math.min(...vs), Math.max(...us), Math.max(...vs)];
  return { left, top, right, bottom, area: Math.max(1, (right - left) * (bottom - top)) };
}

const SEEN_LEAST = 0.2;

/** Whether enough of a rectangle lies in the image for its name to say what is seen there. */
function isMostlySeen({ left, top, right, bottom, area }, scale) {
  const [wide, high] = [cameraCanvas.clientWidth / scale, cameraCanvas.clientHeight / scale];
  const seen = Math.max(0, Math.min(right, wide) - Math.max(left, 0)) * Math.max(0, Math.min(bottom, high) - Math.max(top, 0));
  return seen / area > SEEN_LEAST;
}

/** The name of a track on a dark ground, where it covers no other; it stays in the picture. */
function tagImage(pen, [id, label], extent, scale, taken) {
  pen.font = SMALL;
  const text = `${id} ${label}`;
  const tint = imageColour(label);
  const wide = pen.measureText(text).width + 8;
  const left = within(extent.left * scale, 0, Math.max(0, cameraCanvas.clientWidth - wide));
  const top = Math.max(0, extent.top * scale - 16);
  if (!isMostlySeen(extent, scale) || !isFree(taken, left, top, wide, 15)) return;
  pen.fillStyle = "rgb(16 20 24 / 0.78)";
  pen.fillRect(left, top, wide, 15);
  pen.fillStyle = tint;
  pen.fillText(text, left + 4, top + 8);
}

function drawFound(pen, [, , left, top, right, bottom], scale) {
  pen.strokeStyle = "rgb(255 255 255 / 0.85)";
  pen.lineWidth = 1.2;
  pen.setLineDash([4, 3]);
  pen.strokeRect(left * scale, top * scale, (right - left) * scale, (bottom - top) * scale);
  pen.setLineDash([]);
}

/** Light tints that stand out from any image, in light and dark pages alike. */
const imageColour = (label) => ({ car: "#7cc4ff", truck: "#c9a8ff", pedestrian: "#ff9d7a", cyclist: "#ffd166" })[label] ?? "#e3e6e8";

/** Let the reader choose between several cameras. */
function buildCameras() {
  if (!cameraCanvas || scene.cameras.length < 2) return;
  const choice = element("select", { "aria-label": "Camera" });
  scene.cameras.forEach((camera, number) => choice.append(element("option", { value: number }, camera.source)));
  choice.addEventListener("change", () => {
    cameraNumber = Number(choice.value);
    tell("picture");
  });
  document.querySelector("#camera .bar h2").after(choice);
}
