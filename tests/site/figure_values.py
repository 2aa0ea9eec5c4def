"""The tables that lessons print, as numbers and words to compare figures with."""

import re


def find_expected(root, number):
    """The .expected of a lesson, what it prints by default."""
    found = [path for path in root.glob(f"lessons/lesson_{number}_*/lesson_{number}_*.expected") if path.name.count(".") == 1]
    if len(found) != 1:
        raise SystemExit(f"lesson {number} should have one .expected, and has {[path.name for path in found]}")
    return found[0]


class Table:
    def __init__(self, text):
        self.lines = text.split("\n")

    def below(self, heading, which):
        """[(first cell, other cells)] of the lines below the heading number `which`, counted from 1, as long as they have numbers, as
        many as the first one. Cells are two blanks apart; single blanks belong to a cell."""
        starts = [at for at, line in enumerate(self.lines) if line.startswith(heading)]
        if len(starts) < which:
            raise SystemExit(f'there should be {which} tables with the heading "{heading}", and there are {len(starts)}')
        found = []
        for line in self.lines[starts[which - 1] + 1:]:
            cells = re.split(r" {2,}", line.strip())
            if len(cells) < 2 or not re.match(r"[\d–]", cells[1]) or (found and len(cells) != len(found[0][1]) + 1):
                break
            found.append((cells[0], cells[1:]))
        return found
