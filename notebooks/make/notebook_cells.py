"""What a lesson's code is turned into in a cell: statements of `main` as a notebook needs them."""

import re

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
