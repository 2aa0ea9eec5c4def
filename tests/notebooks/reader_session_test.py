"""What a reader does in one session with a lesson's notebook: change a function, begin again, run a cell out of its turn, interrupt. Needs
clang-repl-19; MUONWALK_LIBRARY names the library."""

import json
import os
import shutil
import signal
import sys
import threading
import time
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "notebooks/make"), str(ROOT / "sim/classroom")]
from run_notebook import DISPLAY, Interpreter, environment_for  # noqa: E402

HERE = shutil.which("clang-repl-19") is not None
LIBRARY = os.environ.get("MUONWALK_LIBRARY", str(ROOT / "build" / "lib" / "libmuonwalk.so"))


@unittest.skipUnless(HERE, "there is no clang-repl-19 here")


class Session(unittest.TestCase):
    """What a reader does in one session of a lesson. clang-repl does not survive an exception, which kernels show, so each cell
    catches it and prints it."""

    def setUp(self):
        scratch = TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        os.environ["MUONWALK_LIBRARY"] = LIBRARY
        self.interpreter = Interpreter("clang-repl-19", scratch.name, environment_for(Path(LIBRARY)), [ROOT / "notebooks", DISPLAY])
        self.addCleanup(self.interpreter.kill)

    def run_cell(self, source):
        output, errors = self.interpreter.run(source, 60)
        return output + errors

    def run_caught(self, source):
        return self.run_cell(f'try {{\n{source}\n}} catch (const std::exception& error) {{ nb::print(error.what()); }}')

    def begin(self, name, cells=None):
        """Defines all that the lesson defines; {name: source} of the cells that may be run again, of the first `cells` of them alone
        where that is given."""
        notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
        found, self.defined = {}, {}
        for cell in notebook["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code" or cell["id"].startswith(("try", "your")):
                continue
            if "once" in cell["metadata"].get("tags", ()) or cell["id"].startswith("define-"):
                self.run_cell(source)
                self.defined[cell["id"]] = source
            else:
                found[cell["id"]] = source
                if len(found) == cells:
                    break
        return found

    def test_one_session_runs_the_lesson_with_a_bug_with_another_layout_and_clean_again(self):
        cells = self.begin("lesson_04_dp_gather")
        for words, outcome in (("", "OK"), ("--bug flat_matrix", "this does not hold"), ("--tp 1", "OK"), ("--nonsense", "--nonsense"),
                               ("", "OK")):
            said = ""
            for name, source in cells.items():
                said += self.run_caught(source.replace(', "")', f', "{words}")') if name == "begin" else source)
            self.assertIn(outcome, said)
            self.assertEqual("OK" in said, outcome == "OK", said)
            if outcome == "--nonsense":
                self.assertIn("the lesson has not begun; run the cell with lesson.emplace", said)

    def test_a_function_is_changed_and_its_cell_run_again(self):
        cells = self.begin("lesson_05_tp_gather")

        def outcome():
            return "".join(self.run_caught(source) for source in cells.values())

        self.assertIn("OK", outcome())
        right = self.defined["define-join_columns"]
        wrong = right.replace("join_slices(local.gathered, slice, SplitDim::columns", "join_slices(local.gathered, slice, SplitDim::rows")
        self.assertNotEqual(wrong, right)
        for source, what, missing in ((wrong, "this does not hold", "OK"), (right, "OK", "this does not hold"), (wrong, "this does not hold", "OK")):
            self.run_cell(source)
            said = outcome()
            self.assertIn(what, said)
            self.assertNotIn(missing, said)
        # Whoever calls it calls the new one, also where that was defined before.
        self.run_cell("NB_DECLARE(int, twice, (int x));")
        self.assertIn("twice is called, but the cell that defines it has not run", self.run_caught("twice(1);"))
        self.run_cell("NB_FUNCTION(int, twice, (int x) { return x + x; });")
        self.run_cell("int half(int x) { return twice(x) / 4; }")
        self.run_cell("NB_FUNCTION(int, twice, (int x) { return x > 100 ? twice(x - 100) : 40 * x; });")
        self.assertEqual(self.run_cell("std::cout << half(101) << std::endl;"), "10")
        self.interpreter.close(60)

    def test_a_cell_out_of_its_turn_says_so_and_the_session_goes_on(self):
        cells = self.begin("lesson_01_grid")
        steps = [source for name, source in cells.items() if name.startswith("step-")]
        not_begun, again, too_early = "the lesson has not begun", "this cell has run already", "cell 2 of those with an nb::in_turn"
        self.assertIn(not_begun, self.run_caught(steps[0]))
        self.assertIn(not_begun, self.run_caught("nb::rank(lesson, 0);"))
        self.run_caught(cells["begin"])
        self.assertIn("step 1", self.run_caught(steps[0]))
        self.assertIn(again, self.run_caught(steps[0]))
        self.assertIn(too_early, self.run_caught(steps[2]))
        for step in steps[1:]:
            self.assertIn("step", self.run_caught(step))
        self.assertIn(again, self.run_caught(steps[2]))
        self.assertIn("there is no rank 8; they are 0 to 7", self.run_caught("nb::rank(lesson, 8);"))
        self.run_caught(cells["begin"])
        self.assertIn("step 1", self.run_caught(steps[0]))

    def test_an_interrupt_ends_the_work_and_not_the_session(self):
        cells = self.begin("lesson_00_hello_ranks")
        self.run_cell("#include <fstream>")
        self.run_cell('void wait_forever(Rank& rank, Local&) {\n  if (rank.rank() == 0) std::ofstream("' + str(self.folder / "busy") +
                      '");\n  while (true) rank.dp().barrier();\n}')

        def interrupt_when_busy():
            while not (self.folder / "busy").exists():
                time.sleep(0.01)
            os.kill(self.interpreter.process.pid, signal.SIGINT)

        os.kill(self.interpreter.process.pid, signal.SIGINT)  # idle
        for _ in range(3):
            begin = cells["begin"].replace(', "")', ', "--timeout 600")')
            self.assertIn("Hello, ranks", self.run_caught(begin + '\nlesson->say("");'))
            waiter = threading.Thread(target=interrupt_when_busy)
            waiter.start()
            said = self.run_caught('lesson->step("wait", wait_forever);')
            waiter.join()
            (self.folder / "busy").unlink()
            self.assertIn("interrupted: the ranks stopped in the middle of their work; begin the lesson again", said)
            os.kill(self.interpreter.process.pid, signal.SIGINT)
        said = "".join(self.run_caught(source) for source in cells.values())
        self.assertIn("lesson_00_hello_ranks: OK", said)
        self.interpreter.close(60)

    def test_wide_text_is_printed_where_nothing_shows_html(self):
        plain = Interpreter("clang-repl-19", self.folder, environment_for(Path(LIBRARY)), [ROOT / "notebooks"])
        self.addCleanup(plain.kill)
        plain.run('#include "setup.hpp"', 60)
        self.assertEqual(plain.run(f'nb::print("{"wide " * 20}");', 60)[0], "wide " * 20)

    def test_behind_options_that_are_refused_the_lesson_has_not_begun(self):
        # Each is refused by what a lesson asks for before it has ranks, and not where options are read.
        for name, words, why in (("lesson_09_full_step", "--nesterov --no-nesterov", "nesterov"), ("lesson_15_sharding_layouts", "--ep 3", "ep"),
                                 ("lesson_18_read_a_trace", "--pp 2", "pp"), ("lesson_20_pretrain", "--steps 0", "steps")):
            with self.subTest(name=name):
                self.doCleanups()
                self.setUp()
                cells = self.begin(name, 2)
                again = "".join(cells["begin"]).replace('")', f' {words}")')
                behind = list(cells)[1]
                for source in (again, again):  # also where the lesson has not begun before
                    said = self.run_caught(source)
                    self.assertIn(why, said)
                    self.assertNotIn("not begun", said)
                    self.assertIn("the lesson has not begun; run the cell with lesson.emplace, to its end", self.run_caught(cells[behind]))
                self.assertNotIn("not begun", self.run_caught(cells["begin"]))
                self.assertNotIn("not begun", self.run_caught(cells[behind]))
                self.interpreter.close(60)


if __name__ == "__main__":
    unittest.main()
