// Arrows between the lanes, from what a rank sent to where it arrived, and the flight of the pieces along them.
(function (mw) {
  "use strict";

  const kBeforeFlight = 150;   // milliseconds before the first piece starts
  const kFlight = 800;         // milliseconds that one piece travels
  const kNextSender = 180;     // milliseconds after which the next rank's pieces start
  const kManyArrows = 40;      // more arrows than this are drawn thin
  const kSvg = "http://www.w3.org/2000/svg";

  const middle = (box) => ({ x: box.left + box.width / 2, y: box.top + box.height / 2 });
  const laneOf = (stage, rank) => stage.querySelector(`.player-lane[data-rank="${rank}"]`);
  const visible = (box) => box.width > 0 && box.height > 0;

  // Everything in a stage that has come from another rank.
  const arrivedIn = (stage) => [...stage.querySelectorAll(".player-arrives, .player-parcel:not(.player-mine)")];

  // Where the sender had what arrived as this piece: the same place of what it adds, its own piece of the same tensor,
  // or else the sender's name; as a box on the screen.
  function originOf(stage, piece) {
    const lane = laneOf(stage, piece.dataset.from);
    const block = piece.closest(".player-block");
    const badge = lane.querySelector(".player-badge").getBoundingClientRect();
    if (!block) return badge;
    const same = `.player-block[data-tensor="${block.dataset.tensor}"]`;
    if (piece.closest(".player-sum")) {
      const map = lane.querySelector(`${same}[data-adds] .player-map`);
      if (!map) return badge;
      const whole = map.getBoundingClientRect();
      const target = piece.parentElement.getBoundingClientRect();
      const at = piece.getBoundingClientRect();
      const left = whole.left + ((at.left - target.left) / target.width) * whole.width;
      return new DOMRect(left, whole.top, (at.width / target.width) * whole.width, whole.height);
    }
    const own = lane.querySelector(`${same}:not([data-adds]) .player-own`);
    return own ? own.getBoundingClientRect() : badge;
  }

  const draw = (tag, attributes) => {
    const element = document.createElementNS(kSvg, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // One arrow, from box to box: it leaves and arrives at the edges that face each other, and bends a little, so that
  // arrows of one column can be told apart.
  function drawArrow(from, to, frame, bend) {
    const [a, b] = [middle(from), middle(to)];
    const across = Math.abs(a.y - b.y) < 4;
    const edge = (box, centre, other) => across
      ? { x: other.x > centre.x ? box.right : box.left, y: centre.y }
      : { x: centre.x, y: other.y > centre.y ? box.bottom : box.top };
    const start = edge(from, a, b);
    const end = edge(to, b, a);
    for (const point of [start, end]) {
      point.x -= frame.left;
      point.y -= frame.top;
    }
    const control = across ? { x: (start.x + end.x) / 2, y: start.y - 14 - bend }
                           : { x: (start.x + end.x) / 2 + 12 + bend, y: (start.y + end.y) / 2 };
    const angle = Math.atan2(end.y - control.y, end.x - control.x);
    const barb = (turn) => `${end.x - 8 * Math.cos(angle + turn)} ${end.y - 8 * Math.sin(angle + turn)}`;
    const path = `M${start.x} ${start.y}Q${control.x} ${control.y} ${end.x} ${end.y}`;
    return [draw("path", { class: "player-arrow-halo", d: path }), draw("path", { class: "player-arrow-line", d: path }),
            draw("path", { class: "player-arrow-head", d: `M${end.x} ${end.y}L${barb(0.42)}L${barb(-0.42)}Z` })];
  }

  // Draws the arrows of what has arrived in a stage; messages without a place have one for each pair of ranks.
  function drawArrows(stage, colourOf) {
    const pairs = new Set();
    const arrived = arrivedIn(stage).filter((piece) => {
      if (!piece.classList.contains("player-parcel")) return true;
      const pair = `${piece.dataset.from} ${piece.closest(".player-lane").dataset.rank}`;
      return !pairs.has(pair) && pairs.add(pair);
    });
    if (!arrived.length) return;
    const frame = stage.getBoundingClientRect();
    const many = arrived.length > kManyArrows ? " player-many" : "";
    const svg = draw("svg", { class: `player-arrows${many}`, "aria-hidden": "true", width: frame.width, height: frame.height });
    for (const piece of arrived) {
      const { from } = piece.dataset;
      const to = piece.closest(".player-lane").dataset.rank;
      const boxes = [originOf(stage, piece), piece.getBoundingClientRect()];
      if (!boxes.every(visible)) continue;
      const group = draw("g", { class: "player-arrow", "data-from": from, "data-to": to });
      group.style.setProperty("--rank", colourOf(Number(from)));
      group.append(...drawArrow(...boxes, frame, 7 * Math.abs(Number(from) - Number(to))));
      svg.append(group);
    }
    stage.append(svg);
  }

  // Lets every piece travel to its place; returns the milliseconds that this takes. Pieces on their way never widen the page.
  function fly(stage, ranks, speed) {
    const pieces = arrivedIn(stage);
    const flights = pieces.map((piece) => {
      const end = middle(piece.getBoundingClientRect());
      const start = middle(originOf(stage, piece));
      return piece.animate([{ transform: `translate(${start.x - end.x}px, ${start.y - end.y}px)`, zIndex: 3 }, { transform: "none", zIndex: 3 }], {
        duration: kFlight / speed, delay: (kBeforeFlight + Number(piece.dataset.from) * kNextSender) / speed,
        easing: "cubic-bezier(.45, .05, .3, 1)", fill: "backwards",
      });
    });
    stage.classList.toggle("player-flying", flights.length > 0);
    Promise.allSettled(flights.map((flight) => flight.finished)).then(() => {
      if (!stage.getAnimations({ subtree: true }).length) stage.classList.remove("player-flying");
    });
    return pieces.length ? (kBeforeFlight + ranks * kNextSender + kFlight) / speed : 0;
  }

  Object.assign(mw, { drawArrows, fly });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
