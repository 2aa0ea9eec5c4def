"""The player's script: the files of docs/player as one, in the order in which they use each other."""

from pathlib import Path

from lesson_source import LessonError

_PARTS = ["words", "recording", "arrivals", "elements", "sentences", "drawing", "lanes", "arrows", "stage", "inspector", "code_pane",
          "follow", "player"]


def player_script(folder):
    """All of it. A file that is not in the list would be missed by nobody but the reader."""
    found = {path.stem for path in Path(folder).glob("*.js")}
    if found != set(_PARTS):
        raise LessonError(f"{folder} has the scripts {sorted(found)}, and docs/make/player_script.py lists {sorted(_PARTS)}")
    return "".join((Path(folder) / f"{part}.js").read_text(encoding="utf-8") for part in _PARTS)
