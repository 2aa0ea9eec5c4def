"""./walk jupyter on a stand-in project, with stand-ins for Jupyter, its kernel and whatever installs or builds."""

import json
import os
import shutil
import unittest

from stand_in_jupyter import LIBRARIES, SPEC, StandInProject, notebook

HOW = r"conda env create -f \S.*/binder/environment.yml'? installs both, and conda activate muonwalk puts them on PATH"


class WalkJupyter(StandInProject):
    def copy(self):
        return self.own / "notebooks" / self.original.name

    def test_jupyter_starts_in_the_copies_and_finds_the_kernel_there(self):
        started = self.opened("--no-browser", "--port", "9000")
        self.assertEqual(started, {"name": "jupyter-lab", "words": ["--no-browser", "--port", "9000"],
                                   "folder": str(self.own / "notebooks"), "path": str(self.own)})
        self.assertEqual(self.copy().read_bytes(), self.original.read_bytes())
        self.assertEqual((self.own / "notebooks" / "README.md").read_text(), "how to open them\n")
        self.assertIn(f"ninja {LIBRARIES}", self.calls.read_text())

    def test_the_copied_spec_has_the_headers_after_its_own_arguments_and_is_otherwise_the_same(self):
        self.opened()
        copied = self.own / "kernels" / "xcpp17"
        include = self.own / "include"
        more = [f"-I{self.project}", f"-I{self.project / 'notebooks'}", f"-I{include}"]
        self.assertEqual(json.loads((copied / "kernel.json").read_text()), {**SPEC, "argv": SPEC["argv"] + more})
        self.assertEqual((copied / "logo-svg.svg").read_text(), "<svg/>")
        self.assertEqual(os.listdir(include), ["fmt"])  # and nothing else of what lies beside it
        self.assertEqual((include / "fmt").resolve(), self.headers / "fmt")
        self.assertEqual(json.loads((self.data / "kernels" / "xcpp17" / "kernel.json").read_text()), SPEC)

    def test_a_reader_s_edits_stay_and_the_project_s_notebooks_are_untouched(self):
        before = self.original.read_bytes()
        self.opened()
        edited = notebook('#include "setup.hpp"', "int five = 6;")
        self.copy().write_text(edited, encoding="utf-8")
        self.opened()
        self.assertEqual(self.copy().read_text(), edited)
        self.assertEqual(self.original.read_bytes(), before)
        self.assertNotIn("their lessons have changed", self.said)

    def test_when_a_lesson_changes_a_copy_follows_unless_the_reader_changed_it(self):
        self.opened()
        newer = notebook('#include "setup.hpp"', "int five = 2 + 3;")
        # What its cells printed is not a change of the reader's.
        self.copy().write_text(notebook('#include "setup.hpp"', "int five = 5;", outputs=[{"output_type": "stream"}]), encoding="utf-8")
        self.original.write_text(newer, encoding="utf-8")
        self.opened()
        self.assertEqual(self.copy().read_text(), newer)
        edited = notebook("int six = 6;")
        self.copy().write_text(edited, encoding="utf-8")
        self.original.write_text(notebook("int five = 10 / 2;"), encoding="utf-8")
        self.opened()
        self.assertEqual(self.copy().read_text(), edited)
        self.assertIn("Left as you changed them, though their lessons have changed too: lesson_05_echo.ipynb (./walk jupyter --fresh makes new "
                      f"copies and keeps yours).\nThe notebooks are copies, in {self.own}/notebooks: what you change there stays.\n", self.said)

    def test_fresh_makes_the_copies_anew_and_keeps_what_was_there(self):
        self.opened()
        for number, edit in ((1, "int once = 1;"), (2, "int twice = 2;")):
            self.copy().write_text(notebook(edit), encoding="utf-8")
            self.assertEqual(self.opened("--fresh", "--no-browser")["words"], ["--no-browser"])
            self.assertEqual(self.copy().read_bytes(), self.original.read_bytes())
            kept = self.own / f"notebooks.{number}"
            self.assertEqual((kept / self.original.name).read_text(), notebook(edit))
            self.assertIn(f"What you had is now in {kept}.", self.said)

    def test_without_a_kernel_or_jupyter_nothing_is_built(self):
        shutil.rmtree(self.data)
        kernel = f"Jupyter has no kernel xcpp17 here, which the notebooks need to run C\\+\\+; {HOW}"
        neither = ("there is no JupyterLab and no Jupyter Notebook on PATH to open the notebooks with, which also need the kernel "
                   f"xcpp17; {HOW}")
        for words in (kernel, neither):
            self.assertEqual(len(self.refused(2, words).splitlines()), 1)
            self.assertFalse(self.calls.exists())
            for name in ("jupyter-lab", "jupyter"):
                (self.machine / name).unlink(missing_ok=True)

    def test_prepare_does_all_but_start_jupyter_and_needs_none(self):
        for name in ("jupyter-lab", "jupyter"):
            (self.machine / name).unlink()
        done = self.walk("--prepare", JUPYTER_PATH=str(self.data))
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertTrue(self.copy().is_file() and (self.own / "kernels" / "xcpp17" / "kernel.json").is_file())

    def test_copies_are_signed_when_they_are_made_where_jupyter_can_sign(self):
        signed = self.scratch / "signed"
        self.program("jupyter-trust", f"#!/bin/bash\necho \"$*\" >>'{signed}'; echo Signing; exit 1\n")
        for _ in range(2):
            self.assertEqual(self.walk("--prepare", JUPYTER_PATH=str(self.data)).stdout, "")
            self.assertEqual(signed.read_text(), f"{self.copy()}\n")
        self.original.write_text(notebook("int six = 6;"), encoding="utf-8")
        self.opened()
        self.assertEqual(signed.read_text(), f"{self.copy()}\n" * 2)

    def test_a_folder_that_can_not_be_written_to_is_named(self):
        for taken in ("kernels", "notebooks", "include"):
            with self.subTest(taken=taken):
                shutil.rmtree(self.own, ignore_errors=True)
                self.own.mkdir(parents=True)
                (self.own / taken).write_text("a file", encoding="utf-8")
                (self.own / "fmt_headers.txt").write_text(f"{self.headers}\n", encoding="utf-8")
                self.refused(3, f"{self.own}/{taken}\\S* can't be written: [A-Z][a-z ]+; make build/jupyter a folder that you can write to")

    def test_a_word_that_it_does_not_take_is_refused(self):
        said = self.refused(2, '"05" is nothing that jupyter takes; try ./walk jupyter, or --fresh or an option of Jupyter\'s after it', "05")
        self.assertEqual(len(said.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
