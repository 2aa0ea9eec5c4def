// What happened in a frame, in one sentence: for those who listen, and for those who look.
(function (mw) {
  "use strict";

  const { bytesText, capital, count, isWhole, joined, kindsOf, rangeText } = mw;

  function kindText(kind) {
    const sizes = [...new Set(kind.moves.map((move) => move.bytes))];
    const each = sizes.length === 1 ? ` of ${bytesText(sizes[0])}` : "";
    const all = kind.moves.length > 1 ? `, ${bytesText(kind.bytes)} in all` : "";
    return `${kind.collective} over ${kind.group} sends ${count(kind.moves.length, "message")}${each}${all}`;
  }

  // A toy says what the same step sends at the sizes of the run whose output stands on the page.
  const realText = (real) =>
    real ? ` With the matrices of the lesson: ${count(real.messages, "message")}, ${bytesText(real.bytes)}.` : "";

  // A part that all ranks hold is named by its place: of what its name says it may be all, as a bucket of a buffer.
  function amountText(step, block) {
    if (isWhole(block)) return `all of ${block.name}`;
    const alike = (other) => ["tensor", "unit", "begin", "end"].every((key) => other[key] === block[key]);
    const shared = step.holds.every((blocks) => blocks.some(alike));
    return shared ? `${block.name}, ${block.unit} ${rangeText(block)}` : `a part of ${block.name}`;
  }

  // What a rank holds after a step, in a few words; where it shows nothing, that it says something, which stands in its
  // lane.
  function holdingText(step, rank) {
    const blocks = step.holds[rank].map((block) => amountText(step, block));
    if (blocks.length) return `holds ${joined([...new Set(blocks)])}`;
    return step.says[rank].length ? "says what came of it" : "";
  }

  // Ranks that hold alike are named together.
  function sentenceOf(recording, frame) {
    const step = recording.steps[frame.step];
    if (frame.phase === "moves") return `${kindsOf(step.moves).map(kindText).join("; ")}.${realText(step.real)}`;
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
      return `ranks ${joined(ranks)} ${text.replace(/^(hold|say)s/, "$1")}`;
    }).join("; "))}.`;
  }

  Object.assign(mw, { sentenceOf });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
