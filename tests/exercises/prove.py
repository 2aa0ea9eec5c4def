#!/usr/bin/env python3
"""Proves an exercise: its stub fails for the reason that it states, its solution passes, and every wrong variant fails as it
should.

    prove.py BUILD EXERCISE [--root ROOT]     EXERCISE as in lesson_05_tp_gather/join_columns

The reason is the first line of a file, "// fails: words"; the verdict has to hold these words. Exit code 0: proved; 1: not.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "sim/classroom"))
from exercises import MOST_HINTS, Broken, exercises  # noqa: E402
from judging import judge  # noqa: E402

LEAST_WRONG = 2
FAILS = re.compile(r"// fails: (.+)\n")


def faults_of(exercise, build, timeout):
    """What is wrong with the exercise, a sentence each."""
    faults = []
    try:
        exercise.title, exercise.signature
        if len(exercise.contract) < 3:
            faults.append("its contract is nothing but a title")
        for line in exercise.contract:
            # Where a line is too long, clang-format goes on with the words of the next one.
            if line.startswith("//     ") and not line.startswith("//      ") and "  " not in line[7:]:
                faults.append(f"its contract has a line without a name and what it is: {line[2:].strip()}")
    except Broken as broken:
        faults.append(str(broken))
    try:
        if not 1 <= len([hint for hint in exercise.hints if hint]) <= MOST_HINTS:
            faults.append(f"it has {len(exercise.hints)} hints, not one to {MOST_HINTS}")
    except Broken as broken:
        faults.append(str(broken))
    wrong = sorted(exercise.folder.glob("wrong_*.cpp"))
    if len(wrong) < LEAST_WRONG:
        faults.append(f"it has {len(wrong)} wrong variants, fewer than {LEAST_WRONG}")
    for name in ("stub.cpp", "solution.cpp"):
        if not (exercise.folder / name).is_file():
            faults.append(f"it has no {name}")
    if faults:
        return faults

    for path in (exercise.folder / "stub.cpp", exercise.folder / "solution.cpp", *wrong):
        stated = FAILS.match(path.read_text(encoding="utf-8"))
        if (stated is None) != (path.name == "solution.cpp"):
            faults.append(f"{path.name} {'begins with' if stated else 'does not begin with'} a line // fails: words")
            continue
        outcome, words = attempt(exercise, path, build, timeout)
        print(f"{exercise.number:<5} {exercise.function:<24} {path.stem:<28} {outcome}")
        if stated is None and outcome != "solved":
            faults.append(f"{path.name} is not solved but: {outcome}\n{words}")
        if stated is not None and outcome == "solved":
            faults.append(f"{path.name} is solved, and should fail: {stated.group(1)}")
        elif stated is not None and stated.group(1) not in " ".join(f"{outcome} {words}".split()):
            faults.append(f"{path.name} does not fail with the words \"{stated.group(1)}\", but: {outcome}\n{words}")
    return faults


def attempt(exercise, path, build, timeout):
    """How it ends, and all that is said of it. The file is what the reader would have, with the contract above the code."""
    with tempfile.TemporaryDirectory() as folder:
        mine = Path(folder) / f"{exercise.function}_{path.stem}.cpp"
        mine.write_text(exercise.code(path.name), encoding="utf-8")
        with open(Path(folder) / "said", "w+", encoding="utf-8") as said:
            try:
                result = judge(exercise, mine, build, timeout, said)
            except Broken as broken:
                return "the judge broke", str(broken)
            said.seek(0)
            return result.outcome, said.read() + result.words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("exercise")
    parser.add_argument("--root", type=Path, default=SOURCE)
    parser.add_argument("--timeout", type=float, default=1)
    options = parser.parse_args()
    found = [each for each in exercises(options.root) if each.name == options.exercise]
    faults = faults_of(found[0], options.build.resolve(), options.timeout) if found else ["there is no such exercise"]
    for fault in faults:
        print(f"FAILED  {options.exercise}: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
