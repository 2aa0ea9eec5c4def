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
        code("setup", '#include "setup.hpp"', "once"),
        code("includes", '#include <cmath>\n\n#include "sim/classroom/lesson.hpp"', "once"),
        code("names", "using namespace muonwalk;", "once"),
        code("define", "// A { in words.\nstruct Local { int x = 0; };\n\n"
                       "int twice(int x) {\n  const auto f = [&](int y) { return x + y; };\n  return f(x);\n}\n\n"
                       "const std::vector<int> kSome = {1, 2};\nint a, b;", "once"),
        code("info", 'LessonInfo info;\ninfo.name = "a; %b [&]";', "once"),
        code("begin", 'lesson.emplace(info, nb::options(info, Grid(), ""));\nlesson->say("it");', "begin"),
        code("run", "nb::in_turn(lesson, 1);\nif (true) {\n  int z = 1;\n} else {\n  int z = 2;\n}\nlesson->step(f);"),
        code("more", "nb::in_turn(lesson, 2);\n{ int z = 3; }\nlesson->check(\"it\", shift);\nNB_CHECK(lesson->all_equal());"),
    ],
    "metadata": {"kernelspec": {"name": "xcpp17"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


class Lint(unittest.TestCase):
    def expect(self, words, change):
        notebook = copy.deepcopy(GOOD)
        change(notebook)
        found = list(faults(notebook, "05"))
        self.assertTrue(any(words in fault for fault in found), f"{words!r} is not among {found}")

    def expect_of_cell(self, words, *sources):
        self.expect(words, lambda notebook: notebook["cells"].extend(code(f"new-{i}", s) for i, s in enumerate(sources)))

    def test_a_good_notebook_has_no_fault(self):
        self.assertEqual(list(faults(GOOD, "05")), [])

    def test_cells_that_work_with_the_lesson_are_numbered_and_one_begins_it(self):
        self.expect_of_cell("does not begin with nb::in_turn", "lesson->say(words);")
        self.expect_of_cell("does not begin with nb::in_turn", "take_steps(*lesson);")
        self.expect("the numbered cells are 1, 2, 2;", lambda n: n["cells"].append(code("late", "nb::in_turn(lesson, 2);\nf();")))
        self.expect("the numbered cells are 1, 3;", lambda n: n["cells"][8].update(source=["nb::in_turn(lesson, 3);\nNB_CHECK(f());"]))
        self.expect("no cell is marked as the one that begins", lambda n: n["cells"].pop(6))
        self.expect("or several are", lambda n: n["cells"].append(code("second", n["cells"][6]["source"][0], "begin")))
        self.expect("no cell is marked as the one that begins", lambda n: n["cells"][6].update(source=["lesson.reset();"]))

    def test_the_first_code_cell_only_includes_setup(self):
        self.expect("is the first one with code", lambda n: n["cells"].pop(1))
        self.expect("is the first one with code", lambda n: n["cells"][1].update(source=['#include "setup.hpp"\n#include <map>']))
        self.expect_of_cell("includes setup.hpp, which the first cell has done", '#include "setup.hpp"')

    def test_a_cell_is_of_one_kind(self):
        for mixed in ("#include <map>\nint x = 1;", "int f() { return 1; }\nf();", "struct B { int x; };\nb.x = 1;", "a + b",
                      "info.name", "int h() { return 1; }\nif (h()) g();"):
            self.expect_of_cell("is of no kind", mixed)
        self.expect_of_cell("is empty", "// only words")

    def test_no_name_stands_twice(self):
        self.expect_of_cell("names info again", "int info = 2;")
        self.expect_of_cell("names twice again", "int twice() { return 2; }")
        self.expect_of_cell("names Local again", "struct Local {};")
        self.expect_of_cell("names kSome again", "constexpr int kSome = 3;")
        self.expect_of_cell("names list again", "std::vector<int> list = {1};", "const std::vector<int>& list(info);")

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
