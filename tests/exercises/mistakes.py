#!/usr/bin/env python3
"""Wrong answers that people who think have written, and what the judge says of each, word by word.

    mistakes.py BUILD [WORDS ...] [--show]      of all exercises, or of those whose name holds one of the words

mistakes/NN_function.txt holds those of an exercise. Each has a line `the mistake | what the judge says`, and below it what it changes
in solution.cpp, as `old => new`, or what stands in the place of all of the function's body, as `* new`. BLESS=1 writes down what is
said. All of an exercise are compiled in one program, and judged there with ranks as fibers; as processes where fibers can't tell.
"""

import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "sim/classroom"))
import judging  # noqa: E402
from exercises import Broken, exercises  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "mistakes"
MARK = "what it looks like: "


@dataclass
class Mistake:
    title: str
    expected: str
    edits: list = field(default_factory=list)

    def code(self, solution):
        """The solution with this mistake in it; its includes are elsewhere."""
        for edit in self.edits:
            if edit.startswith("* "):
                begin = solution.index("{", solution.rindex("\n\n")) + 1
                solution = f"{solution[:begin]}\n{edit[2:]}\n}}\n"
                continue
            old, _, new = edit.partition(" =>")
            old = old.replace("\\n", "\n")
            if old not in solution:
                raise Broken(f'the mistake "{self.title}" changes what is not in the solution: {old}')
            solution = solution.replace(old, new.strip())
        return solution


def read_mistakes(text):
    found = []
    for line in text.split("\n"):
        if line.startswith("  "):
            found[-1].edits.append(line.strip())
        elif line:
            title, _, expected = line.partition(" |")
            found.append(Mistake(title, expected.strip()))
    return found


def written(mistakes):
    return "".join(f"{each.title} | {each.expected}\n" + "".join(f"  {edit}\n" for edit in each.edits) for each in mistakes)


def program(exercise, mistakes):
    """All of them, of which MUONWALK_MISTAKE is the one that is judged."""
    solution = exercise.read("solution.cpp")
    body = "\n".join(line for line in solution.split("\n") if not line.startswith(("#include", "//", "using namespace")))
    parts = [f'#include "{exercise.folder.relative_to(SOURCE)}/contract.hpp"']
    parts += [f"#include <{name}>" for name in ("algorithm", "cmath", "cstdlib", "cstring", "numeric", "utility")]
    parts.append("using namespace muonwalk;")
    parts += [f"namespace mistake_{i} {{\n{each.code(body)}\n}}" for i, each in enumerate(mistakes)]
    names = ", ".join(f"&mistake_{i}::{exercise.function}" for i in range(len(mistakes)))
    parts.append(f"static {exercise.type_name}* const all_mistakes[] = {{{names}}};")
    return "\n".join(parts)


def verdict(outcome, said):
    """What tells one verdict from another: what a wrong result looks like, or else the first sentence."""
    text = "\n".join(line for line in said.split("\n") if line.startswith("  ") and not re.search("[✔✘]", line))
    words = " ".join(text.split())
    words = re.sub(r"your line \d+", "your line", words)
    if MARK in words:
        return f"{outcome}: {words.split(MARK)[1]}"
    if outcome == "wrong values" and re.search(" row [0-9]+ column ", words):
        return f"{outcome}, not recognized"
    return f"{outcome}: {words.split(' call planned')[0]}" if words else outcome


def judge_all(exercise, build, mistakes, show):
    """What the judge says of each, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "mistakes.so"
        text = program(exercise, mistakes)
        file = Path(folder) / f"{exercise.function}.cpp"
        file.write_text(text, encoding="utf-8")
        made = judging.build_library(exercise, file, build, library, 'all_mistakes[atoi(getenv("MUONWALK_MISTAKE"))]')
        if isinstance(made, judging.Result):
            raise Broken(f"{exercise.name}: {made.words}")
        verdicts = []
        for number in range(len(mistakes)):
            os.environ["MUONWALK_MISTAKE"] = str(number)
            with open(Path(folder) / "said", "w+", encoding="utf-8") as said:
                result = judging.judge_on_fibers(exercise, library, build, said) or judging.judge_on_processes(exercise, library, build, 1, said)
                said.seek(0)
                words = said.read() + result.words
            verdicts.append(verdict(result.outcome, words))
            if show:
                print(f"### {exercise.number} {mistakes[number].title}\n{words}\n=> {verdicts[-1]}\n")
        return verdicts


def faults_of(exercise, build, text, show=False):
    mistakes = read_mistakes(text)
    said = judge_all(exercise, build, mistakes, show)
    return mistakes, [f'{exercise.number} {mistake.title}: the judge says "{now}" and not "{mistake.expected}"'
                      for mistake, now in zip(mistakes, said) if now != mistake.expected], said


def faults_of_file(exercise, file, build, show):
    mistakes, faults, said = faults_of(exercise, build, file.read_text(encoding="utf-8"), show)
    if os.environ.get("BLESS") != "1":
        return faults
    for mistake, now in zip(mistakes, said):
        mistake.expected = now
    file.write_text(written(mistakes), encoding="utf-8")
    return []


def main():
    build, words = Path(sys.argv[1]).resolve(), [word for word in sys.argv[2:] if word != "--show"]
    asked = [(each, FOLDER / f"{each.number[:2]}_{each.function}.txt") for each in exercises(SOURCE)]
    asked = [(each, file) for each, file in asked if not words or any(word in file.name for word in words)]
    if words and not asked:
        sys.exit(f"no exercise has {' or '.join(words)} in its name")
    with ProcessPoolExecutor() as pool:  # processes, because each says in its environment which mistake is judged
        found = [pool.submit(faults_of_file, each, file, build, "--show" in sys.argv) for each, file in asked]
        faults = [fault for each in found for fault in each.result()]
    for fault in faults:
        print(f"FAILED  {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
