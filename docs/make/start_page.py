"""Completes the start page: the button and what a run has proved, the picture of the journey, Muon in one process, what it is in
PyTorch, the lessons with their questions, and how they build on each other. docs/start_page.md says where each goes, with a line
such as <!-- site: lessons -->."""

import html
import re

import lesson_text
import serial_muon
from journey import journey, torch_table
from lesson_graph import lesson_graph
from lesson_source import LessonError

_MARK = re.compile(r"<!-- site: (\w+) -->")


def lesson_table(lessons):
    rows = "\n".join(
        f'<li data-progress="{lesson.name}"><a href="{lesson.name}.html"><span class="mw-number">{lesson.number}</span><span class="mw-name">{lesson.title}'
        f'</span><span class="mw-asks">{html.escape(lesson_text.question(lesson), quote=False)}</span></a></li>'
        for lesson in lessons)
    return f'<ol class="mw-lessons" start="0">\n{rows}\n</ol>'


_CHECKED = re.compile(r"^check .*?: (\d+ ranks equal the reference) +([\d,]+ elements, bit for bit) +✔$", re.MULTILINE)
_SENT = re.compile(r"^  all +([\d,]+ B)$", re.MULTILINE)
_COUNTED = re.compile(r"^cost +sent by a rank .*\n(?: .*✔\n)+", re.MULTILINE)
PROVED_BY = "full_step"


def start_button(lessons):
    """Where to begin, and what the lesson of the whole step has printed: its check, and the bytes that it counted."""
    proof = next((lesson for lesson in lessons if lesson.name.endswith(PROVED_BY)), lessons[-1])
    printed = lesson_text.expected_text(proof)
    checked, sent = _CHECKED.search(printed), _SENT.search(printed)
    if not (checked and sent and _COUNTED.search(printed)):
        raise LessonError(f"{proof.name} does not print a check of all ranks, bit for bit, and what rank 0 sends in all, as counted; the "
                          "start page shows both")
    return (f'<p class="mw-start"><a class="mw-start-button" href="{lessons[0].name}.html">Start</a>'
            f'<a class="mw-proof" href="{proof.name}.html#{proof.name}_output">{checked[1]}: {checked[2]} <b class="mw-good">✔</b><br/>'
            f'{sent[1]} sent by rank 0 in a step, all of them predicted and counted <b class="mw-good">✔</b></a></p>')


def complete(root, lessons, text):
    made = {"start": lambda: start_button(lessons), "muon": lambda: serial_muon.as_html(root), "journey": lambda: journey(root),
            "torch": torch_table, "lessons": lambda: lesson_table(lessons),
            "graph": lambda: lesson_graph(lessons)}
    found = _MARK.findall(text)
    for mark in found:
        if mark not in made:
            raise LessonError(f"docs/start_page.md has <!-- site: {mark} -->, but there are only {', '.join(made)}")
    for mark in made:
        if found.count(mark) != 1:
            raise LessonError(f"docs/start_page.md needs one line <!-- site: {mark} -->, but has {found.count(mark)}")
    return _MARK.sub(lambda match: made[match.group(1)](), text)
