"""The exercises of the lessons, as they lie in the tree: their contracts, stubs, hints and solutions."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_HINTS = 3


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
