"""What stands around the text of every page, besides Doxygen's own frame: the search."""

_SEARCH = '''<div id="mw-search" role="search">
<input id="mw-search-field" type="search" placeholder="Search (press /)" aria-label="Search the lessons, the pages and the API"
 role="combobox" aria-expanded="false" aria-controls="mw-search-results" aria-autocomplete="list" autocomplete="off"
 spellcheck="false"/>
<div id="mw-search-results" role="listbox" aria-label="What was found" hidden="hidden"></div>
<div id="mw-search-status" role="status"></div>
</div>
'''
_MENU = '<div id="main-nav"></div>'


def completed(page):
    """The page, an HTML text, with what stands around its own text; None when it has no frame."""
    if page.count(_MENU) != 1 or page.count("</body>") != 1:
        return None
    page = page.replace(_MENU, _SEARCH + _MENU)
    return page.replace("</body>", '<script src="search.js"></script>\n</body>')
