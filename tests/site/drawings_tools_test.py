"""The drawings of all lessons, as tools/site/drawings.py draws them: nothing of the text is lost, and nothing else becomes a drawing."""

import html
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/site"))
sys.path.insert(0, str(ROOT / "tools"))
import drawings  # noqa: E402
from lesson_source import lessons_in_order  # noqa: E402


def indented_texts(lesson):
    """What stands indented by four blanks in the lesson's prose: drawings, formulas, code, tables."""
    texts = []
    for block in lesson.blocks:
        if block.kind == "prose":
            for part in re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", block.prose + "\n", re.MULTILINE):
                texts.append("\n".join(line[4:] for line in part.rstrip("\n").split("\n")))
    return texts


def all_texts():
    return [(lesson.number, text) for lesson in lessons_in_order(ROOT) for text in indented_texts(lesson)]


def seen_in(svg):
    """Every sign that the SVG shows as text or as a cell, in no order; of lines and arrows, how many there are."""
    words = "".join(html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    silent = len(re.findall(r'<rect[^>]*class="mwd-(?:held|other|none)"/>', svg))
    return sorted(words.replace(" ", "")), silent, len(re.findall(r"[-\d]h?v?9z|h8z", svg))


class Drawings(unittest.TestCase):
    def test_which_are_drawn(self):
        drawn = {}
        for number, text in all_texts():
            drawn.setdefault(number, []).append(drawings.drawn(text) is not None)
        with_one = {number for number, each in drawn.items() if any(each)}
        self.assertEqual(with_one, {"00", "01", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "15", "17", "18", "19", "21",
                                    "22", "23"})
        self.assertEqual(sum(map(sum, drawn.values())), 20)  # two in lesson 05

    def test_code_and_formulas_stay_text(self):
        for _, text in all_texts():
            if re.search(r"torch|dist\.|=group|p\.mul_|@ X\.T|five times", text):
                self.assertIsNone(drawings.drawn(text), text)

    def test_no_sign_is_lost(self):
        for number, text in all_texts():
            if drawings.drawn(text) is None:
                continue
            lines = text.strip("\n").split("\n")
            caption = lines.pop()[1:-1] if lines[-1].startswith("(") else ""
            self.assertIn(f">{html.escape(caption, quote=False)}</figcaption>" if caption else "<figure", drawings.drawn(text))
            words, silent, arrows = seen_in(drawings.drawn(text).split("<pre")[0])
            drawing = drawings.Drawing(lines)
            signs = [sign for line in drawing.lines for sign in line if sign != " "]
            heads = [sign for sign in signs if sign in drawings._ARROWS]
            blank_cells = [at for at, sign in drawing.cells.items() if sign in "█▌▒" or
                           (sign == "·" and drawings._fill(drawing, *at) == "mwd-none")]
            self.assertEqual((number, silent, arrows), (number, len(blank_cells), len(heads)))
            left = sorted(sign for line, row in enumerate(drawing.lines) for column, sign in enumerate(row)
                          if sign != " " and (line, column) not in blank_cells and sign not in drawings._LINES
                          and sign not in drawings._ARROWS and not (sign == "|" and (line, column) in drawing.cells))
            self.assertEqual(words, left, f"lesson {number}")

    def test_text_stays_as_it_is(self):
        for _, text in all_texts():
            made = drawings.drawn(text)
            if made:
                self.assertEqual(html.unescape(re.search(r'<pre class="mw-heard">(.*?)</pre>', made, re.DOTALL)[1]), text)
                self.assertIn('aria-hidden="true"', made)

    def test_cells(self):
        drawing = drawings.Drawing(["dp 0  qqqq··uuUU", "tp 1  ██··  ▒▒▒▒", "came  0000|1111  100 111 102"])
        self.assertEqual([drawings._fill(drawing, 0, column) for column in range(6, 16)],
                         ["mwd-p0"] * 4 + ["mwd-padding"] * 2 + ["mwd-p1"] * 2 + ["mwd-p1 mwd-new"] * 2)
        self.assertEqual([drawings._fill(drawing, 1, column) for column in (6, 7, 8, 9, 12)],
                         ["mwd-held", "mwd-held", "mwd-none", "mwd-none", "mwd-other"])
        self.assertEqual([drawings._fill(drawing, 2, column) for column in (6, 11)], ["mwd-r0", "mwd-r1"])
        self.assertNotIn((2, 21), drawing.cells)  # numbers that stand in a sentence
        self.assertEqual(drawings.Drawing(["aa bbb 1111a"]).cells, {})  # words
        drawing.digits = "parameter"
        self.assertEqual(drawings._fill(drawing, 2, 11), "mwd-p1")

    def test_panels(self):
        """Cut where nothing leads across, and nowhere else."""
        def cut(*lines):
            return drawings.panels(drawings.Drawing(list(lines)))

        self.assertEqual(cut("████      ████", "████      ████"), [(0, 4), (10, 14)])
        self.assertEqual(cut("████     →     ████", "████           ████"), [(0, 10), (15, 19)])
        self.assertEqual(cut("████     ←     ████", "████           ████"), [(0, 19)])
        self.assertEqual(cut("████ → ████"), [(0, 11)])
        self.assertEqual(cut("████ →  ████", "████   tp 0"), [(0, 6), (7, 12)])
        self.assertEqual(cut("████ →  ████", "a sentence below"), [(0, 16)])
        self.assertEqual(cut("████    ████"), [(0, 12)])
        self.assertEqual(cut("████      ████", "a sentence below"), [(0, 16)])

    def test_panels_stand_as_in_the_text(self):
        made = drawings.drawn("████      ████")
        self.assertEqual(re.findall(r'margin-right:(\d+)px', made), [str(6 * drawings.WIDE), "0"])
        self.assertEqual(re.findall(r' width="(\d+)" height', made)[::5], [str(4 * drawings.WIDE + 2)] * 2)

    def test_arrows_and_lines(self):
        made = drawings.drawn("┌──→ a\n│  ████")
        self.assertIn("M4.5 11L9 11M4.5 11L4.5 22", made)  # the corner goes to the right and down
        self.assertIn("M27 11H32", made)  # the arrow begins where the line ends
        up, right = drawings._arrow(drawings.Drawing(["a ↑ b"]), 0, 2), drawings._arrow(drawings.Drawing(["a → b"]), 0, 2)
        self.assertTrue(up[1].endswith("h8z") and right[1].endswith("v9z"), (up, right))
        left = drawings._arrow(drawings.Drawing(["a ← b"]), 0, 2)
        self.assertLess(float(re.match(r"M([\d.]+)", left[1])[1]), float(re.match(r"M([\d.]+)", right[1])[1]))

    def test_markup_is_escaped(self):
        self.assertIn("a &lt;b&gt;", drawings.drawn("████ a <b>"))
        self.assertNotIn("<b>", drawings.drawn("████ a <b>"))

    def test_in_a_page(self):
        page = '<p>x</p><pre class="fragment">████ &lt;a\n</pre><pre class="fragment">A = <a href="x">X</a> @ X.T\n</pre>'
        made = drawings.with_drawings(page)
        self.assertEqual(made.count("<figure"), 1)
        self.assertIn('<pre class="fragment">A = <a href="x">X</a> @ X.T\n</pre>', made)


if __name__ == "__main__":
    unittest.main()
