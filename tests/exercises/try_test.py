#!/usr/bin/env python3
"""What ./walk try does with the reader's files, whatever is in them. try_test.py BUILD"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
BUILD = Path(sys.argv.pop(1)).resolve()
COUNT = len(list((SOURCE / "lessons").glob("lesson_*/try_*")))
INCLUDE = '#include "lessons/lesson_05_tp_gather/try_join_columns/contract.hpp"\nusing namespace muonwalk;\n'
HEAD = "Matrix join_columns(const Flat& gathered, Shape slice, int tp) "
RIGHT = "{ return join_slices(gathered, slice, SplitDim::columns, tp); }\n"


sys.path.insert(0, str(SOURCE / "sim/classroom"))
from exercises import Refused, exercises, find  # noqa: E402


class Numbers(unittest.TestCase):
    def test_every_way_to_write_one(self):
        every = exercises(SOURCE)
        self.assertEqual(len(every), COUNT)
        for exercise in every:
            lesson, _, which = exercise.number.partition(".")
            ways = [f"{number}.{which or 1}" for number in {lesson, str(int(lesson))}]
            if not which:
                ways += [lesson, str(int(lesson))]
            for way in ways:
                with self.subTest(way=way):
                    self.assertIs(find(every, way), exercise)
            last = sum(each.lesson == exercise.lesson for each in every)
            for number in (0, last + 1):
                with self.subTest(lesson=lesson, number=number):
                    self.assertRaises(Refused, find, every, f"{lesson}.{number}")


class OwnFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "try"
        self.file = self.folder / "lesson_05.cpp"

    timeout = "2"  # for which a busy machine may let a judge stand still

    def ask(self, *words, folder=None, build=BUILD, **environment):
        done = subprocess.Popen(
            [sys.executable, str(SOURCE / "sim/classroom/try_exercise.py"), *words, "--folder", str(folder or self.folder), "--build",
             str(build), "--timeout", self.timeout], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=SOURCE,
            env={**os.environ, **environment})
        self.out, self.err = done.communicate()
        self.code, self.pid = done.returncode, done.pid
        return self.out

    def judge(self, text):
        self.folder.mkdir(exist_ok=True)
        if isinstance(text, bytes):
            self.file.write_bytes(text)
        else:
            self.file.write_text(text, encoding="utf-8")
        return self.ask("05", "--judge")

    def expect_refused(self, words, *asked):
        self.ask(*asked)
        self.assertEqual(self.code, 2)
        self.assertIn(words, self.err)
        self.assertEqual(self.err.count("\n"), 1)
        self.assertEqual(self.out, "")


class Requests(OwnFolder):
    def test_what_cannot_be(self):
        self.expect_refused('there is no exercise "77"; there are: 02 02.2 03', "77")
        self.expect_refused("--frob", "05", "--frob")
        self.assertFalse(self.folder.exists())

    def test_the_file_comes(self):
        self.ask("5")
        self.assertEqual(self.code, 10)
        text = self.file.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("// # Join slices of columns\n"))
        self.assertNotIn("fails:", text)
        self.assertIn(HEAD, text)

    def test_the_solution_solves_it(self):
        self.assertIn(f"Solved. That is 1 of {COUNT}; next: ./walk try 06", self.judge(self.ask("05", "--solution")))
        self.assertEqual(self.code, 0)
        self.assertRegex(self.ask(), r"05 +Join slices of columns +solved ✔")
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("// one more word\n")
        self.assertRegex(self.ask(), r"05 +Join slices of columns +solved before, changed since")
        self.assertIn(f"0 of {COUNT} solved", self.ask())

    def test_a_spoilt_list_of_what_is_solved(self):
        self.folder.mkdir()
        for text in ("{", "[]", '{"05": 7}', '{"05": {"hints": "x", "solved": 3}}'):
            (self.folder / ".progress.json").write_text(text, encoding="utf-8")
            self.ask()
            self.assertEqual(self.code, 0, text + self.err)
            self.assertIn("Hint 1 of 3", self.ask("05", "--hint"), text)

    def test_a_build_that_takes_nothing_or_is_not_there(self):
        self.judge(INCLUDE + HEAD + RIGHT)
        half = self.folder.parent / "half"
        shutil.copytree(BUILD / "exercises", half / "exercises")
        (half / "try").write_text("", encoding="utf-8")
        for build in (half, self.folder.parent / "nowhere"):
            self.ask("05", "--judge", build=build)
            self.assertEqual(self.code, 3, self.out)
            self.assertEqual(self.err.count("\n"), 1, self.err)
            self.assertTrue(self.err.startswith("walk: "), self.err)

    def test_marks_are_printed_in_any_locale(self):
        self.assertIn("Newton–Schulz", self.ask(LC_ALL="C", PYTHONIOENCODING="ascii"))
        self.assertEqual(self.code, 0)

    def test_output_that_takes_nothing(self):
        for words in ((), ("05", "--hint"), ("05", "--solution")):
            for output, sentence in ((">&-", "standard output is closed"), (">/dev/full", "standard output can't be read or written"),
                                     (">&- 2>&-", None)):
                with self.subTest(words=words, output=output):
                    done = subprocess.run(
                        ["sh", "-c", f'"$@" {output}', "sh", sys.executable, str(SOURCE / "sim/classroom/try_exercise.py"), *words,
                         "--folder", str(self.folder)], capture_output=True, encoding="utf-8", check=False)
                    self.assertEqual(3, done.returncode, done.stderr)
                    if sentence:
                        self.assertRegex(done.stderr, rf"^walk: {sentence}.*\n$")
        self.assertIn("Hint 1 of", self.ask("05", "--hint"))  # none has been shown

    def test_a_folder_in_place_of_the_file(self):
        self.file.mkdir(parents=True)
        for words in ((), ("05", "--judge"), ("05", "--reset")):
            self.ask(*words)
            self.assertNotIn("Traceback", self.err)


    def test_what_is_no_file(self):
        self.folder.mkdir()
        os.mkfifo(self.file)
        self.ask()
        self.assertEqual(self.code, 0, self.err)
        self.expect_refused("try/lesson_05.cpp is not a file; name one that holds C++", "05")
        self.expect_refused("nowhere.cpp is not a file, and nothing else either", "05", "--file", str(self.folder / "nowhere.cpp"))
        state = self.folder / ".progress.json"
        for make in (lambda: state.symlink_to("elsewhere"), lambda: os.mkfifo(state), state.mkdir):
            make()
            self.ask("05", "--hint")
            self.assertEqual(self.code, 3, self.out)
            self.assertIn("which keeps what was solved, is not a plain file; move it away", self.err)
            self.assertFalse((self.folder / "elsewhere").exists())
            state.rmdir() if state.is_dir() and not state.is_symlink() else state.unlink()
        state.write_text("[" * 100000, encoding="utf-8")
        self.assertIn("Hint 1 of 3", self.ask("05", "--hint"))

    def test_files_of_a_class(self):
        self.folder.mkdir()
        for name, body, outcome in (("ada", RIGHT, "solved"), ("eve", "{ return Matrix(); }\n", "wrong")):
            file = self.folder / f"{name}.cpp"
            file.write_text(INCLUDE + HEAD + body, encoding="utf-8")
            self.ask("05", "--file", str(file))
            self.assertEqual(self.code, 10)
            said = json.loads(self.ask("05", "--judge", "--file", str(file), "--json").splitlines()[-1])
            self.assertEqual(self.code, 0 if outcome == "solved" else 1)
            self.assertEqual((said["exercise"], said["file"], said["solved"]), ("05", str(file.resolve()), outcome == "solved"))
            self.assertIn(outcome, said["outcome"])
            self.assertIn("Solved." if outcome == "solved" else "Not solved: ", self.ask("05", "--judge", "--file", str(file)))
        self.assertFalse((self.folder / ".progress.json").exists())
        for words, asked in (("--file is for an exercise that is judged", ("05", "--file", "x", "--hint")),
                             ("--json says how a file was judged", ("05", "--json"))):
            self.expect_refused(words, *asked)


class Attempts(OwnFolder):
    def expect(self, outcome, words, text):
        said = self.judge(text)
        self.assertEqual(self.code, 1, said + self.err)
        self.assertIn(f"Not solved yet: {outcome}.", said)
        self.assertIn(words, said)
        self.assertNotIn("Traceback", self.err)
        return said

    def test_what_does_not_compile(self):
        said = self.expect("it does not compile", "expected ‘;’", INCLUDE + HEAD + "{ return Matrix() }\n")
        self.assertIn("does not compile; the compiler's own words:", said)
        self.assertNotIn("<stdin>", said)
        self.expect("it does not compile", "own words", bytes(range(256)))

    def test_another_function(self):
        signature = "Matrix join_columns(const Flat& gathered, Shape slice, int tp)"
        self.expect("no such function", signature, "")
        self.expect("no such function", signature, INCLUDE + "Matrix join_columns(const Flat&, int) { return {}; }\n")
        self.expect("no such function", signature, INCLUDE + "int join_columns(const Flat&, Shape, int) { return 1; }\n")
        self.expect("it does not link", "undefined reference",
                    INCLUDE + "Matrix help(const Flat&);\n" + HEAD + "{ return help(gathered); }\n")

    def test_crashes(self):
        crash = "volatile int* p = nullptr; *p = 1;"
        self.expect("a crash", "rank", INCLUDE + HEAD + "{ " + crash + " return {}; }\n")
        self.expect("a crash", "SIGABRT", "#include <cstdlib>\nint early = (std::abort(), 1);\n" + INCLUDE + HEAD + RIGHT)
        self.expect("an exception", "I give up", INCLUDE + "#include <stdexcept>\n" + HEAD
                    + '{ throw std::runtime_error("I give up"); }\n')

    def test_ends_of_the_program(self):
        include = "#include <cstdlib>\n" + INCLUDE
        self.expect("it ends the program", "code 0", include + HEAD + "{ std::exit(0); }\n")
        self.expect("it ends the program", "code 0", include + "int early = (std::exit(0), 1);\n" + HEAD + RIGHT)

    def test_code_that_judges_itself(self):
        # Whatever the reader's code says of itself, when it is loaded, in a rank or at the end, is not the verdict.
        say = """#include <csignal>
            #include <cstdlib>
            #include <filesystem>
            #include <fstream>
            #include <sys/wait.h>
            #include <unistd.h>
            inline void say_solved() {
              std::error_code none;
              for (const auto& each : std::filesystem::directory_iterator("%s/try", none))
                if (each.path().extension() == ".verdict") std::ofstream(each.path()) << "solved\\n";
              std::ifstream words("/proc/self/cmdline");
              for (std::string word; std::getline(words, word, '\\0');)
                if (word.find(".verdict") != std::string::npos) std::ofstream(word) << "solved\\n";
            }
            """ % BUILD
        wrong = HEAD + "{ return {}; }\n"
        self.expect("wrong values", "✘", say + "int early = std::atexit(say_solved);\n" + INCLUDE + wrong)
        self.expect("wrong values", "✘", say + "struct Late { ~Late() { for (;;) pause(); } } late;\n" + INCLUDE + wrong)
        # The judge's parent is not this tool, which goes on whatever its ranks or the library itself kill.
        for kills in (HEAD + "{ say_solved(); kill(getppid(), SIGKILL); " + RIGHT[2:],
                      "int early = kill(getppid(), SIGKILL);\n" + HEAD + RIGHT, "int early = kill(0, SIGKILL);\n" + HEAD + RIGHT):
            self.expect("it ends the judge", "Signal 9", say + INCLUDE + kills)
            self.assertEqual([], list((BUILD / "try").glob(f"lesson_05.{self.pid}.*")))
        for session in ("", "setsid(); "):
            with self.subTest(session=session):
                self.expect_no_daemon(say, session, INCLUDE + wrong)

    def expect_no_daemon(self, head, session, text):
        marker = self.folder / "daemon"
        marker.unlink(missing_ok=True)
        self.expect("wrong values", "✘", head + f'int early = [] {{ if (fork() == 0) {{ {session}std::ofstream("{marker}") << getpid();'
                    + " for (;;) pause(); } return 1; }();\n" + text)
        pid = marker.read_text(encoding="utf-8") if marker.exists() else ""  # none where it was ended before it had written its number
        for _ in range(100):
            try:
                state = Path(f"/proc/{pid or 'none'}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
            except (OSError, IndexError):
                break
            if state == "Z":
                break
            time.sleep(0.1)
        else:
            self.fail("a daemon is left")

    def test_an_interrupt_says_so_and_leaves_the_file(self):
        self.folder.mkdir()
        text = INCLUDE + HEAD + "{ for (;;) std::printf(\"\"); }\n"
        self.file.write_text("#include <cstdio>\n" + text, encoding="utf-8")
        program = subprocess.Popen(
            [sys.executable, str(SOURCE / "sim/classroom/try_exercise.py"), "05", "--judge", "--folder", str(self.folder), "--build",
             str(BUILD)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=SOURCE, start_new_session=True)
        self.assertIn("Try 05", program.stdout.readline())
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
        _, said = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 128 + signal.SIGINT)
        self.assertIn("walk: interrupted; your files are as they were", said)
        self.assertNotIn("Traceback", said)
        self.assertEqual(self.file.read_text(encoding="utf-8"), "#include <cstdio>\n" + text)
        self.ask()
        self.assertIn(f"0 of {COUNT} solved", self.out)

    def test_loops_that_never_end(self):
        self.timeout = "0.2"
        # Fibers find it; processes would say 10 s.
        self.expect("it never ends", "for 3 s of processor time.", INCLUDE + HEAD
                    + "{ for (volatile int i = 0; i >= 0;) i = 1; return {}; }\n")
        self.expect("a deadlock", "did nothing", INCLUDE + "#include <unistd.h>\n" + HEAD + "{ for (;;) pause(); }\n")

    def test_prints_are_shown_and_warnings_too(self):
        said = self.judge(INCLUDE + "#include <fmt/format.h>\n#include <iostream>\n" + HEAD
                          + '{ std::cout << "tp is " << tp; fmt::print(", rows {}\\n", slice.rows); ' + RIGHT[1:])
        self.assertEqual(self.code, 0, said)
        self.assertIn("tp is 2, rows ", said)
        self.expect("wrong values", "control reaches end", INCLUDE + HEAD + "{ if (tp > 0) return {}; }\n")


if __name__ == "__main__":
    os.environ.pop("NO_COLOR", None)
    unittest.main()
