"""The drawings of all lessons, as docs/make/drawings.py draws them: nothing of the text is lost, and nothing else becomes a drawing."""

import html
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/make"))
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
    def test_no_sign_is_lost(self):
        drawn = [(number, text) for number, text in all_texts() if drawings.drawn(text) is not None]
        self.assertGreater(len(drawn), 15)
        for number, text in drawn:
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

    def test_in_a_page(self):
        page = '<p>x</p><pre class="fragment">████ &lt;a\n</pre><pre class="fragment">A = <a href="x">X</a> @ X.T\n</pre>'
        made = drawings.with_drawings(page)
        self.assertEqual(made.count("<figure"), 1)
        self.assertIn('<pre class="fragment">A = <a href="x">X</a> @ X.T\n</pre>', made)


if __name__ == "__main__":
    unittest.main()
