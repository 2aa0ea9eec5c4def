#!/usr/bin/env python3
"""A proof that can't fail proves nothing: made-up bad exercises, each of which prove.py has to refuse, and verdicts that mistakes.py
has to tell from others. prove_test.py BUILD"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mistakes import Broken, exercises, faults_of  # noqa: E402

SOURCE = Path(__file__).resolve().parent.parent.parent
BUILD = Path(sys.argv.pop(1)).resolve()
EXERCISE = "lesson_09_full_step/sum_for_my_shard"


class BadExercises(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        (self.root / "lessons").mkdir()
        shutil.copy(SOURCE / "lessons/CMakeLists.txt", self.root / "lessons")
        lesson, function = EXERCISE.split("/")
        self.folder = self.root / "lessons" / lesson / f"try_{function}"
        shutil.copytree(SOURCE / "lessons" / lesson / f"try_{function}", self.folder)
        # Two wrong variants are enough, and quicker.
        for path in sorted(self.folder.glob("wrong_*.cpp"))[2:]:
            path.unlink()

    def prove(self):
        done = subprocess.run([sys.executable, str(SOURCE / "tests/exercises/prove.py"), str(BUILD), EXERCISE, "--root",
                               str(self.root)], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def expect_fault(self, *all_words):
        code, said = self.prove()
        self.assertEqual(code, 1, said)
        self.assertEqual(said.count("FAILED"), len(all_words), said)
        for words in all_words:
            self.assertIn(words, said)

    def code_of(self, name):
        return (self.folder / name).read_text(encoding="utf-8").split("\n", 1)[1]

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def test_a_stub_that_passes_and_a_solution_that_sends_too_much(self):
        self.write("stub.cpp", "// fails: All of it is zeros\n" + (self.folder / "solution.cpp").read_text(encoding="utf-8"))
        self.write("solution.cpp", self.code_of("wrong_all_reduce.cpp"))
        self.expect_fault("stub.cpp is solved, and should fail",
                          "solution.cpp is not solved but: right bits, but too many bytes")

    def test_another_reason_and_a_solution_that_does_not_compile(self):
        self.write("stub.cpp", "// fails: It is the transpose\n" + self.code_of("stub.cpp"))
        self.write("solution.cpp", self.code_of("wrong_all_reduce.cpp") + "}\n")
        self.expect_fault('stub.cpp does not fail with the words "It is the transpose"',
                          "solution.cpp is not solved but: it does not compile")

    def test_what_is_missing(self):
        (self.folder / "hints.txt").unlink()
        self.expect_fault("has no hints.txt")
        self.write("hints.txt", "\n")
        self.expect_fault("hints")
        self.write("hints.txt", "One.\n\nTwo.\n\nThree.\n\nFour.\n")
        self.expect_fault("it has 4 hints, not one to 3")
        self.write("hints.txt", "One.\n")
        (self.folder / "wrong_all_reduce.cpp").unlink()
        self.expect_fault("it has 1 wrong variants, fewer than 2")
        (self.folder / "stub.cpp").unlink()
        self.expect_fault("fewer than 2", "it has no stub.cpp")

    def test_no_contract(self):
        text = (self.folder / "contract.hpp").read_text(encoding="utf-8")
        self.write("contract.hpp", text[text.index("#pragma"):])
        self.expect_fault("has no title")
        self.write("contract.hpp", "// # Title\n" + text[text.index("#pragma"):])
        self.expect_fault("its contract is nothing but a title")

    def test_reasons_where_they_belong(self):
        self.write("stub.cpp", self.code_of("stub.cpp"))
        self.expect_fault("stub.cpp does not begin with a line // fails: words")


class Mistakes(unittest.TestCase):
    """Of mistakes.py: a verdict that has changed is seen, and so is a change that changes nothing."""

    def test_a_verdict_that_has_changed(self):
        columns = next(each for each in exercises(SOURCE) if each.number == "05")
        said = "wrong values: The columns of the 2 slices take turns; those of one slice belong side by side."
        for expected, edit, faults in ((said, "t * slice.cols + j) => j * tp + t)", 0), (said.replace("columns", "rows"), "t * slice.cols + j) => j * tp + t)", 1),
                                       (said, "int t = 0 => int t{0}", 1)):
            _, found, _ = faults_of(columns, BUILD, f"a mistake | {expected}\n  {edit}\n")
            self.assertEqual(len(found), faults, found)
        with self.assertRaisesRegex(Broken, "changes what is not in the solution: nowhere"):
            faults_of(columns, BUILD, "a mistake | solved\n  nowhere => here\n")


if __name__ == "__main__":
    unittest.main()
