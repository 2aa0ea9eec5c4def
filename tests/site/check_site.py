#!/usr/bin/env python3
"""Holds the built site to what a reader relies on: every link leads somewhere, nothing is loaded from a network, and each lesson
has its page with everything on it.

    check_site.py ROOT SITE

Prints one line for each thing that is wrong, and fails if there is any. It reads the lessons' files anew and shares no code
with what makes the pages, but for the list of lessons.
"""

import json
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_HEAVIEST = 300_000  # bytes of a lesson's page


@dataclass
class Element:
    tag: str
    attributes: dict
    parts: list = field(default_factory=list)  # texts and elements

    @property
    def text(self):
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self):
        yield self
        for part in self.parts:
            if isinstance(part, Element):
                yield from part.all()

    def find(self, tag=None, **attributes):
        """Elements of this tag with these attributes; for `cls`, one of the classes."""
        cls = attributes.pop("cls", None)
        return [element for element in self.all()
                if (tag is None or element.tag == tag)
                and (cls is None or cls in (element.attributes.get("class") or "").split())
                and all(element.attributes.get(key) == value for key, value in attributes.items())]


class Page(HTMLParser):
    """One page as a tree."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.name = path.name
        self.root = Element("page", {})
        self._open = [self.root]
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.ids = {element.attributes[key] for element in self.root.all() for key in ("id", "name")
                    if element.attributes.get(key)}

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs))
        self._open[-1].parts.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self._open[-1].parts.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        for at in range(len(self._open) - 1, 0, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return

    def handle_data(self, data):
        self._open[-1].parts.append(data)


def squeezed(text):
    return " ".join(text.split())


class Site:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.pages = {path.name: Page(path) for path in sorted(self.folder.glob("*.html"))}
        self.problems = []

    def say(self, where, what):
        self.problems.append(f"{where}: {what}")

    # --- links and what is loaded ---------------------------------------------------------------------------------------

    def check_link(self, page, href):
        if re.match(r"(https?|mailto|javascript):", href):
            if href[-1] in ".,:;":
                self.say(page.name, f'links to "{href}", with the punctuation of the sentence in the address')
            return
        path, _, anchor = unquote(href).partition("#")
        target = page.name if path == "" else path
        if not (self.folder / target).exists():
            self.say(page.name, f'links to "{href}", but there is no such file')
        elif anchor and target in self.pages and anchor not in self.pages[target].ids:
            self.say(page.name, f'links to "{href}", but {target} has no such place')

    def check_loaded(self, where, address):
        if re.match(r"(https?:)?//", address):
            self.say(where, f'loads "{address}" from a network')
        elif not address.startswith(("data:", "javascript:")) and not (self.folder / unquote(address.split("?")[0])).exists():
            self.say(where, f'loads "{address}", which does not exist')

    def check_links(self):
        for page in self.pages.values():
            for element in page.root.all():
                attributes = element.attributes
                if element.tag in ("a", "area") and attributes.get("href"):
                    self.check_link(page, attributes["href"])
                if element.tag == "link" and attributes.get("href"):
                    self.check_loaded(page.name, attributes["href"])
                if attributes.get("src"):
                    self.check_loaded(page.name, attributes["src"])
            ids = [element.attributes["id"] for element in page.root.all() if element.attributes.get("id")]
            for twice in sorted({name for name in ids if ids.count(name) > 1}):
                self.say(page.name, f'has the id "{twice}" more than once')
        for sheet in self.folder.glob("*.css"):
            text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
            for address in re.findall(r"url\(\s*['\"]?([^'\")]+)", text) + re.findall(r"@import\s+['\"]([^'\"]+)", text):
                self.check_loaded(sheet.name, address)

    def check_frames(self):
        """Every page says its language, has one first heading, and its first link skips the navigation."""
        for page in self.pages.values():
            languages = [element.attributes.get("lang") for element in page.root.find("html")]
            if languages != ["en"]:
                self.say(page.name, f"should say that its language is English, and says {languages}")
            headings = [squeezed(element.text) for element in page.root.find("h1")]
            if len(headings) != 1 or not headings[0]:
                self.say(page.name, f"should have one first heading, and has {headings}")
            links = page.root.find("a")
            target = links[0].attributes.get("href", "") if links else ""
            if target != "#doc-content" or not page.root.find(id="doc-content", tabindex="-1"):
                self.say(page.name, f'should begin with a link that skips the navigation, and begins with "{target}"')

    def check_weight(self, page):
        """A lesson's page, without the scripts, style sheets and pictures that it loads."""
        size = (self.folder / page.name).stat().st_size
        if size > _HEAVIEST:
            self.say(page.name, f"has {size:,} bytes, and may have {_HEAVIEST:,}")

    def check_code(self):
        """Code that a reader may copy: as it is typed, with nothing left to guess."""
        for page in self.pages.values():
            for code in page.root.find("code") + page.root.find("pre"):
                if re.search(r"(?<!\S)\\--\w", code.text):
                    self.say(page.name, f'shows a backslash before an option: "{squeezed(code.text)[:60]}"')
                if re.search(r"git clone\s+[^\w./]", code.text):
                    self.say(page.name, "says git clone without a word for the address that can be typed")

    # --- lessons --------------------------------------------------------------------------------------------------------

    def check_lessons(self, root):
        root = Path(root)
        listed = (root / "lessons/CMakeLists.txt").read_text(encoding="utf-8")
        names = re.findall(r"^add_lesson\((lesson_\w+)", listed, re.MULTILINE)
        if not names:
            self.say("lessons/CMakeLists.txt", "names no lesson")
        for at, name in enumerate(names):
            page = self.pages.get(f"{name}.html")
            if page is None:
                self.say(name, "has no page")
                continue
            files = [root / "lessons" / name / f"{name}{ending}" for ending in (".expected", ".bugs.expected")]
            if not all(file.exists() for file in files):
                self.say(name, "lacks its .expected or its .bugs.expected; BLESS=1 in the environment of its tests writes them")
                continue
            expected, bugs = (file.read_text(encoding="utf-8") for file in files)
            on_gpus = root / "lessons" / name / f"{name}.nccl.expected"
            self.check_words(page, expected, on_gpus.read_text(encoding="utf-8") if on_gpus.exists() else None)
            self.check_bugs(page, name, bugs)
            self.check_pictures(page, name, expected)
            self.check_neighbours(page, names, at)
            self.check_glossary(page)
            self.check_weight(page)
        self.check_start(root, names)

    def paragraph(self, page, expected, label):
        match = re.search(rf"^{label}: (.*(?:\n  .*)*)", expected, re.MULTILINE)
        if not match:
            self.say(page.name, f'the .expected has no "{label}: "')
            return None
        return squeezed(match.group(1))

    def check_words(self, page, expected, nccl=None):
        for label, cls in (("Question", "mw-question"), ("Answer", "mw-answer")):
            wanted = self.paragraph(page, expected, label)
            shown = [squeezed(element.text).removeprefix(label + " ") for element in page.root.find(cls=cls)]
            shown = [text.removeprefix(label) for text in shown]
            if wanted is not None and shown != [wanted]:
                self.say(page.name, f"should show the {label.lower()} of the .expected once, but shows {shown}")
        outputs = [element.text for element in page.root.find("pre", cls="mw-output")
                   if element.attributes.get("aria-label") == "What the lesson prints"]
        if outputs != [expected]:
            self.say(page.name, "does not show the .expected as the lesson's output")
        on_gpus = [element.find("pre", cls="mw-output")[0].text for element in page.root.find("details", cls="mw-nccl")]
        if on_gpus != ([] if nccl is None else [nccl]):
            self.say(page.name, "does not show its .nccl.expected as the output over NCCL")
        if on_gpus and "No GPU has printed what follows" not in page.root.text:
            self.say(page.name, "does not say above its output over NCCL that stand-ins printed it")
        for kind, cls, wanted in (("hint", "mw-hint", 3), ("answer", "mw-reply", 3)):
            folds = page.root.find("details", cls=cls)
            if len(folds) != wanted or any(len(squeezed(fold.text)) < len(kind) + 10 for fold in folds):
                self.say(page.name, f"should have {wanted} {kind}s that open on a click, but has {len(folds)}")
            if any("open" in fold.attributes for fold in folds):
                self.say(page.name, f"has {'an' if kind == 'answer' else 'a'} {kind} that is open from the start")
        if any("Answer:" in item.text or "Hint:" in item.text for item in page.root.find("li")):
            self.say(page.name, "shows a hint or an answer that is not folded away")
        if any(item.find("div", cls="fragment") for item in page.root.find("li")):
            self.say(page.name, "has code inside of a list; end the prose above that code with a paragraph")
        sections = [squeezed(element.text) for element in page.root.find("h2")]
        order = ["The idea", "The reference", "The steps", "The cost", "What it prints", "Planted bugs", "Exercises", "Answer"]
        if [section for section in sections if section in order] != order or sections[-1] != "Answer":
            self.say(page.name, f"has its sections in another order: {sections}")

    def check_bugs(self, page, name, bugs):
        wanted = {}
        for part in bugs.rstrip("\n").split("\n\n")[1:]:
            heading, _, output = part.partition("\n")
            wanted[heading.removeprefix("bug ").split(":")[0]] = output + "\n"
        shown = {}
        for element in page.root.find("details", cls="mw-bug"):
            output = element.find("pre", cls="mw-output")
            bug = (element.attributes.get("id") or "").removeprefix(f"{name}_bug_")
            shown[bug] = output[0].text if output else ""
        if not wanted or shown != wanted:
            different = sorted(bug for bug in wanted.keys() | shown.keys() if wanted.get(bug) != shown.get(bug))
            self.say(page.name, f"does not show what its planted bugs print, as .bugs.expected has it: {different}")

    def data(self, page, identifier):
        scripts = page.root.find("script", id=identifier)
        try:
            return json.loads(scripts[0].text)
        except (IndexError, ValueError):
            self.say(page.name, f"has no readable data {identifier} for its player")
            return None

    def check_pictures(self, page, name, expected):
        number = name.split("_")[1]
        steps = self.check_player(page, number, expected)
        if not steps:
            self.say(page.name, "has no step for its player")
        graphs = page.root.find("svg", cls="mw-graph")
        here = [squeezed(node.text) for graph in graphs for node in graph.find("g", cls="mw-here")]
        if len(here) != 1 or not here[0].startswith(number):
            self.say(page.name, f"should have one picture of what builds on what with {number} marked, but has {here}")

    def check_player(self, page, number, expected):
        players = page.root.find("div", cls="muonwalk-player")
        if [(p.attributes.get("data-recording"), p.attributes.get("data-code")) for p in players] != [
                (f"recording-{number}", f"code-{number}")]:
            self.say(page.name, "should have one player with its recording and its code")
        recording, code = self.data(page, f"recording-{number}"), self.data(page, f"code-{number}")
        if recording is None or code is None:
            return 0
        printed = set(expected.split("\n"))
        lines = recording["before"] + recording["after"] + [line for step in recording["steps"] for line in step["lines"]]
        # A toy prints tables of its own, below the heading of the lesson.
        for line in recording["before"][:1] if any("real" in step for step in recording["steps"]) else lines:
            if line not in printed:
                self.say(page.name, f'its recording has a line that the lesson does not print: "{line}"')
                break
        if not re.search(r'The idea</h2>\s*<div class="muonwalk-player"', page.source):
            self.say(page.name, "should have its player first under The idea")
        numbers = [step["number"] for step in recording["steps"]]
        self.check_player_code(page, numbers, code)
        self.check_marks(page, numbers)
        return len(numbers)

    def check_player_code(self, page, numbers, code):
        """The code of the player: each step has some, of lines that are there, and each phase has lines of its own."""
        lines = [source["html"].count('<div class="line">') for source in code["sources"]]
        if [part["step"] for part in code["steps"]] != numbers or not all(part["shown"] for part in code["steps"]) or not all(lines):
            self.say(page.name, "its player lacks the code of a step")
        shown = [entry for part in code["steps"] for entry in part["shown"]]
        if any(not 0 <= line < lines[entry["source"]] for entry in shown for line in entry["moves"] + entry["holds"]):
            self.say(page.name, "its player marks a line of code that is not there")

    def check_marks(self, page, numbers):
        """The text of every step leads the player, in its order."""
        marks = re.findall(r'data-mw-steps="([\d ]*)"', page.source)
        read = {int(number) for mark in marks for number in mark.split()}
        if read != set(numbers) or not marks or marks[-1]:
            self.say(page.name, f"should lead its player through the steps {numbers} and out of them, and leads to {sorted(read)}")

    def check_neighbours(self, page, names, at):
        for rel, wanted in (("prev", names[at - 1] if at else None), ("next", names[at + 1] if at + 1 < len(names) else None)):
            links = {element.attributes.get("href") for element in page.root.find("a", rel=rel)}
            if links != ({f"{wanted}.html"} if wanted else set()):
                self.say(page.name, f"its link {rel} should lead to {wanted}, but leads to {sorted(links)}")

    def check_glossary(self, page):
        links = [link.attributes for link in page.root.find("a", cls="mw-word")]
        targets = [link.get("href") for link in links]
        for twice in sorted({target for target in targets if targets.count(target) > 1}):
            self.say(page.name, f"links to {twice} more than once")
        if len(links) < 5 or any(len(link.get("title") or "") < 12 for link in links):
            self.say(page.name, f"should link its words to the glossary, and links {len(links)}")
        if any(inner.find("a", cls="mw-word") for tag in ("a", "pre", "h1", "h2", "h3", "summary") for inner in page.root.find(tag)
               if inner.attributes.get("class") != "mw-word"):
            self.say(page.name, "has a word of the glossary within a link, a heading or code")

    def check_proof(self, root, start, names):
        """One button, and what the lesson of the full step prints: its check, and the bytes of rank 0."""
        buttons = [link.attributes.get("href") for link in start.root.find("a", cls="mw-start-button")]
        if buttons != [f"{names[0]}.html"]:
            self.say("index.html", f"should have one button Start that leads to {names[0]}, and has {buttons}")
        proved = next((name for name in names if name.endswith("_full_step")), names[-1])
        printed = (root / "lessons" / proved / f"{proved}.expected").read_text(encoding="utf-8")
        shown = squeezed(" ".join(link.text for link in start.root.find("a", cls="mw-proof")))
        numbers = re.findall(r"\d[\d,]*\d(?= (?:elements|B))", shown)
        check = next((line for line in printed.split("\n") if line.startswith("check")), "")
        total = next((line for line in printed.split("\n") if line.startswith("  all ")), "")
        if len(numbers) != 2 or numbers[0] not in check or f" {numbers[1]} B" not in total or shown.count("✔") != 2:
            self.say("index.html", f'should say what {proved} has printed, and says "{shown}"')

    def check_start(self, root, names):
        start = self.pages.get("index.html")
        if start is None:
            self.say("index.html", "is missing")
            return
        self.check_proof(root, start, names)
        lists = start.root.find("ol", cls="mw-lessons")
        links = [link.attributes.get("href") for part in lists for link in part.find("a")]
        if links != [f"{name}.html" for name in names]:
            self.say("index.html", f"should list all lessons in order, but lists {links}")
        for name in names:
            expected = root / "lessons" / name / f"{name}.expected"
            question = self.paragraph(start, expected.read_text(encoding="utf-8"), "Question") if expected.exists() else ""
            if question not in squeezed(start.root.text):
                self.say("index.html", f"does not have the question of {name}")
        if len(start.root.find("svg", cls="mw-journey-picture")) != 6:
            self.say("index.html", "does not have the six pictures of the journey")
        source = (root / "src/optim/serial_muon.cpp").read_text(encoding="utf-8")
        function = re.search(r"^void muon_step\(.*?^}$", source, re.MULTILINE | re.DOTALL).group(0)
        if [code.text for code in start.root.find("pre", cls="mw-serial")] != [function]:
            self.say("index.html", "should show muon_step as src/optim/serial_muon.cpp has it")
        whole = [squeezed(line.text) for line in start.root.find("span", cls="mw-whole")]
        if len(whole) != 1 or "newton_schulz" not in whole[0] or not start.root.find("span", cls="mw-any-shard"):
            self.say("index.html", f"should mark the line that needs the whole matrix, and marks {whole}")
        in_torch = [link.attributes.get("href") for table in start.root.find("table", cls="mw-torch") for link in table.find("a")]
        if in_torch != [f"{name}.html" for name in names if "04" <= name[7:9] <= "08"]:
            self.say("index.html", f"should say what lessons 04 to 08 are in PyTorch, and does so for {in_torch}")


def check_site(root, folder):
    site = Site(folder)
    if not site.pages:
        return [f"{folder} has no pages; build the target docs first"]
    site.check_links()
    site.check_frames()
    site.check_code()
    site.check_lessons(root)
    return site.problems


if __name__ == "__main__":
    found = check_site(*sys.argv[1:])
    for problem in found:
        print(problem)
    print(f"{len(found)} things are wrong" if found else "every link leads somewhere, and every lesson has its page")
    sys.exit(1 if found else 0)
