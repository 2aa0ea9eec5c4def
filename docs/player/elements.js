// One element of a parameter, followed through the run: where it lies in each block, and who owns it.
//
// An element is {tensor, row, col} of a whole matrix. Where the recording doesn't say how a matrix was cut, or a block
// has no parameters, it is {tensor, tp, index}: the place in its array on the ranks of one TP coordinate.
(function (mw) {
  "use strict";

  const { elementsOf } = mw;
  const sameElement = (a, b) =>
    Boolean(a && b) && ["tensor", "row", "col", "tp", "index"].every((key) => a[key] === b[key]);

  // How the matrices are cut: for each tensor {cut, slices: {tp: {row, col, cols}}}. Of a matrix that is cut, blocks
  // without a range are the whole; of one that is never cut they are what ranks of one TP coordinate have of it.
  function cutsOf(recording) {
    const cuts = recording.tensors.map(() => ({ cut: false, slices: {} }));
    recording.steps.forEach((step) => step.holds.forEach((blocks, rank) => {
      for (const block of blocks.filter((block) => !block.flat)) {
        const of = cuts[block.tensor];
        const tp = recording.ranks[rank].tp;
        const cut = block.unit === "rows" || block.unit === "columns";
        if (of.cut && !cut) continue;
        if (cut && !of.cut) Object.assign(of, { cut: true, slices: {} });
        of.slices[tp] = { cols: block.cols, row: block.unit === "rows" ? block.begin : 0,
                          col: block.unit === "columns" ? block.begin : 0 };
      }
    }));
    return cuts;
  }

  class Elements {
    constructor(recording) {
      this.recording = recording;
      this.cuts = cutsOf(recording);
      this.owners = new Map();
      // Where a flat block came from the ranks of a TP group, its parts are their slices, one after the other.
      this.arrived = new Map();
      recording.steps.forEach((step, index) => step.moves.length && mw.arrivals(recording, index).forEach(({ items }) =>
        items.forEach(({ target, pieces, sum }) => {
          if (target.flat && !target.spans && !sum && this.cuts[target.tensor].cut) this.arrived.set(target, pieces);
        })));
    }

    // The element at a place of a parameter's slice, counted row by row.
    inSlice(tensor, tp, index) {
      const { cut, slices } = this.cuts[tensor];
      const slice = slices[tp];
      if (!slice) return { tensor, tp, index };
      const [row, col] = [slice.row + Math.floor(index / slice.cols), slice.col + (index % slice.cols)];
      return cut ? { tensor, row, col } : { tensor, tp, row, col };
    }

    // The rank and the place in its slice that stand at a place of a flat block that arrived in parts; else null.
    partOf(block, position) {
      const pieces = this.arrived.get(block);
      if (!pieces) return null;
      const at = (position + 0.5) / elementsOf(block);
      const piece = pieces.find((candidate) => candidate.begin <= at && at < candidate.end);
      return piece && { rank: piece.from, index: position - Math.round(piece.begin * elementsOf(block)) };
    }

    // What stands at a place of a rank's block, or null where it is padding.
    at(rank, block, position) {
      const { tp } = this.recording.ranks[rank];
      if (!block.flat) {
        const row = Math.floor(position / block.cols) + (block.unit === "rows" ? block.begin : 0);
        const col = (position % block.cols) + (block.unit === "columns" ? block.begin : 0);
        return this.cuts[block.tensor].cut ? { tensor: block.tensor, row, col } : { tensor: block.tensor, tp, row, col };
      }
      if (block.spans) {
        const span = block.spans.find(([, begin, end]) => begin <= position && position < end);
        return span ? this.inSlice(span[0], tp, span[3] + position - span[1]) : null;
      }
      const part = this.partOf(block, position);
      if (part) return this.inSlice(block.tensor, this.recording.ranks[part.rank].tp, part.index);
      return this.inSlice(block.tensor, tp, position + (block.unit === "elements" ? block.begin : 0));
    }

    // The places of a rank's block at which an element stands, as a range [first, after] that can be searched.
    rangesOf(rank, block, element) {
      if (!block.flat) return [];
      const { tp } = this.recording.ranks[rank];
      const slice = this.cuts[element.tensor].slices[tp];
      const index = element.index !== undefined ? element.index
        : slice ? (element.row - slice.row) * slice.cols + element.col - slice.col : -1;
      if (block.spans)
        return block.spans.filter(([tensor]) => tensor === element.tensor).map(([, begin, end, first]) =>
          [begin, end, begin + index - first]);
      return [[0, elementsOf(block), index - (block.unit === "elements" ? block.begin : 0)]];
    }

    // At which place of a rank's block an element stands, or -1.
    placeIn(rank, block, element) {
      const stands = (place) => sameElement(this.at(rank, block, place), element);
      if (!block.flat) {
        if (block.tensor !== element.tensor || element.row === undefined) return -1;
        const row = element.row - (block.unit === "rows" ? block.begin : 0);
        const col = element.col - (block.unit === "columns" ? block.begin : 0);
        const inside = row >= 0 && row < block.rows && col >= 0 && col < block.cols;
        return inside && stands(row * block.cols + col) ? row * block.cols + col : -1;
      }
      if (!block.spans && block.tensor !== element.tensor) return -1;
      if (this.arrived.has(block)) return [...Array(elementsOf(block)).keys()].findIndex(stands);
      const found = this.rangesOf(rank, block, element).find(([begin, end, place]) =>
        begin <= place && place < end && stands(place));
      return found ? found[2] : -1;
    }

    // The ranks that own an element: those that hold it where the fewest do. Where all ranks hold it, nobody owns it.
    ownersOf(element) {
      const key = JSON.stringify(element);
      if (this.owners.has(key)) return this.owners.get(key);
      let owners = this.recording.ranks.map((_, rank) => rank);
      for (const step of this.recording.steps) {
        const holders = new Map();
        step.holds.forEach((blocks, rank) => blocks.forEach((block) => {
          if (this.placeIn(rank, block, element) < 0) return;
          holders.set(block.name, (holders.get(block.name) || new Set()).add(rank));
        }));
        for (const ranks of holders.values()) if (ranks.size < owners.length) owners = [...ranks];
      }
      if (owners.length === this.recording.ranks.length && owners.length > 1) owners = [];
      this.owners.set(key, owners);
      return owners;
    }

    // The largest flat block and the largest matrix in which a rank ever holds an element: {bucket, matrix}, each
    // {block, place} or null.
    homesOf(rank, element) {
      const homes = { bucket: null, matrix: null };
      for (const block of this.recording.steps.flatMap((step) => step.holds[rank])) {
        const place = this.placeIn(rank, block, element);
        const kind = block.flat ? "bucket" : "matrix";
        if (place >= 0 && (!homes[kind] || elementsOf(block) > elementsOf(homes[kind].block))) homes[kind] = { block, place };
      }
      return homes;
    }

    // An element as the lessons write it: down[1,6].
    nameOf(element) {
      const { name } = this.recording.tensors[element.tensor];
      return element.row === undefined ? `${name}[${element.index}]` : `${name}[${element.row},${element.col}]`;
    }
  }

  Object.assign(mw, { Elements, sameElement });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
