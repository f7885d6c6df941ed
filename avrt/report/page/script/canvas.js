// Canvases that are sharp on any screen, and the patterns that tell outcomes apart without colour.

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
const SMALL = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

/** Clear a canvas for its width on the page and a height; return what to draw with. */
function prepare(canvas, height) {
  const width = Math.max(1, canvas.clientWidth);
  const scale = printing ? Math.max(2, devicePixelRatio) : devicePixelRatio || 1;
  const wide = Math.round(width * scale);
  const high = Math.round(height * scale);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  return { pen, width, height };
}

/** Text cut off with an ellipsis where it is wider than it may be. */
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}

/** A line between two points; crisp where it is upright or level. */
function line(pen, x0, y0, x1, y1, style, width = 1, dash = []) {
  pen.strokeStyle = style;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  const shift = width % 2 ? 0.5 : 0;
  const [dx, dy] = [x0 === x1 ? shift : 0, y0 === y1 ? shift : 0];
  pen.moveTo((dx ? Math.round(x0) : x0) + dx, (dy ? Math.round(y0) : y0) + dy);
  pen.lineTo((dx ? Math.round(x1) : x1) + dx, (dy ? Math.round(y1) : y1) + dy);
  pen.stroke();
  pen.setLineDash([]);
}

const patterns = new Map();

/** A fill of slanting lines; `crossed` has them both ways. */
function hatch(pen, ink, ground, crossed = false) {
  const key = `${ink}/${ground}/${crossed}`;
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const brush = tile.getContext("2d");
    brush.fillStyle = ground;
    brush.fillRect(0, 0, 6, 6);
    brush.strokeStyle = ink;
    brush.lineWidth = 1.5;
    for (const turn of crossed ? [1, -1] : [1]) {
      for (const x of [-6, 0, 6]) {
        brush.beginPath();
        brush.moveTo(turn > 0 ? x : 6 - x, 7);
        brush.lineTo(turn > 0 ? x + 7 : -1 - x, 0);
        brush.stroke();
      }
    }
    patterns.set(key, pen.createPattern(tile, "repeat"));
  }
  return patterns.get(key);
}
