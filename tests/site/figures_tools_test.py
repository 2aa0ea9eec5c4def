"""What tools/site/figures.py refuses, and what it writes: without a browser."""

import copy
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/site"))
sys.path.insert(0, str(ROOT / "tools"))
import figures  # noqa: E402
import memory_order  # noqa: E402
from lesson_source import LessonError, lessons_in_order  # noqa: E402


def bar_data():
    return {"kind": "bars", "title": "T <1>", "words": "W", "series": ["a", "b", ""], "columns": ["all"], "each_by_itself": False,
            "choices": [{"name": "dp", "words": "dp", "values": ["1", "2"], "start": "2"},
                        {"name": "tp", "words": "tp", "values": ["1", "2"], "start": "1"},
                        {"name": "model", "words": "model", "values": ["x", "y"], "start": "y"}],
            "rows": [{"name": "one", "scale": "bytes"}],
            "states": [[[[at, at], [str(at)]]] for at in range(7)] + ["it can't be; try less"]}


def recording():
    def block(name, values, rows, cols):
        return {"name": name, "values": values, "rows": rows, "cols": cols, "tensor": 1}

    return {"steps": [{"title": "start", "holds": [[block("down", [1, 2], 1, 2)], [block("down", [3, 4], 1, 2)]], "lines": []},
                      {"title": "rows", "holds": [[], []], "lines": []},
                      {"title": "gather", "holds": [[block("down, as it arrived", [1, 2, 3, 4], 1, 4)], []], "lines": []},
                      {"title": "copy", "holds": [[block("down", [1, 3, 2, 4], 2, 2)], []], "lines": ["  ★ down[1,0] = 2 at row 1, column 0 of it"]}]}


class Bars(unittest.TestCase):
    def test_state_of(self):
        data = bar_data()
        self.assertEqual(figures.state_of(data, ["2", "1", "x"])[0][1], ["4"])
        self.assertEqual(figures.state_of(data, ["2", "2", "y"]), "it can't be; try less")

    def test_longest_is_of_what_can_be_compared(self):
        self.assertEqual(figures.longest(bar_data()), {"bytes|x": 12, "bytes|y": 10})

    def test_begins_with_the_own_grid(self):
        made = figures.bars("13", bar_data())
        self.assertIn('<td class="mwf-number" data-heading="all">5</td>', made)
        self.assertEqual(re.findall(r"--share:([\d.]+)", made), ["0.50000", "0.50000", "0.00000"])
        self.assertIn("T &lt;1&gt;", made)
        self.assertEqual(made.count("<li>"), 2)  # a part without a name needs no legend
        self.assertEqual(json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', made)[1])["most"], figures.longest(bar_data()))

    def test_own_grid_that_is_refused(self):
        data = bar_data()
        data["choices"][1]["start"] = "2"
        with self.assertRaisesRegex(LessonError, "begins with a grid that is refused: it can't be; try less"):
            figures.bars("13", data)


class MemoryOrder(unittest.TestCase):
    def test_both_strips(self):
        made = memory_order.memory_order(recording())
        cells = re.findall(r'data-value="(\d)" data-at="(\d)" data-from="(\d)" data-row="(\d)" data-column="(\d)"', made)
        self.assertEqual(["".join(cell) for cell in cells], ["10000", "21010", "32101", "43111", "10000", "31101", "22010", "43111"])
        self.assertIn('data-marked="2"', made)

    def test_what_is_not_there(self):
        for step, change in ((3, lambda step: step.update(lines=[])), (3, lambda step: step["holds"][0][0].update(values=[1, 3, 2, 5])),
                             (2, lambda step: step.update(holds=[[], []])), (0, lambda step: step["holds"].pop()),
                             (2, lambda step: step["holds"][0][0].update(values=None))):
            broken = copy.deepcopy(recording())
            change(broken["steps"][step])
            with self.assertRaisesRegex(LessonError, "the recording of lesson 05 should"):
                memory_order.memory_order(broken)


class OnAPage(unittest.TestCase):
    def test_every_place_is_a_section_of_its_lesson(self):
        lessons = {lesson.number: lesson for lesson in lessons_in_order(ROOT)}
        for number, place in figures.PLACES.items():
            self.assertIn(f"## {place}\n", "".join(f"{block.prose}\n" for block in lessons[number].blocks if block.kind == "prose"), number)

    def test_place_that_is_missing(self):
        lesson = next(each for each in lessons_in_order(ROOT) if each.number == "05")
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(LessonError, 'has no section "The reference", before which'):
            figures.complete(lesson, "<p>nothing</p>", recording(), Path(folder), Path(folder))

    def test_colours_of_all_pictures(self):
        made = figures.colours(ROOT)
        self.assertEqual(len(re.findall(r"--mwf-[pr]\d:#", made)), 32)
        source = (ROOT / "sim/pictures/palette.hpp").read_text(encoding="utf-8")
        first = re.search(r'kParameterColours\[kColours\] = \{\s*\{"(#\w+)", "(#\w+)"\}', source)
        self.assertEqual(re.findall(r"--mwf-p0:(#\w+)", made), list(first.groups()))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "sim/pictures").mkdir(parents=True)
            (Path(folder) / "sim/pictures/palette.hpp").write_text(source.replace("kQuiet", "kSilent"), encoding="utf-8")
            with self.assertRaisesRegex(LessonError, "should have 21 colours, and 20"):
                figures.colours(folder)

    def test_page_of_a_trace_without_a_timeline(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(LessonError, "the page of the trace has no data"):
            figures.timeline(ROOT, "<html></html>", "", Path(folder))


if __name__ == "__main__":
    unittest.main()
