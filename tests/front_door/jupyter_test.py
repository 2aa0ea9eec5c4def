"""./walk jupyter on a stand-in project, with stand-ins for Jupyter, its kernel and whatever installs or builds."""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("open_notebooks.py", "kernel_spec.py", "working_copies.py", "whole_file.py", "packages.txt")
LIBRARIES = "muonwalk muonwalk_analyser_library muonwalk_scale_library muonwalk_exercises"

# Writes down how it was started, and ends with a code of its own.
STAND_IN_FRONT_END = """\
#!{python}
import json, os, sys
started = {{"name": os.path.basename(sys.argv[0]), "words": sys.argv[1:], "folder": os.getcwd(), "path": os.environ["JUPYTER_PATH"]}}
open({record!r}, "w").write(json.dumps(started))
sys.exit(5)
"""
STAND_IN_JUPYTER = """\
#!{python}
import json, sys
if sys.argv[1:] == ["--paths", "--json"]:
    print({answer!r})
"""
STAND_IN_CMAKE = """\
#!/bin/bash
mkdir -p build/CMakeFiles build/jupyter build/lib
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/CMakeCache.txt
: >build/build.ninja
echo {headers} >build/jupyter/fmt_headers.txt
"""
SPEC = {"argv": ["/opt/of a kernel/bin/xcpp", "-f", "{connection_file}", "-std=c++17"], "display_name": "C++17", "language": "cpp"}


def notebook(*sources, outputs=()):
    cells = [{"cell_type": "code", "id": f"cell-{i}", "source": [source], "outputs": list(outputs), "metadata": {},
              "execution_count": None} for i, source in enumerate(sources)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


class WalkJupyter(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name).resolve()
        self.project = self.scratch / "a walk in the park"
        self.machine, self.data = self.scratch / "machine", self.scratch / "data of jupyter"
        self.calls, self.record = self.scratch / "calls", self.scratch / "started.json"
        self.own = self.project / "build" / "jupyter"
        (self.project / "tools").mkdir(parents=True)
        for name in TOOLS:
            shutil.copy(ROOT / "tools" / name, self.project / "tools")
        shutil.copy(ROOT / "walk", self.project)
        (self.project / "notebooks").mkdir()
        self.original = self.project / "notebooks" / "lesson_05_echo.ipynb"
        self.original.write_text(notebook('#include "setup.hpp"', "int five = 5;"), encoding="utf-8")
        (self.project / "notebooks" / "README.md").write_text("how to open them\n", encoding="utf-8")
        self.headers = self.scratch / "include"
        (self.headers / "fmt").mkdir(parents=True)
        self.prepare_machine()
        self.prepare_jupyter()

    def program(self, name, text):
        (self.machine / name).write_text(text, encoding="utf-8")
        (self.machine / name).chmod(0o755)

    def prepare_machine(self):
        """All packages are there; what builds writes down what it was asked for."""
        self.machine.mkdir()
        for name in ("bash", "env", "cat", "dirname", "grep", "sed", "tr", "id", "mkdir", "flock", "python3"):
            (self.machine / name).symlink_to(sys.executable if name == "python3" else shutil.which(name))
        self.program("dpkg-query", '#!/bin/bash\nfor package in "${@:3}"; do echo "$package installed"; done\n')
        self.program("apt-get", "#!/bin/bash\nexit 99\n")
        self.program("cmake", STAND_IN_CMAKE.format(headers=f"'{self.headers}'"))
        self.program("ninja", f"#!/bin/bash\necho \"ninja $*\" >>'{self.calls}'\n")

    def prepare_jupyter(self, names=("jupyter-lab",)):
        for name in names:
            self.program(name, STAND_IN_FRONT_END.format(python=sys.executable, record=str(self.record)))
        self.program("jupyter", STAND_IN_JUPYTER.format(python=sys.executable, answer=json.dumps({"data": [str(self.data)]})))
        self.write_spec(json.dumps(SPEC))

    def write_spec(self, text):
        folder = self.data / "kernels" / "xcpp17"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.json").write_text(text, encoding="utf-8")
        (folder / "logo-svg.svg").write_text("<svg/>", encoding="utf-8")

    def walk(self, *words, **environment):
        self.record.unlink(missing_ok=True)
        home = self.scratch / "home"
        return subprocess.run([self.project / "walk", "jupyter", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, check=False, cwd=self.scratch,
                              env={"PATH": str(self.machine), "HOME": str(home), **environment})

    def opened(self, *words, **environment):
        """How Jupyter was started."""
        done = self.walk(*words, **environment)
        self.assertEqual((done.returncode, done.stdout), (5, ""), done.stderr)  # Jupyter's own exit code
        self.said = done.stderr
        return json.loads(self.record.read_text())

    def refused(self, code, words, *given, **environment):
        done = self.walk(*given, **environment)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertRegex(last, f"^walk: .*{words}")
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse(self.record.exists(), "Jupyter was started")
        return done.stderr

    def copy(self):
        return self.own / "notebooks" / self.original.name

    def test_jupyter_starts_in_the_copies_and_finds_the_kernel_there(self):
        started = self.opened("--no-browser", "--port", "9000")
        self.assertEqual(started, {"name": "jupyter-lab", "words": ["--no-browser", "--port", "9000"],
                                   "folder": str(self.own / "notebooks"), "path": str(self.own)})
        self.assertEqual(self.copy().read_bytes(), self.original.read_bytes())
        self.assertEqual((self.own / "notebooks" / "README.md").read_text(), "how to open them\n")
        self.assertIn(f"ninja {LIBRARIES}", self.calls.read_text())

    def test_what_JUPYTER_PATH_says_already_comes_after_the_copy(self):
        self.assertEqual(self.opened(JUPYTER_PATH="/one:/two")["path"], f"{self.own}:/one:/two")

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

    def test_a_second_start_from_inside_the_first_does_not_copy_its_own_copy(self):
        answer = json.dumps({"data": [str(self.own), str(self.data)]})
        self.program("jupyter", STAND_IN_JUPYTER.format(python=sys.executable, answer=answer))
        self.opened()
        first = (self.own / "kernels" / "xcpp17" / "kernel.json").read_text()
        self.opened(JUPYTER_PATH=str(self.own))
        self.assertEqual((self.own / "kernels" / "xcpp17" / "kernel.json").read_text(), first)

    def test_headers_that_have_moved_are_linked_anew(self):
        self.opened()
        moved = self.scratch / "moved"
        (moved / "fmt").mkdir(parents=True)
        (self.own / "fmt_headers.txt").write_text(f"{moved}\n", encoding="utf-8")
        self.opened()
        self.assertEqual((self.own / "include" / "fmt").resolve(), moved / "fmt")

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
        self.assertIn("Left as you changed them, though their lessons have changed too: lesson_05_echo.ipynb", self.said)

    def test_fresh_makes_the_copies_anew_and_keeps_what_was_there(self):
        self.opened()
        for number, edit in ((1, "int once = 1;"), (2, "int twice = 2;")):
            self.copy().write_text(notebook(edit), encoding="utf-8")
            self.assertEqual(self.opened("--fresh", "--no-browser")["words"], ["--no-browser"])
            self.assertEqual(self.copy().read_bytes(), self.original.read_bytes())
            kept = self.own / f"notebooks.{number}"
            self.assertEqual((kept / self.original.name).read_text(), notebook(edit))
            self.assertIn(f"What you had is now in {kept}.", self.said)

    def test_jupyter_notebook_serves_where_there_is_no_jupyterlab(self):
        (self.machine / "jupyter-lab").unlink()
        self.prepare_jupyter(["jupyter-notebook"])
        self.assertEqual(self.opened()["name"], "jupyter-notebook")

    def test_without_jupyter_nothing_is_built(self):
        for name in ("jupyter-lab", "jupyter"):
            (self.machine / name).unlink()
        said = self.refused(2, "no JupyterLab and no Jupyter Notebook on PATH.*; conda .* installs both")
        self.assertEqual(len(said.splitlines()), 1)
        self.assertFalse(self.calls.exists())

    def test_without_a_kernel_nothing_is_built(self):
        shutil.rmtree(self.data)
        said = self.refused(2, "Jupyter has no kernel xcpp17 here.*; conda .* installs both")
        self.assertEqual(len(said.splitlines()), 1)
        self.assertFalse(self.calls.exists())

    def test_the_kernel_is_found_without_jupyter_s_help_and_in_a_conda_environment(self):
        self.program("jupyter", "#!/bin/bash\necho nonsense\n")
        self.opened(JUPYTER_PATH=f"/nowhere:{self.data}")
        local = self.scratch / "home" / ".local" / "share"
        local.mkdir(parents=True)
        shutil.copytree(self.data, local / "jupyter")
        self.opened()
        shutil.rmtree(local)
        environment = self.scratch / "conda"
        shutil.copytree(self.data, environment / "share" / "jupyter")
        self.opened(CONDA_PREFIX=str(environment))

    def test_a_spec_that_starts_no_kernel_is_named(self):
        for text, why in (("{", "is not JSON"), ("[]", "has no list of words called argv"), ('{"argv": []}', "has no list"),
                          ('{"argv": ["xcpp", 7]}', "has no list")):
            with self.subTest(text=text):
                self.write_spec(text)
                self.refused(3, f"kernels/xcpp17/kernel.json {why}")

    def test_a_folder_that_can_not_be_written_to_is_named(self):
        for taken in ("kernels", "notebooks", "include"):
            with self.subTest(taken=taken):
                shutil.rmtree(self.own, ignore_errors=True)
                self.own.mkdir(parents=True)
                (self.own / taken).write_text("a file", encoding="utf-8")
                (self.own / "fmt_headers.txt").write_text(f"{self.headers}\n", encoding="utf-8")
                self.refused(3, f"build/jupyter/{taken}.* can't be written: .*; make build/jupyter a folder")

    def test_headers_that_are_not_there_are_named(self):
        (self.headers / "fmt").rmdir()
        self.refused(3, "there are no headers of fmt in .*include")
        (self.own / "fmt_headers.txt").unlink()
        self.refused(3, "fmt_headers.txt can't be read")

    def test_a_jupyter_that_can_not_be_started_is_named(self):
        self.program("jupyter-lab", "#!/nowhere/python\n")
        self.refused(3, "jupyter-lab can't be started")

    def test_a_word_that_it_does_not_take_is_refused(self):
        said = self.refused(2, '"05" is nothing that jupyter takes', "05")
        self.assertEqual(len(said.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
