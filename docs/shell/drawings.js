// A drawing in letters is made to fit a narrow window, where its letters may become too small to be read. Then a button below it
// enlarges it; what is enlarged scrolls sideways by itself.
"use strict";

(() => {
  const kReadable = 9;  // pixels of a letter
  for (const drawing of document.querySelectorAll("pre.fragment")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "mw-enlarge";
    button.textContent = "Enlarge the drawing";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const is_large = drawing.classList.toggle("mw-large");
      button.setAttribute("aria-pressed", String(is_large));
      if (is_large) drawing.tabIndex = 0;
      else drawing.removeAttribute("tabindex");
    });
    drawing.after(button);
    const offer = () => {
      button.hidden = !drawing.classList.contains("mw-large") && parseFloat(getComputedStyle(drawing).fontSize) >= kReadable;
    };
    addEventListener("resize", offer);
    offer();
  }
})();
