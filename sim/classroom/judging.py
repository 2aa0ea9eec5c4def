"""Builds a library of what the reader wrote, and has the program muonwalk-try judge it."""

import re
import subprocess
from dataclasses import dataclass

from exercises import ROOT, Broken

MOST_COMPILER_LINES = 40
JUDGE_LIMIT = 300  # seconds: the judge has limits of its own, and this is for code that runs before it begins


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


def lesson_library(exercise, build):
    """What an exercise gives the reader to call may be the lesson's own; its library was built for the judge."""
    if f'#include "lessons/{exercise.lesson}/' not in exercise.read("contract.hpp"):
        return []
    return [str(file) for file in (build / "lib").glob(f"libmuonwalk_{exercise.lesson[:len('lesson_NN')]}.*")]


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
    linked = run_compiler([*compile_words, "-shared", str(object_file), *lesson_library(exercise, build), *link_words, "-o",
                           str(into)])
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
