#!/usr/bin/env python3
"""The exercises: ./walk try calls this.

    sim/classroom/try_exercise.py                      lists all of them, with what is solved
    sim/classroom/try_exercise.py 05 [--judge]         puts try/lesson_05.cpp in place; with --judge, builds and judges it
    sim/classroom/try_exercise.py 05 --file FILE       judges another file, and keeps nothing; --json adds a line for programs
    sim/classroom/try_exercise.py 05 --hint            one more hint, up to three
    sim/classroom/try_exercise.py 05 --solution        prints the solution
    sim/classroom/try_exercise.py 05 --reset           starts again; what was there is kept under another name

Exit code 0: done, or solved. 1: judged, and not solved. 2: what was asked for cannot be. 3: something of ours broke. 10: the
file is in place and has to be judged, which needs the program muonwalk-try: build it and come back with --judge.
"""

import argparse
import json
import os
import signal
import sys
import textwrap
from pathlib import Path

from exercises import ROOT, Broken, Refused, exercises, find
from judging import judge
from readers_folder import ReadersFolder, require_file

TO_BE_JUDGED = 10
COLUMNS = 100


def paragraph(text, indent=2):
    return textwrap.fill(text, COLUMNS, initial_indent=" " * indent, subsequent_indent=" " * indent, break_long_words=False,
                         break_on_hyphens=False)


def show_list(all_exercises, folder):
    width = max(len(exercise.title) for exercise in all_exercises)
    for exercise in all_exercises:
        print(f"{exercise.number:<6}{exercise.title:<{width}}   {folder.standing(exercise)}".rstrip())
    solved = sum(folder.standing(exercise).endswith("✔") for exercise in all_exercises)
    print(f"\n{solved} of {len(all_exercises)} solved. ./walk try {next_one(all_exercises, folder)} puts a file of your own in "
          "place and judges it.")


def next_one(all_exercises, folder, after=None):
    """The number of the first exercise that is not solved, of those behind `after` first."""
    begin = all_exercises.index(after) + 1 if after else 0
    for exercise in all_exercises[begin:] + all_exercises[:begin]:
        if not folder.standing(exercise).endswith("✔"):
            return exercise.number
    return all_exercises[0].number


def show_hint(exercise, folder):
    hints = exercise.hints
    shown = folder.of(exercise).get("hints", 0)
    shown = min(shown if isinstance(shown, int) else 0, len(hints))
    number = min(shown + 1, len(hints))
    print(f"Hint {number} of {len(hints)} for exercise {exercise.number}, {exercise.title}:\n")
    print(paragraph(hints[number - 1]))
    if number < len(hints):
        print(f"\nOne more: ./walk try {exercise.number} --hint")
    else:
        print(f"\nThat was the last one. ./walk try {exercise.number} --solution shows the solution.")
    sys.stdout.flush()
    folder.note(exercise, hints=number)  # now it has been shown


def reset(exercise, folder):
    aside = folder.put_aside(exercise)
    path = folder.shown(folder.path(exercise))
    folder.put_in_place(exercise)
    folder.note(exercise, hints=0, solved=None)
    if aside is not None:
        print(f"What you had is now {folder.shown(aside)}.")
    print(f"{path} is as it was at the beginning.")


def place(exercise, folder):
    """Puts the file in place, and says what is to be done with it."""
    if not folder.put_in_place(exercise):
        return
    path = folder.shown(folder.path(exercise))
    print(f"{path} is yours now. It says what is asked for, and holds a stub of\n\n  {exercise.signature}\n\n"
          f"Write it in your editor, and then: ./walk try {exercise.number}\n"
          "As it stands, this is what the judge says of it:\n")


def judge_and_say(exercise, folder, all_exercises, build, timeout):
    path = folder.path(exercise)
    print(f"Try {exercise.number} · {exercise.title}", flush=True)
    result = judge(exercise, path, build, timeout)
    if result.words:
        print(result.words)
    if result.solved:
        folder.note(exercise, solved=folder.digest(exercise))
        solved = sum(folder.standing(each).endswith("✔") for each in all_exercises)
        left = next_one(all_exercises, folder, exercise)
        print(f"Solved. That is {solved} of {len(all_exercises)}"
              + (f"; next: ./walk try {left}" if solved < len(all_exercises) else ": all of them."))
        return 0
    print(f"Not solved yet: {result.outcome}. A hint: ./walk try {exercise.number} --hint")
    return 1


def judge_file(exercise, path, build, timeout, as_json):
    """Judges a file of somebody else, as who teaches a class does with many: nothing is noted."""
    result = judge(exercise, path, build, timeout, output=sys.stderr if as_json else None)
    if as_json:
        print(json.dumps({"exercise": exercise.number, "file": str(path), "solved": result.solved, "outcome": result.outcome}))
    else:
        print(f"{result.words}\n" if result.words else "", end="")
        print("Solved." if result.solved else f"Not solved: {result.outcome}.")
    return 0 if result.solved else 1


def read_words(words):
    parser = argparse.ArgumentParser(prog="./walk try", add_help=False)
    parser.add_argument("exercise", nargs="?")
    for option in ("--hint", "--solution", "--reset", "--judge", "--help"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / "try")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--timeout", type=float)

    def refuse(message):
        raise Refused(f"{message}; try ./walk try, or ./walk try 05 with --hint, --solution or --reset after it")

    parser.error = refuse
    request = parser.parse_args(words)
    chosen = [option for option in ("hint", "solution", "reset") if getattr(request, option)]
    if len(chosen) > 1:
        raise Refused(f"--{chosen[0]} and --{chosen[1]} can't be asked for together; take one of them")
    if chosen and request.exercise is None:
        raise Refused(f"--{chosen[0]} needs an exercise before it, as in ./walk try 05 --{chosen[0]}")
    if request.file is not None and (chosen or request.exercise is None):
        raise Refused("--file is for an exercise that is judged, as in ./walk try 05 --file FILE")
    if request.json and request.file is None:
        raise Refused("--json says how a file was judged; add --file FILE")
    return request


def work(words):
    request = read_words(words)
    if request.help:
        print("./walk try lists the exercises; ./walk try 05 puts try/lesson_05.cpp in place and judges it;\n"
              "--hint gives a hint, one more each time, --solution shows the solution, --reset starts again;\n"
              "--file FILE judges another file and keeps nothing, and --json adds a line for programs.")
        return 0
    folder = ReadersFolder(request.folder)
    all_exercises = exercises(request.root)
    if request.exercise is None:
        show_list(all_exercises, folder)
        return 0
    exercise = find(all_exercises, request.exercise)
    if request.file is not None:
        require_file(request.file, str(request.file))
        if not request.judge:
            return TO_BE_JUDGED
        return judge_file(exercise, request.file.resolve(), request.build, request.timeout, request.json)
    if request.hint:
        show_hint(exercise, folder)
    elif request.solution:
        print(exercise.code("solution.cpp"), end="")
    elif request.reset:
        reset(exercise, folder)
    elif request.judge:
        return judge_and_say(exercise, folder, all_exercises, request.build, request.timeout)
    else:
        place(exercise, folder)
        return TO_BE_JUDGED
    return 0


def main():
    sys.stderr = sys.stderr or open(os.devnull, "w")
    if sys.stdout is None:
        print("walk: standard output is closed, so nothing could be said; leave it open", file=sys.stderr)
        sys.exit(3)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # marks and file names are printed whatever the locale is
    try:
        code = work(sys.argv[1:])
        sys.stdout.flush()
    except Refused as refused:
        print(f"walk: {refused}", file=sys.stderr)
        code = 2
    except Broken as broken:
        print(f"walk: {broken}", file=sys.stderr)
        code = 3
    except KeyboardInterrupt:
        print("walk: interrupted; your files are as they were, and nothing new counts as solved", file=sys.stderr)
        code = 128 + signal.SIGINT
    except BrokenPipeError:
        code = 3
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:  # what could not be written would be tried once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"walk: {error.filename or 'standard output'} can't be read or written: {error.strerror}", file=sys.stderr)
        code = 3
    sys.exit(code)


if __name__ == "__main__":
    main()
