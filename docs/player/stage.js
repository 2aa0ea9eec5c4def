// The stage: a lane for each rank, as high in every frame as it has to be in the one that shows most.
(function (mw) {
  "use strict";

  const { drawLane, itemsOf, make, rankColour } = mw;

  class Stage {
    // `player` has {recording, elements, arrivingIn(frame)} and is told what the reader points at: point(place),
    // choose(place), watch(rank, stays). A place is {rank, item, element}.
    constructor(player, room) {
      this.player = player;
      this.recording = room ? { ...player.recording, room } : player.recording;
      this.small = Boolean(room);
      this.frame = null;
      this.element = make("div", {
        class: `player-stage${this.small ? " player-small" : ""}`, "data-columns": this.recording.grid.tp === 2 ? 2 : 1,
        "data-ranks": this.recording.ranks.length,
        onpointermove: (event) => event.pointerType === "mouse" && player.point(this.placeAt(event)),
        onpointerleave: () => player.point(null),
        onfocusin: (event) => this.chosen(event),
        onclick: (event) => this.chosen(event),
      });
      this.lanes = this.recording.ranks.map((rank, number) => this.buildLane(rank, number));
      this.element.append(...this.lanes.map((lane) => lane.element));
    }

    buildLane(rank, number) {
      const properties = { class: "player-lane", "data-rank": number, "--rank": rankColour(this.recording.palette, number) };
      const blocks = make("div", { class: "player-blocks" });
      if (this.small) {
        const name = make("span", { class: "player-badge" }, `${number}`);
        return { element: make("div", properties, name, blocks), blocks };
      }
      const { player } = this;
      const badge = make("button", {
        type: "button", class: "player-badge", "aria-pressed": "false", "aria-description": `only the traffic of rank ${number}`,
        title: `only the traffic of rank ${number}`,
        onpointerenter: (event) => event.pointerType === "mouse" && player.watch(number),
        onpointerleave: (event) => event.pointerType === "mouse" && player.watch(null),
        onfocus: (event) => event.target.matches(":focus-visible") && player.watch(number),
        onblur: () => player.watch(null),
        onclick: () => player.watch(number, true),
      }, ...rank.label.split(/\s{2,}/).map((part) => make("span", {}, part)));
      return { element: make("div", properties, badge, blocks), blocks, badge };
    }

    // The place that a block, or a cell of its map, is: {rank, item, element}; null where there is none.
    placeAt(event) {
      const block = event.target.closest?.(".player-block");
      if (!block) return null;
      const [rank, item] = block.dataset.key.split("/").map(Number);
      const map = event.target.closest(".player-map");
      if (!map || event.clientX === undefined) return { rank, item, element: null };
      const box = map.getBoundingClientRect();
      const { target } = this.items(rank)[item];
      const across = (event.clientX - box.left) / box.width;
      const position = mw.positionAt(target, across, (event.clientY - box.top) / box.height);
      const element = position < 0 ? null : this.player.elements.at(rank, target, position);
      return { rank, item, element, padding: position >= 0 && !element };
    }

    // A click that a key made has no place on the screen.
    chosen(event) {
      const byPointer = event.type === "click" && event.detail > 0;
      const place = byPointer ? this.placeAt(event) : this.placeAt({ target: event.target });
      if (place) this.player.choose(place);
    }

    items(rank) {
      return itemsOf(this.recording, this.frame, rank, this.player.arrivingIn(this.frame));
    }

    // Shows a frame. A block that had the focus before has it after, too.
    show(frame) {
      this.frame = frame;
      const arriving = this.player.arrivingIn(frame);
      const focused = this.element.contains(document.activeElement) && document.activeElement.dataset.key;
      this.lanes.forEach((lane, rank) => lane.blocks.replaceChildren(...drawLane(this.recording, frame, rank, arriving)));
      if (focused) (this.element.querySelector(`[data-key="${focused}"]`) || this.player.root).focus({ preventScroll: true });
      this.drawArrows();
    }

    // What has arrived keeps its outline when the step has ended; the arrows belong to the frame in which it travels.
    drawArrows() {
      this.element.querySelector(".player-arrows")?.remove();
      if (!this.small && this.frame && this.frame.phase === "moves")
        mw.drawArrows(this.element, (rank) => rankColour(this.recording.palette, rank));
    }

    // Makes every lane as high as it ever has to be at this width.
    keepHeight(frames) {
      const width = this.lanes[0].blocks.clientWidth;
      if (!width || width === this.measured) return;
      this.measured = width;
      const highest = this.lanes.map(() => 0);
      const probes = this.lanes.map(() => make("div", { class: "player-blocks player-probe" }));
      this.element.append(...probes);
      for (const frame of frames) {
        const arriving = this.player.arrivingIn(frame);
        probes.forEach((probe, rank) => {
          probe.style.width = `${width}px`;
          probe.replaceChildren(...drawLane(this.recording, frame, rank, arriving));
        });
        probes.forEach((probe, rank) => (highest[rank] = Math.max(highest[rank], Math.ceil(probe.getBoundingClientRect().height))));
      }
      probes.forEach((probe) => probe.remove());
      this.lanes.forEach((lane, rank) => (lane.blocks.style.height = `${highest[rank]}px`));
    }

    // Lights an element wherever it lies in this frame, and the ranks that own it; null lights nothing.
    light(element) {
      const { elements } = this.player;
      const owners = element ? elements.ownersOf(element) : [];
      this.element.querySelectorAll(".player-lit").forEach((lit) => lit.remove());
      this.lanes.forEach((lane, rank) => {
        lane.element.classList.toggle("player-owner", owners.includes(rank));
        if (!element) return;
        this.items(rank).forEach(({ target }, item) => {
          const position = elements.placeIn(rank, target, element);
          if (position < 0) return;
          const block = this.element.querySelector(`[data-key="${rank}/${item}"]`);
          for (const map of block.querySelectorAll(".player-map")) map.append(mw.drawLit(target, position));
        });
      });
    }

    // Shows the traffic of one rank alone; of null, of all.
    only(rank, pinned) {
      const other = (from, to) => rank !== null && Number(from) !== rank && Number(to) !== rank;
      this.element.classList.toggle("player-only", rank !== null);
      this.lanes.forEach(({ element, badge }, number) => {
        element.classList.toggle("player-named", number === rank);
        if (badge) badge.setAttribute("aria-pressed", number === pinned);
        for (const piece of element.querySelectorAll(".player-arrives, .player-parcel"))
          piece.classList.toggle("player-other", other(piece.dataset.from, number));
      });
      for (const arrow of this.element.querySelectorAll(".player-arrow"))
        arrow.classList.toggle("player-other", other(arrow.dataset.from, arrow.dataset.to));
    }

    // Marks the block whose numbers are shown.
    press(rank, item) {
      for (const block of this.element.querySelectorAll(".player-block"))
        block.setAttribute("aria-pressed", block.dataset.key === `${rank}/${item}`);
    }

    // Lets the pieces travel; returns the milliseconds that it takes.
    fly(speed) {
      return mw.fly(this.element, this.recording.ranks.length, speed);
    }
  }

  Object.assign(mw, { Stage });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
