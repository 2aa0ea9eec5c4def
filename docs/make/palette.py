"""The colours of sim/replay/palette.hpp, the one place where they stand."""

import re
from pathlib import Path

from lesson_source import LessonError


def palette(root):
    """{"p0", … of parameters, "r0", … of ranks, "paper", "ink", …: (on a light page, on a dark page)}."""
    source = (Path(root) / "sim/replay/palette.hpp").read_text(encoding="utf-8")
    pairs = {}
    for name, letter in (("kParameterColours", "p"), ("kRankColours", "r")):
        table = re.search(rf"{name}\[\w+\] = \{{(.*?)\n\}};", source, re.DOTALL)
        for at, pair in enumerate(re.findall(r'\{"(#\w+)", "(#\w+)"\}', table[1] if table else "")):
            pairs[f"{letter}{at}"] = pair
    for name in ("Paper", "Ink", "Quiet", "Padding", "Hatch"):
        found = re.search(rf'Colour k{name} = \{{"(#\w+)", "(#\w+)"\}}', source)
        if found:
            pairs[name.lower()] = found.groups()
    if len(pairs) != 21:
        raise LessonError(f"sim/replay/palette.hpp should have 21 colours, and {len(pairs)} are found there")
    return pairs
