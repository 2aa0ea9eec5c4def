"""The code that the player shows beside a step, and which of its lines made what a frame shows.

Lines are found in the source: where a step is split into phases, those from the call that announces the phase to the end of
its block or to an empty line; elsewhere those that hand a message to a communicator, and those that show what a rank holds.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from doxygen_filter import fragments
from highlight import highlighted
from lesson_source import LessonError

LIBRARY = "src/optim/full_step.cpp"  # the loop of lesson 09 as later lessons call it

_PHASE = re.compile(r'constexpr Phase (\w+) = "(.*?)";')
_BEGINS = re.compile(r'\bbegin\((?:phases::(?P<name>\w+)|(?P<indirect>\w+\.begins\())|\.phase\("(?P<text>[^"]+)"\)')
_ANSWER = re.compile(r"return \{phases::(\w+),")
_MESSAGE = re.compile(r"\brank\.(?:(?:dp|tp|pp|world)\(\)|group\([^)]*\))(?!\.(?:size|rank)\b)")
_SHOWS = re.compile(r"\b(?:rank|shown)\.(?:show|say)\(")
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|//.*')


def phase_names(root):
    """{the text of a phase: its name in C++}."""
    headers = sorted(Path(root, "src").rglob("*.hpp"))
    return {text: name for path in headers for name, text in _PHASE.findall(path.read_text(encoding="utf-8"))}


def _comment_begin(lines, at):
    """The first line of the comment that stands right above a line."""
    while at > 0 and lines[at - 1].strip().startswith("//"):
        at -= 1
    return at


def lines_of_phases(lines, names):
    """{the text of a phase: the lines that make it}, counted from 0. Besides what follows its announcement these are the calls
    of the function that is named as the phase is."""
    texts = {name: text for text, name in names.items()}
    answers = [match[1] for line in lines if (match := _ANSWER.search(line))]
    found, current, floor, depth = {}, None, 0, 0
    for at, line in enumerate(lines):
        bare = _LITERAL.sub("", line)
        begins = _BEGINS.search(line.split("//")[0])
        after = depth + bare.count("{") - bare.count("}")
        if begins:
            name = begins["name"] or (answers[0] if begins["indirect"] and answers else None)
            current, floor = texts.get(name, begins["text"]), depth
            if current is None:
                continue
            first = _comment_begin(lines, at)
            for others in found.values():
                others.difference_update(range(first, at))
            found.setdefault(current, set()).update(range(first, at + 1))
        elif not line.strip() or after < floor:
            current = None
        elif current is not None:
            found[current].add(at)
        depth = after
    in_some = set().union(*found.values()) if found else set()
    for at, line in enumerate(lines):
        called = re.match(r"\s+(?:[\w<>:&]+ )*(?:\w+ = )?(\w+)\(", _LITERAL.sub("", line))
        if at not in in_some and called and texts.get(called[1]) in found:
            found[texts[called[1]]].add(at)
    return {text: sorted(its_own) for text, its_own in found.items()}


@dataclass
class _Stretch:
    """A block of code of the page."""
    html: str
    lines: list
    first_line: int
    functions: list
    phases: dict = field(default_factory=dict)


class MarkedCode:
    """All code of a lesson that its player may show. `shown` has the HTML of each block of code of the page."""

    def __init__(self, root, lesson, shown):
        self.lesson, self.names = lesson, phase_names(root)
        self.stretches = []
        for stretch, its_html in zip(fragments(lesson), shown):
            first = stretch[0].first_line
            last = stretch[-1].first_line + len(stretch[-1].lines) - 1
            lines = lesson.lines[first - 1:last]
            functions = [block for block in stretch if block.kind == "declaration"]
            phases = lines_of_phases(lines, self.names) if functions else {}
            self.stretches.append(_Stretch(its_html, lines, first, functions, phases))
        self.sources = []
        library = Path(root, LIBRARY)
        self.library = library.read_text(encoding="utf-8") if re.search(r"\bfull_step\(", "\n".join(lesson.lines)) else None

    def _source(self, name, its_html):
        if (name, its_html) not in self.sources:
            self.sources.append((name, its_html))
        return self.sources.index((name, its_html))

    def _of_function(self, function):
        """The block of code that declares a function, and which of its lines the function has."""
        for stretch in self.stretches:
            for block in stretch.functions:
                if block.name == function:
                    first = block.first_line - stretch.first_line
                    return stretch, range(first, first + len(block.lines))
        raise LessonError(f"{self.lesson.path}: no block of code declares {function}, which makes a step")

    def _of_phase(self, phase):
        return next((stretch for stretch in self.stretches if phase in stretch.phases), None)

    def _phase_of(self, title):
        """The phase that a step's title ends with, "optimizer step 1: momentum", or None."""
        known = set(self.names).union(*(stretch.phases for stretch in self.stretches))
        phase = title.rpartition(": ")[2]
        return phase if phase in known else None

    def _shown(self, title, function):
        """What is shown beside a step: the lesson's own code first, unless only the library has the phase."""
        phase = self._phase_of(title)
        own = self._of_phase(phase) if phase else None
        if own:
            name = own.functions[-1].name
            lines = own.phases[phase]
            shown = [{"source": self._source(f"{name} in this lesson", own.html), "moves": lines, "holds": lines}]
        else:
            stretch, inside = self._of_function(function)
            marked = {frame: [at for at in inside if pattern.search(_LITERAL.sub('""', stretch.lines[at]))]
                      for frame, pattern in (("moves", _MESSAGE), ("holds", _SHOWS))}
            shown = [{"source": self._source(f"{function} in this lesson", stretch.html), **marked}]
        of_library = lines_of_phases(self.library.split("\n"), self.names).get(phase) if self.library and phase else None
        if of_library:
            entry = {"source": self._source(LIBRARY, highlighted(self.library.rstrip("\n").split("\n"))), "moves": of_library, "holds": of_library}
            shown = [*shown, entry] if own else [entry, *shown]
        return shown

    def of_steps(self, recorded, functions):
        """What the player reads: sources, and for each step which of them, with which lines marked in which frame."""
        steps = [{"step": step["number"], "shown": self._shown(step["title"], functions[step["number"]])} for step in recorded["steps"]]
        return {"sources": [{"name": name, "html": its_html} for name, its_html in self.sources], "steps": steps}

    def steps_in(self, index, recorded, functions):
        """What the reader of a block of code reads of: the numbers of the steps that its functions made, or whose phases it
        has; and {line: numbers} for the lines with which a phase begins."""
        stretch = self.stretches[index]
        own = {block.name for block in stretch.functions}
        numbers, lines = [], {}
        for step in recorded["steps"]:
            number, phase = step["number"], self._phase_of(step["title"])
            its_stretch = self._of_phase(phase) if phase else None
            if its_stretch is stretch:
                lines.setdefault(stretch.phases[phase][0], []).append(number)
            if its_stretch is stretch or (its_stretch is None and functions[number] in own):
                numbers.append(number)
        return numbers, lines
