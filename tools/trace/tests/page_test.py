#!/usr/bin/env python3
"""Opens the pages of muonwalk-trace --html in a real browser, as a reader would.

    page_test.py MUONWALK_TRACE PUBLISHED_TRACES

Pages of a small trace written here, of two runs compared, and of a published trace where its folder is there. A page
fails when the console shows an error, a request leaves the machine's files, it scrolls sideways on a phone, pointing at
an event shows other figures than the trace has, buttons or keys do not change what is shown, or the figures are not
those of summary --json.
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/site"))
from headless_browser import (console_faults, headless_browser, request_faults, set_media, set_size,  # noqa: E402
                              too_wide)
from drawn_page import DrawnPage, NASTY, kernel, ms_text  # noqa: E402
try:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    pass  # headless_browser says what is missing, and skips

PROGRAM, PUBLISHED = sys.argv[1], Path(sys.argv[2])
PARTS = ["computation alone", "overlap", "communication alone", "copies alone", "idle"]


def all_reduce(begin, duration):
    return kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, duration, **{
        "Collective name": "allreduce", "In msg nelems": 250000, "Out msg nelems": 250000, "dtype": "Float",
        "Group size": 2, "Process Group Ranks": "[0, 1]"})


def rank_trace(rank, slow):
    """2 ms of a product, an all-reduce of 1,000,000 bytes half of which it overlaps, a copy, and idle time."""
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": [
        kernel(NASTY, 1000, 2000), all_reduce(2000 + slow, 2000 - slow),
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "pid": 0, "tid": 7, "ts": 4500, "dur": 250},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "Optimizer.step#Muon.step", "pid": 0, "tid": 7,
         "ts": 2000, "dur": 2750},
        kernel("short", 5000, 12.5)]}


def parts_ms(rank):
    """What the bars of a rank must say, out of what summary --json says."""
    both = rank["computation_ms"] + rank["communication_ms"] - rank["overlap_ms"]
    return [rank["computation_ms"] - rank["overlap_ms"], rank["overlap_ms"],
            rank["communication_ms"] - rank["overlap_ms"], rank["span_ms"] - rank["idle_ms"] - both, rank["idle_ms"]]


class PageTest(DrawnPage, unittest.TestCase):
    browser = None
    folder = None

    @classmethod
    def setUpClass(cls):
        for rank in (0, 1):
            (cls.folder / f"rank{rank}.json").write_text(json.dumps(rank_trace(rank, 500 * rank)), encoding="utf-8")
        cls.ranks = [cls.folder / "rank0.json", cls.folder / "rank1.json"]

    def tearDown(self):
        self.assertEqual(console_faults(self.browser), [])
        self.assertEqual(request_faults(self.browser), [])

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, encoding="utf-8").stdout

    def open_summary(self, *files, width=1200, height=1000):
        """Opens the page of a run, and returns what summary --json says of it."""
        page = self.folder / "page.html"
        summary = json.loads(self.run_program("summary", *files, "--html", page, "--json"))
        self.open(page, width, height)
        return summary

    def open(self, page, width, height):
        set_size(self.browser, width, height)
        self.browser.get(page.as_uri())

    def script(self, text, *arguments):
        chart = "const chart = (id) => echarts.getInstanceByDom(document.getElementById(id));"
        return self.browser.execute_script(chart + text, *arguments)

    def data(self):
        return self.script("return JSON.parse(document.getElementById('data').textContent);")

    def box(self, name):
        return self.browser.find_element("id", name)

    def view(self):
        """What the timeline shows, by its time axis: the milliseconds at its left and right edge."""
        return self.script("""
          const timeline = chart("timeline");
          const grid = timeline.getModel().getComponent("grid").coordinateSystem.getRect();
          const at = (x) => timeline.convertFromPixel({gridIndex: 0}, [x, grid.y + 1])[0];
          return [at(grid.x), at(grid.x + grid.width)];""")

    def point_at(self, name, x, y):
        """Moves the mouse to a place of a chart, in pixels from its upper left corner."""
        box = self.box(name)
        self.script("arguments[0].scrollIntoView({block: 'center'});", box)
        size = box.size
        ActionChains(self.browser, duration=0).move_to_element_with_offset(box, 0, 0).move_to_element_with_offset(
            box, round(x - size["width"] / 2), round(y - size["height"] / 2)).perform()

    def tip(self):
        """The lines of the tooltip that is shown."""
        return self.script("""
          return [...document.querySelectorAll(".tip")].filter((tip) => tip.checkVisibility({checkVisibilityCSS: true}))
            .flatMap((tip) => [...tip.children].map((line) => line.textContent));""")

    def point_at_slice(self, slice_):
        x, y = self.script("return chart('timeline').convertToPixel({gridIndex: 0}, arguments[0]);",
                           [(slice_[1] + slice_[2] / 2) / 1e6, slice_[0]])
        self.point_at("timeline", x, y)

    def slices_named(self, data, name):
        return [s for s in data["slices"] if s[5] >= 0 and data["texts"][s[5]].startswith(name)]

    def check_figures(self, summary):
        """The bars say what summary --json says, and the words what it prints."""
        words = self.script("return document.querySelector('pre').textContent;")
        bars = self.script("return chart('bars').getOption().series.map((series) => series.data);")
        names = self.script("return chart('bars').getOption().series.map((series) => series.name);")
        self.assertEqual(names, PARTS)
        self.assertGreater(len(summary["ranks"]), 0)
        for i, rank in enumerate(summary["ranks"]):
            parts = parts_ms(rank)
            self.assertRegex(words, rf"\n +{re.escape(rank['label'])} +{ms_text(rank['span_ms'])} +{ms_text(rank['computation_ms'])} ")
            for part, value in enumerate(parts):
                self.assertAlmostEqual(bars[part][i], value, places=6)

    # ── what the page says ──

    def test_figures_are_those_of_the_summary(self):
        summary = self.open_summary(*self.ranks)
        self.check_figures(summary)
        self.assertEqual([round(part, 6) for part in parts_ms(summary["ranks"][0])], [1.0125, 1, 1, 0.25, 0.75])
        self.assertEqual([round(part, 6) for part in parts_ms(summary["ranks"][1])], [1.5125, 0.5, 1, 0.25, 0.75])

    def test_pointing_at_an_event_shows_what_the_trace_says(self):
        self.open_summary(*self.ranks)
        self.point_at_slice(self.slices_named(self.data(), "nccl")[1])
        self.assertEqual(self.tip(), ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "rank 1, communication",
                                      "begins at 1.50 ms", "takes 1.50 ms", "message of 1,000,000 B", "float32",
                                       "group [0, 1]"])
        self.point_at_slice(self.slices_named(self.data(), "gemm")[0])
        self.assertEqual(self.tip(), [NASTY, "rank 0, computation", "begins at 0.00 ms", "takes 2.00 ms"])

    def test_pointing_at_a_bar_shows_its_figures(self):
        self.open_summary(*self.ranks)
        x, y = self.script("return chart('bars').convertToPixel({gridIndex: 0}, [2.5, 0]);")
        self.point_at("bars", x, y)
        self.assertEqual(self.tip(), ["communication alone", "rank 0", "1.00 ms, 24.9 % of the span"])

    # ── what moves ──

    def test_buttons_zoom_and_move(self):
        self.open_summary(*self.ranks)
        span = 4.0125
        for name, shown in (("zoom-in", (span / 4, 3 * span / 4)), ("earlier", (span / 8, 5 * span / 8)),
                            ("later", (span / 4, 3 * span / 4)), ("zoom-out", (0, span)),
                            ("zoom-in", (span / 4, 3 * span / 4)), ("whole", (0, span))):
            self.box(name).click()
            for edge, expected in zip(self.view(), shown):
                self.assertAlmostEqual(edge, expected, places=3, msg=f"after {name}")
            self.assertEqual(self.box("view").text, f"{ms_text(shown[0])} to {ms_text(shown[1])} ms of 4.01 ms")

    def test_keys_go_across_to_the_nearest_event(self):
        trace = {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, "traceEvents": [
            *(kernel(name, begin, 100) for name, begin in (("a", 1000), ("b", 3000), ("c", 5000))),
            *(all_reduce(begin, 50) for begin in (1200, 2900, 4900, 7000))]}
        (self.folder / "lanes.json").write_text(json.dumps(trace), encoding="utf-8")
        self.open_summary(self.folder / "lanes.json")
        timeline = self.box("timeline")
        right, down, up = "\ue014", "\ue015", "\ue013"
        for keys, begins in ((right, "0.00"), (down, "0.20"), (up, "0.00"), (right, "2.00"), (down, "1.90"),
                             (up, "2.00"), (right, "4.00"), (down, "3.90"), (right, "6.00"), (up, "4.00")):
            timeline.send_keys(keys)
            self.assertIn(f"begins at {begins} ms", self.box("selected").text)

    def test_the_wheel_zooms_once_the_timeline_is_chosen(self):
        self.open_summary(*self.ranks)
        timeline = self.box("timeline")
        self.script("arguments[0].scrollIntoView({block: 'center'});", timeline)
        place = ScrollOrigin.from_element(timeline)
        scroll = "return window.scrollY;"
        before, scrolled = self.view(), self.script(scroll)
        ActionChains(self.browser).scroll_from_origin(place, 0, -100).perform()
        self.assertEqual(self.view(), before)
        WebDriverWait(self.browser, 10).until(lambda _: self.script(scroll) < scrolled,
                                              "the page stopped at the timeline")
        ActionChains(self.browser).move_to_element(timeline).click().perform()
        self.assertEqual(self.script("return document.activeElement.id;"), "timeline")
        scrolled = self.script(scroll)
        ActionChains(self.browser).scroll_from_origin(place, 0, -100).perform()
        self.assertLess(self.view()[1] - self.view()[0], before[1] - before[0] - 0.1)
        self.assertEqual(self.script(scroll), scrolled)

    def test_dragging_moves(self):
        self.open_summary(*self.ranks)
        self.box("zoom-in").click()
        begin, end = self.view()
        self.script("arguments[0].scrollIntoView({block: 'center'});", self.box("timeline"))
        mouse = ActionChains(self.browser).move_to_element(self.box("timeline"))
        mouse.click_and_hold().move_by_offset(100, 0).release().perform()
        moved = self.view()
        self.assertLess(moved[0], begin - 0.05)
        self.assertAlmostEqual(moved[1] - moved[0], end - begin, places=3)

    # ── where it is read ──

    def test_on_a_phone_nothing_scrolls_sideways(self):
        self.open_summary(*self.ranks, width=360, height=740)
        self.assertEqual(too_wide(self.browser), [])
        self.assertLessEqual(self.box("timeline").size["width"], 360)
        set_size(self.browser, 1200, 900)  # and back: the pictures follow
        WebDriverWait(self.browser, 10).until(lambda _: self.script("return chart('timeline').getWidth();") > 1000)

    def test_long_names_are_broken_on_a_phone(self):
        trace = {"traceEvents": [kernel("k" * 75, 0, 100), kernel("k" * 75, 200, 100)]}
        (self.folder / "long.json").write_text(json.dumps(trace), encoding="utf-8")
        self.open_summary(self.folder / "long.json", width=360, height=740)
        self.press("ArrowRight")
        self.assertIn("k" * 75, self.box("selected").text)
        self.assertEqual(too_wide(self.browser), [])
        self.assertEqual(self.script("return getComputedStyle(document.getElementById('timeline')).touchAction;"), "pan-y")

    def test_the_buttons_stay_in_sight_over_a_timeline_of_many_ranks(self):
        files = []
        for rank in range(12):
            files.append(self.folder / f"many_{rank}.json")
            files[-1].write_text(json.dumps({**rank_trace(rank, 0), "distributedInfo": {
                "backend": "nccl", "rank": rank, "world_size": 12}}), encoding="utf-8")
        self.open_summary(*files, height=600)
        self.assertEqual(self.box("timeline").size["height"], 30 + 46 + 12 * 5 * 20)
        self.script("arguments[0].scrollIntoView({block: 'end'});", self.box("timeline"))
        begin = self.view()
        self.assertEqual(self.script("""
          const button = document.getElementById("zoom-in"), box = button.getBoundingClientRect();
          return [document.querySelector(".tools").getBoundingClientRect().top,
            document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2) === button];"""), [0, True])
        self.box("zoom-in").click()
        self.assertLess(self.view()[1], begin[1])

    def test_two_runs_stand_below_each_other_on_one_time_scale(self):
        page = self.folder / "compared.html"
        self.run_program("compare", *self.ranks, "--html", page)
        self.open(page, 360, 740)
        self.assertEqual(too_wide(self.browser), [])
        self.assertEqual(self.script("return chart('bars').getOption().yAxis[0].data;"),
                         ["A · rank 0 · 4.01 ms", "B · rank 1 · 4.01 ms"])
        self.assertGreater(len(self.script("return [...document.querySelectorAll('#warnings li')];")), 0)
        a, b = self.slices_named(self.data(), "gemm")
        self.assertEqual((a[1], b[1]), (0, 0))  # each from its own beginning
        self.assertLess(a[0], b[0])

    def test_a_run_that_could_not_be_timed_has_a_page(self):
        trace = {"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "range", "pid": 0, "tid": 1,
                                  "ts": 0, "dur": 5}]}
        (self.folder / "untimed.json").write_text(json.dumps(trace), encoding="utf-8")
        self.open_summary(self.folder / "untimed.json")
        self.assertIn("Counted: nothing: there are no kernels", self.browser.find_element("tag name", "pre").text)

    def test_a_published_trace(self):
        trace = PUBLISHED / "trace_muon_FULLSTEP_dp2_tp2_rank0.json"
        if not trace.exists():
            self.skipTest(f"skipped: the published traces are not in {PUBLISHED}")
        summary = self.open_summary(trace)
        self.check_figures(summary)
        data = self.data()
        communication = [s for s in self.slices_named(data, "nccl") if data["lines"][s[0]]["kind"] == 1]
        self.assertEqual(round(sum(s[2] for s in communication) / 1e6, 2), 68.73)
        self.point_at_slice(communication[0])
        self.assertEqual(self.tip()[0], data["texts"][communication[0][5]])
        self.open(self.folder / "page.html", 360, 740)
        self.assertEqual(too_wide(self.browser), [])


if __name__ == "__main__":
    with headless_browser() as browser, tempfile.TemporaryDirectory() as folder:
        PageTest.browser, PageTest.folder = browser, Path(folder)
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
