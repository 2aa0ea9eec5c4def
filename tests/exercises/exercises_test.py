#!/usr/bin/env python3
"""Tests of what ./walk try says and does, word by word: three made-up exercises, and stand-ins for the compiler and the judge."""

import contextlib
import io
import os
import re
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

TOOLS = str(Path(__file__).resolve().parents[2] / "sim/classroom")
sys.path.insert(0, TOOLS)
import judging  # noqa: E402
from exercises import Broken, Refused  # noqa: E402
from try_exercise import work  # noqa: E402

COMPILER = '''#!/bin/bash
{ printf '<%s>' "$@"; echo; if [[ $* == *"-c -"* ]]; then cat; fi; } >>"$0.calls"
for kind in -c -fsyntax-only -shared; do
  if [[ " $* " == *" $kind "* && -e $0$kind ]]; then cat "$0$kind" >&2; [[ $(<"$0$kind") == *warning* ]] || exit 1; fi
done
exit 0
'''
CONTRACT = "// # {title}\n//\n// What is asked.\n#pragma once\nusing {kind} = Matrix(const Flat& a,\n    int b);\n"


class Exercises(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = Path(temporary.name).resolve()
        self.root, self.build, self.folder = self.top / "root", self.top / "build", self.top / "try"
        three = (("lesson_05_tp_gather", "join_columns", "Join columns"), ("lesson_05_tp_gather", "cut", "Cut"), ("lesson_07_x", "add_up", "Add up"))
        self.write("root/lessons/CMakeLists.txt", "".join(f"add_exercise({lesson} {name})\n" for lesson, name, _ in three))
        for lesson, name, title in three:
            self.at = f"root/lessons/{lesson}/try_{name}"
            kind = "".join(word.capitalize() for word in name.split("_"))
            self.write(f"{self.at}/contract.hpp", CONTRACT.format(title=title, kind=kind))
            self.write(f"{self.at}/stub.cpp", f"// fails: it is a stub\n#include <x>\nMatrix {name}() {{}}\n")
            self.write(f"{self.at}/solution.cpp", f"Matrix {name}() {{ return 1; }}\n")
            self.write(f"{self.at}/hints.txt", "The first\n one.\n\nThe second.\n\nThe third.\n")
        self.compiler = self.write("build/cc", COMPILER)
        self.compiler.chmod(0o755)
        self.write("build/exercises/compile.txt", f"{self.compiler}\n-Wall\n\n")
        self.write("build/exercises/link.txt", "-lx\n")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.top)  # paths are shown as the reader types them
        patch = mock.patch.object(judging, "ROOT", self.top)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def ask(self, *words):
        """(exit code, what is printed)"""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = work([*words, "--folder", str(self.folder), "--build", str(self.build), "--root", str(self.root)])
        return code, said.getvalue()

    def judged(self, does, number="05", *more):
        """What is said when the judge does this."""
        self.write("build/bin/muonwalk-try", f'#!/bin/bash\nprintf "<%s>" "$@" >"$0.calls"\n{does}\n').chmod(0o755)
        return self.ask(number, "--judge", *more)

    # --- what is asked for ---

    def test_list_place_and_reset(self):
        end = "puts a file of your own in place and judges it.\n"
        self.assertEqual(self.ask(), (0, "05    Join columns\n05.2  Cut\n07    Add up\n\n0 of 3 solved. ./walk try 05 " + end))
        self.assertEqual(self.ask("5"), (10, "try/lesson_05.cpp is yours now. It says what is asked for, and holds a stub of\n\n"
                                             "  Matrix join_columns(const Flat& a, int b)\n\n"
                                             "Write it in your editor, and then: ./walk try 05\n"
                                             "As it stands, this is what the judge says of it:\n\n"))
        stub = "// # Join columns\n//\n// What is asked.\n\n#include <x>\nMatrix join_columns() {}\n"
        mine = self.folder / "lesson_05.cpp"
        self.assertEqual(mine.read_text(encoding="utf-8"), stub)
        self.assertEqual(self.ask()[1].split("\n")[0], "05    Join columns")
        self.assertEqual(self.ask("05", "--reset"), (0, "try/lesson_05.cpp is as it was at the beginning.\n"))
        for number, text in ((1, "first"), (2, "second")):
            mine.write_text(text, encoding="utf-8")
            self.assertEqual(self.ask()[1].split("\n")[0], "05    Join columns   begun")
            self.assertEqual(self.ask("05"), (10, ""))
            self.assertEqual(self.ask("05.1", "--reset"), (0, f"What you had is now try/lesson_05.{number}.cpp.\ntry/lesson_05.cpp is as it was at the "
                                                              "beginning.\n"))
            self.assertEqual((mine.read_text(encoding="utf-8"), (self.folder / f"lesson_05.{number}.cpp").read_text()), (stub, text))
        self.assertEqual(self.ask("5.2")[0], 10)
        self.assertTrue((self.folder / "lesson_05_2.cpp").exists())
        self.assertEqual(self.ask("05", "--solution"), (0, "// # Join columns\n//\n// What is asked.\n\nMatrix join_columns() { return 1; }\n"))
        self.assertEqual(self.ask("--help")[0], 0)

    def test_hints(self):
        more = "One more: ./walk try 07 --hint\n"
        last = "That was the last one. ./walk try 07 --solution shows the solution.\n"
        for number, words, end in ((1, "The first one.", more), (2, "The second.", more), (3, "The third.", last), (3, "The third.", last)):
            self.assertEqual(self.ask("07", "--hint"), (0, f"Hint {number} of 3 for exercise 07, Add up:\n\n  {words}\n\n{end}"))
        self.ask("07", "--reset")
        self.assertIn("Hint 1 of 3", self.ask("07", "--hint")[1])

    def test_what_can_not_be(self):
        form = "; try ./walk try, or ./walk try 05 with --hint, --solution or --reset after it"
        there = "; there are: 05 05.2 07"
        for words, sentence in ((("8",), 'there is no exercise "8"' + there), (("05.3",), 'there is no exercise "05.3"' + there),
                                (("005",), 'there is no exercise "005"' + there), (("5\n",), 'there is no exercise "5\\n"' + there),
                                (("05", "06"), "unrecognized arguments: 06" + form),
                                (("05", "--solution", "--hint"), "--hint and --solution can't be asked for together; take one of them"),
                                (("05", "--reset", "--solution"), "--solution and --reset can't be asked for together; take one of them"),
                                (("--reset",), "--reset needs an exercise before it, as in ./walk try 05 --reset")):
            with self.assertRaises(Refused) as refused:
                self.ask(*words)
            self.assertEqual(str(refused.exception), sentence)

    def test_exercises_that_are_not_whole(self):
        name = "lesson_07_x/add_up"
        for file, text, words, sentence in (
                ("contract.hpp", "using AddUp = int(int);\n", (), f"{name} has no title: its contract.hpp has to begin with a line // # Title"),
                ("contract.hpp", "// # Add up\n", ("07",), f"{name}: its contract.hpp has no line `using AddUp = …(…);`"),
                ("hints.txt", None, ("07", "--hint"), f"{name} has no hints.txt: No such file or directory")):
            before = (self.top / self.at / file).read_text(encoding="utf-8")
            (self.top / self.at / file).unlink()
            if text is not None:
                self.write(f"{self.at}/{file}", text)
            with self.assertRaises(Broken) as broken:
                self.ask(*words)
            self.assertEqual(str(broken.exception), sentence)
            self.write(f"{self.at}/{file}", before)

    def test_a_folder_that_takes_nothing(self):
        self.write("try", "a file")
        with self.assertRaises(Broken) as broken:
            self.ask("05")
        self.assertRegex(str(broken.exception), r"^try/lesson_05.cpp can't be written: .*; make try a folder that you can write to$")

    # --- how it is judged ---

    def test_solved_one_by_one(self):
        said = [self.ask(number) and self.judged('exit 100', number, "--timeout", "0.5")[1] for number in ("07", "05", "05.2")]
        self.assertEqual(said, ["Try 07 · Add up\nSolved. That is 1 of 3; next: ./walk try 05\n",
                                "Try 05 · Join columns\nSolved. That is 2 of 3; next: ./walk try 05.2\n",
                                "Try 05.2 · Cut\nSolved. That is 3 of 3: all of them.\n"])
        self.assertEqual(self.ask()[1], "05    Join columns   solved ✔\n05.2  Cut            solved ✔\n07    Add up         solved ✔\n\n"
                                        "3 of 3 solved. ./walk try 05 puts a file of your own in place and judges it.\n")
        made = self.build / "try" / f"lesson_05_2.{os.getpid()}"
        self.assertEqual((self.build / "bin/muonwalk-try.calls").read_text(), f"<lesson_05_tp_gather/cut><{made}.so><processes><0.5>")
        self.assertEqual(list((self.build / "try").iterdir()), [])  # nothing is left of what was built
        (self.folder / "lesson_05.cpp").write_text("changed", encoding="utf-8")
        self.assertEqual(self.ask()[1].split("\n")[0], "05    Join columns   solved before, changed since")
        self.ask("05", "--reset")
        self.assertEqual(self.ask()[1].split("\n")[0], "05    Join columns")

    def test_what_the_compiler_is_asked(self):
        self.ask("05.2")
        self.judged('exit 100', "05.2")
        made = self.build / "try" / f"lesson_05_2.{os.getpid()}"
        self.assertEqual(Path(f"{self.compiler}.calls").read_text().split("\n"), [
            f"<-Wall><-I{self.root}><-x><c++><-c><-><-o><{made}.o>",
            '#include "lessons/lesson_05_tp_gather/try_cut/contract.hpp"', '#include "try/lesson_05_2.cpp"', 'extern "C" {',
            "extern muonwalk::Cut* const muonwalk_exercise;", "muonwalk::Cut* const muonwalk_exercise = &cut;", "}",
            f"<-Wall><-I{self.root}><-shared><{made}.o><-lx><-o><{made}.so>", ""])

    def test_what_is_not_solved(self):
        self.ask("05")
        before, end = "Try 05 · Join columns\n", "A hint: ./walk try 05 --hint\n"
        included = "In file included from <stdin>:2:\n                 from <stdin>:3:\n\n"
        many = "".join(f"line {n}\n" for n in range(42))
        shown = "".join(f"line {n}\n" for n in range(40)) + "… and 2 lines more; the first error counts.\n"
        bad = "try/lesson_05.cpp"
        for stubs, does, words in (
                ({}, 'exit 101', f"Not solved yet: wrong values. {end}"),
                ({"-c": included + "a: warning: w\n"}, 'exit 101', f"The compiler warns:\na: warning: w\nNot solved yet: wrong values. {end}"),
                ({"-c": "x\n", "-fsyntax-only": included + many}, "exit 9", f"{bad} does not compile; the compiler's own words:\n{shown}"
                                                                           f"Not solved yet: it does not compile. {end}"),
                ({"-c": "x\n"}, "exit 9", f"{bad} has no function of this type, which its contract asks for:\n  Matrix join_columns(const Flat& a, int b)\n"
                                          f"Not solved yet: no such function. {end}"),
                ({"-shared": "nowhere\n"}, "exit 9", f"{bad} uses something that is defined nowhere; the linker's own words:\nnowhere\n"
                                                     f"Not solved yet: it does not link. {end}"),
                ({}, "kill -SEGV $$", "  Signal 11 ended the program that judges: does your code send it?\n"
                                      f"Not solved yet: it ends the judge. {end}")):
            for kind in ("-c", "-fsyntax-only", "-shared"):
                path = Path(f"{self.compiler}{kind}")
                path.write_text(stubs[kind]) if kind in stubs else path.unlink(missing_ok=True)
            self.assertEqual(self.judged(does), (1, before + words))

    def test_what_is_solved_with_a_warning(self):
        self.ask("05")
        Path(f"{self.compiler}-c").write_text("a: warning: w\n")
        self.assertEqual(self.judged('exit 100'), (0, "Try 05 · Join columns\nSolved. That is 1 of 3; next: ./walk try 05.2\n"))

    def test_what_never_ends(self):
        self.ask("05")
        with mock.patch.object(judging, "FIBERS_LIMIT", 0.2), mock.patch.object(judging, "JUDGE_LIMIT", 0.2):
            self.assertEqual(self.judged("exec sleep 60"), (1, "Try 05 · Join columns\n  The judge did not end within 0.2 s: has your code stopped it?\n"
                                                            "Not solved yet: it never ends. "
                                                            "A hint: ./walk try 05 --hint\n"))

    def test_the_outcomes_are_those_of_the_judge_in_its_order(self):
        classroom = Path(judging.__file__).parent
        names = re.search(r"kNames\[\] = \{(.*?)\};", (classroom / "exercise.cpp").read_text(encoding="utf-8"), re.DOTALL)[1]
        self.assertEqual(tuple(re.findall(r'"(.*?)"', names)), judging.OUTCOMES)
        code = re.search(r"kFirstOutcome = (\d+)", (classroom / "muonwalk_try.cpp").read_text(encoding="utf-8"))[1]
        self.assertEqual(int(code), judging.FIRST_OUTCOME)

    def test_what_the_judge_has_started_ends_with_it(self):
        self.ask("05")
        for does in ("exit 101", "kill -KILL $$"):
            self.judged(f'sleep 60 & echo $! >"$0.started"; {does}')
            started = int((self.build / "bin/muonwalk-try.started").read_text())
            for _ in range(100):
                stat = Path(f"/proc/{started}/stat")
                if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                    break
                time.sleep(0.1)
            else:
                self.fail("a process is left")

    def test_fibers_come_first_and_are_not_believed_alone(self):
        self.ask("05")
        said = 'echo "in $3"; echo "aside $3" >&2; '
        end = "A hint: ./walk try 05 --hint\n"
        for does, code, words in (
                # Where they find a mistake, that is all; where they find none, processes decide, and only those are heard.
                ('exit 107', 1, f"in fibers\nNot solved yet: a deadlock. {end}"),
                ('if [[ $3 == fibers ]]; then exit 100; else exit 101; fi', 1, f"Not solved yet: wrong values. {end}"),
                ('if [[ $3 == fibers ]]; then kill -SEGV $$; else exit 105; fi', 1, f"Not solved yet: a crash. {end}"),
                ('echo "muonwalk-try: rank 1 did nothing but compute in step \'cut\' for 3 s of processor time, x" >&2; exit 3', 1,
                 "in fibers\n  rank 1 did nothing but compute in cut for 3 s of processor time.\n  Is there a loop that never ends?\n"
                 f"Not solved yet: it never ends. {end}"),
                ('exit 100', 0, "Solved. That is 1 of 3; next: ./walk try 05.2\n")):
            self.assertEqual(self.judged(said + does), (code, "Try 05 · Join columns\n" + words))

    def test_what_is_ours_to_mend(self):
        self.ask("05")
        for prepare, sentence in (
                *((lambda code=code: self.judged(f"exit {code}"), "the judge of exercise 05 broke; its own words are above")
                  for code in (0, 3, 99, 110)),
                (lambda: (self.build / "bin/muonwalk-try").unlink() or self.ask("05", "--judge"),
                 f"{self.build}/bin/muonwalk-try can't be run: No such file or directory; ./walk try builds it"),
                (lambda: self.compiler.unlink() or self.ask("05", "--judge"), f"the compiler {self.compiler} can't be run: No such file or directory"),
                (lambda: (self.build / "exercises/link.txt").unlink() or self.ask("05", "--judge"),
                 "the build does not say how exercises are compiled (No such file or directory); ./walk try builds it")):
            with self.assertRaises(Broken) as broken:
                prepare()
            self.assertEqual(str(broken.exception), sentence)


if __name__ == "__main__":
    unittest.main()
