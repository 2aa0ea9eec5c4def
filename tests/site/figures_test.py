#!/usr/bin/env python3
"""Tries the figures of the built site in a real browser: what they show is what the programs print.

    figures_test.py ROOT SITE BIN

At the grids of a lesson's own tables a figure shows the table's numbers, and its bars are as long as they say; sliders and elements
are moved by keyboard and by pointer; a grid that a layout refuses has the program's own sentence. Everything can be read without
scripts and on paper, in light and dark, at 1400, 1000 and 390 pixels. On copies of the site in which one of these things is broken, the
same checks have to fail.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from contrast import low_contrast
from figure_values import Table, find_expected
from headless_browser import console_faults, headless_browser, request_faults, set_media, set_size, too_wide

SIZES = ((1400, 1000), (1000, 900), (390, 844))
LEFT, RIGHT, UP, DOWN, HOME, END, TAB = "\ue012", "\ue014", "\ue013", "\ue015", "\ue011", "\ue010", "\ue004"


class Figures:
    def __init__(self, browser, root, site, programs):
        self.browser, self.root, self.site, self.programs = browser, root, site, programs
        self.page, self.faults, self.compared = "", [], 0

    def fault(self, sentence):
        self.faults.append(f"{self.page}: {sentence}")

    def open(self, number):
        self.page = next(self.site.glob(f"lesson_{number}_*.html")).stem
        self.browser.get((self.site / f"{self.page}.html").as_uri())

    def table(self, number):
        return Table(find_expected(self.root, number).read_text(encoding="utf-8"))

    def same(self, what, shown, wanted):
        self.compared += 1
        if shown != wanted:
            self.fault(f"{what} should be {wanted}, and the figure shows {shown}")

    # --- bars ---------------------------------------------------------------------------------------------------------------

    def choose(self, number, **wanted):
        """By keyboard: a slider is moved with the arrow keys, a list with the letters of its entry."""
        data = self.browser.execute_script("return JSON.parse(document.getElementById(arguments[0]).textContent)", f"figure-{number}-data")
        for choice in data["choices"]:
            if choice["name"] not in wanted:
                continue
            control, value = self.browser.find_element("id", f"figure-{number}-{choice['name']}"), wanted[choice["name"]]
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", control)
            if control.tag_name == "select":
                for option in control.find_elements("tag name", "option"):
                    if option.text == value:
                        option.click()
                continue
            control.send_keys(HOME)
            control.send_keys(RIGHT * choice["values"].index(value))
            now = self.browser.find_element("id", f"figure-{number}-{choice['name']}-now").text
            self.same(f"the number beside the slider of {choice['name']}", (now, control.get_dom_attribute("aria-valuetext")), (value, value))

    def rows(self):
        """{row: (its numbers, its parts' widths over those of the room)}, as they are on the screen."""
        return {name: (cells, shares) for name, cells, shares in self.browser.execute_script("""
          document.getAnimations().forEach((motion) => motion.finish());
          return [...document.querySelectorAll(".mwf-bars tbody tr")].map((row) => {
            const room = row.querySelector(".mwf-bar").getBoundingClientRect().width;
            return [row.querySelector("th").textContent, [...row.querySelectorAll(".mwf-number")].map((cell) => cell.textContent),
                    [...row.querySelectorAll(".mwf-part")].map((part) => part.getBoundingClientRect().width / room)];
          })""")}

    def lengths(self, what, shares, values):
        """The parts of a bar stand to each other as the numbers do, to a pixel or so."""
        self.compared += 1
        total, drawn = sum(values), sum(shares)
        if total and (not drawn or any(abs(share / drawn - value / total) > 0.02 for share, value in zip(shares, values))):
            self.fault(f"{what} should be drawn as {values}, and has the shares {[round(share, 3) for share in shares]}")

    def byte_ledger(self):
        table = self.table("13")
        self.open("13")
        for heading, grid, sizes in (("counted on rank 0", ("2", "2"), 0), ("counted on rank 0", ("4", "1"), 0),
                                     ("published sizes, dp 2 × tp 2", ("2", "2"), 1), ("published sizes, dp 4 × tp 1", ("4", "1"), 1)):
            self.choose("13", dp=grid[0], tp=grid[1], matrices=("a sixteenth of the published run", "the published run")[sizes])
            shown = self.rows()
            for name, cells in table.below(heading, 2 if heading.startswith("counted") and grid == ("4", "1") else 1):
                self.same(f"{name} on dp {grid[0]} × tp {grid[1]}", shown[name][0], cells[-2:])
                values = [float(cell.replace(",", "").replace("–", "0")) for cell in cells[:4]]
                if name == "AdamW, all-reduce":
                    self.same(f"{name}, all of it", values[0], float(cells[4].replace(",", "")))
                self.lengths(name, shown[name][1], values)
        self.choose("13", dp="2", tp="8", matrices="a sixteenth of the published run")
        self.refused("13", ["--dp", "2", "--tp", "8"])
        self.choose("13", tp="2")
        self.same("what it says where nothing is refused", self.said(), "")

    def said(self):
        return self.browser.find_element("css selector", ".mwf-refused").text

    def refused(self, number, options):
        """A grid that can't be laid out has the sentence that the program says, and no numbers."""
        program = next(self.programs.glob(f"lesson_{number}_*"))
        run = subprocess.run([program, *options], capture_output=True, text=True, timeout=60)
        self.same("what is said of a grid that is refused", f"{program.name}: {self.said()}\n", run.stderr)
        if any(element.is_displayed() for element in self.browser.find_elements("css selector", ".mwf-bars .mwf-number")):
            self.fault("shows numbers of a grid that is refused")

    def memory(self):
        table = self.table("14")
        lines = dict(table.below("bytes that rank 2 holds", 1))
        self.open("14")
        self.choose("14", dp="4", tp="2")
        shown = self.rows()
        kinds = ["weights, bfloat16", "gradients, float32", "master weights, float32", "momentum, first moments", "second moments", "for a moment"]
        for at, name in ((0, "AdamW"), (1, "Muon"), (3, "ZeRO-1 AdamW"), (4, "ZeRO-1 Muon")):
            self.same(name, shown[name][0], [f"{lines[line][at]} B" for line in ("between two steps", "at most")])
            self.lengths(name, shown[name][1], [float(lines[kind][at].replace(",", "")) for kind in kinds])
        self.choose("14", dp="64", tp="1", model="llama-7b")
        model = next(cells for name, cells in table.below("Muon over AdamW, ZeRO-1, dp 64 × tp 1", 1) if name == "llama-7b")
        number = {name: [float(cell.split()[0].replace(",", "")) for cell in cells] for name, (cells, _) in self.rows().items()}
        ratios = [f"{number['ZeRO-1 Muon'][at] / number['ZeRO-1 AdamW'][at]:.2f}" for at in (0, 1)]
        self.same("Muon over AdamW with llama-7b on dp 64", ratios, model[-2:])

    def sharding(self):
        lines = dict(self.table("15").below("                     cut", 1))
        self.open("15")
        self.choose("15", dp="4", tp="2", model="this lesson's")
        options = [option.text for option in self.browser.find_elements("css selector", "#figure-15-shown option")]
        for shown, column in zip(options, (-1, -5, -3)):
            self.choose("15", shown=shown)
            found = self.rows()
            for name, (cells, _) in found.items():
                self.same(f"{name}, {shown}", cells, [lines[name][column]])
            longest = max(shares[0] for _, shares in found.values())
            self.same("the longest bar has all the room", round(longest, 2), 1.0)
        self.choose("15", dp="256", tp="8", model="qwen3-30b", shown=options[0])
        slowest = dict(self.table("15").below("slowest on dp 256 × tp 8", 1))["qwen3-30b"]
        self.same("qwen3-30b on dp 256 × tp 8", [cells[0] for cells, _ in self.rows().values()], slowest[:5])

    def full_step(self):
        text = find_expected(self.root, "09").read_text(encoding="utf-8")
        first, second = re.split(r"^Lesson 09 · .*$", text, flags=re.MULTILINE)[1:]
        self.open("09")
        for layout, grid in ((first, ("4", "2")), (second, ("2", "4"))):
            self.choose("09", dp=grid[0], tp=grid[1])
            sent = [int(counted.replace(",", "")) for counted in re.findall(
                r"^ +(?:reduce_scatter|all_gather) over .* (?:every rank|ranks 0–\d) +([\d,]+) B ", layout, re.MULTILINE)]
            peak = re.search(r"peak elements held +every rank +([\d,]+)", layout)[1]
            work = re.search(r"one bucket +[\d.]+ +([\d.]+)", layout)[1]
            shown = [cells for cells, _ in self.rows().values()]
            self.same(f"a step on dp {grid[0]} × tp {grid[1]}", shown, [[f"{sum(sent) // 10:,}"], [peak], [work]])
        self.choose("09", dp="4", tp="2")
        self.same("all phases", next(iter(self.rows().values()))[0], re.findall(r"^  all +([\d,]+) B$", first, re.MULTILINE))

    # --- lessons 05 and 06 --------------------------------------------------------------------------------------------------

    def lit(self):
        return self.browser.execute_script("""
          return [...document.querySelectorAll(".mwf-memory .mwf-lit")].map((cell) =>
            [cell.closest("svg").dataset.strip, cell.querySelector("text").textContent, Number(cell.dataset.at)])""")

    def memory_order(self):
        text = find_expected(self.root, "05").read_text(encoding="utf-8")
        value, at = re.search(r"★ down\S+ = (\d+) at element (\d+) of what arrived", text).groups()
        row, column = re.search(rf"★ down\S+ = {value} at row (\d+), column (\d+) of the whole matrix", text).groups()
        self.open("05")
        columns = int(self.browser.find_element("id", "figure-05").get_dom_attribute("data-columns"))
        marked = [["arrived", value, int(at)], ["copied", value, int(row) * columns + int(column)]]
        self.same("what lights up at first", self.lit(), marked)
        first = {}
        for strip, line in (("arrived", 0), ("copied", 1)):
            printed = re.findall(r"its first row +([\d ]+)\n +came from tp +([\d|]+)", text)[line * 2]
            numbers = self.browser.execute_script("""
              return [...document.querySelectorAll(`[data-strip=${arguments[0]}] [data-value]`)].map((cell) =>
                [cell.querySelector("text").textContent, cell.dataset.from])""", strip)
            first[strip] = [number for number, _ in numbers]
            self.same(f"the first row of {strip}", first[strip][:columns], printed[0].split())
            self.same(f"who sent what of {strip}", "".join(rank for _, rank in numbers), printed[1].replace("|", ""))
        # By keyboard: the first element, then one to the right, one line down, and back.
        self.browser.execute_script("document.querySelector('[data-strip=arrived] [tabindex=\"0\"]').focus()")
        for keys, where in (("", 0), (RIGHT, 1), (DOWN, 1 + columns), (LEFT, columns), (UP, 0), (LEFT, 0)):
            if keys:
                self.browser.switch_to.active_element.send_keys(keys)
            number = first["arrived"][where]
            self.same(f"what lights up at element {where}", self.lit(), [["arrived", number, where], ["copied", number, first["copied"].index(number)]])
        # By pointer, on the matrix.
        cell = self.browser.find_elements("css selector", "[data-strip=copied] [data-value]")[5]
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); "
                                    "arguments[0].querySelector('rect').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))", cell)
        number = first["copied"][5]
        self.same("what lights up under the pointer", self.lit(), [["arrived", number, first["arrived"].index(number)], ["copied", number, 5]])
        said = self.browser.find_element("css selector", ".mwf-said").text
        if not said.startswith(f"{number}, from tp ") or f"element {first['arrived'].index(number)};" not in said:
            self.fault(f'says "{said}" of {number}')

    def numbers(self):
        return self.browser.execute_script("""
          return [...document.querySelectorAll(".mwf-table tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent))""")

    def curves(self):
        lines = re.findall(r"^ +(fp32|bf16) σ. +([\d. ]+)$", find_expected(self.root, "06").read_text(encoding="utf-8"), re.MULTILINE)
        self.open("06")
        for at, precision in ((0, "fp32"), (1, "bf16")):
            self.browser.find_elements("css selector", "#figure-06-set option")[at].click()
            # 0.015515 is printed as 0.016 from float32 and stands in the data as 0.01550: compare as numbers.
            shown = [[float(cell) for cell in row] for row in self.numbers()[:3]]
            wanted = [[float(cell) for cell in values.split()] for kind, values in lines if kind == precision]
            self.compared += 1
            if any(abs(a - b) > 0.0011 for row, line in zip(shown, wanted) for a, b in zip(row, line)) or len(wanted) != 3:
                self.fault(f"the singular values in {precision} should be {wanted}, and the figure shows {shown}")
        self.browser.find_elements("css selector", "#figure-06-set option")[0].click()
        slider = self.browser.find_element("id", "figure-06-start")
        for key, start in ((HOME, 0.001), (END, 1.0)):
            slider.send_keys(key)
            wanted = [start]
            for _ in range(5):
                wanted.append(3.4445 * wanted[-1] - 4.7750 * wanted[-1] ** 3 + 2.0315 * wanted[-1] ** 5)
            self.same(f"what becomes of {start}", self.numbers()[3], [f"{value:.3f}" for value in wanted])
            points = self.browser.execute_script("return [...document.querySelectorAll('.mwf-now')].map((dot) => Number(dot.getAttribute('cy')))")
            self.same("the dots lie as the numbers say", points, [round(14 + (1 - value / 1.3) * 240, 1) for value in wanted])
        self.browser.find_elements("css selector", "#figure-06-set option")[2].click()
        self.same("the textbook's coefficients", self.browser.find_element("css selector", ".mwf-formula span").text, "1.5000 σ − 0.5000 σ³")
        self.same("what they leave of 1", self.numbers()[3], ["1.000"] * 6)
        self.browser.find_element("css selector", '.mwf-table button[data-step="2"]').send_keys(" ")
        self.same("what lights up for step 2", self.browser.execute_script("return [...document.querySelectorAll('[data-step].mwf-lit')].length"), 6)
        self.same("how far the way has gone", self.browser.execute_script(
            "return document.querySelector('[data-plot=curve] .mwf-web').getAttribute('d').split('L').length"), 5)

    # --- lesson 18 ----------------------------------------------------------------------------------------------------------

    def timeline(self):
        self.open("18")
        data = self.browser.execute_script("return JSON.parse(document.getElementById('figure-18-data').textContent)")
        drawn = int(re.search(r"[\d,]+", self.browser.find_element("id", "drawn").text)[0].replace(",", ""))
        self.same("the events of the trace", sum(entry[4] for entry in data["slices"]), drawn)
        names = {data["texts"][entry[5]] for entry in data["slices"] if entry[5] >= 0}
        phases = ["reduce-scatter of gradients", "momentum", "DP gather", "TP gather", "Newton–Schulz", "TP shard", "DP shard", "apply",
                  "all-gather of weights"]
        self.same("phases that are missing", [phase for phase in phases if phase not in names], [])
        box = self.browser.find_element("id", "timeline")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", box)
        whole = self.browser.find_element("id", "view").text
        box.send_keys(RIGHT)
        facts = self.browser.find_element("id", "selected").text
        self.same("what the first event is", facts.split(" · ")[0], data["texts"][data["slices"][0][5]])
        box.send_keys("+")
        if self.browser.find_element("id", "view").text == whole:
            self.fault("the timeline does not zoom with +")
        self.browser.find_element("id", "whole").click()
        self.same("the whole again", self.browser.find_element("id", "view").text, whole)
        kinds = sorted({data["lines"][entry[0]]["kind"] for entry in data["slices"]})
        for kind, pixels in zip(kinds, self.browser.execute_script("""
            const canvas = document.querySelector("#timeline canvas");
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const count = (rgb) => { let found = 0;
              for (let i = 0; i < pixels.length; i += 4) found += rgb.every((part, j) => pixels[i + j] === part);
              return found; };
            return arguments[0].map((colour) => count([1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))));""",
                [data["lane_colours"][kind]["light"] for kind in kinds])):
            if pixels < 500:
                self.fault(f"the timeline has {pixels} pixels of lanes of the kind {kind}; is it empty?")

    # --- how it looks -------------------------------------------------------------------------------------------------------

    def looks(self, numbers):
        for number in numbers:
            self.open(number)
            for size in SIZES:
                set_size(self.browser, *size)
                for element in too_wide(self.browser):
                    self.fault(f"at {size[0]} pixels, the page is too wide because of {element}")
                for sentence in self.browser.execute_script("""
                    return [...document.querySelectorAll(".mw-figure, .mw-drawing")].filter((figure) =>
                      figure.scrollWidth > figure.clientWidth + 1 || figure.getBoundingClientRect().right > innerWidth + 1)
                      .map((figure) => `${figure.className} is cut: ${figure.scrollWidth} pixels in ${figure.clientWidth}`)"""):
                    self.fault(f"at {size[0]} pixels, {sentence}")
            set_size(self.browser, *SIZES[0])
            for scheme in ("light", "dark"):
                set_media(self.browser, prefers_color_scheme=scheme)
                if self.browser.find_elements("css selector", ".mw-figure"):
                    self.faults += [f"{self.page}, {scheme}: {sentence}" for sentence in low_contrast(self.browser, ".mw-figure")]
                self.faults += [f"{self.page}, {scheme}: {sentence}" for sentence in self.browser.execute_script(_DRAWN)]
            set_media(self.browser)
            for sentence in console_faults(self.browser) + request_faults(self.browser):
                self.fault(sentence)

    def without_scripts(self, numbers):
        """The numbers of the lesson's own grid are there without scripts, and nothing that does nothing; and the same on paper."""
        for number in numbers:
            self.open(number)
            figure = "document.querySelector('.mw-figure')"
            set_media(self.browser, medium="print")
            if self.browser.execute_script(f"return [...{figure}.querySelectorAll('input, select')].some((each) => each.checkVisibility())"):
                self.fault("prints controls, which do nothing on paper")
            set_media(self.browser)
            shown = self.browser.execute_script(f"return {figure}.innerText")
            source = (self.site / f"{self.page}.html").read_text(encoding="utf-8")
            body = re.search(r'<figure class="mw-figure.*?</figure>', source, re.DOTALL)[0]
            cells = re.findall(r"<t[dh][^>]*>(?:<button[^>]*>)?([^<]+)", body)
            lost = [cell for cell in cells if re.match(r"[\d.,]+( M?B)?$", cell) and cell not in shown]
            if number in ("06", "09", "13", "14", "15") and (lost or not any(re.match(r"[\d.,]+", cell) for cell in cells)):
                self.fault(f"begins with other numbers with scripts than without: {lost}")
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        for number in numbers:
            self.open(number)
            visible = [control for control in self.browser.find_elements("css selector", ".mw-figure :is(input, select, button)")
                       if control.is_displayed() and control.get_dom_attribute("data-step") is None]
            if visible:
                self.fault("has controls without scripts, which do nothing")
            if not self.browser.find_element("css selector", ".mw-figure").text.strip():
                self.fault("shows nothing without scripts")
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def reduced_motion(self):
        set_media(self.browser, prefers_reduced_motion="reduce")
        self.open("13")
        moves = self.browser.execute_script("return getComputedStyle(document.querySelector('.mwf-part')).transitionDuration")
        self.same("how long a bar moves for who wants no motion", moves, "0s")
        set_media(self.browser)


# Lines of bars and drawings to what is beside them, 3 : 1; letters to the cell that they stand in, 4.5 : 1.
_DRAWN = r"""
  const parse = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                           return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (a, b) => { const [dark, bright] = [light(parse(a)), light(parse(b))].sort((x, y) => x - y); return (bright + 0.05) / (dark + 0.05); };
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--page-background-color").trim();
  const probe = document.body.appendChild(document.createElement("div"));
  probe.style.color = paper;
  const ground = getComputedStyle(probe).color;
  probe.remove();
  const found = new Set();
  const check = (what, a, b, least) => { const is = contrast(a, b); if (is < least) found.add(`${what} has a contrast of ${is.toFixed(2)} : 1, and should have ${least}`); };
  const filled = (style) => style.fill.startsWith("rgb") ? style.fill : ground;
  for (const part of document.querySelectorAll(".mwf-part:not(.mwf-nothing)")) {
    const style = getComputedStyle(part);
    check(`the outline of ${part.className}`, style.borderRightColor, style.backgroundColor, 3);
    check(`the outline of ${part.className}`, style.borderRightColor, ground, 3);
  }
  for (const rect of document.querySelectorAll(".mwd-panel rect, .mwf-memory rect")) check(`the outline of ${rect.getAttribute("class")}`, getComputedStyle(rect).stroke, ground, 3);
  for (const path of document.querySelectorAll(".mwd-panel > path:not(.mwd-head), .mwf-plot path")) check(`a line, ${path.getAttribute("class")},`, getComputedStyle(path).stroke, ground, 3);
  for (const text of document.querySelectorAll(".mwd-panel text, .mwf-memory text, .mwf-plot text")) {
    const cell = text.previousElementSibling && text.previousElementSibling.tagName === "rect" ? filled(getComputedStyle(text.previousElementSibling)) : ground;
    check(`the letter "${text.textContent}"`, getComputedStyle(text).fill, cell, 4.5);
  }
  return [...found];
"""

WITH_FIGURE = ["05", "06", "09", "13", "14", "15", "18"]
DRAWN = ["00", "01", "03", "04", "08", "12", "17", "21", "22", "23"]


def copy_with(site, folder, pattern, change):
    """A copy of the site, by links, of which one file is another."""
    name = next(site.glob(pattern)).name
    for path in site.iterdir():
        if path.name != name:
            (folder / path.name).symlink_to(path)
    text = (site / name).read_text(encoding="utf-8")
    changed = change(text)
    if changed == text:
        sys.exit(f"figures_test.py: {name} is not as this test expects it, so it can't be broken")
    (folder / name).write_text(changed, encoding="utf-8")


def replaced(old, new):
    return lambda text: text.replace(old, new)


# What is broken, in which file and how, by which check it has to be noticed, and a word of what that check says.
BROKEN = [
    ("a number that nobody computed", "lesson_13_*.html", replaced('"145,464","1.00"', '"145,465","1.00"'), Figures.byte_ledger, "145,465"),
    ("bytes without their TP gather", "lesson_13_*.html", replaced("[72732.0,36366.0,65536.0,", "[72732.0,36366.0,0.0,"), Figures.byte_ledger,
     "should be drawn as"),
    ("dp and tp in the wrong order", "bars.js", replaced("at * choice.values.length + choice", "at + 7 * choice"), Figures.memory, "should be"),
    ("a slider that does not say where it is", "bars.js", replaced('setAttribute("aria-valuetext", chosen[i])', "focus()"), Figures.full_step,
     "beside the slider"),
    ("numbers that stay where a grid is refused", "bars.js", replaced('toggle("mwf-gone", refused)', 'toggle("mwf-gone", false)'),
     Figures.byte_ledger, "shows numbers of a grid that is refused"),
    ("a sentence that stays", "bars.js", replaced("refused ? state : \"\"", 'refused ? state : "x"'), Figures.byte_ledger, "nothing is refused"),
    ("bars of one length", "bars.js", replaced("(value / most)", "(1 / 4)"), Figures.memory, "should be drawn as"),
    ("columns for one another", "lesson_15_*.html", replaced('["3.71"]', '["3.70"]'), Figures.sharding, "3.70"),
    ("an element that lights up where it is not", "memory.js", replaced("each.dataset.value === value", "each.dataset.at === cell.dataset.at"),
     Figures.memory_order, "lights up"),
    ("an arrow key that goes up for down", "memory.js", replaced("ArrowUp: -columns, ArrowDown: columns", "ArrowUp: columns, ArrowDown: -columns"),
     Figures.memory_order, "lights up at element"),
    ("another set's numbers", "curves.js", replaced("this.set.selectedIndex]", "0]"), Figures.curves, "should be"),
    ("dots that stay", "curves.js", replaced("y(values[step]).toFixed(1)", "y(0).toFixed(1)"), Figures.curves, "the dots lie"),
    ("a slider the wrong way round", "curves.js", replaced("one.paths.length - 1 - Number", "Number"), Figures.curves, "what becomes of"),
    ("keys that reach no timeline", "timeline.js", replaced("this.select(this.neighbour(1))", "0"), Figures.timeline, "what the first event is"),
    ("a timeline without data", "timeline.js", replaced("data: data.slices.map", "data: [].map"), Figures.timeline, "is it empty"),
    ("letters in the dark that nobody reads", "figures.css", replaced(".mwd-panel text.mwd-letter { text-anchor: middle; font-size: 12px; fill: "
     "var(--mwf-ink)", ".mwd-panel text.mwd-letter { text-anchor: middle; font-size: 12px; fill: var(--mwf-hatch)"),
     lambda figures: figures.looks(["04"]), "the letter"),
    ("bars without an outline", "figures.css", replaced("border: 1px solid var(--mwf-ink);\n  margin-left", "border: 1px solid var(--mwf-padding);"
     "\n  margin-left"), lambda figures: figures.looks(["13"]), "the outline of"),
    ("a drawing wider than a phone", "figures.css", replaced(".mwd-panel { max-width: 100%", ".mwd-panel { max-width: none"),
     lambda figures: figures.looks(["04"]), "at 390 pixels"),
    ("controls on paper", "figures.css", replaced("@media print { .mwf-controls,", "@media print {"),
     lambda figures: figures.without_scripts(["13"]), "prints controls"),
    ("controls without scripts", "figures.css", replaced("html:not(.mwf-scripts) .mwf-controls { display: none; }", ""),
     lambda figures: figures.without_scripts(["13"]), "has controls without scripts"),
    ("motion for who wants none", "figures.css", replaced("@media (prefers-reduced-motion: reduce) { .mwf-part { transition: none; } }", ""),
     Figures.reduced_motion, "wants no motion"),
]


def main(root, site, programs):
    with headless_browser() as browser:
        set_size(browser, *SIZES[0])
        figures = Figures(browser, root, site, programs)
        for check in (Figures.byte_ledger, Figures.memory, Figures.sharding, Figures.full_step, Figures.memory_order, Figures.curves,
                      Figures.timeline, Figures.reduced_motion):
            check(figures)
        figures.without_scripts(WITH_FIGURE)
        figures.looks(WITH_FIGURE + DRAWN)
        faults = figures.faults
        for what, pattern, change, check, said in BROKEN:
            with tempfile.TemporaryDirectory() as folder:
                copy_with(site, Path(folder), pattern, change)
                broken = Figures(browser, root, Path(folder), programs)
                check(broken)
                set_size(browser, *SIZES[0])
                if not any(said in sentence for sentence in broken.faults):
                    faults.append(f"{what} is not noticed; this was: {broken.faults}")
                browser.get("about:blank")
    for sentence in faults:
        print(sentence)
    print(f"{len(WITH_FIGURE)} figures, {figures.compared} comparisons with what programs print, {len(BROKEN)} broken copies: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or not (Path(sys.argv[2]) / "index.html").exists():
        sys.exit("figures_test.py takes the root, the folder of the built site and that of the programs")
    sys.exit(main(*(Path(argument).resolve() for argument in sys.argv[1:])))
