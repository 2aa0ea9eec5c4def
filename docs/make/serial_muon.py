#!/usr/bin/env python3
"""Muon in one process: the function muon_step of src/optim/serial_muon.cpp, taken from there and not typed again.

    docs/make/serial_muon.py        prints it for README.md

Every line that computes something ends with one of two marks, which say how much of the matrix it needs.
"""

import html
import re
import sys
from pathlib import Path

from lesson_source import LessonError

SOURCE = "src/optim/serial_muon.cpp"
ANY_SHARD, WHOLE = "elementwise: any shard will do", "needs the whole matrix"
_MARK = re.compile(rf"// ({re.escape(ANY_SHARD)}|{re.escape(WHOLE)})$")
_MOST_LINES = 30  # one screen
# What assigns to an element or comes out of Newton–Schulz computes; the rest gives names to settings and makes room.
_COMPUTES = re.compile(r"^\s*(?:\w+\(i, j\) [-+*]?= |if \(bf16\) |.*\bnewton_schulz\()")


def serial_muon(root):
    """The lines of the function."""
    source = (Path(root) / SOURCE).read_text(encoding="utf-8")
    found = re.search(r"^void muon_step\(.*?^}$", source, re.MULTILINE | re.DOTALL)
    if not found:
        raise LessonError(f"{SOURCE} has no function muon_step, which the README and the start page begin with")
    lines = found.group(0).split("\n")
    if len(lines) > _MOST_LINES:
        raise LessonError(f"{SOURCE}: muon_step has {len(lines)} lines; one screen has {_MOST_LINES}")
    for line in lines:
        if bool(_COMPUTES.match(line)) != bool(_MARK.search(line)):
            raise LessonError(f'{SOURCE}: a line that computes ends with the mark "// {ANY_SHARD}" or "// {WHOLE}", and no '
                              f"other line does: {line.strip()}")
    if sum(line.endswith(WHOLE) for line in lines) != 1:
        raise LessonError(f'{SOURCE}: exactly one line of muon_step is marked "// {WHOLE}": that is what the page says')
    return lines


def as_html(root):
    """The function as a code block whose marks can be seen from afar."""
    shown = []
    for line in serial_muon(root):
        mark = _MARK.search(line)
        kind = {None: "", ANY_SHARD: "mw-any-shard", WHOLE: "mw-whole"}[mark.group(1) if mark else None]
        text = html.escape(line, quote=False)
        text = re.sub(r"(//.*)$", r"<i>\1</i>", text)
        shown.append(f'<span class="{kind}">{text}</span>' if kind else text)
    return ('<pre class="mw-output mw-serial" tabindex="0" role="region" aria-label="Muon in one process">' +
            "\n".join(shown) + "</pre>" +
            f'<p class="mw-legend"><b class="mw-good">❙</b> {ANY_SHARD} · <b class="mw-bad">❙</b> {WHOLE}</p>')


if __name__ == "__main__":
    try:
        print("\n".join(serial_muon(Path(__file__).resolve().parents[2])))
    except LessonError as error:
        print(f"serial_muon.py: {error}", file=sys.stderr)
        sys.exit(1)
