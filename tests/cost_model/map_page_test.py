#!/usr/bin/env python3
"""Opens pages of sweet-spot maps in a real browser, as a reader would.

    map_page_test.py WRITE_MAP_PAGES

A page fails when the console shows an error, a request leaves the machine's files, it scrolls sideways on a phone or on a
desktop, a cell that is pointed at, touched or chosen with the keys says other figures than the map has, or the switches
do not change what is shown.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "site"))
from headless_browser import (console_faults, headless_browser, request_faults, set_media, set_size,  # noqa: E402
                              too_wide)
try:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    pass  # headless_browser says what is missing, and skips

PROGRAM = sys.argv[1]
LEFT, RIGHT, UP, DOWN = "\ue012", "\ue014", "\ue013", "\ue015"
HOME, END, PAGE_UP, PAGE_DOWN, ESCAPE, TAB = "\ue011", "\ue010", "\ue00e", "\ue00f", "\ue00c", "\ue004"


def ratio_text(ratio):
    return f"{ratio:.2f}"


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

    def texts(self):
        """All texts that are drawn, as the chart's own list of shapes has them."""
        return self.script("""
          const texts = [];
          const visit = (one) => {
            if (one.type === "text" && one.style.text) texts.push(one.style.text);
            (one.children ? one.children() : []).forEach(visit);
          };
          chart.getZr().storage.getRoots().forEach(visit);
          return texts;""")

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

    def test_every_cell_shows_its_ratio_and_the_table_has_it_too(self):
        self.open()
        table = self.script("""return [...document.querySelectorAll('#cells-0 tbody tr')].map((row) =>
                               [...row.cells].map((cell) => cell.textContent));""")
        cells = self.maps[0]["cells"]
        self.assertEqual([row[4] for row in table], [ratio_text(cell["communication"]["ratio"]) for cell in cells])
        shown = self.texts()
        for cell in cells:
            self.assertIn(ratio_text(cell["communication"]["ratio"]), shown)
        Select(self.box("quantity")).select_by_value("step")
        shown = self.texts()
        for cell, row in zip(cells, table):
            if cell["step"]:
                self.assertIn(ratio_text(cell["step"]["ratio"]), shown)
                self.assertIn(cell["step"]["best_strategy"], shown)
                self.assertEqual(row[9:11], [f"{cell['step']['ratio']:.3f}", cell["step"]["best_strategy"]])
            else:
                self.assertIn(cell["step_obstacle"], shown)
                self.assertEqual(row[9], cell["step_obstacle"])

    def test_hatching_the_line_and_the_mark_are_drawn_where_the_map_has_them(self):
        self.open()
        count = """
          let lines = 0, thick = 0, marks = 0;
          const visit = (one) => {
            if (one.type === "line" && one.style.lineWidth === 3.5) thick += 1;
            if (one.type === "line" && one.style.lineWidth === 1.2) lines += 1;
            if (one.type === "polygon") marks += 1;
            (one.children ? one.children() : []).forEach(visit);
          };
          chart.getZr().storage.getRoots().forEach(visit);
          return [lines > 0, thick, marks];"""
        for which, marks in ((0, 1), (1, 0)):
            self.choose_map(which)
            hatched = any(cell["communication"] and cell["communication"]["extrapolated"]
                          for cell in self.maps[which]["cells"])
            self.assertEqual(self.script(count), [hatched, len(self.maps[which]["inversion_line_cells"]), marks])
            self.assertEqual(self.box("own-link").is_displayed(), marks == 1)

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

    def test_the_switches_are_reached_and_changed_with_the_keys(self):
        self.open()
        body = self.browser.find_element("tag name", "body")
        body.send_keys(TAB)
        focused = "return document.activeElement.name || document.activeElement.id;"
        self.assertEqual(self.script(focused), "map")
        self.browser.switch_to.active_element.send_keys(RIGHT)
        self.assertEqual(self.script("return chart.getOption().title[0].text;"), "tensor-parallel ranks (tp)")
        self.browser.switch_to.active_element.send_keys(TAB)
        self.assertEqual(self.script(focused), "quantity")
        self.browser.switch_to.active_element.send_keys(DOWN)
        self.assertTrue(self.box("legend-step").is_displayed())
        self.browser.switch_to.active_element.send_keys(TAB)
        self.assertEqual(self.script("return document.activeElement.tagName;"), "DIV")
        self.assertEqual(self.script(focused), "map")

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
        """All that the map has to draw, worked out from its data and the size of its box."""
        data, shapes = self.data(), self.shapes()
        of = data["maps"][which]
        size = self.box("map").size
        rows, columns = len(of["rows"]), len(of["columns"])
        self.assertEqual(size["height"], 64 + 8 + 34 * rows)
        self.assertEqual(self.box("map").get_attribute("aria-label"), of["label"])
        self.assertEqual(self.script("return [chart.getWidth(), chart.getHeight()];"), [size["width"], size["height"]])
        option = self.script("""const of = chart.getOption();
          return [of.title[0].text, of.title[0].textStyle.width, of.xAxis[0].data, of.yAxis[0].data, of.yAxis[0].name,
                  of.backgroundColor, of.tooltip[0].backgroundColor];""")
        shade = {name: colour[theme] for name, colour in data["colours"].items()}
        self.assertEqual(option, [of["heading"], size["width"] - 70, of["columns"], of["rows"], "GPUs", shade["paper"],
                                  shade["paper"]])
        width = (size["width"] - 64 - 6) / columns

        def x(column):
            return 64 + width * column

        def y(row):
            return 64 + 34 * row

        def in_order(shapes):
            """By the cell in which their middle lies, row by row; as they were drawn within one."""
            def cell_of(shape):
                if shape["type"] == "line":
                    at = (shape["x1"] + shape["x2"]) / 2, (shape["y1"] + shape["y2"]) / 2
                else:
                    at = shape["x"] + shape.get("width", 0) / 2, shape["y"] + shape.get("height", 0) / 2
                return int((at[1] - 64) // 34), int((at[0] - 64) // width)
            return sorted(shapes, key=cell_of)

        expected = {"rect": [], "text": []}
        for i, cell in enumerate(of["cells"]):
            figure = cell[quantity]
            box = (x(cell["column"]) + 1, y(cell["row"]) + 1, width - 2, 32)
            word = figure["band"] is None
            expected["rect"].append((*box, shade["ground" if word else "paper"], None))
            if not word:
                expected["rect"].append((*box, data["band_colours"][figure["band"]][theme],
                                         data["band_opacities"][figure["band"]]))
            expected["rect"].append((*box, "transparent", 3 if i == selected else 0))
            middle = (x(cell["column"] + 0.5), y(cell["row"] + 0.5))
            if word:
                expected["text"].append((figure["text"], *middle, f"{9 if width < 46 else 11}px", shade["quiet"]))
                continue
            large = f"{12 if width < 40 else 13}px"
            letter = figure.get("letter")
            expected["text"].append((figure["text"], middle[0], middle[1] - (6 if letter else 0), large, shade["ink"]))
            if letter:
                expected["text"].append((letter, middle[0], middle[1] + 8, "11px", shade["ink"]))
        rectangles = in_order(each for each in shapes if each["type"] == "rect" and not each["silent"])
        self.assertEqual(len(rectangles), len(expected["rect"]))
        for each, (left, top, wide, high, fill, more) in zip(rectangles, expected["rect"]):
            for name, value in (("x", left), ("y", top), ("width", wide), ("height", high)):
                self.assertAlmostEqual(each[name], value, places=3)
            self.assertEqual(each["fill"], fill)
            if fill == "transparent":
                self.assertEqual((each["lineWidth"], each["stroke"]), (more, shade["ink"]))
            elif more is not None:
                self.assertEqual(each["opacity"], more)
        texts = in_order(each for each in shapes if each["type"] == "text")
        self.assertEqual([each["text"] for each in texts], [text for text, *_ in expected["text"]])
        for each, (text, left, top, font, fill) in zip(texts, expected["text"]):
            self.assertAlmostEqual(each["x"], left, places=3)
            self.assertAlmostEqual(each["y"], top, places=3)
            self.assertIn(font + " system-ui", each["font"])
            self.assertEqual(each["font"].startswith("600 "), font in ("12px", "13px"))
            self.assertEqual(each["fill"], fill)
            self.assertTrue(each["silent"])
            self.assertEqual((each["stroke"], each["lineWidth"]) == (shade["paper"], 3), fill == shade["ink"])
        # The line, with a broader one of the paper's colour behind it.
        lines = [each for each in shapes if each["type"] == "line"]
        for wide, colour in ((7, "paper"), (3.5, "ink")):
            drawn = [each for each in lines if each["lineWidth"] == wide]
            self.assertEqual(len(drawn), len(of["line"]))
            for each, (x1, y1, x2, y2) in zip(drawn, of["line"]):
                self.assertEqual(each["stroke"], shade[colour])
                for name, value in (("x1", x(x1)), ("y1", y(y1)), ("x2", x(x2)), ("y2", y(y2))):
                    self.assertAlmostEqual(each[name], value, places=3)
        # Slanted lines, 8 pixels apart along the upper and the right edge: they begin and end on the edges of their cell.
        hatching = in_order(each for each in lines if each["lineWidth"] == 1.2)
        outside = [cell for cell in of["cells"] if cell[quantity]["extrapolated"]]
        each_has = len([at for at in range(4, 10_000, 8) if at < width - 2 + 32])
        self.assertEqual(len(hatching), each_has * len(outside))
        for i, each in enumerate(hatching):
            cell, at = outside[i // each_has], 4 + 8 * (i % each_has)
            left, top, wide = x(cell["column"]) + 1, y(cell["row"]) + 1, width - 2
            ends = {"x1": left + max(0, at - 32), "y1": top + min(at, 32), "x2": left + min(wide, at),
                    "y2": top + max(0, at - wide)}
            for name, value in ends.items():
                self.assertAlmostEqual(each[name], value, places=3)
            self.assertEqual((each["stroke"], each["opacity"]), (shade["ink"], 0.28))
        marks = [each for each in shapes if each["type"] == "polygon"]
        self.assertEqual(len(marks), 0 if of["own"] is None else 1)
        for mark in marks:
            self.assertEqual(mark["fill"], shade["ink"])
            own = x(of["own"])
            for point, to in zip(mark["points"], ([own - 6, 52], [own + 6, 52], [own, 61])):
                self.assertAlmostEqual(point[0], to[0], places=3)
                self.assertAlmostEqual(point[1], to[1], places=3)

    def test_each_map_draws_its_cells_words_line_and_mark_where_they_belong(self):
        for width in (1400, 390):
            self.open(width=width)
            for which in (0, 1):
                self.choose_map(which)
                for quantity in ("communication", "step"):
                    Select(self.box("quantity")).select_by_value(quantity)
                    self.check_shapes(which, quantity)
                    self.assertEqual(self.box("own-link").is_displayed(), which == 0)

    def test_the_map_follows_the_page_when_it_turns_narrow_and_wide_again_and_dark(self):
        self.open()
        wide = self.box("map").size["width"]
        for width in (390, 1400, 420):
            set_size(self.browser, width, 1000)
            WebDriverWait(self.browser, 10).until(
                lambda _: self.script("return chart.getWidth() === document.getElementById('map').clientWidth;"))
            self.assertEqual(self.box("map").size["width"] == wide, width == 1400)
            self.check_shapes(0, "communication")
        paper = "return chart.getOption().backgroundColor;"
        self.addCleanup(set_media, self.browser, prefers_color_scheme="light")
        for theme in ("dark", "light", "dark"):
            colour = self.data()["colours"]["paper"][theme]
            set_media(self.browser, prefers_color_scheme=theme)
            WebDriverWait(self.browser, 10).until(lambda _, colour=colour: self.script(paper) == colour)
            self.check_shapes(0, "communication", theme=theme)
        self.choose_map(1)  # and it stays dark
        Select(self.box("quantity")).select_by_value("step")
        self.check_shapes(1, "step", theme="dark")

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

    def test_keys_go_over_the_rows_and_columns_of_the_map_that_is_shown(self):
        self.open()
        self.choose_map(1)
        chart = self.box("map")
        facts = [cell["facts"] for cell in self.data()["maps"][1]["cells"]]
        rows, columns = len(self.maps[1]["gpus"]), len(self.maps[1]["tp"])
        self.assertNotEqual(columns, len(self.maps[0]["links_bytes_per_second"]))
        for key, (column, row) in ((END, (0, 0)), (END, (columns - 1, 0)), (PAGE_DOWN, (columns - 1, rows - 1)),
                                   (UP, (columns - 1, rows - 2)), (LEFT, (columns - 2, rows - 2)),
                                   (HOME, (0, rows - 2)), (PAGE_UP, (0, 0)), (DOWN, (0, 1)), (RIGHT, (1, 1))):
            chart.send_keys(key)
            self.assertEqual(self.details(), facts[row * columns + column])
            self.assertEqual(self.tip(), facts[row * columns + column])
        self.check_shapes(1, "communication", columns + 1)
        chart.send_keys(ESCAPE)
        self.assertTrue(self.nothing_chosen())
        self.check_shapes(1, "communication")

    def test_keys_of_the_map_do_not_scroll_the_page_and_others_are_left_to_the_browser(self):
        self.open()
        press = """
          const event = new KeyboardEvent("keydown", { key: arguments[0], cancelable: true, ...arguments[1] });
          return !document.getElementById("map").dispatchEvent(event);"""
        for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End", "PageUp", "PageDown", "Escape"):
            for modifier in ("ctrlKey", "metaKey", "altKey"):
                self.assertFalse(self.script(press, key, {modifier: True}), (modifier, key))
                self.assertTrue(self.nothing_chosen())
            self.assertTrue(self.script(press, key, {}), key)
            self.assertEqual(self.nothing_chosen(), key == "Escape")
            self.script(press, "Escape", {})
        for key in ("Tab", "a", "Enter", " ", "F5"):
            self.assertFalse(self.script(press, key, {}), key)
            self.assertTrue(self.nothing_chosen())

    def test_a_click_chooses_and_the_details_come_back_to_the_chosen_cell(self):
        self.open()
        columns = len(self.maps[0]["cells"]) // len(self.maps[0]["gpus"])
        for column, row in ((3, 2), (6, 9)):
            self.point_at(column, row)
            ActionChains(self.browser, duration=0).click().perform()
            self.point_at(1, 4)
            self.check_facts(self.details(), self.cell(0, 1, 4))
            self.check_facts(self.tip(), self.cell(0, 1, 4))
            thin = [each for each in self.shapes() if each["type"] == "rect" and each["lineWidth"] == 1.5]
            self.assertEqual(len(thin), 1)
            ActionChains(self.browser, duration=0).move_to_element(self.box("quantity")).perform()
            facts = self.data()["maps"][0]["cells"][row * columns + column]["facts"]
            WebDriverWait(self.browser, 10).until(lambda _, facts=facts: self.details() == facts)
            self.check_shapes(0, "communication", row * columns + column)
        self.box("map").send_keys(LEFT)  # goes on from there
        self.check_facts(self.details(), self.cell(0, 5, 9))
        self.box("map").send_keys(TAB)
        WebDriverWait(self.browser, 10).until(lambda _: self.tip() == [])
        self.check_facts(self.details(), self.cell(0, 5, 9))
        self.box("map").send_keys(ESCAPE)
        self.point_at(2, 2)
        ActionChains(self.browser, duration=0).move_to_element(self.box("quantity")).perform()
        WebDriverWait(self.browser, 10).until(lambda _: self.nothing_chosen())

    def test_a_page_that_comes_with_other_choices_shows_them(self):
        page = (self.folder / "maps.html").read_text(encoding="utf-8")
        for old, new in (('value="0" checked>', 'value="0">'), ('name="map" value="1">', 'name="map" value="1" checked>'),
                         ('<option value="step">', '<option value="step" selected>')):
            self.assertEqual(page.count(old), 1)
            page = page.replace(old, new)
        (self.folder / "others.html").write_text(page, encoding="utf-8")
        self.open("others")
        self.check_shapes(1, "step")
        for name, shown in (("legend-communication", False), ("legend-step", True), ("own-link", False)):
            self.assertEqual(self.box(name).is_displayed(), shown)
        self.choose_map(0)
        self.check_shapes(0, "step")
        self.assertTrue(self.box("own-link").is_displayed())

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

    def test_dark_pages_are_dark(self):
        self.open()
        corner = ("const canvas = document.querySelector('#map canvas');"
                  "return [...canvas.getContext('2d').getImageData(1, 1, 1, 1).data];")
        self.assertEqual(self.script(corner), [255, 255, 255, 255])
        set_media(self.browser, prefers_color_scheme="dark")
        self.addCleanup(set_media, self.browser, prefers_color_scheme="light")
        WebDriverWait(self.browser, 10).until(lambda _: self.script(corner) == [20, 23, 28, 255])

    def test_without_a_script_the_tables_are_there_and_no_empty_picture(self):
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setScriptExecutionDisabled", {"value": False})
        self.open()
        self.assertFalse(self.box("map").is_displayed())
        self.assertIn("The map needs JavaScript", self.browser.find_element("tag name", "main").text)
        for summary in self.browser.find_elements("tag name", "summary"):
            summary.click()
        self.assertIn("100,000", self.box("cells-0").text)
        self.assertIn("100,000", self.box("cells-1").text)

    def test_a_nasty_name_stays_text_and_a_page_without_steps_has_no_ratio_of_steps(self):
        self.open("nasty")
        self.assertIn("</script><b", self.browser.find_element("tag name", "h1").text)
        self.assertEqual(len(self.browser.find_elements("tag name", "h1")), 1)
        self.assertEqual(self.script("return document.documentElement.lang;"), "en")
        self.assertEqual([option.text for option in Select(self.box("quantity")).options], ["communication"])
        self.point_at(0, 4)
        self.assertTrue(self.tip()[0].startswith("32 GPUs"), self.tip())


if __name__ == "__main__":
    with headless_browser() as browser, tempfile.TemporaryDirectory() as folder:
        MapPageTest.browser, MapPageTest.folder = browser, Path(folder)
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
