// The bars: the span of each rank in its parts, on one scale.

const BAR_PITCH = 58, BAR_HEIGHT = 24, LETTER = 6.5;

function shareText(ns, span) {
  return span > 0 ? `${(100 * ns / span).toFixed(1)} %` : "";
}

// The longest text that has room in a part of the bar.
function partLabel(ns, span, room) {
  const texts = [`${msText(ns)} ms, ${shareText(ns, span)}`, `${msText(ns)} ms`, shareText(ns, span)];
  return texts.find((text) => text.length * LETTER + 8 < room) || "";
}

function barsOption(data, shade, width) {
  const longest = Math.max(...data.bars.map((bar) => bar.span_ns), 1);
  const room = (ns) => (ns / longest) * (width - 16);
  return {
    animation: false,
    backgroundColor: shade.paper,
    grid: { left: 8, right: 8, top: 4, bottom: 24 },
    xAxis: {
      type: "value", min: 0, max: longest / 1e6,
      axisLabel: { color: shade.quiet, hideOverlap: true, showMaxLabel: false,
        formatter: (ms) => `${Number(ms.toPrecision(12))} ms` },
      splitLine: { lineStyle: { color: shade.edge, opacity: 0.6 } },
    },
    yAxis: {
      type: "category", inverse: true, data: data.bars.map((bar) => `${bar.text} · ${msText(bar.span_ns)} ms`),
      axisTick: { show: false }, axisLine: { show: false }, z: 5,
      // Over its bar, where a long name has room on a phone, too.
      axisLabel: { inside: true, margin: 0, color: shade.ink, fontWeight: 600, verticalAlign: "bottom",
        padding: [0, 0, BAR_HEIGHT / 2 + 4, 0], interval: 0, width: width - 20, overflow: "truncate" },
    },
    tooltip: { ...tooltipStyle(shade), trigger: "item",
      formatter: (point) => {
        const bar = data.bars[point.dataIndex];
        const ns = bar.parts_ns[point.seriesIndex];
        return tip([data.parts[point.seriesIndex], bar.text,
          `${msText(ns)} ms, ${shareText(ns, bar.span_ns)} of the span`]);
      } },
    series: data.parts.map((name, part) => ({
      type: "bar", name, stack: "span", barWidth: BAR_HEIGHT, cursor: "default",
      itemStyle: { color: shade.parts[part] },
      emphasis: { itemStyle: { borderColor: shade.ink, borderWidth: 1.5, color: "inherit" } },
      data: data.bars.map((bar) => bar.parts_ns[part] / 1e6),
      label: { show: true, color: shade.ink, fontSize: 12,
        formatter: (point) => {
          const bar = data.bars[point.dataIndex];
          return partLabel(bar.parts_ns[part], bar.span_ns, room(bar.parts_ns[part]));
        } },
    })),
  };
}

class BarsChart {
  constructor(box, data, shade) {
    this.box = box;
    this.data = data;
    box.style.height = `${28 + BAR_PITCH * Math.max(1, data.bars.length)}px`;
    this.chart = echarts.init(box, null, { renderer: "canvas" });
    this.paint(shade);
  }

  paint(shade) {
    this.chart.setOption(barsOption(this.data, shade, this.box.clientWidth), true);
  }
}
