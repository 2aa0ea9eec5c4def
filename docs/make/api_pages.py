"""The API behind one door, api.html: the functions that lessons use, by what they are for, each with a page of its own that has its
source; and below them all headers. Doxygen's page of a namespace, which lists all of it, is taken apart for that; an address on it
still leads to where its entry is now."""

import html
import json
import re
from collections import defaultdict
from pathlib import Path

from api_members import first_sentence, in_short, members
from function_source import definitions
from highlight import highlighted
from lesson_source import LessonError

DOOR = "api.html"
# Lists from A to Z, of folders and of all members: what they lead to is found by the search, and by api.html.
LISTS = ("annotated.html", "classes.html", "files.html", "hierarchy.html", "pages.html", "namespaces.html", "functions*.html",
         "namespacemembers*.html", "globals*.html", "dir_*.html", "*-members.html", "*.js", "tabs.css", "*.md5", "*.map")
KEPT_SCRIPTS = ("search.js", "shell.js", "words.js", "lesson.js", "drawings.js", "bars.js", "curves.js", "memory.js")
_KEY_NAMESPACE = "muonwalk"
_INHERITED = re.compile(r'onclick="javascript:toggleInherit\(.*?\)"|<img src="closed.png" alt="-"/>&#160;')
_ROOM = re.compile(r"^\| (`(?:src|sim|tools|lessons)/[\w/]*`(?:, `[\w/]+`)*) \| (.*?) \|$", re.MULTILINE)


class Rooms:
    """The rooms as docs/design.md has them; the rooms of one line of its table are one here."""

    def __init__(self, root):
        text = (Path(root) / "docs/design.md").read_text(encoding="utf-8")
        self.words, self._first = {}, {}
        for names, words in _ROOM.findall(text):
            names = [name.rstrip("/") for name in re.findall(r"`([\w/]+)`", names)]
            self.words[names[0]] = words
            self._first.update(dict.fromkeys(names, names[0]))
        if "src/optim" not in self.words:
            raise LessonError("docs/design.md has no table of rooms that names src/optim/, from which api.html is made")

    def of(self, header):
        """The room that a header stands in: src/optim."""
        for folder in map(str, Path(header).parents):
            folder = re.sub(r"^lessons/lesson_\d\d_\w+$", "lessons/lesson_NN_topic", folder)
            if folder in self._first:
                return self._first[folder]
        raise LessonError(f"docs/design.md has no line for the room of {header} in its table, from which api.html is made")

    @staticmethod
    def anchor(room):
        return f'room_{room.replace("/", "_")}'


class Api:
    def __init__(self, root, out, tag_file, lessons):
        self.root, self.out, self.lessons, self.rooms = Path(root), Path(out), lessons, Rooms(root)
        self.members, self.spaces = members(tag_file, out, root)
        self.pages = {}  # header page: its HTML as Doxygen wrote it
        for page in {member.header_page for member in self.members}:
            self.pages[page] = (self.out / page).read_text(encoding="utf-8")
        self.frame = (self.out / next(iter(self.spaces))).read_text(encoding="utf-8")
        self._find_keys()

    def _find_keys(self):
        """The functions of what a rank computes to which a lesson's page has a link; and where each entry is now."""
        by_address = {f"{member.old_page}#{member.anchor}": member for member in self.members}
        for lesson in self.lessons:
            page = (self.out / f"{lesson.name}.html").read_text(encoding="utf-8")
            for address in sorted(set(re.findall(r'href="(namespace\w+\.html#\w+)"', page))):
                if address in by_address:
                    by_address[address].lessons.append(lesson)
        self.keys = defaultdict(list)  # function: its overloads
        linked = {member.name for member in self.members if self._may_be_key(member) and member.lessons}
        for member in self.members:
            if self._may_be_key(member) and member.name in linked:
                self.keys[member.name].append(member)

    @staticmethod
    def _may_be_key(member):
        return member.kind == "function" and member.namespace == _KEY_NAMESPACE and member.header.startswith("src/")

    def is_key(self, member):
        return member.name in self.keys and member in self.keys[member.name]

    def page_of(self, member):
        return f"function_{member.name}.html" if self.is_key(member) else member.header_page

    def new_address(self, page, anchor):
        """Where an entry of a namespace's page is now. Values of an enumeration stand where it stands."""
        member = self._by_old.get((page, anchor)) or self._by_old.get((page, anchor[:33]))
        return f"{self.page_of(member)}#{anchor}" if member else None

    def framed(self, title, contents, crumbs=""):
        """A page like those of Doxygen's."""
        page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(title)} · Muonwalk</title>", self.frame, flags=re.DOTALL)
        page = re.sub(r'<div class="title">.*?</div>', lambda _: f'<div class="title">{html.escape(title)}</div>', page, flags=re.DOTALL)
        page = re.sub(r'<div class="headertitle">', lambda _: f'{crumbs}<div class="headertitle">', page)
        return re.sub(r'(<div class="contents">).*?(</div><!-- contents -->)', lambda match: match[1] + contents + match[2], page,
                      flags=re.DOTALL)

    def crumbs(self, header, header_page=None):
        file = f'<a href="{header_page}">{header}</a>' if header_page else header
        return f'<p class="mw-crumbs"><a href="{DOOR}#{self.rooms.anchor(self.rooms.of(header))}">API</a> › {file}</p>'

    def function_page(self, name):
        overloads, parts = self.keys[name], []
        for member in overloads:
            if member.item:
                parts.append(member.item)
                continue
            prototype, sentence = in_short(member, self.pages[member.header_page])
            parts.append(f'<a id="{member.anchor}"></a><h2 class="memtitle">{name}()</h2><div class="memitem"><div class="memproto">'
                         f"<table><tr>{prototype}</tr></table></div><div class=\"memdoc\"><p>{sentence}</p></div></div>")
        sources = [source for header in dict.fromkeys(member.header for member in overloads)
                   for source in definitions(self.root, header, name)]
        if not sources:
            raise LessonError(f"{overloads[0].header}: lessons link to {name}, whose page shows its source, but neither this header nor a "
                              f".cpp beside it defines it")
        parts.append('<h2><a class="anchor" id="source"></a>\nIts source</h2>')
        for file in dict.fromkeys(file for file, _ in sources):
            lines = []
            for _, body in (source for source in sources if source[0] == file):
                lines += [""] * bool(lines) + body
            parts.append(f'<p class="mw-legend">{file}</p>{self.links.link(highlighted(lines), {name})}')
        users = [lesson for lesson in self.lessons if any(lesson in member.lessons for member in overloads)]
        items = "".join(f'<li><a href="{lesson.name}.html">{lesson.number} · {lesson.title}</a></li>' for lesson in users)
        parts.append(f'<h2><a class="anchor" id="lessons"></a>\nLessons that use it</h2><ul>{items}</ul>')
        first = overloads[0]
        return self.framed(name, f'<div class="textblock">{"".join(parts)}</div>', self.crumbs(first.header, first.header_page))

    def _entry(self, name):
        first = self.keys[name][0]
        _, sentence = in_short(first, self.pages[first.header_page])
        numbers = sorted({lesson.number for member in self.keys[name] for lesson in member.lessons})
        used = f' <span class="mw-used">lesson{"s" * (len(numbers) > 1)} {", ".join(numbers)}</span>'
        return f'<li><a href="function_{name}.html"><code>{name}</code></a> {first_sentence(sentence)}{used}</li>'

    def door(self):
        topics = [lesson.name[10:] for lesson in self.lessons if lesson.name[10:] in self.keys]
        parts = ['<p class="mw-door">What one rank computes is in <code>src/</code>, and the cluster that it runs on in <code>sim/</code>. '
                 "Each function below has a page with its source; lessons use all of them. Names that are not here are found by the "
                 "search, and in the headers of their room.</p>",
                 '<h2><a class="anchor" id="step"></a>\nOne step of Muon, in order</h2>',
                 f'<ul class="mw-functions">{"".join(self._entry(name) for name in topics)}</ul>']
        named, in_room = defaultdict(list), defaultdict(dict)
        for name, overloads in self.keys.items():
            if name not in topics:
                named[self.rooms.of(overloads[0].header)].append(name)
        for page, header in self.headers.items():
            in_room[self.rooms.of(header)][page] = header
        for room in [room for room in self.rooms.words if room in in_room]:
            about = self.rooms.words[room]
            about = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(about, quote=False))
            entries = "".join(self._entry(name) for name in named[room])
            headers = "".join(f'<li><a href="{page}">{Path(header).name}</a></li>' for page, header in in_room[room].items())
            count = len(in_room[room])
            parts.append(f'<h2><a class="anchor" id="{self.rooms.anchor(room)}"></a>\n{re.sub("[0-9]+$", "…", room)}</h2><p>{about[:1].upper()}{about[1:]}.</p>'
                         + (f'<ul class="mw-functions">{entries}</ul>' if entries else "") +
                         f'<details class="mw-headers"><summary>{f"Its {count} headers" if count > 1 else "Its header"}</summary>'
                         f"<ul>{headers}</ul></details>")
        return self.framed("API", f'<div class="textblock">{"".join(parts)}</div>')

    def header_page(self, page, text):
        """With what the namespace's page said at length of what the header declares, but for the functions with their own pages."""
        here = [member for member in self.members if member.header_page == page]
        for name in {member.name for member in here if self.is_key(member)}:
            text = re.sub(rf"<b>((?:\w+::)*{name})</b>", rf'<a class="el" href="function_{name}.html">\1</a>', text)
        items = "".join(member.item for member in here if not self.is_key(member))
        if items:
            text = text.replace("</div><!-- contents -->", f'<h2 class="groupheader">Documentation</h2>{items}</div><!-- contents -->')
        return text

    def namespace_page(self, page):
        name = self.spaces[page]
        about = re.search(r'<div class="textblock">(.*?)</div>', (self.out / page).read_text(encoding="utf-8"), re.DOTALL)
        moved = {member.anchor: f"{self.page_of(member)}#{member.anchor}" for member in self.members if member.old_page == page}
        script = ('<script>(() => { const moved = ' + json.dumps(moved, separators=(",", ":")) + ', anchor = location.hash.slice(1), '
                  'to = moved[anchor] || moved[anchor.slice(0, 33)]; if (to) location.replace(to); })();</script>')
        return self.framed(f"namespace {name}", f'<div class="textblock">{about.group(1) if about else ""}<p>What is in it stands on the pages '
                           f'of its headers; <a href="{DOOR}">the API</a> leads there.</p></div>{script}')

    def write(self, links):
        """Changes and adds pages in the folder; all links to what was moved lead to where it is now."""
        self.links = links
        self._by_old = {(member.old_page, member.anchor): member for member in self.members}
        self.headers = dict(self._headers())
        made = {f"function_{name}.html": self.function_page(name) for name in self.keys}
        made.update({page: self.namespace_page(page) for page in self.spaces})
        made[DOOR] = self.door()
        for path in sorted(self.out.glob("*.html")):
            made.setdefault(path.name, None)
        for name, text in made.items():
            text = (self.out / name).read_text(encoding="utf-8") if text is None else text
            if name in self.headers:
                text = self.header_page(name, text)
                text = text.replace('<div class="headertitle">', f'{self.crumbs(self.headers[name])}<div class="headertitle">', 1)
            (self.out / name).write_text(self._with_new_addresses(name, text), encoding="utf-8")

    def _headers(self):
        for path in sorted(self.out.glob("*_8hpp.html")):
            text = path.read_text(encoding="utf-8")
            found = re.search(r"<title>((?:src|sim|tools|lessons)/\S+\.hpp) File Reference", text)
            if found:
                yield path.name, found.group(1)

    def _with_new_addresses(self, name, text):
        def moved(match):
            address = self.new_address(match.group(1), match.group(2))
            if address is None:
                return match.group(0)
            page, anchor = address.split("#")
            return f'href="#{anchor}"' if page == name else f'href="{address}"'

        text = re.sub(r'href="(namespace\w+\.html)#(\w+)"', moved, text)
        text = re.sub(r'<a [^>]*href="(?:dir_\w+|[\w-]+-members)\.html"[^>]*>(.*?)</a>', r"\1", text)
        return _INHERITED.sub("", text)
