#!/usr/bin/env python3
"""Writes the texts of lesson 20: the prose of the lessons, without code, drawings and tables, and some of their code.

    python3 lessons/lesson_20_pretrain/make_text.py prose > lessons/lesson_20_pretrain/prose.txt
    python3 lessons/lesson_20_pretrain/make_text.py code > lessons/lesson_20_pretrain/code.txt

It was run once. The files are kept as they are, whatever becomes of the lessons, so that losses stay what they are.
"""

import pathlib
import re
import sys

MOST_BYTES = {"prose": 50_000, "code": 6_000}
LESSONS = pathlib.Path(__file__).resolve().parent.parent / "lessons"
ASCII = {"–": "-", "·": "*", "×": "x", "√": "root ", "₂": "2", "₁": "1", "²": "^2", "→": "to", "…": "...", "“": '"',
         "”": '"', "’": "'", "φ": "phi", "β": "beta", "σ": "sigma", "μ": "mu", "ε": "epsilon", "≤": "<=", "−": "-"}


def paragraphs(source):
    """The paragraphs of prose in a lesson's source, each in one line."""
    lines = []
    for line in source.splitlines() + [""]:
        text = re.match(r" *// ?(.*)", line)
        if text and text[1] and not text[1].startswith(("    ", "#", "|")):
            lines.append(text[1].strip())
        elif lines:
            yield " ".join(lines)
            lines = []


def plain(text):
    """Without marks, and in ASCII."""
    text = re.sub(r"\[(\w+)\]", r"\1", text).replace("*", "").replace("`", "")
    text = "".join(ASCII.get(letter, letter) for letter in text)
    return text if text.isascii() and len(text) > 60 else ""


def code(source):
    """Its lines of code, without comments and empty lines."""
    lines = [re.sub(r" *//.*", "", line) for line in source.splitlines()]
    return [line for line in lines if line.strip() and line.isascii() and not line.startswith("#")]


def main():
    kind = sys.argv[1]
    text = ""
    for source in sorted(LESSONS.glob("lesson_*/lesson_*.cpp")):
        if source.parent.name == "lesson_20_pretrain":
            continue
        found = source.read_text(encoding="utf-8")
        text += "".join(line + "\n" for line in (code(found) if kind == "code" else map(plain, paragraphs(found))) if line)
    end = text[: MOST_BYTES[kind]].rindex("\n") + 1
    print(text[:end], end="")


if __name__ == "__main__":
    main()
