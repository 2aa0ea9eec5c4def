"""The cell *Your turn*: one of the lesson's functions once more, and the lesson that takes its steps with it."""

import re

from notebook_cells import (begins, declaration_in_main, first_value, has_something_to_see, in_cell, variables_declared, with_outcome)

_STEP = re.compile(r'^\s*lesson\.(?:quiet_)?step\("(?:[^"\\]|\\.)*",\s*(\w+)\);', re.MULTILINE)
_SETS_UP = re.compile(r"^\s*(?:lesson\.(?:require|set_up|trains)\(|\w+ = lesson\.)", re.MULTILINE)
_CHECKS = re.compile(r"^\s*lesson\.check\(", re.MULTILINE)


def simple_steps(order):
    """The places of the steps that can be taken with other functions: those before anything that is more than a step."""
    found = []
    for at, statement in enumerate(order.statements):
        if statement.works:
            if not _STEP.search(statement.block.text):
                break
            found.append(at)
    return found


def reader_s_function(lesson, order):
    """The function of the last step in which there is something to see; empty where no step can be taken with another one."""
    for at in reversed(simple_steps(order)):
        text = order.statements[at].block.text
        if has_something_to_see(lesson, text) and lesson.declaration(_STEP.search(text)[1]):
            return _STEP.search(text)[1]
    return ""


def _first_values(order):
    groups = [piece for kind, piece in order.pieces() if kind == "group"]
    return [first_value(*variable) for group in groups for block in group.declarations for variable in variables_declared(block)]


def add_your_turn(notebook, lesson, order, functions, arguments):
    name = reader_s_function(lesson, order)
    if not name or not functions.has(lesson.declaration(name)[1]):
        return
    checks = [each for each in order.statements if _CHECKS.search(each.block.text)]
    steps = simple_steps(order)
    last = next((i for i, each in enumerate(order.statements) if i > steps[-1] and each.works), len(order.statements))
    if not any(each in checks for each in order.statements[:last]):
        return  # nothing would say whether it is right
    words = " ".join(part for part in (arguments, "--verbose 0") if part)
    lines = _first_values(order)
    for i, each in enumerate(order.statements[:last]):
        if begins(each.block) or each.works or each in checks or _SETS_UP.search(each.block.text):
            if not declaration_in_main(each.block):
                lines += in_cell(each.block, words)
    lines = [line for line in lines if not line.startswith("//")]
    notebook.text("your-turn", "## Your turn\n\n"
                  f"The next cell has `{name}` once more. Change it and run the cell, as often as you like: the lesson begins again and "
                  "takes its steps with your function, and the check says whether the bits are still those of the reference.")
    notebook.code(f"your-{name}", "\n".join([*functions.lines(lesson.declaration(name)[1]), "", *with_outcome(lines)]))
