"""A stand-in project with notebooks, and stand-ins for Jupyter, its kernel and whatever installs or builds."""


import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("walk", "cmake/packages.txt", "notebooks/make/open_notebooks.py", "notebooks/make/kernel_spec.py",
          "notebooks/make/working_copies.py", "sim/classroom/whole_file.py")
LIBRARIES = "notebook_libraries"

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
echo "cmake $*" >>'{calls}'
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


class StandInProject(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name).resolve()
        self.project = self.scratch / "a walk in the park"
        self.machine, self.data = self.scratch / "machine", self.scratch / "data of jupyter"
        self.calls, self.record = self.scratch / "calls", self.scratch / "started.json"
        self.own = self.project / "build" / "jupyter"
        for name in COPIED:
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.project / name)
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
        self.program("cmake", STAND_IN_CMAKE.format(headers=f"'{self.headers}'", calls=self.calls))
        self.program("ninja", f"#!/bin/bash\necho \"ninja $*\" >>'{self.calls}'\n")

    def prepare_jupyter(self):
        self.program("jupyter-lab", STAND_IN_FRONT_END.format(python=sys.executable, record=str(self.record)))
        self.program("jupyter", STAND_IN_JUPYTER.format(python=sys.executable, answer=json.dumps({"data": [str(self.data)]})))
        folder = self.data / "kernels" / "xcpp17"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.json").write_text(json.dumps(SPEC), encoding="utf-8")
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
        self.assertRegex(last, f"^walk: {words}$")  # the whole sentence
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse(self.record.exists(), "Jupyter was started")
        return done.stderr
