// Replays a recorded run of a lesson: what every rank holds, and what travels between them, step by step.
//
// A page holds <div class="muonwalk-player" data-recording="ID" data-code="ID"> and two <script
// type="application/json"> with these ids: the file that a lesson writes with --record, and the source of its steps,
// [{"step": 1, "html": "…"}]. The script needs no network and no other script; every player of a page stands for
// itself.
//
// A step gives one or two frames: "moves" (only where something travels) shows the pieces on their way, "holds" what
// the ranks hold when the step has ended.
(function () {
  "use strict";

  const kFormat = "muonwalk-recording";
  const kVersion = 1;
  const kBeforeFlight = 150;   // milliseconds before the first piece starts
  const kFlight = 800;         // milliseconds that one piece travels
  const kNextSender = 180;     // milliseconds after which the next rank's pieces start
  const kReadingTime = 2600;   // milliseconds that a frame stays while the player plays by itself
  const kListedMessages = 8;   // more messages than this are folded away
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  let players = 0;

  // --- words ---------------------------------------------------------------------------------------------------------

  const count = (number, thing) => `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
  const bytesText = (bytes) => `${grouped(bytes)} B`;
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const shapeText = (block) =>
    block.flat ? count(block.cols * block.rows, "element") : `${block.rows} × ${block.cols}`;
  const rangeText = (block) =>
    block.end - block.begin === 1 ? `${block.begin}` : `${block.begin}–${block.end - 1}`;
  const nameText = (block) => (block.unit ? `${block.name}[${block.unit} ${rangeText(block)}]` : block.name);
  const blockText = (block) => `${nameText(block)}, ${shapeText(block)}, ${bytesText(block.bytes)}`;

  // Four significant digits and an exponent. What lies in the middle goes to the even digit, as in C; toExponential
  // alone rounds it up.
  function fourDigits(value) {
    const exact = value.toExponential(60);
    const isMiddle = /^-?\d\.\d\d[02468]50*e/.test(exact);
    return isMiddle ? exact.replace(/50*e/, "e") : value.toExponential(3);
  }

  // A number as the program prints it: four significant digits, as printf's %.4g writes them.
  function numberText(value) {
    if (typeof value !== "number") return String(value);  // "nan", "inf", "-inf"
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const [digits, exponent] = fourDigits(Math.fround(value)).split("e");
    if (exponent >= -4 && exponent < 4) return String(Number(`${digits}e${exponent}`));
    return `${Number(digits)}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }

  // --- the recording -------------------------------------------------------------------------------------------------

  // The JSON of the page's script element with this id. What can't be read is an Error with a sentence for the reader.
  function readJson(id, what) {
    const element = id && document.getElementById(id);
    if (!element) throw new Error(`the page has no ${what} with the id "${id}"`);
    try {
      return JSON.parse(element.textContent);
    } catch (error) {
      throw new Error(`the ${what} "${id}" is damaged (${error.message})`);
    }
  }

  function requireThat(holds, what) {
    if (!holds) throw new Error(`the recording is damaged (${what})`);
  }

  // A message as a lesson records it, of its row on a page: [from, to, kind, elements, bytes, call].
  function unpacked(row, kinds, where) {
    requireThat(Array.isArray(row) && kinds[row[2]], `${where} has a message of a kind that is not in the list`);
    const [from, to, kind, elements, bytes, call] = row;
    return { from, to, ...kinds[kind], elements, bytes, call };
  }

  // A recording that passes has everything that is drawn below.
  function checkRecording(recording) {
    if (!recording || recording.format !== kFormat) throw new Error("this is not the recording of a lesson");
    if (recording.version !== kVersion)
      throw new Error(`the recording has version ${recording.version}, and this player reads version ${kVersion}`);
    const { ranks, steps, tensors, palette, grid } = recording;
    for (const list of ["ranks", "steps", "tensors", "before", "after"])
      requireThat(Array.isArray(recording[list]), `it has no list "${list}"`);
    requireThat(steps.length > 0 && ranks.length > 0, "it has no step or no rank");
    requireThat(grid && grid.dp > 0 && grid.tp > 0 && grid.pp > 0, "it has no grid");
    requireThat(palette && palette.tensors && palette.tensors.length && palette.ranks && palette.ranks.length,
                "it has no palette");
    for (const step of steps) {
      const where = `step ${step.number}`;
      requireThat(Array.isArray(step.lines) && Array.isArray(step.moves), `${where} has no lines or no moves`);
      for (const list of ["holds", "says"])
        requireThat(Array.isArray(step[list]) && step[list].length === ranks.length,
                    `${where} needs one list "${list}" for each of ${count(ranks.length, "rank")}`);
      for (const block of step.holds.flat()) {
        requireThat(tensors[block.tensor], `${where} shows a tensor that is not in the list`);
        requireThat(!block.values || block.values.length === block.rows * block.cols,
                    `${where} has not as many numbers of ${block.name} as its shape says`);
      }
      if (recording.kinds) step.moves = step.moves.map((row) => unpacked(row, recording.kinds, where));
      for (const move of step.moves)
        requireThat(ranks[move.from] && ranks[move.to], `${where} has a message from or to a rank that is not there`);
    }
    return recording;
  }

  // The frames in the order in which they are played.
  function framesOf(recording) {
    return recording.steps.flatMap((step, index) =>
      (step.moves.length ? ["moves", "holds"] : ["holds"]).map((phase) => ({ step: index, phase })));
  }

  // --- what travels --------------------------------------------------------------------------------------------------

  const elementsOf = (block) => block.rows * block.cols;
  const isWhole = (block) => !block.unit || (block.begin === 0 && block.end === block.of);

  // Messages of equal kind as one entry each: {collective, group, type, moves, bytes}.
  function kindsOf(moves) {
    const kinds = new Map();
    for (const move of moves) {
      const key = [move.collective, move.group, move.type].join(" ");
      if (!kinds.has(key)) kinds.set(key, { ...move, moves: [], bytes: 0 });
      kinds.get(key).moves.push(move);
      kinds.get(key).bytes += move.bytes;
    }
    return [...kinds.values()];
  }

  // The block of `after` that a message ends up in, or null. An all-gather fills a block that is as large as all
  // messages of its group together; other collectives fill one of the message's own size. Of several such blocks, the
  // first call fills the first, and so on.
  function targetOf(move, after, moves, grid) {
    const size = move.collective === "all_gather" ? move.elements * grid[move.group] : move.elements;
    const fitting = after.filter((block) => elementsOf(block) === size);
    const alike = moves.filter((other) =>
      other.from === move.from && other.to === move.to && other.elements === move.elements);
    const calls = [...new Set(alike.map((other) => other.call))].sort((a, b) => a - b);
    return fitting[Math.min(calls.indexOf(move.call), fitting.length - 1)] || null;
  }

  // Where a block lies in its whole: {unit, begin, end}, as fractions of the whole.
  function heldPlace(block) {
    if (!block.unit) return { unit: block.flat ? "elements" : "columns", begin: 0, end: 1 };
    return { unit: block.unit, begin: block.begin / block.of, end: block.end / block.of };
  }

  // Where in an all-gathered block the part of one rank lies, or null where the recording doesn't say. A slice of a
  // matrix lies where any step shows the rank's slice; parts of a flat array follow each other in the order of the group.
  function partPlace(recording, rank, target, move) {
    const parts = recording.steps.flatMap((step) => step.holds[rank]).filter((block) =>
      block.tensor === target.tensor && block.unit && !isWhole(block) && elementsOf(block) === move.elements);
    if (!target.flat) return parts.length ? heldPlace(parts[0]) : null;
    const { begin, end } = heldPlace(target);
    const width = (end - begin) / recording.grid[move.group];
    const first = begin + recording.ranks[rank][move.group] * width;
    return { unit: "elements", begin: first, end: first + width };
  }

  // What a frame of moves shows on every rank: items {block, target, pieces} (the block that the rank held before, or
  // null; the one that it holds after; its pieces, with the rank that each comes from), and parcels {from, bytes} for
  // messages of which the recording doesn't say where they end up.
  function arrivals(recording, index) {
    const step = recording.steps[index];
    const earlier = recording.steps.slice(0, index);
    return recording.ranks.map((_, rank) => {
      const items = new Map();
      const parcels = new Map();
      const received = step.moves.filter((move) => move.to === rank);
      for (const move of received) {
        const gathers = move.collective === "all_gather";
        const target = targetOf(move, step.holds[rank], received, recording.grid);
        const place = target && (gathers ? partPlace(recording, move.from, target, move) : heldPlace(target));
        if (!place) {
          parcels.set(move.from, (parcels.get(move.from) || 0) + move.bytes);
          continue;
        }
        if (!items.has(target)) {
          const before = earlier.flatMap((step) => step.holds[rank]).filter((held) => held.tensor === target.tensor);
          const block = before.pop() || null;
          const own = gathers ? partPlace(recording, rank, target, move) : block && heldPlace(block);
          items.set(target, { block, target, pieces: own ? [{ from: rank, ...own }] : [] });
        }
        items.get(target).pieces.push({ from: move.from, ...place });
      }
      return { items: [...items.values()], parcels: [...parcels].map(([from, bytes]) => ({ from, bytes })) };
    });
  }

  // --- sentences -----------------------------------------------------------------------------------------------------

  function kindText(kind) {
    const sizes = [...new Set(kind.moves.map((move) => move.bytes))];
    const each = sizes.length === 1 ? ` of ${bytesText(sizes[0])}` : "";
    const all = kind.moves.length > 1 ? `, ${bytesText(kind.bytes)} in all` : "";
    return `${kind.collective} over ${kind.group} sends ${count(kind.moves.length, "message")}${each}${all}`;
  }

  const joined = (words) =>
    words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

  // A part that all ranks hold is named by its place: of what its name says it may be all, as a bucket of a buffer.
  function amountText(step, block) {
    if (isWhole(block)) return `all of ${block.name}`;
    const alike = (other) => ["tensor", "unit", "begin", "end"].every((key) => other[key] === block[key]);
    const shared = step.holds.every((blocks) => blocks.some(alike));
    return shared ? `${block.name}, ${block.unit} ${rangeText(block)}` : `a part of ${block.name}`;
  }

  // What a rank holds after a step, in a few words; where it shows nothing, the words that it says.
  function holdingText(step, rank) {
    const blocks = step.holds[rank].map((block) => amountText(step, block));
    return blocks.length ? `holds ${joined([...new Set(blocks)])}` : step.says[rank].join("; ");
  }

  // What happened, in one sentence: for those who listen, and for those who look. Ranks that hold alike are named
  // together.
  function sentenceOf(recording, frame) {
    const step = recording.steps[frame.step];
    if (frame.phase === "moves") return `${kindsOf(step.moves).map(kindText).join("; ")}.`;
    const alike = new Map();
    recording.ranks.forEach((_, rank) => {
      const text = holdingText(step, rank);
      if (text) alike.set(text, [...(alike.get(text) || []), rank]);
    });
    if (!alike.size) return "In this step no rank shows what it holds.";
    const all = recording.ranks.length;
    return `${capital([...alike].map(([text, ranks]) => {
      if (ranks.length === all && all > 1) return `every rank ${text}`;
      if (ranks.length === 1) return `rank ${ranks[0]} ${text}`;
      return `ranks ${joined(ranks)} ${text.replace(/^holds/, "hold")}`;
    }).join("; "))}.`;
  }

  // --- drawing -------------------------------------------------------------------------------------------------------

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

  // Something that may be too large for its place, and can be scrolled by keyboard as well.
  const scrollable = (tag, name, label, ...children) =>
    make(tag, { class: `player-scroll ${name}`, tabindex: "0", role: "region", "aria-label": label }, ...children);

  const panel = (caption, content) =>
    make("section", { class: "player-panel" }, make("h3", { class: "player-caption" }, caption), content);

  const colourOf = (colours, index) => {
    const colour = colours[index % colours.length];
    return `light-dark(${colour.light}, ${colour.dark})`;
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

  // A piece of a map, placed by fractions of the whole along one dimension.
  function drawPiece(place, whole, properties) {
    const across = place.unit !== "rows" || whole.flat;
    const share = place.end - place.begin;
    const percent = (fraction) => `${100 * fraction}%`;
    const piece = make("span", {
      class: "player-piece",
      "--across": Math.max(1, Math.round(across ? share * whole.cols : whole.cols)),
      "--down": Math.max(1, Math.round(across ? whole.rows : share * whole.rows)),
      ...properties,
    });
    Object.assign(piece.style, across
      ? { left: percent(place.begin), width: percent(share), top: 0, height: "100%" }
      : { top: percent(place.begin), height: percent(share), left: 0, width: "100%" });
    return piece;
  }

  // The whole as a small plan, cell by cell where cells are large enough to be seen.
  function drawMap(block, ranks, pieces) {
    const whole = wholeOf(block);
    const [high, wide] = ranks <= 2 ? [112, 176] : ranks <= 4 ? [80, 140] : [56, 110];
    const exact = Math.min(high / whole.rows, wide / whole.cols, 14);
    const cell = exact >= 4 ? Math.floor(exact) : exact;
    const cells = whole.flat ? whole.cols <= 96 : cell >= 4;
    const map = make("span", {
      class: `player-map${whole.flat ? " player-flat" : ""}${cells ? " player-cells" : ""}`,
      "aria-hidden": "true",
      "--across": whole.cols,
      "--down": whole.rows,
    }, ...pieces.map((piece) => drawPiece(piece, whole, piece.properties)));
    if (!whole.flat) {
      map.style.width = `${Math.max(10, cell * whole.cols)}px`;
      map.style.height = `${Math.max(10, cell * whole.rows)}px`;
    }
    return map;
  }

  // The numbers of a block as a table: rows and columns counted as in the whole, flat arrays in lines of eight short
  // numbers or four long ones.
  function drawNumbers(block, rank) {
    const size = elementsOf(block);
    const title = make("p", { class: "player-about" }, make("b", {}, `rank ${rank} · ${nameText(block)}`),
                       ` ${shapeText(block)} · ${bytesText(block.bytes)}`, block.note ? ` · ${block.note}` : "");
    if (!block.values) {
      const instead = block.digest ? `${count(size, "number")}: too many to show here; their digest is ${block.digest}.`
                                   : "The run shows its shape and not its numbers.";
      return [title, make("p", { class: "player-quiet" }, instead)];
    }
    const long = block.values.some((value) => numberText(value).length > 4);
    const columns = block.flat ? Math.min(long ? 4 : 8, size) : block.cols;
    const rows = Math.ceil(size / Math.max(1, columns));
    const firstRow = block.unit === (block.flat ? "elements" : "rows") ? block.begin : 0;
    const firstColumn = block.unit === "columns" ? block.begin : 0;
    const range = (length) => Array.from({ length }, (_, at) => at);
    const part = block.unit ? `; ${block.unit} ${rangeText(block)} of ${block.of}` : "; the whole";
    const described = block.flat ? `${count(size, "number")} in a flat array, ${columns} in a line${part}`
                                 : `${count(block.rows, "row")} and ${count(block.cols, "column")}${part}`;
    const label = `numbers of ${nameText(block)} on rank ${rank}`;
    const table = make("table", { class: "player-numbers", "aria-label": label, "aria-description": described },
      make("thead", {}, make("tr", {}, make("td"), ...range(columns).map((column) =>
        make("th", { scope: "col" }, block.flat ? `+${column}` : `${firstColumn + column}`)))),
      make("tbody", {}, ...range(rows).map((row) => make("tr", {},
        make("th", { scope: "row" }, `${block.flat ? firstRow + row * columns : firstRow + row}`),
        ...block.values.slice(row * columns, (row + 1) * columns).map((value) =>
          make("td", { title: value, "data-value": value }, numberText(value)))))));
    const hint = block.flat ? "line + column: place in the run" : "row and column: place in the whole";
    return [title, scrollable("div", "", described, table),
            make("p", { class: "player-quiet player-hint" }, `${described}. ${capital(hint)}.`)];
  }

  // --- one player ----------------------------------------------------------------------------------------------------

  class Player {
    constructor(root) {
      this.root = root;
      this.recording = checkRecording(readJson(root.dataset.recording, "recording"));
      this.code = root.dataset.code ? readJson(root.dataset.code, "code") : [];
      this.frames = framesOf(this.recording);
      this.at = 0;
      this.pinned = { rank: 0, item: 0 };  // whose numbers are shown: chosen by click, touch or focus …
      this.hovered = null;                 // … or, as long as the pointer is over it, by the pointer
      this.timer = null;
      this.build(`player-${++players}`);
      this.show(0);
    }

    // The parts that stay: the controls, and an empty place for everything that changes from frame to frame.
    build(id) {
      const { heading, lesson, grid, ranks, steps } = this.recording;
      const button = (name, label, sign, action) =>
        make("button", { type: "button", class: `player-button player-${name}`, "aria-label": label, title: label,
                         onclick: action }, sign);
      this.playButton = button("play", "play", "", () => (this.timer ? this.pause() : this.play()));
      this.firstButton = button("first", "first frame (Home)", "⇤", () => this.show(0));
      this.backButton = button("back", "back (left arrow key)", "←", () => this.show(this.at - 1));
      this.forwardButton = button("forward", "forward (right arrow key)", "→", () => this.show(this.at + 1));
      this.lastButton = button("last", "last frame (End)", "⇥", () => this.show(this.frames.length - 1));
      const goTo = (step) => this.show(this.frames.findIndex((frame) => frame.step === step));
      this.stepButtons = steps.map((step, index) =>
        make("button", { type: "button", class: "player-tick", "aria-label": `step ${step.number}: ${step.title}`,
                         title: step.title, onclick: () => goTo(index) },
             `${step.number}`));
      this.progress = make("p", { class: "player-progress" });
      this.title = make("p", { class: "player-title", id: `${id}-title` });
      this.said = make("p", { class: "player-said", "aria-live": "polite" });
      this.stage = make("div", { class: "player-stage", onpointerleave: () => this.hover(null) });
      this.moves = make("div", { class: "player-moves" });
      this.numbers = make("section", { class: "player-panel player-inspector", "aria-label": "numbers" });
      this.source = scrollable("div", "player-code", "code of this step");
      this.sourcePanel = panel("The code", this.source);
      this.lines = scrollable("pre", "player-lines", "printed lines");
      this.linesPanel = panel("What it prints", this.lines);
      this.root.textContent = "";
      this.root.append(make("div", { class: "player-body" },
        make("div", { class: "player-bar" },
          make("div", { class: "player-buttons" },
               this.firstButton, this.backButton, this.playButton, this.forwardButton, this.lastButton),
          make("div", { class: "player-steps", role: "group", "aria-label": "steps" }, ...this.stepButtons),
          this.progress),
        make("div", { class: "player-words" }, this.title, this.said),
        make("div", { class: "player-left" }, this.stage, this.moves),
        make("div", { class: "player-right" }, this.sourcePanel, this.numbers, this.linesPanel)));
      const run = lesson ? `lesson ${lesson.number}, ${lesson.title}` : heading;
      const label = `a run of ${run}: dp ${grid.dp} × tp ${grid.tp} × pp ${grid.pp}, ${count(ranks.length, "rank")}; ` +
                    `left and right arrow keys go through its ${count(steps.length, "step")}`;
      const attributes = { role: "group", tabindex: "0", "aria-roledescription": "player", "aria-label": label };
      for (const [name, value] of Object.entries(attributes)) this.root.setAttribute(name, value);
      this.root.addEventListener("keydown", (event) => this.key(event));
      this.root.dataset.frames = this.frames.length;
    }

    // Arrow keys, Home and End, while the focus is in the player; inside something that scrolls or takes text they keep
    // their meaning.
    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (event.target.closest(".player-scroll, input, textarea, select, [contenteditable]")) return;
      const last = this.frames.length - 1;
      const frame = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: last }[event.key];
      if (frame === undefined) return;
      event.preventDefault();
      this.pause();
      this.show(frame);
    }

    play() {
      const atEnd = this.at === this.frames.length - 1;
      const next = () => {
        if (this.at === this.frames.length - 1) return this.pause();
        this.show(this.at + 1);
        this.timer = setTimeout(next, kReadingTime + this.flight);
      };
      if (atEnd) this.show(0);
      this.timer = setTimeout(next, atEnd ? kReadingTime : 0);
      this.showPlayButton();
    }

    pause() {
      clearTimeout(this.timer);
      this.timer = null;
      this.showPlayButton();
    }

    showPlayButton() {
      this.playButton.textContent = this.timer ? "Pause" : "Play";
      this.playButton.setAttribute("aria-label", this.timer ? "pause" : "play");
      this.root.dataset.playing = this.timer ? "yes" : "no";
    }

    // Shows frame `at`; beyond either end nothing happens.
    show(at) {
      if (at < 0 || at >= this.frames.length) return;
      this.at = at;
      const frame = this.frames[at];
      const step = this.recording.steps[frame.step];
      this.frame = frame;
      this.arriving = frame.phase === "moves" ? arrivals(this.recording, frame.step) : null;
      Object.assign(this.root.dataset, { frame: at, step: step.number, phase: frame.phase });
      this.stickToTop();
      this.showWords(frame, step);
      this.showStage(frame, step);
      this.showNumbers();
      this.flight = frame.phase === "moves" && !still.matches ? this.fly() : 0;
    }

    // The controls stick to the top of what scrolls. Browsers keep the padding of a scrolling element above what
    // sticks, so that other lines would show there; --above takes it back.
    stickToTop() {
      let scrolling = this.root.parentElement;
      while (scrolling && !/auto|scroll/.test(getComputedStyle(scrolling).overflowY))
        scrolling = scrolling.parentElement;
      this.root.style.setProperty("--above", scrolling ? `-${getComputedStyle(scrolling).paddingTop}` : "0px");
    }

    showWords(frame, step) {
      const { steps, before, after } = this.recording;
      const phase = frame.phase === "moves" ? "what moves" : "what is held";
      this.progress.textContent = `step ${frame.step + 1} of ${steps.length} · ${phase}`;
      this.title.textContent = step.title;
      this.said.textContent = sentenceOf(this.recording, frame);
      this.stepButtons.forEach((button, index) => {
        button.classList.toggle("player-done", index < frame.step);
        if (index === frame.step) button.setAttribute("aria-current", "step");
        else button.removeAttribute("aria-current");
      });
      // A disabled button would lose the focus, and with it the arrow keys.
      for (const button of [this.firstButton, this.backButton]) button.setAttribute("aria-disabled", this.at === 0);
      for (const button of [this.lastButton, this.forwardButton])
        button.setAttribute("aria-disabled", this.at === this.frames.length - 1);
      this.showPlayButton();
      // The site wrote and escaped the code; all else is set as text.
      const ofStep = this.code.filter((entry) => entry.step === step.number);
      this.source.innerHTML = ofStep.map((entry) => entry.html).join("");
      this.sourcePanel.hidden = this.source.textContent === "";
      const first = frame.step === 0 ? [...before, ""] : [];
      const last = this.at === this.frames.length - 1 ? ["", ...after] : [];
      this.lines.textContent = [...first, ...step.lines, ...last].join("\n").replace(/\n{3,}/g, "\n\n").trim();
      this.linesPanel.hidden = this.lines.textContent === "";
    }

    rankColour(rank) {
      return colourOf(this.recording.palette.ranks, rank);
    }

    // The lanes. A block that had the focus before has it after, too.
    showStage(frame, step) {
      const { ranks } = this.recording;
      const focused = this.stage.contains(document.activeElement) && document.activeElement.dataset.key;
      this.stage.replaceChildren(...ranks.map((rank, number) =>
        make("div", { class: "player-lane", "data-rank": number, "--rank": this.rankColour(number) },
          make("div", { class: "player-badge" }, ...rank.label.split(/\s{2,}/).map((part) => make("span", {}, part))),
          make("div", { class: "player-blocks" }, ...this.drawLane(frame, step, number)))));
      if (focused) (this.stage.querySelector(`[data-key="${focused}"]`) || this.root).focus({ preventScroll: true });
      this.moves.replaceChildren(...(frame.phase === "moves" ? this.drawMoves(step) : []));
    }

    drawLane(frame, step, rank) {
      const says = step.says[rank].map((line) => make("p", { class: "player-word" }, line));
      const items = this.itemsOf(rank);
      if (frame.phase === "holds") {
        if (!items.length && !says.length) says.push(make("p", { class: "player-word player-quiet" }, "shows nothing"));
        return [...items.map((item, index) => this.drawItem(rank, item, index)), ...says];
      }
      const parcels = this.arriving[rank].parcels.map(({ from, bytes }) =>
        make("span", { class: "player-parcel", "data-from": from, "--rank": this.rankColour(from) },
             `from rank ${from}: ${bytesText(bytes)}`));
      if (!items.length && !parcels.length)
        return [make("p", { class: "player-word player-quiet" }, "receives nothing")];
      return [...items.map((item, index) => this.drawItem(rank, item, index)),
              parcels.length ? make("div", { class: "player-parcels" }, ...parcels) : null].filter(Boolean);
    }

    // What a rank's lane shows as blocks in this frame.
    itemsOf(rank) {
      if (this.arriving) return this.arriving[rank].items;
      return this.recording.steps[this.frame.step].holds[rank].map((block) => ({ block, target: block, pieces: null }));
    }

    drawItem(rank, item, index) {
      const { tensors, palette, ranks } = this.recording;
      const { block, target } = item;
      const pieces = item.pieces
        ? item.pieces.map((piece) => ({ ...piece, properties: {
            class: `player-piece ${piece.from === rank ? "player-own" : "player-arrives"}`, "data-from": piece.from,
            "--rank": this.rankColour(piece.from) } }))
        : [{ ...heldPlace(block), properties: {} }];
      const named = block || target;
      const from = pieces.map((piece) => piece.from).filter((sender) => sender !== undefined && sender !== rank);
      const becomes = `${target.name}, which becomes ${shapeText(target)}, ${bytesText(target.bytes)}`;
      const label = [
        `rank ${rank}: ${block ? blockText(block) : becomes}`,
        block && block.unit ? `, of ${block.of}` : "",
        block && block.note ? `, ${block.note}` : "",
        from.length ? `; pieces arrive from ${from.length === 1 ? "rank" : "ranks"} ${joined(from)}` : "",
      ].join("");
      return make("button", {
        type: "button", class: `player-block${wholeOf(target).flat ? " player-long" : ""}`, "aria-description": label,
        "data-key": `${rank}/${index}`, "data-tensor": target.tensor,
        "--fill": colourOf(palette.tensors, tensors[target.tensor].colour),
        onclick: () => this.pin(rank, index), onfocus: () => this.pin(rank, index),
        onpointermove: (event) => event.pointerType === "mouse" && this.hover({ rank, item: index }),
      },
        drawMap(target, ranks.length, pieces),
        make("span", { class: "player-label" },
          make("b", {}, named.name),
          block && !isWhole(block) ? make("span", {}, `${block.unit} ${rangeText(block)}`) : null,
          make("span", { class: "player-quiet" },
               `${block ? "" : "becomes "}${shapeText(named)} · ${bytesText(named.bytes)}`),
          block && block.note ? make("span", { class: "player-quiet" }, block.note) : null));
    }

    drawMoves(step) {
      const messages = (moves) => make("ul", {}, ...moves.map((move) => make("li", {},
        `rank ${move.from} → rank ${move.to}`, make("span", { class: "player-quiet" },
        ` ${count(move.elements, "element")} · ${bytesText(move.bytes)}`))));
      return kindsOf(step.moves).map((kind) => {
        const caption = [`${kind.collective} over ${kind.group}`, kind.type, count(kind.moves.length, "message"),
                         bytesText(kind.bytes)].join(" · ");
        return kind.moves.length <= kListedMessages
          ? make("div", {}, make("p", { class: "player-caption" }, caption), messages(kind.moves))
          : make("details", {}, make("summary", {}, caption), messages(kind.moves));
      });
    }

    pin(rank, item) {
      this.pinned = { rank, item };
      this.hovered = null;
      this.showNumbers();
    }

    // Moving the pointer counts, not that a block comes to lie under it when the page scrolls.
    hover(place) {
      if (place && this.hovered && place.rank === this.hovered.rank && place.item === this.hovered.item) return;
      this.hovered = place;
      this.showNumbers();
    }

    // The numbers of the chosen block; where this frame hasn't got it, of the nearest one that there is.
    showNumbers() {
      const wanted = this.hovered || this.pinned;
      const ranks = [wanted.rank, ...this.recording.ranks.keys()];
      const rank = ranks.find((candidate) => this.itemsOf(candidate).length);
      this.stage.querySelectorAll(".player-block").forEach((block) => block.setAttribute("aria-pressed", "false"));
      if (rank === undefined) {
        this.numbers.replaceChildren(make("p", { class: "player-quiet" }, "In this frame no rank shows numbers."));
        return;
      }
      const items = this.itemsOf(rank);
      const index = Math.min(wanted.item, items.length - 1);
      this.stage.querySelector(`[data-key="${rank}/${index}"]`).setAttribute("aria-pressed", "true");
      const { block, target } = items[index];
      const unknown = `The run did not show what rank ${rank} held of ${target.name} before this step; ` +
                      "the next frame shows the result.";
      const shown = block ? drawNumbers(block, rank) : [make("p", { class: "player-quiet" }, unknown)];
      this.numbers.replaceChildren(...shown);
    }

    // Lets every piece travel to its place, from the same place in the lane of the rank that sent it; returns the
    // milliseconds that this takes.
    fly() {
      const middle = (box) => [box.left + box.width / 2, box.top + box.height / 2];
      const pieces = [...this.stage.querySelectorAll(".player-arrives, .player-parcel")];
      for (const piece of pieces) {
        const from = Number(piece.dataset.from);
        const lane = this.stage.querySelector(`.player-lane[data-rank="${from}"]`);
        const block = piece.closest(".player-block");
        const origin = block && lane.querySelector(`.player-block[data-tensor="${block.dataset.tensor}"] .player-map`);
        const [endX, endY] = middle((origin ? piece.parentElement : piece).getBoundingClientRect());
        const [startX, startY] = middle((origin || lane.querySelector(".player-badge")).getBoundingClientRect());
        const start = `translate(${startX - endX}px, ${startY - endY}px)`;
        piece.animate([{ transform: start, zIndex: 3 }, { transform: "none", zIndex: 3 }], {
          duration: kFlight, delay: kBeforeFlight + from * kNextSender, easing: "cubic-bezier(.45, .05, .3, 1)",
          fill: "backwards",
        });
      }
      return pieces.length ? kBeforeFlight + this.recording.ranks.length * kNextSender + kFlight : 0;
    }
  }

  // --- all players of the page ---------------------------------------------------------------------------------------

  function start() {
    for (const root of document.querySelectorAll(".muonwalk-player")) {
      try {
        new Player(root);
      } catch (error) {
        const sentence = `This run can't be replayed: ${error.message}; ` +
                         "building the site again with ./walk docs makes a new recording.";
        root.replaceChildren(make("p", { class: "player-broken", role: "status" }, sentence));
        root.dataset.broken = "yes";
      }
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
