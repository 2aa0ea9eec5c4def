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
"""
# What a reader does, within ROOT.
DO = """
const at = (selector, place = 0) => ROOT.querySelectorAll(selector)[place];
const key = (name, node = ROOT) => node.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const press = (selector, place = 0) => at(selector, place)?.click();
const focus = (selector, place = 0) => at(selector, place)?.focus();
const enter = (selector, value, place = 0) => {
  const field = at(selector, place);
  if (field.tagName === "SELECT") field.selectedIndex = value; else field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
const hover = (selector, type, place = 0) => at(selector, place).dispatchEvent(new PointerEvent(type, { pointerType: "mouse", bubbles: true }));
const point = (selector, across, down) => {
  const map = at(selector);
  if (!map) return;
  const box = map.getBoundingClientRect();
  map.dispatchEvent(new PointerEvent("pointermove", { pointerType: "mouse", bubbles: true, clientX: box.left + across * box.width,
                                                      clientY: box.top + down * box.height }));
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
