// The timeline on a lesson's page. docs/make/figures.py puts this behind what draws it on the page of a trace.

document.documentElement.classList.add("mwf-scripts");
const data = JSON.parse(document.getElementById("figure-18-data").textContent);
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const box = document.getElementById("timeline");

function shades() {
  const theme = prefersDark.matches ? "dark" : "light";
  const pick = (colour) => colour[theme];
  const shade = Object.fromEntries(Object.entries(data.colours).map(([name, colour]) => [name, pick(colour)]));
  return { ...shade, lanes: data.lane_colours.map(pick) };
}

const timeline = new TimelineChart(box, data, shades());
const press = (id, action) => document.getElementById(id).addEventListener("click", action);
press("zoom-in", () => timeline.zoom(0.5));
press("zoom-out", () => timeline.zoom(2));
press("earlier", () => timeline.move(-0.25));
press("later", () => timeline.move(0.25));
press("whole", () => timeline.whole());
prefersDark.addEventListener("change", () => timeline.paint(shades()));
new ResizeObserver(() => {
  timeline.chart.resize();
  timeline.paint(shades());
}).observe(box.parentElement);
