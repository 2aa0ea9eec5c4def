#!/usr/bin/env python3
"""Holds notebooks to the rules under which they run on every interpreter of C++: xeus-cling, xeus-cpp and clang-repl.

    lint_notebooks.py NOTEBOOK.ipynb...

Prints a sentence for each fault and exits with 1 when there is one. What clang-repl refuses itself, when the notebooks are executed, is
not looked for; nor is what make_notebooks.py always writes, for a notebook that is not as it makes it has drifted.
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
BEGIN = ['#include "interrupts.hpp"', '#include "setup.hpp"']  # of the first cells with code
FUNCTIONS = ("NB_FUNCTION(", "NB_JUDGED(")  # what stands in them is a function's body
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
        return "definitions" if all(definition or piece.startswith("NB_DECLARE(") or name_declared(piece) and piece.endswith(";") for definition, piece in found) else None
    return "statements" if all(piece.endswith(";") or CONTROL.match(piece) for _, piece in found) else None


def lambda_faults(code):
    for found in re.finditer(r"\[([^\[\]]*)\]\s*(?:\([^()]*\)\s*(?:mutable\s*)?(?:->\s*[\w:]+\s*)?)?\{", code):
        if re.match(r"\s*[&=]\s*(?:,|$)", found.group(1)):
            yield "has a lambda that captures by default, which crashes clang-repl; pass a named function"
        before = code[:found.start()]
        if before.count("(") > before.count(")"):
            yield "passes a lambda where it is written, which crashes clang-repl; pass a named function"


def faults_of_cell(source):
    """Sentences about one code cell."""
    code = without_words(source)
    for line in source.splitlines():
        if re.match(r"\s*(?:%|!|\?\S|\.[A-Za-z])", line):
            yield f"has the magic {line.strip()!r}, which only one kernel knows"
    for pattern, why in FORBIDDEN.items():
        if re.search(pattern, code):
            yield f"has {re.search(pattern, code).group(0)!r}: {why}"
    kind = kind_of(code)
    if not code:
        yield "is empty"
    elif kind is None:
        yield "is of no kind: a cell is includes, or definitions, or statements that end in ';' (and define nothing)"
    elif any(piece.startswith("namespace") for piece in pieces(code)):
        yield "defines a namespace, which xeus-cpp forgets with the first name in it that is defined again"
    elif kind == "statements":
        yield from lambda_faults("\n".join(piece for piece in pieces(code) if not piece.startswith(FUNCTIONS)))


def faults(notebook):
    """What is wrong with a notebook, a sentence each."""
    code_cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for at, cell in enumerate(code_cells):
        where, source = f"cell {cell['id']}", "".join(cell["source"])
        if any(output["output_type"] == "error" or output.get("name") == "stderr" for output in cell["outputs"]):
            yield f"{where} is kept with an error"
        printed = [line for output in cell["outputs"] for line in "".join(output.get("text", "")).split("\n")]
        if max(map(len, printed), default=0) > MOST_COLUMNS:
            yield f"{where} is kept with a line of {max(map(len, printed))} columns, which wraps; nb::print shows it so that it scrolls"
        if at < len(BEGIN) and source.strip() != BEGIN[at] or at >= len(BEGIN) and source.strip() in BEGIN:
            yield f"{where}: the first cells with code have {' and '.join(BEGIN)}, one each, and do nothing else; no other cell has it"
        yield from (f"{where} {fault}" for fault in faults_of_cell(source))
    if not any("NB_CHECK(" in "".join(cell["source"]) for cell in code_cells):
        yield "no cell has an NB_CHECK: the notebook could not fail"


def main():
    if len(sys.argv) < 2:
        sys.exit("lint_notebooks: there is no notebook to look at; name at least one")
    count = 0
    for path in map(Path, sys.argv[1:]):
        for fault in faults(json.loads(path.read_text(encoding="utf-8"))):
            print(f"{path.name}: {fault}")
            count += 1
    print(f"{len(sys.argv) - 1} notebooks, {count} faults")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
