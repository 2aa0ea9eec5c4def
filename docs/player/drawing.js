// Blocks as small maps of their whole: fill = parameter, outline = the rank that a piece comes from, hatching = padding.
(function (mw) {
  "use strict";

  const { elementsOf } = mw;
  const kNamed = 0.02;   // of a map's width, for each letter of the name that stands in it

  // An element with properties (class, data and aria attributes, style variables) and children; text is never markup.
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.startsWith("--")) element.style.setProperty(name, value);
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const isColour = (index) => Number.isInteger(index) && index >= 0;
  const pair = (colour) => `light-dark(${colour.light}, ${colour.dark})`;
  const rankColour = (palette, rank) => pair(palette.ranks[rank % palette.ranks.length]);
  // Of a container, which has no parameter's colour, it is neutral.
  const tensorColour = (recording, tensor) => {
    const { colour } = recording.tensors[tensor];
    const { tensors } = recording.palette;
    return isColour(colour) ? pair(tensors[colour % tensors.length]) : "var(--neutral)";
  };

  // The whole that a block is a part of, in rows and columns; a flat array is one row.
  function wholeOf(block) {
    if (block.flat || block.unit === "elements")
      return { rows: 1, cols: block.unit ? block.of : elementsOf(block), flat: true };
    return {
      rows: block.unit === "rows" ? block.of : block.rows,
      cols: block.unit === "columns" ? block.of : block.cols,
      flat: false,
    };
  }

  // What lies in a flat block: {tensor, begin, end} counted in its whole, as fractions; without a tensor it is padding.
  function stretchesOf(block) {
    if (!block.spans) return null;
    const whole = wholeOf(block).cols;
    const offset = block.unit ? block.begin : 0;
    const stretches = [];
    let last = 0;
    const add = (tensor, begin, end) =>
      end > begin && stretches.push({ tensor, begin: (offset + begin) / whole, end: (offset + end) / whole });
    for (const [tensor, begin, end] of block.spans) {
      add(null, last, begin);
      add(tensor, begin, end);
      last = end;
    }
    add(null, last, elementsOf(block));
    return stretches;
  }

  // Places an element by fractions of what is around it, along one dimension.
  function place(element, { begin, end, down }) {
    const percent = (fraction) => `${100 * fraction}%`;
    Object.assign(element.style, down
      ? { top: percent(begin), height: percent(end - begin), left: 0, width: "100%" }
      : { left: percent(begin), width: percent(end - begin), top: 0, height: "100%" });
    return element;
  }

  // The fills of one piece: those of the parameters in it, and hatching where there is none.
  function fillsOf(recording, piece, stretches) {
    const width = piece.end - piece.begin;
    return stretches.filter(({ begin, end }) => begin < piece.end - 1e-9 && end > piece.begin + 1e-9).map((stretch) => {
      const begin = (Math.max(stretch.begin, piece.begin) - piece.begin) / width;
      const end = (Math.min(stretch.end, piece.end) - piece.begin) / width;
      const filled = stretch.tensor !== null;
      // Colour is not all that tells parameters apart: where there is room, they have their names.
      const named = filled && !recording.room &&
        (end - begin) * width > kNamed * (1 + recording.tensors[stretch.tensor].name.length);
      const fill = make("span", {
        class: filled ? "player-span" : "player-padding",
        "data-tensor": stretch.tensor,
        "--fill": filled && tensorColour(recording, stretch.tensor),
      }, named ? recording.tensors[stretch.tensor].name : null);
      return place(fill, { begin, end });
    });
  }

  // A piece of a map: {from, unit, begin, end}, with the class that says how it came to be here.
  function drawPiece(recording, block, piece, kind) {
    const whole = wholeOf(block);
    const down = piece.unit === "rows" && !whole.flat;
    const share = piece.end - piece.begin;
    const stretches = stretchesOf(block);
    const cells = (length, along) => Math.max(1, Math.round(along ? share * length : length));
    const element = make("span", {
      class: `player-piece player-${kind}`, "data-from": piece.from,
      "--rank": rankColour(recording.palette, piece.from),
      "--fill": stretches ? "transparent" : tensorColour(recording, block.tensor),
      "--across": cells(whole.cols, !down), "--down": cells(whole.rows, down),
    }, ...(stretches ? fillsOf(recording, piece, stretches) : []));
    return place(element, { ...piece, down });
  }

  // The room for a matrix, in pixels: {high, wide}. A recording that is shown small brings its own.
  function roomOf({ room, ranks }) {
    if (room) return room;
    if (ranks.length <= 2) return { high: 104, wide: 176 };
    return ranks.length <= 4 ? { high: 76, wide: 140 } : { high: 36, wide: 76 };
  }

  // The whole as a small plan, cell by cell where cells are large enough to be seen.
  function drawMap(recording, block, pieces, rank) {
    const whole = wholeOf(block);
    const { high, wide } = roomOf(recording);
    const exact = Math.min(high / whole.rows, wide / whole.cols, 14);
    const cell = exact >= 4 ? Math.floor(exact) : exact;
    const cells = whole.flat ? whole.cols <= 96 : cell >= 4;
    const map = make("span", {
      class: `player-map${whole.flat ? " player-flat" : ""}${cells ? " player-cells" : ""}`,
      "aria-hidden": "true", "--across": whole.cols, "--down": whole.rows,
    }, ...pieces.map((piece) => drawPiece(recording, block, piece, piece.from === rank ? "own" : "arrives")));
    if (!whole.flat) {
      map.style.width = `${Math.max(10, cell * whole.cols)}px`;
      map.style.height = `${Math.max(10, cell * whole.rows)}px`;
    }
    return map;
  }

  // The place of a block's element in its map, as fractions: {left, top, width, height}.
  function cellOf(block, position) {
    const whole = wholeOf(block);
    const offset = (unit) => (block.unit === unit ? block.begin : 0);
    const row = whole.flat ? 0 : Math.floor(position / block.cols) + offset("rows");
    const col = whole.flat ? position + offset("elements") : (position % block.cols) + offset("columns");
    return { left: col / whole.cols, top: row / whole.rows, width: 1 / whole.cols, height: 1 / whole.rows };
  }

  // The place in the block that lies at fractions of its map, or -1 where the block has nothing there.
  function positionAt(block, across, down) {
    const whole = wholeOf(block);
    const col = Math.min(whole.cols - 1, Math.max(0, Math.floor(across * whole.cols)));
    const row = Math.min(whole.rows - 1, Math.max(0, Math.floor(down * whole.rows)));
    if (whole.flat) {
      const position = col - (block.unit ? block.begin : 0);
      return position >= 0 && position < elementsOf(block) ? position : -1;
    }
    const [r, c] = [row - (block.unit === "rows" ? block.begin : 0), col - (block.unit === "columns" ? block.begin : 0)];
    return r >= 0 && r < block.rows && c >= 0 && c < block.cols ? r * block.cols + c : -1;
  }

  // Marks a cell of a map.
  function drawLit(block, position) {
    const cell = cellOf(block, position);
    const lit = make("span", { class: "player-lit" });
    for (const [name, fraction] of Object.entries(cell)) lit.style[name] = `${100 * fraction}%`;
    return lit;
  }

  // What the colours, outlines and hatching of this run mean.
  function drawLegend(recording) {
    const seen = new Set();
    let padding = false;
    for (const block of recording.steps.flatMap((step) => step.holds.flat())) {
      if (!block.spans) seen.add(block.tensor);
      else for (const stretch of stretchesOf(block)) stretch.tensor === null ? (padding = true) : seen.add(stretch.tensor);
    }
    if (!seen.size) return null;
    const entry = (kind, fill, words) => make("li", {},
      make("span", { class: `player-swatch ${kind}`, "--fill": fill, "aria-hidden": "true" }), words);
    return make("ul", { class: "player-legend", "aria-label": "what the colours mean" },
      ...[...seen].sort((a, b) => a - b).map((tensor) =>
        entry("player-span", tensorColour(recording, tensor), recording.tensors[tensor].name)),
      padding ? entry("player-padding", null, "padding") : null,
      entry("player-outline", null, "outline: the rank that it comes from"));
  }

  Object.assign(mw, { make, rankColour, tensorColour, wholeOf, drawPiece, drawMap, positionAt, drawLit, drawLegend, place });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
