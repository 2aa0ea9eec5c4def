// While the text of a step is read, the player shows that step, small, at the top of what scrolls.
//
// The site marks where the text of a step begins with data-mw-steps="2 4", the numbers of the steps that its function
// made; an empty list ends it. What is read is what stands in the middle of the window.
(function (mw) {
  "use strict";

  const { make } = mw;
  const kRemembered = "muonwalk-follow";
  const kReadAt = 0.5;          // of the window's height
  const kRoom = { high: 22, wide: 64 };

  // What scrolls the page around an element: an element of its own, or the document.
  function scrollerOf(element) {
    let scrolling = element.parentElement;
    while (scrolling && !/auto|scroll/.test(getComputedStyle(scrolling).overflowY)) scrolling = scrolling.parentElement;
    return scrolling || document.documentElement;
  }

  // What the reader has chosen, where the browser remembers it.
  function remembered() {
    try {
      return localStorage.getItem(kRemembered) !== "no";
    } catch (error) {
      return true;
    }
  }

  function remember(follows) {
    try {
      localStorage.setItem(kRemembered, follows ? "yes" : "no");
    } catch (error) {
      // A browser that remembers nothing follows on the next page again.
    }
  }

  class Follower {
    // `marks` are those of the text; without any, nothing is followed.
    constructor(player, marks) {
      this.player = player;
      this.marks = marks;
      this.follows = this.marks.length > 0 && remembered();
      this.read = null;
      this.toggle = make("button", { type: "button", class: "player-button player-follow", title: "show the step that is being read",
                                     onclick: () => this.set(!this.follows) }, "Follow the text");
      this.toggle.hidden = !this.marks.length;
      if (!this.marks.length) return;
      this.buildDock();
      // Whatever scrolls, at most once for each picture of the screen.
      const later = () => {
        if (!this.waiting) this.waiting = requestAnimationFrame(() => this.look());
      };
      window.addEventListener("scroll", later, { capture: true, passive: true });
      window.addEventListener("resize", later);
      this.toggle.setAttribute("aria-pressed", this.follows);
    }

    buildDock() {
      const { player } = this;
      const button = (name, label, sign, action) =>
        make("button", { type: "button", class: `player-button player-${name}`, "aria-label": label, title: label, onclick: action }, sign);
      this.stage = new mw.Stage(player, kRoom);
      this.title = make("p", { class: "player-dock-title" });
      this.dock = make("div", { class: "player-dock", role: "group", "aria-label": "the step that is being read" },
        make("div", { class: "player-dock-body", hidden: "hidden" },
          make("div", { class: "player-dock-bar" }, this.title,
            button("dock-back", "back", "←", () => player.step(-1)),
            button("dock-forward", "forward", "→", () => player.step(1)),
            button("dock-open", "to the player", "↑", () => this.open()),
            button("dock-close", "follow no longer", "×", () => this.set(false))),
          this.stage.element));
      this.body = this.dock.firstElementChild;
      player.root.after(this.dock);
    }

    open() {
      this.player.root.scrollIntoView({ block: "start" });
      this.player.root.focus({ preventScroll: true });
    }

    set(follows) {
      this.follows = follows;
      this.read = null;
      this.toggle.setAttribute("aria-pressed", follows);
      remember(follows);
      this.look();
    }

    // The mark that is being read: the last one above the middle of the window.
    markRead() {
      const line = window.innerHeight * kReadAt;
      let read = null;
      for (const mark of this.marks) {
        const box = mark.getBoundingClientRect();
        if (mark.offsetParent !== null && box.top <= line) read = mark;
      }
      return read;
    }

    look() {
      this.waiting = null;
      if (!this.dock) return;
      const mark = this.follows ? this.markRead() : null;
      const steps = mark ? mark.dataset.mwSteps.split(" ").filter(Boolean).map(Number) : [];
      if (steps.length && mark !== this.read && !this.player.timer) this.player.showStep(steps);
      this.read = mark;
      const scroller = scrollerOf(this.player.root);
      const top = scroller === document.documentElement ? 0 : scroller.getBoundingClientRect().top;
      const away = this.player.root.getBoundingClientRect().bottom < top + 40;
      this.showDock(steps.length > 0 && away, scroller);
    }

    showDock(shown, scroller) {
      if (shown === !this.body.hidden) return;
      this.body.hidden = !shown;
      this.player.stickToTop(this.dock);
      if (shown) {
        this.stage.keepHeight(this.player.frames);
        this.showFrame();
      }
      // What is jumped to stands below the dock, not behind it.
      scroller.style.scrollPaddingTop = shown ? `${this.body.getBoundingClientRect().height + 12}px` : "";
    }

    showFrame() {
      if (!this.dock || this.body.hidden) return;
      const { frame, recording } = this.player;
      const step = recording.steps[frame.step];
      this.title.textContent = `Step ${step.number} · ${step.title} · ${frame.phase === "moves" ? "what moves" : "what is held"}`;
      this.stage.show(frame);
    }

    light(element) {
      if (this.dock && !this.body.hidden) this.stage.light(element);
    }
  }

  Object.assign(mw, { Follower });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
