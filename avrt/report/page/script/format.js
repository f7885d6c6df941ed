// Times as people read them. Every time on the page is pipeline ns until it is shown here.

const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;

const seconds = (ns, digits = 3) => `${(ns / NS_PER_S).toFixed(digits)} s`;
const millis = (ns) => (ns == null ? "-" : `${(ns / NS_PER_MS).toFixed(1)} ms`);

/** A span in the largest unit that keeps it readable. */
function duration(ns) {
  const size = Math.abs(ns);
  if (size >= NS_PER_S) return `${+(ns / NS_PER_S).toPrecision(4)} s`;
  if (size >= NS_PER_MS) return `${+(ns / NS_PER_MS).toPrecision(4)} ms`;
  if (size >= 1e3) return `${+(ns / 1e3).toPrecision(4)} us`;
  return `${ns} ns`;
}

/** Round steps (1, 2, 5 times a power of ten) so that about `count` of them span `size`. */
function niceStep(size, count) {
  const rough = size / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const part = rough / power;
  return power * (part > 5 ? 10 : part > 2 ? 5 : part > 1 ? 2 : 1);
}

/** The ticks of an axis from `from` to `to`, and how many digits of a second they need. */
function ticksOf(from, to, count) {
  const step = niceStep(to - from, count);
  const ticks = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) ticks.push(t);
  return { ticks, digits: Math.max(0, Math.min(6, -Math.floor(Math.log10(step / NS_PER_S) + 1e-9))) };
}

/** An element with text, attributes and children; text is never markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
