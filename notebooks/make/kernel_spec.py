"""The spec of the kernel xcpp17 as Jupyter keeps it, and a copy of it that knows where the headers of Muonwalk lie."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "sim/classroom"))
from whole_file import write_whole  # noqa: E402

KERNEL = "xcpp17"


class BrokenSpec(Exception):
    """Why a kernel's spec can't be used, as a sentence."""


def _said_by_jupyter():
    """The folders of data that Jupyter itself searches; None where it does not say."""
    if shutil.which("jupyter") is None:
        return None
    said = subprocess.run(["jupyter", "--paths", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        folders = json.loads(said.stdout)["data"]
        return [Path(folder) for folder in folders]
    except (ValueError, KeyError, TypeError):
        return None


def _beside(program):
    """Where a program's data lies, when it was installed as conda and most others do it."""
    path = shutil.which(program)
    return [] if path is None else [Path(path).parent.parent / "share" / "jupyter"]


def _usual_folders():
    home = Path.home()
    named = [Path(folder) for folder in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if folder]
    return [*named, home / ".local" / "share" / "jupyter", home / "Library" / "Jupyter", *_beside("jupyter-lab"),
            *_beside("jupyter-notebook"), Path("/usr/local/share/jupyter"), Path("/usr/share/jupyter")]


def find_spec(own_folder):
    """The folder of the kernel's spec that Jupyter would take, and where it has none, one that lies beside the kernel or in
    the conda environment; None without any. Copies in `own_folder` do not count."""
    folders = _said_by_jupyter() or _usual_folders()
    if os.environ.get("CONDA_PREFIX"):
        folders.append(Path(os.environ["CONDA_PREFIX"]) / "share" / "jupyter")
    for folder in [*folders, *_beside("xcpp")]:
        spec = folder / "kernels" / KERNEL
        if folder.resolve() != own_folder.resolve() and (spec / "kernel.json").is_file():
            return spec
    return None


def read_spec(folder):
    """What kernel.json says; throws BrokenSpec where that starts no kernel."""
    path = folder / "kernel.json"
    again = "install the kernel again"
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BrokenSpec(f"{path} can't be read: {error.strerror}; {again}") from error
    except ValueError as error:
        raise BrokenSpec(f"{path} is not JSON, so Jupyter can't start this kernel; {again}") from error
    argv = spec.get("argv") if isinstance(spec, dict) else None
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise BrokenSpec(f"{path} has no list of words called argv, so Jupyter can't start this kernel; {again}")
    return spec


def copy_spec(folder, into, include_folders):
    """Copies a spec to `into`/kernels, with these folders of headers after the kernel's own arguments. Under the same name,
    so that notebooks find it as they are: Jupyter takes the first that it finds, and looks in JUPYTER_PATH first."""
    spec = read_spec(folder)
    spec["argv"] = [*spec["argv"], *(f"-I{path}" for path in include_folders)]
    copy = into / "kernels" / KERNEL
    copy.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        if file.is_file() and file.name != "kernel.json":
            shutil.copyfile(file, copy / file.name)
    write_whole(copy / "kernel.json", json.dumps(spec, indent=1) + "\n")
    return copy
