// Replays a recorded run of a lesson: what every rank holds, and what travels between them, step by step.
//
// A page holds <div class="muonwalk-player" data-recording="ID" data-code="ID"> and two <script
// type="application/json"> with these ids: the file that a lesson writes with --record, and the code of its steps
// (code_pane.js). The scripts need no network and no others; every player of a page stands for itself, and the first
// one follows the text.
(function (mw) {
  "use strict";

  const { make } = mw;
  const kReadingTime = 2600;   // milliseconds that a frame stays while the player plays by itself, at speed 1
  const kSpeeds = [0.5, 1, 2, 4];
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  let players = 0;

  class Player {
    constructor(root) {
      this.root = root;
      this.recording = mw.checkRecording(mw.readJson(root.dataset.recording, "recording"));
      this.elements = new mw.Elements(this.recording);
      this.frames = mw.framesOf(this.recording);
      this.at = 0;
      this.arriving = new Map();
      this.pinned = { rank: 0, item: 0, element: null };  // what was chosen by click, touch or focus …
      this.hovered = null;                                // … or, as long as the pointer is over it, by the pointer
      this.watched = null;                                // the rank whose traffic alone is shown, as long as asked …
      this.watchedAlways = null;                          // … or until its button is pressed again
      this.speed = 1;
      this.timer = null;
      this.build(`player-${++players}`, root.dataset.code ? mw.readJson(root.dataset.code, "code") : null);
      this.show(0);
      this.follower.look();
      this.fit();
      new ResizeObserver(() => this.fit()).observe(this.stage.element);
    }

    // The parts that stay: the controls, and places of constant height for everything that changes.
    build(id, code) {
      const { heading, lesson, grid, ranks, steps } = this.recording;
      this.stage = new mw.Stage(this);
      this.code = new mw.CodePane(code);
      this.inspector = new mw.Inspector(this);
      this.card = new mw.ElementCard(this);
      this.title = make("p", { class: "player-title", id: `${id}-title` });
      this.said = make("p", { class: "player-said", "aria-live": "polite" });
      this.words = make("div", { class: "player-words" }, this.title, this.said);
      this.root.textContent = "";
      this.root.append(make("div", { class: "player-body" }, this.buildBar(), this.words,
        make("div", { class: "player-left" }, this.stage.element, mw.drawLegend(this.recording)),
        this.recording.tensors.length ? this.card.element : null,
        make("div", { class: "player-right" }, this.code.element, this.inspector.element)));
      if (!code) this.code.element.remove();
      const run = lesson ? `lesson ${lesson.number}, ${lesson.title}` : heading;
      const label = `a run of ${run}: dp ${grid.dp} × tp ${grid.tp} × pp ${grid.pp}, ${mw.count(ranks.length, "rank")}; ` +
                    `left and right arrow keys go through its ${mw.count(steps.length, "step")}, the space bar plays it`;
      const attributes = { role: "group", tabindex: "0", "aria-roledescription": "player", "aria-label": label };
      for (const [name, value] of Object.entries(attributes)) this.root.setAttribute(name, value);
      this.root.addEventListener("keydown", (event) => this.key(event));
      this.root.dataset.frames = this.frames.length;
    }

    buildBar() {
      const button = (name, label, sign, action) =>
        make("button", { type: "button", class: `player-button player-${name}`, "aria-label": label, title: label,
                         onclick: action }, sign);
      this.playButton = button("play", "play", "", () => this.playOrPause());
      this.firstButton = button("first", "first frame (Home)", "⇤", () => this.show(0));
      this.backButton = button("back", "back (left arrow key)", "←", () => this.step(-1));
      this.forwardButton = button("forward", "forward (right arrow key)", "→", () => this.step(1));
      this.lastButton = button("last", "last frame (End)", "⇥", () => this.show(this.frames.length - 1));
      const goTo = (step) => this.show(this.frames.findIndex((frame) => frame.step === step));
      this.stepButtons = this.recording.steps.map((step, index) =>
        make("button", { type: "button", class: "player-tick", "aria-label": `step ${step.number}: ${step.title}`,
                         title: step.title, onclick: () => goTo(index) }, `${step.number}`));
      this.progress = make("p", { class: "player-progress" });
      const speeds = make("select", { class: "player-speed", "aria-label": "speed", onchange: (event) => (this.speed = Number(event.target.value)) },
        ...kSpeeds.map((speed) => make("option", { value: speed, selected: speed === 1 && "selected" }, `${speed} ×`)));
      this.follower = new mw.Follower(this, players === 1 ? [...document.querySelectorAll("[data-mw-steps]")] : []);
      const key = (...names) => names.map((name) => make("kbd", {}, name));
      const hints = make("p", { class: "player-keys" }, ...key("space"), " plays ", ...key("←", "→"), " frame ", ...key("Home", "End"));
      return make("div", { class: "player-bar" },
        make("div", { class: "player-buttons" }, this.firstButton, this.backButton, this.playButton, this.forwardButton, this.lastButton),
        make("div", { class: "player-steps", role: "group", "aria-label": "steps" }, ...this.stepButtons),
        this.progress, make("div", { class: "player-more" }, speeds, this.follower.toggle, hints));
    }

    // Arrow keys, Home, End and the space bar, while the focus is in the player; inside something that scrolls or takes
    // text they keep their meaning, and so does the space bar on a button.
    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (event.target.closest(".player-scroll, input, textarea, select, [contenteditable]")) return;
      if (event.key === " ") {
        if (event.target.closest(".player-bar button, .player-tab, .player-badge, summary, a")) return;
        event.preventDefault();
        this.playOrPause();
        return;
      }
      const last = this.frames.length - 1;
      const frame = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: last }[event.key];
      if (frame === undefined) return;
      event.preventDefault();
      this.pause();
      this.show(frame);
    }

    playOrPause() {
      if (this.timer) this.pause();
      else this.play();
    }

    play() {
      const atEnd = this.at === this.frames.length - 1;
      const next = () => {
        if (this.at === this.frames.length - 1) return this.pause();
        this.show(this.at + 1);
        this.timer = setTimeout(next, kReadingTime / this.speed + this.flight);
      };
      if (atEnd) this.show(0);
      this.timer = setTimeout(next, atEnd ? kReadingTime / this.speed : 0);
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

    step(by) {
      this.show(this.at + by);
    }

    // Shows the first of these steps, by number; where one of them is shown already, that one stays.
    showStep(numbers) {
      if (numbers.includes(this.recording.steps[this.frame.step].number)) return;
      const at = this.frames.findIndex(({ step }) => this.recording.steps[step].number === numbers[0]);
      this.show(at);
    }

    // Shows frame `at`; beyond either end nothing happens.
    show(at) {
      if (at < 0 || at >= this.frames.length) return;
      this.at = at;
      const frame = this.frames[at];
      const step = this.recording.steps[frame.step];
      this.frame = frame;
      Object.assign(this.root.dataset, { frame: at, step: step.number, phase: frame.phase });
      this.stickToTop(this.root);
      this.showWords(frame, step);
      this.stage.show(frame);
      this.code.show(step.number, frame.phase);
      this.inspector.showFrame(step, frame.step === 0, at === this.frames.length - 1);
      this.follower.showFrame();
      this.pinned.element = null;
      this.hovered = null;
      this.showPointed();
      this.showWatched();
      const flies = frame.phase === "moves" && !still.matches;
      this.flight = flies ? this.stage.fly(this.speed) : 0;
    }

    // What arrives in a frame's step, worked out once; in a step without messages nothing does.
    arrivingIn(frame) {
      if (!this.recording.steps[frame.step].moves.length) return null;
      if (!this.arriving.has(frame.step)) this.arriving.set(frame.step, mw.arrivals(this.recording, frame.step));
      return this.arriving.get(frame.step);
    }

    // Nothing may move from frame to frame: all have the room of the largest. Arrows follow the lanes.
    fit() {
      this.stage.keepHeight(this.frames);
      const width = this.words.clientWidth;
      if (width && width !== this.fitted) {
        this.fitted = width;
        this.words.style.minHeight = "";
        const probe = this.words.cloneNode(true);
        probe.classList.add("player-probe");
        probe.querySelectorAll("[id], [aria-live]").forEach((part) => ["id", "aria-live"].forEach((name) => part.removeAttribute(name)));
        probe.style.width = `${width}px`;
        this.words.after(probe);
        const heights = this.frames.map((frame) => {
          probe.firstChild.textContent = this.recording.steps[frame.step].title;
          probe.lastChild.textContent = mw.sentenceOf(this.recording, frame);
          return probe.getBoundingClientRect().height;
        });
        probe.remove();
        this.words.style.minHeight = `${Math.ceil(Math.max(...heights))}px`;
      }
      this.stage.drawArrows();
      this.showWatched();
    }

    // What sticks to the top of what scrolls. Browsers keep the padding of a scrolling element above it, so that other
    // lines would show there; --above takes it back.
    stickToTop(element) {
      let scrolling = this.root.parentElement;
      while (scrolling && !/auto|scroll/.test(getComputedStyle(scrolling).overflowY)) scrolling = scrolling.parentElement;
      element.style.setProperty("--above", scrolling ? `-${getComputedStyle(scrolling).paddingTop}` : "0px");
    }

    showWords(frame, step) {
      const phase = frame.phase === "moves" ? "what moves" : "what is held";
      this.progress.textContent = `step ${frame.step + 1} of ${this.recording.steps.length} · ${phase}`;
      this.title.textContent = step.title;
      this.said.textContent = mw.sentenceOf(this.recording, frame);
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
    }

    // --- what the reader points at ---

    choose(place) {
      this.pinned = place;
      this.hovered = null;
      this.showPointed();
    }

    // Moving the pointer counts, not that a block comes to lie under it when the page scrolls.
    point(place) {
      const same = (a, b) => a === b || Boolean(a && b && a.rank === b.rank && a.item === b.item &&
                                                (mw.sameElement(a.element, b.element) || (!a.element && !b.element)));
      if (same(place, this.hovered)) return;
      this.hovered = place;
      this.showPointed();
    }

    // The numbers of the block that is pointed at, and its element wherever it is; where this frame hasn't got the block,
    // the nearest one that there is.
    showPointed() {
      const wanted = this.hovered || this.pinned;
      const ranks = [wanted.rank, ...this.recording.ranks.keys()];
      const rank = ranks.find((candidate) => this.stage.items(candidate).length);
      const items = rank === undefined ? [] : this.stage.items(rank);
      const item = Math.min(wanted.item, items.length - 1);
      this.stage.press(rank, item);
      this.inspector.showNumbers(rank, item, items.length ? items[item].target : null);
      for (const part of [this.stage, this.inspector, this.follower]) part.light(wanted.element);
      this.code.light(Boolean(wanted.element));
      this.card.show(wanted);
      this.root.dataset.lit = wanted.element ? this.elements.nameOf(wanted.element) : "";
    }

    // Shows the traffic of one rank alone, for as long as it is pointed at; null ends it. What stays does so until the
    // same rank is asked for again.
    watch(rank, stays = false) {
      if (stays) {
        this.watchedAlways = this.watchedAlways === rank ? null : rank;
        this.watched = null;
      } else {
        this.watched = rank;
      }
      this.showWatched();
    }

    showWatched() {
      const rank = this.watched !== null ? this.watched : this.watchedAlways;
      this.stage.only(rank, this.watchedAlways);
      this.inspector.only(rank);
      this.root.dataset.only = rank === null ? "" : rank;
    }
  }

  // --- all players of the page ---------------------------------------------------------------------------------------

  function start() {
    for (const root of document.querySelectorAll(".muonwalk-player")) {
      try {
        new Player(root);
        document.documentElement.classList.add("muonwalk-plays");  // what it shows is not told twice
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
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
