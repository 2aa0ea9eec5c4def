#!/usr/bin/env python3
"""The journey of a matrix: what four ranks (dp 2 × tp 2) hold of it before the optimizer's step and after each of its five
stages, and the lines of PyTorch that each stage stands for. For the start page and, in letters, for README.md:

    docs/make/journey.py picture|torch
"""

import sys

from palette import palette

# Four ranks; a matrix of four rows. TP rank t has the rows 2t and 2t + 1 of it, and DP rank d owns the d-th of them.
_GRID = [(dp, tp) for dp in (0, 1) for tp in (0, 1)]
_CELL, _LEFT, _TOP = 13, 8, 18


def _shard(dp, tp):
    return {2 * tp + dp}


def _slice(dp, tp):
    del dp
    return {2 * tp, 2 * tp + 1}


def _whole(dp, tp):
    del dp, tp
    return {0, 1, 2, 3}


# Title, lesson, what happens, what a rank holds, orthogonal?, that in words, the group over which ranks send, and the lines of PyTorch
# that it stands for.
_STAGES = [
    ("Before", None, "A DP shard of the update: some elements in a row.", _shard, False, "each rank holds another row", None, []),
    ("DP gather", "lesson_04_dp_gather", "Shards travel over dp: a TP slice.", _slice, False,
     "each rank holds the half of its TP rank", "dp",
     ["dist.all_gather_into_tensor(bucket, shard, group=dp_group)",
      "u = bucket[begin:end].view(rows, cols)"]),
    ("TP gather", "lesson_05_tp_gather", "Slices travel over tp: the whole matrix.", _whole, False,
     "each rank holds all four rows", "tp",
     ["dist.all_gather(slices, u, group=tp_group)",
      "u = torch.cat(slices, dim=split_dim)"]),
    ("Newton–Schulz", "lesson_06_newton_schulz", "All ranks do the same work, and nothing travels.", _whole, True,
     "each rank holds all four rows, orthogonalized", None,
     ["o = zeropower_via_newtonschulz5(u, steps=5)"]),
    ("TP shard", "lesson_07_tp_shard", "Each keeps its slice, and nothing travels.", _slice, True,
     "each rank holds its half of the orthogonal matrix", None,
     ["o = o.chunk(tp_size, dim=split_dim)[tp_rank]"]),
    ("DP shard", "lesson_08_dp_shard", "Each keeps its shard, changes its weights, and sends them to the others.", _shard, True,
     "each rank holds its row of the orthogonal matrix", "dp",
     ["w_shard.mul_(1 - lr * wd).sub_(scale * o.flatten()[first:last])",
      "dist.all_gather_into_tensor(w_bucket, w_shard, group=dp_group)"]),
]


def _arrow(x, y, length, group):
    """An arrow with two heads between two ranks that send to each other: down for dp, to the right for tp."""
    heads = (f"M{x} {y}v{length}m-3 -4l3 4l3 -4M{x - 3} {y + 4}l3 -4l3 4" if group == "dp" else
             f"M{x} {y}h{length}m-4 -3l4 3l-4 3M{x + 4} {y - 3}l-4 3l4 3")
    return f'<path d="{heads}" class="mw-jarrow" data-group="{group}"/>'


def _picture(title, holds, orthogonal, words, group):
    side = 4 * _CELL
    parts = []
    for dp, tp in _GRID:
        x, y = _LEFT + tp * (side + 16), _TOP + dp * (side + 26)
        parts.append(f'<text x="{x}" y="{y - 5}">dp {dp} tp {tp}</text>')
        for row in range(4):
            held = row in holds(dp, tp)
            kind = ("mw-j4" if orthogonal else f"mw-j{row}") if held else "mw-jnone"
            parts.append(f'<rect x="{x}" y="{y + row * _CELL}" width="{side}" height="{_CELL}" class="{kind}"/>')
            if held:
                parts += [f'<path d="M{x + i * _CELL} {y + row * _CELL}v{_CELL}" class="mw-jcells"/>' for i in (1, 2, 3)]
    if group == "dp":
        parts += [_arrow(_LEFT + tp * (side + 16) + side - 3, _TOP + side + 3, 20, group) for tp in (0, 1)]
    if group == "tp":
        parts += [_arrow(_LEFT + side + 2, _TOP + dp * (side + 26) + side // 2, 12, group) for dp in (0, 1)]
    width, height = 2 * _LEFT + 2 * side + 16, _TOP + 2 * side + 26 + 6
    return (f'<svg class="mw-journey-picture" role="img" viewBox="0 0 {width} {height}" aria-label="{title}: {words}">'
            f'{"".join(parts)}</svg>')


def journey(root):
    colours = [palette(root)[f"p{i}"] for i in range(5)]
    light = "".join(f".mw-j{i}{{fill:{pair[0]}}}" for i, pair in enumerate(colours))
    dark = "".join(f".mw-j{i}{{fill:{pair[1]}}}" for i, pair in enumerate(colours))
    style = f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"
    items = []
    for title, lesson, happens, holds, orthogonal, words, group, _ in _STAGES:
        name = f'<a href="{lesson}.html">{title}</a>' if lesson else title
        words += f"; ranks of a {group.upper()} group have sent to each other" if group else ""
        items.append(f"<li><h2>{name}</h2>{_picture(title, holds, orthogonal, words, group)}<p>{happens}</p></li>")
    return f'{style}<ol class="mw-journey" aria-label="The journey of a matrix through one optimizer step">{"".join(items)}</ol>'


def journey_in_text():
    """A line for each rank; a letter is a row of the matrix that it holds, "O" a row of the orthogonal one."""
    names = [title for title, *_ in _STAGES]
    lines = ["             " + "   ".join(names).rstrip()]
    for dp, tp in _GRID:
        cells = ["".join(("O" if orthogonal else "abcd"[row]) if row in holds(dp, tp) else "·" for row in range(4)).ljust(len(title))
                 for title, _, _, holds, orthogonal, *_ in _STAGES]
        lines.append(f"dp {dp} tp {tp}    " + "   ".join(cells).rstrip())
    return "\n".join(lines)


def torch_table():
    """For whoever knows PyTorch: the stages and what they are there, as HTML."""
    rows = "".join(f'<tr><td><a href="{lesson}.html">{title}</a></td><td>{"".join(f"<code>{line}</code>" for line in lines)}</td></tr>'
                   for title, lesson, *_, lines in _STAGES if lesson)
    return ('<table class="mw-torch"><thead><tr><th scope="col">Stage</th><th scope="col">In PyTorch</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>")


def torch_table_in_text():
    """The same for README.md."""
    rows = [f'| [{title}](lessons/{lesson}/{lesson}.cpp) | {"<br>".join(f"`{line}`" for line in lines)} |'
            for title, lesson, *_, lines in _STAGES if lesson]
    return "\n".join(["", "| stage | in PyTorch |", "|-------|------------|", *rows, ""])


if __name__ == "__main__":
    print({"picture": journey_in_text, "torch": torch_table_in_text}[sys.argv[1]]())
