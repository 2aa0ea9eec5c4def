#!/usr/bin/env python3
"""No file of the project says what tests/house/refused_phrases.txt refuses: not in prose, comments, help or messages.

    english_test.py ROOT
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIST = "tests/house/refused_phrases.txt"
# What others wrote, what is data, and what is made from other files. The last three speak of the phrases themselves.
_LEFT_OUT = re.compile(r"^(third_party/|notebooks/lesson_|docs/theme/doxygen|LICENSE|docs/theme/LICENSE|tests/golden/|\.git/|build)|"
                       r"^tests/house/(refused_phrases\.txt|english_test\.py)$")
_TEXT = re.compile(r"\.(cpp|hpp|inc|md|dox|py|sh|txt|cmake|js|css|html|in|json|expected)$|(^|/)(walk|run|CMakeLists\.txt)$")
# What stands between two words of a sentence where a line ends: the quotes of a text, the signs of a comment.
_BREAK = re.compile(r'(?:\s*"?\\?\n\s*(?:///?<?|#|\*|")?\s*)|"\s+"|\s+')


def refused(root):
    """[(compiled, what to say instead)], as the list has them."""
    lines = [line for line in (Path(root) / LIST).read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")]
    return [(re.compile(phrase, re.IGNORECASE), instead) for phrase, instead in zip(lines[::2], lines[1::2])]


def joined(text):
    """The text with one blank wherever there is space or the end of a line, and for each character its line."""
    parts, lines, at, line = [], [], 0, 1
    for gap in _BREAK.finditer(text):
        parts += [text[at:gap.start()], " "]
        lines += [line] * (gap.start() - at + 1)
        line += gap.group(0).count("\n")
        at = gap.end()
    return "".join(parts) + text[at:], lines + [line] * (len(text) - at)


def files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 and listed.stdout else \
        [str(path.relative_to(root)) for path in sorted(Path(root).rglob("*")) if path.is_file()]
    return [name for name in names if _TEXT.search(name) and not _LEFT_OUT.match(name) and (Path(root) / name).is_file()]


def found(root):
    """A sentence for each phrase that is refused and there all the same."""
    phrases, sentences = refused(root), []
    for name in files(root):
        text, lines = joined((Path(root) / name).read_text(encoding="utf-8", errors="replace"))
        for phrase, instead in phrases:
            for match in phrase.finditer(text):
                sentences.append(f'{name}:{lines[match.start()]}: "{match.group(0)}"; say {instead}')
    return sentences


def plant():
    """Over the end of a line, in a comment, a text or Markdown."""
    text = "// It waits for\n// ever.\nint x;\nfail(\"it waits for \"\n     \"ever\");\n# It waits for\never.\n"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / LIST).parent.mkdir(parents=True)
        (Path(folder) / LIST).write_text((Path(sys.argv[1]) / LIST).read_text(encoding="utf-8"), encoding="utf-8")
        (Path(folder) / "planted.cpp").write_text(text, encoding="utf-8")
        return [sentence.split(": ")[0] for sentence in found(folder)] == ["planted.cpp:1", "planted.cpp:4", "planted.cpp:6"]


if __name__ == "__main__":
    wrong = found(sys.argv[1]) or ([] if plant() else ["a phrase that is planted is not found"])
    print("\n".join(wrong) or "nothing that is refused")
    sys.exit(1 if wrong else 0)
