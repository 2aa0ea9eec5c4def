#!/usr/bin/env python3
"""Opens pages of maps of where Muon pays in a real browser, as a reader would.

    map_page_test.py WRITE_MAP_PAGES

A page fails when the console shows an error, a request leaves the machine's files, it scrolls sideways on a phone or on a
desktop, a cell that is pointed at, touched or chosen with the keys says other figures than the map has, or the switches
do not change what is shown.
"""

import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/site"))
from headless_browser import (console_faults, headless_browser, request_faults, set_media, set_size,  # noqa: E402
                              too_wide)
try:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    pass  # headless_browser says what is missing, and skips

PROGRAM = sys.argv[1]
LEFT, RIGHT, UP, DOWN = "\ue012", "\ue014", "\ue013", "\ue015"
HOME, END, PAGE_UP, PAGE_DOWN, ESCAPE = "\ue011", "\ue010", "\ue00e", "\ue00f", "\ue00c"


def ratio_text(ratio):
    return f"{ratio:.2f}"


def inversion_line(of):
    """Between which neighbours the ratio of communication crosses 1: (x1, y1, x2, y2) in cells."""
    columns = len(of["cells"]) // len(of["gpus"])
    below = {(i % columns, i // columns): cell["communication"]["ratio"] < 1
             for i, cell in enumerate(of["cells"]) if cell["communication"]}
    return {(x, y, x, y + 1) for x, y in below if below.get((x - 1, y), below[x, y]) != below[x, y]} | {
        (x, y, x + 1, y) for x, y in below if below.get((x, y - 1), below[x, y]) != below[x, y]}


class MapPageTest(unittest.TestCase):
    browser = None
    folder = None

    @classmethod
    def setUpClass(cls):
        subprocess.run([PROGRAM, str(cls.folder)], check=True)
        cls.maps = [json.loads((cls.folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("links", "grid")]

    def tearDown(self):
        self.assertEqual(console_faults(self.browser), [])
        self.assertEqual(request_faults(self.browser), [])

    def open(self, name="maps", width=1400, height=1000):
        set_size(self.browser, width, height)
        self.browser.get((self.folder / f"{name}.html").as_uri())

    def script(self, text, *arguments):
        chart = "const chart = echarts.getInstanceByDom(document.getElementById('map'));"
        return self.browser.execute_script(chart + text, *arguments)

    def box(self, name):
        return self.browser.find_element("id", name)

    def details(self):
        return [line.text for line in self.box("details").find_elements("css selector", "p")]

    def tip(self):
        """The lines of the tooltip that is shown."""
        return self.script("""
          return [...document.querySelectorAll(".tip")].filter((tip) => tip.checkVisibility({checkVisibilityCSS: true}))
            .flatMap((tip) => [...tip.children].map((line) => line.textContent));""")

    def point_at(self, column, row):
        """Moves the mouse to the middle of a cell."""
        box = self.box("map")
        self.script("arguments[0].scrollIntoView({block: 'center'});", box)
        x, y = self.script("return chart.convertToPixel({gridIndex: 0}, arguments[0]);", [column, row])
        size = box.size
        ActionChains(self.browser, duration=0).move_to_element_with_offset(box, 0, 0).move_to_element_with_offset(
            box, round(x - size["width"] / 2), round(y - size["height"] / 2)).perform()

    def cell(self, which, column, row):
        of = self.maps[which]
        return of["cells"][row * (len(of["cells"]) // len(of["gpus"])) + column]

    def check_facts(self, facts, cell):
        first = f"{cell['gpus']:,} GPUs = dp {cell['dp']:,} × tp {cell['tp']}"
        self.assertEqual(facts[0], first)
        communication = cell["communication"]
        self.assertTrue(facts[2].startswith(f"communication {ratio_text(communication['ratio'])}: "), facts)
        self.assertTrue(facts[3].startswith(f"bytes {ratio_text(communication['bytes_ratio'])}: "), facts)
        self.assertEqual("communication is outside of what was measured" in facts, communication["extrapolated"])
        steps = [fact for fact in facts if fact.startswith("step ")]
        if cell["step"]:
            self.assertTrue(steps[0].startswith(f"step {cell['step']['ratio']:.3f}: "), facts)
            self.assertIn(f"strategy ({cell['step']['best_strategy']})", steps[0])
        else:
            self.assertEqual(steps, [])
            self.assertEqual(sum(fact.startswith("no step: ") for fact in facts), 1)

    # ── what the page says ──

    def test_pointing_at_any_cell_says_its_figures(self):
        self.open()
        for column, row in ((0, 0), (4, 3), (8, 7), (8, 14), (2, 14)):
            self.point_at(column, row)
            self.check_facts(self.tip(), self.cell(0, column, row))
            self.check_facts(self.details(), self.cell(0, column, row))

    def test_the_tables_are_what_the_program_prints(self):
        self.open()
        tables = self.script("return [...document.querySelectorAll('pre')].map((each) => each.textContent);")
        self.assertEqual(tables, [(self.folder / f"{name}.txt").read_text(encoding="utf-8") for name in ("links", "grid")])

    # ── what is chosen ──

    def choose_map(self, which):
        self.browser.find_elements("css selector", "input[name=map]")[which].click()

    def test_the_switches_change_map_and_ratio(self):
        self.open()
        heading = "return chart.getOption().title[0].text;"
        self.assertEqual(self.script(heading), "GB/s between nodes, out of each GPU")
        self.choose_map(1)
        self.assertEqual(self.script(heading), "tensor-parallel ranks (tp)")
        self.point_at(2, 5)
        self.check_facts(self.tip(), self.cell(1, 2, 5))
        shown = {"communication": True, "step": False}
        for quantity in ("communication", "step", "communication"):
            Select(self.box("quantity")).select_by_value(quantity)
            for each in shown:
                self.assertEqual(self.box(f"legend-{each}").is_displayed(), each == quantity)
        self.assertEqual(self.script(heading), "tensor-parallel ranks (tp)")

    def test_keys_choose_cells_and_stay_on_the_map(self):
        self.open()
        chart = self.box("map")
        for key, (column, row) in ((RIGHT, (0, 0)), (RIGHT, (1, 0)), (DOWN, (1, 1)), (LEFT, (0, 1)), (LEFT, (0, 1)),
                                   (UP, (0, 0)), (UP, (0, 0)), (END, (8, 0)), (RIGHT, (8, 0)), (PAGE_DOWN, (8, 14)),
                                   (DOWN, (8, 14)), (HOME, (0, 14)), (PAGE_UP, (0, 0))):
            chart.send_keys(key)
            self.check_facts(self.details(), self.cell(0, column, row))
            self.check_facts(self.tip(), self.cell(0, column, row))
        chart.send_keys(ESCAPE)
        self.assertTrue(self.details()[0].startswith("Point at a cell"))
        WebDriverWait(self.browser, 10).until(lambda _: self.tip() == [])

    def test_a_touch_says_what_a_cell_is(self):
        self.open(width=390, height=844)
        box = self.box("map")
        self.script("arguments[0].scrollIntoView({block: 'center'});", box)
        x, y = self.script("""
          const [x, y] = chart.convertToPixel({gridIndex: 0}, [3, 6]), box = chart.getDom().getBoundingClientRect();
          return [x + box.left, y + box.top];""")
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            self.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        WebDriverWait(self.browser, 10).until(lambda _: self.tip() != [])
        self.check_facts(self.tip(), self.cell(0, 3, 6))
        self.assertEqual(too_wide(self.browser), [])

    # ── what is drawn, shape by shape ──

    def data(self):
        return json.loads(self.script("return document.getElementById('data').textContent;"))

    def shapes(self):
        """Rectangles, lines, letters and polygons of the map as they are drawn, in order; the axes' own letters are not among them."""
        return self.script("""
          const all = [];
          const visit = (one) => {
            const { text, x, y, font, fill, stroke, lineWidth, opacity } = one.style ?? {};
            const silent = one.silent || one.parent?.silent;
            if (["rect", "line", "polygon"].includes(one.type))
              all.push({ type: one.type, ...one.shape, fill, stroke, lineWidth, opacity, silent });
            else if (one.type === "text" && typeof font === "string" && x !== undefined)
              all.push({ type: "text", text, x, y, font, fill, stroke, lineWidth, silent });
            (one.children ? one.children() : []).forEach(visit);
          };
          chart.getZr().storage.getRoots().forEach(visit);
          return all;""")

    def check_shapes(self, which, quantity, selected=-1, theme="light"):
        """Every cell has its fill and, inside of that, its figure; the line and the mark lie where the data have them."""
        data, shapes, of = self.data(), self.shapes(), self.maps[which]
        shade = {name: colour[theme] for name, colour in data["colours"].items()}
        figures = [cell[quantity] for cell in of["cells"]]
        rectangles = [each for each in shapes if each["type"] == "rect" and not each["silent"]]
        fills = sorted((round(each["y"]), round(each["x"]), each["fill"], each["opacity"]) for each in rectangles
                       if each["fill"] in [shade[name] for name in ("below", "above", "ground")])
        self.assertEqual([fill for *_, fill, _ in fills],
                         [shade["ground" if figure is None else "below" if figure["ratio"] < 1 else "above"]
                          for figure in figures])
        # The nearer to 1, the paler.
        for side in (lambda ratio: ratio < 1, lambda ratio: ratio >= 1):
            opacities = [opacity for _, opacity in sorted(
                (abs(math.log(figure["ratio"])), opacity) for figure, (*_, opacity) in zip(figures, fills)
                if figure and side(figure["ratio"]))]
            self.assertEqual(opacities, sorted(opacities))
        frames = sorted(((each["y"], each["x"], each) for each in rectangles if each["fill"] == "transparent"),
                        key=lambda frame: (round(frame[0]), frame[1]))
        self.assertEqual([i for i, (*_, each) in enumerate(frames) if each["lineWidth"] == 3],
                         [] if selected < 0 else [selected])
        words = [each for each in shapes if each["type"] == "text"]
        for cell, figure, (top, left, frame) in zip(of["cells"], figures, frames):
            inside = [each["text"] for each in words if left < each["x"] < left + frame["width"] and
                      top < each["y"] < top + frame["height"]]
            obstacle = cell["obstacle" if quantity == "communication" else "step_obstacle"]
            wanted = [ratio_text(figure["ratio"]) if figure else obstacle]
            self.assertEqual(sorted(inside), sorted(wanted + ([figure["best_strategy"]] if figure and quantity == "step" else [])))
        lines = [each for each in shapes if each["type"] == "line"]
        self.assertEqual(any(each["lineWidth"] == 1.2 for each in lines), any(each and each["extrapolated"] for each in figures))
        width, height = (frames[0][2][size] + 2 for size in ("width", "height"))
        drawn = {tuple(round((each[name] - begin) / pitch, 1) for name, begin, pitch in
                       (("x1", frames[0][1] - 1, width), ("y1", frames[0][0] - 1, height),
                        ("x2", frames[0][1] - 1, width), ("y2", frames[0][0] - 1, height)))
                 for each in lines if each["lineWidth"] == 3.5}
        self.assertEqual(drawn, inversion_line(of))
        marks = [each for each in shapes if each["type"] == "polygon"]
        self.assertEqual(len(marks), 1 if of["over"] == "links" else 0)
        for mark in marks:  # columns are powers of two from 1 GB/s on
            self.assertAlmostEqual(mark["points"][2][0], frames[0][1] - 1 + width * (math.log2(of["own_link_gb_per_s"]) + 0.5),
                                   delta=1)

    def test_each_map_draws_its_cells_words_line_and_mark_where_they_belong(self):
        for width in (1400, 390):
            self.open(width=width)
            for which in (0, 1):
                self.choose_map(which)
                for quantity in ("communication", "step"):
                    Select(self.box("quantity")).select_by_value(quantity)
                    self.check_shapes(which, quantity)
                    self.assertEqual(self.box("own-link").is_displayed(), which == 0)

    def test_the_map_follows_the_page_when_it_turns_narrow_and_dark(self):
        self.open()
        set_size(self.browser, 390, 1000)
        WebDriverWait(self.browser, 10).until(
            lambda _: self.script("return chart.getWidth() === document.getElementById('map').clientWidth;"))
        self.check_shapes(0, "communication")
        self.addCleanup(set_media, self.browser, prefers_color_scheme="light")
        set_media(self.browser, prefers_color_scheme="dark")
        colour = self.data()["colours"]["paper"]["dark"]
        WebDriverWait(self.browser, 10).until(lambda _: self.script("return chart.getOption().backgroundColor;") == colour)
        self.check_shapes(0, "communication", theme="dark")

    # ── which cell is chosen ──

    def nothing_chosen(self):
        return self.details()[0].startswith("Point at a cell")

    def test_a_chosen_cell_stays_with_another_ratio_and_not_with_another_map(self):
        self.open()
        chart = self.box("map")
        for key in (RIGHT, RIGHT, DOWN, DOWN):
            chart.send_keys(key)
        chosen = 2 * len(self.maps[0]["cells"]) // len(self.maps[0]["gpus"]) + 1
        self.check_shapes(0, "communication", chosen)
        Select(self.box("quantity")).select_by_value("step")
        self.check_facts(self.details(), self.cell(0, 1, 2))
        self.check_shapes(0, "step", chosen)
        self.choose_map(1)
        self.assertTrue(self.nothing_chosen())
        self.check_shapes(1, "step")
        self.choose_map(0)  # nor when one comes back
        self.assertTrue(self.nothing_chosen())
        self.check_shapes(0, "step")
        chart.send_keys(UP)  # any key chooses the first one then
        self.check_facts(self.details(), self.cell(0, 0, 0))
        self.check_shapes(0, "step", 0)

    def test_a_click_chooses_and_the_details_come_back_to_the_chosen_cell(self):
        self.open()
        columns = len(self.maps[0]["cells"]) // len(self.maps[0]["gpus"])
        self.point_at(3, 2)
        ActionChains(self.browser, duration=0).click().perform()
        self.point_at(1, 4)
        self.check_facts(self.details(), self.cell(0, 1, 4))
        ActionChains(self.browser, duration=0).move_to_element(self.box("quantity")).perform()
        facts = self.data()["maps"][0]["cells"][2 * columns + 3]["facts"]
        WebDriverWait(self.browser, 10).until(lambda _: self.details() == facts)
        self.check_shapes(0, "communication", 2 * columns + 3)
        self.box("map").send_keys(LEFT)  # goes on from there
        self.check_facts(self.details(), self.cell(0, 2, 2))

    # ── where it is read ──

    def test_nothing_scrolls_sideways(self):
        for width in (390, 1400):
            self.open(width=width)
            for which in (0, 1):
                self.choose_map(which)
                Select(self.box("quantity")).select_by_value("step")
                self.script("document.querySelectorAll('details').forEach((each) => { each.open = true; });")
                self.assertEqual(too_wide(self.browser), [], f"at {width}")
                self.assertLessEqual(self.box("map").size["width"], width)
        set_size(self.browser, 390, 844)  # and the picture follows
        WebDriverWait(self.browser, 10).until(lambda _: self.script("return chart.getWidth();") <= 390)

    def test_without_a_script_the_tables_are_there_and_no_empty_picture(self):
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setScriptExecutionDisabled", {"value": False})
        self.open()
        self.assertFalse(self.box("map").is_displayed())
        self.assertIn("The map needs JavaScript", self.browser.find_element("tag name", "main").text)
        for summary in self.browser.find_elements("tag name", "summary"):
            summary.click()
        for table in self.browser.find_elements("css selector", "pre"):
            self.assertIn("100,000", table.text)

    def test_a_nasty_name_stays_text(self):
        self.open("nasty")
        self.assertIn("</script><b", self.browser.find_element("tag name", "h1").text)
        self.assertEqual(len(self.browser.find_elements("tag name", "h1")), 1)
        self.assertEqual(self.script("return document.documentElement.lang;"), "en")
        self.point_at(0, 4)
        self.assertTrue(self.tip()[0].startswith("32 GPUs"), self.tip())


if __name__ == "__main__":
    with headless_browser() as browser, tempfile.TemporaryDirectory() as folder:
        MapPageTest.browser, MapPageTest.folder = browser, Path(folder)
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
