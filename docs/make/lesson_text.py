"""What a page takes from the files beside a lesson's source: the question and the answer from its .expected, its planted
bugs and what they print from its .bugs.expected, and its run from the recording."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from lesson_source import LessonError


@dataclass
class Bug:
    name: str     # stale_slice
    says: str     # what it does wrong
    output: str   # the command and the part of its output that differs


def read(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise LessonError(f"{path} can't be read: {error.strerror}; BLESS=1 in the environment of the lesson's tests writes "
                          "what is expected of it") from error


def expected_text(lesson):
    return read(lesson.path.with_suffix(".expected"))


def _paragraph(lesson, label):
    """The text after "Question: ", with the lines that are indented below it."""
    lines = expected_text(lesson).split("\n")
    for at, line in enumerate(lines):
        if line.startswith(label + ": "):
            words = [line[len(label) + 2:]]
            for more in lines[at + 1:]:
                if not more.startswith("  "):
                    break
                words.append(more.strip())
            return " ".join(words)
    raise LessonError(f'{lesson.path.with_suffix(".expected")} has no line that begins with "{label}: ", which its page '
                      "needs; lesson.answer and info.question print them")


def question(lesson):
    return _paragraph(lesson, "Question")


def expected_on_gpus(lesson):
    """What it prints with --transport nccl, where it has a .nccl.expected; else it prints the same, and this is None."""
    path = lesson.path.with_suffix(".nccl.expected")
    return read(path) if path.exists() else None


def answer(lesson):
    return _paragraph(lesson, "Answer")


def bugs(lesson):
    """The planted bugs, in the order of --list-bugs."""
    path = lesson.path.with_suffix(".bugs.expected")
    found = []
    for part in read(path).split("\n\n")[1:]:
        match = re.match(r"bug (\w+): (.+)\n(\$ .+\n[\s\S]+)", part.rstrip("\n") + "\n")
        if not match:
            raise LessonError(f'{path}: a bug has the form "bug NAME: what it does", "$ command", output; '
                              f"BLESS=1 ctest -R {lesson.name}.bugs writes it")
        found.append(Bug(*match.groups()))
    if [bug.name for bug in found] != lesson.bugs:
        raise LessonError(f"{path} has the bugs {[bug.name for bug in found]}, but the lesson plants {lesson.bugs}; "
                          f"BLESS=1 ctest -R {lesson.name}.bugs writes it anew")
    return found


def recording(material):
    return json.loads(read(Path(material) / "recording.json"))


def functions_of_steps(lesson, recorded):
    """{step number: function} of a recorded run."""
    lines = list(lesson.steps)
    functions = {}
    for step in recorded["steps"]:
        line = next((line for line in lines if line.covers(step["title"])), None)
        if line is None:
            raise LessonError(f'{lesson.path}: the run has a step "{step["title"]}", but no lesson.step line has that '
                              "title; is the function named there, and not a lambda?")
        functions[step["number"]] = line.function
        if line.title is not None:
            lines.remove(line)
    return functions
