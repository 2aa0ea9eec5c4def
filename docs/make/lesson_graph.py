"""The picture of which lesson builds on which, drawn by Graphviz from the lessons' own "You need to know" paragraphs."""

import html
import re
import subprocess

from lesson_source import LessonError, lesson_named

_TITLE = "Which lesson builds on which"


def builds_on(lesson):
    """The names of the lessons that its "You need to know" paragraph refers to, those that come before it."""
    first = next((block.prose for block in lesson.blocks if block.kind == "prose"), "")
    paragraph = next((part for part in first.split("\n\n") if part.startswith("You need to know")), None)
    if paragraph is None:
        raise LessonError(f'{lesson.path}: the first comment has no paragraph that begins with "You need to know", '
                          "from which the picture of the lessons is drawn")
    names = [lesson_named(number, lesson.path.parent.parent) for number in re.findall(r"\blesson (\d\d)\b", paragraph, flags=re.I)]
    return [name for name in names if name is not None and name < lesson.name]


def _two_lines(title):
    """A title of several words in two lines, so that the picture is narrow enough to be read."""
    words = title.split()
    if len(words) == 1:
        return title
    middle = min(range(1, len(words)), key=lambda at: max(len(" ".join(words[:at])), len(" ".join(words[at:]))))
    return " ".join(words[:middle]) + "\\n" + " ".join(words[middle:])


def _dot(lessons, marked):
    lines = ["digraph lessons {", "rankdir=LR; bgcolor=transparent; ranksep=0.22; nodesep=0.12; margin=0;",
             'node [shape=box, style="rounded", fontname="sans-serif", fontsize=13, height=0.4, margin="0.07,0.03"];',
             "edge [arrowsize=0.6];"]
    for lesson in lessons:
        here = "mw-here" if lesson is marked else "mw-lesson"
        lines.append(f'{lesson.name} [label="{lesson.number}\\n{_two_lines(lesson.title)}", class="{here}", id="graph_{lesson.number}", '
                     f'URL="{lesson.name}.html", target="_self", tooltip="{lesson.number} {lesson.title}"];')
    for lesson in lessons:
        for before in builds_on(lesson):
            kind = "mw-mine" if marked in (lesson,) else "mw-other"
            lines.append(f'{before} -> {lesson.name} [class="{kind}"];')
    return "\n".join(lines + ["}"])


def _named(lessons):
    return ", ".join(f'<a href="{lesson.name}.html">{lesson.number} {html.escape(lesson.title)}</a>' for lesson in lessons) or "nothing"


def _in_words(lessons, marked):
    """The same for windows in which the picture would be too small to be read: of the marked lesson, or of all."""
    def before(lesson):
        return _named([each for each in lessons if each.name in builds_on(lesson)])

    if marked is not None:
        after = [each for each in lessons if marked.name in builds_on(each)]
        items = [f"This lesson builds on {before(marked)}."] + [f"It leads to {_named(after)}."] * bool(after)
    else:
        items = [f"{_named([lesson])} builds on {before(lesson)}." for lesson in lessons]
    return f'<nav class="mw-graph-words" aria-label="{_TITLE}"><ul>{"".join(f"<li>{item}</li>" for item in items)}</ul></nav>'


def lesson_graph(lessons, marked=None):
    """An SVG to stand in a page: the lessons as links, the marked one told apart; colours come from the style sheet. On a phone
    the style sheet shows its words instead."""
    known = {lesson.name for lesson in lessons}
    for lesson in lessons:
        for before in builds_on(lesson):
            if before not in known:
                raise LessonError(f"{lesson.path}: it builds on {before}, but there is no such lesson")
    drawn = subprocess.run(["dot", "-Tsvg"], input=_dot(lessons, marked), capture_output=True, text=True, check=True)
    svg = drawn.stdout[drawn.stdout.index("<svg"):]
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\bxlink:(href|title)=", r"\1=", svg).replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    svg = re.sub(r' (fill|stroke)="[^"]*"', "", svg)   # the style sheet's
    svg = re.sub(r"<title>.*?</title>\n?", "", svg)
    words = "; ".join(f"{lesson.number} {lesson.title} builds on " +
                      (", ".join(before.split("_")[1] for before in builds_on(lesson)) or "nothing") for lesson in lessons)
    svg = svg.replace("<svg ", '<svg class="mw-graph" role="group" aria-labelledby="graph_title graph_words" ', 1)
    end = svg.index(">") + 1
    svg = (svg[:end] + f'<title id="graph_title">{_TITLE}</title><desc id="graph_words">{html.escape(words)}</desc>' +
           svg[end:])
    return f'<figure class="mw-picture mw-wide" tabindex="0" role="group" aria-label="{_TITLE}">{svg}</figure>' + _in_words(lessons, marked)
