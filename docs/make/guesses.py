"""Predict first: in front of what a lesson prints, and of its answer, the reader is asked what to expect; both are folded until then.
The number that is asked for, and compared with, is in the lesson's output."""

import html
import re

_ROW = re.compile(r"^(?:cost)?\s+(?P<what>nothing|\w+ over .*?\S)\s+(?:every rank|ranks? 0\b[^ ]*(?: \d\S*)*|0 (?:and|\+) \d+ more)\s+"
                  r"(?P<bytes>[\d,]+) B\s+(?P=bytes) B\s", re.MULTILINE)
_CALL = re.compile(r"(?P<name>\w+) over (?P<group>.*?), (?P<type>[\w ]+?)(?: × (?P<calls>[\d,]+))?$")


def bytes_asked(expected):
    """(question, bytes) about the first row of the table of costs that counts what rank 0 sends, or None."""
    for row in _ROW.finditer(expected):
        what, count = row["what"], row["bytes"].replace(",", "")
        if what == "nothing":
            return "How many bytes will rank 0 send in this lesson?", count
        call = _CALL.match(what)
        if call and call["name"] != "recv":
            times = f"{call['calls']} calls" if call["calls"] else "one call"
            return f"How many bytes will rank 0 send in {times} of {call['name']} over {call['group']}?", count
    return None


def _reveal(identifier, summary, hidden):
    return f'<details class="mw-reveal" id="{identifier}"><summary>{summary}</summary>\n{hidden}\n</details>'


def before_output(lesson, expected, output):
    """What a lesson prints, folded, with the question in front of it."""
    asked = bytes_asked(expected)
    if asked:
        question, count = asked
        rough = " A rough number will do." if int(count) > 10_000 else ""
        form = (f'<p><label for="{lesson.name}_bytes">Predict first. {html.escape(question)}{rough}</label></p>'
                f'<p><input id="{lesson.name}_bytes" data-guess="bytes" data-is="{count}" inputmode="numeric" autocomplete="off" size="12"/> B '
                '<output class="mw-verdict"></output></p>')
    else:
        form = "<p>Predict first: what does each rank hold at the end, and which line says that it is right?</p>"
    return f'<div class="mw-guess">{form}</div>' + _reveal(f"{lesson.name}_reveal_output", "Show what it prints", output)


def before_answer(lesson, question, answer):
    """The answer, folded, with room for the reader's own."""
    form = (f'<p><label for="{lesson.name}_words">Answer first, in a sentence of your own: {html.escape(question, quote=False)}</label></p>'
            f'<p><textarea id="{lesson.name}_words" data-guess="words" rows="3"></textarea></p>')
    return f'<div class="mw-guess">{form}</div>' + _reveal(f"{lesson.name}_reveal_answer", "Show the answer", answer)
