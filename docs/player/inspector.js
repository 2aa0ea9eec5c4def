// Beside the code: the numbers of a block, the messages of a step, what the program prints; and one element, followed.
(function (mw) {
  "use strict";

  const { bytesText, capital, count, elementsOf, kindsOf, make, nameText, numberText, rangeText, shapeText } = mw;
  const kListedMessages = 8;   // more messages of a kind than this are folded away
  const kMostListed = 240;     // and no more than this are listed

  // Something that may be too large for its place, and can be scrolled by keyboard as well.
  const scrollable = (tag, name, label, ...children) =>
    make(tag, { class: `player-scroll ${name}`, tabindex: "0", role: "region", "aria-label": label }, ...children);

  const range = (length) => Array.from({ length }, (_, at) => at);

  // The numbers of a block as a table: rows and columns counted as in the whole, flat arrays in lines of eight short
  // numbers or four long ones.
  function drawTable(block, label, described) {
    const size = elementsOf(block);
    const columns = columnsOf(block);
    const rows = Math.ceil(size / Math.max(1, columns));
    const firstRow = block.unit === (block.flat ? "elements" : "rows") ? block.begin : 0;
    const firstColumn = block.unit === "columns" ? block.begin : 0;
    return make("table", { class: "player-numbers", "aria-label": label, "aria-description": described },
      make("thead", {}, make("tr", {}, make("td"), ...range(columns).map((column) =>
        make("th", { scope: "col" }, block.flat ? `+${column}` : `${firstColumn + column}`)))),
      make("tbody", {}, ...range(rows).map((row) => make("tr", {},
        make("th", { scope: "row" }, `${block.flat ? firstRow + row * columns : firstRow + row}`),
        ...block.values.slice(row * columns, (row + 1) * columns).map((value, column) => {
          const place = row * columns + column;
          return make("td", { title: value, "data-value": value, "data-place": place, tabindex: place ? "-1" : "0" }, numberText(value));
        })))));
  }

  function columnsOf(block) {
    if (!block.flat) return block.cols;
    const long = block.values.some((value) => numberText(value).length > 4);
    return Math.min(long ? 4 : 8, elementsOf(block));
  }

  function drawNumbers(block, rank) {
    const size = elementsOf(block);
    const title = make("p", { class: "player-about" }, make("b", {}, `rank ${rank} · ${nameText(block)}`),
                       ` ${shapeText(block)} · ${bytesText(block.bytes)}`, block.note ? ` · ${block.note}` : "");
    if (!block.values) {
      const instead = block.digest ? `${count(size, "number")}: too many to show here; their digest is ${block.digest}.`
                                   : "The run shows its shape and not its numbers.";
      return [title, make("p", { class: "player-quiet" }, instead)];
    }
    const part = block.unit ? `; ${block.unit} ${rangeText(block)} of ${block.of}` : "; the whole";
    const described = block.flat ? `${count(size, "number")} in a flat array, ${columnsOf(block)} in a line${part}`
                                 : `${count(block.rows, "row")} and ${count(block.cols, "column")}${part}`;
    const hint = block.flat ? "line + column: place in the run" : "row and column: place in the whole";
    const table = drawTable(block, `numbers of ${nameText(block)} on rank ${rank}`, described);
    return [title, table, make("p", { class: "player-quiet player-hint" }, `${described}. ${capital(hint)}.`)];
  }

  function drawMessages(step) {
    if (!step.moves.length) return [make("p", { class: "player-quiet" }, "In this step nothing travels.")];
    const list = (moves) => make("ul", {}, ...moves.slice(0, kMostListed).map((move) =>
      make("li", { "data-from": move.from, "data-to": move.to }, `rank ${move.from} → rank ${move.to}`,
           make("span", { class: "player-quiet" }, ` ${count(move.elements, "element")} · ${bytesText(move.bytes)}`))),
      moves.length > kMostListed ? make("li", { class: "player-quiet" }, `and ${count(moves.length - kMostListed, "message")} more`) : null);
    return kindsOf(step.moves).map((kind) => {
      const caption = [`${kind.collective} over ${kind.group}`, kind.type, count(kind.moves.length, "message"),
                       bytesText(kind.bytes)].join(" · ");
      return kind.moves.length <= kListedMessages
        ? make("div", {}, make("p", { class: "player-caption" }, caption), list(kind.moves))
        : make("details", {}, make("summary", {}, caption), list(kind.moves));
    });
  }

  // Three views in one place of constant height; a button for each.
  class Inspector {
    constructor(player) {
      this.player = player;
      this.shown = { rank: 0, item: 0, target: null };
      this.numbers = scrollable("div", "player-inspector", "numbers");
      this.moves = scrollable("div", "player-moves", "messages");
      this.lines = scrollable("pre", "player-lines", "printed lines");
      this.views = { Numbers: this.numbers, Messages: this.moves, Prints: this.lines };
      this.buttons = Object.keys(this.views).map((name) =>
        make("button", { type: "button", class: "player-tab", onclick: () => this.choose(name) }, name));
      this.element = make("section", { class: "player-panel", "aria-label": "numbers, messages and prints" },
        make("div", { class: "player-tabs" }, ...this.buttons), this.numbers, this.moves, this.lines);
      this.numbers.addEventListener("pointermove", (event) => event.pointerType === "mouse" && player.point(this.placeAt(event)));
      this.numbers.addEventListener("pointerleave", () => player.point(null));
      this.numbers.addEventListener("focusin", (event) => this.pointed(event));
      this.numbers.addEventListener("click", (event) => this.pointed(event));
      this.numbers.addEventListener("keydown", (event) => this.key(event));
      this.choose(player.recording.steps.some((step) => step.holds.flat().length) ? "Numbers" : "Messages");
    }

    choose(name) {
      Object.entries(this.views).forEach(([other, view]) => (view.hidden = other !== name));
      this.buttons.forEach((button) => button.setAttribute("aria-pressed", button.textContent === name));
    }

    // The place that a cell of the table is.
    placeAt(event) {
      const cell = event.target.closest?.("td[data-place]");
      if (!cell) return null;
      const { rank, item, target } = this.shown;
      return { rank, item, element: this.player.elements.at(rank, target, Number(cell.dataset.place)) };
    }

    pointed(event) {
      const place = this.placeAt(event);
      if (place) this.player.choose(place);
    }

    // Arrow keys go from number to number.
    key(event) {
      const cell = event.target.closest("td[data-place]");
      if (!cell) return;
      const columns = cell.parentElement.querySelectorAll("td").length;
      const wide = this.numbers.querySelector("tbody tr").querySelectorAll("td").length;
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
      if (by === undefined || columns === 0) return;
      event.preventDefault();
      event.stopPropagation();
      const next = this.numbers.querySelector(`td[data-place="${Number(cell.dataset.place) + by}"]`);
      if (next) next.focus();
    }

    // The messages and the lines of a frame; the lines before the first step and behind the last stand with these.
    showFrame(step, isFirst, isLast) {
      const { before, after } = this.player.recording;
      this.moves.replaceChildren(...drawMessages(step));
      const first = isFirst ? [...before, ""] : [];
      const last = isLast ? ["", ...after] : [];
      this.lines.textContent = [...first, ...step.lines, ...last].join("\n").replace(/\n{3,}/g, "\n\n").trim() || "(nothing)";
      this.shown.target = null;
    }

    // The numbers of one block; of null, that there are none.
    showNumbers(rank, item, target) {
      if (target && this.shown.target === target && this.shown.rank === rank) return;
      this.shown = { rank, item, target };
      this.numbers.replaceChildren(...(target ? drawNumbers(target, rank)
        : [make("p", { class: "player-quiet" }, "In this frame no rank shows numbers.")]));
      this.numbers.scrollTop = 0;
    }

    light(element) {
      const { rank, target } = this.shown;
      this.numbers.querySelectorAll(".player-lit-number").forEach((cell) => cell.classList.remove("player-lit-number"));
      const place = element && target ? this.player.elements.placeIn(rank, target, element) : -1;
      if (place >= 0) this.numbers.querySelector(`td[data-place="${place}"]`)?.classList.add("player-lit-number");
    }

    only(rank) {
      for (const line of this.moves.querySelectorAll("li[data-from]"))
        line.hidden = rank !== null && Number(line.dataset.from) !== rank && Number(line.dataset.to) !== rank;
    }
  }

  // One element, with its owner, its place in the bucket and its cell in the matrix, wherever the run ever shows them.
  class ElementCard {
    constructor(player) {
      this.player = player;
      this.element = make("div", { class: "player-card" });
      this.show(null);
    }

    show(place) {
      const element = place && place.element;
      if (!element) {
        const words = place && place.padding ? "Padding: it belongs to no parameter." :
          "Point at an element, or tap it: its owner, its place in the bucket, its cell in the matrix and its line of code light up.";
        this.element.replaceChildren(make("p", { class: "player-quiet" }, words));
        return;
      }
      const { elements, recording } = this.player;
      const owners = elements.ownersOf(element);
      const homes = elements.homesOf(place.rank, element);
      const owner = owners.length ? `owned by ${owners.length === 1 ? "rank" : "ranks"} ${mw.joined(owners)}` : "held by all ranks";
      const home = (what) => what && this.drawHome(recording, place.rank, what);
      this.element.replaceChildren(
        make("p", {}, make("b", {}, elements.nameOf(element)), ` · ${owner}`),
        ...[home(homes.bucket), home(homes.matrix)].filter(Boolean));
    }

    drawHome(recording, rank, { block, place }) {
      const map = mw.drawMap({ ...recording, room: { high: 30, wide: 90 } }, block, [{ from: rank, ...mw.heldPlace(block) }], rank);
      map.append(mw.drawLit(block, place));
      const at = block.flat ? `element ${place + (block.unit ? block.begin : 0)} of ${block.name}`
        : `row ${Math.floor(place / block.cols) + (block.unit === "rows" ? block.begin : 0)}, ` +
          `column ${(place % block.cols) + (block.unit === "columns" ? block.begin : 0)} of ${block.name}`;
      return make("span", { class: "player-home" }, map, make("span", { class: "player-quiet" }, at));
    }
  }

  Object.assign(mw, { scrollable, Inspector, ElementCard });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
