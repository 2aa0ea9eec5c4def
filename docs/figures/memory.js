// Memory before and after the copy: an element that is pointed at, or has the focus, lights up in both places.
(function () {
  "use strict";
  document.documentElement.classList.add("mwf-scripts");

  function light(figure, cell) {
    const value = cell.dataset.value, places = {};
    for (const each of figure.querySelectorAll("[data-value]")) {
      const lit = each.dataset.value === value;
      each.classList.toggle("mwf-lit", lit);
      if (lit) places[each.closest("svg").dataset.strip] = each.dataset.at;
    }
    figure.querySelector(".mwf-said").textContent =
      `${value}, from tp ${cell.dataset.from}: arrived as element ${places.arrived}; row ${cell.dataset.row}, column ` +
      `${cell.dataset.column} of the matrix, which is its element ${places.copied}.`;
  }

  for (const figure of document.querySelectorAll(".mwf-memory-figure")) {
    const columns = Number(figure.dataset.columns);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const cellOf = (event) => event.target.closest("[data-value]");
    for (const type of ["pointerover", "click", "focusin"])
      figure.addEventListener(type, (event) => { if (cellOf(event)) light(figure, cellOf(event)); });
    light(figure, figure.querySelector(`[data-value="${figure.dataset.marked}"]`));
    // The tab key goes from strip to strip, the arrow keys from element to element.
    figure.addEventListener("keydown", (event) => {
      const cell = cellOf(event);
      if (!cell || !(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
      const all = [...cell.closest("svg").querySelectorAll("[data-value]")];
      const next = all[all.indexOf(cell) + steps[event.key]];
      event.preventDefault();
      if (!next) return;
      cell.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  }
})();
