"""notebooks/make/run_in_jupyter.py with a stand-in for Jupyter: what it asks for, and what it makes of the answers."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "notebooks/make"))
import notebook_file  # noqa: E402
RUN = ROOT / "notebooks/make/run_in_jupyter.py"
NOTEBOOK = ROOT / "notebooks" / "lesson_05_tp_gather.ipynb"

# Executes a notebook by numbering its code cells, where it is asked to as the real one is; `change` is done to what each has put out.
STAND_IN = """\
#!{python}
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
if words == ["kernelspec", "list", "--json"]:
    print(json.dumps({{"kernelspecs": {{name: {{}} for name in {kernels!r}}}}}))
elif words == ["nbconvert", "--version"]:
    sys.exit({nbconvert})
elif words[:4] == ["nbconvert", "--to", "notebook", "--execute"]:
    assert "--ExecutePreprocessor.kernel_name=xcpp17" in words
    assert Path("setup.hpp").is_file() and os.environ["CPLUS_INCLUDE_PATH"].startswith({root!r})
    notebook = json.loads(Path(words[-1]).read_text())
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        cell["execution_count"] = number + 1
        {change}
    (Path(words[words.index("--output-dir") + 1]) / Path(words[-1]).name).write_text(json.dumps(notebook))
    print("nbconvert has spoken")
    sys.exit({code})
else:
    sys.exit(99)
"""


class RunInJupyter(unittest.TestCase):
    def run_with(self, jupyter=True, kernels=("python3", "xcpp17"), nbconvert=0, code=0, change="pass"):
        with TemporaryDirectory() as folder:
            if jupyter:
                program = Path(folder) / "jupyter"
                program.write_text(STAND_IN.format(python=sys.executable, kernels=list(kernels), nbconvert=nbconvert, code=code,
                                                   change=change, root=str(ROOT)), encoding="utf-8")
                program.chmod(0o755)
            return subprocess.run([sys.executable, RUN, NOTEBOOK], capture_output=True, text=True, timeout=60, check=False,
                                  env={**os.environ, "PATH": folder})

    def expect_skip(self, why, **given):
        done = self.run_with(**given)
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertRegex(done.stdout, rf"^skipped: {why}.*; notebooks/README.md says how to get one\n0 passed, 0 failed, 1 skipped\n$")

    def test_without_a_kernel_it_says_so_and_counts_the_notebooks_as_skipped(self):
        self.expect_skip("there is no Jupyter here", jupyter=False)
        self.expect_skip("Jupyter has no kernel xcpp17 here, only: ir, python3", kernels=["python3", "ir"])
        self.expect_skip("Jupyter has no kernel xcpp17 here, only: none", kernels=[])
        self.expect_skip("Jupyter has no nbconvert here", nbconvert=1)

    def test_a_notebook_that_runs_passes(self):
        done = self.run_with()
        self.assertEqual((done.returncode, done.stdout), (0, "lesson_05_tp_gather: ran from top to bottom\n1 passed, 0 failed\n"))

    def test_what_jupyter_is_asked_and_what_it_finds(self):
        """The limit of a cell, the library, and each notebook in its own folder; a count at the end."""
        with TemporaryDirectory() as folder:
            program, asked = Path(folder) / "jupyter", Path(folder) / "asked"
            program.write_text(STAND_IN.format(python=sys.executable, kernels=["xcpp17"], nbconvert=0, code=0, change="pass", root=str(ROOT))
                               .replace("    assert Path", f"    open({str(asked)!r}, 'a').write(json.dumps([words, os.getcwd(),"
                                        " os.environ.get('MUONWALK_LIBRARY'), os.environ['MUONWALK_ASIDES_APART'],"
                                        " os.environ['CPLUS_INCLUDE_PATH']]) + '\\n')\n    sys.exit(1) if '_07_' in words[-1] else None\n"
                                        "    assert Path"), encoding="utf-8")
            program.chmod(0o755)
            notebooks = [NOTEBOOK, ROOT / "notebooks" / "lesson_07_tp_shard.ipynb", ROOT / "notebooks" / "lesson_04_dp_gather.ipynb"]
            environment = {**os.environ, "PATH": folder, "CPLUS_INCLUDE_PATH": "/before"}
            environment.pop("MUONWALK_LIBRARY", None)
            given = ["--limit", "7.5", "--library", "some/lib.so"]
            for options, limit, library in (([], "120", None), (given, "7.5", f"{os.getcwd()}/some/lib.so")):
                asked.write_text("", encoding="utf-8")
                done = subprocess.run([sys.executable, RUN, *options, *notebooks], capture_output=True, text=True, timeout=60, check=False,
                                      env=environment)
                self.assertEqual((done.returncode, done.stdout), (
                    1, "lesson_05_tp_gather: ran from top to bottom\n\nlesson_07_tp_shard: FAILED\n"
                       "lesson_04_dp_gather: ran from top to bottom\n2 passed, 1 failed\n"), done.stderr)
                lines = [json.loads(line) for line in asked.read_text(encoding="utf-8").splitlines()]
                self.assertEqual([words[-1] for words, *_ in lines], [str(path) for path in notebooks])
                for words, where, *found in lines:
                    self.assertIn(f"--ExecutePreprocessor.timeout={limit}", words)
                    self.assertEqual((where, found), (str(ROOT / "notebooks"), [library, "1", f"{ROOT}:/before"]))

    def test_a_notebook_that_fails_is_told_with_what_nbconvert_said(self):
        done = self.run_with(code=1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nbconvert has spoken", done.stdout)
        self.assertIn("lesson_05_tp_gather: FAILED\n0 passed, 1 failed", done.stdout)

    def test_what_cells_put_out_is_held_against_what_is_kept_as_where_clang_repl_executes_them(self):
        blank, more = notebook_file.stream("\n"), notebook_file.stream("more\n")
        for change, difference in (
                # Blank lines at either end do not count, nor what was measured.
                (f"cell['outputs'] = [{blank}, *cell['outputs'], {blank}]", None),
                (f"cell['outputs'].insert(0, {dict(more, name='stderr')})", None),
                (f"cell['outputs'].append({more})", "cell interrupts does not put out what is kept: 0 outputs are kept, and it has 1"),
                ("cell['outputs'] = cell['outputs'][1:]", "is kept as Lesson 05 · TP gather"),
                ("cell['outputs'] = cell['outputs'][:1]", "cell begin does not put out what is kept")):
            done = self.run_with(change=change)
            self.assertEqual((done.returncode, "FAILED" in done.stdout), (1, True) if difference else (0, False), done.stdout + done.stderr)
            self.assertIn(difference or "1 passed", done.stdout)


if __name__ == "__main__":
    unittest.main()
