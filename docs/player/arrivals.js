// What travels in a step: which message ends up in which part of which block, and what is added to what.
(function (mw) {
  "use strict";

  const { elementsOf, isWhole } = mw;
  const kSums = ["reduce_scatter", "all_reduce"];
  const isSum = (collective) => kSums.includes(collective);

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

  // The last block of a tensor that this rank held before a step, or null.
  function heldBefore(recording, index, rank, tensor) {
    const held = recording.steps.slice(0, index).flatMap((step) => step.holds[rank]);
    return held.filter((block) => block.tensor === tensor).pop() || null;
  }

  // What arrives on every rank in a step:
  //   items    {block, target, pieces, sum}: the block that the rank held before, or null; the one that it holds after;
  //            its pieces, with the rank that each comes from; of a sum the pieces are its terms, all of one place
  //   parcels  {collective, group, from, bytes, messages} for messages of which the recording doesn't say where they
  //            end up, added up for each collective and sender
  function arrivals(recording, index) {
    const step = recording.steps[index];
    return recording.ranks.map((_, rank) => {
      const items = new Map();
      const parcels = new Map();
      const received = step.moves.filter((move) => move.to === rank);
      for (const move of received) {
        const gathers = move.collective === "all_gather";
        const target = targetOf(move, step.holds[rank], received, recording.grid);
        const place = target && (gathers ? partPlace(recording, move.from, target, move) : heldPlace(target));
        if (!place) {
          const key = [move.collective, move.group, move.from].join(" ");
          const { collective, group, from } = move;
          if (!parcels.has(key)) parcels.set(key, { collective, group, from, bytes: 0, messages: 0 });
          parcels.get(key).bytes += move.bytes;
          parcels.get(key).messages += 1;
          continue;
        }
        if (!items.has(target)) {
          const block = heldBefore(recording, index, rank, target.tensor);
          const sum = isSum(move.collective);
          const own = gathers ? partPlace(recording, rank, target, move) : sum || block ? heldPlace(target) : null;
          items.set(target, { block, target, sum, pieces: own ? [{ from: rank, ...own }] : [] });
        }
        items.get(target).pieces.push({ from: move.from, ...place });
      }
      for (const item of items.values()) item.pieces.sort((a, b) => a.from - b.from);
      return { items: [...items.values()], parcels: [...parcels.values()] };
    });
  }

  // Who sends to whom in a step, each pair once: {from, to, bytes}.
  function routesOf(moves) {
    const routes = new Map();
    for (const { from, to, bytes } of moves) {
      const key = `${from} ${to}`;
      if (!routes.has(key)) routes.set(key, { from, to, bytes: 0 });
      routes.get(key).bytes += bytes;
    }
    return [...routes.values()];
  }

  Object.assign(mw, { isSum, kindsOf, heldPlace, arrivals, routesOf });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
