"""notebooks/make/run_notebook.py finds whatever can go wrong in a cell. Needs clang-repl-19; MUONWALK_LIBRARY names the library."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "notebooks/make/run_notebook.py"
sys.path += [str(ROOT / "notebooks/make"), str(ROOT / "sim/classroom")]
from run_notebook import code_cells  # noqa: E402

HERE = shutil.which("clang-repl-19") is not None
LIBRARY = os.environ.get("MUONWALK_LIBRARY", str(ROOT / "build" / "lib" / "libmuonwalk.so"))


def notebook(*cells):
    return {"cells": [{"cell_type": "code", "id": f"cell-{i}", "source": [cell], "metadata": {}, "outputs": [],
                       "execution_count": None} for i, cell in enumerate(cells)]}


# Executes no C++: does what a cell's comments say ("err: text", "out: text", "halves: text" byte by byte, "exit N", "quit
# with N"), and writes the markers of run_notebook.py as clang-repl would.
STAND_IN_INTERPRETER = """#!{python}
import re, sys, time
code = 0
for line in sys.stdin:
    if line.strip() == "%quit":
        sys.exit(code)
    text = open(re.match('#include "(.*)"', line).group(1), encoding="utf-8").read()
    for marker in re.findall(r"@@ end of cell [0-9]+ @@", text)[:1]:
        print(marker, flush=True)
        print(marker, file=sys.stderr, flush=True)
    for what, said in re.findall(r"^// (err: |out: |halves: |exit |quit with )(.*)", text, re.MULTILINE):
        if what == "exit ":
            sys.exit(int(said))
        if what == "quit with ":
            code = int(said)
        elif what == "halves: ":
            for byte in said.encode() + b"\\n":
                sys.stdout.buffer.write(bytes([byte]))
                sys.stdout.buffer.flush()
                time.sleep(0.1)
        else:
            print(said, file=sys.stderr if what == "err: " else sys.stdout, flush=True)
"""


class WhatCountsAsAFailure(unittest.TestCase):
    """Needs no clang-repl: whatever it may say or do is said and done by a stand-in."""

    def run_cells(self, *cells):
        with TemporaryDirectory() as folder:
            interpreter, path = Path(folder) / "interpreter", Path(folder) / "tried.ipynb"
            interpreter.write_text(STAND_IN_INTERPRETER.replace("{python}", sys.executable), encoding="utf-8")
            interpreter.chmod(0o755)
            path.write_text(json.dumps(notebook(*cells)), encoding="utf-8")
            return subprocess.run([sys.executable, RUN, "--interpreter", interpreter, "--limit", "60", path],
                                  capture_output=True, text=True, timeout=100, check=False)

    def test_cells_that_run(self):
        done = self.run_cells("// out: one", "// err: a lesson's own words, such as error: in the middle", "// out: three")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?s)one\n.*three\n.*1 passed, 0 failed")

    def test_whatever_the_interpreter_calls_an_error(self):
        for said in ("input_line_3:2:5: error: use of undeclared identifier 'x'", "error: Parsing failed.",
                     "cell_01.cpp:1:10: fatal error: 'nowhere.hpp' file not found", "fatal error: too many errors emitted",
                     "JIT session error: Symbols not found: [ f ]", "LLVM ERROR: out of memory"):
            with self.subTest(said=said):
                done = self.run_cells("// out: before", f"// err: {said}", "// out: after")
                self.assertEqual(done.returncode, 1)
                self.assertIn("tried: FAILED in cell cell-1: an error", done.stdout)
                self.assertIn(said, done.stdout)
                self.assertIn("before", done.stdout)
                self.assertNotIn("after", done.stdout)
                self.assertIn("0 passed, 1 failed", done.stdout)

    def test_what_is_not_a_notebook_is_refused_in_a_sentence(self):
        good = notebook("int x;")["cells"][0]
        for text in (b"", b"{", b"\xff\xfe", b"[]", b"7", b"[" * 100000, b"{}", b'{"cells": 7}', b'{"cells": ["\\u001b[31m"]}',
                     *(json.dumps({"cells": [{**good, **other}]}).encode()
                       for other in ({"cell_type": 7}, {"source": 7}, {"source": [7]}, {"metadata": None}, {"outputs": 7},
                                     {"outputs": ["x"]}, {"id": {}}, {"metadata": {"tags": 7}})),
                     json.dumps({"cells": [{name: value for name, value in good.items() if name != "source"}]}).encode()):
            with self.subTest(text=text[:60]), TemporaryDirectory() as folder:
                path = Path(folder) / "a\x1b[31mb.ipynb"
                path.write_bytes(text)
                done = subprocess.run([sys.executable, RUN, "--interpreter", sys.executable, path], capture_output=True, text=True,
                                      timeout=100, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, r"^run_notebook: .*a\\x1b\[31mb\.ipynb.* notebook.*\n$")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_what_a_cell_says_does_nothing_to_a_terminal(self):
        done = self.run_cells("// out: \x1b[31mred\x9b", "// err: \x1b]0;title\x07")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\\x1b[31mred\\x9b\n", done.stdout)
        self.assertIn("\\x1b]0;title\\x07\n", done.stdout)
        for shown in ("7", "{", '"x"'):
            done = self.run_cells(f"// out: @@ display {shown}")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("FAILED in cell cell-0: '@@ display' is how HTML is shown", done.stdout)
            self.assertEqual(done.stderr, "")

    def test_an_interpreter_that_ends_within_a_cell_or_badly(self):
        for code in (0, 3):
            done = self.run_cells("// out: before", f"// exit {code}", "// out: after")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"FAILED in cell cell-1: the interpreter ended with code {code}", done.stdout)
        done = self.run_cells("// quit with 4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the interpreter ended with code 4 when it was asked to quit", done.stdout)


@unittest.skipUnless(HERE, "there is no clang-repl-19 here")


class RunNotebook(unittest.TestCase):
    def run_cells(self, *cells, limit="60", beside=False, include=None):
        """Writes a notebook, beside the lessons' own where it needs their headers, and executes it."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "tried.ipynb"
            path.write_text(json.dumps(notebook(*cells)), encoding="utf-8")
            for header in ("interrupts.hpp", "setup.hpp") if beside else ():
                (Path(folder) / header).symlink_to(ROOT / "notebooks" / header)
            environment = {**os.environ, "CPLUS_INCLUDE_PATH": include} if include else None
            return subprocess.run([sys.executable, RUN, "--library", LIBRARY, "--limit", limit, path],
                                  capture_output=True, text=True, timeout=240, check=False, env=environment)

    def expect_failure(self, words, *cells, **more):
        done = self.run_cells(*cells, **more)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, words)
        self.assertIn("0 passed, 1 failed", done.stdout)
        return done.stdout

    def test_cells_run_in_order_and_what_they_print_is_shown(self):
        done = self.run_cells("#include <iostream>", "namespace nb {\nint number() {\n  return 6;\n}\n}",
                              "int seven = nb::number() + 1;", "std::cout << 6 * seven << std::endl;")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.startswith("42\n"), done.stdout)
        self.assertIn("1 passed, 0 failed", done.stdout)

    def test_a_throwing_cell_fails(self):
        said = self.expect_failure(r"FAILED in cell cell-1: the interpreter died of signal 6", "#include <stdexcept>",
                                   'throw std::runtime_error("planted");', "int after = 1;")
        self.assertIn("planted", said)

    def test_a_compile_error_fails_and_stops_the_notebook(self):
        said = self.expect_failure("FAILED in cell cell-1: an error", "#include <cstdio>", "int x = nowhere;", 'std::puts("after");')
        self.assertIn("use of undeclared identifier 'nowhere'", said)
        self.assertNotIn("after", said)

    def test_an_open_brace_fails(self):
        self.expect_failure("FAILED in cell cell-0: an error", "namespace nb { int one();")

    def test_a_crash_of_the_interpreter_fails(self):
        self.expect_failure("FAILED in cell cell-1: the interpreter died of signal 11", "#include <csignal>",
                            "std::raise(SIGSEGV);")

    def test_an_interpreter_that_leaves_fails_even_with_code_0(self):
        self.expect_failure("FAILED in cell cell-1: the interpreter ended with code 0", "#include <cstdlib>", "std::_Exit(0);")

    def test_an_endless_loop_fails(self):
        self.expect_failure("FAILED in cell cell-1: no end after 3 seconds", "#include <unistd.h>",
                            "while (true) usleep(1000);", limit="3")

    def test_setup_loads_the_library_and_NB_CHECK_throws(self):
        done = self.run_cells('#include "setup.hpp"', "NB_CHECK(muonwalk::shape_text(2, 3).size() > 4);", beside=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.expect_failure(r"this does not hold: 1 \+ 1 == 3", '#include "setup.hpp"', "NB_CHECK(1 + 1 == 3);", beside=True)

    def lesson_cells(self, name, words):
        """The cells of a lesson that begins with these options."""
        cells = [source for _, source in code_cells(ROOT / "notebooks" / f"{name}.ipynb")]
        changed = [re.sub(r'(nb::options\(info, .*, ")"', rf'\g<1>{words}"', source) for source in cells]
        self.assertNotEqual(cells, changed)
        return changed

    def test_a_planted_bug_stops_a_lesson_at_its_check(self):
        said = self.expect_failure(r'this does not hold: lesson->all_equal\(\)',
                                   *self.lesson_cells("lesson_05_tp_gather", "--bug forgotten_copy"),
                                   beside=True)
        self.assertIn("elements differ", said)

    def test_a_library_that_is_not_there_is_said(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "tried.ipynb"
            path.write_text(json.dumps(notebook('#include "setup.hpp"')), encoding="utf-8")
            (Path(folder) / "setup.hpp").symlink_to(ROOT / "notebooks" / "setup.hpp")
            environment = {**os.environ, "MUONWALK_LIBRARY": "/nowhere/lib.so"}
            done = subprocess.run([sys.executable, RUN, path], capture_output=True, text=True, env=environment, timeout=240,
                                  check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "the shared library can't be loaded: /nowhere/lib.so.* and restart the kernel")

WIDE = 'a < b \\"and\\" ' * 9  # as C++ writes it


@unittest.skipUnless(HERE, "there is no clang-repl-19 here")


class Kept(unittest.TestCase):
    """What is kept of a run, and the second run in the same session."""

    def setUp(self):
        scratch = TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name) / "tried.ipynb"
        (Path(scratch.name) / "setup.hpp").symlink_to(ROOT / "notebooks" / "setup.hpp")

    def write(self, *cells):
        """Each cell is its source, or that and its metadata."""
        made = notebook(*(cell if isinstance(cell, str) else cell[0] for cell in cells))
        for cell, given in zip(made["cells"], cells):
            cell["metadata"] = {} if isinstance(given, str) else given[1]
        self.path.write_text(json.dumps(made), encoding="utf-8")

    def run_it(self, *options, code=0, bless=""):
        environment = {**os.environ, "MUONWALK_LIBRARY": LIBRARY, "BLESS": bless}
        done = subprocess.run([sys.executable, RUN, *options, self.path], capture_output=True, text=True, timeout=240, check=False,
                              env=environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def outputs(self):
        return [cell["outputs"] for cell in json.loads(self.path.read_text(encoding="utf-8"))["cells"]]

    def test_text_and_wide_text_are_kept_in_their_order_and_what_is_measured_is_not(self):
        self.write('#include "setup.hpp"', 'nb::print("one"); nb::print("two"); nb::print("' + WIDE + '"); nb::print("three");',
                   'nb::print_aside("0.3 s");')
        self.assertIn("0.3 s", self.run_it("--keep"))
        one, shown, three = self.outputs()[1]
        self.assertEqual((one, three), ({"name": "stdout", "output_type": "stream", "text": ["one\n", "two\n"]},
                                        {"name": "stdout", "output_type": "stream", "text": ["three\n"]}))
        self.assertEqual(shown["data"]["text/plain"], ['a < b "and" ' * 9])
        self.assertIn('">' + 'a &lt; b "and" ' * 9 + "</pre>", "".join(shown["data"]["text/html"]))
        self.assertEqual(self.outputs()[2], [])
        self.run_it("--compare")

    def test_an_output_that_is_another_is_found_and_kept_when_asked(self):
        self.write("#include <iostream>", 'std::cout << "one\\ntwo" << std::endl;')
        self.assertRegex(self.run_it("--compare", code=1), "cell cell-1 does not put out what is kept: 0 outputs are kept")
        self.run_it("--compare", bless="1")
        self.run_it("--compare")
        text = self.path.read_text(encoding="utf-8")
        self.path.write_text(text.replace('"two\\n"', '"2\\n"'), encoding="utf-8")
        self.assertRegex(self.run_it("--compare", code=1),
                         r"cell cell-1 does not put out what is kept: output 1, line 2\n +is kept as 2\n +and is now two")


class Refusals(unittest.TestCase):
    def run_with(self, *arguments):
        return subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True, timeout=60, check=False)

    def test_without_an_interpreter_it_refuses_or_skips(self):
        done = self.run_with("--interpreter", "no-such-repl", ROOT / "notebooks" / "lesson_05_tp_gather.ipynb")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        missing = "there is no no-such-repl here; install Debian's clang-tools-19, or name another one with --interpreter\n"
        self.assertEqual(done.stderr, f"run_notebook: {missing}")
        done = self.run_with("--may-skip", "--interpreter", "no-such-repl", ROOT / "notebooks" / "lesson_05_tp_gather.ipynb")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (77, f"skipped: {missing}", ""))

    @unittest.skipUnless(HERE, "there is no clang-repl-19 here")
    def test_a_notebook_or_a_library_that_is_not_there_is_refused(self):
        done = self.run_with("/nowhere.ipynb")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "run_notebook: /nowhere.ipynb is not a notebook; notebooks/make/make_notebooks.py makes those of the lessons\n")
        done = self.run_with("--library", "/nowhere.so", ROOT / "notebooks" / "lesson_05_tp_gather.ipynb")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "run_notebook: --library /nowhere.so is not a file; build it with ./walk notebooks --library\n")


if __name__ == "__main__":
    unittest.main()
