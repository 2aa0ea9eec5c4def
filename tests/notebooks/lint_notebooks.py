#!/usr/bin/env python3
"""Holds notebooks to the rules under which they run on every interpreter of C++: xeus-cling, xeus-cpp and clang-repl.

    lint_notebooks.py NOTEBOOK.ipynb...

Prints a sentence for each fault and exits with 1 when there is one.
"""

import json
import re
import sys
from pathlib import Path

FORBIDDEN = {
    r"#\s*pragma": "pragmas belong in setup.hpp or in the library",
    r"\bstd::(?:future|async|promise|packaged_task)\b": "futures need thread-locals, which interpreters don't have; use the library",
    r"\bstd::call_once\b": "std::call_once needs thread-locals, which interpreters don't have; use the library",
    r"\bthread_local\b": "interpreters don't have thread-locals; they live in the library",
    r"\bstd::j?thread\b": "a thread could outlive its cell; the library starts the ranks, and waits for them",
    r"#include <Eigen/": "it costs a second in an interpreter, and its types need the library's own flags; use the library",
}
MOST_COLUMNS = 88  # that a cell shows without wrapping, as in setup.hpp
CONTROL = re.compile(r"^(?:if|else|for|while|do|switch|try|catch)\b|^\{")
DECLARATION = re.compile(r"^(?:(?:const|constexpr|static|inline)\s+)*[A-Za-z_][\w:]*(?:<[^;=]*?>)?(?:\s*[*&]+\s*(?:const\s+)?|\s+)"
                         r"(?P<name>[A-Za-z_]\w*)\s*(?:$|[=({\[,])")
NO_TYPE = ("return", "using", "throw", "delete", "new", "goto", "else", "case", "namespace", "typedef", "friend")
NAMED_TYPE = re.compile(r"^(?:template\s*<.*?>\s*)?(?:struct|class|enum class|enum|union)\s+(?P<name>\w+)", re.DOTALL)


def without_words(code):
    """The code without comments, and with nothing in its strings and characters."""
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
                  lambda found: "" if found.group(0).startswith("/") else '""', code, flags=re.DOTALL)
    return code.strip()


def pieces(code):
    """Code cut where a `;` or a `}` ends something at the top: declarations, statements, functions."""
    depth, begin, found = 0, 0, []
    for at, sign in enumerate(code):
        if sign in "({[":
            depth += 1
        elif sign in ")}]":
            depth -= 1
        rest = code[at + 1:].lstrip()
        ends = sign == ";" or sign == "}" and not rest.startswith((";", ",", ")", ".", "<", "+", "/", "|", "?", "else", "catch"))
        if depth == 0 and ends:
            found.append(code[begin:at + 1].strip())
            begin = at + 1
    if code[begin:].strip():
        found.append(code[begin:].strip())
    return found


def name_declared(piece):
    """The name that this piece of code declares, or an empty text."""
    typed = NAMED_TYPE.match(piece)
    if typed:
        return typed.group("name")
    head = re.split(r"[;]", piece)[0]
    if head.split(None, 1) and head.split(None, 1)[0].split("(")[0] in NO_TYPE:
        return ""
    declared = DECLARATION.match(head)
    return declared.group("name") if declared else ""


def defines(piece):
    """A function, a type, a template, a namespace or a using: what a session takes once."""
    begin = DECLARATION.match(piece)
    is_function = begin and name_declared(piece) and begin.group(0).endswith("(") and piece.endswith("}")
    return bool(is_function or NAMED_TYPE.match(piece) or piece.startswith(("template", "namespace", "using ")))


def kind_of(code):
    """includes, definitions or statements; None for any other cell. A variable that is declared may stand with either."""
    lines = [line for line in code.splitlines() if line.strip()]
    if all(line.startswith("#include ") for line in lines):
        return "includes"
    if any(line.lstrip().startswith("#") for line in lines):
        return None
    found = [(defines(piece), piece) for piece in pieces(code)]
    if any(definition for definition, _ in found):
        return "definitions" if all(definition or name_declared(piece) and piece.endswith(";") for definition, piece in found) else None
    return "statements" if all(piece.endswith(";") or CONTROL.match(piece) for _, piece in found) else None


def lambda_faults(code):
    for found in re.finditer(r"\[([^\[\]]*)\]\s*(?:\([^()]*\)\s*(?:mutable\s*)?(?:->\s*[\w:]+\s*)?)?\{", code):
        if re.match(r"\s*[&=]\s*(?:,|$)", found.group(1)):
            yield "has a lambda that captures by default, which crashes clang-repl; pass a named function"
        before = code[:found.start()]
        if before.count("(") > before.count(")"):
            yield "passes a lambda where it is written, which crashes clang-repl; pass a named function"


def faults_of_cell(source, number, named, once):
    """Sentences about one code cell; `named` collects what was named so far, `once` says that it is marked so."""
    code = without_words(source)
    for line in source.splitlines():
        if re.match(r"\s*(?:%|!|\?\S|\.[A-Za-z])", line):
            yield f"has the magic {line.strip()!r}, which only one kernel knows"
    for pattern, why in FORBIDDEN.items():
        if re.search(pattern, code):
            yield f"has {re.search(pattern, code).group(0)!r}: {why}"
    if not code:
        yield "is empty"
        return
    kind = kind_of(code)
    if kind is None:
        yield "is of no kind: a cell is includes, or definitions, or statements that end in ';' (and define nothing)"
        return
    if kind == "includes":
        return
    body, within = code, ""
    if code.startswith("namespace"):
        # Each exercise has a namespace of its own: its function may be called like one of the lesson.
        within = code.split()[1]
        if len(pieces(code)) > 1 or number and not re.fullmatch(rf"try{number}(?:_\d)?", within):
            yield f"defines in namespace {within}; only an exercise has a namespace, try{number}, and a cell of its own"
        body = code[code.index("{") + 1:code.rindex("}")]
    elif kind == "statements":
        yield from lambda_faults(code)
        yield from faults_of_statements(code)
    for piece in pieces(body):
        name = name_declared(piece) if not CONTROL.match(piece) else ""
        name = f"{within}::{name}" if name and within else name
        if name and name in named:
            yield f"names {name} again; every name stands once, and throw-away variables stand in {{ … }}"
        named.add(name)
    # A cell without the mark is run again with the lesson, and what it defines would be defined twice.
    if not once and (kind == "definitions" or any(name_declared(piece) and not CONTROL.match(piece) for piece in pieces(body))):
        yield 'defines or declares something, and is not marked "once"'


def faults_of_statements(code):
    for piece in pieces(code):
        if re.match(r"lesson->answer\(", piece):
            yield "does not look at what lesson->answer returns; wrap it in NB_CHECK"
    if re.search(r"\blesson->(?:check|check_numbers|cost)\((?!.*\bNB_CHECK\(lesson->all_equal\(\)\);)", code, re.DOTALL):
        yield "checks something and does not look at the outcome; add NB_CHECK(lesson->all_equal());"
    begins = "lesson.emplace(" in code
    if re.search(r"\blesson->|\*lesson\b", code) and not begins and not code.startswith("nb::in_turn(lesson, "):
        yield "works with the lesson and does not begin with nb::in_turn(lesson, …);"


def faults_of_order(cells):
    """Numbered cells count from 1, and one cell begins the lesson before them."""
    turns = [int(turn) for cell in cells for turn in re.findall(r"^nb::in_turn\(lesson, (\d+)\);", "".join(cell["source"]))]
    if turns != list(range(1, len(turns) + 1)):
        yield f"the numbered cells are {', '.join(map(str, turns))}; they count from 1"
    begin = [cell for cell in cells if "begin" in cell["metadata"].get("tags", ())]
    if len(begin) != 1 or not re.search(r'lesson\.emplace\(info, nb::options\(info, .*, "[^"]*"\)\);', "".join(begin[0]["source"])):
        yield "no cell is marked as the one that begins the lesson, or several are"


def faults(notebook, number=""):
    """What is wrong with a notebook, a sentence each. `number` is the lesson's, as in try05."""
    if (notebook.get("nbformat"), notebook.get("nbformat_minor", 0) >= 5) != (4, True):
        yield "the format is not 4.5 or newer, which has cell ids"
    if notebook.get("metadata", {}).get("kernelspec", {}).get("name") != "xcpp17":
        yield "the kernel is not xcpp17"
    ids, named, code_cells = set(), set(), 0
    for at, cell in enumerate(notebook["cells"]):
        cell_id = cell.get("id", "")
        where = f"cell {cell_id or at}"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", cell_id):
            yield f"{where} has no id (of letters, digits, - and _)"
        if cell_id in ids:
            yield f"{where} has the id of another cell"
        ids.add(cell_id)
        if cell["cell_type"] != "code":
            if not "".join(cell["source"]).strip():
                yield f"{where} is empty"
            continue
        source = "".join(cell["source"])
        once = "once" in cell["metadata"].get("tags", ())
        if any(output["output_type"] == "error" or output.get("name") == "stderr" for output in cell["outputs"]):
            yield f"{where} is kept with an error"
        printed = [line for output in cell["outputs"] for line in "".join(output.get("text", "")).split("\n")]
        if max(map(len, printed), default=0) > MOST_COLUMNS:
            yield f"{where} is kept with a line of {max(map(len, printed))} columns, which wraps; nb::print shows it so that it scrolls"
        if code_cells == 0 and source.strip() != '#include "setup.hpp"':
            yield f'{where} is the first one with code, and does something other than #include "setup.hpp"'
        if code_cells > 0 and "setup.hpp" in source:
            yield f"{where} includes setup.hpp, which the first cell has done"
        code_cells += 1
        yield from (f"{where} {fault}" for fault in faults_of_cell(source, number, named, once))
    yield from faults_of_order([cell for cell in notebook["cells"] if cell["cell_type"] == "code"])
    if not any("NB_CHECK(" in "".join(cell["source"]) for cell in notebook["cells"]):
        yield "no cell has an NB_CHECK: the notebook could not fail"


def main():
    if len(sys.argv) < 2:
        sys.exit("lint_notebooks: there is no notebook to look at; name at least one")
    count = 0
    for path in map(Path, sys.argv[1:]):
        number = re.match(r"lesson_(\d\d)_", path.name)
        for fault in faults(json.loads(path.read_text(encoding="utf-8")), number.group(1) if number else ""):
            print(f"{path.name}: {fault}")
            count += 1
    print(f"{len(sys.argv) - 1} notebooks, {count} faults")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
