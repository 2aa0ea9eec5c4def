#!/usr/bin/env python3
"""Writes the layout file of Doxygen: its own default, with our navigation: the lessons in order, then the rest.

    write_layout.py ROOT LAYOUT_FILE
"""

import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lesson_source import LessonError, lessons_in_order  # noqa: E402
from whole_file import write_whole  # noqa: E402


def navigation(lessons):
    def tab(title, page):
        return f'      <tab type="user" url="@ref {page}" title={quoteattr(title)}/>'

    pages = "\n".join(tab(f"{lesson.number} · {lesson.title}", lesson.name) for lesson in lessons)
    return f"""  <navindex>
    <tab type="mainpage" visible="yes" title="Start"/>
    <tab type="usergroup" url="@ref {lessons[0].name}" title="Lessons">
{pages}
    </tab>
{tab("On your cluster", "md_docs_on_your_cluster")[2:]}
{tab("The cost model", "md_docs_cost_model")[2:]}
{tab("Glossary", "md_docs_glossary")[2:]}
    <tab type="usergroup" url="@ref md_docs_design" title="For those who build">
{tab("The design", "md_docs_design")}
{tab("Writing a lesson", "md_docs_writing_a_lesson")}
{tab("What it promises", "md_docs_promises")}
    </tab>
    <tab type="usergroup" url="annotated.html" title="API">
      <tab type="namespacemembers" visible="yes" title="Functions and constants" intro=""/>
      <tab type="classlist" visible="yes" title="Classes" intro=""/>
      <tab type="filelist" visible="yes" title="Headers" intro=""/>
    </tab>
  </navindex>"""


def main(root, layout_file):
    path = Path(layout_file)
    subprocess.run(["doxygen", "-l", str(path)], check=True)
    default = path.read_text(encoding="utf-8")
    ours, found = re.subn(r"  <navindex>.*?</navindex>", lambda _: navigation(lessons_in_order(root)), default,
                          flags=re.DOTALL)
    if found != 1:
        raise LessonError("doxygen -l wrote a layout without <navindex>; write_layout.py has to learn its new form")
    write_whole(path, ours)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except LessonError as error:
        print(f"write_layout.py: {error}", file=sys.stderr)
        sys.exit(2)
