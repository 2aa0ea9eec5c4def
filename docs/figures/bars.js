// Bars over dp and tp: shows what the program computed for the combination that is chosen. It computes nothing itself: a part of a
// bar is as long as its number beside the longest bar of its scale, and the numbers are the program's own words.
(function () {
  "use strict";
  document.documentElement.classList.add("mwf-scripts");

  // What is chosen, a value for each choice.
  function chosenIn(figure, data) {
    return data.choices.map((choice) => {
      const control = document.getElementById(`${figure.id}-${choice.name}`);
      return control.type === "range" ? choice.values[Number(control.value)] : control.value;
    });
  }

  // The bars of a combination, or a sentence; the last choice runs fastest.
  function stateOf(data, chosen) {
    return data.states[data.choices.reduce((at, choice, i) => at * choice.values.length + choice.values.indexOf(chosen[i]), 0)];
  }

  function showRow(line, bar, most) {
    line.querySelectorAll(".mwf-part").forEach((part, i) => {
      const value = bar[0][i] || 0;
      part.style.setProperty("--share", most ? (value / most).toFixed(5) : 0);
      part.classList.toggle("mwf-nothing", !value);
    });
    line.querySelectorAll(".mwf-number").forEach((cell, i) => { cell.textContent = bar[1][i]; });
  }

  function show(figure, data) {
    const chosen = chosenIn(figure, data), state = stateOf(data, chosen);
    data.choices.forEach((choice, i) => {
      const now = document.getElementById(`${figure.id}-${choice.name}-now`);
      if (!now) return;
      now.textContent = chosen[i];
      document.getElementById(`${figure.id}-${choice.name}`).setAttribute("aria-valuetext", chosen[i]);
    });
    const refused = typeof state === "string";
    figure.classList.toggle("mwf-gone", refused);
    figure.querySelector(".mwf-refused").textContent = refused ? state : "";
    if (refused) return;
    const others = chosen.slice(2).map((value) => `|${value}`).join("");
    const sum = (bar) => bar[0].reduce((all, part) => all + part, 0);
    const room = data.each_by_itself ? Math.max(...state.map(sum)) : null;
    figure.querySelectorAll("tbody tr").forEach((line, i) => showRow(line, state[i], room ?? data.most[data.rows[i].scale + others]));
  }

  for (const figure of document.querySelectorAll(".mwf-bars-figure")) {
    const data = JSON.parse(document.getElementById(figure.dataset.figure).textContent);
    for (const type of ["input", "change"]) figure.addEventListener(type, () => show(figure, data));
    show(figure, data);  // a browser may have kept where the sliders stood
  }
})();
