#!/usr/bin/env python3
"""Opens the notebooks in JupyterLab, or in Jupyter Notebook where there is no JupyterLab. ./walk jupyter calls it.

    notebooks/make/open_notebooks.py --check [any of these]               only says what is missing for it
    notebooks/make/open_notebooks.py [--fresh] --prepare                  does all but start Jupyter
    notebooks/make/open_notebooks.py [--fresh] [an option of Jupyter's]   opens them; --fresh makes the copies anew

All that it writes lies in build/jupyter: copies of the notebooks, which the reader works in, and a copy of the spec of the
kernel xcpp17 that has the project's headers on its include path. Exit code 2: there is no Jupyter or no such kernel. 3:
something broke on the way. Otherwise it becomes Jupyter.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "sim/classroom"))
from kernel_spec import KERNEL, BrokenSpec, copy_spec, find_spec  # noqa: E402
from whole_file import write_whole  # noqa: E402
from working_copies import WorkingCopies  # noqa: E402
NOTEBOOKS = ROOT / "notebooks"
OWN = ROOT / "build" / "jupyter"
FRONT_ENDS = ("jupyter-lab", "jupyter-notebook")
ENVIRONMENT = shlex.quote(str(ROOT / "binder" / "environment.yml"))
HOW = f"conda env create -f {ENVIRONMENT} installs both, and conda activate muonwalk puts them on PATH"


def say(sentence):
    print(sentence, file=sys.stderr, flush=True)


def stop(code, sentence):
    say("walk: " + " ".join(sentence.split()))
    sys.exit(code)


def front_end():
    """The path of what shows notebooks."""
    for name in FRONT_ENDS:
        if path := shutil.which(name):
            return path
    stop(2, f"there is no JupyterLab and no Jupyter Notebook on PATH to open the notebooks with, which also need the kernel "
            f"{KERNEL}; {HOW}")


def installed_spec():
    spec = find_spec(OWN)
    if spec is None:
        stop(2, f"Jupyter has no kernel {KERNEL} here, which the notebooks need to run C++; {HOW}")
    return spec


def fmt_headers():
    """The folder fmt/ that the library was built with."""
    listed = OWN / "fmt_headers.txt"
    try:
        folders = listed.read_text(encoding="utf-8").strip().split(";")
    except OSError as error:
        stop(3, f"{listed} can't be read: {error.strerror}; CMake writes it: remove build/CMakeCache.txt and try again")
    for folder in folders:
        if (Path(folder) / "fmt").is_dir():
            return Path(folder) / "fmt"
    stop(3, f"there are no headers of fmt in {' or '.join(folders)}, where CMake found them; remove build/CMakeCache.txt and try "
            "again")


def link_to(target, link):
    """A folder that holds fmt's headers alone: beside them may lie all of the system's, and a kernel has some of its own."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        if Path(os.readlink(link)) == target:
            return
        link.unlink()
    link.symlink_to(target, target_is_directory=True)


def prepare_kernel(spec, into):
    """A folder of data for Jupyter, with the kernel that knows the headers."""
    include = into / "include"
    link_to(fmt_headers(), include / "fmt")
    # setup.hpp stays where it is, beside the notebooks of the project: it knows from there where the libraries lie.
    copy_spec(spec, into, [ROOT, NOTEBOOKS, include])


def sign(copies):
    """Jupyter hides what is kept as HTML in files that it doesn't trust."""
    trust = shutil.which("jupyter-trust")
    if trust and copies:
        subprocess.run([trust, *copies], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def prepare_copies(fresh):
    copies = WorkingCopies(OWN)
    aside = copies.put_aside() if fresh else None
    if aside is not None:
        say(f"What you had is now in {aside}.")
    behind = copies.put_in_place(sorted(NOTEBOOKS.glob("*.ipynb")))
    write_whole(copies.folder / "README.md", (NOTEBOOKS / "README.md").read_text(encoding="utf-8"))
    if behind:
        say(f"Left as you changed them, though their lessons have changed too: {', '.join(behind)} "
            "(./walk jupyter --fresh makes new copies and keeps yours).")
    sign(copies.made)
    say(f"The notebooks are copies, in {copies.folder}: what you change there stays.")
    return copies.folder


def main():
    words = sys.argv[1:]
    only_prepare = "--prepare" in words
    program = None if only_prepare else front_end()
    spec = installed_spec()
    if "--check" in words:
        return
    try:
        prepare_kernel(spec, OWN)
        folder = prepare_copies("--fresh" in words)
    except BrokenSpec as broken:
        stop(3, str(broken))
    except OSError as error:
        stop(3, f"{error.filename2 or error.filename or OWN} can't be written: {error.strerror}; make build/jupyter a folder that "
                "you can write to")
    if only_prepare:
        return
    before = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = f"{OWN}{os.pathsep}{before}" if before else str(OWN)
    os.chdir(folder)
    try:
        os.execv(program, [program, *(word for word in words if word != "--fresh")])
    except OSError as error:
        stop(3, f"{program} can't be started: {error.strerror}; install Jupyter again")


if __name__ == "__main__":
    main()
