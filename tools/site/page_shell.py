"""What every page has besides Doxygen's own frame: its language, one first heading, a link that skips the navigation, and the
search."""

import re

_SEARCH = '''<div id="mw-search" role="search">
<input id="mw-search-field" type="search" placeholder="Search (press /)" aria-label="Search the lessons, the pages and the API"
 role="combobox" aria-expanded="false" aria-controls="mw-search-results" aria-autocomplete="list" autocomplete="off"
 spellcheck="false"/>
<div id="mw-search-results" role="listbox" aria-label="What was found" hidden="hidden"></div>
<div id="mw-search-status" role="status"></div>
</div>
'''
_MENU = '<div id="main-nav"></div>'


_SKIP = '<a class="mw-skip" href="#doc-content">Skip to the text</a>\n'
_HTML = '<html xmlns="http://www.w3.org/1999/xhtml">'
_BODY, _TEXT, _CONTENTS = "<body>", '<div id="doc-content">', '<div class="contents">'
_TITLE = re.compile(r'<div class="title">(.*?)</div>', re.DOTALL)
_PAGE_TITLE = re.compile(r"<title>(?:Muonwalk: )?(.*?)</title>", re.DOTALL)


def _headed(page):
    """With the title as the only heading of the first order: Doxygen writes it as a <div>, and sections as <h1>."""
    page = re.sub(r"<(/?)h([1-5])(?=[ >])", lambda match: f"<{match[1]}h{int(match[2]) + 1}", page) if "<h1" in page else page
    page, found = _TITLE.subn(r'<h1 class="title">\1</h1>', page, count=1)
    if found:
        return page
    # A list of names has no title on it: it is said to those who listen.
    return page.replace(_CONTENTS, f'{_CONTENTS}<h1 class="mw-heard">{_PAGE_TITLE.search(page)[1]}</h1>', 1)


def completed(page):
    """The page, an HTML text, with what all pages have; None when it is not built as Doxygen builds pages."""
    if any(page.count(mark) != 1 for mark in (_HTML, _BODY, _MENU, _TEXT, "</body>")):
        return None
    page = _headed(page)
    page = page.replace(_HTML, _HTML[:-1] + ' lang="en" xml:lang="en">')
    page = page.replace(_BODY, f"{_BODY}\n{_SKIP}")
    page = page.replace(_TEXT, _TEXT[:-1] + ' tabindex="-1">')
    page = page.replace(_MENU, _SEARCH + _MENU)
    return page.replace("</body>", '<script src="search.js"></script>\n</body>')
