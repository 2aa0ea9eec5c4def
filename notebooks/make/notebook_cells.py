"""What a lesson's code is turned into in a cell: statements of `main` as a notebook needs them."""

import re
from dataclasses import dataclass

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|//[^\n]*)')
_TYPE = r"[A-Za-z_][\w:]*(?:<[^;=()]*>)?"
_DECLARES = re.compile(rf"^(?:const\s+)?(?P<type>{_TYPE})\s+(?P<name>[a-z_]\w*)\s*(?:=\s*(?P<value>.*))?;$", re.DOTALL)
_NO_TYPE = ("return", "using", "throw", "delete", "struct", "class", "enum", "typedef", "namespace", "else")
_BEGINS = re.compile(r"^Lesson<Local> lesson\(info, (?P<grid>.+), argc, argv\);$", re.DOTALL)
_OTHER = re.compile(r"(Lesson<Local> \w+\((\w+), )(.+), argc, argv\);")
_RETURN = re.compile(r"\breturn ((?:[^;\"]|\"(?:\\.|[^\"\\])*\")*);")
_CALL_OR_NAME = re.compile(r"^[\w.>-]+(\(.*\))?$", re.DOTALL)


def without_words(code):
    """Code without comments, and with nothing in its strings."""
    return _STRING_OR_COMMENT.sub(lambda found: '""' if found.group(0).startswith('"') else "", code)


def _outside_of_words(change, code):
    """Code with `change` made to all that is neither a string nor a comment."""
    parts = _STRING_OR_COMMENT.split(code)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def dedented(lines):
    return "\n".join(line[2:] if line.startswith("  ") else line for line in lines)


def split_comment(code):
    """The comment lines above a statement, and the statement with its comment at the end of the last line apart."""
    lines = code.split("\n")
    at = next((i for i, line in enumerate(lines) if not line.lstrip().startswith("//")), len(lines))
    statement = "\n".join(lines[at:])
    behind = re.search(r"(;|\})(\s+//[^\n]*)$", statement)
    if behind:
        return lines[:at], statement[:behind.start(2)], behind.group(2)
    return lines[:at], statement, ""


def variables_declared(block):
    """(type, name, first value or None) of each variable that a declaration of the lesson's own begins with and that may
    change: no constants, functions and types."""
    code = re.sub(r"//[^\n]*", "", block.text).strip()
    match = re.match(rf"^(?P<type>{_TYPE})\s+(?P<rest>[a-z_]\w*\s*(?:=.*|,.*)?);$", code, re.DOTALL)
    if not match or match["type"] in (*_NO_TYPE, "const", "constexpr", "static", "template"):
        return []
    found = []
    for part in re.split(r",(?![^({<\[\"]*[)}>\]\"])", match["rest"]):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not re.fullmatch(r"[a-z_]\w*", name):
            return []
        found.append((match["type"], name, value or None))
    return found


def first_value(kind, name, value):
    """The statement that gives a variable the value it had in the beginning."""
    if value is not None:
        return f"{name} = {value};"
    return f"{name} = nullptr;" if kind.startswith("std::unique_ptr") else f"{name} = {kind}();"


def with_lesson(code):
    """The lesson is not the variable of `main` but what the begin cell has put in its place."""
    return _outside_of_words(
        lambda text: re.sub(r"(?<![\w.*&>])lesson(?=\s*[,)])", "*lesson",
                            re.sub(r"(?<![\w.>])lesson\.", "lesson->", text)), code)


def for_definition(lines):
    """A lesson that is made within a function takes the options of the one that has begun."""
    return [_OTHER.sub(lambda found: f"{found[1]}nb::options({found[2]}, {found[3]}, argc, argv));", line) for line in lines]


_HEAD = re.compile(r"^(?P<type>(?:const )?[A-Za-z_][\w:]*(?:<[^;(){},]*>)?&?) (?P<name>[a-z_]\w*)(?=\()")
_ONCE = ("template", "constexpr", "static", "inline")


@dataclass
class Function:
    """A function of the lesson's as notebooks write it: declared once, and defined in a cell that can be run again."""

    name: str
    type: str        # of what it returns
    parameters: str  # with their brackets
    comment: list    # the lines above it
    rest: list       # what stands behind its parameters, line by line

    @property
    def declared(self):
        return f"NB_DECLARE({self.type}, {self.name}, {' '.join(self.parameters.split())});"

    def written_as(self, macro, before=""):
        begin = f"{macro}({before}{self.type}, {self.name}, ("
        shift = "\n" + " " * (len(begin.split("\n")[-1]) - len(f"{self.type} {self.name}("))
        body = "\n".join(self.rest)
        end = body.rindex("}") + 1
        return [*self.comment, *(begin + self.parameters[1:].replace("\n", shift) + body[:end] + ");" + body[end:]).split("\n")]


def as_function(block):
    """The function that a declaration of the lesson's is, where a cell can define it again; None for types, variables, templates, and
    functions with default arguments, which a std::function can't have."""
    comment, _, _ = split_comment("\n".join(for_definition(block.lines)))
    code = "\n".join(for_definition(block.lines)[len(comment):])
    head = _HEAD.match(code)
    if not head or head["type"].split()[0] in (*_ONCE, *_NO_TYPE):
        return None
    depth, end = 0, head.end()
    while depth != 0 or end == head.end():
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    parameters = code[head.end():end]
    if "=" in parameters or not re.match(r" (?:try )?\{", code[end:]):
        return None
    return Function(head["name"], head["type"], parameters, comment, code[end:].split("\n"))


class Functions:
    """The functions of a lesson that a notebook defines again. Each is declared as soon as there are the types that its type names, so
    whoever calls it comes later, and finds what was defined last. `taken` are the library's own names."""

    def __init__(self, declarations, taken):
        found = {id(block): as_function(block) for block in declarations}
        names = [function.name for function in found.values() if function]
        # A variable can't share a name with functions, and what a table holds of a function is what that was when the table was made.
        held = set().union(*(re.findall(r"\b\w+\b(?!\()", without_words(block.text)) for block in declarations if not found[id(block)]))
        self._of = {key: function for key, function in found.items()
                    if function and names.count(function.name) == 1 and function.name not in held | taken}
        self._behind = {}
        for block in declarations:
            function = self._of.get(id(block))
            if function:
                words = set(re.findall(r"\w+", f"{function.type} {function.parameters}"))
                types = [other for other in declarations if id(other) not in self._of and other.name in words]
                self._behind.setdefault(id(types[-1]) if types else None, []).append(function)

    def has(self, block):
        return id(block) in self._of

    def lines(self, block):
        """What stands in a cell for this declaration."""
        return self._of[id(block)].written_as("NB_FUNCTION") if self.has(block) else for_definition(block.lines)

    def declared_behind(self, blocks=(None,)):
        """The lines that follow these declarations; without any, those that need none."""
        keys = [id(block) if block else None for block in blocks]
        declared = [function.declared for key in keys for function in self._behind.get(key, [])]
        return ["", "// Functions, each to be defined below in a cell that can be changed and run again.", *declared] if declared else []


def declaration_in_main(block):
    """(type, name, value) where a statement of `main` declares a variable other than the lesson; else None."""
    _, statement, _ = split_comment(dedented(block.lines))
    match = _DECLARES.match(statement)
    if not match or match["type"] in _NO_TYPE or match["name"] == "lesson":
        return None
    return match["type"], match["name"], match["value"]


def begins(block):
    """The grid that the lesson begins with, as it is written, where a statement makes the lesson; else an empty text."""
    match = _BEGINS.match(split_comment(dedented(block.lines))[1])
    return match["grid"] if match else ""


def in_cell(block, words):
    """A statement of `main` as lines of a cell. `words` is the command line of the lesson that begins."""
    comment, statement, behind = split_comment(dedented(block.lines))
    grid, declared = begins(block), declaration_in_main(block)
    if declared:
        statement = first_value(*declared)
    statement = _OTHER.sub(lambda found: f"{found[1]}nb::options({found[2]}, {found[3]}, nb::argc(), nb::argv()));", statement)
    statement = re.sub(r"\bargc, argv\b(?=\))", "nb::argc(), nb::argv()", statement)
    statement = with_lesson(statement)
    if grid:
        statement = f'lesson.emplace(info, nb::options(info, {grid}, "{words}"));'

    def held(match):
        code = match[1]
        return f"NB_CHECK({code if _CALL_OR_NAME.match(code) else f'({code})'} == 0);"

    return comment + (_RETURN.sub(held, statement) + behind).split("\n")


_CHECKS = re.compile(r"^\s*lesson->(?:check|check_numbers|cost)\(", re.MULTILINE)


def with_outcome(lines):
    """What a cell checks has to hold."""
    looked_at = max((i for i, line in enumerate(lines) if _CHECKS.match(line)), default=None)
    if looked_at is None:
        return lines
    while not without_words(lines[looked_at]).rstrip().endswith(";"):
        looked_at += 1
    return [*lines[:looked_at + 1], "NB_CHECK(lesson->all_equal());", *lines[looked_at + 1:]]


_SHOWS = re.compile(r"\.show\(|\bShownPhases\b|\bshow_\w+\(rank\b")
_SENDS = re.compile(r"(?<!>\()\brank\.(?:dp|tp|pp|group)\(")  # what is made of a group need not talk at once


def has_something_to_see(lesson, statement):
    """True where a statement takes a step in which ranks show what they hold or send something. The many steps that a function
    takes with the lesson are recorded in part alone, so there something has to be shown."""
    is_step = re.search(r"\blesson\.(?:quiet_)?step\(.*?(\w+)\);", without_words(statement), re.DOTALL)
    return _finds(lesson, statement, (_SHOWS, _SENDS) if is_step else (_SHOWS,), set())


def shows_phases(lesson, statement):
    """True where there is something to see in quiet steps, which print nothing by themselves."""
    return not re.search(r"^\s*lesson\.step\(", statement, re.MULTILINE) and has_something_to_see(lesson, statement)


def _finds(lesson, code, patterns, seen):
    """One of the patterns is in this code, or in a function of the lesson that it names."""
    bare = without_words(code)
    if any(pattern.search(bare) for pattern in patterns):
        return True
    for name in re.findall(r"(?<![.\w])[a-z]\w*", bare):
        found = lesson.declaration(name) if name not in seen else None
        seen.add(name)
        if found and re.search(rf"\b{name}\([^;{{]*\) (?:try )?\{{", found[1].text) and _finds(lesson, found[1].text, patterns, seen):
            return True
    return False
