#!/usr/bin/env python3
"""Runs one lesson for its page, and keeps its recording.

    make_material.py PROGRAM LESSON_FOLDER OUT_FOLDER [ARGUMENT...]

With arguments, the recording is of a run with these.
What the program prints has to be the lesson's .expected, byte by byte: nothing enters a page that the tests have not
checked.
"""

import json
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


def _run(lesson, program, *arguments):
    """What the program prints; it has to end well."""
    run = subprocess.run([program, *arguments], capture_output=True, timeout=300, env={**os.environ, "NO_COLOR": "1"})
    if run.returncode != 0:
        raise MaterialError(f"{lesson} {' '.join(arguments)} ended with exit code {run.returncode} instead of 0, so no page is "
                            f"made of it; it said: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout.decode(errors="replace")


def add_real_sizes(lesson, toy, real):
    """Into the recording of a toy, what the run at real sizes prints, which stands on the page, and what each step sends in it.
    The steps are the same."""
    titles = [[step["title"] for step in recorded["steps"]] for recorded in (toy, real)]
    if titles[0] != titles[1]:
        raise MaterialError(f"{lesson} takes other steps as a toy than at its real sizes, so its page can't show one beside the "
                            f"other: {titles[0]} and {titles[1]}")
    toy["before"], toy["after"] = real["before"], real["after"]
    for step, at_real_size in zip(toy["steps"], real["steps"]):
        moves, step["lines"] = at_real_size["moves"], at_real_size["lines"]
        if moves:
            step["real"] = {"messages": len(moves), "bytes": sum(move["bytes"] for move in moves)}


def make_material(program, lesson_folder, out, *toy):
    """`toy`: arguments with which the lesson is small enough to be shown with all of its values. Its recording is then of that
    run, and says beside it what the run with the expected output sends."""
    lesson = Path(lesson_folder).name
    out = Path(out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    recording, real = out / "recording.json", out / "real_sizes.json"
    printed = _run(lesson, program, "--record", str(real if toy else recording))
    expected_file = Path(lesson_folder) / f"{lesson}.expected"
    if not expected_file.exists():
        raise MaterialError(f"{lesson} has no {expected_file.name}, so no page is made of it; BLESS=1 ctest -R "
                            f"{lesson}.expected writes one")
    expected = expected_file.read_text(encoding="utf-8")
    if printed != expected:
        raise MaterialError(f"{lesson} prints something other than its {expected_file.name}, so no page is made of it: "
                            f"{first_difference(expected, printed)}")
    if toy:
        _run(lesson, program, *toy, "--record", str(recording))
        recorded = json.loads(recording.read_text(encoding="utf-8"))
        add_real_sizes(lesson, recorded, json.loads(real.read_text(encoding="utf-8")))
        recording.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        real.unlink()


if __name__ == "__main__":
    try:
        make_material(*sys.argv[1:])
    except MaterialError as error:
        print(f"make_material.py: {error}", file=sys.stderr)
        sys.exit(1)
