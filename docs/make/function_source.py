"""The definition of a function out of the sources."""

import re
from pathlib import Path


def _definition_at(lines, at):
    """The lines of the definition that begins at a line, or None where it is a declaration."""
    depth = 0
    for end in range(at, len(lines)):
        bare = re.sub(r'"(?:\\.|[^"\\])*"|//.*', "", lines[end])
        for letter in bare:
            depth += (letter in "(") - (letter in ")")
            if letter == ";" and depth == 0:
                return None
            if letter == "{" and depth == 0:
                if bare.rstrip().endswith("}"):
                    return lines[at:end + 1]
                close = next((line for line in range(end + 1, len(lines)) if lines[line].startswith("}")), None)
                return None if close is None else lines[at:close + 1]
    return None


def definitions(root, header, name):
    """[(file, [line, …]), …] of all functions of this name beside a header: in its .cpp first, then in other files of its room."""
    header = Path(root) / header
    own = header.with_suffix(".cpp")
    others = sorted(path for path in header.parent.glob("*.cpp") if path != own)
    begins = re.compile(rf"^(?![\s/#}}])(?!(?:return|using|namespace)\b).*?(?<![\w.:>]){name}\(")
    for files in ([header, own], others):
        found = []
        for path in files:
            lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
            for at, line in enumerate(lines):
                body = _definition_at(lines, at) if begins.match(line) else None
                if body is None:
                    continue
                while at and re.match(r"//|template", lines[at - 1]) and not lines[at - 1].startswith("///"):
                    at -= 1
                    body = [lines[at]] + body
                found.append((str(path.relative_to(root)), body))
        if found:
            return found
    return []
