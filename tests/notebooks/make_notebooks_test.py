"""What notebooks/make/make_notebooks.py makes of a lesson, and what the check for drift says when that is not what is kept."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/notebooks"), str(ROOT / "notebooks/make"), str(ROOT / "docs/make")]
from check_drift import differences  # noqa: E402
from lesson_source import LessonError, read_lesson  # noqa: E402
from lint_notebooks import faults  # noqa: E402
from make_notebooks import make_notebook, with_outputs_of  # noqa: E402
from notebook_file import code_cells, stream  # noqa: E402

LESSON = """\
// # Lesson 42 · A toy
//
// What comes after lesson 41, and uses [tp_gather].

#include <cmath>

#include "sim/classroom/lesson.hpp"

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

// ## The reference
Flat reference(const RankInfo&) { return Flat(kTwo, factor); }

// Make the values.
void start(Rank& rank, Local& local) {
  local.values = Flat(kTwo);
  rank.show("values", local.values);
}

// Listen.
void listen(Rank& rank, Local&) { rank.say("nothing"); }

// Do it again.
void again(Rank& rank, Local& local) { start(rank, local); }
std::vector<int> counted;

// ## The cost
Prediction predict(const RankInfo&) { return {}; }

// Half of it.
float half(float whole) { return whole / 2; }

// Look at the options.
float factor = 1, other = 2;
void plan(const RankInfo&) { factor = half(other); }

int main(int argc, char** argv) {
  LessonInfo info;
  info.name = "lesson_42_toy";
  info.also_try = {"--trace run.json", "--dp 3"};
  info.bugs = {{"first_bug", "it is wrong"}, {"second_bug", "it is wrong, too"}};

  // Here it begins.
  Lesson<Local> lesson(info, Grid().dp(2), argc, argv);
  lesson.require(plan);
  const Layout layout = layout_of(lesson.rank_info());
  lesson.step("start", start);
  lesson.step("listen", listen);
  lesson.step("again: start with lesson.again", again);
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
        self.assertEqual(list(faults(self.made())), [])

    def test_prose_becomes_text_with_links_to_other_notebooks(self):
        cells = self.cells()
        self.assertIn('after [lesson 41](lesson_41_before.ipynb "lesson 41 · Before"), and uses `tp_gather`.', cells["title"])
        self.assertEqual(cells["the-idea"], "## The idea\n\n    a picture")

    def test_a_reference_to_a_lesson_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(LessonError, "lesson_42_toy.cpp:1: there is no lesson 77"):
            self.made(LESSON.replace("after lesson 41", "after lesson 77"))

    def test_includes_are_one_cell_after_the_setup(self):
        cells = self.cells()
        self.assertEqual([cells["interrupts"], cells["setup"]], ['#include "interrupts.hpp"', '#include "setup.hpp"'])
        self.assertEqual(cells["includes"], '#include <cmath>\n\n#include "sim/classroom/lesson.hpp"')

    def marks(self):
        return {cell["id"]: cell["metadata"] for cell in self.made()["cells"]}

    DECLARED = "\n\n// Functions, each to be defined below in a cell that can be changed and run again.\n"

    def test_types_and_variables_are_defined_once_and_functions_as_often_as_one_likes(self):
        cells = self.cells()
        self.assertEqual(cells["names"], "using namespace muonwalk;\nusing namespace muonwalk::sim;" + self.DECLARED +
                         "NB_DECLARE(float, half, (float whole));\nNB_DECLARE(void, plan, (const RankInfo&));\n"
                         "NB_DECLARE(Flat, reference, (const RankInfo&));\nNB_DECLARE(Prediction, predict, (const RankInfo&));")
        # Behind the type that its type names, and before whoever calls it.
        self.assertTrue(cells["define-local"].endswith(
            "};\nconstexpr int kTwo = 2;" + self.DECLARED + "NB_DECLARE(void, start, (Rank& rank, Local& local));\n"
            "NB_DECLARE(void, listen, (Rank& rank, Local&));\nNB_DECLARE(void, again, (Rank& rank, Local& local));"))
        self.assertEqual(cells["define-plan"], "NB_FUNCTION(void, plan, (const RankInfo&) { factor = half(other); });")
        self.assertEqual(cells["define-start"], 'NB_FUNCTION(void, start, (Rank& rank, Local& local) {\n  local.values = Flat(kTwo);\n'
                                                '  rank.show("values", local.values);\n});')
        once = [name for name, metadata in self.marks().items() if metadata.get("tags") == ["once"]]
        self.assertEqual(once, ["interrupts", "setup", "includes", "names", "define-local", "define-factor", "info", "declare-lesson", "define-counted"])

    def test_a_function_that_no_variable_can_stand_for_is_defined_once(self):
        for more in ("float half(float whole, float by = 2) { return whole / by; }", "template <class T>\nT half(T whole) { return whole / 2; }",
                     "float half(float whole) { return whole / 2; }\nfloat half(int whole) { return whole / 2; }",
                     "float half(float whole) { return whole / 2; }\nstd::vector<Way> ways = {{half}};",
                     "float half(float whole) { return whole / 2; }\nfloat dp_gather(int) { return half(2); }"):
            source = LESSON.replace("float half(float whole) { return whole / 2; }", more)
            cells = self.cells(source)
            kept = more.split("\n")[-1] if "dp_gather" in more else more  # a name of the library's
            self.assertTrue(any(kept in cell for cell in cells.values()), cells)
            self.assertEqual("NB_FUNCTION(float, half," in "".join(cells.values()), "dp_gather" in more)
            self.assertEqual(list(faults(self.made(source))), [])
        wide = LESSON.replace("void listen(Rank& rank, Local&) {", "void listen(Rank& rank,\n            Local&) try {  // it may fail\n")
        self.assertIn("NB_FUNCTION(void, listen, (Rank& rank,\n                           Local&) try {  // it may fail\n",
                      self.cells(wide)["define-listen"])

    def test_every_step_stands_right_behind_what_it_needs(self):
        order = list(self.cells())
        self.assertEqual(order[order.index("define-start"):],
                         ["define-start", "step-start", "about-looking", "look", "about-listen", "define-listen", "step-listen",
                          "about-again", "define-again", "define-counted", "step-again", "checks", "the-cost", "define-predict", "cost", "exercises",
                          "answer", "your-turn", "your-again"])

    def test_a_step_is_run_in_its_turn_and_shows_what_its_ranks_show(self):
        cells = self.cells()
        self.assertEqual(cells["step-start"], 'nb::in_turn(lesson, 1);\nlesson->step("start", start);')
        self.assertEqual(cells["step-listen"], 'nb::in_turn(lesson, 2);\nlesson->step("listen", listen);')
        # Words are words, also where they look like code; and of a quiet step, which prints nothing, what a function that it
        # calls shows is seen as well.
        self.assertTrue(cells["step-again"].endswith('lesson->step("again: start with lesson.again", again);'))
        quiet = self.cells(LESSON.replace('lesson.step("again', 'lesson.quiet_step("again'))
        self.assertIn('again: start with lesson.again", again);\nnb::show_phases(*lesson);', quiet["step-again"])

    def test_the_lesson_can_begin_again_with_other_options(self):
        cells = self.cells()
        self.assertEqual(cells["declare-lesson"], "std::optional<Lesson<Local>> lesson;\nLayout layout;")
        self.assertEqual(cells["begin"].split("\n"), [
            "factor = 1;", "other = 2;", 'lesson.emplace(info, nb::options(info, Grid().dp(2), ""));', "lesson->require(plan);",
            "layout = layout_of(lesson->rank_info());", "nb::in_turn(lesson, 0);"])
        # A function that refuses comes before there are ranks, so its cell is still the one that begins.
        refuses = LESSON.replace("lesson.require(plan);", "require_sense(lesson);\n  lesson.require(plan);")
        self.assertIn("require_sense(*lesson);\nlesson->require(plan);\n", self.cells(refuses)["begin"])
        self.assertEqual(self.marks()["begin"], {"again": "--dp 3", "tags": ["begin"]})
        self.assertIn("with `--dp 3` or `--bug first_bug`", cells["about-the-beginning"])
        # What is declared behind that cell gets its first value again before it is needed.
        self.assertIn("nb::in_turn(lesson, 3);\ncounted = std::vector<int>();\nlesson->step(", cells["step-again"])
        # A comment behind that line changes nothing: a notebook that takes the program's words would fork its kernel.
        remarked = self.cells(LESSON.replace("argc, argv);", "argc, argv);  // two ranks"))
        self.assertIn('lesson.emplace(info, nb::options(info, Grid().dp(2), ""));  // two ranks\n', remarked["begin"])

    def test_your_turn_is_a_function_once_more_and_the_lesson_with_it(self):
        shown = LESSON.replace("{ start(rank, local); }", '{\n  rank.show("again", local.values);\n  again_and(rank);\n}')
        cells = self.cells(shown)
        function = cells["define-again"]
        self.assertIn("  again_and(rank);", function)
        self.assertEqual(cells["your-again"], function + "\n\n" + "\n".join([
            "factor = 1;", "other = 2;", "counted = std::vector<int>();",
            'lesson.emplace(info, nb::options(info, Grid().dp(2), "--verbose 0"));', "lesson->require(plan);",
            'lesson->step("start", start);', 'lesson->step("listen", listen);',
            'lesson->step("again: start with lesson.again", again);',
            'lesson->check("the values", &Local::values,', "             reference);", "NB_CHECK(lesson->all_equal());"]))

    def test_what_can_fail_is_checked(self):
        cells = self.cells()
        self.assertEqual(cells["checks"], 'nb::in_turn(lesson, 4);\nlesson->check("the values", &Local::values,\n             reference);\n'
                                          "NB_CHECK(lesson->all_equal());")
        self.assertEqual(cells["answer"], 'nb::in_turn(lesson, 6);\nNB_CHECK(lesson->answer("because.") == 0);')
        said = self.cells(LESSON.replace("lesson.cost(predict);", "lesson.check_numbers(read, right);   // (in words)\n  lesson.say(more);"))
        self.assertTrue(said["checks"].endswith("lesson->check_numbers(read, right);   // (in words)\n"
                                                "NB_CHECK(lesson->all_equal());\nlesson->say(more);"))

    def test_hints_and_answers_are_folded_away_one_by_one(self):
        self.assertEqual(self.cells()["exercises"],
                         "## Exercises\n\n1. Why `two`?\n\n   <details><summary>Hint</summary>\n\n   Count them.\n\n"
                         "   </details>\n\n2. Why not three?\n\n"
                         "   <details><summary>Hint</summary>\n\n   The same.\n\n   </details>\n\n"
                         "   <details><summary>Answer</summary>\n\n   There are two: one, and one.\n\n   </details>")

    def test_cells_keep_their_ids_when_others_come_before_them(self):
        before = self.cells()
        after = self.cells(LESSON.replace("// Make the values.", "// One more.\nconstexpr int kMore = 1;\n\n// Make the values."))
        self.assertEqual({key: after[key] for key in before}, before)
        self.assertEqual(set(after) - set(before), {"about-kmore", "define-kmore"})


class Outputs(unittest.TestCase):
    """What cells put out stays with them as long as they are the same."""

    def test_it_stays_with_the_cells_that_did_not_change(self):
        path_less = MakeNotebook()
        text = json.dumps(path_less.made())
        kept = json.loads(text)
        for number, cell in enumerate(code_cells(kept), start=1):
            cell["outputs"], cell["execution_count"] = [stream(f"{number}\n")], number
        self.assertEqual(json.loads(with_outputs_of(json.dumps(kept), text)), kept)
        code_cells(kept)[3]["source"] = ["another();"]
        made = code_cells(json.loads(with_outputs_of(json.dumps(kept), text)))
        self.assertEqual([cell["outputs"] == [] for cell in made], [at == 3 for at in range(len(made))])
        for broken in ("", "{}", "[]", '{"cells": 3}'):
            self.assertEqual(with_outputs_of(broken, text), text)


class Drift(unittest.TestCase):
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
            for tools in ("notebooks/make", "docs/make", "sim/classroom"):
                shutil.copytree(ROOT / tools, root / tools, ignore=shutil.ignore_patterns("__pycache__"))
            (root / "lessons" / "lesson_00_broken").mkdir(parents=True)
            (root / "lessons" / "CMakeLists.txt").write_text("add_lesson(lesson_00_broken)\n", encoding="utf-8")
            (root / "lessons" / "lesson_00_broken" / "lesson_00_broken.cpp").write_text("int main() {\n", encoding="utf-8")
            ended = subprocess.run([sys.executable, root / "notebooks/make/make_notebooks.py"], capture_output=True, text=True,
                                   check=False)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertRegex(ended.stderr, r"\Amake_notebooks: [^\n]*lesson_00_broken[^\n]*\n\Z")
            self.assertEqual(list(root.glob("notebooks/*.ipynb")), [])


if __name__ == "__main__":
    unittest.main()
