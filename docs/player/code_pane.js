// The code of the step, with the lines marked that make what the frame shows.
//
// The page brings {"sources": [{"name", "html"}], "steps": [{"step", "shown": [{"source", "moves": [line, …],
// "holds": [line, …]}]}]}. Lines are counted from 0; of several sources the first is shown until the reader chooses.
(function (mw) {
  "use strict";

  const { make } = mw;

  class CodePane {
    constructor(code) {
      this.code = code || { sources: [], steps: [] };
      this.chosen = 0;
      this.tabs = make("div", { class: "player-tabs" });
      this.text = mw.scrollable("div", "player-code", "code of this step");
      this.element = make("section", { class: "player-panel player-source", "aria-label": "the code" }, this.tabs, this.text);
    }

    show(step, phase) {
      const { shown } = this.code.steps.find((entry) => entry.step === step) || { shown: [] };
      this.phase = phase;
      this.shown = shown;
      this.tabs.replaceChildren(...shown.map((entry, index) => {
        const { name } = this.code.sources[entry.source];
        return shown.length === 1 ? make("p", { class: "player-caption" }, name)
          : make("button", { type: "button", class: "player-tab", "aria-pressed": index === this.which(), onclick: () => {
              this.chosen = index;
              this.show(step, phase);
              this.tabs.children[index].focus();
            } }, name);
      }));
      this.showText();
    }

    which() {
      return Math.min(this.chosen, this.shown.length - 1);
    }

    showText() {
      const entry = this.shown[this.which()];
      this.element.classList.toggle("player-empty", !entry);
      if (!entry) {
        this.text.replaceChildren(make("p", { class: "player-quiet" }, "This step has no code of its own."));
        this.source = null;
        return;
      }
      // The site wrote and escaped the code; all else is set as text.
      if (this.source !== entry.source) this.text.innerHTML = this.code.sources[entry.source].html;
      this.source = entry.source;
      const lines = [...this.text.querySelectorAll(".line")];
      // A frame without lines of its own has those of the step's other frame.
      const marked = new Set(entry[this.phase].length ? entry[this.phase] : [...entry.moves, ...entry.holds]);
      lines.forEach((line, index) => line.classList.toggle("player-marked", marked.has(index)));
      const first = lines[Math.min(...marked)];
      const top = (line) => line.getBoundingClientRect().top - this.text.getBoundingClientRect().top + this.text.scrollTop;
      if (first) this.text.scrollTop = Math.max(0, top(first) - 2 * first.getBoundingClientRect().height);
    }

    // Lights the lines that are marked.
    light(lit) {
      this.text.classList.toggle("player-lit-code", lit);
    }
  }

  Object.assign(mw, { CodePane });
})((window.muonwalkPlayer = window.muonwalkPlayer || {}));
