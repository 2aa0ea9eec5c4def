#!/usr/bin/env python3
"""Executes notebooks through Jupyter's nbconvert and the kernel xcpp17 (xeus-cling or xeus-cpp), where they are installed.

    notebooks/make/run_in_jupyter.py [--library libmuonwalk.so] [--limit SECONDS] NOTEBOOK...

Exit code 0: every cell of every notebook ran, and put out what is kept. 1: a cell did not. 2: nothing can be run as asked. 77:
there is no Jupyter, or it has no such kernel; a sentence says so, and the notebooks count as skipped.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import notebook_file
from run_notebook import SHOWN, CellFailed, compare, environment_for, outputs_of

KERNEL = "xcpp17"
HOW = "notebooks/README.md says how to get one"


def what_is_missing():
    """Why notebooks can't be run here, as a sentence; empty where they can."""
    if shutil.which("jupyter") is None:
        return f"there is no Jupyter here; {HOW}"
    listed = subprocess.run(["jupyter", "kernelspec", "list", "--json"], capture_output=True, text=True, check=False)
    try:
        kernels = json.loads(listed.stdout)["kernelspecs"]
    except (ValueError, KeyError):
        return f"jupyter kernelspec list does not say which kernels there are; {HOW}"
    if KERNEL not in kernels:
        return f"Jupyter has no kernel {KERNEL} here, only: {', '.join(sorted(kernels)) or 'none'}; {HOW}"
    nbconvert = subprocess.run(["jupyter", "nbconvert", "--version"], capture_output=True, check=False)
    return f"Jupyter has no nbconvert here; {HOW}" if nbconvert.returncode != 0 else ""


def put_out(cell):
    """What a cell has put out, as run_notebook.py reads it from clang-repl: the same blank lines count, and what stands on standard
    error, as measured lines do, does not."""
    printed = ""
    for output in cell["outputs"]:
        kind, name, parts = notebook_file.joined(output)
        if kind == "stream":
            printed += parts if name == "stdout" else ""
        else:
            printed += SHOWN + json.dumps(parts) + "\n"
    return outputs_of(printed.strip("\n"))


def run(path, limit, environment):
    """True when every cell ran and put out what is kept; what nbconvert said when one did not is printed."""
    with tempfile.TemporaryDirectory(prefix="muonwalk_notebook_") as folder:
        done = subprocess.run(
            ["jupyter", "nbconvert", "--to", "notebook", "--execute", f"--ExecutePreprocessor.timeout={limit:g}",
             f"--ExecutePreprocessor.kernel_name={KERNEL}", "--output-dir", folder, str(path)],
            cwd=path.parent, env=environment, capture_output=True, text=True, check=False)
        # An interpreter that can't compile a cell says so on its standard error, and not always to Jupyter.
        written = Path(folder) / path.name
        cells = notebook_file.code_cells(json.loads(written.read_text(encoding="utf-8"))) if written.is_file() else []
    if done.returncode != 0 or not cells or not all(
            cell.get("execution_count") is not None and not any(out["output_type"] == "error" for out in cell["outputs"])
            for cell in cells):
        print(done.stdout + done.stderr)
        return False
    try:
        compare(path, [put_out(cell) for cell in cells])
    except CellFailed as failure:
        print(failure)
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=f"Executes notebooks through Jupyter's nbconvert and the kernel {KERNEL}.")
    parser.add_argument("--library", type=Path, help="Muonwalk's shared library (default: the one in build/lib)")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a cell may take (default: %(default)g)")
    parser.add_argument("notebooks", nargs="+", type=Path)
    options = parser.parse_args()
    for path in options.notebooks:
        if not path.is_file():
            print(f"run_in_jupyter: {path} is not a notebook; notebooks/make/make_notebooks.py makes those of the lessons", file=sys.stderr)
            sys.exit(2)
    missing = what_is_missing()
    if missing:
        print(f"skipped: {missing}")
        print(f"0 passed, 0 failed, {len(options.notebooks)} skipped")
        sys.exit(77)

    library = options.library.resolve() if options.library else None
    failed = 0
    for path in options.notebooks:
        ran = run(path.resolve(), options.limit, environment_for(library))
        failed += not ran
        print(f"{path.stem}: {'ran from top to bottom' if ran else 'FAILED'}")
    print(f"{len(options.notebooks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
