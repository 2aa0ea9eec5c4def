#!/usr/bin/env python3
"""Executes all notebooks in a kernel called xcpp17, which Jupyter finds (also through JUPYTER_PATH), and checks what a reader does
with it: cells, pictures, interrupt and restart. For whoever has such a kernel; needs ./walk notebooks --library.

    python3 tests/notebooks/real_kernel.py [--only CHECKS] [--into FOLDER] [--limit SECONDS] [--library FILE] [NOTEBOOK...]

Exit code 0: all checks hold. 1: one does not. 2: nothing can be checked as asked. 77: there is no such kernel here, or this Python has
no module jupyter_client, which comes with Jupyter and with Debian's python3-jupyter-client; a sentence says which.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "notebooks/make"), str(ROOT / "sim/classroom")]
try:
    import jupyter_client  # noqa: F401
except ImportError:
    print("skipped: this Python has no module jupyter_client, which comes with Jupyter and with Debian's python3-jupyter-client")
    sys.exit(77)
from kernel_session import KernelFailed, KernelSession, texts_of  # noqa: E402
import notebook_file  # noqa: E402
from kernel_spec import KERNEL, find_spec  # noqa: E402
from open_notebooks import OWN, prepare_kernel  # noqa: E402
from picture_faults import fault_of_picture  # noqa: E402
from run_notebook import CellFailed, cells_again, code_cells, require_pictures  # noqa: E402
from whole_file import write_whole  # noqa: E402

CHECKS = ("cells", "pictures", "outputs", "again", "interrupt", "restart")
OF_NOTEBOOKS = CHECKS[:4]


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
        try:
            require_pictures(name, source, outputs)
        except CellFailed as failure:
            raise KernelFailed(str(failure), outputs) from None
        for data in shown:
            if fault := fault_of_picture(data):
                raise KernelFailed(f"cell {name}: a picture: {fault}")
        count += len(shown)
    return count


def in_one_piece(outputs):
    """What a cell put out as notebooks keep it: what was printed between two pictures is one text, and what was measured, which
    comes on standard error here, is left out."""
    whole = []
    for output in outputs:
        if output["output_type"] == "stream":
            if output["name"] == "stderr":
                continue
            if whole and whole[-1]["output_type"] == "stream":
                output = notebook_file.stream("".join(whole.pop()["text"]) + output["text"])
        whole.append(output)
    return whole


def check_outputs(path, executed):
    """The number of cells; throws KernelFailed for the first one that puts out something other than what is kept."""
    cells = notebook_file.code_cells(notebook_file.read(path))
    for cell, outputs in zip(cells, executed):
        if difference := notebook_file.first_difference(cell["outputs"], in_one_piece(outputs)):
            raise KernelFailed(f"cell {cell['id']} does not put out what is kept: {difference}", outputs)
    return len(cells)


def write_executed(path, executed, folder):
    notebook = notebook_file.with_outputs(notebook_file.read(path), executed)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / path.name, notebook_file.as_jupyter_writes(notebook))


# --- the checks -------------------------------------------------------------------------------------------------------


def check_notebook(kernels, path, only, into):
    """Cells, what they show and put out, and the lesson once more with other options."""
    session = kernels(path.parent)
    said = []
    try:
        executed = run_all(session, path, kernels.limit)
        said.append(f"cells: {len(executed)}")
        if into is not None:
            write_executed(path, executed, into)
        if "pictures" in only:
            said.append(f"pictures: {check_pictures(path, executed)}")
        if "outputs" in only:
            said.append(f"outputs as kept: {check_outputs(path, executed)}")
        if "again" in only:
            again = list(cells_again(notebook_file.read(path)))
            for name, source in again:
                try:
                    session.run(source, kernels.limit)
                except KernelFailed as failure:
                    raise KernelFailed(f"cell {name} of the second run: {failure}", failure.outputs) from None
            said.append(f"cells run again: {len(again)}")
    finally:
        session.close()
    return ", ".join(said)


# A lesson of two ranks that wait for each other for ten minutes, unless somebody interrupts them.
PROBE = (
    '#include "setup.hpp"',
    "using namespace muonwalk;\nusing namespace muonwalk::sim;",
    "struct ProbeLocal { Flat all; };\n"
    "void probe_wait(Rank& rank, ProbeLocal&) {\n  float never = 0;\n  rank.dp().recv(&never, 1, 1 - rank.rank());\n}\n"
    "void probe_talk(Rank& rank, ProbeLocal& local) { local.all = rank.dp().all_gather(Flat{1.0f}); }",
    'LessonInfo probe_info;\nprobe_info.name = "lesson_00_probe";',
    "std::optional<Lesson<ProbeLocal>> probe;",
    "int real_kernel_probe = 41;",
)
PROBE_BEGINS = 'probe.emplace(probe_info, nb::options(probe_info, Grid().dp(2), "--timeout 600 --verbose 0"));'
PROBE_WAITS = 'probe->step("wait", probe_wait);'
PROBE_TALKS = 'probe->step("talk", probe_talk);\nNB_CHECK(probe->local(0).all.size() == 2);'


def check_interrupt(kernels, folder):
    """After an interrupt, idle or busy, the kernel is there, knows what it knew, and the next cell works."""
    session = kernels(folder)
    try:
        for cell in PROBE:
            session.run(cell, kernels.limit)
        for when in ("idle", "busy", "idle", "busy"):
            try:
                session.run(PROBE_BEGINS, kernels.limit)
                if when == "idle":
                    session.interrupt_idle()
                else:
                    outputs = session.run(PROBE_WAITS, kernels.limit, interrupted=True)
                    if not any("interrupted" in text for text in texts_of(outputs)):
                        raise KernelFailed("the cell does not say that it was interrupted", outputs)
                    session.run(PROBE_BEGINS, kernels.limit)
                session.run("if (real_kernel_probe != 41) throw 1;", kernels.limit)
                session.run(PROBE_TALKS, kernels.limit)
            except KernelFailed as failure:
                raise KernelFailed(f"after an interrupt while it is {when}: {failure}", failure.outputs) from None
    finally:
        session.close()
    return "the kernel survives it, idle and busy, and goes on"


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
    if set(options.only) & set(OF_NOTEBOOKS):
        results += [told(path.stem, check_notebook, kernels, path, options.only, options.into) for path in options.notebooks]
    if "interrupt" in options.only:
        results.append(told("interrupt", check_interrupt, kernels, options.notebooks[0].parent))
    if "restart" in options.only:
        results.append(told("restart", check_restart, kernels, options.notebooks[0]))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return all(results)


def parsed():
    parser = argparse.ArgumentParser(prog="real_kernel.py", description=f"Checks the notebooks in a real kernel {KERNEL}.")
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
            parser.error(f"{path} is not a notebook; notebooks/make/make_notebooks.py makes those of the lessons")
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
        environment = {**os.environ, "MUONWALK_LIBRARY": str(options.library.resolve()), "MUONWALK_ASIDES_APART": "1"}
        held = run_checks(options, Kernels(environment, options.limit))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
