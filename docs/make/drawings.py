"""Drawings made of letters, as SVG: a lesson's source draws with boxes, arrows, blocks and rows of letters, and the page draws
the same with lines and cells. The text stays on the page for those who listen, and for who copies it.

A drawing is read character by character, each at its column and line:

    █ ▌     a cell that is held                 ▒      one that is held, and is something else
    qqqq··  a cell per letter, filled by letter, and hatched for padding; beside blocks, "·" is a cell that is not held
    0011    a cell per digit, outlined by the rank
    ┌─┬ ═ ‖ lines                               → ▼    arrows
    all else is text

What has none of blocks, boxes and rows of cells is not a drawing and stays as it is: formulas, code, tables.
"""

import html
import re
from dataclasses import dataclass, field

WIDE, HIGH = 9, 22  # of a character

# The four arms of a line: left, right, up, down.
_ARMS = {"─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "rud", "┤": "lud", "┬": "lrd", "┴": "lru", "┼": "lrud"}
_ARROWS = {"→": (1, 0), "←": (-1, 0), "↑": (0, -1), "↓": (0, 1), "▼": (0, 1), "▲": (0, -1), "▶": (1, 0), "◀": (-1, 0)}
_BLOCKS = "█▌▒"
_LINES = set(_ARMS) | {"═", "‖"}

# A row of cells: blocks and dots; letters that come several times each, and dots; digits of ranks.
_CELLS = re.compile(r"(?<!\S)(?:[█▒·]*[█▒][█▒·]*|▌|·{4,}|(?=\S{4})(?:([A-Za-z])\1+|·{2,})+|\d{4}(?:\|?\d{4})*|\d{5,}|"
                    r"(?:(?<=  )(\d)\2{2}(?=  |$)))(?!\S)|(?<=[┤├])·{2,}(?=[┤├])")


@dataclass
class Drawing:
    lines: list
    digits: str = "rank"  # what a digit in a cell is: the rank that it comes from, or a parameter
    cells: dict = field(default_factory=dict)  # (line, column): character

    def __post_init__(self):
        for at, line in enumerate(self.lines):
            for found in _CELLS.finditer(line):
                for column in range(*found.span()):
                    self.cells[at, column] = line[column]

    @property
    def letters(self):
        """The letters of cells in the order in which they come; capitals are the same parameter."""
        found = []
        for at in sorted(self.cells):
            letter = self.cells[at].lower()
            if letter.isalpha() and letter not in found:
                found.append(letter)
        return found

    def is_one(self):
        """Whether there is anything that letters draw badly: several cells, lines or arrows."""
        signs = "".join(self.lines)
        return any(count >= 4 for count in (len(self.cells), sum(map(signs.count, _LINES)), sum(map(signs.count, _ARROWS))))

    def at(self, line, column):
        return self.lines[line][column] if 0 <= line < len(self.lines) and 0 <= column < len(self.lines[line]) else " "


def _fill(drawing, line, column):
    """The class of a cell."""
    sign = drawing.cells[line, column]
    if sign in "█▌":
        return "mwd-held"
    if sign == "▒":
        return "mwd-other"
    if sign == "·":
        row = _row_of(drawing, line, column)
        return "mwd-padding" if any(each.isalpha() for each in row) else "mwd-none"
    if sign.isdigit():
        return f"mwd-{'r' if drawing.digits == 'rank' else 'p'}{int(sign) % 8}"
    return f"mwd-p{drawing.letters.index(sign.lower()) % 8}" + (" mwd-new" if sign.isupper() else "")


def _row_of(drawing, line, column):
    """The characters of the row of cells in which a cell stands."""
    first = last = column
    while (line, first - 1) in drawing.cells:
        first -= 1
    while (line, last + 1) in drawing.cells:
        last += 1
    return [drawing.cells[line, each] for each in range(first, last + 1)]


def _cell(drawing, line, column):
    x, y, sign = column * WIDE, line * HIGH, drawing.cells[line, column]
    if sign == "|":
        return ""
    wide = WIDE / 2 if sign == "▌" else WIDE
    kind = _fill(drawing, line, column)
    hatch = ' style="fill:url(#mwd-hatch)"' if kind == "mwd-padding" else ""
    rect = f'<rect x="{x + 0.5:g}" y="{y + 1.5:g}" width="{wide - 1:g}" height="{HIGH - 3}" class="{kind}"{hatch}/>'
    if not sign.isalnum() and not hatch:
        return rect
    return rect + f'<text x="{x + WIDE / 2:g}" y="{y + HIGH - 7}" class="mwd-letter">{html.escape(sign)}</text>'


def _line_sign(sign, line, column):
    x, y = column * WIDE, line * HIGH
    middle, centre = x + WIDE / 2, y + HIGH / 2
    if sign == "═":
        return f"M{x} {centre - 2:g}h{WIDE}M{x} {centre + 2:g}h{WIDE}"
    if sign == "‖":
        return f"M{middle - 2:g} {y}v{HIGH}M{middle + 2:g} {y}v{HIGH}"
    ends = {"l": (x, centre), "r": (x + WIDE, centre), "u": (middle, y), "d": (middle, y + HIGH)}
    return "".join(f"M{middle:g} {centre:g}L{ends[arm][0]:g} {ends[arm][1]:g}" for arm in _ARMS[sign])


def _arrow(drawing, line, column):
    """The path of an arrow with its head. One that stands alone reaches into the blanks beside it."""
    over, down = _ARROWS[drawing.at(line, column)]
    x, y = (column + 0.5) * WIDE, (line + 0.5) * HIGH
    if down:
        tip, tail = y + down * HIGH / 2, y - down * HIGH / 2
        if drawing.at(line + down, column).strip() == "":
            tip -= down * 3
        return f"M{x:g} {tail:g}V{tip:g}", f"M{x:g} {tip:g}l-4 {-7 * down}h8z"
    alone = all(drawing.at(line, column + step) == " " for step in (-1, 1))
    reach = WIDE * 0.85 if alone else WIDE / 2
    tip, tail = x + over * reach, x - over * reach
    return f"M{tail:g} {y:g}H{tip - over * 4:g}", f"M{tip:g} {y:g}l{-8 * over} -4.5v9z"


def _words(drawing, line):
    """(column, text) of what is neither cell, line nor arrow; words with one blank between them stand together."""
    kept = "".join(" " if (line, column) in drawing.cells or sign in _LINES or sign in _ARROWS else sign
                   for column, sign in enumerate(drawing.lines[line]))
    return [(found.start(), found.group(0)) for found in re.finditer(r"\S+(?: \S+)*", kept)]


def panels(drawing):
    """[first, last) columns that stand beside each other, and below each other where there is no room: they are cut where five
    columns are empty in all lines, or one behind an arrow to the right that no word follows; no other arrow leads across."""
    width = max(map(len, drawing.lines))
    used = [False] * (width + 1)
    for text in drawing.lines:
        for column, sign in enumerate(text):
            if sign != " ":
                before, after = (6 if sign in _ARROWS else 0), (6 if sign in _ARROWS and sign != "→" else 0)
                for each in range(max(0, column - before), min(width, column + after + 1)):
                    used[each] = True
    cut, first, empty = [], 0, 0
    for column in range(width):
        empty = 0 if used[column] else empty + 1
        last = column + 1 - empty
        behind = [text[last:last + 2].strip() for text in drawing.lines if text[last - 1:last] == "→"]
        least = 1 if behind and not any(behind) else 5
        if empty >= least and (column + 1 == width or used[column + 1]) and first < last:
            cut.append((first, last))
            first = column + 1
    return cut + [(first, width)]


def _panel(drawing, first, last, gap):
    """The SVG of some columns, and as much room behind it as the text has there."""
    parts, lines, heads = [], "", ""
    for line, text in enumerate(drawing.lines):
        for column in range(first, min(last, len(text))):
            sign = text[column]
            if (line, column) in drawing.cells:
                parts.append(_cell(drawing, line, column))
            elif sign in _LINES:
                lines += _line_sign(sign, line, column)
            elif sign in _ARROWS:
                shaft, head = _arrow(drawing, line, column)
                lines, heads = lines + shaft, heads + head
        for column, words in _words(drawing, line):
            if first <= column < last:
                parts.append(f'<text x="{column * WIDE}" y="{line * HIGH + HIGH - 7}" textLength="{len(words) * WIDE}" '
                             f'lengthAdjust="spacingAndGlyphs">{html.escape(words, quote=False)}</text>')
    wide, high = (last - first) * WIDE + 2, len(drawing.lines) * HIGH
    return (f'<svg class="mwd-panel" width="{wide}" height="{high}" viewBox="{first * WIDE - 1} 0 {wide} {high}" aria-hidden="true" '
            f'focusable="false" style="margin-right:{gap * WIDE}px">{"".join(parts)}<path d="{lines}"/><path class="mwd-head" d="{heads}"/></svg>')


def drawn(text, digits="rank"):
    """The HTML of a drawing; None where the text is none. A last line in brackets is its caption."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    drawing = Drawing(lines, digits)
    if not drawing.is_one():
        return None
    caption = ""
    if len(lines) > 1 and re.fullmatch(r"\(.*\)", lines[-1]):
        caption = f'<figcaption aria-hidden="true">{html.escape(lines[-1][1:-1], quote=False)}</figcaption>'
        drawing = Drawing(lines[:-1], digits)
    cut = panels(drawing)
    gaps = [after - last for (_, last), (after, _) in zip(cut, cut[1:])] + [0]
    svg = "".join(_panel(drawing, first, last, gap) for (first, last), gap in zip(cut, gaps))
    return (f'<figure class="mw-drawing"><div class="mwd-panels">{svg}</div>{caption}'
            f'<pre class="mw-heard">{html.escape(text, quote=False)}</pre></figure>')


def with_drawings(contents, digits="rank"):
    """A page's text with its drawings drawn."""
    def replace(match):
        return drawn(html.unescape(re.sub(r"<[^>]*>", "", match[1])), digits) or match[0]

    return re.sub(r'<pre class="fragment">(.*?)</pre>', replace, contents, flags=re.DOTALL)
