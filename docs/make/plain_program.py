"""Marks in the code of a lesson's page what is there for the lesson and not for the program: `main`, `plan` and `predict`, planted
bugs. The reader can fold all of it away (docs/shell/lesson.js); until then, and on paper, it stands in its place."""

import html
import re

_FRAGMENT = re.compile(r'<div class="fragment">(.*?)</div><!-- fragment -->', re.DOTALL)
_LINE = re.compile(r'<div class="line">.*?</div>\n?', re.DOTALL)
_FUNCTION = re.compile(r"^[A-Za-z_][\w:<>,&* ]*\s(main|plan(?:_\w+)?|predict(?:_\w+)?)\(")
_BUG = re.compile(r'^(\s+)(?:const )?if \(.*\bbug\("\w+"\)')
_MEMBER = re.compile(r"^\s+\S.*;\s*// .*planted bug")


def _end_of_statement(lines, at):
    """The last line of the statement that begins at a line, or None where an `else` goes on with it."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    end = at
    if lines[at].rstrip().endswith("{"):
        while end + 1 < len(lines) and not re.match(rf"^ {{{indent}}}\}}", lines[end]):
            end += 1
        end = end if end > at else at
        if lines[end].strip() != "}":
            return None
    else:
        while end + 1 < len(lines) and not re.sub(r"//.*", "", lines[end]).rstrip().endswith(";"):
            end += 1
    following = lines[end + 1].strip() if end + 1 < len(lines) else ""
    return None if following.startswith("else") else end


def kinds(fragments):
    """For each line of each fragment: "main", "plan", "predict", "planted bug", or nothing. `fragments` are lists of lines."""
    inside, result = "", []
    for lines in fragments:
        marks = [""] * len(lines)
        at = 0
        while at < len(lines):
            line = lines[at]
            begins = _FUNCTION.match(line)
            if not inside and begins:
                inside = begins[1]
            if inside:
                marks[at] = inside
                if line == "}" or (begins and re.search(r"[};]\s*(//.*)?$", line)):
                    inside = ""
            elif _BUG.match(line) and (end := _end_of_statement(lines, at)) is not None:
                marks[at:end + 1] = ["planted bug"] * (end + 1 - at)
                at = end
            elif _MEMBER.match(line):
                marks[at] = "planted bug"
            at += 1
        result.append(marks)
    return result


def _text(line):
    return html.unescape(re.sub(r"<[^>]*>", "", line)).replace("\u00a0", " ").rstrip("\n").rstrip()


def marked(contents):
    """The inside of a lesson's page with every such run of lines in an element of its own, behind a button that shows it."""
    fragments = [_LINE.findall(match.group(1)) for match in _FRAGMENT.finditer(contents)]
    of_each = iter(zip(fragments, kinds([[_text(line) for line in lines] for lines in fragments])))

    def replace(match):
        lines, marks = next(of_each)
        parts, at = [], 0
        while at < len(lines):
            end = at
            while end < len(lines) and marks[end] == marks[at]:
                end += 1
            run = "".join(lines[at:end])
            if marks[at]:
                count = f"{end - at} line{'s' * (end - at > 1)}"
                run = (f'<button type="button" class="mw-left-out" aria-expanded="false">⋯ {marks[at]}, {count}</button>'
                       f'<div class="mw-machinery">{run}</div>')
            parts.append(run)
            at = end
        return f'<div class="fragment">{"".join(parts)}</div><!-- fragment -->' if any(marks) else match.group(0)

    return _FRAGMENT.sub(replace, contents)
