#!/usr/bin/env python3
"""Every exercise as cells of a notebook: the stub is judged and fails as it states, the solution is judged and passes.

    exercises_in_cells.py LIBRARY

The judge's threads and the judge's processes compare the same things, so each exercise is judged once each way here, and with
all of its wrong variants in tests/exercises.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "notebooks/make"), str(ROOT / "sim/classroom")]
from make_notebooks import attempt  # noqa: E402
from run_notebook import CellFailed, Interpreter, environment_for  # noqa: E402
from exercises import exercises  # noqa: E402

COMMAND, LIMIT = "clang-repl-19", 120

if shutil.which(COMMAND) is None:
    print(f"skipped: there is no {COMMAND} here; install Debian's clang-tools-19")
    sys.exit(77)

faults, judged = [], 0
with tempfile.TemporaryDirectory() as folder:
    interpreter = Interpreter(COMMAND, folder, environment_for(sys.argv[1]), [ROOT / "notebooks"])
    try:
        for before in ('#include "setup.hpp"', "using namespace muonwalk;"):
            interpreter.run(before, LIMIT)
        for exercise in exercises(ROOT):
            stated = re.match(r"// fails: (.+)", exercise.read("stub.cpp")).group(1)
            for name, wanted in (("stub.cpp", stated), ("solution.cpp", "Solved.")):
                said = ""
                for cell in attempt(exercise, name):
                    said += interpreter.run(cell, LIMIT)[0] + "\n"
                judged += 1
                solved = "\nSolved." in said
                if wanted not in " ".join(said.split()) or solved != (name == "solution.cpp"):
                    faults.append(f"{exercise.name}/{name} should say \"{wanted}\", but says:\n{said}")
        interpreter.close(LIMIT)
    except CellFailed as failure:
        faults.append(f"a cell failed: {failure}\n{failure.output}\n{failure.errors}")
    finally:
        interpreter.kill()
for fault in faults:
    print(f"FAILED  {fault}")
print(f"{judged} attempts judged, {len(faults)} faults")
sys.exit(1 if faults or judged == 0 else 0)
