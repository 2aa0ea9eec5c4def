"""A small project with three lessons, and the pages that Doxygen would make of it, for tests that make a whole site of them."""

import html
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/site")]
import doxygen_filter  # noqa: E402
from lesson_source import lessons_in_order  # noqa: E402

_LESSON = '''// # Lesson {number} · {title}
//
// What it is about: a rank, and its TP slice. With --tp 2 it is about `--tp 2`.
//
// You need to know {needs}.

#include "src/optim/steps.hpp"

// ## The idea
//
// A drawing:
//
//     ┌──→ qqqq··UU
//     │    0011 2233
//     (what <each> holds)
//
// And some code of `another`:
//
//     x = y @ z
struct Local {{
  Flat kept;  // only with the planted bug first
}};

// ## The steps
void start(Rank& rank, Local& local) {{
  if (rank.bug("first")) local.kept = {{}};
  rank.dp().all_gather(gather(1));
  rank.show("kept", local.kept);
}}

void again(Rank& rank, Local& local) {{
  rank.say(plan_layout("less < more"));{more}
}}

// ## The reference
//
// As it should be.
Prediction predict(const Seat& seat) {{ return gather_plan(seat); }}

// ## {section}
//
// It costs what it costs.
const char* const kAnswer =
    "because "
    "it is so";

int main(int argc, char** argv) {{
  LessonInfo info;
  info.bugs = {{{{"first", "one"}}, {{"second", "two"}}}};
  Lesson<Local> lesson(info, Grid(), argc, argv);
  lesson.step("start", start);
  for (int i = 0; i < 2; ++i) lesson.step(fmt::format("again {{}}", i), again);

  // ## Exercises
  //
  // 1. Why? Hint: because. Answer: it is.
  // 2. How? Hint: so.
  // 3. When? Hint: `now`. Answer: then.
  return lesson.answer(kAnswer);
}}
'''
_LESSONS = [("lesson_05_tp_gather", "TP gather", "nothing"), ("lesson_06_newton_schulz", "Newton & Schulz", "\\ref lesson_05_tp_gather"),
            ("lesson_09_full_step", "Full step", "\\ref lesson_05_tp_gather and \\ref lesson_06_newton_schulz")]
_EXPECTED = '''Lesson {number} · {title}
Question: what is <it>, and
  what for?

step 1 · start
check   weights: 8 ranks equal the reference   5,678 elements, bit for bit   ✔
cost    sent by a rank                 predicted      counted messages
        all_gather over dp, float32 × 2   every rank   1,234 B   1,234 B   2   ✔
  all              1,234 B

Answer: it is <so>,
  and not ✘.
'''
_BUGS = "about\n\nbug first: one & all\n$ run --bug first\n…\nFAILED ✘\n\nbug second: two\n$ run --bug second\nFAILED\n"
_HEADER = "/// Gathers.\nint gather(int n);\nint gather(const char* name);\n/// A kind.\nusing Kind = int;\n/// Plans.\nint gather_plan(int n);\n"
_SOURCE = "// Why it does.\nint gather(int n) {\n  return n < 2 ? 1 : gather(\"x\");\n}\n\nint gather(const char* name) { return 2; }\n"
_SVG = '<svg width="{}" height="20"><title>{} &amp; all</title><desc>what\nit shows</desc><style>@media (prefers-color-scheme:dark){{}}</style></svg>'
_PAGE = ('<html lang="en"><head><title>{title}</title></head>\n<body>\n<div id="top"></div><!-- top -->\n<main id="doc-content" tabindex="-1">\n'
         '<div class="header"><div class="summary"><a href="#func">Functions</a></div><div class="headertitle"><div class="title">{heading}</div>'
         '</div></div>\n<div class="contents">\n{text}</div><!-- contents -->\n</main></body></html>\n')


def _prose(lines):
    """Paragraphs, a list of exercises, and drawings, as Doxygen writes them."""
    made = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape("\n".join(lines), quote=False)).replace("\\--", "--")
    made = re.sub(r'\\ref (lesson_\w+) "(.*?)"', r'<a class="el" href="\1.html">\2</a>', made)
    made = re.sub(r"\\section (\w+) (.*)", r'\n\n<h1><a class="anchor" id="\1"></a>\n\2</h1>\n\n', made)
    made = re.sub(r"@verbatim\n(.*?)@endverbatim", r'\n\n<pre class="fragment">\1</pre>\n\n', made, flags=re.DOTALL)
    parts = []
    for part in re.split(r"\n\s*\n", made):
        items = re.findall(r"^\d+\. (.*)$", part, re.MULTILINE)
        if items:
            parts.append("<ol>" + "".join(f"<li>{item}</li>\n" for item in items) + "</ol>")
        elif part.strip():
            parts.append(part.strip() if part.strip().startswith("<h1") or part.strip().startswith("<pre") else f"<p >{part.strip()}</p>")
    return "\n".join(parts) + "\n"


def _of_lesson(lesson):
    """The text of a lesson's page, of what the filter hands to Doxygen."""
    text, parts = doxygen_filter.page_of(lesson), []
    for at, part in enumerate(re.split(r"@code\{\.cpp\}|@endcode", text)):
        lines = part.strip("\n").split("\n")
        if at % 2:
            shown = "".join(f'<div class="line">{html.escape(line, quote=False)}</div>\n' for line in lines)
            shown = shown.replace("gather_plan", '<a class="code hl_function" href="namespacemuonwalk.html#a00000000000000000000000000000003">gather_plan</a>')
            shown = shown.replace("gather(1)", '<a class="code hl_function" href="namespacemuonwalk.html#a00000000000000000000000000000001">gather</a>(1)')
            for name, space, anchor in (("plan_layout", "", 5), ("tp_gather", "", 8), ("run", "_1_1sim", 7)):
                shown = re.sub(rf"\b{name}(?=\()", f'<a class="code hl_function" href="namespacemuonwalk{space}.html#a{anchor:032}">{name}</a>', shown)
            parts.append(f'<div class="fragment">{shown}</div><!-- fragment -->')
        else:
            parts.append(_prose(line.replace("/** ", "").replace(" */", "") for line in lines if "\\page" not in line))
    return f'<div class="textblock">{"".join(parts)}</div>'


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _lessons(root):
    _write(root / "lessons/CMakeLists.txt", "".join(f"add_lesson({name})\n" for name, *_ in _LESSONS) + "add_exercise(lesson_05_tp_gather join_rows)\n")
    for name, title, needs in _LESSONS:
        words = {"number": name[7:9], "title": title, "needs": needs, "section": "Redundant work" if name[7:9] == "09" else "The cost",
                 "more": "\n  run(tp_gather(rank.tp(), 1));" if name[7:9] == "09" else ""}
        _write(root / "lessons" / name / f"{name}.cpp", _LESSON.format(**words))
        _write(root / "lessons" / name / f"{name}.expected", _EXPECTED.format(**words))
        _write(root / "lessons" / name / f"{name}.bugs.expected", _BUGS)
    _write(root / "lessons/lesson_05_tp_gather/lesson_05_tp_gather.nccl.expected", "Lesson 05 · over <NCCL>\n")
    _write(root / "lessons/lesson_05_tp_gather/try_join_rows/contract.hpp",
           "// # Join <rows>\n//\n// Given `a`,\n// return b.\n//\n//     a   some `x` & y\n//     b   more\n//\n// Nothing is sent.\n"
           "#pragma once\nusing JoinRows = Matrix(const Flat& a,\n    int b);\n")


def _material(material):
    def block(name, values, rows, cols):
        return {"name": name, "values": values, "rows": rows, "cols": cols, "tensor": 1}

    def step(number, title, holds, moves=(), says=((), ())):
        return {"number": number, "title": title, "holds": holds, "says": says, "moves": moves, "lines": [f"step {number} · {title}"]}

    sent = {"collective": "all_gather", "group": "dp", "type": "float32", "elements": 4, "bytes": 16, "call": 1}
    moves = [{**sent, "from": 0, "to": 1}, {**sent, "from": 1, "to": 0, "call": 2}, {**sent, "from": 0, "to": 1, "group": "tp"}]
    steps = [step(1, "start", [[block("down", [1, 2], 1, 2)], [block("down", [3, 4], 1, 2)]], moves), step(2, "again 0", [[], []]),
             step(3, "again 1", [[block("down, as it arrived", [1, 2, 3, 4], 1, 4)], []], says=[["</script>"], []]),
             step(4, "again 2", [[block("down", [1, 3, 2, 4], 2, 2)], []])]
    steps[3]["lines"].append("  ★ down[1,0] = 2 at row 1, column 0 of it")
    for name, *_ in _LESSONS:
        recorded = {"format": "muonwalk-recording", "before": ["Lesson"], "after": ["OK"], "steps": steps}
        _write(material / name / "recording.json", json.dumps(recorded))
        for picture in ("grid", "step_1", "step_2", "step_3", "step_4"):
            _write(material / name / f"{picture}.svg", _SVG.format(10 * len(picture), picture))
    paths = [[0.25, 0.75, 1.125], [0.5, 1.0, 0.875], [1.0, 0.7, 1.2]]
    _write(material.parent / "figures/06.json", json.dumps(
        {"widest": 1.25, "sets": [{"name": "a < b", "formula": "a & b", "curve": [0, 1.3, 0.6, 1], "paths": paths, "seen": [[1, .9, .8], [.6, .7, .8], [.4, .5, .6]]},
                                   {"name": "c", "formula": "d", "curve": [0, 1, 0.5, 0.25], "paths": [[0.3, 0.6, 0.9], [0.6, 0.8, 1.0], [0.9, 1.1, 0.8]],
                                    "seen": [[1, .8, .6], [.5, .6, .7], [.3, .2, .1]]}]}))
    _write(material.parent / "figures/09.json", json.dumps(
        {"kind": "bars", "title": "T <1>", "words": "W & w", "series": ["a", "", "c"], "columns": ["", "all"], "each_by_itself": True,
         "choices": [{"name": "dp", "words": "dp", "values": ["1", "2"], "start": "2"}, {"name": "tp", "words": "tp", "values": ["1", "4"], "start": "4"},
                     {"name": "model", "words": "mo<del", "values": ["x", "y"], "start": "y"}],
         "rows": [{"name": "one", "scale": "bytes"}, {"name": "two & half", "scale": "ms"}],
         "states": [[[[at, 2], ["", str(at)]], [[at, 0, 3], ["", "<"]]] if at != 1 else "it can't be; try <less>" for at in range(8)]}))


def _member(kind, name, anchor, space=""):
    return (f'<member kind="{kind}"><name>{name}</name><anchorfile>namespacemuonwalk{space}.html</anchorfile>'
            f"<anchor>a{anchor:032}</anchor></member>")


def _doxygen(root, out, tags):
    def item(name, anchor):
        return (f'<a id="a{anchor:032}" name="a{anchor:032}"></a>\n<h2 class="memtitle"><span class="permalink"><a href="#">◆</a></span>{name}()</h2>'
                f'<div class="memitem"><div class="memdoc"><p>Does <a href="#">{name}</a>. And more.</p></div></div>\n')

    def row(name, anchor, says):
        return (f'<tr class="memitem:a{anchor:032}"><td>int&#160;</td><td><a id="a{anchor:032}" name="a{anchor:032}"></a><b>{name}</b>(int n)</td></tr>\n'
                f'<tr class="memdesc:a{anchor:032}"><td class="x">&#160;</td><td>{says}<br /></td></tr>\n')

    members = _member("function", "gather", 1) + _member("function", "gather", 2) + _member("typedef", "Kind", 4) + _member("function", "gather_plan", 3)
    members += _member("function", "tp_gather", 8)
    planned = _member("function", "plan_layout", 5) + _member("enumeration", "Cut", 6)
    ran = _member("function", "run", 7, "_1_1sim")
    _write(tags, f'''<tagfile>
      <compound kind="file"><name>plan.hpp</name><path>{root.resolve()}/src/layout/</path><filename>plan_8hpp.html</filename>{planned}</compound>
      <compound kind="file"><name>run.hpp</name><path>{root.resolve()}/sim/world/</path><filename>run_8hpp.html</filename>{ran}{planned}</compound>
      <compound kind="file"><name>run.cpp</name><path>{root.resolve()}/sim/world/</path><filename>run_8cpp.html</filename>{ran}</compound>
      <compound kind="namespace"><name>muonwalk::sim</name><filename>namespacemuonwalk_1_1sim.html</filename>{ran}</compound>
      <compound kind="file"><name>steps.hpp</name><path>{root.resolve()}/src/optim/</path><filename>steps_8hpp.html</filename>{members}</compound>
      <compound kind="namespace"><name>muonwalk</name><filename>namespacemuonwalk.html</filename>{members}{planned}</compound>
      <compound kind="class"><name>muonwalk::Rank</name><filename>classmuonwalk_1_1Rank.html</filename>
        <member kind="function"><name>show</name><anchorfile>classmuonwalk_1_1Rank.html</anchorfile><anchor>b1</anchor></member></compound></tagfile>''')
    pages = {
        "index.html": ("Muonwalk: Start", "Start", '<div class="textblock"><p>A rank.</p>' + "".join(
            f"<!-- site: {mark} -->\n" for mark in ("start", "journey", "muon", "torch", "lessons", "graph")) + "</div>"),
        "md_docs_glossary.html": ("Glossary", "Glossary", '<div class="textblock"><ul><li><b>rank</b>: a copy</li>\n<li><b>TP slice</b>: rows</li></ul></div>'),
        "namespacemuonwalk.html": ("muonwalk", "muonwalk Namespace Reference", '<div class="textblock"><p>All of it.</p></div>' + item("gather", 1) +
                                   item("Kind", 4) + item("Cut", 6) + item("tp_gather", 8)),
        "namespacemuonwalk_1_1sim.html": ("sim", "muonwalk::sim Namespace Reference", '<h2 class="groupheader">Functions</h2>' + item("run", 7)),
        "plan_8hpp.html": ("src/layout/plan.hpp File Reference", "plan.hpp File Reference", '<div class="textblock"><p>The plan.</p></div><table>' +
                           row("plan_layout", 5, "Plans the layout: as it is.") + row("Cut", 6, "") + "</table>"),
        "run_8hpp.html": ("sim/world/run.hpp File Reference", "run.hpp File Reference", "<table>" + row("run", 7, "Runs it. Twice.") + "</table>"),
        "steps_8hpp.html": ("src/optim/steps.hpp File Reference", "steps.hpp File Reference",
                            '<div class="textblock"><p>The steps.</p></div><a href="dir_1.html">src</a><table>' + row("gather", 1, "Does gather.") +
                            row("muonwalk::gather", 2, "Also by its name: at once. Twice.") + row("Kind", 4, "A kind.") + row("gather_plan", 3, "Plans.") + "</table>"),
        "classmuonwalk_1_1Rank.html": ("Rank", "muonwalk::Rank Class Reference", '<div class="textblock"><p>One rank.</p></div><a href="namespacemuonwalk.html#'
                                       f'a{4:032}">Kind</a><a href="namespacemuonwalk.html#a{6:032}a{1:032}">kCut</a><a href="namespacemuonwalk.html#gone">gone</a>'
                                       '<a href="hierarchy.html">all</a><a class="el" href="classmuonwalk_1_1Rank-members.html">List</a>'
                                       '<a id="b1" name="b1"></a>\n<h2 class="memtitle">show()</h2><div class="memdoc"><p>Shows.</p></div><hr/>x'),
    }
    for lesson in lessons_in_order(root):
        pages[f"{lesson.name}.html"] = (f"Muonwalk: {lesson.title}", f"{lesson.number} · {lesson.title}", _of_lesson(lesson))
    for name, (title, heading, text) in pages.items():
        text = text if name != "index.html" and not name.startswith(("lesson", "md_")) else text.removesuffix("</div>") + "</div>"
        page = _PAGE.format(title=html.escape(title), heading=html.escape(heading), text=text)
        _write(out / name, page)
    for name in ("files.html", "dir_1.html", "menu.js", "shell.js", "classmuonwalk_1_1Rank-members.html", "doxygen.css", "tabs.css", "a.md5", "b.map", "dir_2.html",
                 "functions.html", "functions_g.html", "namespacemembers_x.html", "globals.html", "hierarchy.html", "annotated.html", "classes.html", "pages.html",
                 "namespaces.html", "search.js", "words.js", "lesson.js", "drawings.js", "bars.js", "curves.js", "memory.js", "picture.svg"):
        _write(out / name, f"/* {name} */\n")


def make(folder):
    """Writes it all; the arguments of make_pages."""
    root, doxygen, tags, material = folder / "root", folder / "doxygen", folder / "api.tag", folder / "material"
    for name in ("docs/player", "docs/design.md", "sim", "third_party", "src/optim/serial_muon.cpp", "docs/figures"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    _write(root / "docs/glossary.md", "# Glossary\n\n- **rank**: a copy\n  of `it`.\n- **TP slice**: some \"rows\".\n")
    _write(root / "src/optim/steps.hpp", _HEADER)
    _write(root / "src/optim/steps.cpp", _SOURCE)
    _write(root / "src/optim/gather.cpp", "template <class T>\nT tp_gather(Group tp, T n) {\n  return n;\n}\n")
    _write(root / "src/layout/plan.hpp", "/// Plans the layout.\ninline Layout plan_layout(const char* name) { return {}; }\n")
    _write(root / "src/optim/plans.cpp", "int gather_plan(int n) {\n  return gather(n);\n}\n")
    _lessons(root)
    _material(material)
    _doxygen(root, doxygen, tags)
    return root, doxygen, tags, material, folder / "site"
