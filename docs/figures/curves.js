// The quintic: other coefficients, another singular value at the start, and a step to look at. Every point is the program's; this
// script only finds its place on the axes.
(function () {
  "use strict";
  document.documentElement.classList.add("mwf-scripts");
  const kSize = 360, kMargin = 40, kHighest = 1.3;
  const y = (value) => 14 + (1 - value / kHighest) * 240;
  const path = (points) => "M" + points.map(([across, up]) => `${across.toFixed(1)} ${up.toFixed(1)}`).join("L");

  class Curves {
    constructor(figure) {
      this.figure = figure;
      this.data = JSON.parse(document.getElementById(figure.dataset.figure).textContent);
      this.set = figure.querySelector("select");
      this.start = figure.querySelector("input");
      this.curve = figure.querySelector('[data-plot="curve"]');
      this.steps = figure.querySelector('[data-plot="steps"]');
      for (const type of ["input", "change"]) figure.addEventListener(type, () => this.show());
      for (const type of ["pointerover", "focusin", "click"])
        figure.addEventListener(type, (event) => {
          const step = event.target.closest("[data-step]");
          if (step) this.light(step.dataset.step);
        });
      this.show();
    }

    x(value) { return kMargin + value / this.data.widest * kSize; }

    // From σ up to the curve, over to the line on which nothing changes, up to the curve again …
    web(values) {
      const points = [[this.x(values[0]), y(0)]];
      for (let i = 1; i < values.length; ++i) points.push([this.x(values[i - 1]), y(values[i])], [this.x(values[i]), y(values[i])]);
      return path(points);
    }

    show() {
      const one = this.data.sets[this.set.selectedIndex];
      const values = one.paths[one.paths.length - 1 - Number(this.start.value)];
      const start = values[0].toFixed(3), last = one.curve.length - 1;
      this.figure.querySelector("output").textContent = start;
      this.start.setAttribute("aria-valuetext", start);
      this.figure.querySelector(".mwf-formula span").textContent = one.formula;
      this.curve.querySelector(".mwf-curve").setAttribute("d", path(one.curve.map((value, i) => [this.x(this.data.widest * i / last), y(value)])));
      this.curve.querySelector(".mwf-web").setAttribute("d", this.web(values));
      const across = (step) => kMargin + kSize * step / (values.length - 1);
      const line = (list) => path(list.map((value, step) => [across(step), y(value)]));
      this.steps.querySelectorAll(".mwf-curve").forEach((each, k) => each.setAttribute("d", line(one.seen[k])));
      this.steps.querySelector(".mwf-web").setAttribute("d", line(values));
      this.steps.querySelectorAll(".mwf-now").forEach((dot, step) => dot.setAttribute("cy", y(values[step]).toFixed(1)));
      this.figure.querySelectorAll("tbody tr").forEach((row, k) =>
        row.querySelectorAll("td").forEach((cell, step) => { cell.textContent = (one.seen[k] || values)[step].toFixed(3); }));
    }

    light(step) {
      for (const each of this.figure.querySelectorAll("[data-step]")) each.classList.toggle("mwf-lit", each.dataset.step === step);
      const one = this.data.sets[this.set.selectedIndex];
      const values = one.paths[one.paths.length - 1 - Number(this.start.value)];
      this.curve.querySelector(".mwf-web").setAttribute("d", this.web(values.slice(0, Number(step) + 1)));
    }
  }

  for (const figure of document.querySelectorAll(".mwf-curves")) new Curves(figure);
})();
