// The small text beside the pointer.

const tip = document.getElementById("tip");

function showTip(lines, x, y) {
  tip.replaceChildren(...lines.map((text, i) => element(i ? "div" : "strong", {}, text)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${within(x + 14, 8, innerWidth - width - 8)}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? y - height - 12 : y + 18}px`;
}

function hideTip() {
  tip.hidden = true;
}
