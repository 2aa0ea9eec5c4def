"""Builds a library of what the reader wrote, and has the program muonwalk-try judge it."""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from exercises import ROOT, Broken

MOST_COMPILER_LINES = 40
JUDGE_LIMIT = 300  # seconds: the judge has limits of its own, and this is for one that the reader's code has stopped
FIBERS_LIMIT = 20  # seconds: for a function that sleeps, which stops all ranks that are fibers; processes tell who it is
ENDLESS_SECONDS = 3  # of processor time that a rank which is a fiber may compute without a call
COMPUTE_TIMEOUTS = 10  # kComputeTimeouts of sim/ranks/options.hpp
FIRST_OUTCOME = 100  # the exit code of muonwalk-try is this and the place of the outcome among these, as outcome_name has them
OUTCOMES = ("solved", "wrong values", "right bits, but too many bytes", "right bits, but other calls than planned",
            "right bits, but too much memory", "a crash", "it ends the program", "a deadlock", "it never ends", "an exception")


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


def build_library(exercise, path, build, into, function=None):
    """Makes a library of the reader's file, and of what it says is the function. Returns a Result where that can't be, or else what the
    compiler warned of."""
    compile_words, link_words = compiler_words(build, "compile.txt"), compiler_words(build, "link.txt")
    into.parent.mkdir(parents=True, exist_ok=True)
    try:
        shown = path.relative_to(ROOT)
    except ValueError:
        shown = path
    # The last line takes the function whose type is right, wherever several have its name.
    text = (f'#include "{exercise.folder.relative_to(exercise.root)}/contract.hpp"\n#include "{shown}"\n'
            f'extern "C" {{\nextern muonwalk::{exercise.type_name}* const muonwalk_exercise;\n'
            f"muonwalk::{exercise.type_name}* const muonwalk_exercise = {function or f'&{exercise.function}'};\n}}\n")
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


C_LIBRARY = ctypes.CDLL(None)
END_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER


def prctl(option, value):
    """What Linux alone has: elsewhere nothing is found that leaves the group of the program that judges."""
    if sys.platform == "linux":
        C_LIBRARY.prctl(option, value, 0, 0, 0)


def stand_between():
    """Called in a new process before it becomes muonwalk-try, which it leaves to a grandchild. So the reader's code finds neither the
    tool as its parent nor in its process group; and what it starts becomes a child of this process, at the latest when its parent ends,
    whatever session it has made for itself."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    prctl(END_WITH_PARENT, signal.SIGTERM)
    prctl(ADOPT_ORPHANS, 1)
    child = os.fork()
    if child == 0:
        os.setsid()
        child = os.fork()
        if child == 0:
            prctl(END_WITH_PARENT, signal.SIGKILL)
            return
    end_with(child)


def end_with(child):
    """Waits for a child, ends all others, and ends with its exit code: 128 + N for a signal."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # by one of these, subprocess waits for the program to be loaded
    code = -signal.SIGTERM
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except SystemExit:
        pass
    try:
        while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
            for each in children:
                os.kill(int(each), signal.SIGKILL)
            os.waitpid(-1, 0)
    except OSError:  # not Linux
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
    os._exit(code if code >= 0 else 128 - code)


def run_judge(exercise, library, build, limit, world, timeout, **files):
    """Runs muonwalk-try with ranks in this world. Returns its exit code, and the outcome that it says; "" where it says none. Then
    nothing is left of it, whatever the reader's code has started."""
    program = build / "bin" / "muonwalk-try"
    try:
        process = subprocess.Popen([str(program), exercise.name, str(library), world, str(timeout)], stdin=subprocess.DEVNULL,
                                   start_new_session=True, preexec_fn=stand_between, **files)
    except OSError as error:
        raise Broken(f"{program} can't be run: {error.strerror}; ./walk try builds it") from error
    try:
        code = process.wait(limit)
    finally:
        process.terminate()
        process.wait()
    judged = 0 <= code - FIRST_OUTCOME < len(OUTCOMES)
    return code, OUTCOMES[code - FIRST_OUTCOME] if judged else ""


def judge_on_fibers(exercise, library, build, output):
    """The quick look: ranks that take turns in one process, where a deadlock is known at once. Returns a Result where that was enough,
    and None where the function may be right, or ends the whole process: real processes tell more then. What is printed meanwhile is
    shown only where it was enough, because it is printed again otherwise."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        try:
            _, outcome = run_judge(exercise, library, build, FIBERS_LIMIT, "fibers", ENDLESS_SECONDS / COMPUTE_TIMEOUTS,
                                   stdout=said, stderr=errors)
        except subprocess.TimeoutExpired:
            return None
        errors.seek(0)
        words = errors.read().decode("utf-8", "replace")
        endless = re.search(r"^muonwalk-try: (rank \d+ did nothing but compute in )step '(.*)'( for .* s of processor time),", words, re.M)
        if outcome == "solved" or not (outcome or endless):
            return None
        said.seek(0)
        print(said.read().decode("utf-8", "replace"), end="", file=output or sys.stdout, flush=True)
        if endless:
            return Result("it never ends", f"  {''.join(endless.groups())}.\n  Is there a loop that never ends?")
        sys.stderr.write(words)
        return Result(outcome)


def judge(exercise, path, build, timeout=None, output=None):
    """Builds the file and lets muonwalk-try judge it: with ranks as fibers first, and before it is called solved with ranks as
    processes. That prints to `output` (standard output where it is None)."""
    library = build / "try" / f"{path.stem}.{os.getpid()}.so"  # of its own: two files of one name may be judged at a time
    try:
        warnings = build_library(exercise, path, build, library)
        if isinstance(warnings, Result):
            return warnings
        result = judge_on_fibers(exercise, library, build, output) or judge_on_processes(exercise, library, build, timeout, output)
    finally:
        for suffix in (".o", ".so"):
            library.with_suffix(suffix).unlink(missing_ok=True)
    if not result.solved and warnings and not result.words:
        result.words = f"The compiler warns:\n{warnings}"
    return result


def judge_on_processes(exercise, library, build, timeout, output):
    try:
        code, outcome = run_judge(exercise, library, build, JUDGE_LIMIT, "processes", timeout or 1, stdout=output)
    except subprocess.TimeoutExpired:
        return Result("it never ends", f"  The judge did not end within {JUDGE_LIMIT} s: has your code stopped it?")
    if code < 0 or code > 128:
        return Result("it ends the judge", f"  Signal {abs(code) % 128} ended the program that judges: does your code send it?")
    if not outcome:
        raise Broken(f"the judge of exercise {exercise.number} broke; its own words are above")
    return Result(outcome)
