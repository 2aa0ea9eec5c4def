// The recording of a run: read from the page, unpacked, and checked, so that all that is drawn of it is there.
(function (mw) {
  "use strict";

  const kFormat = "muonwalk-recording";
  const kVersion = 1;

  const elementsOf = (block) => block.rows * block.cols;
  const isWhole = (block) => !block.unit || (block.begin === 0 && block.end === block.of);

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

  // Spans, [tensor, begin, end, first], follow each other within their block.
  function checkSpans(block, tensors, where) {
    let last = 0;
    for (const [tensor, begin, end, first] of block.spans) {
      requireThat(tensors[tensor], `${where} has a span of a tensor that is not in the list`);
      requireThat(begin >= last && end >= begin && end <= elementsOf(block) && first >= 0,
                  `${where} has a span outside of ${block.name}`);
      last = end;
    }
  }

  function checkStep(step, recording) {
    const { ranks, tensors } = recording;
    const where = `step ${step.number}`;
    requireThat(Array.isArray(step.lines) && Array.isArray(step.moves), `${where} has no lines or no moves`);
    for (const list of ["holds", "says"])
      requireThat(Array.isArray(step[list]) && step[list].length === ranks.length,
                  `${where} needs one list "${list}" for each of ${mw.count(ranks.length, "rank")}`);
    for (const block of step.holds.flat()) {
      requireThat(tensors[block.tensor], `${where} shows a tensor that is not in the list`);
      requireThat(!block.values || block.values.length === elementsOf(block),
                  `${where} has not as many numbers of ${block.name} as its shape says`);
      if (block.spans) checkSpans(block, tensors, where);
    }
    if (recording.kinds) step.moves = step.moves.map((row) => unpacked(row, recording.kinds, where));
    for (const move of step.moves)
      requireThat(ranks[move.from] && ranks[move.to], `${where} has a message from or to a rank that is not there`);
  }

  // A recording that passes has everything that is drawn.
  function checkRecording(recording) {
    if (!recording || recording.format !== kFormat) throw new Error("this is not the recording of a lesson");
    if (recording.version !== kVersion)
      throw new Error(`the recording has version ${recording.version}, and this player reads version ${kVersion}`);
    const { ranks, steps, palette, grid } = recording;
    for (const list of ["ranks", "steps", "tensors", "before", "after"])
      requireThat(Array.isArray(recording[list]), `it has no list "${list}"`);
    requireThat(steps.length > 0 && ranks.length > 0, "it has no step or no rank");
    requireThat(grid && grid.dp > 0 && grid.tp > 0 && grid.pp > 0, "it has no grid");
    requireThat(palette && palette.tensors && palette.tensors.length && palette.ranks && palette.ranks.length,
                "it has no palette");
    for (const step of steps) checkStep(step, recording);
    return recording;
  }

  // The frames in the order in which they are played: "moves", only where something travels, shows the pieces on their
  // way, "holds" what the ranks hold when the step has ended.
  function framesOf(recording) {
    return recording.steps.flatMap((step, index) =>
      (step.moves.length ? ["moves", "holds"] : ["holds"]).map((phase) => ({ step: index, phase })));
  }

  Object.assign(mw, { readJson, checkRecording, framesOf, elementsOf, isWhole });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
