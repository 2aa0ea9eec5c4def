#!/usr/bin/env python3
"""Tries the figures of the built site in a real browser: what they show is what the programs print.

    figures_test.py ROOT SITE BIN

At the grids of a lesson's own tables a figure shows the table's numbers, and its bars are as long as they say; sliders and elements
are moved by keyboard and by pointer; a grid that a layout refuses has the program's own sentence. Everything can be read without
scripts and on paper, in light and dark, at 1400, 1000 and 390 pixels. On copies of the site in which one of these things is broken, the
same checks have to fail.
"""

import sys
from pathlib import Path

from broken_copies import not_noticed
from figure_looks import SIZES, Looks
from headless_browser import headless_browser, set_size

WITH_FIGURE = ["05", "06", "09", "13", "14", "15"]
DRAWN = ["00", "01", "03", "04", "08", "12", "17", "21", "22", "23"]


def replaced(old, new):
    return lambda text: text.replace(old, new)


# What is broken, in which file and how, by which check it has to be noticed, and a word of what that check says.
BROKEN = [
    ("a number that nobody computed", "lesson_13_*.html", replaced('"145,464","1.00"', '"145,465","1.00"'), Looks.byte_ledger, "145,465"),
    ("dp and tp in the wrong order", "bars.js", replaced("at * choice.values.length + choice", "at + 7 * choice"), Looks.memory, "should be"),
    ("numbers that stay where a grid is refused", "bars.js", replaced('toggle("mwf-gone", refused)', 'toggle("mwf-gone", false)'),
     Looks.byte_ledger, "shows numbers of a grid that is refused"),
    ("bars of one length", "bars.js", replaced("(value / most)", "(1 / 4)"), Looks.memory, "should be drawn as"),
    ("an element that lights up where it is not", "memory.js", replaced("each.dataset.value === value", "each.dataset.at === cell.dataset.at"),
     Looks.memory_order, "lights up"),
    ("dots that stay", "curves.js", replaced("y(values[step]).toFixed(1)", "y(0).toFixed(1)"), Looks.curves, "the dots lie"),
    ("controls without scripts", "figures.css", replaced("html:not(.mwf-scripts) .mwf-controls { display: none; }", ""),
     lambda figures: figures.without_scripts(["13"]), "has controls without scripts"),
]


def main(root, site, programs):
    with headless_browser() as browser:
        set_size(browser, *SIZES[0])
        figures = Looks(browser, root, site, programs)
        for check in (Looks.byte_ledger, Looks.memory, Looks.sharding, Looks.full_step, Looks.memory_order, Looks.curves,
                      Looks.reduced_motion):
            check(figures)
        figures.without_scripts(WITH_FIGURE)
        figures.looks(WITH_FIGURE + DRAWN)
        faults = figures.faults

        def look(folder, check):
            broken = Looks(browser, root, folder, programs)
            check(broken)
            set_size(browser, *SIZES[0])
            browser.get("about:blank")
            return broken.faults

        faults += not_noticed(site, BROKEN, look)
    for sentence in faults:
        print(sentence)
    print(f"{len(WITH_FIGURE)} figures, {figures.compared} comparisons with what programs print, {len(BROKEN)} broken copies: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or not (Path(sys.argv[2]) / "index.html").exists():
        sys.exit("figures_test.py takes the root, the folder of the built site and that of the programs")
    sys.exit(main(*(Path(argument).resolve() for argument in sys.argv[1:])))
