"""The figures of the lessons' pages: where each stands, and its HTML as it is read without scripts. What is shown comes from programs
(muonwalk-figures, a recording); the scripts of docs/figures let the reader choose what of it."""

import html
import json

import drawings
from doxygen_filter import section_id
from lesson_source import LessonError
from memory_order import memory_order
from page_data import script_json
from palette import palette
from singular_values import singular_values

# The section of each lesson before which its figure stands.
PLACES = {"05": "The reference", "06": "The cost", "09": "Redundant work", "13": "Three numbers", "14": "Models of real size",
          "15": "The cost"}
# In lesson 17 a digit in a drawing is a matrix that travels; everywhere else it is a rank.
_MATRICES_BY_DIGIT = {"17"}


def colours(root):
    """The palette of all pictures as properties, for light and for dark pages; and the hatching of padding."""
    pairs = palette(root)
    light, dark = ("".join(f"--mwf-{name}:{pair[scheme]};" for name, pair in pairs.items()) for scheme in (0, 1))
    return (f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{html:not(.light-mode){{{dark}}}}}</style>"
            '<svg class="mw-heard" aria-hidden="true" width="0" height="0"><defs><pattern id="mwd-hatch" width="5" height="5" '
            'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" class="mwd-ground"/>'
            '<path d="M0 0v5" class="mwd-stripe"/></pattern></defs></svg>')


# --- bars over dp and tp ------------------------------------------------------------------------------------------------------

def state_of(data, chosen):
    """The bars of a combination, or the sentence that says why there are none; the last choice runs fastest."""
    at = 0
    for choice, value in zip(data["choices"], chosen):
        at = at * len(choice["values"]) + choice["values"].index(value)
    return data["states"][at]


def longest(data):
    """{scale and what is chosen besides dp and tp: the longest bar on any grid}, so that bars of all grids can be compared."""
    most, others = {}, [""]
    for choice in data["choices"][2:]:
        others = [f"{other}|{value}" for other in others for value in choice["values"]]
    for at, state in enumerate(data["states"]):
        for row, bar in zip(data["rows"], state if isinstance(state, list) else []):
            key = row["scale"] + others[at % len(others)]
            most[key] = max(most.get(key, 0), sum(bar[0]))
    return most


def _control(number, choice):
    name, values = f"figure-{number}-{choice['name']}", choice["values"]
    start = values.index(choice["start"])
    words = html.escape(choice["words"], quote=False)
    if choice["name"] in ("dp", "tp"):
        return (f'<label for="{name}"><span>{words}: <output id="{name}-now" for="{name}">{choice["start"]}</output></span>'
                f'<input type="range" id="{name}" min="0" max="{len(values) - 1}" value="{start}" step="1" '
                f'aria-valuetext="{choice["start"]}"/></label>')
    options = "".join(f'<option{" selected" * (value == choice["start"])}>{html.escape(value, quote=False)}</option>' for value in values)
    return f'<label for="{name}"><span>{words}</span><select id="{name}">{options}</select></label>'


def _title(name):
    return f' title="{html.escape(name)}"' if name else ""


def _bar_row(data, row, bar, most):
    parts = "".join(f'<div class="mwf-part mwf-s{at}{" mwf-nothing" * (at >= len(bar[0]) or not bar[0][at])}" '
                    f'style="--share:{bar[0][at] / most if at < len(bar[0]) and most else 0:.5f}"{_title(name)}></div>'
                    for at, name in enumerate(data["series"]))
    cells = "".join(f'<td class="mwf-number" data-heading="{html.escape(heading)}">{html.escape(cell, quote=False)}</td>'
                    for heading, cell in zip(data["columns"], bar[1]))
    return f'<tr><th scope="row">{html.escape(row["name"], quote=False)}</th><td><div class="mwf-bar">{parts}</div></td>{cells}</tr>'


def bars(number, data):
    start = [choice["start"] for choice in data["choices"]]
    state, most = state_of(data, start), longest(data)
    if not isinstance(state, list):
        raise LessonError(f"the figure of lesson {number} begins with a grid that is refused: {state}")
    others = "".join(f"|{value}" for value in start[2:])
    room = max(sum(bar[0]) for bar in state) if data["each_by_itself"] else None
    rows = "".join(_bar_row(data, row, bar, room or most[row["scale"] + others]) for row, bar in zip(data["rows"], state))
    legend = "" if len(data["series"]) < 2 else '<ul class="mwf-legend">' + "".join(
        f'<li><span class="mwf-swatch mwf-s{at}"></span>{html.escape(name, quote=False)}</li>'
        for at, name in enumerate(data["series"]) if name) + "</ul>"
    headings = "".join(f'<th scope="col" class="mwf-number">{html.escape(heading, quote=False)}</th>' if heading else "<td></td>"
                       for heading in data["columns"])
    grid = " × ".join(f"{choice['name']} {choice['start']}" for choice in data["choices"][:2])
    return (f'<figure class="mw-figure mwf-bars-figure" id="figure-{number}" data-figure="figure-{number}-data">'
            f'<figcaption>{html.escape(data["title"], quote=False)}</figcaption><p>{html.escape(data["words"], quote=False)}</p>'
            f'<noscript><p>Shown is {grid}; with JavaScript, other grids can be chosen.</p></noscript>'
            f'<div class="mwf-controls">{"".join(_control(number, choice) for choice in data["choices"])}</div>{legend}'
            f'<table class="mwf-bars"><thead><tr><td class="mwf-names"></td><td></td>{headings}</tr></thead><tbody>{rows}</tbody></table>'
            f'<div class="mwf-refused" role="status"></div></figure>'
            + script_json(f"figure-{number}-data", {**data, "most": most}) + '<script src="bars.js"></script>')


# --- on a page ----------------------------------------------------------------------------------------------------------------

def _figure(lesson, recorded, folder):
    number = lesson.number
    if number == "05":
        return memory_order(recorded)
    data = json.loads((folder / f"{number}.json").read_text(encoding="utf-8"))
    if number == "06":
        return singular_values(data)
    return bars(number, data)


def complete(lesson, contents, recorded, folder):
    """The text of a lesson's page with its figure, and with its drawings drawn. `folder` has what the figures show."""
    root = lesson.path.parents[2]
    if lesson.number in PLACES:
        mark = f'<h1><a class="anchor" id="{section_id(lesson.name, PLACES[lesson.number])}"></a>'
        mark = mark if mark in contents else mark.replace("<h1>", "<h2>")
        if contents.count(mark) != 1:
            raise LessonError(f'{lesson.path}: has no section "{PLACES[lesson.number]}", before which its figure belongs; '
                              "docs/make/figures.py says where")
        contents = contents.replace(mark, _figure(lesson, recorded, folder) + mark)
    contents = drawings.with_drawings(contents, "parameter" if lesson.number in _MATRICES_BY_DIGIT else "rank")
    return colours(root) + contents
