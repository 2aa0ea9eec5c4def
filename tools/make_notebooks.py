#!/usr/bin/env python3
"""Makes the notebook of each lesson out of the lesson's own source.

    tools/make_notebooks.py [--into FOLDER]

Prose becomes text cells, what the lesson declares becomes definition cells, and the lines of `main` become statement cells,
each step a cell of its own. The same source makes the same bytes. Without a folder, they go to notebooks/.
"""

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lesson_source import LessonError, lessons_in_order, test_arguments  # noqa: E402
from exercises import Broken, exercises  # noqa: E402
from whole_file import write_whole  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent

METADATA = {
    "kernelspec": {"display_name": "C++17", "language": "C++17", "name": "xcpp17"},
    "language_info": {"codemirror_mode": "text/x-c++src", "file_extension": ".cpp", "mimetype": "text/x-c++src",
                      "name": "c++", "version": "17"},
}


class Notebook:
    """Cells in order. Every cell is named by what it does, so that the names stay when cells are added before it."""

    def __init__(self):
        self.cells = []
        self.ids = set()

    def _add(self, kind, name, source, **more):
        stem = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:56] or kind
        cell_id, number = stem, 1
        while cell_id in self.ids:
            number += 1
            cell_id = f"{stem}-{number}"
        self.ids.add(cell_id)
        lines = source.splitlines(keepends=True)
        self.cells.append({"cell_type": kind, "id": cell_id, "metadata": {}, "source": lines, **more})

    def text(self, name, source):
        self._add("markdown", name, source)

    def code(self, name, source):
        self._add("code", name, source, execution_count=None, outputs=[])

    def to_json(self):
        """The form that Jupyter itself writes, so that saving an unchanged notebook changes nothing."""
        whole = {"cells": self.cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


# --- prose ------------------------------------------------------------------------------------------------------------


def with_links(prose, titles, where):
    """`\\ref lesson_04_dp_gather` becomes a link to that notebook, every other `\\ref` a name in code font."""

    def link(match):
        name = match.group(1)
        if name in titles:
            return f"[{titles[name]}]({name}.ipynb)"
        if name.startswith("lesson_"):
            raise LessonError(f"{where}: \\ref {name} names no lesson; lessons/CMakeLists.txt lists those that there are")
        return f"`{name}`"

    return re.sub(r"\\ref\s+(\w+(?:::\w+)*)", link, prose)


def with_folded_hints(prose):
    """In a list of exercises, what follows `Hint:` and what follows `Answer:` are folded away, each until the reader asks
    for it."""
    lines, folded = [], []

    def end_item():
        words = " ".join(line.strip() for line in folded)
        for fold in re.split(r"\s*(?=\bAnswer: )", words, maxsplit=1):
            name, _, text = fold.partition(":")
            if text:
                text = text.strip()
                text = text[:1].upper() + text[1:]
                lines.extend(["", f"   <details><summary>{name}</summary>", "", f"   {text}", "", "   </details>", ""])
        folded.clear()

    for line in prose.split("\n"):
        if re.match(r"\d+\. ", line):
            end_item()
        before, mark, _ = line.partition("Hint:")
        if folded:
            folded.append(line)
        elif mark:
            if before.strip():
                lines.append(before.rstrip())
            folded.append(line[len(before):])
        else:
            lines.append(line)
    end_item()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n")


def text_of(block, lesson, titles):
    prose = with_links(block.prose, titles, f"{lesson.path.name}:{block.first_line}")
    return with_folded_hints(prose) if re.search(r"^#+ Exercises", prose, re.MULTILINE) else prose


def heading_of(block):
    match = re.search(r"^#+ (.+)$", block.prose, re.MULTILINE)
    return match.group(1) if match else ""


# --- code -------------------------------------------------------------------------------------------------------------


def dedented(lines):
    return [line[2:] if line.startswith("  ") else line for line in lines]


_MADE_BY_PROGRAM = re.compile(r"^(\s*Lesson<Local> \w+\(info, )(.+)(, argc, argv\);)(\s+//.*)?$")


def for_notebook(lines):
    """The one line in which a notebook differs from the program: what a lesson is made from."""
    return [_MADE_BY_PROGRAM.sub(r"\1nb::options(info, \2, argc, argv));\4", line) for line in lines]


_CHECK = re.compile(r"^\s*lesson\.(?:check|check_numbers|cost)\(", re.MULTILINE)
_RETURN = re.compile(r"^return (.*);$", re.DOTALL)
_CALL_OR_NAME = re.compile(r"^[\w.]+(\(.*\))?$", re.DOTALL)


def checked(lines):
    """A statement of `main`; where it says whether something holds, a notebook stops when it does not."""
    comment = [line for line in lines if line.lstrip().startswith("//")]
    statement = "\n".join(lines[len(comment):])
    returned = _RETURN.match(statement)
    if returned:
        code = returned.group(1)
        statement = f"NB_CHECK({code if _CALL_OR_NAME.match(code) else f'({code})'} == 0);"
    return comment + statement.split("\n")


_PICTURE = re.compile(r'^\s*lesson\.picture\("(\w+)", (.*)\);$', re.DOTALL)


def is_step(block):
    return block.kind == "statement" and re.search(r"^\s*lesson\.(quiet_)?step\(", block.text, re.MULTILINE)


def shows_something(lesson, function):
    """True where the ranks show what they hold: a step in which they only say something has nothing to draw."""
    body = lesson.declaration(function)
    return body is not None and ".show(" in body[1].text


def touches(before, block):
    """No empty line between the two."""
    return before is not None and before.first_line + len(before.lines) == block.first_line


# --- cells ------------------------------------------------------------------------------------------------------------


def definition(namespace, lines):
    return "\n".join([f"namespace {namespace} {{", "", *lines, "", f"}}  // namespace {namespace}"])


_VALUES = re.compile(r"^\s*(?:Matrix|Flat) (\w+)\s*[;=]", re.MULTILINE)


def something_held(lesson):
    """The name of a matrix or an array in Local, for the reader to look at; empty where there is none."""
    local = lesson.declaration("Local")
    match = _VALUES.search(local[1].text) if local else None
    return match.group(1) if match else ""


def add_command_line(notebook, lesson, arguments):
    words = (
        "The next cell is the command line of the program; all of the lesson's options may stand in it. Try a planted bug, "
        f'for example `"--bug {lesson.bugs[0]}"`: then run the notebook again from the top, and see a check stop it.'
        if lesson.bugs else "The next cell is the command line of the program; all of the lesson's options may stand in it.")
    if arguments:
        words += (f" (`{arguments}` asks for a smaller run than the program's own: leave it out for the real sizes, "
                  "and have a little patience.)")
    notebook.text("about-the-command-line", words)
    notebook.code("command-line", f'nb::CommandLine command_line("{arguments}");\nint argc = command_line.argc();\n'
                                  "char** argv = command_line.argv();")


def add_look(notebook, lesson):
    """After the first step: how to see what a rank holds."""
    held = something_held(lesson)
    words = ("The ranks wait here until the next step. Between steps you can look at what each of them holds: "
             "`lesson.local(0)` is what rank 0 holds.")
    if held:
        words += " Ask for another rank, or for another member of `Local`, or add such a cell after a later step."
    notebook.text("about-looking", words)
    if held:
        notebook.code("look", f"nb::show(lesson.local(0).{held});")


def add_definitions(notebook, lesson, titles, namespace, blocks):
    run, name = [], ""

    def end_run():
        nonlocal run, name
        if run:
            notebook.code(f"define-{name}", definition(namespace, for_notebook(run)))
        run, name = [], ""

    for block in blocks:
        if block.kind == "prose":
            end_run()
            notebook.text(heading_of(block) or f"about-{name_after(blocks, block)}", text_of(block, lesson, titles))
        elif block.kind == "declaration":
            if run:
                gap = block.first_line - previous.first_line - len(previous.lines)
                run.extend([""] * min(gap, 1))
            name = name or block.name
            run.extend(block.lines)
            previous = block
    end_run()


def name_after(blocks, block):
    following = blocks[blocks.index(block) + 1:]
    return following[0].name if following and following[0].name else "main"


def add_main(notebook, lesson, titles, blocks, arguments):
    group, before, first_step = [], None, True

    def name_of_group(text):
        for words, name in (("const ", "constant"), ("LessonInfo info", "info"), ("Lesson<Local> lesson", "lesson"),
                            ("lesson.answer", "answer"), ("lesson.check", "checks"), ("return", "result")):
            if words in text:
                return name
        return "statements"

    def end_group():
        if group:
            lines, looked_at = [], 0
            for block in group:
                lines += checked(for_notebook(dedented(block.lines)))
                looked_at = len(lines) if _CHECK.search(block.text) else looked_at
            if looked_at:
                lines.insert(looked_at, "NB_CHECK(lesson.all_equal());")
            notebook.code(name_of_group("\n".join(block.text for block in group)), "\n".join(lines))
            group.clear()

    add_command_line(notebook, lesson, arguments)
    for block in blocks:
        if block.kind == "main_close":
            continue
        if block.kind == "prose":
            end_group()
            notebook.text(heading_of(block) or "about-main", text_of(block, lesson, titles))
        elif is_step(block):
            end_group()
            function = re.search(r"(\w+)\);$", block.text)
            function = function.group(1) if function else "made-up"
            notebook.code(f"step-{function}", "\n".join(dedented(block.lines)))
            if shows_something(lesson, function):
                notebook.code(f"picture-{function}", "nb::show_last_step(lesson);")
            if first_step:
                add_look(notebook, lesson)
            first_step = False
        else:
            # Before the statements of a cell run, clang-repl gives constants their values: they need a cell of their own.
            constant = block.text.lstrip().startswith("const")
            if constant or not touches(before, block):
                end_group()
            group.append(block)
            if constant:
                end_group()
            picture = _PICTURE.match(block.text)
            if picture:
                end_group()
                notebook.code(f"show-{picture.group(1)}", f"nb::show_svg({picture.group(2)});")
        before = block
    end_group()


def attempt(exercise, name):
    """The cells in which the file `name` of an exercise is written and judged: what it includes, the function, the judgement."""
    lines = [line for line in exercise.read(name).split("\n") if not line.startswith("// fails: ")]
    includes = [line for line in lines if line.startswith("#include")]
    code = "\n".join(line for line in lines if not line.startswith(("#include", "using namespace muonwalk;"))).strip("\n")
    namespace = f"try{exercise.number.replace('.', '_')}"
    return ("\n".join(['#include "judge.hpp"', *includes]),
            definition(namespace, ["using namespace muonwalk;", "", *code.split("\n")]),
            f'nb::judge("{exercise.name}", &{namespace}::{exercise.function});')


def add_exercises(notebook, its_exercises):
    """Each with its contract, its hints folded away, the stub in a cell of its own, and the judgement."""
    for at, exercise in enumerate(its_exercises):
        contract = "\n".join(re.sub(r"^// ?", "", line) for line in exercise.contract[1:]).strip("\n")
        hints = "".join(f"<details><summary>Hint {number}</summary>\n\n{hint}\n\n</details>\n\n"
                        for number, hint in enumerate(exercise.hints, 1))
        again = ("Write it in the next cell but one, and execute the cells up to the judgement. To try again, restart the kernel, and "
                 "execute the first cell and these; or give the function another name, and hand that one to the judge."
                 if at == 0 else "")
        notebook.text(f"try-{exercise.function}",
                      "\n\n".join(part for part in (f"## Try it yourself: {exercise.title}", contract, again, hints.strip()) if part))
        includes, function, judgement = attempt(exercise, "stub.cpp")
        notebook.code(f"try-{exercise.function}-includes", includes)
        notebook.code(f"try-{exercise.function}-yours", function)
        notebook.code(f"try-{exercise.function}-judge", judgement)


def make_notebook(lesson, titles, arguments="", its_exercises=()):
    """The notebook of one lesson as text. `titles` maps the names of all lessons to their titles, for links; `arguments` is
    what the command line says at first; its exercises come at the end."""
    notebook, namespace = Notebook(), f"nb{lesson.number}"
    opened = next((i for i, block in enumerate(lesson.blocks) if block.kind == "main_open"), None)
    if opened is None:
        raise LessonError(f"{lesson.path.name}: a lesson has a function `int main(...) {{`, but this one has none")
    top, main = lesson.blocks[:opened], lesson.blocks[opened + 1:]

    # The title, then what every notebook begins with, then the rest.
    first_code = next(i for i, block in enumerate(top) if block.kind != "prose")
    for block in top[:first_code]:
        notebook.text("title" if block is top[0] else heading_of(block) or "text", text_of(block, lesson, titles))
    notebook.text("about-this-notebook",
                  f"*This notebook is made from `lessons/{lesson.name}/{lesson.name}.cpp`; change that file, not this one. "
                  "Its ranks are threads of the kernel. [README.md](README.md) says how to get a kernel and how to build "
                  "the library that the next cell loads.*")
    notebook.code("setup", '#include "setup.hpp"')
    includes = [block for block in top if block.kind == "include"]
    notebook.code("includes", "\n".join(separated(includes)))
    usings = [line for block in top if block.kind == "using" for line in block.lines]
    notebook.code("names", definition(namespace, usings))
    notebook.code("use-names", f"using namespace {namespace};")
    add_definitions(notebook, lesson, titles, namespace, top[first_code:])
    add_main(notebook, lesson, titles, main, arguments)
    add_exercises(notebook, its_exercises)
    return notebook.to_json()


def separated(blocks):
    """The lines of these blocks, with an empty line where there was one."""
    lines, before = [], None
    for block in blocks:
        if before is not None and not touches(before, block):
            lines.append("")
        lines.extend(block.lines)
        before = block
    return lines


def titles_of(lessons):
    return {lesson.name: f"lesson {lesson.number} · {lesson.title}" for lesson in lessons}


def all_notebooks(root):
    """The notebooks of all lessons, as {file name: text}."""
    lessons = lessons_in_order(root)
    titles = titles_of(lessons)
    all_exercises = exercises(Path(root))
    return {f"{lesson.name}.ipynb": make_notebook(lesson, titles, test_arguments(root, lesson.name),
                                                  [each for each in all_exercises if each.lesson == lesson.name])
            for lesson in lessons}


def main():
    parser = argparse.ArgumentParser(description="Makes the notebook of each lesson out of the lesson's own source.")
    parser.add_argument("--into", type=Path, default=ROOT / "notebooks", help="the folder (default: notebooks)")
    options = parser.parse_args()
    try:
        made = all_notebooks(ROOT)
    except (LessonError, Broken) as error:
        print(f"make_notebooks: {error}", file=sys.stderr)
        sys.exit(2)
    options.into.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        write_whole(options.into / name, text)


if __name__ == "__main__":
    main()
