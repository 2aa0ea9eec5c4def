"""The order of a notebook: what a lesson declares stays in its order, and each statement of `main` comes right behind the last
declaration that it needs, so that a step is run where it is defined.

The statements before the first step set the lesson up. What they need and what the lesson declares only later (a last look at
the options, mostly) is moved in front of them, with the prose above it.
"""

import re
from dataclasses import dataclass, field

from notebook_cells import variables_declared, without_words

# Statements in which ranks work: a step, or a function that is handed the lesson.
_WORKS = re.compile(r"\blesson\.(?:quiet_)?step\(|[(,]\s*lesson\s*[,)]")
# A function that refuses what can't work, before there are ranks.
_REFUSES = re.compile(r"\brequire_\w+\(lesson\)")


@dataclass
class Group:
    """Prose and what it speaks of: the declarations below it, down to the next prose."""

    blocks: list = field(default_factory=list)
    moved: bool = False  # in front of the statements that set the lesson up

    @property
    def declarations(self):
        return [block for block in self.blocks if block.kind == "declaration"]


@dataclass
class Statement:
    """A statement of `main` with the prose above it."""

    block: object
    prose: list
    needs: set      # the groups that it names, by their place
    behind: int = 0  # the group behind which it stands

    @property
    def works(self):
        return is_work(self.block)


def is_work(block):
    return _WORKS.search(_REFUSES.sub("", without_words(block.text))) is not None


def names_in(text):
    """The names in a piece of code that may be those of declarations: no members, and nothing out of a namespace."""
    return set(re.findall(r"(?<![.\w])(?<!->)(?<!::)[A-Za-z_]\w*", without_words(text)))


def groups_of(blocks):
    groups = []
    for block in blocks:
        if block.kind == "prose" or not groups:
            groups.append(Group())
        if block.kind in ("prose", "declaration"):
            groups[-1].blocks.append(block)
    return groups


def declared_in(groups):
    """{name: places of the groups that declare it}"""
    places = {}
    for at, group in enumerate(groups):
        for block in group.declarations:
            for name in {block.name, *(name for _, name, _ in variables_declared(block))}:
                places.setdefault(name, set()).add(at)
    return places


def _needs(text, places):
    return set().union(*(places.get(name, set()) for name in names_in(text)), set())


def _with_all_that_they_need(wanted, groups, places):
    found, left = set(), set(wanted)
    while left:
        at = left.pop()
        found.add(at)
        for block in groups[at].declarations:
            left |= _needs(block.text, places) - found
    return found


def statements_of(blocks, places):
    """The statements of `main`, and the prose that stands behind the last of them."""
    statements, prose = [], []
    for block in blocks:
        if block.kind == "prose":
            prose.append(block)
        elif block.kind == "statement":
            statements.append(Statement(block, prose, _needs(block.text, places)))
            prose = []
    return statements


class Order:
    """The groups of a lesson and the statements of its `main`, each statement with the group behind which it stands."""

    def __init__(self, declarations, main):
        self.groups = groups_of(declarations)
        places = declared_in(self.groups)
        self.statements = statements_of(main, places)
        first_work = next((i for i, each in enumerate(self.statements) if each.works), len(self.statements))
        self.setup = self.statements[:first_work]
        steps_begin = max(self.statements[first_work].needs, default=0) if first_work < len(self.statements) else 0
        needed = _with_all_that_they_need(set().union(*(each.needs for each in self.setup), set()), self.groups, places)
        before = max((at for at in needed if at < steps_begin), default=0)
        for at in needed:
            self.groups[at].moved = at > before
        for each in self.statements:
            own = max((at for at in each.needs if not self.groups[at].moved), default=0)
            before = each.behind = max(before, own)
        if self.statements:  # the exercises, and the answer
            self.statements[-1].behind = len(self.groups) - 1

    def pieces(self):
        """("group", Group) and ("statement", Statement), as they follow each other; moved groups come before the first
        statement."""
        first = self.statements[0].behind if self.statements else len(self.groups)
        for at, group in enumerate(self.groups):
            if not group.moved:
                yield "group", group
            if at == first:
                yield from (("group", moved) for moved in self.groups if moved.moved)
            yield from (("statement", each) for each in self.statements if each.behind == at)
