// What moves around the text of a page: the section that is read is marked in the navigation, which keeps it in view; on a phone
// the navigation is a menu, and "On this page" says which section is read.
"use strict";

(() => {
  const side = document.getElementById("mw-side");
  const menu = document.querySelector(".mw-menu");
  const folded = document.querySelector("nav.mw-contents details");
  const summary = folded && folded.querySelector("summary");
  const said = summary ? summary.textContent : "";
  const kBelowTop = 140;  // pixels from the top at which a section counts as read

  // Every link to a section of this page, by the section that it leads to.
  const links = [...document.querySelectorAll("#mw-side .mw-sections a, nav.mw-contents a")];
  const sections = [...new Set(links.map((link) => link.hash))].map((hash) => {
    const anchor = document.getElementById(decodeURIComponent(hash.slice(1)));
    return anchor && {hash, heading: anchor.closest("h1, h2, h3") || anchor};
  }).filter(Boolean);

  function keepInView(link) {
    const box = link.getBoundingClientRect(), room = side.getBoundingClientRect();
    if (box.top < room.top + 40 || box.bottom > room.bottom - 40) side.scrollTop += box.top - room.top - room.height / 2;
  }

  let marked = null;
  function mark() {
    const at_end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const passed = sections.filter(({heading}) => heading.getBoundingClientRect().top < kBelowTop);
    const current = at_end && scrollY > 0 ? sections[sections.length - 1] : passed[passed.length - 1];
    const hash = current ? current.hash : "";
    if (hash === marked) return;
    marked = hash;
    for (const link of links) {
      if (link.hash !== hash) link.removeAttribute("aria-current");
      else link.setAttribute("aria-current", "location");
      if (link.hash === hash && side.contains(link) && side.scrollHeight > side.clientHeight) keepInView(link);
    }
    if (summary) summary.textContent = current ? `${said} · ${current.heading.textContent.trim()}` : said;
  }

  let asked = false;
  function soon() {
    if (!asked) requestAnimationFrame(() => { asked = false; mark(); });
    asked = true;
  }
  addEventListener("scroll", soon, {passive: true});
  addEventListener("resize", soon);

  function openMenu(is_open) {
    side.classList.toggle("mw-open", is_open);
    menu.setAttribute("aria-expanded", String(is_open));
  }
  menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (menu.getAttribute("aria-expanded") === "true") {
      openMenu(false);
      menu.focus();
    }
    if (folded) folded.open = false;
  });
  // A link to this page closes what it stands in.
  for (const link of links) link.addEventListener("click", () => { openMenu(false); if (folded) folded.open = false; });

  const here = side.querySelector("[aria-current=page]");
  if (here && side.scrollHeight > side.clientHeight) keepInView(here);
  if (folded) folded.open = false;
  mark();

  // Where a browser can't unfold by the style sheet alone, everything is opened for the printer, and closed again.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
})();
