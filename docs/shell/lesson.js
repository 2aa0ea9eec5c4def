// What a reader chooses and has done, remembered by the browser: the plain program, predictions, and which lessons are done. A
// lesson is done when its output and its answer have been opened. On the start page, the lessons that are done are ticked.
"use strict";

(() => {
  const page = document.documentElement;
  const kPlain = "muonwalk.plain", kProgress = "muonwalk.progress";

  // A browser may keep nothing of pages opened from files; then all of this lasts as long as the page.
  function kept(key) {
    try { return localStorage.getItem(key); } catch (error) { return null; }
  }
  function keep(key, value) {
    try {
      if (value === null) localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch (error) { /* as above */ }
  }

  let progress = {};
  try {
    const read = JSON.parse(kept(kProgress));
    if (read && typeof read === "object") progress = read;
  } catch (error) { /* what another program has left there */ }

  const isDone = (lesson) => Boolean(progress[lesson] && progress[lesson].output && progress[lesson].answer);

  function tick() {
    for (const old of document.querySelectorAll(".mw-done-mark")) old.remove();
    for (const item of document.querySelectorAll("[data-progress]")) {
      if (!isDone(item.dataset.progress)) continue;
      const mark = document.createElement("span");
      mark.className = "mw-done-mark";
      mark.textContent = "✔";
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", "done");
      (item.querySelector(".mw-name") || item.querySelector("a")).append(mark);
    }
  }

  // --- on a lesson's page ----------------------------------------------------------------------------------------------------------

  const controls = document.querySelector(".mw-controls[data-lesson]");
  if (controls) {
    const lesson = controls.dataset.lesson;
    const plain = controls.querySelector(".mw-plain-switch");
    const mine = () => progress[lesson] = progress[lesson] || {};

    function remember(what, value) {
      mine()[what] = value;
      keep(kProgress, JSON.stringify(progress));
      tick();
    }

    const setPlain = (is_plain) => {
      page.classList.toggle("mw-plain", is_plain);
      plain.setAttribute("aria-pressed", String(is_plain));
    };
    setPlain(kept(kPlain) === "yes");
    plain.addEventListener("click", () => {
      const is_plain = plain.getAttribute("aria-pressed") !== "true";
      keep(kPlain, is_plain ? "yes" : null);
      setPlain(is_plain);
    });
    for (const button of document.querySelectorAll(".mw-left-out")) {
      button.addEventListener("click", () => {
        const is_shown = button.nextElementSibling.classList.toggle("mw-shown");
        button.setAttribute("aria-expanded", String(is_shown));
      });
    }

    // What the prediction was worth is said when the output is open, and not before.
    const output = document.getElementById(`${lesson}_reveal_output`), answer = document.getElementById(`${lesson}_reveal_answer`);
    const guess = document.querySelector("[data-guess=bytes]"), words = document.querySelector("[data-guess=words]");
    function judge() {
      if (!guess) return;
      const verdict = guess.closest(".mw-guess").querySelector(".mw-verdict");
      const said = guess.value.replace(/[\s,._]|B$/gi, ""), is = Number(guess.dataset.is);
      if (!output.open || said === "") verdict.textContent = "";
      else if (!/^\d+$/.test(said)) verdict.textContent = "That is not a number of bytes.";
      else if (Number(said) === is) verdict.textContent = "✔ Just as many.";
      else verdict.textContent = `The run counts ${is.toLocaleString("en-US")} B.`;
    }
    for (const [field, what] of [[guess, "bytes"], [words, "words"]]) {
      if (!field) continue;
      if (mine()[what]) field.value = mine()[what];
      field.addEventListener("input", () => { remember(what, field.value); judge(); });
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || field !== guess || output.open) return;
        output.open = true;
        remember("output", true);
      });
    }
    for (const [fold, what] of [[output, "output"], [answer, "answer"]]) {
      if (!fold) continue;
      fold.open = Boolean(mine()[what]);
      // Not on every opening: for a printer, and by the browser's own search, it opens as well.
      fold.querySelector("summary").addEventListener("click", () => { if (!fold.open) remember(what, true); });
      fold.addEventListener("toggle", judge);
    }
    judge();
  }

  // --- on the start page -----------------------------------------------------------------------------------------------------------

  const lessons = document.querySelector(".mw-lessons");
  if (lessons && Object.keys(progress).length) {
    const items = [...lessons.querySelectorAll("[data-progress]")];
    const next = items[items.findLastIndex((item) => isDone(item.dataset.progress)) + 1];
    const start = document.querySelector(".mw-start-button");
    let onward = null;
    if (start && next && next !== items[0]) {
      onward = document.createElement("a");
      onward.className = "mw-continue";
      onward.href = next.querySelector("a").getAttribute("href");
      onward.textContent = `Go on with ${next.querySelector(".mw-number").textContent}`;
      start.after(onward);
    }
    const forget = document.createElement("button");
    forget.type = "button";
    forget.className = "mw-forget";
    forget.textContent = "Forget what I have done";
    forget.addEventListener("click", () => {
      progress = {};
      keep(kProgress, null);
      tick();
      if (onward) onward.remove();
      forget.remove();
      lessons.querySelector("a").focus();
    });
    lessons.after(forget);
  }
  tick();
})();
