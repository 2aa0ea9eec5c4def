"""What the site's search finds: the text of each section of the lessons and of the pages of docs/, and each entry of the API
reference. The index is a script, search_index.js, because a page that was opened from a file may not load anything else."""

import html
import json
import re

LESSON, PAGE, API = 0, 1, 2
_TITLE = re.compile(r'<(?:div|h1) class="title">(.*?)</(?:div|h1)>', re.DOTALL)
_CONTENTS = re.compile(r'<div class="contents">(.*)<!-- contents -->', re.DOTALL)
_HEADING = re.compile(r'<h[1-4]><a class="anchor" id="([^"]*)"></a>\s*(.*?)</h[1-4]>', re.DOTALL)
_MEMBER = re.compile(r'<a id="(\w+)" name="\w+"></a>\s*<h2 class="memtitle">(.*?)</h2>.*?<div class="memdoc">(.*?)'
                     r'(?=<a id="\w+" name="\w+"></a>\s*<h2 class="memtitle">|<hr/>|\Z)', re.DOTALL)
# What is not prose: code, drawings, output, and what a page repeats of others.
_LEFT_OUT = re.compile(r'<(script|style|svg|nav|noscript|pre)\b.*?</\1>|<div class="fragment">.*?</div><!-- fragment -->'
                       r'|<span class="permalink">.*?</span>|<!--.*?-->', re.DOTALL)
# Tags between which a word goes on.
_INLINE = re.compile(r"</?(?:a|b|code|em|i|span|strong|sub|sup|tt)\b[^>]*>")


def plain(markup):
    """The words of a piece of HTML."""
    text = re.sub(r"<[^>]*>", " ", _INLINE.sub("", _LEFT_OUT.sub(" ", markup)))
    return " ".join(html.unescape(text).replace("\u200b", "").split())


def kind_of(name):
    """What kind of page a file is, or None for those in which nothing is searched: sources, lists, members of a class."""
    if re.fullmatch(r"lesson_\d\d_\w+\.html", name):
        return LESSON
    if name == "index.html" or name.startswith("md_docs_"):
        return PAGE
    return API if re.match(r"(function_|class|struct)|.*_8hpp\.html$|api\.html$", name) else None


def sections_of(kind, contents):
    """[(anchor, heading, text), …] of a page."""
    if kind == API and '<a class="anchor" id="source">' in contents:  # a function's own page, whose name is its title
        return [("", "", plain(" ".join(re.findall(r'<div class="memdoc">(.*?)</div>', contents, re.DOTALL))))]
    if kind == API:
        about = re.search(r'<div class="textblock">(.*?)</div>', contents, re.DOTALL)
        members = [(anchor, plain(heading), plain(text)) for anchor, heading, text in _MEMBER.findall(contents)]
        return ([("", "", plain(about.group(1)))] if about else []) + members
    parts = _HEADING.split(contents)
    sections = [("", "", plain(parts[0]))]
    sections += [(parts[at], plain(parts[at + 1]), plain(parts[at + 2])) for at in range(1, len(parts), 3)]
    return [section for section in sections if section[1] or section[2]]


def search_index(folder):
    """The script that holds the index of all pages in a folder."""
    pages, sections = [], []
    for path in sorted(folder.glob("*.html")):
        kind = kind_of(path.name)
        if kind is None:
            continue
        page = path.read_text(encoding="utf-8")
        title, contents = _TITLE.search(page), _CONTENTS.search(page)
        if not title or not contents:
            continue
        name = re.sub(r" (?:Class Template|Struct Template|Class|Struct|Namespace|File) Reference$", "", plain(title.group(1)))
        sections += [[len(pages), *section] for section in sections_of(kind, contents.group(1))]
        pages.append([path.name, name, kind])
    data = json.dumps({"pages": pages, "sections": sections}, ensure_ascii=False, separators=(",", ":"))
    return f"window.muonwalkSearch = {data};\n"
