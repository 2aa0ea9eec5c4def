"""real_kernel.sh with a stand-in for the kernel that speaks Jupyter's protocol: what it asks for, and what it finds."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from picture_faults import fault_of_picture  # noqa: E402

SCRIPT = HERE / "real_kernel.sh"


def pythons():
    """Those that real_kernel.sh would take, as far as they have the module."""
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists():
            asked = subprocess.run([python, "-c", "import jupyter_client"], capture_output=True, check=False)
            if asked.returncode == 0:
                yield python


PYTHON = next(pythons(), None)
PICTURE = '// svg: <svg xmlns="http://www.w3.org/2000/svg"><title>A map</title></svg>'


def notebook(*cells):
    """Each cell is its source, or that, its metadata and what is kept of it."""
    made = []
    for i, cell in enumerate(cells):
        source, metadata, outputs = cell if isinstance(cell, tuple) else (cell, {}, [])
        made.append({"cell_type": "code", "id": f"cell-{i}", "source": [source], "metadata": metadata, "outputs": outputs,
                     "execution_count": None})
    return {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def printed(text):
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}]


class Pictures(unittest.TestCase):
    def test_each_fault_of_a_picture_is_named(self):
        named = '<svg xmlns="http://www.w3.org/2000/svg"><title>A map</title></svg>'
        for svg, words, fault in ((named, "in words", ""), ("<svg><title>A map</title></svg>", "in words", ""),
                                  (named, " ", "it has no words beside it"), ("<svg/>", "in words", "its SVG has no title"),
                                  (named.replace("A map", " "), "in words", "its SVG has no title"),
                                  ("<g/>", "in words", "it is not an SVG but g")):
            self.assertEqual(fault_of_picture({"image/svg+xml": svg, "text/plain": words}), fault)
        self.assertIn("not well-formed", fault_of_picture({"image/svg+xml": "<svg>", "text/plain": "in words"}))


@unittest.skipIf(PYTHON is None, "no Python here has the module jupyter_client")
class RealKernel(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name).resolve()

    def check(self, *options, cells=("// out: one",), kernel=(), spec=True, python=PYTHON):
        """Checks a notebook of these cells with a stand-in that was given these words on its command line."""
        path = self.scratch / "tried.ipynb"
        path.write_text(json.dumps(notebook(*cells)), encoding="utf-8")
        folder = self.scratch / "data" / "kernels" / "xcpp17"
        if spec:
            folder.mkdir(parents=True, exist_ok=True)
            argv = [PYTHON, str(HERE / "stand_in_kernel.py"), "-f", "{connection_file}", *kernel]
            (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "C++17", "language": "C++17"}))
        return subprocess.run([SCRIPT, "--library", path, *options, path], capture_output=True, text=True, timeout=300, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.scratch), "MUONWALK_PYTHON": python,
                                   "JUPYTER_PATH": str(self.scratch / "data")})

    def expect(self, code, words, *options, **given):
        done = self.check(*options, **given)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertRegex(done.stdout, words)
        self.assertNotIn("Traceback", done.stderr)
        return done.stdout

    def test_a_kernel_and_notebooks_that_do_as_they_should_pass_every_check(self):
        into = self.scratch / "executed"
        shown = f"nb::show_svg(picture);\n{PICTURE}"
        kept = {"data": {"image/svg+xml": [PICTURE[len("// svg: "):]], "text/plain": ["in words"]}, "metadata": {},
                "output_type": "display_data"}
        begin = '// out: begun\nlesson.emplace(info, nb::options(info, Grid(), ""));'
        said = self.expect(0, r"tried: cells: 4, pictures: 1, outputs as kept: 4, cells run again: 2\n", "--into", str(into),
                           cells=(("// out: one\n// err: 0.3 s\n// out: two", {"tags": ["once"]}, printed("one\ntwo\n")),
                                  (begin, {"tags": ["begin"], "again": "--dp 8"}, printed("begun\n")), (shown, {}, [kept]),
                                  ("int real = 3;", {"tags": ["once"]}, [])))
        self.assertIn("interrupt: the kernel survives it, idle and busy, and goes on\n", said)
        self.assertIn("restart: tried runs again from top to bottom\n3 passed, 0 failed\n", said)
        executed = json.loads((into / "tried.ipynb").read_text(encoding="utf-8"))["cells"]
        self.assertEqual([cell["execution_count"] for cell in executed], [1, 2, 3, 4])
        self.assertEqual(executed[2]["outputs"][0]["data"]["text/plain"], "in words")

    def test_the_kernel_is_given_the_headers_as_walk_jupyter_does_it(self):
        into, root = self.scratch / "executed", HERE.parents[1]
        self.expect(0, "tried: cells: 1\n1 passed", "--only", "cells", "--into", str(into), cells=("// arguments",))
        executed = json.loads((into / "tried.ipynb").read_text(encoding="utf-8"))["cells"]
        self.assertRegex("".join(executed[0]["outputs"][0]["text"]), rf"-I{root} -I{root}/notebooks -I\S+/include$")

    def test_cells_that_fail_are_named_with_what_they_put_out(self):
        for cell, why in (("// out: before\n// fail: planted", "an error: Failed planted"),
                          ("// out: before\n// err: input_line_3:2:5: error: use of undeclared identifier", "an error on standard error"),
                          ("// end", "the kernel ended")):
            with self.subTest(cell=cell):
                said = self.expect(1, f"tried: FAILED: cell cell-1: {why}\n0 passed, 1 failed", "--only", "cells",
                                   cells=("// out: good", cell, "// out: after"))
                self.assertEqual("before" in said, "before" in cell)
                self.assertNotIn("after", said)

    def test_a_cell_that_never_ends_is_ended(self):
        self.expect(1, "FAILED: cell cell-0: no end within the limit", "--only", "cells", "--limit", "1", cells=("// hang",))

    def test_pictures_that_are_missing_or_have_a_fault_are_named(self):
        for cell, why in (("", "it asks for pictures 1 times, and shows 0"), ("// svg: <svg/>", "a picture: its SVG has no title")):
            with self.subTest(cell=cell):
                self.expect(1, f"FAILED: cell cell-0: {why}", "--only", "pictures", cells=(f"nb::show_svg(picture);\n{cell}",))

    def test_a_kernel_that_does_not_survive_an_interrupt_is_found(self):
        for word, why in (("--ends-when-idle", "while it is idle: the kernel ended"),
                          ("--ends-when-busy", "while it is busy: the kernel ended"),
                          ("--deaf", "while it is busy: no end within the limit"),
                          ("--silent", "while it is busy: the cell does not say that it was interrupted"),
                          ("--stuck", "while it is busy: an error: Failed the ranks still wait")):
            with self.subTest(word=word):
                self.expect(1, f"interrupt: FAILED: after an interrupt {why}", "--only", "interrupt", "--limit", "4", kernel=[word])

    def test_an_output_that_is_another_than_is_kept_is_named(self):
        for kept, cell, why in ((printed("one\n"), "// out: two", "output 1, line 1\n +is kept as one\n +and is now two"),
                                ([], "// out: two", "0 outputs are kept, and it has 1"),
                                (printed("one\n"), "// err: 0.3 s", "1 outputs are kept, and it has 0")):
            with self.subTest(why=why):
                self.expect(1, f"FAILED: cell cell-0 does not put out what is kept: {why}", "--only", "outputs",
                            cells=((cell, {}, kept),))

    def test_a_second_run_that_fails_is_named(self):
        begin = ('lesson.emplace(info, nb::options(info, Grid(), ""));', {"tags": ["begin"], "again": "x\n// fail: planted\n//"}, [])
        self.expect(1, "FAILED: cell cell-0 of the second run: an error: Failed planted", "--only", "again", cells=(begin,))

    def test_a_kernel_that_can_not_be_restarted_is_found(self):
        mark = self.scratch / "started"
        self.expect(1, "restart: FAILED: before the restart: the kernel does not start", "--only", "restart",
                    kernel=["--starts-once", str(mark)])

    def test_without_a_kernel_or_the_module_it_is_skipped_with_a_reason(self):
        self.expect(77, "^skipped: Jupyter has no kernel xcpp17 here.*\n0 passed, 0 failed, 1 skipped\n$", spec=False)
        self.expect(77, "^skipped: no Python here has the module jupyter_client", python="false")

    def test_what_can_not_be_checked_is_refused(self):
        for words, why in ((["--only", "smell"], "--only smell is not a check; there are: cells"),
                           (["--library", "/nowhere.so"], "/nowhere.so is not a file"), (["/nowhere.ipynb"], "is not a notebook")):
            done = self.check(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
