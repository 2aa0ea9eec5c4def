"""What Doxygen's tag file and pages say of the members of namespaces: it writes all of a namespace on one page, which nobody can read,
so docs/make/api_pages.py puts each member on the page of its header, or on one of its own."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

_ITEM = re.compile(r'<a id="(\w+)" name="\w+"></a>\s*<h2 class="memtitle">.*?'
                   r'(?=<a id="\w+" name="\w+"></a>\s*<h2 class="memtitle">|<h2 class="groupheader">|</div><!-- contents -->)', re.DOTALL)
_ROW = r'<tr class="memitem:{0}">(.*?)</tr>\s*(?:<tr class="memdesc:{0}">(.*?)</tr>)?'


@dataclass
class Member:
    kind: str        # function, typedef, variable, enumeration
    name: str        # tp_gather
    namespace: str   # muonwalk
    anchor: str
    old_page: str    # namespacemuonwalk.html
    header: str      # src/optim/steps.hpp
    header_page: str
    item: str = ""   # what the namespace's page says of it, or nothing where it has one sentence only
    lessons: list = field(default_factory=list)  # the names of those that link to it


def items_of(page):
    """{anchor: HTML} of a page of Doxygen's: what it says of each member at length."""
    return {match.group(1): match.group(0) for match in _ITEM.finditer(page)}


def members(tag_file, html, root):
    """[Member, …] of all namespaces, in the order of the headers; and {page: namespace}."""
    tree = ElementTree.parse(tag_file).getroot()
    spaces = {compound.findtext("filename"): compound.findtext("name") for compound in tree.iter("compound")
              if compound.get("kind") == "namespace"}
    items = {page: items_of((Path(html) / page).read_text(encoding="utf-8")) for page in spaces}
    found, seen = [], set()
    for compound in tree.iter("compound"):
        if compound.get("kind") != "file" or not compound.findtext("name").endswith(".hpp"):
            continue
        header = str(Path(compound.findtext("path")).relative_to(Path(root).resolve()) / compound.findtext("name"))
        for member in compound.findall("member"):
            page, anchor = member.findtext("anchorfile"), member.findtext("anchor")
            if page not in spaces or (page, anchor) in seen:
                continue
            seen.add((page, anchor))
            found.append(Member(member.get("kind"), member.findtext("name"), spaces[page], anchor, page, header,
                                compound.findtext("filename"), items[page].get(anchor, "")))
    return found, spaces


def in_short(member, header_page):
    """(prototype, sentence) as HTML, from the list at the top of the header's page."""
    if member.item:
        sentence = re.search(r'<div class="memdoc">\s*<p ?>(.*?)</p>', member.item, re.DOTALL)
        row = re.search(_ROW.format(member.anchor), header_page, re.DOTALL)
        return (row.group(1) if row else member.name), sentence.group(1) if sentence else ""
    row = re.search(_ROW.format(member.anchor), header_page, re.DOTALL)
    if not row:
        return member.name, ""
    cells = re.sub(r'<a id="\w+" name="\w+"></a>', "", row.group(1))
    return cells, re.sub(r"<br ?/>|<td[^>]*>|</td>|&#160;", "", row.group(2) or "").strip()


def first_sentence(markup):
    """Without links, for a list."""
    text = re.sub(r"</?a\b[^>]*>", "", markup).strip()
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0].rstrip(":") if text else ""
