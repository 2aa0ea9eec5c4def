// Draws each parameter as a map: its shape, the parts that ranks hold, and how far each part's update is off.

const SVG = "http://www.w3.org/2000/svg";
const data = JSON.parse(document.getElementById("data").textContent);

function add(parent, name, attributes, text) {
  const element = parent.appendChild(document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const ranksText = (ranks) => (ranks.length === 1 ? "rank " : "ranks ") + ranks.join(", ");

// The longer side is 220 units long, the shorter one at least 24.
function sides(rows, columns) {
  const scale = 220 / Math.max(rows, columns);
  return [Math.max(24, columns * scale), Math.max(24, rows * scale)];
}

function draw(parameter, into) {
  const figure = into.appendChild(document.createElement("figure"));
  const [width, height] = sides(parameter.rows, parameter.columns);
  const svg = add(figure, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("class", parameter.verdict);
  svg.setAttribute("aria-label", `${parameter.name}: ${parameter.verdict}`);
  for (const part of parameter.parts) {
    const far = part.distance === null ? "distance not known" : `distance ${part.distance.toPrecision(3)}`;
    const group = add(svg, "g", {});
    add(group, "title", {}, `${ranksText(part.ranks)}: ${far}`);
    part.boxes.forEach(([row, column, rows, columns], index) => {
      const box = { x: column / parameter.columns * width, y: row / parameter.rows * height };
      const wide = columns / parameter.columns * width, high = rows / parameter.rows * height;
      // Clean parts and those without a distance are filled whole.
      const share = parameter.verdict === "clean" || part.distance === null ? 1 : Math.min(1, part.distance);
      add(group, "rect", { ...box, width: wide * share, height: high, class: "bar" });
      add(group, "rect", { ...box, width: wide, height: high, class: "part" });
      if (index === 0 && wide > 20 && high > 14) {
        add(group, "text", { x: box.x + 4, y: box.y + 12 }, part.ranks.join(" ").slice(0, Math.floor(wide / 7)));
      }
    });
  }
  const caption = figure.appendChild(document.createElement("figcaption"));
  caption.textContent = `${parameter.name} (${parameter.shape}): ${parameter.verdict}`;
  if (parameter.reason) caption.title = parameter.reason;
}

for (const parameter of data) draw(parameter, document.getElementById("maps"));
