// The site's search. The field stands on every page; the index, a script as well so that it can be read from file://, is
// loaded when the field is used for the first time. "/" leads to the field, arrow keys and Enter choose, Escape closes.
"use strict";

(() => {
  const field = document.getElementById("mw-search-field");
  const list = document.getElementById("mw-search-results");
  const status = document.getElementById("mw-search-status");
  const kMost = 12;          // results that are shown
  const kSnippet = 150;      // letters of a snippet
  const kKinds = ["Lesson", "Page", "API"];
  const kWeights = [3, 1.5, 0.7];
  const kPageItself = 1.3;   // the beginning of a page, against its sections
  let index = null;          // MiniSearch's, when it is there
  let sections = null;       // [page, anchor, heading, text]
  let chosen = -1;           // the result that Enter would open

  // "ZeRO-1" is found as it is written, and by its parts; so is all_gather.
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)*/gu) || [];
  const withParts = (text) => words(text).flatMap((word) => /[-_]/.test(word) ? [word, ...word.split(/[-_]/)] : [word]);

  function load(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = name;
      script.onload = resolve;
      script.onerror = () => reject(new Error(name));
      document.head.append(script);
    });
  }

  let loading = null;
  function begin() {
    loading = loading || Promise.all([load("minisearch.js"), load("search_index.js")]).then(() => {
      const {pages, sections: all} = window.muonwalkSearch;
      sections = all.map(([page, anchor, heading, text]) => ({page: pages[page], anchor, heading, text}));
      index = new MiniSearch({
        fields: ["title", "heading", "text"],
        extractField: (section, name) => name === "title" ? section.page[1] : section[name],
        tokenize: withParts,
        processTerm: (term) => term,
        searchOptions: {
          tokenize: words,
          boost: {title: 4, heading: 3},
          prefix: (term) => term.length > 2,
          fuzzy: (term) => term.length > 5 && !/[-_\d]/.test(term) ? 0.15 : false,
        },
      });
      index.addAll(sections.map((section, id) => ({id, ...section})));
      document.documentElement.dataset.search = "ready";
      show();
    }).catch((error) => {
      status.className = "";
      status.textContent = `The search can't begin: ${error.message} is missing or broken.`;
    });
  }

  // The best section of each page. All words have to be there; where no section has them all, some are enough.
  function find(query) {
    const boostDocument = (id) => kWeights[sections[id].page[2]] * (sections[id].anchor ? 1 : kPageItself);
    let found = index.search(query, {combineWith: "AND", boostDocument});
    if (!found.length) found = index.search(query, {combineWith: "OR", boostDocument});
    const seen = new Set();
    const best = [];
    for (const {id, terms} of found) {
      const section = sections[id];
      const place = section.page[2] === 2 ? id : section.page[0];
      if (seen.has(place)) continue;
      seen.add(place);
      best.push({...section, terms});
      if (best.length === kMost) break;
    }
    return best;
  }

  // The words around the first one that was found, with those that were found marked.
  function snippet(text, terms) {
    const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
    const pattern = new RegExp(`(${escaped.join("|")})`, "giu");
    const at = Math.max(0, text.search(pattern));
    let from = Math.max(0, at - kSnippet / 3);
    if (from > 0) from = text.indexOf(" ", from) + 1;
    let to = from + kSnippet;
    if (to < text.length) to = Math.max(from, text.lastIndexOf(" ", to));
    const shown = (from > 0 ? "… " : "") + text.slice(from, to) + (to < text.length ? " …" : "");
    return shown.split(pattern).map((part, i) => {
      if (i % 2 === 0) return part;
      const mark = document.createElement("mark");
      mark.textContent = part;
      return mark;
    });
  }

  function item(result, i) {
    const link = document.createElement("a");
    link.href = result.page[0] + (result.anchor ? `#${result.anchor}` : "");
    link.id = `mw-search-result-${i}`;
    link.setAttribute("role", "option");
    link.tabIndex = -1;
    const parts = [["kind", kKinds[result.page[2]]], ["title", result.page[1]], ["heading", result.heading]].map(([name, text]) => {
      const part = document.createElement("span");
      part.className = `mw-search-${name}`;
      part.textContent = text;
      return part;
    });
    const words_around = document.createElement("span");
    words_around.className = "mw-search-snippet";
    words_around.append(...snippet(result.text, result.terms));
    link.append(...parts, words_around);
    return link;
  }

  function choose(next) {
    const items = list.children;
    chosen = items.length ? (next + items.length) % items.length : -1;
    for (let i = 0; i < items.length; ++i) items[i].setAttribute("aria-selected", String(i === chosen));
    if (chosen < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", items[chosen].id);
    items[chosen].scrollIntoView({block: "nearest"});
  }

  function open(is_open) {
    list.style.setProperty("--mw-search-below", `${Math.ceil(field.getBoundingClientRect().bottom) + 3}px`);
    list.hidden = !is_open;
    field.setAttribute("aria-expanded", String(is_open));
  }

  function show() {
    const query = field.value.trim();
    if (!index || !query) {
      open(false);
      status.textContent = "";
      return;
    }
    const began = performance.now();
    const results = find(query);
    list.replaceChildren(...results.map(item));
    list.dataset.took = String(performance.now() - began);
    list.dataset.query = query;
    open(results.length > 0);
    status.className = results.length ? "mw-search-heard" : "";
    status.textContent = results.length ? `${results.length} result${results.length > 1 ? "s" : ""}` : `Nothing was found for “${query}”.`;
    choose(results.length ? 0 : -1);
  }

  function close() {
    open(false);
    status.textContent = "";
  }

  field.addEventListener("focus", begin);
  field.addEventListener("input", () => { begin(); show(); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) show(); else choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter" && chosen >= 0 && !list.hidden) {
      list.children[chosen].click();
      close();
    } else if (event.key === "Escape") {
      close();
      field.blur();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest("#mw-search")) close(); });
  if (document.activeElement === field) begin();
})();
