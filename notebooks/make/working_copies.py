"""Copies of the notebooks for a reader to work in. Jupyter saves what a cell printed into the file that is open, and the
notebooks of the project have to stay as their lessons make them."""

import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "sim/classroom"))
from whole_file import write_whole  # noqa: E402


def _sources(path):
    """What the cells say, without what they printed; None for a file that is not a notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (OSError, ValueError, KeyError, TypeError):
        return None


class WorkingCopies:
    """The folder of the copies, and beside it the notebooks as they were copied, which tell what the reader has changed."""

    def __init__(self, folder):
        self.folder = folder / "notebooks"
        self.copied = folder / "as_copied"
        self.made = []  # by put_in_place

    def put_aside(self):
        """Renames the folder of the copies; returns its new name, or None where there was none."""
        if not self.folder.exists():
            return None
        number = 1
        while (aside := self.folder.with_name(f"notebooks.{number}")).exists():
            number += 1
        os.rename(self.folder, aside)
        return aside

    def put_in_place(self, originals):
        """Copies each notebook that has no copy yet, or whose copy says what was copied while its lesson has changed since.
        Returns the names of those that the reader has changed and whose lesson has changed as well; they stay."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.copied.mkdir(parents=True, exist_ok=True)
        behind = []
        for original in originals:
            copy, before = self.folder / original.name, self.copied / original.name
            if copy.exists() and before.exists():
                if before.read_bytes() == original.read_bytes():
                    continue
                if _sources(copy) != _sources(before):
                    behind.append(original.name)
                    continue
            elif copy.exists() and _sources(copy) != _sources(original):  # nothing tells who has changed it
                behind.append(original.name)
                continue
            text = original.read_text(encoding="utf-8")
            write_whole(before, text)
            write_whole(copy, text)
            self.made.append(copy)
        return behind
