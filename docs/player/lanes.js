// What a frame shows of each rank: its blocks, what arrives in them, and what is added to what.
(function (mw) {
  "use strict";

  const { blockText, bytesText, count, drawMap, grouped, heldPlace, isSum, isWhole, joined, make, rangeText, shapeText } = mw;

  const kMostLines = 3;   // of what a rank says

  // The blocks of a rank's lane in a frame: {target, pieces, sum, before}. `target` is what the map shows. Before a sum
  // stands what the rank adds to it.
  function itemsOf(recording, frame, rank, arriving) {
    const held = (block, more) => ({ target: block, pieces: [{ from: rank, ...heldPlace(block) }], ...more });
    const items = arriving ? arriving[rank].items : [];
    if (frame.phase === "moves")
      return items.flatMap((item) => {
        const target = { target: item.target, pieces: item.pieces, sum: item.sum, before: item.block };
        return item.sum && item.block ? [held(item.block, { adds: true }), target] : [target];
      });
    return recording.steps[frame.step].holds[rank].map((block) => {
      const item = items.find((candidate) => candidate.target === block && !candidate.sum);
      return item ? { target: block, pieces: item.pieces } : held(block);
    });
  }

  // The terms of a sum, one above the other, each outlined in the colour of the rank that it comes from, and the sum.
  function drawSum(recording, { target, pieces }, rank) {
    const row = (sign, piece, name) => make("span", { class: `player-term ${name}` },
      make("span", { class: "player-sign" }, sign), drawMap(recording, target, [piece], rank));
    return make("span", { class: "player-sum", "aria-hidden": "true" },
      ...pieces.map((piece, index) => row(index ? "+" : "", piece, "")),
      row("=", { ...pieces[0], from: rank }, "player-total"));
  }

  // Which part of its whole the map of a block shows.
  const partText = (block) => (block.unit && !isWhole(block) ? `${block.unit} ${rangeText(block)} of ${grouped(block.of)}` : "");

  function spokenText(rank, item) {
    const { target, before } = item;
    const from = item.pieces.map((piece) => piece.from).filter((sender) => sender !== rank);
    const senders = `${from.length === 1 ? "rank" : "ranks"} ${joined(from)}`;
    return [
      `rank ${rank}: ${blockText(target)}`,
      target.unit ? `, of ${target.of}` : "",
      target.note ? `, ${target.note}` : "",
      from.length ? (item.sum ? `; the sum of its own and those of ${senders}` : `; pieces arrive from ${senders}`) : "",
      before && !isWhole(before) && !item.sum ? `; held before: ${before.unit} ${rangeText(before)}` : "",
    ].join("");
  }

  function drawItem(recording, rank, item, index) {
    const { target, before } = item;
    const words = [shapeText(target), bytesText(target.bytes)].join(" · ");
    const grew = before && !item.sum && !isWhole(before) && before.unit && (before.begin !== target.begin || before.end !== target.end);
    const notes = [
      item.adds ? "its own" : "", item.sum ? `sum of ${count(item.pieces.length, "rank")}` : target.note || "", grew ? `${before.unit} ${rangeText(before)} were here` : "",
    ].filter(Boolean);
    return make("button", {
      type: "button", class: `player-block${mw.wholeOf(target).flat ? " player-long" : ""}`, "aria-description": spokenText(rank, item),
      "data-key": `${rank}/${index}`, "data-tensor": target.tensor, "data-adds": item.adds && "yes",
    },
      item.sum ? drawSum(recording, item, rank) : drawMap(recording, target, item.pieces, rank),
      make("span", { class: "player-label" },
        make("b", {}, target.name),
        partText(target) ? make("span", { class: "player-range" }, partText(target)) : null,
        make("span", { class: "player-quiet" }, words),
        ...notes.map((note) => make("span", { class: "player-quiet" }, note))));
  }

  // Messages that have no block to end up in, one line for each collective; those of a sum stand between plus signs.
  function drawParcels(recording, rank, parcels) {
    const kinds = [...new Set(parcels.map(({ collective, group }) => `${collective} over ${group}`))];
    return kinds.map((kind) => {
      const of = parcels.filter(({ collective, group }) => `${collective} over ${group}` === kind).sort((a, b) => a.from - b.from);
      const sum = isSum(of[0].collective);
      const chip = (from, words) => make("span", { class: `player-parcel${from === rank ? " player-mine" : ""}`, "data-from": from,
        "--rank": mw.rankColour(recording.palette, from) }, words);
      const chips = of.map(({ from, bytes }) => chip(from, `${kinds.length > 1 ? "" : "from "}rank ${from}: ${bytesText(bytes)}`));
      const sign = (text) => make("span", { class: "player-sign" }, text);
      const parts = sum ? [chip(rank, "its own"), ...chips].flatMap((part, at) => (at ? [sign("+"), part] : [part])) : chips;
      return make("div", { class: "player-parcels" },
        kinds.length > 1 ? make("span", { class: "player-kind" }, of[0].collective) : null,
        ...parts, sum ? sign("= the sum") : null);
    });
  }

  function drawLane(recording, frame, rank, arriving) {
    const step = recording.steps[frame.step];
    const blocks = itemsOf(recording, frame, rank, arriving).map((item, index) => drawItem(recording, rank, item, index));
    const word = (text, quiet) => make("p", { class: `player-word${quiet ? " player-quiet" : ""}` }, text);
    if (frame.phase === "holds") {
      const lines = step.says[rank];
      const says = lines.slice(0, kMostLines).map((line) => word(line));
      if (lines.length > kMostLines) says.push(word(`and ${count(lines.length - kMostLines, "line")} more, among the prints`, true));
      return blocks.length + says.length ? [...blocks, ...says] : [word("shows nothing", true)];
    }
    const parcels = drawParcels(recording, rank, arriving[rank].parcels);
    return blocks.length + parcels.length ? [...blocks, ...parcels] : [word("receives nothing", true)];
  }

  Object.assign(mw, { itemsOf, drawLane });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
