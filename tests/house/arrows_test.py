#!/usr/bin/env python3
"""Which file includes which: arrows between rooms point one way, what belongs to a lesson stays with it, and no two units include each
other. A room is a folder of src, sim or tools; a unit is a header with the .cpp beside it.

    arrows_test.py SOURCE BUILD

That an include against an arrow does not even build is asked of one room, with the compiler's own command line.
"""

import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh", ".inc"}
# What each of these folders may include of the others.
SEES = {"src": {"src"}, "sim": {"src", "sim"}, "tools": {"src", "sim", "tools"}}
faults = []


def files():
    for top in ("src", "sim", "tools", "lessons", "tests", "docs", "notebooks"):
        yield from (path for path in sorted((SOURCE / top).rglob("*")) if path.suffix in SUFFIXES)


def arrows():
    """{file: files of the project that it includes}, by their paths from the root."""
    for path in files():
        text = path.read_text(encoding="utf-8")
        yield str(path.relative_to(SOURCE)), [name for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE) if (SOURCE / name).is_file()]


def is_test(name):
    return name.startswith("tests/") or "/tests/" in name


def circle(graph):
    """One circle of a graph as a list that ends where it begins, or None."""
    done = set()

    def visit(node, way):
        if node in way:
            return way[way.index(node):] + [node]
        if node in done:
            return None
        found = next(filter(None, (visit(each, way + [node]) for each in sorted(graph.get(node, ())))), None)
        done.add(node)
        return found

    return next(filter(None, (visit(node, []) for node in sorted(graph))), None)


def check(included):
    """A sentence for each include that should not be there."""
    rooms, units = defaultdict(set), defaultdict(set)
    for name, others in included.items():
        top, room, unit = name.split("/")[0], str(Path(name).parent), str(Path(name).with_suffix(""))
        for other in others:
            its_room = str(Path(other).parent)
            lesson = re.match(r"lessons/[^/]+/", other)
            if lesson and not name.startswith(lesson[0]):
                yield f"{name} includes {other}, which is of that lesson alone"
            if is_test(name):
                continue
            if other.split("/")[0] not in SEES.get(top, {other.split("/")[0]}):
                yield f"{name} includes {other}; {top} may include only what is in {' and '.join(sorted(SEES[top]))}"
            if top in SEES and its_room != room:
                rooms[room].add(its_room)
            if str(Path(other).with_suffix("")) != unit:
                units[unit].add(str(Path(other).with_suffix("")))
    if found := circle(rooms):
        yield f"rooms include each other: {' → '.join(found)}"
    for unit, others in units.items():
        for other in sorted(others):
            if unit < other and unit in units.get(other, ()):
                yield f"{unit} and {other} include each other"


included = dict(arrows())
if len(included) < 300 or sum(map(len, included.values())) < 1000:
    faults.append(f"only {len(included)} files were read")
faults += check(included)

# A check that can't fail is a defect.
for planted, words in (({"src/a/x.hpp": ["sim/b/y.hpp"]}, "may include only"), ({"src/x.cpp": ["lessons/lesson_05_a/x.hpp"]}, "of that lesson alone"),
                       ({"src/a/x.hpp": ["src/b/y.hpp"], "src/b/z.cpp": ["src/a/w.hpp"]}, "rooms include each other: src/a → src/b → src/a"),
                       ({"src/a/x.cpp": ["src/a/y.hpp"], "src/a/y.cpp": ["src/a/x.hpp"]}, "src/a/x and src/a/y include each other")):
    if not any(words in fault for fault in check(planted)):
        faults.append(f"nothing is said of {planted}")

# An include with the arrow builds; the same against it finds no file.
entry = next(entry for entry in json.loads((BUILD / "compile_commands.json").read_text()) if "muonwalk_layout.dir" in entry["command"])
words = shlex.split(entry["command"])
compiler = [word for word in words[:words.index("-o")] if not word.startswith("-M") and not word.endswith((".o", ".o.d"))]
for header, builds in (("src/layout/grid.hpp", True), ("src/optim/steps.hpp", False)):
    done = subprocess.run([*compiler, "-E", "-x", "c++", "-"], input=f'#include "{header}"\n', cwd=BUILD, capture_output=True, text=True)
    if (done.returncode == 0) != builds or (not builds and "No such file" not in done.stderr and "not found" not in done.stderr):
        faults.append(f"a file of src/layout that includes {header} should{'' if builds else ' not'} build: {done.stderr[-300:]}")

print("\n".join(f"FAILED  {fault}" for fault in faults) or f"{len(included)} files")
sys.exit(1 if faults else 0)
