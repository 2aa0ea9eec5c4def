#!/usr/bin/env python3
"""Makes the notebook of each lesson out of the lesson's own source.

    notebooks/make/make_notebooks.py [--into FOLDER]

Prose becomes text cells, what the lesson declares becomes definition cells, and the lines of `main` become statement cells,
each right behind what it needs (notebook_order.py). The same source makes the same cells. Without a folder, they go to
notebooks/. What a cell put out when it was executed last (run_notebook.py --keep) stays as long as the cell is the same.
"""

import argparse
import json
import re
import sys
from functools import cache
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "docs/make"), str(ROOT / "sim/classroom")]
from exercises import Broken, exercises  # noqa: E402
from lesson_source import Block, LessonError, lessons_in_order, test_arguments, with_references  # noqa: E402
from notebook_cells import (Functions, as_function, begins, declaration_in_main, dedented, first_value, for_definition, in_cell,  # noqa: E402
                            shows_phases, variables_declared, with_outcome)
from notebook_order import Order  # noqa: E402
from notebook_file import as_jupyter_writes  # noqa: E402
from whole_file import write_whole  # noqa: E402
from your_turn import add_your_turn  # noqa: E402

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

    def _add(self, kind, name, source, metadata, **more):
        stem = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:56] or kind
        cell_id, number = stem, 1
        while cell_id in self.ids:
            number += 1
            cell_id = f"{stem}-{number}"
        self.ids.add(cell_id)
        lines = source.splitlines(keepends=True)
        self.cells.append({"cell_type": kind, "id": cell_id, "metadata": metadata, "source": lines, **more})

    def text(self, name, source):
        self._add("markdown", name, source, {})

    def code(self, name, source, **metadata):
        self._add("code", name, source, metadata, execution_count=None, outputs=[])

    def once(self, name, source):
        """A cell that can't be run a second time, because it defines something, or need not be."""
        self.code(name, source, tags=["once"])

    def to_json(self):
        return as_jupyter_writes({"cells": self.cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5})


# --- prose ------------------------------------------------------------------------------------------------------------


def with_links(prose, titles, where):
    """"lesson 04" becomes a link to that notebook, "[newton_schulz]" a name in code font."""

    def link(words, number):
        name = next((name for name in titles if name.startswith(f"lesson_{number}_")), None)
        if name is None:
            raise LessonError(f"{where}: there is no lesson {number}; lessons/CMakeLists.txt lists those that there are")
        return f'[{words}]({name}.ipynb "{titles[name]}")'

    return with_references(prose, link, "`{}`".format)


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


def touches(before, block):
    """No empty line between the two."""
    return before.first_line + len(before.lines) == block.first_line


def heading_of(block):
    match = re.search(r"^#+ (.+)$", block.prose, re.MULTILINE)
    return match.group(1) if match else ""


# --- cells ------------------------------------------------------------------------------------------------------------

_VALUES = re.compile(r"^\s*(?:Matrix|Flat) (\w+)\s*[;=]", re.MULTILINE)


def something_held(lesson, function):
    """The name of a matrix or an array in Local that this function fills, for the reader to look at; empty where there is
    none."""
    local, body = lesson.declaration("Local"), lesson.declaration(function)
    names = _VALUES.findall(local[1].text) if local and body else []
    return next((name for name in reversed(names) if re.search(rf"\blocal\.{name} = ", body[1].text)), "")


def another_way(lesson):
    """Options for a second run of the lesson: what it tells the reader to try, as far as it is a layout or a precision."""
    listed = re.search(r"info\.also_try = \{(.*?)\};", "\n".join(lesson.lines), re.DOTALL)
    for words in re.findall(r'"((?:\\.|[^"\\])*)"', listed[1]) if listed else ():
        if re.fullmatch(r"(?:--(?:dp|tp|pp) \d+ ?|--precision \w+ ?|--placement \S+ ?)+", words):
            return words
    return "--seed 7"


class Cells:
    """The cells between those with which every notebook begins and those with which it ends."""

    def __init__(self, notebook, lesson, titles, order, functions, arguments):
        self.notebook, self.lesson, self.titles, self.order, self.arguments = notebook, lesson, titles, order, arguments
        self.functions = functions
        self.turns = 0
        self.values = []   # statements that give variables of the lesson their first values again
        self.group = []    # statements that share a cell
        self.begun = self.looked = False

    def add(self):
        for kind, piece in self.order.pieces():
            if kind == "group":
                self.end_cell()
                self.add_group(piece)
            else:
                self.add_statement(piece)
        self.end_cell()

    def text(self, block, otherwise):
        self.notebook.text(heading_of(block) or f"about-{otherwise}", text_of(block, self.lesson, self.titles))

    def add_group(self, group):
        declarations = group.declarations
        for block in group.blocks:
            if block.kind == "prose":
                self.text(block, declarations[0].name if declarations else "the-lesson")
        for is_function, run in groupby(declarations, self.functions.has):
            run = list(run)
            add = self.notebook.code if is_function else self.notebook.once
            add(f"define-{run[0].name}", "\n".join([*separated(run, self.functions.lines), *self.functions.declared_behind(run)]))
        for block in declarations:
            self.values += [first_value(*variable) for variable in variables_declared(block)]

    def add_statement(self, statement):
        block = statement.block
        before = self.group[-1].block if self.group else None
        is_step = re.match(r"(?:\s*//[^\n]*\n)*\s*lesson\.(?:quiet_)?step\(", block.text) is not None
        goes_on = before is not None and not statement.prose and touches(before, block) and not is_step
        if not goes_on or begins(block) or (self.begun and not statement.works and any(each.works for each in self.group)):
            self.end_cell()
        for prose in statement.prose:
            self.text(prose, "main")
        if begins(block):
            self.add_before_begin()
        self.group.append(statement)

    def add_before_begin(self):
        variables = [declaration_in_main(each.block) for each in self.order.statements]
        lines = ["std::optional<Lesson<Local>> lesson;",
                 *(f"{kind} {name};" for kind, name, _ in filter(None, variables) if name != "info")]
        self.notebook.once("declare-lesson", "\n".join(lines))
        another = [f"`{another_way(self.lesson)}`", *(f"`--bug {name}`" for name in self.lesson.bugs[:1])]
        words = (
            "The next cell begins the lesson. Between its quotes stands the command line of the program; all of the lesson's "
            f"options may stand there. To run the lesson another way, for example with {' or '.join(another)}, change the "
            "words, run the cell again, and then those behind it that define nothing. Nothing has to be restarted.")
        if self.arguments:
            words += (f" (`{self.arguments}` asks for a smaller run than the program's own: leave it out for the real sizes, "
                      "and have a little patience.)")
        self.notebook.text("about-the-beginning", words)

    def end_cell(self):
        if not self.group:
            return
        group, self.group = self.group, []
        if not self.begun and not any(begins(each.block) for each in group):
            self.notebook.once("info", "\n".join(line for each in group for line in self.info_lines(each.block)))
            return
        lines = with_outcome([line for each in group for line in in_cell(each.block, self.arguments)])
        if self.begun and any(each.works and shows_phases(self.lesson, each.block.text) for each in group):
            lines.append("nb::show_phases(*lesson);")
        self.values, values = [], self.values
        if not self.begun:
            self.begun = True
            lines.append("nb::in_turn(lesson, 0);")  # where nothing was refused
            self.notebook.code("begin", "\n".join(values + lines), again=another_way(self.lesson), tags=["begin"])
            return
        self.turns += 1
        self.notebook.code(self.name_of(group), "\n".join([f"nb::in_turn(lesson, {self.turns});", *values, *lines]))
        if not self.looked and group[0].block.kind == "statement" and "step(" in group[0].block.text:
            self.looked = True
            self.add_look(group[0].block)

    @staticmethod
    def info_lines(block):
        return dedented(block.lines).split("\n")

    @staticmethod
    def name_of(group):
        text = "\n".join(each.block.text for each in group)
        step = re.search(r"\blesson\.(?:quiet_)?step\(.*?(\w+)\);", text, re.DOTALL)
        if step:
            return f"step-{step[1]}"
        for words, name in (("lesson.answer", "answer"), ("lesson.check", "checks"), ("lesson.cost", "cost"), ("return", "result")):
            if words in text:
                return name
        return "statements"

    def add_look(self, block):
        """After the first step: how to see what a rank holds."""
        function = re.search(r"(\w+)\);", block.text)
        held = something_held(self.lesson, function[1]) if function else ""
        if held:
            self.notebook.text("about-looking", "The ranks wait here until the next step. Between steps you can look at what each "
                               "of them holds. Ask for another rank, or for another member of `Local`, or add such a cell after a "
                               "later step.")
            self.notebook.code("look", f"nb::show(nb::rank(lesson, 0).{held});")


def attempt(exercise, name):
    """The cells in which the file `name` of an exercise is written and judged: what it includes; the function, and its judgement."""
    lines = [line for line in exercise.read(name).split("\n") if not line.startswith(("// fails: ", "using namespace muonwalk;"))]
    includes = [line for line in lines if line.startswith("#include")]
    code = "\n".join(line for line in lines if not line.startswith("#include")).strip("\n")
    yours = as_function(Block("declaration", 1, code.split("\n")))
    if yours is None:
        raise Broken(f"{exercise.name}/{name}: a notebook can't hold it, for it has more than comments and its function")
    return "\n".join(['#include "judge.hpp"', *includes]), "\n".join(yours.written_as("NB_JUDGED", f'"{exercise.name}",\n          '))


def add_exercises(notebook, its_exercises):
    """Each with its contract, its hints folded away, and the stub in a cell that judges it."""
    for at, exercise in enumerate(its_exercises):
        contract = "\n".join(re.sub(r"^// ?", "", line) for line in exercise.contract[1:]).strip("\n")
        hints = "".join(f"<details><summary>Hint {number}</summary>\n\n{hint}\n\n</details>\n\n"
                        for number, hint in enumerate(exercise.hints, 1))
        again = ("Write it in the next cell but one, and run the two. The cell judges what you have written; change it and run it as "
                 "often as you like." if at == 0 else "")
        notebook.text(f"try-{exercise.function}",
                      "\n\n".join(part for part in (f"## Try it yourself: {exercise.title}", contract, again, hints.strip()) if part))
        includes, function = attempt(exercise, "stub.cpp")
        notebook.once(f"try-{exercise.function}-includes", includes)
        notebook.code(f"try-{exercise.function}-yours", function)


@cache
def functions_of_headers():
    """The names of functions that a lesson may find without naming a class or a namespace."""
    headers = (path for room in ("src", "sim") for path in (ROOT / room).rglob("*.hpp"))
    return {name for path in headers for name in re.findall(r"^[A-Za-z][\w:<>, &*]*[ &*]([a-z_]\w*)\(", path.read_text(encoding="utf-8"), re.M)}


def make_notebook(lesson, titles, arguments="", its_exercises=()):
    """The notebook of one lesson as text. `titles` maps the names of all lessons to their titles, for links; `arguments` is
    what the command line says at first; its exercises come at the end."""
    notebook = Notebook()
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
                  "Its ranks are fibers of the kernel: Interrupt stops them, and the kernel goes on. A function, NB_FUNCTION, can be "
                  "changed and its cell run again; types and variables can't be defined a second time. To start over, take "
                  "Restart Kernel and Run All. "
                  "[README.md](README.md) says how to get a kernel and how to build the library that the next cells load.*")
    notebook.once("interrupts", '#include "interrupts.hpp"')
    notebook.once("setup", '#include "setup.hpp"')
    notebook.once("includes", "\n".join(separated([block for block in top if block.kind == "include"])))
    order = Order(top[first_code:], main)
    functions = Functions([block for kind, group in order.pieces() if kind == "group" for block in group.declarations],
                          functions_of_headers())
    names = [line for block in top if block.kind == "using" for line in block.lines]
    notebook.once("names", "\n".join([*names, *functions.declared_behind()]))
    Cells(notebook, lesson, titles, order, functions, arguments).add()
    add_your_turn(notebook, lesson, order, functions, arguments)
    add_exercises(notebook, its_exercises)
    return notebook.to_json()


def separated(blocks, lines_of=lambda block: block.lines):
    """The lines of these blocks, with an empty line where there was one."""
    lines, before = [], None
    for block in blocks:
        if before is not None and not touches(before, block):
            lines.append("")
        lines.extend(lines_of(block))
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


def with_outputs_of(kept, text):
    """The notebook with what its cells put out in an earlier form of it, where those cells were the same."""
    try:
        known = {(cell.get("id"), "".join(cell["source"])): cell for cell in json.loads(kept)["cells"] if "outputs" in cell}
    except (ValueError, KeyError, TypeError):
        return text
    whole = json.loads(text)
    for cell in whole["cells"]:
        same = known.get((cell["id"], "".join(cell["source"])))
        if same and cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = same["outputs"], same.get("execution_count")
    return as_jupyter_writes(whole)


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
        path = options.into / name
        write_whole(path, with_outputs_of(path.read_text(encoding="utf-8"), text) if path.exists() else text)


if __name__ == "__main__":
    main()
