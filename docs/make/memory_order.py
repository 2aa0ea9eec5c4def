"""The figure of lesson 05: where each element lies before the copy and after it. docs/figures/memory.js lights up what is pointed at;
what it needs to know is in data- attributes."""

import re

from lesson_source import LessonError

_SIDE, _PITCH, _LEFT, _TOP = 38, 42, 2, 34  # of a cell, from line to line, and where the first one stands


def _held(step, name, rank=0):
    found = [block for block in step["holds"][rank] if block["name"] == name]
    if len(found) != 1 or not found[0]["values"]:
        raise LessonError(f'the recording of lesson 05 should have the values of one "{name}" in the step "{step["title"]}"')
    return found[0]


def _number(value):
    return f"{value:g}"


def _marked(step, values):
    """The element that the lesson marks, as its step prints it."""
    found = re.search(r"★ down\S* = (\S+) at row", "\n".join(step["lines"]))
    if not found or found[1] not in map(_number, values):
        raise LessonError("the recording of lesson 05 should say where its marked element is after the copy")
    return found[1]


def _cell(at, value, rank, whole, words):
    """An element of a strip; `at` is where it lies there."""
    columns, place = whole["cols"], whole["values"].index(value)
    x, y = _LEFT + at % columns * _SIDE, _TOP + at // columns * _PITCH
    row, column = divmod(place, columns)
    label = f"{words} {at}: {_number(value)} of row {row}, column {column}, from tp {rank}"
    return (f'<g tabindex="{0 if at == 0 else -1}" role="button" data-value="{_number(value)}" data-at="{at}" data-from="{rank}" '
            f'data-row="{row}" data-column="{column}" aria-label="{label}"><rect x="{x + 2}" y="{y}" width="{_SIDE - 4}" '
            f'height="{_SIDE - 4}" rx="3" fill="var(--mwf-p{whole["tensor"] % 8})" stroke="var(--mwf-r{rank % 8})"/>'
            f'<text x="{x + _SIDE / 2:g}" y="{y + 22}" text-anchor="middle">{_number(value)}</text></g>')


def _strip(name, title, words, values, owner, whole):
    """A piece of memory in lines as long as a row of the matrix, with what its outlines say below it."""
    cells = "".join(_cell(at, value, owner[value], whole, words) for at, value in enumerate(values))
    high = _TOP + whole["rows"] * _PITCH + 30
    legend = "".join(f'<rect x="{_LEFT + 90 * rank}" y="{high - 17}" width="12" height="12" fill="none" stroke="var(--mwf-r{rank % 8})"/>'
                     f'<text class="mwf-words" x="{_LEFT + 20 + 90 * rank}" y="{high - 6}">from tp {rank}</text>'
                     for rank in sorted(set(owner.values())))
    return (f'<svg class="mwf-memory" data-strip="{name}" viewBox="0 0 {whole["cols"] * _SIDE + 2 * _LEFT} {high}" role="group" '
            f'aria-label="{title}"><text class="mwf-words" x="{_LEFT}" y="20">{title}</text>{cells}{legend}</svg>')


def memory_order(recorded):
    """Two strips of memory, a cell for each element: slices one behind the other as they arrive, and the matrix row by row."""
    first, arrived_step, copied_step = recorded["steps"][0], *recorded["steps"][2:4]
    arrived, whole = _held(arrived_step, "down, as it arrived")["values"], _held(copied_step, "down")
    owner = {value: rank for rank in range(len(first["holds"])) for value in _held(first, "down", rank)["values"]}
    if sorted(arrived) != sorted(whole["values"]) or len(set(arrived)) != len(arrived) or set(owner) != set(arrived):
        raise LessonError("the recording of lesson 05 should have each element once, before the copy and after it")
    before = _strip("arrived", f"as it arrived: {len(arrived)} elements in a row", "arrived as element", arrived, owner, whole)
    after = _strip("copied", f"after the copy: the matrix, {whole['rows']} × {whole['cols']}, row by row", "in the matrix, element",
                   whole["values"], owner, whole)
    return (f'<figure class="mw-figure mwf-memory-figure" id="figure-05" data-columns="{whole["cols"]}" '
            f'data-marked="{_marked(copied_step, whole["values"])}">'
            "<figcaption>Where each element lies, before and after the copy</figcaption><p>Memory has no rows: both strips are one line "
            f"of elements, cut here into lines of {whole['cols']}. Point at an element, or go through them with the arrow keys, to see both "
            "of its places. The one that lights up first is marked with ★ in what the lesson prints.</p>"
            f'<div class="mwf-plots">{before}{after}</div><div class="mwf-said" role="status"></div></figure>'
            '<script src="memory.js"></script>')
