#!/usr/bin/env python3
"""The input filter of Doxygen: turns the source of a lesson into its page.

    doxygen_filter.py lessons/lesson_05_tp_gather/lesson_05_tp_gather.cpp

Prose becomes text, everything else becomes @code blocks. A line of the source stays a line of the page, so that a warning
of Doxygen names the line in which the mistake is. What a page shows besides (output, bugs, pictures) is put in when
Doxygen is done, by docs/make/make_pages.py.
"""

import re
import sys
from pathlib import Path

from lesson_source import LessonError, lesson_named, read_lesson, with_references

_CODE = "@code{.cpp}"
_HEADING = re.compile(r"^(#{2,3}) (.+)$")
_LITERALS = re.compile(r'"(?:\\.|[^"\\])*"(?:\s*"(?:\\.|[^"\\])*")*')


def section_id(lesson_name, heading):
    """The anchor of a section: lesson_05_tp_gather_why_no_bucket."""
    words = re.sub(r"[^a-z0-9]+", "_", heading.lower()).strip("_")
    return f"{lesson_name}_{words}"


def fragments(lesson):
    """The stretches of code between two pieces of prose, as lists of blocks. Each is one code block of the page.

    What follows the exercises only returns the answer, with which the page ends anyway; it is not shown.
    """
    stretches, open_stretch = [], False
    for block in lesson.blocks:
        if block.kind == "prose":
            open_stretch = False
            continue
        if not open_stretch:
            stretches.append([])
            open_stretch = True
        stretches[-1].append(block)
    end = [block.text.strip().split(maxsplit=1)[0] for block in stretches[-1]]
    if end != ["return", "}"]:
        raise LessonError(f"{lesson.path}:{stretches[-1][0].first_line}: behind the exercises, the last prose of a "
                          "lesson, its main only returns")
    return stretches[:-1]


def _shown_lines(stretch):
    """The lines of a stretch of code as the page shows them: without the answer, with which the page ends. What this saves
    in lines is empty lines at the end."""
    first = stretch[0].first_line
    lines = [""] * (stretch[-1].first_line + len(stretch[-1].lines) - first)
    saved = 0
    for block in stretch:
        text = block.text
        if block.name == "kAnswer":
            text = re.sub(r"=\s*\"…\"", '= "…"', _LITERALS.sub('"…"', text))
        shown = text.split("\n")
        begin = block.first_line - first - saved
        lines[begin:begin + len(shown)] = shown
        saved += len(block.lines) - len(shown)
    return lines


def _plain(line, in_code=False):
    """Options stay as they are: outside of `code`, Doxygen would make a dash of the two of "--tp". And it would take an
    asterisk that begins a line for the margin of the comment. `code` may go on in the next line: `in_code` says that this line
    begins within it."""
    if not in_code:
        line = re.sub(r"^(\s*)\*(\S(?:[^*]*\S)?)\*", r"\1<em>\2</em>", line)
    parts = line.split("`")
    for at in range(int(in_code), len(parts), 2):
        parts[at] = re.sub(r"(?<!-)--(?=\w)", r"\\--", parts[at])
    return "`".join(parts)


def _references(lesson, prose):
    """Links to other lessons and to the library, whose names are in the namespace muonwalk."""
    def of_lesson(words, number):
        name = lesson_named(number, lesson.path.parent.parent, Path(__file__).resolve().parents[2] / "lessons")
        if name is None:
            raise LessonError(f"{lesson.path}: it refers to lesson {number}, and there is none")
        return words if name == lesson.name else f'\\ref {name} "{words}"'

    return with_references(prose, of_lesson, lambda name: f'\\ref muonwalk::{name} "{name.split("::")[-1]}"')


def _prose_lines(lesson, block):
    """Markdown becomes what Doxygen reads; drawings, which are indented by four blanks, are shown as they are."""
    lines = _references(lesson, block.prose).split("\n")
    result, drawing, in_code = [], False, False
    for at, line in enumerate(lines):
        is_drawing = line.startswith("    ") and (drawing or at == 0 or not lines[at - 1].strip())
        if not line.strip() and drawing:
            # An empty line belongs to the drawing when the drawing goes on after it.
            rest = next((later for later in lines[at + 1:] if later.strip()), "")
            is_drawing = rest.startswith("    ")
        if is_drawing and not drawing:
            if not result:
                raise LessonError(f"{lesson.path}:{block.first_line}: a drawing needs a sentence above it")
            result[-1] += "@verbatim"
        if drawing and not is_drawing:
            result.append("@endverbatim")
            drawing = False
            if line.strip():
                raise LessonError(f"{lesson.path}:{block.first_line + at}: a drawing ends with an empty line")
            continue
        drawing = is_drawing
        heading = _HEADING.match(line)
        if drawing:
            result.append(line[4:])
        elif heading:
            command = "section" if len(heading.group(1)) == 2 else "subsection"
            result.append(f"\\{command} {section_id(lesson.name, heading.group(2))} {heading.group(2)}")
        else:
            in_code = in_code and line.strip() != ""
            result.append(_plain(line, in_code))
            in_code ^= line.count("`") % 2 == 1
    if drawing:
        result[-1] += "@endverbatim"
    return result


def page_of(lesson):
    """The page as Doxygen reads it: as many lines as the source has."""
    lines = [""] * len(lesson.lines)
    for block in lesson.blocks:
        if block.kind == "prose":
            first = block.first_line - 1
            lines[first:first + len(block.lines)] = _prose_lines(lesson, block)
    for stretch in fragments(lesson):
        first = stretch[0].first_line - 1
        shown = _shown_lines(stretch)
        last = max(at for at, line in enumerate(shown) if line.strip())
        shown[last] += "@endcode"
        # The code begins on the empty line above it, or at the end of the prose that speaks of it.
        lines[first - 1] += _CODE
        lines[first:first + len(shown)] = shown
    lines[0] = f"/** \\page {lesson.name} {lesson.number} · {lesson.title}"
    lines[-1] += " */"
    for number, line in enumerate(lines[:-1], start=1):
        if "*/" in line:
            raise LessonError(f'{lesson.path}:{number}: "*/" would end the page; write it another way')
    return "\n".join(lines) + "\n"


def main(arguments):
    if len(arguments) != 1:
        print("doxygen_filter.py takes the source of one lesson", file=sys.stderr)
        return 2
    try:
        sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.write(page_of(read_lesson(arguments[0])))
    except LessonError as error:
        print(f"doxygen_filter.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
