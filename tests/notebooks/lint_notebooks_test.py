"""Each rule of lint_notebooks.py, broken once."""

import copy
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lint_notebooks import faults  # noqa: E402


def code(cell_id, source, *tags):
    return {"cell_type": "code", "id": cell_id, "metadata": {"tags": list(tags)}, "source": [source], "outputs": [],
            "execution_count": None}


GOOD = {
    "cells": [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Title"]},
        code("interrupts", '#include "interrupts.hpp"', "once"),
        code("setup", '#include "setup.hpp"', "once"),
        code("includes", '#include <cmath>\n\n#include "sim/classroom/lesson.hpp"', "once"),
        code("names", "using namespace muonwalk;\n\nNB_DECLARE(int, thrice, (int x));", "once"),
        code("define", "// A { in words.\nstruct Local { int x = 0; };\n\n"
                       "int twice(int x) {\n  const auto f = [&](int y) { return x + y; };\n  return f(x);\n}\n\n"
                       "const std::vector<int> kSome = {1, 2};\nint a, b;", "once"),
        code("info", 'LessonInfo info;\ninfo.name = "a; %b [&]";', "once"),
        code("begin", 'lesson.emplace(info, nb::options(info, Grid(), ""));\nlesson->say("it");', "begin"),
        code("run", "nb::in_turn(lesson, 1);\nif (true) {\n  int z = 1;\n} else {\n  int z = 2;\n}\nlesson->step(f);"),
        code("more", "nb::in_turn(lesson, 2);\n{ int z = 3; }\nlesson->check(\"it\", shift);\nNB_CHECK(lesson->all_equal());"),
        code("again", "NB_FUNCTION(int, thrice, (int x) {\n  const auto f = [&](int y) { return g([](int z) { return z; }, x + y); };\n"
                      "  return f(x);\n});"),
    ],
    "metadata": {"kernelspec": {"name": "xcpp17"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


class Lint(unittest.TestCase):
    def expect(self, words, change):
        notebook = copy.deepcopy(GOOD)
        change(notebook)
        found = list(faults(notebook))
        self.assertTrue(any(words in fault for fault in found), f"{words!r} is not among {found}")

    def expect_of_cell(self, words, *sources):
        self.expect(words, lambda notebook: notebook["cells"].extend(code(f"new-{i}", s) for i, s in enumerate(sources)))

    def test_a_good_notebook_has_no_fault(self):
        self.assertEqual(list(faults(GOOD)), [])

    def test_the_first_cells_with_code_include_one_header_each(self):
        for first in (1, 2):
            self.expect("the first cells with code have", lambda n, first=first: n["cells"].pop(first))
            self.expect("the first cells with code have", lambda n, first=first: n["cells"][first]["source"].append("\n#include <map>"))
        for header in ("interrupts", "setup"):
            self.expect_of_cell("no other cell has it", f'#include "{header}.hpp"')

    def test_what_is_kept(self):
        for output, words in (({"output_type": "stream", "name": "stderr", "text": ["oh"]}, "is kept with an error"),
                              ({"output_type": "stream", "name": "stdout", "text": ["x" * 89]}, "a line of 89 columns")):
            self.expect(words, lambda n, output=output: n["cells"][8]["outputs"].append(output))
        self.expect("the notebook could not fail", lambda n: n["cells"].pop(9))

    def test_lambdas_and_magics(self):
        self.expect_of_cell("passes a lambda where it is written", "lesson->step([](Rank& rank) { rank.say(1); });")
        self.expect_of_cell("a lambda that captures by default", "const auto f = [&](int x) { return x; };")
        self.expect_of_cell("has the magic", "%timeit f();")
        self.expect_of_cell("defines a namespace", "int g() { return 2; }\nnamespace mine { int f() { return 1; } }")

    def test_a_cell_is_of_one_kind(self):
        for mixed in ("#include <map>\nint x = 1;", "int f() { return 1; }\nf();", "struct B { int x; };\nb.x = 1;", "a + b",
                      "info.name", "int h() { return 1; }\nif (h()) g();"):
            self.expect_of_cell("is of no kind", mixed)
        self.expect_of_cell("is empty", "// only words")

    def test_what_interpreters_lack(self):
        for words in ("#pragma omp parallel for", "#pragma once"):
            self.expect_of_cell("pragmas belong in setup.hpp", f"{words}\nint x = 1;")
        self.expect_of_cell("use the library", "auto f = std::async(work);")
        self.expect_of_cell("use the library", "std::future<int> later;")
        self.expect_of_cell("use the library", "std::call_once(flag, work);")
        self.expect_of_cell("live in the library", "thread_local int mine;")
        self.expect_of_cell("could outlive its cell", "std::thread worker(work);")
        self.expect_of_cell("costs a second", "#include <Eigen/Dense>")


if __name__ == "__main__":
    unittest.main()
