#!/usr/bin/env python3
"""Tests of tools/make_text.py, which is in the first argument's folder: what of a lesson's source is prose, and what is code."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOLS = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, TOOLS)
import make_text  # noqa: E402

SOURCE = """// # Lesson 05 · Gather
// A paragraph that goes on
// in a second line, with `code`, *stress* and \\ref gather_rows in it.
//
//     a drawing – is not prose
// | nor | is a table |
#include <vector>

int rows = 4;  // behind code
  // Indented prose → one that stands in a function; it is as long as the one above was.
  return rows;  // the end

// short

// The last paragraph of the file, which ends without an empty line behind it: × … √ “quoted” ’s
"""


class MakeText(unittest.TestCase):
    def test_paragraphs(self):
        self.assertEqual(list(make_text.paragraphs(SOURCE)), [
            "A paragraph that goes on in a second line, with `code`, *stress* and \\ref gather_rows in it.",
            "Indented prose → one that stands in a function; it is as long as the one above was.",
            "short",
            "The last paragraph of the file, which ends without an empty line behind it: × … √ “quoted” ’s"])

    def test_plain(self):
        self.assertEqual([make_text.plain(each) for each in make_text.paragraphs(SOURCE)], [
            "A paragraph that goes on in a second line, with code, stress and gather_rows in it.",
            "Indented prose to one that stands in a function; it is as long as the one above was.",
            "",  # too short to be one
            'The last paragraph of the file, which ends without an empty line behind it: x ... root  "quoted" \'s'])
        self.assertEqual(make_text.plain("x" * 60), "")
        self.assertEqual(make_text.plain("x" * 61), "x" * 61)
        self.assertEqual(make_text.plain("ж" + "x" * 61), "")
        self.assertEqual(make_text.plain("φ, β, σ, μ, ε: 1 ≤ 2 − 1, a₁ · b₂ – c² is a sum of names that are Greek"),
                         "phi, beta, sigma, mu, epsilon: 1 <= 2 - 1, a1 * b2 - c^2 is a sum of names that are Greek")

    def test_code(self):
        self.assertEqual(make_text.code(SOURCE + "int é = 1;\n\n"), ["int rows = 4;", "  return rows;"])

    def test_lessons_in_order_up_to_the_most_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, name in enumerate(("lesson_02_b", "lesson_01_a", "lesson_20_pretrain")):
                path = Path(folder) / name / f"{name}.cpp"
                path.parent.mkdir()
                path.write_text(f"// {name} {'x' * 60}\nint a{number};\n", encoding="utf-8")
            said = {}
            for kind, most in (("prose", 100), ("prose", 1000), ("code", 14), ("code", 8)):
                out = io.StringIO()
                with mock.patch.object(make_text, "LESSONS", Path(folder)), mock.patch.object(sys, "argv", ["make_text.py", kind]), \
                        mock.patch.dict(make_text.MOST_BYTES, {kind: most}), contextlib.redirect_stdout(out):
                    make_text.main()
                said[kind, most] = out.getvalue()
        first, second = f"lesson_01_a {'x' * 60}\n", f"lesson_02_b {'x' * 60}\n"
        self.assertEqual(said, {("prose", 100): first, ("prose", 1000): first + second,
                                ("code", 14): "int a1;\n", ("code", 8): "int a1;\n"})

    def test_of_this_project(self):
        """Of the lessons as they are: ASCII, full lines, and no more than there is room for."""
        for kind, most in (("prose", 50_000), ("code", 6_000)):
            out = io.StringIO()
            with mock.patch.object(sys, "argv", ["make_text.py", kind]), contextlib.redirect_stdout(out):
                make_text.main()
            self.assertTrue(out.getvalue().isascii() and out.getvalue().endswith("\n"))
            self.assertTrue(most - 2000 < len(out.getvalue()) <= most, len(out.getvalue()))


if __name__ == "__main__":
    unittest.main()
