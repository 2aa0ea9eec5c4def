"""The navigation beside every page: all lessons, always; below the one that is read, its sections; the other pages; and one door to
the API. It is plain HTML, so it is there without a script; docs/shell/shell.js marks the section that is being read."""

import html
import re

_SECTION = re.compile(r'<h2><a class="anchor" id="([^"]+)"></a>\s*(.*?)</h2>', re.DOTALL)
_PAGES = [("md_docs_more_to_run.html", "More to run"), ("md_docs_on_your_cluster.html", "On your cluster"),
          ("md_docs_cost_model.html", "The cost model"), ("md_docs_check_your_own_muon.html", "Check your own Muon"),
          ("md_docs_glossary.html", "Glossary"), ("api.html", "API")]
_BUILDERS = [("md_docs_design.html", "The design"), ("md_docs_writing_a_lesson.html", "Writing a lesson"),
             ("md_docs_promises.html", "What it promises"),
             ("md_docs_bits_and_machines.html", "Bits, files and machines"),
             ("md_docs_dump_format.html", "The format of a dump"), ("md_docs_check_verdict.html", "The verdict of a check")]


def sections(page):
    """[(anchor, title), …] of a page of prose."""
    return [(anchor, re.sub(r"<[^>]*>", "", title).strip()) for anchor, title in _SECTION.findall(page)]


def _item(name, title, current, below="", attributes=""):
    here = ' aria-current="page"' if name == current else ""
    return f'<li{attributes}><a href="{name}"{here}>{title}</a>{below if here else ""}</li>'


def navigation(lessons, name, page):
    """`name` is the page's file, `page` its HTML."""
    below = "".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in sections(page))
    below = f'<ol class="mw-sections">{below}</ol>' if below else ""
    of_lessons = "\n".join(_item(f"{lesson.name}.html", f'<span class="mw-number">{lesson.number}</span> '
                                 f"<span>{html.escape(lesson.title, quote=False)}</span>", name, below, f' data-progress="{lesson.name}"')
                           for lesson in lessons)
    pages = "\n".join(_item(file, title, name, below) for file, title in _PAGES)
    builders = "\n".join(_item(file, title, name, below) for file, title in _BUILDERS)
    return (f'<nav id="mw-side" aria-label="Pages">\n<ul>{_item("index.html", "Start", name, below)}</ul>\n'
            f'<p id="mw-side-lessons">Lessons</p>\n<ol class="mw-side-lessons" aria-labelledby="mw-side-lessons">{of_lessons}</ol>\n'
            f"<ul>{pages}</ul>\n"
            f'<p id="mw-side-builders">For those who build</p>\n<ul aria-labelledby="mw-side-builders">{builders}</ul>\n</nav>\n')
