"""The file of a notebook, and what its cells put out when they were executed."""

import json


def as_jupyter_writes(notebook):
    """The form that Jupyter itself writes, so that saving an unchanged notebook changes nothing."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


class Malformed(ValueError):
    """A file that is not a notebook: why, in a sentence."""


def _is_text(value):
    return isinstance(value, str) or isinstance(value, list) and all(isinstance(line, str) for line in value)


def _is_cell(cell):
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return False
    if cell["cell_type"] != "code":
        return True
    metadata, outputs = cell.get("metadata"), cell.get("outputs")
    return (_is_text(cell.get("source")) and isinstance(cell.get("id", ""), str) and isinstance(metadata, dict)
            and isinstance(metadata.get("tags", []), list) and isinstance(metadata.get("again", ""), str)
            and isinstance(outputs, list) and all(_is_output(output) for output in outputs))


def _is_output(output):
    return (isinstance(output, dict) and isinstance(output.get("output_type"), str) and _is_text(output.get("text", ""))
            and isinstance(output.get("data", {}), dict) and all(map(_is_text, output.get("data", {}).values())))


def read(path):
    """Throws Malformed for a file that is not a notebook, so that nobody has to look again at what it holds."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Malformed(f"{path} can't be read as a notebook: {getattr(error, 'strerror', None) or error}") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Malformed(f"{path} is not a notebook: it has no list of cells")
    for number, cell in enumerate(cells, start=1):
        if not _is_cell(cell):
            raise Malformed(f"{path} is not a notebook: its cell {number} is not what Jupyter writes")
    return notebook


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def is_once(cell):
    """The cell defines something, or shows something that has been seen: it runs once in a session."""
    return "once" in cell["metadata"].get("tags", ())


def begins_lesson(cell):
    return "begin" in cell["metadata"].get("tags", ())


def stream(text):
    """What a cell has printed, as notebooks keep it."""
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def shown(data):
    """What a cell has shown: texts by their MIME type."""
    return {"data": {kind: text.splitlines(keepends=True) for kind, text in data.items()}, "metadata": {},
            "output_type": "display_data"}


def with_outputs(notebook, outputs):
    """The notebook with these outputs, a list for each code cell in order."""
    for number, (cell, its_outputs) in enumerate(zip(code_cells(notebook), outputs), start=1):
        cell["execution_count"], cell["outputs"] = number, its_outputs
    return notebook


def without_outputs(notebook):
    for cell in code_cells(notebook):
        cell["execution_count"], cell["outputs"] = None, []
    return notebook


def joined(output):
    """An output with its texts in one piece: some keep them line by line, and some do not."""
    parts = {key: "".join(value) for key, value in output.get("data", {}).items()} or "".join(output.get("text", ""))
    return output["output_type"], output.get("name", ""), parts


def first_difference(kept, fresh):
    """What tells the outputs that a cell is kept with from fresh ones, as a sentence; empty where they are equal."""
    for number, (ours, theirs) in enumerate(zip(map(joined, kept), map(joined, fresh)), start=1):
        if ours == theirs:
            continue
        texts = [parts if isinstance(parts, str) else parts.get("text/plain", "") for _, _, parts in (ours, theirs)]
        lines = [text.split("\n") for text in texts]
        at = next((i for i, pair in enumerate(zip(*lines)) if pair[0] != pair[1]), min(map(len, lines)))
        ours, theirs = ((each[at] if at < len(each) else "(no such line)")[:200] for each in lines)
        return f"output {number}, line {at + 1}\n    is kept as {ours}\n    and is now {theirs}"
    if len(kept) != len(fresh):
        return f"{len(kept)} outputs are kept, and it has {len(fresh)}"
    return ""
