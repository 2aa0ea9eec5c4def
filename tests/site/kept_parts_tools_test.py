"""What each part of tools/site makes of small inputs that have everything in them: drawings, figures, the graph, sources, tables and refusals are
what is kept in tests/golden."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import stand_in_site  # noqa: E402
import api_members  # noqa: E402
import drawings  # noqa: E402
import figures  # noqa: E402
import function_source  # noqa: E402
import guesses  # noqa: E402
import journey  # noqa: E402
import lesson_graph  # noqa: E402
import lesson_page  # noqa: E402
import lesson_text  # noqa: E402
import make_material  # noqa: E402
import memory_order  # noqa: E402
import palette  # noqa: E402
import plain_program  # noqa: E402
import search_index  # noqa: E402
import singular_values  # noqa: E402
from glossary import Glossary  # noqa: E402
from highlight import highlighted  # noqa: E402
from lesson_source import LessonError, lessons_in_order  # noqa: E402
from marked_code import lines_of_phases  # noqa: E402
from page_lines import expect_kept  # noqa: E402

ROOT = stand_in_site.ROOT
DRAWINGS = [
    "┌─┬─┐ ═══ ‖\n├─┼─┤ ‖ ═ ‖\n└─┴─┘ ─│─",
    "a → b  ← c  ↑ ↓ ▼ ▲ ▶ ◀\n→→ ←← x→y x←y\n  ↓   ↑   ▼   ▲\n  x   x        \n████",
    "dp 0  qqqq··uuUU  0011|2233  ▌ ▒▒██··\ntp 1  ····  ██··▒  00000  ├···┤  77777777\n   111   222  8888 9999\n(how <it> & \"they\" lie)",
    "  ab AB cc\n  aaaa  BBBB  bbbb··  aAbB  zzZZ  eeee ffff gggg hhhh iiii jjjj",
    "(not a caption)\n████ █ ▌▌ ▒\n\n   ·· ··· ····\n(two)\n(three)",
    "████ <a> & \"b\"      one two  three      ████ → ████ →  ████\n████                 →                   tp 0    ↓  x\n",
    "no cells here → and ← one", "┌┐", "┌─┐\n", "x = y @ z\n  for a in b:", "████", "███", "→ → →", "→ → → →", "aa bb\naaaa", "aaa", "12345", "1234", "123", "0123|45", "   000  "]
SOURCES = {
    "a.hpp": "/// About it.\nint gather(int n);\ninline int gather(double n) { return n; }  // at once\nusing F = int (*)(int);\nnamespace x {\n}\n"
             "#define gather(x) x\nint half(int n = f(1),\n         int m = 2) noexcept\n{\n  return n;\n}\n",
    "a.cpp": "// Far away.\n\n// Near,\n// and nearer.\ntemplate <class T>\nT gather(T n, const char* text = \"){;\") {  // {\n  if (n) {\n    return gather(n - 1);\n  }\n}\n"
             "/// Not this.\nint gather() {\n}\nreturn gather(1) {\n}\nusing gather(int) {\n}\n  int gather(long) {\n  }\nint Other::gather(int) {\n}\nint x = a.gather(1);\n"
             "int gather(char c)\n    : member(c) {\n  x();\n}\nint regather(int n) {\n}\nint gather(short n) {\n  never();\n",
    "b.cpp": "int gather(int b) {\n  return 9;\n}\nint spare(int n) {\n  return n;\n}\n", "c.cpp": "int spare(char c) { return c; }\n"}
CODE = ['#include "a.hpp"  // <b>', "template <class T> constexpr auto f(const T& x) -> decltype(x) {", "  if (x < 1 && y > 2) return 'a' + '\\'' + \"s\\\"t // no\";  // why \"not\"",
        "  for (auto& [a, b_2] : 1'000.5e3f) { throw Error(nullptr, true); }", "", "\tswitch (long_int) { case 0x1F: break; default: delete this; }", "}  // end"]
PROGRAM = """\
Plan plan_of_all(const Seat& seat,
                 int n) {
  return {};
}  // of all
Plan planned(int n) { return {}; }
static std::vector<int> predict_all(int n) { return {}; }  // short
struct Local {
  int a;  // of the planted bug x
  int b;  // not planted
};
void f() {
  const if_not = 1;
  if (rank.bug("a") || b) {
    x();

    if (y) {
    }
  }
  if (rank.bug("b")) {
    x();
  } else if (z) {
  }
  if (rank.bug("c"))
    y();
  else
    z();
  if (!lesson.bug("d")) return;
  if (rank.bug("e")) g(1,
      2);  // two
  if (rank.bug(name)) h();
    if (rank.bug("f")) {
      deep();
    }
  if (rank.bug("g")) one();
  last();
}
void mainly() {
}
int main() { return 0; }
void after() {
  if (rank.bug("h"))
    never_ends(""".split("\n")
PHASED = """\
void f() {
  // not above an announcement

  // why
  begin(phases::one);  // begin(phases::two)
  a("{ // begin(phases::two);", '}');
  if (x) {
    rank.phase("three / four");
    b();
    {
      c();
    }
  }
  d();

  e();
  begin(phases::unknown);
  f();
  way.begin(way.begins(meta));
  g();
}
h();
Work begins() { return {phases::two, 1}; }
  const Matrix m = two(x);
  auto one = one(y); one(z);
  std::vector<int> list = two(m);
  x.two(m);
  k(two(m));""".split("\n")
TABLES = [
    "cost    all_gather over dp, float32 × 1,200   every rank   12,345 B   12,345 B   2   ✔\n", "   all_gather over dp and tp, bfloat16   rank 0   10,000 B   10,000 B   2   ✔\n",
    "   send over pp, int64 × 3   ranks 0, 2 5   10,001 B   10,001 B   2   ✔\n", "   send over pp, int64   ranks 0–3   7 B   7 B   2   ✔\n", "   send over pp, int64   ranks 1, 0   7 B   7 B   2   ✔\n",
    "   nothing   rank 0   0 B   0 B   0   ✔\n", "cost    recv over pp, float32   every rank   8 B   8 B   2   ✔\ncost    send over pp, float32   every rank   9 B   9 B   2   ✔\n",
    "   a phrase over dp   every rank   9 B   9 B   2   ✔\n", "   all_gather over dp, float32   every rank   9 B   9 B", "   all_gather over <dp>, float32   every rank   9 B   9 B   1\n", "none"]
TRACE = """<style>:root { --ink: #111; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee; }
}
.lane0 { color: #123456; }
.lane11 { color: red; }
 .lane2 { color: blue; }
</style><h2>Timeline</h2>
<div id="timeline"></div>
<p>more</p>
<h2>Collectives</h2>
<script type="application/json" id="data">{"slices": [1]}</script>"""
WORDS = """# Glossary

- **rank**: a copy of the *program*,
  with `its` coordinates & "more".
- **TP slice**, **slice of TP**: rows.
- **dist_meta**: what is <where>.
- **Newton–Schulz**: five steps.
- **run**: not a link.
- **DP**: data.
"""
PROSE = ("<p>A run of ranks: TP slices, slices of TP, Newton–Schulz; dist_meta, dist_metas, DP/TP DP-rank DPs rank.\nRank. <!-- a\nrank --> <img alt=\"rank\" title=\"a\nDP\"/>"
         "<em>DP</em> (DP) \"rank\" TP slice</p><pre>TP slice</pre><div><div class=\"line\">dist_meta</div>dist_meta</div><a>Newton–Schulz <b>x</b></a> Newton–Schulzes")


class KeptParts(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.text = []

    def keep(self, what, made):
        """Notes what `made` returns, or the sentence with which it refuses."""
        try:
            value = made() if callable(made) else made
        except (LessonError, make_material.MaterialError) as refused:
            value = f"refused: {refused}"
        if not isinstance(value, str):
            value = "\n".join(map(repr, value)) if isinstance(value, list) else repr(value)
        value = value.replace(str(self.folder.resolve()), "HERE").replace(str(self.folder), "HERE").replace(str(ROOT), "ROOT")
        self.text += [f"--- {what}", *re.sub(r"(?<=>)(<(?:svg|rect|text|path|g|tr|td|li|p|div|label|option|figcaption|circle|script|style)\b)", r"\n\1", value).split("\n")]

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def test_drawings(self):
        for text in DRAWINGS:
            for digits in ("rank", "parameter") if "2233" in text else ("rank",):
                self.keep(f"{text!r}, {digits}", lambda text=text, digits=digits: drawings.drawn(text, digits) or "nothing")
        self.keep("a page", drawings.with_drawings('<pre class="fragment">&lt;<b>█</b>███ 2222\n</pre> <pre>████</pre>\n<pre class="fragment">x\n</pre>', "parameter"))
        expect_kept(self, "tools_drawings.txt", self.text)

    def test_code(self):
        for name, text in SOURCES.items():
            self.write(f"src/{name}", text)
        for name in ("gather", "half", "spare", "regather", "none"):
            self.keep(f"definitions of {name}", lambda name=name: function_source.definitions(self.folder, "src/a.hpp", name))
        self.keep("none beside it", lambda: function_source.definitions(self.folder, "src/d.hpp", "spare"))
        self.keep("highlighted", highlighted(CODE))
        self.keep("a plain program", list(zip(*plain_program.kinds([PROGRAM]), PROGRAM)))
        lines = "".join(f'<div class="line">{line.replace("&", "&amp;").replace("<", "&lt;")}</div>\n' for line in PROGRAM)
        self.keep("as it stands on a page", plain_program.marked(f'<div class="fragment"><div class="line">x</div>\n</div><!-- fragment -->\n<div class="fragment">{lines}</div><!-- fragment -->'))
        self.keep("phases", sorted(lines_of_phases(PHASED, {"First": "one", "Second": "two", "Third": "three"}).items()))
        expect_kept(self, "tools_code.txt", self.text)

    def test_words(self):
        for table in TABLES:
            self.keep(repr(table), lambda table=table: repr(guesses.bytes_asked(table)))
            self.keep("before it", guesses.before_output(SimpleNamespace(name="lesson_77_x"), table, "<pre>out</pre>"))
        self.keep("before the answer", guesses.before_answer(SimpleNamespace(name="lesson_77_x"), 'a < "b" & c?', "<p>yes</p>"))
        self.write("docs/glossary.md", WORDS)
        glossary = Glossary(self.folder)
        self.keep("meanings", sorted(glossary.meaning.items()))
        self.keep("anchors", sorted(glossary.anchor.items()))
        self.keep("links", glossary.link(PROSE))
        self.keep("its page", glossary.complete("<li><b>rank</b>: a</li><li>x</li><li><b>TP slice</b>, <b>slice of TP</b></li><li><b>dist_meta</b></li><li><b>Newton–Schulz</b></li>"
                                                "<li><b>run</b></li><li><b>DP</b></li>"))
        for text in ("- **a**: b\nAnd **c**.\n", "nothing", "- **a**: b\n- **a**: c\n", "- **a b**: b\n- **A-B**: c\n"):
            self.write("docs/glossary.md", text)
            self.keep(repr(text), lambda: Glossary(self.folder).meaning)
        for name in ("lesson_03_x.html", "lesson_3_x.html", "index.html", "md_docs_x.html", "function_x.html", "classx.html", "structx.html", "a_8hpp.html",
                     "a_8hpp_source.html", "api.html", "namespacex.html", "apis.html", "files.html"):
            self.keep(name, search_index.kind_of(name))
        markup = ("<p>all<wbr/>of <b>i</b>t <tt>x</tt>y<br/>z &lt;a&gt; &#8203;b</p><!-- no --><script>no</script><style>no</style><nav>no<p>no</p></nav><pre>no</pre><noscript>no</noscript>"
                  '<span class="permalink"><a>no</a></span><div class="fragment"><p>no</p></div><!-- fragment --><h2>head</h2><sub>1</sub>2<sup>3</sup> <abbr>a</abbr>b')
        self.keep("plain", search_index.plain(markup))
        headed = "begin<h1><a class=\"anchor\" id=\"a\"></a>\n A <b>b</b> </h1>one<h4><a class=\"anchor\" id=\"b\"></a>B</h4><h2><a class=\"anchor\" id=\"\"></a></h2><h5>x</h5>"
        for kind in (search_index.LESSON, search_index.PAGE):
            self.keep(f"sections, {kind}", search_index.sections_of(kind, headed))
        self.keep("of a function", search_index.sections_of(search_index.API, '<a class="anchor" id="source"></a><div class="memdoc">one\n<b>two</b></div>x<div class="memdoc">three</div>'))
        self.keep("of a header without words", search_index.sections_of(search_index.API, "<p>no</p>"))
        for name, title in (("classa.html", "n::A&lt; T &gt; Class Template Reference"), ("structb.html", "B Struct Reference"), ("a_8hpp.html", "a.hpp File Reference"), ("api.html", "API"),
                            ("lesson_01_a.html", "01 · A"), ("md_docs_x.html", "<b>X</b> of Class Reference"), ("files.html", "Files")):
            self.write(f"site/{name}", f'<h1 class="title">{title}</h1><div class="contents">\n<p>About {name}</p></div><!-- contents --> not <!-- contents -->')
        self.write("site/md_docs_none.html", '<div class="contents"><p>No title.</p></div><!-- contents -->')
        self.write("site/md_docs_empty.html", '<h1 class="title">Empty</h1>')
        self.keep("the index", search_index.search_index(self.folder / "site"))
        expect_kept(self, "tools_words.txt", self.text)

    def graph_of(self, lessons, marked):
        drawn = SimpleNamespace(stdout='<?xml?><!DOCTYPE svg><svg width="9pt" xmlns="x" xmlns:xlink="http://www.w3.org/1999/xlink">\n<!-- a\nb -->\n<g id="g" fill="white" stroke="none">'
                                       '<title>t</title>\n<a xlink:href="l.html" xlink:title="T"><path fill="#1" d="M1"/></a></g></svg>\n')
        with mock.patch.object(lesson_graph.subprocess, "run", return_value=drawn) as run:
            made = lesson_graph.lesson_graph(lessons, marked)
        return f'{run.call_args.args[0]} {run.call_args.kwargs["input"]}\n{made}'

    def test_the_graph_and_the_journey(self):
        root = stand_in_site.make(self.folder)[0]
        lessons = lessons_in_order(root)
        for marked in (None, *lessons):
            self.keep(f"the graph of {marked and marked.name}", lambda marked=marked: self.graph_of(lessons, marked))
        for title in ("One", "One two", "A long title of several words", "Sentence of equal lengths", "a bb ccc dddd"):
            self.keep(title, lesson_graph._two_lines(title))
        self.keep("one that is missing", lambda: self.graph_of(lessons[1:], None))
        source = lessons[1].path.read_text(encoding="utf-8")
        for before, after in (("You need to know", "Know"), ("\\ref lesson_05_tp_gather", "\\ref lesson_09_full_step and \\ref lesson_06_newton_schulz")):
            lessons[1].path.write_text(source.replace(before, after), encoding="utf-8")
            self.keep(after, lambda: lesson_graph.builds_on(lessons_in_order(root)[1]))
        self.keep("the journey", journey.journey(ROOT))
        self.keep("in PyTorch", journey.torch_table())
        for what in ("picture", "torch"):
            self.keep(what, subprocess.run([sys.executable, ROOT / "tools/site/journey.py", what], capture_output=True, text=True, check=True).stdout)
        expect_kept(self, "tools_graph.txt", self.text)

    def test_figures(self):
        root, _, _, material, site = stand_in_site.make(self.folder)
        folder, lessons = material.parent / "figures", lessons_in_order(root)
        self.keep("colours", figures.colours(ROOT))
        self.keep("the palette", sorted(palette.palette(ROOT).items()))
        data = json.loads((folder / "09.json").read_text(encoding="utf-8"))
        for change in ({}, {"each_by_itself": False}, {"series": ["only"]}, {"series": ["a", "b"], "columns": ["<x>", "y"]}):
            changed = {**data, **change}
            self.keep(f"bars, {change}", lambda changed=changed: figures.bars("77", changed))
            self.keep("longest", sorted(figures.longest(changed).items()))
        nothing = {**data, "states": [[[[0, 0], ["", "0"]], [[0], ["", "0"]]]] * 8, "each_by_itself": False}
        self.keep("bars of nothing", figures.bars("77", nothing))
        refused = json.loads(json.dumps(data))
        refused["choices"][0]["start"], refused["choices"][1]["start"] = "1", "1"
        self.keep("a start that is refused", lambda: figures.bars("77", refused))
        site.mkdir()
        self.keep("a timeline", figures.timeline(ROOT, TRACE, "--dp <2>", site))
        script = (site / "timeline.js").read_text(encoding="utf-8")
        parts = [(ROOT / name).read_text(encoding="utf-8") for name in ("sim/pictures/page/tooltip.js", "sim/analyser/pictures/page/timeline.js", "docs/figures/trace.js")]
        self.assertEqual(script, '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n")
        self.assertEqual((site / "echarts.js").read_bytes(), (ROOT / "third_party/echarts/echarts.min.js").read_bytes())
        for lost in (' id="data"', "<h2>Timeline</h2>", "<h2>Collectives</h2>", ":root { --ink: #111; }", "@media (prefers-color-scheme: dark)"):
            self.keep(f"without {lost}", lambda lost=lost: figures.timeline(ROOT, re.sub(r":root \{ --ink: #1+; \}", "", TRACE).replace(":root {", "root {") if lost.startswith(":root") else
                                                                              TRACE.replace(lost, ""), "", site))
        self.keep("singular values", singular_values.singular_values(json.loads((folder / "06.json").read_text(encoding="utf-8"))))
        recorded = json.loads((material / "lesson_05_tp_gather/recording.json").read_text(encoding="utf-8"))
        self.keep("memory", memory_order.memory_order(recorded))
        lesson = SimpleNamespace(number="13", name="lesson_13_x", path=root / "lessons/lesson_13_x/lesson_13_x.cpp")
        self.write("figures/13.json", json.dumps(data))
        self.write("figures/18.html", TRACE)
        self.write("figures/18.options", "--dp 2\n")
        mark = '<h{0}><a class="anchor" id="lesson_{1}_{2}"></a>'
        for number, anchor in (("13", "three_numbers"), ("18", "the_cost"), ("77", "the_cost")):
            lesson.number, lesson.name = number, f"lesson_{number}_x"
            for level in (1, 2):
                made = figures.complete(lesson, "<p>a</p>" + mark.format(level, f"{number}_x", anchor) + "</h>", recorded, self.folder / "figures", site)
                self.keep(f"lesson {number}, h{level}", made.replace(figures.colours(root), "COLOURS"))
        lesson.number, lesson.name = "13", "lesson_13_x"
        for text in ("", mark.format(1, "13_x", "three_numbers") * 2):
            self.keep(f"no place in {text}", lambda text=text: figures.complete(lesson, text, recorded, self.folder / "figures", site))
        expect_kept(self, "tools_figures.txt", self.text)

    def test_lessons_and_what_they_lack(self):
        root, _, _, material, _ = stand_in_site.make(self.folder)
        lesson = lessons_in_order(root)[0]
        for what in (lesson_text.question, lesson_text.answer, lesson_text.bugs, lesson_text.expected_text, lesson_text.expected_on_gpus, lesson_page.output_section, lesson_page.bugs_section,
                     lesson_page.try_section):
            self.keep(what.__name__, lambda what=what: what(lesson))
        folder = lesson.path.parent
        bugs = (folder / f"{lesson.name}.bugs.expected").read_text(encoding="utf-8")
        for text in (bugs.replace("bug first: ", "bug first "), bugs.replace("$ run --bug first\n", ""), bugs.replace("bug second", "bug third"), "about\n"):
            self.write(f"root/lessons/{lesson.name}/{lesson.name}.bugs.expected", text)
            self.keep(repr(text), lambda: lesson_text.bugs(lesson))
        for ending in (".expected", ".bugs.expected", ".nccl.expected"):
            (folder / f"{lesson.name}{ending}").unlink()
        for what in (lesson_text.question, lesson_text.bugs, lesson_text.expected_on_gpus):
            self.keep(f"no file for {what.__name__}", lambda what=what: what(lesson))
        self.write(f"root/lessons/{lesson.name}/{lesson.name}.expected", "Question: one\n two\n  three\n  four\nAnswer:none\n")
        self.keep("a question of one line", lambda: lesson_text.question(lesson))
        self.keep("no answer", lambda: lesson_text.answer(lesson))
        (folder / "try_join_rows/contract.hpp").unlink()
        self.keep("no contract", lambda: lesson_page.try_section(lesson))
        for svg in ('<svg width="1" height="2"><title>a</title><desc>b &lt; "c"</desc></svg>', "<svg><title>a</title><desc>b</desc></svg>", '<svg width="1" height="2"><desc>b</desc></svg>',
                    '<svg width="1" height="2"><title>a</title></svg>'):
            self.keep(svg, lambda svg=svg: lesson_page.picture("lesson_77_x", "p.svg", svg, " wide"))
        for text in ("step 1 · x\nLesson 07 · y\n step 2 · z\nstep x · y ✔✘\n\n", "a < b & \"c\"\n", ""):
            self.keep(repr(text), lesson_page.output_block(text, 'a "label" <x>'))
        recorded = json.loads((material / f"{lesson.name}/recording.json").read_text(encoding="utf-8"))
        self.keep("packed", json.dumps(lesson_page.packed(recorded)))
        self.keep("contents", lesson_page.table_of_contents('<h1><a class="anchor" id="a"></a>\nA <b>b</b></h1>x<h1><a class="anchor" id="c"></a>C</h1><h2><a class="anchor" id="d"></a>D</h2>'))
        self.keep("columns", lesson_page._with_columns('<pre class="fragment">a &lt;b&gt;\n<b>ccc</b>\n</pre><pre class="fragment">\n</pre><pre>x</pre>'))
        lessons = lessons_in_order(root)
        for each in lessons:
            self.keep(f"around {each.name}", lesson_page.navigation(lessons, each, "bottom"))
        for expected, printed in (("a\nb\n", "a\nc\n"), ("a\n", "a\nb\n"), ("a\nb\n", "a\n"), ("a\n", "a"), ("a", "a\n\n"), ("", "x")):
            self.keep(f"{expected!r} and {printed!r}", make_material.first_difference(expected, printed))
        page = ('<tr class="memitem:a1"><td><a id="a1" name="a1"></a>int</td></tr>\n<tr class="memdesc:a1"><td class="x">&#160;</td><td>Does\nit. <br/></td></tr>\n'
                '<tr class="memitem:a2"><td>long</td></tr>')
        item = '<div class="memdoc">\n<p >At\nlength. <b>More</b></p><p>x</p>'
        for anchor in ("a1", "a2", "a3"):
            for its_item in ("", item, "<div>nothing</div>"):
                member = SimpleNamespace(anchor=anchor, item=its_item, name="name")
                self.keep(f"in short, {anchor}, {its_item!r}", lambda member=member: api_members.in_short(member, page))
        expect_kept(self, "tools_lessons.txt", self.text)


class Programs(unittest.TestCase):
    """The tools as they are called: what can't be done is one sentence on standard error, and exit code 1."""

    def said(self, tool, *arguments):
        run = subprocess.run([sys.executable, ROOT / "tools/site" / tool, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(run.stdout, "")
        return run.returncode, run.stderr

    def test_make_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            *made, site = stand_in_site.make(Path(folder))
            self.assertEqual(self.said("make_pages.py", *made, site), (0, ""))
            self.assertTrue((site / "index.html").exists())
            (made[0] / "docs/glossary.md").write_text("nothing", encoding="utf-8")
            self.assertEqual(self.said("make_pages.py", *made, site), (1, 'make_pages.py: docs/glossary.md: every entry has the form "- **word**: what it means", and nothing else is bold\n'))

    def test_make_material(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            program, lesson = folder / "program", folder / "lesson_77_x"
            lesson.mkdir()

            def made(script, *toy):
                program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                program.chmod(0o755)
                return self.said("make_material.py", program, lesson, folder / "out", *toy)

            no_page = "so no page is made of it"
            picture = 'touch "$2step_1.svg"; touch "$4"; echo "a $NO_COLOR"'
            self.assertEqual(made(picture), (1, f"make_material.py: lesson_77_x has no lesson_77_x.expected, {no_page}; BLESS=1 ctest -R lesson_77_x.expected writes one\n"))
            (lesson / "lesson_77_x.expected").write_text("a 1\n", encoding="utf-8")
            self.assertEqual(made(picture), (0, ""))
            self.assertEqual(sorted(path.name for path in (folder / "out").iterdir()), ["recording.json", "step_1.svg"])
            self.assertEqual(made('echo "a 1"'), (1, f"make_material.py: lesson_77_x --svg drew no picture of a step, {no_page}\n"))
            self.assertEqual(made("echo b"), (1, f'make_material.py: lesson_77_x prints something other than its lesson_77_x.expected, {no_page}: line 1 should be "a 1", but it is "b"\n'))
            code, said = made("echo why >&2; exit 3")
            self.assertEqual((code, said.replace(str(folder), "HERE")), (1, "make_material.py: lesson_77_x --svg HERE/out/ --record HERE/out/recording.json ended with exit code 3 instead "
                                                                            f"of 0, {no_page}; it said: why\n"))


if __name__ == "__main__":
    unittest.main()
