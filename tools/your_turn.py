"""The cells *Your turn*: a copy of one of the lesson's functions under another name, and the lesson with it in that place."""

import re

from notebook_cells import begins, declaration_in_main, for_definition, in_cell, first_value, variables_declared, with_outcome

_STEP = re.compile(r'^\s*lesson\.(?:quiet_)?step\("(?:[^"\\]|\\.)*",\s*(\w+)\);', re.MULTILINE)
_SETS_UP = re.compile(r"^\s*(?:lesson\.(?:require|on_hosts|trains)\(|\w+ = lesson\.)", re.MULTILINE)
_CHECKS = re.compile(r"^\s*lesson\.check\(", re.MULTILINE)


def last_step(order):
    """The place of the last step that can be taken with another function; None where there is none, because what comes
    before it is more than steps."""
    found = None
    for at, statement in enumerate(order.statements):
        if statement.works:
            if not _STEP.search(statement.block.text):
                return found
            found = at
    return found


def _first_values(order):
    groups = [piece for kind, piece in order.pieces() if kind == "group"]
    return [first_value(*variable) for group in groups for block in group.declarations for variable in variables_declared(block)]


def add_your_turn(notebook, lesson, order, arguments):
    at = last_step(order)
    function = _STEP.search(order.statements[at].block.text)[1] if at is not None else ""
    found = lesson.declaration(function)
    if not found or ".show(" not in found[1].text:
        return
    mine = f"my_{function}"
    checks = [each for each in order.statements if _CHECKS.search(each.block.text)]
    last = next((i for i, each in enumerate(order.statements) if i > at and each.works), len(order.statements))
    words = " ".join(part for part in (arguments, "--verbose 0") if part)
    lines = _first_values(order)
    for i, each in enumerate(order.statements[:last]):
        if begins(each.block) or each.works or each in checks or _SETS_UP.search(each.block.text):
            if not declaration_in_main(each.block):
                lines += in_cell(each.block, words)
    lines = [line for line in lines if not line.startswith("//")]
    lines = [re.sub(rf"\b{function}\);", f"{mine});", line) for line in lines]
    notebook.text("your-turn", "## Your turn\n\n"
                  f"The next cell has a copy of `{function}` under another name. Change it; then run it and the cell behind it, in "
                  "which the lesson begins again and takes its steps with your function. The check says whether the bits are "
                  "still those of the reference. A name can be defined once in a session: call your next attempt "
                  f"`{mine}_2`, in both cells.")
    notebook.once(f"your-{function}", re.sub(rf"\b{function}\b", mine, "\n".join(for_definition(found[1].lines))))
    notebook.once(f"your-{function}-in-the-lesson", "\n".join(with_outcome(lines)))
