#!/usr/bin/env python3
"""Makes the site out of what Doxygen wrote and what the lessons drew.

    make_pages.py ROOT DOXYGEN_HTML TAG_FILE MATERIAL OUT
"""

import fnmatch
import re
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "sim/classroom"))
import lesson_page  # noqa: E402
import page_shell  # noqa: E402
import sidebar  # noqa: E402
import start_page  # noqa: E402
from api_pages import KEPT_SCRIPTS, LISTS, Api  # noqa: E402
from api_links import ApiLinks  # noqa: E402
from glossary import PAGE, Glossary  # noqa: E402
from lesson_source import LessonError, lessons_in_order  # noqa: E402
from player_script import player_script  # noqa: E402
from search_index import search_index  # noqa: E402
from whole_file import write_whole  # noqa: E402

# The text of a page, between Doxygen's frame and the end of it.
_TEXT = re.compile(r'(<div class="contents">\s*<div class="textblock">)(.*?)(</div></div><!-- (?:contents|PageDoc) -->)', re.DOTALL)


def change_text(page, change):
    """Puts change(text) in the place of the page's text."""
    source = page.read_text(encoding="utf-8")
    changed, found = _TEXT.subn(lambda match: match.group(1) + change(match.group(2)) + match.group(3), source)
    if found != 1:
        raise LessonError(f"{page.name} is not built as Doxygen 1.9.4 builds pages: its text was found {found} times")
    write_whole(page, changed)


def add_shell(page, lessons):
    """Puts around a page what all pages have."""
    changed = page_shell.completed(page.read_text(encoding="utf-8"), lambda text: sidebar.navigation(lessons, page.name, text))
    if changed is None:
        raise LessonError(f"{page.name} is not built as Doxygen 1.9.4 builds pages: its head, its body or its text is missing")
    page.write_text(changed, encoding="utf-8")  # in the copy, which is made anew each time


def _lists(_, names):
    """What is not copied of what Doxygen wrote."""
    return {name for pattern in LISTS for name in fnmatch.filter(names, pattern)} - set(KEPT_SCRIPTS)


def make_pages(root, doxygen_html, tag_file, material, out):
    root, material, out = Path(root), Path(material), Path(out)
    lessons = lessons_in_order(root)
    links, glossary = ApiLinks(tag_file), Glossary(root)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(doxygen_html, out, ignore=_lists)
    for lesson in lessons:
        folder = material / lesson.name
        shutil.copytree(folder, out / "material" / lesson.name, ignore=shutil.ignore_patterns("*.json", "*.stamp"))
        change_text(out / f"{lesson.name}.html",
                    lambda text, lesson=lesson, folder=folder: glossary.link(
                        lesson_page.complete(lessons, lesson, text, folder, links)))
    change_text(out / PAGE, glossary.complete)
    change_text(out / "index.html", lambda text: start_page.complete(root, lessons, text))
    shutil.copyfile(root / "third_party/minisearch/minisearch.js", out / "minisearch.js")
    write_whole(out / "player.js", player_script(root / "docs/player"))
    Api(root, out, tag_file, lessons).write(links)
    write_whole(out / "search_index.js", search_index(out))
    for page in sorted(out.glob("*.html")):
        add_shell(page, lessons)


if __name__ == "__main__":
    try:
        make_pages(*sys.argv[1:])
    except LessonError as error:
        print(f"make_pages.py: {error}", file=sys.stderr)
        sys.exit(1)
