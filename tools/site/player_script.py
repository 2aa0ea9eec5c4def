"""The player's script: the files of docs/player as one, in the order in which they use each other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lesson_source import LessonError  # noqa: E402

_PARTS = ["words", "recording", "arrivals", "elements", "sentences", "drawing", "lanes", "arrows", "stage", "inspector", "code_pane",
          "follow", "player"]


def player_script(folder):
    """All of it. A file that is not in the list would be missed by nobody but the reader."""
    found = {path.stem for path in Path(folder).glob("*.js")}
    if found != set(_PARTS):
        raise LessonError(f"{folder} has the scripts {sorted(found)}, and tools/site/player_script.py lists {sorted(_PARTS)}")
    return "".join((Path(folder) / f"{part}.js").read_text(encoding="utf-8") for part in _PARTS)
