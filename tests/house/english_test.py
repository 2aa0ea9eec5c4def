#!/usr/bin/env python3
"""No file of the project says what tests/house/refused_phrases.txt refuses: not in prose, comments, help or messages.

    english_test.py ROOT           looks through all files
    english_test.py ROOT plant     puts phrases into a copy, and sees that each of them is found
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
    """[(compiled, why, instead)], as the list has them."""
    text = "\n".join(line for line in (Path(root) / LIST).read_text(encoding="utf-8").split("\n") if not line.startswith("#"))
    entries = [part.split("\n") for part in re.split(r"\n\n+", text.strip())]
    for entry in entries:
        if len(entry) != 3:
            sys.exit(f'{LIST}: an entry has three lines, a phrase, why, and what to say instead, but one has {len(entry)}: {entry[0]}')
    return [(re.compile(phrase, re.IGNORECASE), why, instead) for phrase, why, instead in entries]


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
        for phrase, why, instead in phrases:
            for match in phrase.finditer(text):
                sentences.append(f'{name}:{lines[match.start()]}: "{match.group(0)}": {why}; say {instead}')
    return sentences


# Each has to be found in a comment, over the end of a line in a comment, in a text of two pieces, and in Markdown.
_PLANTED = [
    "prints a line a parameter with its bucket", "one file a rank", "a message of 4 KiB a rank, and more", "of any size, also none",
    "is none of the lesson's", "bytes that are none", "computed by the process that started the ranks and is none itself",
    "the table of costs has something to say", "what the calls that move should leave a rank with",
    "Write (−1) to the number of 1-bits", "no way of sending could do with fewer bytes", "the v for varying lengths",
    "the parent is no rank", "waits for ever", "an equal run of the whole buffer", "another shape than its parameter",
    "code belongs into src", "with so many threads", "this can not work", "tell of it where the code is", "all in all it is",
    "1 calls were predicted", "it is no member of it",
    "prints something else than it should", "takes a number from 0 on", "copies of the own piece",
    "a run that was well asked for", "another one for every piece", "recorded once a matrix",
    "1.3 GB of them a rank", "is none that a rank has wasted", "a group that has not this rank", "it may be at honest work",
    "its label and its place in the grid"]
_FINE = ["there is no rank that", "the ranks of a group a lesson names", "where there are none", "ten times a second", "a run of the program",
         "elements a rank holds", "so many bytes that nothing", "none of them", "4 KiB per rank", "11 calls were"]


def plant():
    faults = []
    ways = [lambda words: f"// It {' '.join(words)}.\n",
            lambda words: "/// It " + " ".join(words[:len(words) // 2]) + "\n/// " + " ".join(words[len(words) // 2:]) + ".\n",
            lambda words: f'  fail("it {" ".join(words[:-1])} "\n       "{words[-1]}");\n']
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / LIST).parent.mkdir(parents=True)
        (root / LIST).write_text((Path(sys.argv[1]) / LIST).read_text(encoding="utf-8"), encoding="utf-8")
        used = set()
        for phrase in _PLANTED:
            for at, way in enumerate(ways):
                (root / "planted.cpp").write_text("int x;\n\n" + way(phrase.split()), encoding="utf-8")
                caught = found(root)
                if not any(re.match(r"planted\.cpp:[34]: ", sentence) for sentence in caught):
                    faults.append(f'"{phrase}" is not found where it is written in way {at + 1}: {caught}')
                used |= {sentence.split('": ', 1)[1] for sentence in caught}
        (root / "planted.cpp").write_text("".join(f"// {phrase}.\n" for phrase in _FINE), encoding="utf-8")
        faults += [f"refused without need: {sentence}" for sentence in found(root)]
        for phrase, why, instead in refused(root):
            if f"{why}; say {instead}" not in used:
                faults.append(f"no planted phrase is caught by {phrase.pattern}; plant one")
        (root / "planted.cpp").unlink()
        for name in ("README.md", "walk", "docs/page.md", "tools/tool.py", "src/room.hpp", "src/CMakeLists.txt", "a/a.expected", "a/hints.txt"):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("# It waits for\n# ever.\n", encoding="utf-8")
            asked = subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True)
            if asked.returncode != 1 or f'{name}:1: "for ever"' not in asked.stdout:
                faults.append(f"what is planted in {name} is not refused: {asked.stdout}")
            path.unlink()
        if found(root):
            faults.append("something is found where nothing is planted")
    return faults


if __name__ == "__main__":
    wrong = plant() if sys.argv[2:] == ["plant"] else found(sys.argv[1])
    print("\n".join(wrong) if wrong else "nothing that is refused")
    sys.exit(1 if wrong else 0)
