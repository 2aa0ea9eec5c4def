"""What real_kernel.sh runs, with a Python that has jupyter_client: it says what is checked and which options there are."""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from kernel_session import KernelFailed, KernelSession, texts_of  # noqa: E402
from kernel_spec import KERNEL, find_spec  # noqa: E402
from open_notebooks import OWN, prepare_kernel  # noqa: E402
from picture_faults import fault_of_picture  # noqa: E402
from run_notebook import code_cells  # noqa: E402

CHECKS = ("cells", "pictures", "interrupt", "restart")
_ASKS_FOR_A_PICTURE = re.compile(r"\bnb::show_(?:last_step|svg)\(")


class Kernels:
    """Starts kernels for notebooks, all with the same folder, environment and limit for a cell."""

    def __init__(self, environment, limit):
        self.environment, self.limit = environment, limit

    def __call__(self, folder):
        return KernelSession(folder, self.environment)


def run_all(session, path, limit):
    """Executes a notebook; returns what each code cell put out. Throws KernelFailed."""
    executed = []
    for name, source in code_cells(path):
        try:
            executed.append(session.run(source, limit))
        except KernelFailed as failure:
            raise KernelFailed(f"cell {name}: {failure}", failure.outputs) from None
    return executed


def check_pictures(path, executed):
    """The number of pictures; throws KernelFailed for a cell that asks for more than it shows, or shows one with a fault."""
    count = 0
    for (name, source), outputs in zip(code_cells(path), executed):
        shown = [output["data"] for output in outputs if "image/svg+xml" in output.get("data", {})]
        asked = len(_ASKS_FOR_A_PICTURE.findall(source))
        if len(shown) < asked:
            raise KernelFailed(f"cell {name}: it asks for pictures: {asked}, and shows: {len(shown)}", outputs)
        for data in shown:
            if fault := fault_of_picture(data):
                raise KernelFailed(f"cell {name}: a picture: {fault}")
        count += len(shown)
    return count


def write_executed(path, executed, folder):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(cells, executed), start=1):
        cell["execution_count"], cell["outputs"] = number, outputs
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    (folder / path.name).write_text(text, encoding="utf-8")


# --- the checks -------------------------------------------------------------------------------------------------------


def check_notebook(kernels, path, only, into):
    """Cells, and what they show."""
    session = kernels(path.parent)
    try:
        executed = run_all(session, path, kernels.limit)
    finally:
        session.close()
    if into is not None:
        write_executed(path, executed, into)
    said = f"cells: {len(executed)}"
    return f"{said}, pictures: {check_pictures(path, executed)}" if "pictures" in only else said


def check_interrupt(kernels, folder):
    """After an interrupt, idle or busy, the kernel is there and knows what it knew."""
    still_known = "if (real_kernel_probe != 41) throw 1;"
    session = kernels(folder)
    try:
        session.run("#include <unistd.h>", kernels.limit)
        session.run("int real_kernel_probe = 41;", kernels.limit)
        for when in ("idle", "busy"):
            try:
                if when == "idle":
                    session.interrupt_idle()
                else:
                    session.run("for (int i = 0; i < 300; ++i) usleep(10000);", kernels.limit, interrupted=True)
                session.run(still_known, kernels.limit)
            except KernelFailed as failure:
                raise KernelFailed(f"after an interrupt while it is {when}: {failure}", failure.outputs) from None
    finally:
        session.close()
    return "the kernel survives it, idle and busy"


def check_restart(kernels, path):
    """Restart Kernel and Run All: nothing is left of the session before."""
    session = kernels(path.parent)
    try:
        for when in ("before", "after"):
            try:
                run_all(session, path, kernels.limit)
                session.run("int real_kernel_probe = 1;", kernels.limit)  # a second one would be an error
                if when == "before":
                    session.restart()
            except KernelFailed as failure:
                raise KernelFailed(f"{when} the restart: {failure}", failure.outputs) from None
    finally:
        session.close()
    return f"{path.stem} runs again from top to bottom"


# --- the run ----------------------------------------------------------------------------------------------------------


def told(name, check, *arguments):
    """Runs one check and prints what came of it; True when it holds."""
    try:
        print(f"{name}: {check(*arguments)}", flush=True)
        return True
    except KernelFailed as failure:
        for text in texts_of(failure.outputs):
            print(text)
        print(f"{name}: FAILED: {failure}", flush=True)
        return False


def run_checks(options, kernels):
    results = []
    if "cells" in options.only or "pictures" in options.only:
        results += [told(path.stem, check_notebook, kernels, path, options.only, options.into) for path in options.notebooks]
    if "interrupt" in options.only:
        results.append(told("interrupt", check_interrupt, kernels, options.notebooks[0].parent))
    if "restart" in options.only:
        results.append(told("restart", check_restart, kernels, options.notebooks[0]))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return all(results)


def parsed():
    parser = argparse.ArgumentParser(prog="real_kernel.sh", description=f"Checks the notebooks in a real kernel {KERNEL}.")
    parser.add_argument("--only", default=",".join(CHECKS), help="the checks to make (default: %(default)s)")
    parser.add_argument("--into", type=Path, help="a folder for copies of the notebooks with what their cells put out")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a cell may take (default: %(default)g)")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "lib" / "libmuonwalk.so", help="Muonwalk's library")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    options.only = options.only.split(",")
    options.notebooks = [path.resolve() for path in options.notebooks] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    for check in options.only:
        if check not in CHECKS:
            parser.error(f"--only {check} is not a check; there are: {', '.join(CHECKS)}")
    for path in options.notebooks:
        if not path.is_file():
            parser.error(f"{path} is not a notebook; tools/make_notebooks.py makes those of the lessons")
    if not options.library.is_file():
        parser.error(f"--library {options.library} is not a file; build it with ./walk notebooks --library")
    return options


def main():
    options = parsed()
    spec = find_spec(OWN)
    if spec is None:
        print(f"skipped: Jupyter has no kernel {KERNEL} here; notebooks/README.md says how to get one")
        print(f"0 passed, 0 failed, {len(options.notebooks)} skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="muonwalk_kernel_") as folder:
        # The same copy of the spec that ./walk jupyter makes; from here on Jupyter finds it first.
        prepare_kernel(spec, Path(folder))
        os.environ["JUPYTER_PATH"] = folder
        environment = {**os.environ, "MUONWALK_LIBRARY": str(options.library.resolve())}
        held = run_checks(options, Kernels(environment, options.limit))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
