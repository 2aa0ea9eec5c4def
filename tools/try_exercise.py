#!/usr/bin/env python3
"""The exercises: ./walk try calls this.

    tools/try_exercise.py                      lists all of them, with what is solved
    tools/try_exercise.py 05 [--judge]         puts try/lesson_05.cpp in place; with --judge, builds and judges it
    tools/try_exercise.py 05 --hint            one more hint, up to three
    tools/try_exercise.py 05 --solution        prints the solution
    tools/try_exercise.py 05 --reset           starts again; what was there is kept under another name

Exit code 0: done, or solved. 1: judged, and not solved. 2: what was asked for cannot be. 3: something of ours broke. 10: the
file is in place and has to be judged, which needs the program muonwalk-try: build it and come back with --judge.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from whole_file import write_whole  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
TO_BE_JUDGED = 10
COLUMNS = 100
MOST_HINTS = 3
MOST_COMPILER_LINES = 40
JUDGE_LIMIT = 300  # seconds: the judge has limits of its own, and this is for code that runs before it begins


class Refused(Exception):
    """What was asked for cannot be: one sentence."""


class Broken(Exception):
    """Something of ours broke: one sentence."""


@dataclass
class Exercise:
    root: Path
    lesson: str    # lesson_05_tp_gather
    function: str  # join_columns
    number: str    # 05, and 05.2 for the second one of a lesson

    @property
    def name(self):
        return f"{self.lesson}/{self.function}"

    @property
    def folder(self):
        return self.root / "lessons" / self.lesson / f"try_{self.function}"

    @property
    def file_name(self):
        return f"lesson_{self.number.replace('.', '_')}.cpp"

    def read(self, name):
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError as error:
            raise Broken(f"{self.name} has no {name}: {error.strerror}") from error

    @property
    def contract(self):
        """The prose of the contract, as lines of `//`."""
        prose = []
        for line in self.read("contract.hpp").split("\n"):
            if not line.startswith("//"):
                break
            prose.append(line)
        return prose

    @property
    def title(self):
        match = re.match(r"// # (.+)$", self.contract[0]) if self.contract else None
        if match is None:
            raise Broken(f"{self.name} has no title: its contract.hpp has to begin with a line // # Title")
        return match.group(1)

    @property
    def type_name(self):
        return "".join(word.capitalize() for word in self.function.split("_"))

    @property
    def signature(self):
        """What the reader writes: "Matrix join_columns(const Flat& gathered, Shape slice, int tp)"."""
        match = re.search(rf"^using {self.type_name} = (.+?)\((.*?)\);", self.read("contract.hpp"), re.MULTILINE | re.DOTALL)
        if match is None:
            raise Broken(f"{self.name}: its contract.hpp has no line `using {self.type_name} = …(…);`")
        return re.sub(r"\s+", " ", f"{match.group(1)} {self.function}({match.group(2)})")

    @property
    def hints(self):
        return [" ".join(hint.split()) for hint in re.split(r"\n\s*\n", self.read("hints.txt").strip())]

    def code(self, name):
        """The reader's file as one of the exercise's own: the contract, and below it the code without its first comment."""
        code = [line for line in self.read(name).split("\n") if not line.startswith("// fails: ")]
        return "\n".join(self.contract + [""] + code)


def exercises(root):
    """All of them, in the order of lessons/CMakeLists.txt."""
    found = []
    text = (root / "lessons" / "CMakeLists.txt").read_text(encoding="utf-8")
    for lesson, function in re.findall(r"^add_exercise\((lesson_\w+) (\w+)\)", text, re.MULTILINE):
        earlier = sum(each.lesson == lesson for each in found)
        number = lesson.split("_")[1] + (f".{earlier + 1}" if earlier else "")
        found.append(Exercise(root, lesson, function, number))
    return found


def find(all_exercises, asked):
    match = re.fullmatch(r"(\d{1,2})(?:\.(\d))?", asked)
    number = None
    if match:
        number = f"{int(match.group(1)):02}" + (f".{match.group(2)}" if match.group(2) not in (None, "1") else "")
    for exercise in all_exercises:
        if exercise.number == number:
            return exercise
    raise Refused(f"there is no exercise {json.dumps(asked, ensure_ascii=False)}; there are: "
                  + " ".join(exercise.number for exercise in all_exercises))


# --- the reader's files, and what is known of them --------------------------------------------------------------------


class Desk:
    """The folder try/: the reader's files, and in .progress.json what was solved and how many hints were shown."""

    def __init__(self, folder):
        self.folder = folder
        self.state_file = folder / ".progress.json"
        try:
            self.state = json.loads(self.state_file.read_text(encoding="utf-8"))
            assert isinstance(self.state, dict)
        except (OSError, ValueError, AssertionError):
            self.state = {}

    def path(self, exercise):
        return self.folder / exercise.file_name

    def shown(self, path):
        """The path as the reader types it."""
        try:
            return str(path.relative_to(Path.cwd()))
        except ValueError:
            return str(path)

    def of(self, exercise):
        known = self.state.get(exercise.number)
        return known if isinstance(known, dict) else {}

    def note(self, exercise, **what):
        self.state[exercise.number] = {**self.of(exercise), **what}
        self.write(self.state_file, json.dumps(self.state, indent=1, sort_keys=True) + "\n")

    def write(self, path, text):
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            raise Broken(f"{self.shown(path)} can't be written: {error.strerror}; make {self.shown(self.folder)} a folder "
                         "that you can write to") from error

    def put_in_place(self, exercise):
        """True when the file was not there."""
        path = self.path(exercise)
        if path.exists():
            return False
        self.write(path, exercise.code("stub.cpp"))
        return True

    def put_aside(self, exercise):
        """Renames what the reader wrote; returns the new path, or None where there was nothing but the stub."""
        path = self.path(exercise)
        if not path.exists():
            return None
        if path.is_file() and path.read_bytes() == exercise.code("stub.cpp").encode():
            return None
        number = 1
        while (aside := path.with_name(f"{path.stem}.{number}.cpp")).exists():
            number += 1
        try:
            os.rename(path, aside)
        except OSError as error:
            raise Broken(f"{self.shown(path)} can't be renamed to {aside.name}: {error.strerror}") from error
        return aside

    def digest(self, exercise):
        try:
            return hashlib.sha256(self.path(exercise).read_bytes()).hexdigest()
        except OSError:
            return None

    def standing(self, exercise):
        """"solved", "solved before, changed since", "begun", or "" where there is no file yet."""
        digest, solved = self.digest(exercise), self.of(exercise).get("solved")
        if digest is None:
            return ""
        if solved:
            return "solved ✔" if solved == digest else "solved before, changed since"
        return "" if self.path(exercise).read_bytes() == exercise.code("stub.cpp").encode() else "begun"


# --- building and judging ---------------------------------------------------------------------------------------------


@dataclass
class Result:
    """How an attempt ended: the outcome in words ("solved", "wrong values", "it does not compile"), and all that there is to
    say of it, where the judge has not printed that by itself."""

    outcome: str
    words: str = ""

    @property
    def solved(self):
        return self.outcome == "solved"


def compiler_words(build, name):
    try:
        words = (build / "exercises" / name).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise Broken(f"the build does not say how exercises are compiled ({error.strerror}); ./walk try builds it") from error
    return [word for word in words if word]


def run_compiler(words, text=None):
    try:
        return subprocess.run(words, input=text, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise Broken(f"the compiler {words[0]} can't be run: {error.strerror}") from error


def said(done):
    """What the compiler said, without how it came to the reader's file."""
    lines = [line for line in done.stderr.split("\n") if not re.match(r"^(In file included from| +from) <stdin>:\d+", line)]
    lines = [line for line in lines if line.strip()]
    if len(lines) > MOST_COMPILER_LINES:
        more = len(lines) - MOST_COMPILER_LINES
        lines = lines[:MOST_COMPILER_LINES] + [f"… and {more} lines more; the first error counts."]
    return "\n".join(lines)


def build_library(exercise, path, build, into):
    """Makes a library of the reader's file. Returns a Result where that can't be, or else what the compiler warned of."""
    compile_words, link_words = compiler_words(build, "compile.txt"), compiler_words(build, "link.txt")
    into.parent.mkdir(parents=True, exist_ok=True)
    try:
        shown = path.relative_to(ROOT)
    except ValueError:
        shown = path
    # The last line takes the function whose type is right, wherever several have its name.
    text = (f'#include "{exercise.folder.relative_to(exercise.root)}/contract.hpp"\n#include "{shown}"\n'
            f'extern "C" {{\nextern muonwalk::{exercise.type_name}* const muonwalk_exercise;\n'
            f"muonwalk::{exercise.type_name}* const muonwalk_exercise = &{exercise.function};\n}}\n")
    compile_words.append(f"-I{exercise.root}")
    object_file = into.with_suffix(".o")
    made = run_compiler([*compile_words, "-x", "c++", "-c", "-", "-o", str(object_file)], text)
    if made.returncode != 0:
        alone = run_compiler([*compile_words, "-fsyntax-only", "-x", "c++", str(shown)])
        if alone.returncode != 0:
            return Result("it does not compile", f"{shown} does not compile; the compiler's own words:\n{said(alone)}")
        return Result("no such function", f"{shown} has no function of this type, which its contract asks for:\n"
                                          f"  {exercise.signature}")
    linked = run_compiler([*compile_words, "-shared", str(object_file), *link_words, "-o", str(into)])
    if linked.returncode != 0:
        return Result("it does not link",
                      f"{shown} uses something that is defined nowhere; the linker's own words:\n{said(linked)}")
    return said(made)


def judge(exercise, path, build, timeout=None, output=None):
    """Builds the file and lets muonwalk-try judge it. That prints to `output` (standard output where it is None)."""
    library = build / "try" / f"{path.stem}.so"
    warnings = build_library(exercise, path, build, library)
    if isinstance(warnings, Result):
        return warnings
    verdict = library.with_suffix(".verdict")
    verdict.unlink(missing_ok=True)
    program = build / "bin" / "muonwalk-try"
    command = [str(program), exercise.name, str(library), str(verdict), *([str(timeout)] if timeout else [])]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, timeout=JUDGE_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return Result("it never ends", f"It did not end within {JUDGE_LIMIT} s, and no rank had started: something outside of "
                                       "every function takes forever.")
    except OSError as error:
        raise Broken(f"{program} can't be run: {error.strerror}; ./walk try builds it") from error
    try:
        outcome = verdict.read_text(encoding="utf-8").strip()
    except OSError:
        outcome = ""
    if outcome == "broken":
        raise Broken(f"the judge of exercise {exercise.number} broke; its own words are above")
    if not outcome:
        if done.returncode < 0:
            return Result("a crash", f"  Signal {-done.returncode} ended the program before a rank had started: something "
                                     "outside of every function does that.")
        return Result("it ends the program", f"  The program ended with code {done.returncode} before it was judged; a "
                                             "function returns, and does not end the program.")
    if outcome != "solved" and warnings:
        return Result(outcome, f"The compiler warns:\n{warnings}")
    return Result(outcome)


# --- what ./walk try does ---------------------------------------------------------------------------------------------


def paragraph(text, indent=2):
    return textwrap.fill(text, COLUMNS, initial_indent=" " * indent, subsequent_indent=" " * indent, break_long_words=False,
                         break_on_hyphens=False)


def show_list(all_exercises, desk):
    width = max(len(exercise.title) for exercise in all_exercises)
    for exercise in all_exercises:
        print(f"{exercise.number:<6}{exercise.title:<{width}}   {desk.standing(exercise)}".rstrip())
    solved = sum(desk.standing(exercise).endswith("✔") for exercise in all_exercises)
    print(f"\n{solved} of {len(all_exercises)} solved. ./walk try {next_one(all_exercises, desk)} puts a file of your own in "
          "place and judges it.")


def next_one(all_exercises, desk, after=None):
    """The number of the first exercise that is not solved, of those behind `after` first."""
    begin = all_exercises.index(after) + 1 if after else 0
    for exercise in all_exercises[begin:] + all_exercises[:begin]:
        if not desk.standing(exercise).endswith("✔"):
            return exercise.number
    return all_exercises[0].number


def show_hint(exercise, desk):
    hints = exercise.hints
    shown = desk.of(exercise).get("hints", 0)
    shown = min(shown if isinstance(shown, int) else 0, len(hints))
    number = min(shown + 1, len(hints))
    desk.note(exercise, hints=number)
    print(f"Hint {number} of {len(hints)} for exercise {exercise.number}, {exercise.title}:\n")
    print(paragraph(hints[number - 1]))
    if number < len(hints):
        print(f"\nOne more: ./walk try {exercise.number} --hint")
    else:
        print(f"\nThat was the last one. ./walk try {exercise.number} --solution shows the solution.")


def reset(exercise, desk):
    aside = desk.put_aside(exercise)
    path = desk.shown(desk.path(exercise))
    desk.put_in_place(exercise)
    desk.note(exercise, hints=0, solved=None)
    if aside is not None:
        print(f"What you had is now {desk.shown(aside)}.")
    print(f"{path} is as it was at the beginning.")


def place(exercise, desk):
    """Puts the file in place, and says what is to be done with it."""
    if not desk.put_in_place(exercise):
        return
    path = desk.shown(desk.path(exercise))
    print(f"{path} is yours now. It says what is asked for, and holds a stub of\n\n  {exercise.signature}\n\n"
          f"Write it in your editor, and then: ./walk try {exercise.number}\n"
          "As it stands, this is what the judge says of it:\n")


def judge_and_say(exercise, desk, all_exercises, build, timeout):
    path = desk.path(exercise)
    print(f"Try {exercise.number} · {exercise.title}", flush=True)
    result = judge(exercise, path, build, timeout)
    if result.words:
        print(result.words)
    if result.solved:
        desk.note(exercise, solved=desk.digest(exercise))
        solved = sum(desk.standing(each).endswith("✔") for each in all_exercises)
        left = next_one(all_exercises, desk, exercise)
        print(f"Solved. That is {solved} of {len(all_exercises)}"
              + (f"; next: ./walk try {left}" if solved < len(all_exercises) else ": all of them."))
        return 0
    print(f"Not solved yet: {result.outcome}. A hint: ./walk try {exercise.number} --hint")
    return 1


def read_words(words):
    parser = argparse.ArgumentParser(prog="./walk try", add_help=False)
    parser.add_argument("exercise", nargs="?")
    for option in ("--hint", "--solution", "--reset", "--judge", "--help"):
        parser.add_argument(option, action="store_true")
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
    return request


def work(words):
    request = read_words(words)
    if request.help:
        print("./walk try lists the exercises; ./walk try 05 puts try/lesson_05.cpp in place and judges it;\n"
              "--hint gives a hint, one more each time, --solution shows the solution, --reset starts again.")
        return 0
    desk = Desk(request.folder)
    all_exercises = exercises(request.root)
    if request.exercise is None:
        show_list(all_exercises, desk)
        return 0
    exercise = find(all_exercises, request.exercise)
    if request.hint:
        show_hint(exercise, desk)
    elif request.solution:
        print(exercise.code("solution.cpp"), end="")
    elif request.reset:
        reset(exercise, desk)
    elif request.judge:
        return judge_and_say(exercise, desk, all_exercises, request.build, request.timeout)
    else:
        place(exercise, desk)
        return TO_BE_JUDGED
    return 0


def main():
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
        code = 3
    except BrokenPipeError:
        code = 3
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"walk: {error.filename} can't be read or written: {error.strerror}", file=sys.stderr)
        code = 3
    sys.exit(code)


if __name__ == "__main__":
    main()
