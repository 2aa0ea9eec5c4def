#!/usr/bin/env python3
"""Compares the cells of the notebooks that are kept with those that their lessons make now. What the cells put out is compared
when they are executed (run_notebook.py --compare).

    check_drift.py PROJECT [NOTEBOOKS]
"""

import sys
from pathlib import Path


def differences(kept, made):
    """A sentence for each notebook that is not as it would be made now; `kept` and `made` map file names to bytes."""
    for name in sorted(set(kept) | set(made)):
        if name not in kept:
            yield f"{name} is missing"
        elif name not in made:
            yield f"{name} belongs to no lesson"
        elif kept[name] != made[name]:
            ours, theirs = kept[name].split(b"\n"), made[name].split(b"\n")
            line = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            text = [lines[line].decode("utf-8", "replace") if line < len(lines) else "(no such line)" for lines in (ours, theirs)]
            yield f"{name} is not what its lesson makes; line {line + 1}\n    has      {text[0]}\n    should be {text[1]}"


def main():
    project = Path(sys.argv[1]).resolve()
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else project / "notebooks"
    sys.path += [str(project / "notebooks/make"), str(project / "docs/make")]
    from lesson_source import LessonError
    from make_notebooks import all_notebooks
    from notebook_file import as_jupyter_writes, read, without_outputs

    try:
        made = {name: text.encode() for name, text in all_notebooks(project).items()}
    except LessonError as error:
        sys.exit(f"check_drift: {error}")
    kept = {path.name: as_jupyter_writes(without_outputs(read(path))).encode() for path in folder.glob("*.ipynb")}
    found = list(differences(kept, made))
    for sentence in found:
        print(sentence)
    print(f"{len(made)} notebooks, {len(found)} of them drifted" + ("; ./walk notebooks makes them anew" if found else ""))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
