"""Completes the start page: Muon in one process, the picture of the journey, what it is in PyTorch, the lessons with their questions, and how they build on each
other. docs/start_page.md says where each goes, with a line such as <!-- site: lessons -->."""

import html
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import lesson_text  # noqa: E402
import serial_muon  # noqa: E402
from journey import journey, torch_table  # noqa: E402
from lesson_graph import lesson_graph  # noqa: E402
from lesson_source import LessonError  # noqa: E402

_MARK = re.compile(r"<!-- site: (\w+) -->")


def lesson_table(lessons):
    rows = "\n".join(
        f'<li><a href="{lesson.name}.html"><span class="mw-number">{lesson.number}</span><span class="mw-name">{lesson.title}'
        f'</span><span class="mw-asks">{html.escape(lesson_text.question(lesson), quote=False)}</span></a></li>'
        for lesson in lessons)
    return f'<ol class="mw-lessons" start="0">\n{rows}\n</ol>'


def complete(root, lessons, text):
    made = {"muon": lambda: serial_muon.as_html(root), "journey": lambda: journey(root),
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
