"""A lesson's source, taken apart: what is prose and what is code, in the order of the file.

The program, the page and the notebook of a lesson all come from one `.cpp`. This module is the one place that knows how such
a file is written; the Doxygen filter and the maker of notebooks read its blocks.

A line comment that stands alone, after an empty line (or at the top, or after other prose), outside of every function or
directly in `main`, is prose. Everything else is code. Code at the top level is cut into declarations, the body of `main` into
statements; a comment that follows code without an empty line belongs to the code after it.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path


# How a lesson's prose refers to another lesson, "lesson 05", and to the library, "[newton_schulz]".
_OTHER_LESSON, _LIBRARY_NAME = r"\b([Ll]esson) (\d\d)\b", r"\[((?:\w+::)*[A-Za-z]\w+)\](?![(\[])"


def with_references(prose, of_lesson, of_name):
    """The prose with of_lesson(words, number) in place of "lesson 05" and of_name(name) in place of "[newton_schulz]", but for what
    stands in `code`, in a heading or in a drawing."""
    parts = re.split(r"(`[^`]*`|^(?: {4}|#).*$)", prose, flags=re.M)
    for at in range(0, len(parts), 2):
        part = re.sub(_OTHER_LESSON, lambda match: of_lesson(match.group(0), match.group(2)), parts[at])
        parts[at] = re.sub(_LIBRARY_NAME, lambda match: of_name(match.group(1)), part)
    return "".join(parts)


def lesson_named(number, *folders):
    """The name of the lesson of this number, as it stands in the first of the folders that has it, or None."""
    return next((path.name for folder in folders for path in sorted(Path(folder).glob(f"lesson_{number}_*")) if path.is_dir()), None)


class LessonError(Exception):
    """A lesson that is not written as lessons are: one sentence with the file and the line."""


@dataclass
class Block:
    """A run of lines of one kind; `first_line` counts from 1."""

    kind: str          # prose, include, using, declaration, main_open, statement, main_close
    first_line: int
    lines: list
    name: str = ""     # of a declaration: what it declares, as far as that is known
    in_main: bool = False

    @property
    def text(self):
        return "\n".join(self.lines)

    @property
    def prose(self):
        """Prose without its comment signs, as Markdown."""
        return "\n".join(re.sub(r"^\s*// ?", "", line) for line in self.lines)


@dataclass
class Step:
    """A line `lesson.step("title", function)`; the title is None where the program makes it up as it runs."""

    title: str
    function: str
    pattern: str = ""  # the titles that it makes up, as a regular expression

    def covers(self, title):
        """Whether a run's step of this title is this line. One line can give several, "optimizer step 1: momentum"."""
        return title == self.title if self.title is not None else re.match(self.pattern, title) is not None


@dataclass
class Lesson:
    path: Path
    name: str      # lesson_05_tp_gather
    number: str    # 05
    title: str     # TP gather
    lines: list = field(default_factory=list)
    blocks: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    bugs: list = field(default_factory=list)  # the names of the planted bugs, in the order of --list-bugs

    def declaration(self, name):
        """The block that declares `name`, with the prose that stands right above it, or None."""
        for before, block in zip([None] + self.blocks, self.blocks):
            if block.kind == "declaration" and block.name == name:
                return before if before is not None and before.kind == "prose" else None, block
        return None


# A string, a character, a comment at the end of the line, or one of the brackets that nest.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|//.*|[{}()\[\];]')


class _Depth:
    """Counts brackets line by line, and knows whether a line has ended a declaration or a statement."""

    def __init__(self):
        self.open = []

    def read(self, line):
        """True when, at the end of this line, nothing is open and the last thing was a `;` or a `}`."""
        last = ""
        for token in _TOKEN.findall(line):
            if token.startswith(("//", '"', "'")):
                continue
            if token in "{([":
                self.open.append(token)
            elif token in "})]":
                if not self.open:
                    raise ValueError(f"'{token}' closes nothing")
                self.open.pop()
            last = token
        bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        bare = re.sub(r"//.*", "", bare).rstrip()
        return not self.open and last in (";", "}") and bare.endswith((";", "}"))


_MAIN = re.compile(r"^int main\(.*\) \{$")
_NAME = re.compile(r"(?:struct|class|enum class|enum|namespace)\s+(\w+)|(\w+)\s*(?:\(|=|\{|;|\[)")


def _name_of(lines):
    for line in lines:
        code = re.sub(r"//.*", "", line).strip()
        if not code or code.startswith(("template", "#")):
            continue
        match = _NAME.search(code)
        if match:
            return match.group(1) or match.group(2)
    return ""


def _is_comment(line):
    return line.lstrip().startswith("//")


def _blocks(path, lines):
    blocks, at, in_main = [], 0, False
    prose_may_begin = True  # after an empty line, at the top, and where main begins
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            prose_may_begin = True
            at += 1
            continue
        first = at
        if _is_comment(line) and prose_may_begin:
            while at < len(lines) and _is_comment(lines[at]):
                at += 1
            blocks.append(Block("prose", first + 1, lines[first:at], in_main=in_main))
            # Code directly below prose is what the prose speaks of.
            prose_may_begin = False
            continue
        prose_may_begin = False
        if line.startswith("#"):
            kind = "include" if line.startswith("#include") else "declaration"
            at += 1
            blocks.append(Block(kind, first + 1, [line]))
            continue
        if not in_main and _MAIN.match(line):
            in_main = prose_may_begin = True
            at += 1
            blocks.append(Block("main_open", first + 1, [line], in_main=True))
            continue
        if in_main and line == "}":
            in_main = False
            at += 1
            blocks.append(Block("main_close", first + 1, [line], in_main=True))
            continue
        depth, done = _Depth(), False
        while at < len(lines) and not done:
            try:
                done = depth.read(lines[at])
            except ValueError as error:
                raise LessonError(f"{path}:{at + 1}: {error}; is a bracket missing above it?") from error
            at += 1
            # `} else {` and a loop's or an if's single statement on the next line go on.
            if done and at < len(lines) and re.match(r"^\s*(else\b|\} else\b)", lines[at]):
                done = False
        if not done:
            raise LessonError(f"{path}:{first + 1}: what begins here never ends; is a bracket or a semicolon missing?")
        code = lines[first:at]
        first_code = next((part.strip() for part in code if not _is_comment(part)), "")
        if in_main:
            blocks.append(Block("statement", first + 1, code, in_main=True))
        elif first_code.startswith("using namespace"):
            blocks.append(Block("using", first + 1, code))
        else:
            blocks.append(Block("declaration", first + 1, code, _name_of(code)))
    return blocks


_TITLE = re.compile(r"^// # Lesson (\d\d) · (.+)$")
_STEP = re.compile(r'lesson\.(?:quiet_)?step\(\s*("(?:\\.|[^"\\])*"|fmt::format\((?:[^()]|\([^()]*\))*\))\s*,\s*(\w+)\s*\)')


def read_lesson(path):
    """Reads a lesson; what is not written as a lesson is raises LessonError."""
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise LessonError(f"{path} can't be read: {error.strerror}") from error
    if lines and lines[-1] == "":
        lines.pop()
    title = _TITLE.match(lines[0]) if lines else None
    if not title:
        raise LessonError(f'{path}:1: a lesson begins with the line "// # Lesson NN · Title"')
    lesson = Lesson(path, path.stem, title.group(1), title.group(2), lines, _blocks(path, lines))
    for match in _STEP.finditer("\n".join(lines)):
        literal = match.group(1)
        if literal.startswith('"'):
            lesson.steps.append(Step(literal[1:-1], match.group(2)))
        else:
            words = re.search(r'"((?:\\.|[^"\\])*)"', literal).group(1)
            pattern = ".*".join(re.escape(part) for part in re.split(r"\{[^}]*\}", words))
            lesson.steps.append(Step(None, match.group(2), pattern))
    bugs = re.search(r"info\.bugs = \{(.*?)\};", "\n".join(lines), re.DOTALL)
    if bugs:
        lesson.bugs = re.findall(r'\{"(\w+)"', bugs.group(1))
    return lesson


def _listed(root):
    """The `add_lesson` lines of lessons/CMakeLists.txt: each name with the words that follow it."""
    text = (Path(root) / "lessons" / "CMakeLists.txt").read_text(encoding="utf-8")
    return {words[0]: words[1:] for words in (line.split() for line in re.findall(r"^add_lesson\(([^)]*)\)", text, re.MULTILINE))}


def lessons_in_order(root):
    """All lessons, as lessons/CMakeLists.txt names them: one `add_lesson` line each."""
    return [read_lesson(Path(root) / "lessons" / name / f"{name}.cpp") for name in _listed(root)]


def test_arguments(root, name):
    """The arguments with which most tests run this lesson in a smaller size, as its `add_lesson` line has them."""
    return " ".join(_listed_behind(root, name, "TEST_ARGUMENTS"))


def toy_arguments(root, name):
    """The arguments of the run that this lesson's pictures and its player are of, where it is another than that of its output."""
    return _listed_behind(root, name, "TOY")


def _listed_behind(root, name, key):
    """The words that follow a key in a lesson's `add_lesson` line, up to the next key."""
    words = _listed(root).get(name, [])
    behind = words[words.index(key) + 1:] if key in words else []
    return behind[:next((at for at, word in enumerate(behind) if re.fullmatch("[A-Z_]+", word)), len(behind))]
