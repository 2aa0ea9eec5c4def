// Draws both pictures, in the colours that the reader prefers, and again when these or the width change.

const data = JSON.parse(document.getElementById("data").textContent);
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function shades() {
  const theme = prefersDark.matches ? "dark" : "light";
  const pick = (colour) => colour[theme];
  const shade = Object.fromEntries(Object.entries(data.colours).map(([name, colour]) => [name, pick(colour)]));
  return { ...shade, lanes: data.lane_colours.map(pick), parts: data.part_colours.map(pick) };
}

const timeline = new TimelineChart(document.getElementById("timeline"), data, shades());
const bars = new BarsChart(document.getElementById("bars"), data, shades());

const press = (id, action) => document.getElementById(id).addEventListener("click", action);
press("zoom-in", () => timeline.zoom(0.5));
press("zoom-out", () => timeline.zoom(2));
press("earlier", () => timeline.move(-0.25));
press("later", () => timeline.move(0.25));
press("whole", () => timeline.whole());

prefersDark.addEventListener("change", () => {
  timeline.paint(shades());
  bars.paint(shades());
});
new ResizeObserver(() => {
  timeline.chart.resize();
  timeline.paint(shades());
  bars.chart.resize();
  bars.paint(shades());
}).observe(document.querySelector("main"));
