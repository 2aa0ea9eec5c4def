// A word of the glossary says what it means where it stands: under the pointer, under the keyboard's focus, and on a touch, where
// a second touch follows its link. Escape closes it.
"use strict";

(() => {
  const tip = document.createElement("div");
  tip.className = "mw-tip";
  tip.id = "mw-tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  const kLinger = 200;  // milliseconds in which the pointer may go from the word to what it means
  let word = null;
  let leaving = 0;
  let touched = null;

  function show(link) {
    clearTimeout(leaving);
    if (word === link) return;
    hide();
    word = link;
    const name = document.createElement("b");
    name.textContent = link.textContent;
    tip.replaceChildren(name, `: ${link.dataset.meaning}`);
    tip.hidden = false;
    link.setAttribute("aria-describedby", tip.id);
    // Below the word, or above it where there is more room; never past the sides.
    const at = link.getClientRects()[0], size = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    const below = at.bottom + size.height + 12 < innerHeight || at.top < size.height + 12;
    tip.style.left = `${scrollX + Math.max(8, Math.min(at.left, wide - size.width - 8))}px`;
    tip.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - size.height - 6)}px`;
  }

  function hide() {
    clearTimeout(leaving);
    if (word) word.removeAttribute("aria-describedby");
    word = touched = null;
    tip.hidden = true;
  }

  const leave = () => { leaving = setTimeout(hide, kLinger); };
  for (const link of document.querySelectorAll("a.mw-word")) {
    link.dataset.meaning = link.title;
    link.removeAttribute("title");
    link.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch") show(link); });
    link.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") leave(); });
    link.addEventListener("focus", () => show(link));
    link.addEventListener("blur", hide);
    link.addEventListener("click", (event) => {
      if (event.pointerType !== "touch" || touched === link) return;
      event.preventDefault();
      show(link);
      touched = link;
    });
  }
  tip.addEventListener("pointerenter", () => clearTimeout(leaving));
  tip.addEventListener("pointerleave", leave);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("pointerdown", (event) => { if (word && !word.contains(event.target) && !tip.contains(event.target)) hide(); });
})();
