"""The glossary: docs/glossary.md as a list of words, and the links to it from the lessons' pages. The first time the prose of a
page uses a word, the word becomes a link; what the word means is also its tooltip."""

import html
import re
from pathlib import Path

from lesson_source import LessonError

FILE = "docs/glossary.md"
PAGE = "md_docs_glossary.html"
_ENTRY = re.compile(r"^- (\*\*[^\n]+?): (.+(?:\n  .+)*)", re.MULTILINE)
# Also ordinary words, with other meanings in between: explained, but never made links.
_ORDINARY = {"run", "step", "span", "plan"}
# Tags within which nothing becomes a link, and one piece of a page: a tag, or text.
_CLOSED = {"a", "h1", "h2", "h3", "pre", "summary", "svg", "nav", "script", "style", "figure", "div.fragment", "noscript"}
_PIECE = re.compile(r"<!--.*?-->|<[^>]*>|[^<]+", re.DOTALL)


def word_id(word):
    return "word_" + re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_")


class Glossary:
    def __init__(self, root):
        text = (Path(root) / FILE).read_text(encoding="utf-8")
        self.meaning = {}  # of each word, also of second names
        self.anchor = {}   # the id of its entry
        for names, meaning in _ENTRY.findall(text):
            words = re.findall(r"\*\*(.+?)\*\*", names)
            for word in words:
                if word in self.meaning:
                    raise LessonError(f'{FILE} explains "{word}" twice')
                self.meaning[word] = re.sub(r"[`*]", "", " ".join(meaning.split()))
                self.anchor[word] = word_id(words[0])
        if len(self.meaning) != text.count("**") // 2 or not self.meaning:
            raise LessonError(f'{FILE}: every entry has the form "- **word**: what it means", and nothing else is bold')
        if len(set(self.anchor.values())) != len(_ENTRY.findall(text)):
            raise LessonError(f"{FILE} has two entries with the same address")
        # Longest first: "TP slice" before "TP". A word in small letters may also begin a sentence, or be plural.
        words = sorted(set(self.meaning) - _ORDINARY, key=len, reverse=True)
        pattern = "|".join(f"(?:{self._first_letter(word)}{re.escape(word[1:])})" for word in words)
        self._word = re.compile(rf"(?<![\w.:/·-])({pattern})(e?s)?(?![\w/·-]|::|\(|\.\w)")

    @staticmethod
    def _first_letter(word):
        return f"[{word[0]}{word[0].upper()}]" if word[0].islower() else re.escape(word[0])

    def _named(self, shown):
        return shown if shown in self.meaning else shown[0].lower() + shown[1:]

    def link(self, contents):
        """`contents` is HTML; the first use of each word in its prose becomes a link."""
        seen, closed, parts = set(), [], []
        for piece in _PIECE.findall(contents):
            tag = re.match(r"<(/?)(\w+)", piece)
            if tag:
                name = tag.group(2)
                if not tag.group(1) and name in _CLOSED | {"div"} and not piece.endswith("/>"):
                    kept_out = name != "div" or re.search(r'class="(fragment|line|mw-question)', piece)
                    closed.append((name, bool(kept_out)))
                elif tag.group(1) and closed and closed[-1][0] == name:
                    closed.pop()
            elif not piece.startswith("<") and not any(kept_out for _, kept_out in closed):
                piece = self._word.sub(lambda match: self._linked(match, seen), piece)
            parts.append(piece)
        return "".join(parts)

    def _linked(self, match, seen):
        word = self._named(match.group(1))
        if self.anchor[word] in seen:
            return match.group(0)
        seen.add(self.anchor[word])
        return (f'<a class="mw-word" href="{PAGE}#{self.anchor[word]}" title="{html.escape(self.meaning[word])}">'
                f"{match.group(0)}</a>")

    def complete(self, contents):
        """The glossary's own page: every entry gets the place that links lead to."""
        marked, found = re.subn(r"<li>(?=<b>(.*?)</b>)", lambda match: f'<li id="{word_id(match.group(1))}">', contents)
        if found != len(set(self.anchor.values())):
            raise LessonError(f"{FILE} has {len(set(self.anchor.values()))} entries, but its page has {found}")
        return marked
