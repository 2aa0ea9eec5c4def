"""What every page has around Doxygen's text: its language, one first heading, a link that skips the navigation, the search, and
the navigation."""

import re

_SEARCH = '''<div id="mw-search" role="search">
<input id="mw-search-field" type="search" placeholder="Search (press /)" aria-label="Search the lessons, the pages and the API"
 role="combobox" aria-expanded="false" aria-controls="mw-search-results" aria-autocomplete="list" autocomplete="off"
 spellcheck="false"/>
<div id="mw-search-results" role="listbox" aria-label="What was found" hidden="hidden"></div>
<div id="mw-search-status" role="status"></div>
</div>
'''
_SKIP = '<a class="mw-skip" href="#doc-content">Skip to the text</a>\n'
_TOP = ('<header class="mw-bar"><a class="mw-brand" href="index.html">Muonwalk</a>'
        '<button type="button" class="mw-menu" aria-expanded="false" aria-controls="mw-side">Menu</button>\n{}</header>\n')
# What the reader chose is on the page before it is seen.
_CHOSEN = ('<script>(() => { const page = document.documentElement; page.classList.add("mw-js"); try { '
           'if (localStorage.getItem("muonwalk.plain") === "yes") page.classList.add("mw-plain"); } catch (error) {} })();</script>\n')
_BODY, _MAIN, _CONTENTS = "<body>", '<main id="doc-content" tabindex="-1">', '<div class="contents">'
_TITLE = re.compile(r'<div class="title">(.*?)</div>', re.DOTALL)
_PAGE_TITLE = re.compile(r"<title>(.*?)(?: · Muonwalk)?</title>", re.DOTALL)
# Doxygen closes an element that its own header would have opened, and leads to lists that this site does not have.
_LEFT_OUT = re.compile(r'</div><!-- top -->|<div id="nav-path".*?</ul>\n</div>|<div class="summary">.*?</div>', re.DOTALL)


def _headed(page):
    """With the title as the only heading of the first order: Doxygen writes it as a <div>, and sections as <h1>."""
    page = re.sub(r"<(/?)h([1-5])(?=[ >])", lambda match: f"<{match[1]}h{int(match[2]) + 1}", page) if "<h1" in page else page
    page, found = _TITLE.subn(r'<h1 class="title">\1</h1>', page, count=1)
    if found:
        return page
    # A list of names has no title on it: it is said to those who listen.
    return page.replace(_CONTENTS, f'{_CONTENTS}<h1 class="mw-heard">{_PAGE_TITLE.search(page)[1]}</h1>', 1)


def _scripts(page):
    """Those that a page needs, each of them once."""
    names = ["shell.js", "lesson.js", "search.js"]
    names += ["words.js"] if 'class="mw-word"' in page else []
    names += ["drawings.js"] if '<pre class="fragment"' in page else []
    return "".join(f'<script src="{name}"></script>\n' for name in names)


def completed(page, navigation):
    """The page, an HTML text, with what all pages have; None when it is not built as Doxygen builds pages. `navigation` makes the
    element #mw-side out of the page."""
    if any(page.count(mark) != 1 for mark in (_BODY, _MAIN, "</head>", "</body>")):
        return None
    page = _headed(_LEFT_OUT.sub("", page))
    page = page.replace("</head>", _CHOSEN + "</head>")
    page = page.replace(_BODY, f"{_BODY}\n{_SKIP}{_TOP.format(_SEARCH)}{navigation(page)}")
    return page.replace("</body>", _scripts(page) + "</body>")
