// The timeline: a custom series of ECharts that draws a rectangle for each slice, on a time axis that zooms.

// Where the entries of a slice stand: see page_data in page.cpp.
const LINE = 0, BEGIN = 1, DURATION = 2, COVERED = 3, EVENTS = 4, NAME = 5, TYPE = 6, GROUP = 7, MESSAGE = 8, SENT = 9;

const LINE_HEIGHT = 20, TOP = 30, BOTTOM = 46;
const SMALLEST_VIEW_MS = 0.0005;

// "248.45": four digits after the point below a tenth of a millisecond, as in the tables.
function msText(ns) {
  return (ns / 1e6).toFixed(ns !== 0 && Math.abs(ns) < 1e5 ? 4 : 2);
}

// "93,257,200 B".
function bytesText(bytes) {
  return `${bytes.toLocaleString("en-US")} B`;
}

// A slice in words, a line each.
function sliceFacts(data, slice) {
  const name = slice[NAME] < 0 ? "events of several names" : data.texts[slice[NAME]];
  const facts = [slice[EVENTS] > 1 ? `${slice[EVENTS]} events: ${name}` : name, data.lines[slice[LINE]].lane];
  facts.push(`begins at ${msText(slice[BEGIN])} ms`);
  let duration = `takes ${msText(slice[DURATION])} ms`;
  if (slice[COVERED] !== slice[DURATION]) duration += `, ${msText(slice[COVERED])} ms of it covered`;
  facts.push(duration);
  if (slice[MESSAGE] >= 0) facts.push(`message of ${bytesText(slice[MESSAGE])}`);
  if (slice[SENT] >= 0) facts.push(`sent ${bytesText(slice[SENT])}`);
  if (slice[TYPE] >= 0) facts.push(data.texts[slice[TYPE]]);
  if (slice[GROUP] >= 0) facts.push(`group ${data.texts[slice[GROUP]]}`);
  return facts;
}

// The rectangle of one slice, with its name where there is room.
function drawSlice(params, api, data, shade, selected) {
  const index = params.dataIndex;
  const slice = data.slices[index];
  const [left, middle] = api.coord([slice[BEGIN] / 1e6, slice[LINE]]);
  const right = api.coord([(slice[BEGIN] + slice[DURATION]) / 1e6, slice[LINE]])[0];
  const frame = params.coordSys;
  if (right < frame.x - 1 || left > frame.x + frame.width + 1) return undefined;
  const height = LINE_HEIGHT - 4;
  const shape = echarts.graphic.clipRectByRect(
    { x: left, y: middle - height / 2, width: Math.max(1, right - left), height }, frame);
  if (!shape) return undefined;
  const chosen = index === selected;
  return {
    type: "rect",
    shape,
    z2: chosen ? 2 : 1,
    style: {
      fill: shade.lanes[data.lines[slice[LINE]].kind],
      stroke: chosen ? shade.ink : shade.paper,
      lineWidth: chosen ? 2.5 : shape.width > 4 ? 1 : 0,
    },
    textContent: shape.width < 40 || slice[NAME] < 0 ? undefined : {
      style: {
        text: data.texts[slice[NAME]], fill: shade.ink, fontSize: 11, width: shape.width - 8, overflow: "truncate",
      },
    },
    textConfig: { position: "insideLeft", distance: 4 },
    emphasis: { style: { stroke: shade.ink, lineWidth: 1.5 } },
  };
}

// The name of a rank over its lanes, from the left edge on.
function drawHeading(params, api, headings, shade) {
  const line = headings[params.dataIndex];
  return {
    type: "text",
    style: {
      text: line.text, x: 4, y: api.coord([0, line.number])[1] + 3, verticalAlign: "middle",
      fill: shade.ink, stroke: shade.paper, lineWidth: 4,
      font: "600 13px system-ui, sans-serif",
    },
    silent: true,
  };
}

function timelineOption(data, shade, selected, width) {
  const span = Math.max(SMALLEST_VIEW_MS, data.span_ns / 1e6);
  const headings = data.lines.map((line, number) => ({ text: line.text, number, kind: line.kind }))
    .filter((line) => line.kind === null);
  return {
    animation: false,
    backgroundColor: shade.paper,
    grid: { left: 106, right: 14, top: TOP, bottom: BOTTOM },
    xAxis: {
      type: "value", min: 0, max: span, position: "top", splitNumber: width < 600 ? 3 : 6,
      axisLabel: { color: shade.quiet, hideOverlap: true, showMaxLabel: false,
        formatter: (ms) => `${Number(ms.toPrecision(12))} ms` },
      axisLine: { lineStyle: { color: shade.edge } },
      splitLine: { lineStyle: { color: shade.edge, opacity: 0.6 } },
    },
    yAxis: {
      type: "category", inverse: true, data: data.lines.map((line) => (line.kind === null ? "" : line.text)),
      axisTick: { show: false }, axisLine: { show: false },
      axisLabel: { color: shade.quiet, interval: 0, fontSize: 12 },
    },
    dataZoom: [
      { type: "inside", filterMode: "none", minValueSpan: SMALLEST_VIEW_MS, preventDefaultMouseMove: false },
      { type: "slider", filterMode: "none", minValueSpan: SMALLEST_VIEW_MS, height: 22, bottom: 10,
        showDataShadow: false, showDetail: false, brushSelect: false, borderColor: shade.edge,
        backgroundColor: shade.ground, textStyle: { color: shade.quiet } },
    ],
    tooltip: { ...tooltipStyle(shade), trigger: "item",
      formatter: (point) => (point.seriesIndex === 0 ? tip(sliceFacts(data, data.slices[point.dataIndex])) : "") },
    series: [
      { type: "custom", clip: true, encode: { x: [1, 2], y: 0 },
        data: data.slices.map((s) => [s[LINE], s[BEGIN] / 1e6, (s[BEGIN] + s[DURATION]) / 1e6]),
        renderItem: (params, api) => drawSlice(params, api, data, shade, selected()) },
      { type: "custom", silent: true, encode: { x: 1, y: 0 }, data: headings.map((line) => [line.number, 0]),
        renderItem: (params, api) => drawHeading(params, api, headings, shade) },
    ],
  };
}

// The timeline in the element `box`: what is shown of it, and which slice is chosen.
class TimelineChart {
  constructor(box, data, shade) {
    this.data = data;
    this.box = box;
    this.span = Math.max(SMALLEST_VIEW_MS, data.span_ns / 1e6);
    this.view = [0, this.span];
    this.selected = -1;
    box.style.height = `${TOP + BOTTOM + LINE_HEIGHT * data.lines.length}px`;
    this.chart = echarts.init(box, null, { renderer: "canvas" });
    this.paint(shade);
    this.chart.on("datazoom", () => this.readView());
    this.chart.on("click", { seriesIndex: 0 }, (point) => this.select(point.dataIndex));
    // A page that scrolls must not stop at the timeline: the wheel reaches it only once it is chosen. ECharts takes
    // every turn of the wheel that it sees, so it must not see the others.
    for (const type of ["wheel", "mousewheel"])
      box.addEventListener(type, (event) => {
        if (!event.ctrlKey && document.activeElement !== box) event.stopPropagation();
      }, { capture: true, passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
  }

  paint(shade) {
    this.chart.setOption(timelineOption(this.data, shade, () => this.selected, this.box.clientWidth), true);
    this.show(...this.view);
  }

  readView() {
    const { startValue, endValue } = this.chart.getOption().dataZoom[0];
    this.view = [startValue, endValue];
    document.getElementById("view").textContent =
      `${msText(Math.round(startValue * 1e6))} to ${msText(Math.round(endValue * 1e6))} ms of ` +
      `${msText(this.data.span_ns)} ms`;
  }

  // Shows [begin, end), moved to lie inside of the span.
  show(begin, end) {
    const width = Math.min(this.span, Math.max(SMALLEST_VIEW_MS, end - begin));
    const startValue = Math.min(Math.max(0, begin), this.span - width);
    this.chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, startValue, endValue: startValue + width });
    this.readView();
  }

  // Around the chosen slice where there is one in sight, otherwise around the middle.
  zoom(factor) {
    const [begin, end] = this.view;
    let around = (begin + end) / 2;
    if (this.selected >= 0) {
      const slice = this.data.slices[this.selected];
      const middle = (slice[BEGIN] + slice[DURATION] / 2) / 1e6;
      if (middle > begin && middle < end) around = middle;
    }
    this.show(around - (around - begin) * factor, around + (end - around) * factor);
  }

  move(share) {
    const step = share * (this.view[1] - this.view[0]);
    this.show(this.view[0] + step, this.view[1] + step);
  }

  whole() {
    this.show(0, this.span);
  }

  select(index) {
    this.selected = index;
    const slice = this.data.slices[index];
    document.getElementById("selected").textContent = sliceFacts(this.data, slice).join(" · ");
    const [begin, end] = this.view;
    const from = slice[BEGIN] / 1e6, to = (slice[BEGIN] + slice[DURATION]) / 1e6;
    if (to < begin || from > end) this.show((from + to - (end - begin)) / 2, (from + to + (end - begin)) / 2);
    this.chart.setOption({ series: [{}, {}] });  // Draws the frame of the chosen slice.
    this.chart.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: index });
  }

  // Slices are in the order of their lines, and of their begin in a line.
  neighbour(step) {
    if (this.selected < 0) return 0;
    const next = this.data.slices[this.selected + step];
    return next && next[LINE] === this.data.slices[this.selected][LINE] ? this.selected + step : this.selected;
  }

  // The slice of the line above or below that is nearest to the chosen one.
  across(step) {
    const slices = this.data.slices;
    if (this.selected < 0) return 0;
    const from = slices[this.selected];
    let line = from[LINE] + step;
    while (line >= 0 && line < this.data.lines.length && this.data.lines[line].kind === null) line += step;
    let nearest = -1;
    const distance = (s) => Math.abs(s[BEGIN] + s[DURATION] / 2 - from[BEGIN] - from[DURATION] / 2);
    slices.forEach((slice, i) => {
      if (slice[LINE] === line && (nearest < 0 || distance(slice) < distance(slices[nearest]))) nearest = i;
    });
    return nearest < 0 ? this.selected : nearest;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowRight: () => this.select(this.neighbour(1)),
      ArrowLeft: () => this.select(this.neighbour(-1)),
      ArrowDown: () => this.select(this.across(1)),
      ArrowUp: () => this.select(this.across(-1)),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      "−": () => this.zoom(2),
      "[": () => this.move(-0.25),
      "]": () => this.move(0.25),
      0: () => this.whole(),
      Home: () => this.whole(),
    };
    const action = actions[event.key];
    if (!action || this.data.slices.length === 0) return;
    event.preventDefault();
    action();
  }
}
