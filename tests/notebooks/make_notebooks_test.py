"""What tools/make_notebooks.py makes of a lesson, and what the check for drift says when that is not what is kept."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_drift import differences  # noqa: E402
from lesson_source import LessonError, read_lesson  # noqa: E402
from lint_notebooks import faults  # noqa: E402
from make_notebooks import make_notebook  # noqa: E402

LESSON = """\
// # Lesson 42 · A toy
//
// What comes after \\ref lesson_41_before, and uses \\ref tp_gather.

#include <cmath>

#include "sim/cluster/lesson.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

// ## The idea
//
//     a picture

// What one rank holds.
struct Local {
  int number = 0;
  Flat values;  // two
};
constexpr int kTwo = 2;

// Make the values.
void start(Rank& rank, Local& local) {
  local.values = Flat(kTwo);
  rank.show("values", local.values);
}
void listen(Rank& rank, Local&) { rank.say("nothing"); }

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_42_toy";
  info.bugs = {{"first_bug", "it is wrong"}, {"second_bug", "it is wrong, too"}};

  // Here it begins.
  Lesson<Local> lesson(info, Grid().dp(2), argc, argv);
  const Layout layout = plan(lesson.seat());
  lesson.picture("map", draw_map(lesson.seat()));
  lesson.step("start", start);
  lesson.step("listen", listen);
  lesson.check("the values", &Local::values,
               reference);
  lesson.cost(predict);

  // ## Exercises
  //
  // 1. Why `two`? Hint: count
  //    them.
  // 2. Why not three? Hint: the same. Answer: there
  //    are two: one, and one.
  return lesson.answer("because.");
}
"""
TITLES = {"lesson_41_before": "lesson 41 · Before"}


class MakeNotebook(unittest.TestCase):
    def made(self, source=LESSON, arguments=""):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "lesson_42_toy.cpp"
            path.write_text(source, encoding="utf-8")
            return json.loads(make_notebook(read_lesson(path), TITLES, arguments))

    def cells(self, source=LESSON, arguments=""):
        return {cell["id"]: "".join(cell["source"]) for cell in self.made(source, arguments)["cells"]}

    def test_the_same_source_makes_the_same_notebook_and_it_keeps_the_rules(self):
        self.assertEqual(self.made(), self.made())
        self.assertEqual(list(faults(self.made(), "42")), [])

    def test_prose_becomes_text_with_links_to_other_notebooks(self):
        cells = self.cells()
        self.assertIn("after [lesson 41 · Before](lesson_41_before.ipynb), and uses `tp_gather`.", cells["title"])
        self.assertEqual(cells["the-idea"], "## The idea\n\n    a picture")

    def test_a_reference_to_a_lesson_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(LessonError, r"lesson_42_toy.cpp:1: \\ref lesson_77_never names no lesson"):
            self.made(LESSON.replace("lesson_41_before", "lesson_77_never"))

    def test_a_lesson_without_main_is_refused(self):
        with self.assertRaisesRegex(LessonError, "a lesson has a function `int main"):
            self.made(LESSON[:LESSON.index("int main")])

    def test_includes_are_one_cell_after_the_setup(self):
        cells = self.cells()
        self.assertEqual(cells["setup"], '#include "setup.hpp"')
        self.assertEqual(cells["includes"], '#include <cmath>\n\n#include "sim/cluster/lesson.hpp"')

    def test_declarations_that_follow_each_other_share_a_namespace(self):
        cells = self.cells()
        self.assertTrue(cells["define-local"].startswith("namespace nb42 {\n\nstruct Local {"))
        self.assertTrue(cells["define-local"].endswith("};\nconstexpr int kTwo = 2;\n\n}  // namespace nb42"))
        self.assertIn("void listen(", cells["define-start"])

    def test_every_step_is_a_cell_with_a_picture_where_ranks_show_something(self):
        cells = self.cells()
        self.assertEqual(cells["step-start"], 'lesson.step("start", start);')
        self.assertEqual(cells["step-listen"], 'lesson.step("listen", listen);')
        self.assertEqual(cells["picture-start"], "nb::show_last_step(lesson);")
        self.assertNotIn("picture-listen", cells)

    def test_after_the_first_step_a_cell_looks_at_what_a_rank_holds(self):
        order = list(self.cells())
        self.assertEqual(self.cells()["look"], "nb::show(lesson.local(0).values);")
        self.assertEqual(order.index("look"), order.index("picture-start") + 2)

    def test_the_lesson_is_made_for_the_kernel_and_constants_stand_alone(self):
        cells = self.cells()
        self.assertEqual(cells["about-main"], "Here it begins.")
        self.assertEqual(cells["lesson"], "Lesson<Local> lesson(info, nb::options(info, Grid().dp(2), argc, argv));")
        self.assertEqual(cells["constant"], "const Layout layout = plan(lesson.seat());")
        # A comment behind that line changes nothing: a notebook that takes the program's words would fork its kernel.
        remarked = self.cells(LESSON.replace("argc, argv);", "argc, argv);  // two ranks"))
        self.assertEqual(remarked["lesson"], cells["lesson"] + "  // two ranks")

    def test_a_picture_of_the_lesson_is_shown(self):
        self.assertEqual(self.cells()["show-map"], "nb::show_svg(draw_map(lesson.seat()));")

    def test_what_can_fail_is_checked(self):
        cells = self.cells()
        self.assertEqual(cells["checks"], 'lesson.check("the values", &Local::values,\n             reference);\n'
                                          "lesson.cost(predict);\nNB_CHECK(lesson.all_equal());")
        self.assertEqual(cells["answer"], 'NB_CHECK(lesson.answer("because.") == 0);')
        said = self.cells(LESSON.replace("lesson.cost(predict);", "lesson.check_numbers(read, right);   // (in words)\n  lesson.say(more);"))
        self.assertTrue(said["checks"].endswith("lesson.check_numbers(read, right);   // (in words)\n"
                                                "NB_CHECK(lesson.all_equal());\nlesson.say(more);"))

    def test_other_results_of_main_are_checked_as_well(self):
        self.assertEqual(self.cells(LESSON.replace('lesson.answer("because.")', "code"))["result"], "NB_CHECK(code == 0);")
        self.assertEqual(self.cells(LESSON.replace('lesson.answer("because.")', "a ? 0 : 1"))["result"],
                         "NB_CHECK((a ? 0 : 1) == 0);")

    def test_hints_and_answers_are_folded_away_one_by_one(self):
        self.assertEqual(self.cells()["exercises"],
                         "## Exercises\n\n1. Why `two`?\n\n   <details><summary>Hint</summary>\n\n   Count them.\n\n"
                         "   </details>\n\n2. Why not three?\n\n"
                         "   <details><summary>Hint</summary>\n\n   The same.\n\n   </details>\n\n"
                         "   <details><summary>Answer</summary>\n\n   There are two: one, and one.\n\n   </details>")

    def test_the_command_line_names_a_bug_and_starts_from_the_arguments_of_the_tests(self):
        cells = self.cells(arguments="--small")
        self.assertIn('nb::CommandLine command_line("--small");', cells["command-line"])
        self.assertIn('"--bug first_bug"', cells["about-the-command-line"])

    def test_cells_keep_their_ids_when_others_come_before_them(self):
        before = self.cells()
        after = self.cells(LESSON.replace("// Make the values.", "// One more.\nint more() { return 1; }\n\n// Make the values."))
        self.assertEqual({key: after[key] for key in before}, before)
        self.assertEqual(set(after) - set(before), {"about-more", "define-more"})


class Drift(unittest.TestCase):
    def test_equal_notebooks_have_not_drifted(self):
        self.assertEqual(list(differences({"a.ipynb": b"x"}, {"a.ipynb": b"x"})), [])

    def test_a_byte_that_differs_is_found_with_its_line(self):
        found = list(differences({"a.ipynb": b"one\ntwo\n"}, {"a.ipynb": b"one\n2\n"}))
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"a\.ipynb is not what its lesson makes; line 2\n +has +two\n +should be 2")

    def test_a_notebook_too_few_or_too_many_is_found(self):
        self.assertEqual(list(differences({}, {"a.ipynb": b""})), ["a.ipynb is missing"])
        self.assertEqual(list(differences({"a.ipynb": b""}, {})), ["a.ipynb belongs to no lesson"])


class Program(unittest.TestCase):
    def test_a_lesson_that_cannot_be_read_is_a_sentence_and_a_2_and_no_notebook(self):
        with TemporaryDirectory() as folder:
            root = Path(folder)
            shutil.copytree(TOOLS, root / "tools", ignore=shutil.ignore_patterns("__pycache__", "site"))
            (root / "lessons" / "lesson_00_broken").mkdir(parents=True)
            (root / "lessons" / "CMakeLists.txt").write_text("add_lesson(lesson_00_broken)\n", encoding="utf-8")
            (root / "lessons" / "lesson_00_broken" / "lesson_00_broken.cpp").write_text("int main() {\n", encoding="utf-8")
            ended = subprocess.run([sys.executable, root / "tools" / "make_notebooks.py"], capture_output=True, text=True,
                                   check=False)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertRegex(ended.stderr, r"\Amake_notebooks: [^\n]*lesson_00_broken[^\n]*\n\Z")
            self.assertFalse((root / "notebooks").exists())


if __name__ == "__main__":
    unittest.main()
