#!/usr/bin/env python3
"""Runs one lesson for its page: the pictures that it draws and its recording.

    make_material.py PROGRAM LESSON_FOLDER OUT_FOLDER

What the program prints has to be the lesson's .expected, byte by byte: nothing enters a page that the tests have not
checked.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path


class MaterialError(Exception):
    """A lesson from which no page should be made: one sentence."""


def first_difference(expected, printed):
    pairs = zip(expected.splitlines() + ["(nothing)"], printed.splitlines() + ["(nothing)"])
    for number, (wanted, got) in enumerate(pairs, start=1):
        if wanted != got:
            return f'line {number} should be "{wanted}", but it is "{got}"'
    return "one of them has more lines"


def make_material(program, lesson_folder, out):
    lesson = Path(lesson_folder).name
    out = Path(out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [program, "--svg", f"{out}/", "--record", str(out / "recording.json")]
    run = subprocess.run(command, capture_output=True, timeout=300, env={**os.environ, "NO_COLOR": "1"})
    if run.returncode != 0:
        raise MaterialError(f"{lesson} ended with exit code {run.returncode} instead of 0, so no page is made of it; it "
                            f"said: {run.stderr.decode(errors='replace').strip()}")
    expected_file = Path(lesson_folder) / f"{lesson}.expected"
    if not expected_file.exists():
        raise MaterialError(f"{lesson} has no {expected_file.name}, so no page is made of it; BLESS=1 ctest -R "
                            f"{lesson}.expected writes one")
    expected, printed = expected_file.read_text(encoding="utf-8"), run.stdout.decode(errors="replace")
    if printed != expected:
        raise MaterialError(f"{lesson} prints something other than its {expected_file.name}, so no page is made of it: "
                            f"{first_difference(expected, printed)}")
    if not list(out.glob("step_*.svg")):
        raise MaterialError(f"{lesson} --svg drew no picture of a step, so no page is made of it")


if __name__ == "__main__":
    try:
        make_material(*sys.argv[1:])
    except MaterialError as error:
        print(f"make_material.py: {error}", file=sys.stderr)
        sys.exit(1)
