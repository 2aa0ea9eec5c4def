"""What a page shows, as lines that can be kept and compared: nothing of them follows from the sizes of letters on a machine."""

import difflib
import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

# add(node, depth) puts a node into `lines`: a tag with its attributes, or a text.
LINES = """
const lines = [];
const add = (node, depth) => {
  const space = " ".repeat(depth);
  if (node.nodeType === Node.TEXT_NODE) { if (node.textContent.trim()) lines.push(space + JSON.stringify(node.textContent)); return; }
  if (node.nodeType !== Node.ELEMENT_NODE || ["SCRIPT", "STYLE"].includes(node.tagName)) return;
  const svg = node.closest(".player-arrows");
  const shown = [...node.attributes].filter(({ name, value }) =>
      !(svg && ["d", "width", "height"].includes(name)) && name !== "data-took" && value !== "location")
    .map(({ name, value }) => [name, name === "style" ? value.split(/;\\s*/).filter((part) => part && !/px/.test(part)).join("; ") : value])
    .filter(([name, value]) => name !== "style" || value).sort();
  const state = ["hidden", "value"].filter((name) => node[name] && !node.hasAttribute(name)).map((name) => ` .${name}=${node[name]}`);
  lines.push(`${space}<${node.tagName.toLowerCase()}${shown.map(([name, value]) => ` ${name}="${value}"`).join("")}${state.join("")}>`);
  node.childNodes.forEach((child) => add(child, depth + 1));
};
// What is not in the elements: the classes and data of the page, where the focus is, what the browser keeps, and what became of the last deed.
const state = () => {
  const page = document.documentElement, active = document.activeElement;
  const data = Object.entries(page.dataset).map(([name, value]) => ` data-${name}=${value}`).join("");
  lines.push(`the page: ${[...page.classList].sort().join(" ")}${data}`);
  const named = active && ["id", "class", "data-key", "data-place", "data-value", "href"].filter((name) => active.getAttribute(name))
    .map((name) => ` ${name}="${active.getAttribute(name)}"`).join("");
  lines.push(active && active !== document.body && active.checkVisibility() ? `the focus: ${active.tagName.toLowerCase()}${named}` : "the focus: none");
  for (const [name, value] of Object.entries(localStorage.all()).sort()) lines.push(`kept: ${name} = ${value}`);
  for (const word of window.became || []) lines.push(`became: ${word}`);
  window.became = [];
};
"""
# In the place of the browser's memory, of which the next page may learn late: KEPT is what it begins with.
MEMORY = """
(() => {
  const kept = new Map(Object.entries(KEPT));
  const value = { getItem: (name) => kept.has(name) ? kept.get(name) : null, setItem: (name, text) => { kept.set(name, String(text)); },
                  removeItem: (name) => { kept.delete(name); }, clear: () => kept.clear(), all: () => Object.fromEntries(kept) };
  Object.defineProperty(window, "localStorage", { configurable: true, value });
})();
"""
# What a reader does, within ROOT. Of each event it is told whether the page has stopped what the browser does by itself; links lead nowhere.
DO = """
window.became = [];
const at = (selector, place = 0) => ROOT.querySelectorAll(selector)[place];
const dispatch = (node, event) => {
  const after = (late) => {
    if (late.defaultPrevented) window.became.push(`${late.type} stopped`);
    else if (late.type === "click" && late.target.closest("a")) window.became.push(`to ${late.target.closest("a").getAttribute("href")}`);
    if (late.type === "click" && late.target.closest("a")) late.preventDefault();
  };
  const types = ["click", event.type].filter((type, i, all) => all.indexOf(type) === i);
  types.forEach((type) => addEventListener(type, after));
  node.dispatchEvent(event);
  types.forEach((type) => removeEventListener(type, after));
};
const key = (name, node = ROOT, held = {}) => dispatch(node, new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...held }));
const press = (selector, place = 0) => at(selector, place)?.click();
const focus = (selector, place = 0) => at(selector, place)?.focus();
const enter = (selector, value, place = 0, type = "input") => {
  const field = at(selector, place);
  if (field.tagName === "SELECT") field.selectedIndex = value; else field.value = value;
  field.dispatchEvent(new Event(type, { bubbles: true }));
};
const hover = (selector, type, place = 0, pointerType = "mouse") =>
  dispatch(at(selector, place), new PointerEvent(type, { pointerType, bubbles: !/enter|leave/.test(type), cancelable: true }));
const touch = (selector, type, place = 0) => hover(selector, type, place, "touch");
const point = (selector, across, down, type = "pointermove", pointerType = "mouse", detail = 0) => {
  const map = at(selector);
  if (!map) return;
  const box = map.getBoundingClientRect();
  dispatch(map, new PointerEvent(type, { pointerType, detail, bubbles: true, clientX: box.left + across * box.width,
                                         clientY: box.top + down * box.height }));
};
// Does it while the clock stands; then all that waits comes in its turn, fifty times at most.
const hurried = (deed, most = 50) => {
  const own = [window.setTimeout, window.clearTimeout], waiting = new Map();
  let last = 0;
  window.setTimeout = (call, time) => { waiting.set(++last, [call, time]); return last; };
  window.clearTimeout = (which) => waiting.delete(which);
  deed();
  for (let left = most; left && waiting.size; --left) {
    const [which, [call, time]] = waiting.entries().next().value;
    waiting.delete(which);
    window.became.push(`after ${time} ms`);
    call();
  }
  [window.setTimeout, window.clearTimeout] = own;
};
"""


def changed(before, now):
    """The lines that are new or other ones, and how many are gone."""
    lines = list(difflib.unified_diff(before, now, n=0, lineterm=""))[2:]
    return [f"{sum(line[0] == '-' for line in lines)} lines became", *(line[1:].strip() for line in lines if line[0] == "+")]


def expect_kept(test, name, text):
    """Lines are those of tests/golden; with BLESS=1 in the environment they are written there."""
    kept = GOLDEN / name
    if os.environ.get("BLESS") == "1":
        kept.write_text("\n".join(text) + "\n", encoding="utf-8")
        test.skipTest(f"{kept} was written anew; review the difference before committing it")
    lines = kept.read_text(encoding="utf-8").split("\n")[:-1]
    for at, (line, now) in enumerate(zip(lines, text), start=1):
        test.assertEqual(line, now, f"line {at} of {kept}; where the new one is right, run this test with BLESS=1")
    test.assertEqual(len(lines), len(text))
