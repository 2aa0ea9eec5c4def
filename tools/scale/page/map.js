// The map: a custom series of ECharts that draws a rectangle for each cell, the line where the gain inverts over them,
// and the ratios on top. What is shown is one of data.maps, and one of its ratios.

const ROW_HEIGHT = 34, TOP = 64, LEFT = 64, RIGHT = 6, BOTTOM = 8, HATCH_PITCH = 8;

// The fills of ratios: where a band ends and the next begins. Those nearer to 1 are paler.
const BOUNDS = { communication: [0.5, 0.8, 1, 1.25, 2], step: [0.9, 0.97, 1, 1.03, 1.1] };
const OPACITIES = [1, 0.65, 0.3, 0.3, 0.65, 1];
const sideOf = (band) => (band < OPACITIES.length / 2 ? "below" : "above");

const data = JSON.parse(document.getElementById("data").textContent);
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function shades() {
  const theme = prefersDark.matches ? "dark" : "light";
  return Object.fromEntries(Object.entries(data.colours).map(([name, colour]) => [name, colour[theme]]));
}

// The line where the gain inverts, as [x1, y1, x2, y2] in cells from the upper left corner: it goes between neighbours of
// which one sends for less time with Muon and the other does not. A word has no line beside it.
function inversionLine(map) {
  const side = (row, column) => Math.sign((map.cells[row * map.columns.length + column].figures.communication.band ?? NaN) - 2.5);
  const line = [];
  map.rows.forEach((_, row) => map.columns.forEach((_, column) => {
    if (column > 0 && side(row, column - 1) * side(row, column) < 0) line.push([column, row, column, row + 1]);
    if (row > 0 && side(row - 1, column) * side(row, column) < 0) line.push([column, row, column + 1, row]);
  }));
  return line;
}

// What is drawn of a map and does not stand in its JSON: a figure for each cell and ratio (without a band where it is a
// word), where the cluster's own links lie, in columns, and the line.
for (const map of data.maps) {
  map.rows = map.gpus.map((gpus) => gpus.toLocaleString("en"));
  const links = map.over === "links";
  map.own = links ? Math.min(map.columns.length, Math.max(0, Math.log2(map.own_link_gb_per_s / map.columns[0]) + 0.5)) : null;
  map.cells.forEach((cell, index) => {
    cell.row = Math.floor(index / map.columns.length);
    cell.column = index % map.columns.length;
    cell.figures = Object.fromEntries(Object.entries(BOUNDS).map(([quantity, bounds]) => {
      const of = cell[quantity], band = of && bounds.filter((bound) => of.ratio >= bound).length;
      return [quantity, { text: cell.texts[quantity], band, extrapolated: of?.extrapolated, letter: of?.best_strategy }];
    }));
  });
  map.line = inversionLine(map);
}

// Where a cell lies, in pixels; `column` and `row` may lie between two cells.
function frameOf(params, map) {
  const { x, y, width, height } = params.coordSys;
  const cell = { width: width / map.columns.length, height: height / map.rows.length };
  return { ...cell, x: (column) => x + cell.width * column, y: (row) => y + cell.height * row };
}

// Slanted lines across a box, as pairs of points.
function hatching({ x, y, width, height }) {
  const lines = [];
  for (let at = HATCH_PITCH / 2; at < width + height; at += HATCH_PITCH) {
    const left = Math.max(0, at - height), right = Math.min(width, at);
    lines.push({ x1: x + left, y1: y + at - left, x2: x + right, y2: y + at - right });
  }
  return lines;
}

function drawCell(params, map, view, shade) {
  const frame = frameOf(params, map), cell = map.cells[params.dataIndex], figure = cell.figures[view.quantity];
  const box = { x: frame.x(cell.column) + 1, y: frame.y(cell.row) + 1, width: frame.width - 2, height: frame.height - 2 };
  const chosen = params.dataIndex === view.selected;
  const children = [{ type: "rect", shape: box, style: { fill: figure.band === null ? shade.ground : shade.paper } }];
  if (figure.band !== null) {
    const style = { fill: shade[sideOf(figure.band)], opacity: OPACITIES[figure.band] };
    children.push({ type: "rect", shape: box, style });
  }
  if (figure.extrapolated)
    for (const shape of hatching(box))
      children.push({ type: "line", shape, style: { stroke: shade.ink, lineWidth: 1.2, opacity: 0.28 } });
  children.push({
    type: "rect", shape: box, style: { fill: "transparent", stroke: shade.ink, lineWidth: chosen ? 3 : 0 },
    emphasis: { style: { lineWidth: chosen ? 3 : 1.5 } },
  });
  return { type: "group", children };
}

function drawSegment(params, map, width, colour) {
  const frame = frameOf(params, map), [x1, y1, x2, y2] = map.line[params.dataIndex];
  return {
    type: "line", silent: true,
    shape: { x1: frame.x(x1), y1: frame.y(y1), x2: frame.x(x2), y2: frame.y(y2) },
    style: { stroke: colour, lineWidth: width, lineCap: "round" },
  };
}

function drawLabel(params, map, view, shade) {
  const frame = frameOf(params, map), cell = map.cells[params.dataIndex], figure = cell.figures[view.quantity];
  const x = frame.x(cell.column + 0.5), y = frame.y(cell.row + 0.5), narrow = frame.width < 40;
  const word = figure.band === null;
  const text = (shift, words, font, fill) => ({
    type: "text", silent: true,
    style: { text: words, x, y: y + shift, align: "center", verticalAlign: "middle", font, fill,
      ...(word ? {} : { stroke: shade.paper, lineWidth: 3 }) },
  });
  const sans = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  if (word) return text(0, figure.text, `${frame.width < 46 ? 9 : 11}px ${sans}`, shade.quiet);
  const ratio = text(figure.letter ? -6 : 0, figure.text, `600 ${narrow ? 12 : 13}px ${sans}`, shade.ink);
  if (!figure.letter) return ratio;
  return { type: "group", silent: true, children: [ratio, text(8, figure.letter, `11px ${sans}`, shade.ink)] };
}

// A triangle that points down at the column of the cluster's own links.
function drawOwnLink(params, map, shade) {
  const frame = frameOf(params, map), x = frame.x(map.own), y = params.coordSys.y - 3;
  return {
    type: "polygon", silent: true, shape: { points: [[x - 6, y - 9], [x + 6, y - 9], [x, y]] }, style: { fill: shade.ink },
  };
}

function mapOption(map, view, shade, width) {
  const cells = map.cells.map((cell) => [cell.column, cell.row]);
  const line = map.line.map(() => [0, 0]);
  const label = { color: shade.ink, interval: 0, fontSize: 12 };
  const hidden = { axisTick: { show: false }, axisLine: { show: false } };
  const custom = { type: "custom", encode: { x: 0, y: 1 } };
  return {
    animation: false,
    backgroundColor: shade.paper,
    grid: { left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM },
    title: { text: map.heading, left: LEFT, top: 6, padding: 0,
      textStyle: { color: shade.quiet, fontSize: 13, fontWeight: 400, width: width - LEFT - RIGHT, overflow: "break" } },
    xAxis: { type: "category", position: "top", data: map.columns, ...hidden,
      axisLabel: { ...label, margin: map.own === null ? 8 : 13 } },
    yAxis: { type: "category", inverse: true, data: map.rows, ...hidden, axisLabel: label, name: "GPUs",
      nameLocation: "start", nameGap: map.own === null ? 14 : 19,
      nameTextStyle: { color: shade.quiet, align: "right", padding: [0, 8, 0, 0] } },
    tooltip: { ...tooltipStyle(shade), trigger: "item",
      formatter: (point) => (point.seriesIndex === 0 ? tip(map.cells[point.dataIndex].facts) : "") },
    series: [
      { ...custom, data: cells, renderItem: (params) => drawCell(params, map, view, shade) },
      { ...custom, silent: true, z: 3, data: line, renderItem: (params) => drawSegment(params, map, 7, shade.paper) },
      { ...custom, silent: true, z: 4, data: line, renderItem: (params) => drawSegment(params, map, 3.5, shade.ink) },
      { ...custom, silent: true, z: 5, data: cells, renderItem: (params) => drawLabel(params, map, view, shade) },
      { ...custom, silent: true, data: map.own === null ? [] : [[0, 0]],
        renderItem: (params) => drawOwnLink(params, map, shade) },
    ],
  };
}

// The map in the element `box`: which one is shown, which ratio, and which cell is chosen.
class MapChart {
  constructor(box, details, shade) {
    this.box = box;
    this.details = details;
    this.nothing = details.innerHTML;
    this.map = data.maps[0];
    this.view = { quantity: "communication", selected: -1 };
    this.chart = echarts.init(box, null, { renderer: "canvas" });
    this.paint(shade);
    this.chart.on("click", { seriesIndex: 0 }, (point) => this.select(point.dataIndex));
    this.chart.on("mouseover", { seriesIndex: 0 }, (point) => this.describe(point.dataIndex));
    this.chart.on("globalout", () => this.describe(this.view.selected));
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("blur", () => this.chart.dispatchAction({ type: "hideTip" }));
  }

  paint(shade) {
    this.shade = shade;
    this.box.style.height = `${TOP + BOTTOM + ROW_HEIGHT * this.map.rows.length}px`;
    this.box.setAttribute("aria-label", `Map of ${this.map.name}. ${this.map.sides}`);
    this.chart.resize();
    this.chart.setOption(mapOption(this.map, this.view, shade, this.box.clientWidth), true);
  }

  // Another map, or another ratio of it; what is left out stays.
  show({ map = this.map, quantity = this.view.quantity }) {
    const same = map === this.map;
    this.map = map;
    this.view = { quantity, selected: same ? this.view.selected : -1 };
    this.describe(this.view.selected);
    this.paint(this.shade);
  }

  // Names may hold anything: they reach the page as text, never as HTML.
  describe(index) {
    if (index < 0) {
      this.details.innerHTML = this.nothing;
      return;
    }
    this.details.replaceChildren(...this.map.cells[index].facts.map((fact) => {
      const line = document.createElement("p");
      line.textContent = fact;
      return line;
    }));
  }

  select(index) {
    this.view.selected = index;
    this.describe(index);
    this.chart.setOption({ series: [{}, {}, {}, {}, {}] });  // Draws the frame of the chosen cell.
    this.chart.dispatchAction(index < 0 ? { type: "hideTip" } : { type: "showTip", seriesIndex: 0, dataIndex: index });
  }

  // The cell that many columns and rows further; the first one where none is chosen.
  move(columns, rows) {
    if (this.view.selected < 0) return 0;
    const width = this.map.columns.length, height = this.map.rows.length;
    const within = (at, count) => Math.min(count - 1, Math.max(0, at));
    const { column, row } = this.map.cells[this.view.selected];
    return within(row + rows, height) * width + within(column + columns, width);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 1000;
    const steps = {
      ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
      Home: [-far, 0], End: [far, 0], PageUp: [0, -far], PageDown: [0, far],
    };
    const step = steps[event.key];
    if (!step && event.key !== "Escape") return;
    event.preventDefault();
    this.select(step ? this.move(...step) : -1);
  }
}

// An element with these children, texts among them.
function element(tag, attributes, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

for (const [quantity, bounds] of Object.entries(BOUNDS))
  OPACITIES.forEach((opacity, band) => {
    const words = band === 0 ? `below ${bounds[0]}` : band === bounds.length ? `${bounds[band - 1]} and more`
      : `${bounds[band - 1]} to ${bounds[band]}`;
    const fill = element("span", { className: `band ${sideOf(band)}` });
    fill.style.opacity = opacity;
    document.getElementById(`legend-${quantity}`).append(
      element("li", {}, element("span", { className: "swatch" }, fill), words));
  });
for (const [word, meaning] of data.legend)
  document.getElementById(word.length === 1 ? "legend-step" : "marks").append(
    element("li", {}, element("b", { textContent: word }), meaning));
const { cluster, own_link_gb_per_s: own } = data.maps[0];
document.getElementById("own-link").append(`the links of ${cluster.slice(0, 24)} as it is: ${Number(own?.toPrecision(4))} GB/s`);
data.maps.forEach(({ name }, index) => document.getElementById("maps").append(
  element("label", {}, element("input", { type: "radio", name: "map", value: index, checked: index === 0 }), name)));

for (const id of ["tools", "drawn", "legends"]) document.getElementById(id).hidden = false;
const chart = new MapChart(document.getElementById("map"), document.getElementById("details"), shades());

const quantity = document.getElementById("quantity");
function showLegend() {
  for (const name of Object.keys(BOUNDS)) document.getElementById(`legend-${name}`).hidden = name !== quantity.value;
  document.getElementById("own-link").hidden = chart.map.own === null;
}
for (const radio of document.querySelectorAll("input[name=map]"))
  radio.addEventListener("change", () => {
    chart.show({ map: data.maps[Number(radio.value)] });
    showLegend();
  });
quantity.addEventListener("change", () => {
  chart.show({ quantity: quantity.value });
  showLegend();
});
// A page that is opened again may come with other choices than its first ones.
const checked = document.querySelector("input[name=map]:checked");
chart.show({ map: data.maps[Number(checked.value)], quantity: quantity.value });
showLegend();

prefersDark.addEventListener("change", () => chart.paint(shades()));
let width = chart.box.clientWidth;
new ResizeObserver(() => {
  if (chart.box.clientWidth === width) return;
  width = chart.box.clientWidth;
  chart.paint(shades());
}).observe(chart.box);
