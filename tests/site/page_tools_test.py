"""Tests of what takes a lesson apart and makes its page, on small lessons written here."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tools/site")]
import doxygen_filter  # noqa: E402
import lesson_graph  # noqa: E402
import lesson_page  # noqa: E402
import lesson_text  # noqa: E402
import page_shell  # noqa: E402
import serial_muon  # noqa: E402
import start_page  # noqa: E402
from api_links import ApiLinks  # noqa: E402
from glossary import Glossary  # noqa: E402
from journey import journey  # noqa: E402
from search_index import API, LESSON, PAGE, kind_of, plain, sections_of  # noqa: E402
from make_material import MaterialError, make_material  # noqa: E402
from lesson_source import LessonError, lessons_in_order, read_lesson, test_arguments, toy_arguments  # noqa: E402

SOURCE = '''// # Lesson 77 · Stand-in
//
// What it is about. With --tp 2 it is about `--tp 2`.
//
// You need to know nothing, or \\ref lesson_76_before: all of it.

#include "sim/cluster/lesson.hpp"

// ## The idea
//
// A drawing:
//
//     a ── b
//
//     c
//
// And \\ref full_step.
void start(Rank& rank) {
  rank.say("{");  // a brace in a string
}

const char* const kAnswer =
    "because "
    "it is so";

int main(int argc, char** argv) {
  Lesson<Local> lesson(info, Grid(), argc, argv);
  lesson.step("start", start);
  for (int i = 0; i < 2; ++i) lesson.step(fmt::format("again {}", i), start);

  // ## Exercises
  //
  // 1. Why? Hint: because.
  return lesson.answer(kAnswer);
}
'''


class Lessons(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.write("lesson_76_before.cpp", "// # Lesson 76 · Before\n")

    def write(self, name, text):
        path = self.folder / name.split(".")[0] / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def lesson(self, source=SOURCE):
        return read_lesson(self.write("lesson_77_stand_in.cpp", source))


class PageShell(unittest.TestCase):
    PAGE = ('<html lang="en"><head><title>A · Muonwalk</title></head><body><main id="doc-content" tabindex="-1"></div><!-- top -->'
            '{}<div class="contents"><h1>B</h1><h2 class="x">C</h2></div></main></body></html>')

    @staticmethod
    def completed(page):
        return page_shell.completed(page, lambda text: f'<nav id="mw-side">{len(re.findall("<h1", text))} first heading</nav>')

    def test_one_first_heading(self):
        page = self.completed(self.PAGE.format('<div class="title">A </div>'))
        self.assertEqual(re.findall(r"<h\d.*?</h\d>", page), ['<h1 class="title">A </h1>', "<h2>B</h2>", '<h3 class="x">C</h3>'])

    def test_a_page_without_a_title_has_that_of_its_head(self):
        self.assertIn('<div class="contents"><h1 class="mw-heard">A</h1><h2>B</h2>', self.completed(self.PAGE.format("")))

    def test_the_navigation_is_made_of_the_page_with_its_headings(self):
        page = self.completed(self.PAGE.format(""))
        self.assertIn('<nav id="mw-side">1 first heading</nav><main id="doc-content"', page)
        self.assertNotIn("<!-- top -->", page)

    def test_a_page_has_the_scripts_that_it_needs(self):
        def scripts(text):
            return re.findall(r'<script src="(\w+)\.js">', self.completed(self.PAGE.format(text)))

        self.assertEqual(scripts(""), ["shell", "lesson", "search"])
        self.assertEqual(scripts('<a class="mw-word">x</a>'), ["shell", "lesson", "search", "words"])
        self.assertEqual(scripts('<pre class="fragment">x</pre>'), ["shell", "lesson", "search", "drawings"])

    def test_another_page_is_refused(self):
        self.assertIsNone(self.completed(self.PAGE.replace("doc-content", "text").format("")))


class SearchIndex(unittest.TestCase):
    def test_sections_of_a_page_are_its_prose(self):
        contents = ('<p>A <a href="x">buck</a>et &amp; more.</p><div class="fragment">code</div><!-- fragment -->'
                    '<h1><a class="anchor" id="idea"></a>\nThe idea</h1><pre>out</pre><p>Words<svg><text>no</text></svg></p>')
        self.assertEqual(sections_of(LESSON, contents), [("", "", "A bucket & more."), ("idea", "The idea", "Words")])

    def test_a_name_is_one_word_where_a_page_may_break_it(self):
        self.assertEqual(plain("<b>all&#8203;_gather</b>\n &amp; <br/>dist\u200b_meta"), "all_gather & dist_meta")

    def test_entries_of_the_api(self):
        member = ('<a id="a{0}" name="a{0}"></a>\n<h2 class="memtitle"><span class="permalink"><a>*</a></span>f{0}()</h2>'
                  '<table>int f{0}(int x)</table><div class="memdoc"><p>Does {0}.</p></div>')
        contents = '<div class="textblock"><p>About it.</p></div>' + member.format(1) + member.format(2) + "<hr/>the file"
        self.assertEqual(sections_of(API, contents), [("", "", "About it."), ("a1", "f1()", "Does 1."), ("a2", "f2()", "Does 2.")])

    def test_kinds_of_pages(self):
        self.assertEqual([kind_of(name) for name in ("lesson_03_x.html", "index.html", "md_docs_design.html", "structA.html")],
                         [LESSON, PAGE, PAGE, API])
        self.assertEqual([kind_of(name) for name in ("lesson_8hpp.html", "function_gather.html", "api.html")], [API] * 3)
        self.assertEqual([kind_of(name) for name in ("lesson_8hpp_source.html", "namespacemuonwalk.html")], [None] * 2)


class Filter(Lessons):
    def page(self, source=SOURCE):
        return doxygen_filter.page_of(self.lesson(source)).split("\n")[:-1]

    def test_keeps_every_line_in_its_place(self):
        page, source = self.page(), SOURCE.split("\n")[:-1]
        self.assertEqual(len(page), len(source))
        for words in ("rank.say", "A drawing:", "1. Why?"):
            at = next(at for at, line in enumerate(source) if words in line)
            self.assertIn(words, page[at])

    def test_every_lesson_of_the_project(self):
        for lesson in lessons_in_order(ROOT):
            page = doxygen_filter.page_of(lesson)
            self.assertEqual(page.count("\n"), len(lesson.lines), lesson.name)
            self.assertEqual(page.count("@code{.cpp}"), page.count("@endcode"), lesson.name)
            self.assertEqual(page.count("@code{.cpp}"), len(doxygen_filter.fragments(lesson)), lesson.name)
            self.assertEqual(page.count("@verbatim"), page.count("@endverbatim"), lesson.name)

    def test_arguments_are_read_from_the_list_of_lessons(self):
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / "lessons" / "CMakeLists.txt"
            listed.parent.mkdir()
            listed.write_text("# add_lesson(lesson_00_not)\nadd_lesson(lesson_01_a)\nadd_lesson(lesson_02_b)\n"
                              "add_lesson(lesson_03_c LIBRARIES x TOY --toy --dp 4 TEST_ARGUMENTS --small --steps 3)\n", encoding="utf-8")
            self.assertEqual(test_arguments(folder, "lesson_02_b"), "")
            self.assertEqual(test_arguments(folder, "lesson_03_c"), "--small --steps 3")
            self.assertEqual(toy_arguments(folder, "lesson_03_c"), ["--toy", "--dp", "4"])
            self.assertEqual(toy_arguments(folder, "lesson_02_b"), [])

    def test_title_and_sections(self):
        page = self.page()
        self.assertEqual(page[0], "/** \\page lesson_77_stand_in 77 · Stand-in")
        self.assertIn("\\section lesson_77_stand_in_the_idea The idea", page)

    def test_options_are_no_dashes(self):
        self.assertIn("What it is about. With \\--tp 2 it is about `--tp 2`.", self.page())

    def test_options_in_code_that_goes_on_in_the_next_line(self):
        page = self.page(SOURCE.replace("// 1. Why?", "// 0. Run `--dp\n  //    64 --tp 2` and not --tp 4.\n  // 1. Why?"))
        self.assertIn("0. Run `--dp", page)
        self.assertIn("   64 --tp 2` and not \\--tp 4.", page)

    def test_emphasis_at_the_begin_of_a_line(self):
        self.assertIn("<em>What</em> it is about.", "\n".join(self.page(SOURCE.replace("What it is", "*What* it is"))))

    def test_references_have_words(self):
        page = "\n".join(self.page())
        self.assertIn('\\ref lesson_76_before "76 · Before": all of it', page)
        self.assertIn('\\ref muonwalk::full_step "full_step"', page)

    def test_an_unknown_lesson_is_left_to_doxygen(self):
        self.assertIn("\\ref lesson_75_none.", "\n".join(self.page(SOURCE.replace("\\ref full_step", "\\ref lesson_75_none"))))

    def test_drawings_stay_as_they_are(self):
        page = "\n".join(self.page())
        self.assertIn("A drawing:\n@verbatim\na ── b\n\nc\n@endverbatim\nAnd", page)

    def test_the_answer_is_not_given_away(self):
        page = "\n".join(self.page())
        self.assertNotIn("it is so", page)
        self.assertIn('const char* const kAnswer = "…";', page)
        self.assertNotIn("return lesson.answer", page)

    def test_end_of_comment_is_refused(self):
        with self.assertRaisesRegex(LessonError, 'cpp:19: "\\*/" would end the page'):
            self.page(SOURCE.replace("a brace in a string", "a */ in a comment"))

    def test_code_behind_the_exercises_is_refused(self):
        with self.assertRaisesRegex(LessonError, "only returns"):
            self.page(SOURCE.replace("  return lesson.answer", "  rank.go();\n  return lesson.answer"))


class Source(Lessons):
    def test_steps_and_their_titles(self):
        literal, made_up = self.lesson().steps
        self.assertTrue(literal.covers("start") and not literal.covers("starting"))
        self.assertTrue(made_up.covers("again 1: momentum") and not made_up.covers("start"))

    def test_steps_of_a_run(self):
        run = {"steps": [{"number": 1, "title": "start"}, {"number": 2, "title": "again 0"}, {"number": 3, "title": "again 1"}]}
        self.assertEqual(lesson_text.functions_of_steps(self.lesson(), run), {1: "start", 2: "start", 3: "start"})
        with self.assertRaisesRegex(LessonError, 'has a step "other"'):
            lesson_text.functions_of_steps(self.lesson(), {"steps": [{"number": 1, "title": "other"}]})

    def test_steps_of_one_title_are_told_apart_by_their_order(self):
        lesson = self.lesson(SOURCE.replace('lesson.step("start", start);', 'lesson.step("start", start);\n  lesson.step("start", anew);'))
        run = {"steps": [{"number": 1, "title": "start"}, {"number": 2, "title": "start"}, {"number": 3, "title": "again 1"}]}
        self.assertEqual(lesson_text.functions_of_steps(lesson, run), {1: "start", 2: "anew", 3: "start"})

    def test_a_bracket_too_many_or_too_few_is_refused_with_its_line(self):
        with self.assertRaisesRegex(LessonError, r"cpp:20: '}' closes nothing; is a bracket missing above it\?"):
            self.lesson(SOURCE.replace('a brace in a string\n}', 'a brace in a string\n}\n}', 1).replace("void start(Rank& rank) {", "", 1)
                        .replace('  rank.say("{");', 'Index begin = 1;', 1))
        with self.assertRaisesRegex(LessonError, r"cpp:18: what begins here never ends; is a bracket or a semicolon missing\?"):
            self.lesson(SOURCE.replace('rank.say("{");', 'rank.say("{";'))

    def test_question_and_answer(self):
        lesson = self.lesson()
        self.write("lesson_77_stand_in.expected", "Lesson 77\nQuestion: who\n          is it?\n\nAnswer: it is\n        I.\nOK\n")
        self.assertEqual(lesson_text.question(lesson), "who is it?")
        self.assertEqual(lesson_text.answer(lesson), "it is I.")
        self.write("lesson_77_stand_in.expected", "Lesson 77\nQuestion: who\n")
        with self.assertRaisesRegex(LessonError, 'no line that begins with "Answer: "'):
            lesson_text.answer(lesson)

    def test_bugs(self):
        lesson = self.lesson(SOURCE.replace("Lesson<Local>", 'info.bugs = {{"one", "first"}, {"two", "second"}};\n  Lesson<Local>'))
        both = "about\n\nbug one: first\n$ run --bug one\n…\nFAILED\n\nbug two: second\n$ run --bug two\nFAILED\n"
        self.write("lesson_77_stand_in.bugs.expected", both)
        one, two = lesson_text.bugs(lesson)
        self.assertEqual((one.name, one.says, one.output), ("one", "first", "$ run --bug one\n…\nFAILED\n"))
        self.assertEqual(two.output, "$ run --bug two\nFAILED\n")
        self.write("lesson_77_stand_in.bugs.expected",
                   "about\n\nbug two: second\n$ run --bug two\nFAILED\n\nbug one: first\n$ run --bug one\nFAILED\n")
        with self.assertRaisesRegex(LessonError, "but the lesson plants"):
            lesson_text.bugs(lesson)
        self.write("lesson_77_stand_in.bugs.expected", both[:both.index("\n\nbug two")] + "\n")
        with self.assertRaisesRegex(LessonError, "but the lesson plants"):
            lesson_text.bugs(lesson)

    def test_builds_on(self):
        self.assertEqual(lesson_graph.builds_on(self.lesson()), ["lesson_76_before"])
        with self.assertRaisesRegex(LessonError, "You need to know"):
            lesson_graph.builds_on(self.lesson(SOURCE.replace("You need to know", "Know")))


class StartPage(Lessons):
    PROOF = ("  all                    1,234 B\n\ncheck   weights: 8 ranks equal the reference   5,678 elements, bit for bit   ✔\n"
             "cost    sent by a rank     predicted      counted messages\n        all_gather over dp, float32   1,234 B   1,234 B   1   ✔\n")

    def lessons(self):
        """Three lessons; the last one builds on both others, and names a later one, which is not something to build on."""
        need = "// # Lesson {} · {}\n//\n// About it.\n//\n// You need to know {}.\n"
        sources = {"lesson_76_before": ("Before", "nothing"), "lesson_77_stand_in": ("Stand in", "\\ref lesson_76_before"),
                   "lesson_78_after_all": ("After all", "\\ref lesson_77_stand_in and \\ref lesson_76_before; "
                                                        "\\ref lesson_79_later comes next")}
        lessons = []
        for name, (title, known) in sources.items():
            lessons.append(read_lesson(self.write(f"{name}.cpp", need.format(name[7:9], title, known))))
            self.write(f"{name}.expected", f"Lesson\nQuestion: what is <{title}>?\n\n{self.PROOF}Answer: it.\n")
        return lessons

    def test_the_journey_shows_which_rows_each_rank_holds_at_each_stage(self):
        stages = re.findall(r"<li><h2>(.*?)</h2>(<svg.*?</svg>)<p>(.*?)</p></li>", journey(ROOT))
        names = [re.sub(r"<a href=\"lesson_(\d\d)_\w+.html\">(.*)</a>", r"\1 \2", name) for name, _, _ in stages]
        self.assertEqual(names, ["Before", "04 DP gather", "05 TP gather", "06 Newton–Schulz", "07 TP shard", "08 DP shard"])
        # With dp 2 × tp 2, a TP rank has two rows of four, and a DP rank one of these two.
        one = {"dp 0 tp 0": [0], "dp 0 tp 1": [2], "dp 1 tp 0": [1], "dp 1 tp 1": [3]}
        half = {"dp 0 tp 0": [0, 1], "dp 0 tp 1": [2, 3], "dp 1 tp 0": [0, 1], "dp 1 tp 1": [2, 3]}
        every = dict.fromkeys(one, [0, 1, 2, 3])
        for stage, wanted, orthogonal in zip(range(6), [one, half, every, every, half, one], [0, 0, 0, 1, 1, 1]):
            _, svg, happens = stages[stage]
            with self.subTest(stage=names[stage]):
                held = {}
                for rank, cells in re.findall(r"<text[^>]*>(dp \d tp \d)</text>(.*?)(?=<text|</svg>)", svg):
                    rows = re.findall(r'<rect [^>]*y="(\d+)"[^>]*class="mw-j(\w+)"/>', cells)
                    self.assertEqual(len(rows), 4)
                    self.assertEqual(rows, sorted(rows, key=lambda row: int(row[0])))
                    held[rank] = [at for at, (_, kind) in enumerate(rows) if kind != "none"]
                    kinds = [kind for _, kind in rows if kind != "none"]
                    self.assertEqual(kinds, ["4" if orthogonal else str(at) for at in held[rank]])
                self.assertEqual(held, wanted)
                self.assertEqual("nothing travels" in happens, stage in (3, 4))

    def test_the_graph_has_an_arrow_from_each_lesson_to_those_that_build_on_it(self):
        lessons = self.lessons()
        with mock.patch.object(lesson_graph.subprocess, "run", wraps=subprocess.run) as run:
            graph = lesson_graph.lesson_graph(lessons, lessons[1])
        arrows = re.findall(r'^(\w+) -> (\w+) \[class="([\w-]+)"\]', run.call_args.kwargs["input"], re.MULTILINE)
        self.assertEqual(sorted(arrows), [("lesson_76_before", "lesson_77_stand_in", "mw-mine"),
                                          ("lesson_76_before", "lesson_78_after_all", "mw-other"),
                                          ("lesson_77_stand_in", "lesson_78_after_all", "mw-other")])
        self.assertIn('<desc id="graph_words">76 Before builds on nothing; 77 Stand in builds on 76; '
                      "78 After all builds on 77, 76</desc>", graph)
        self.assertEqual(re.findall(r'<g id="graph_(\d\d)" class="node ([\w-]+)">', graph.replace("&#45;", "-")),
                         [("76", "mw-lesson"), ("77", "mw-here"), ("78", "mw-lesson")])
        picture, words = graph.split("</svg>")
        self.assertEqual(re.findall(r'<a href="(\w+)\.html"', picture),
                         ["lesson_76_before", "lesson_77_stand_in", "lesson_78_after_all"])
        self.assertIn('<li>This lesson builds on <a href="lesson_76_before.html">76 Before</a>.</li>'
                      '<li>It leads to <a href="lesson_78_after_all.html">78 After all</a>.</li>', words)
        with self.assertRaisesRegex(LessonError, "builds on lesson_76_before, but there is no such lesson"):
            lesson_graph.lesson_graph(lessons[1:])

    def test_each_part_stands_where_the_page_says(self):
        lessons = self.lessons()
        text = "one <!-- site: journey --> two <!-- site: graph --> three <!-- site: lessons --> FOUR " \
               "<!-- site: muon --> FIVE <!-- site: torch --> SIX <!-- site: start -->"
        made = start_page.complete(ROOT, lessons, text)
        one, two, three = made.index("one "), made.index(" two "), made.index(" three ")
        self.assertIn('<ol class="mw-journey"', made[one:two])
        self.assertIn('<svg class="mw-graph"', made[two:three])
        self.assertEqual(re.findall(r'<a href="(\w+).html"><span class="mw-number">(\d+)</span><span class="mw-name">(.*?)'
                                    r'</span><span class="mw-asks">(.*?)</span>', made[three:made.index(" FOUR ")]),
                         [(lesson.name, lesson.number, lesson.title, f"what is &lt;{lesson.title}&gt;?") for lesson in lessons])
        self.assertIn('<pre class="mw-output mw-serial"', made[made.index(" FOUR "):made.index(" FIVE ")])
        self.assertIn('<table class="mw-torch"', made[made.index(" FIVE "):made.index(" SIX")])
        self.assertIn('<a class="mw-start-button" href="lesson_76_before.html">Start</a>', made)
        self.assertRegex(made, "8 ranks equal the reference: 5,678 elements, bit for bit .*<br/>1,234 B sent by rank 0 in a step")
        for mark in ("journey", "graph", "start", "lessons", "muon", "torch"):
            with self.assertRaisesRegex(LessonError, f"needs one line <!-- site: {mark} -->, but has 0"):
                start_page.complete(ROOT, lessons, text.replace(f"<!-- site: {mark} -->", ""))
        with self.assertRaisesRegex(LessonError, "has <!-- site: other -->"):
            start_page.complete(ROOT, lessons, text + "<!-- site: other -->")


    def test_what_no_run_has_proved_is_not_said(self):
        lessons = self.lessons()
        path = lessons[-1].path.with_suffix(".expected")
        proved = path.read_text(encoding="utf-8")
        for wrong in (("bit for bit   ✔", "bit for bit   ✘"), ("  all  ", "  some "), ("1   ✔", "1   ✘")):
            path.write_text(proved.replace(*wrong), encoding="utf-8")
            with self.assertRaisesRegex(LessonError, "does not print a check of all ranks"):
                start_page.start_button(lessons)


class Exercises(Lessons):
    def test_the_contract_of_each_is_on_the_page(self):
        lesson = next(each for each in lessons_in_order(ROOT) if each.number == "04")
        page = lesson_page.try_section(lesson)
        self.assertIn('id="lesson_04_dp_gather_try"', page)
        for words in ("<code>./walk try 04</code>", "<code>./walk try 04.2</code>", "view_in_bucket(const Flat&amp; bucket",
                      "where the bucket begins in the buffer", "<code>dist_meta</code>"):
            self.assertIn(words, page)
        self.assertNotIn("//", page)

    def test_a_lesson_without_one_has_no_section(self):
        self.assertEqual(lesson_page.try_section(lessons_in_order(ROOT)[0]), "")


class Pieces(unittest.TestCase):
    def test_data_can_not_end_its_script(self):
        self.assertEqual(lesson_page.script_json("x", {"a": "</script>"}),
                         '<script type="application/json" id="x">{"a":"\\u003c/script>"}</script>')

    def test_output_is_shown_letter_by_letter(self):
        block = lesson_page.output_block("a <b> & ✔\n  c\n", "What")
        self.assertIn('a &lt;b&gt; &amp; <b class="mw-good">✔</b>\n  c\n</pre>', block)

    def test_a_picture_without_words_is_refused(self):
        with self.assertRaisesRegex(LessonError, "step_1.svg of lesson_77 has no <title>"):
            lesson_page.picture("lesson_77", "step_1.svg", '<svg width="1" height="1"></svg>')
        whole = '<svg width="1" height="2"><title>A &amp; b</title><desc>what it\nshows</desc></svg>'
        self.assertIn('alt="A &amp; b. what it shows" width="1" height="2"', lesson_page.picture("lesson_77", "step_1.svg", whole))
        for part in ('<title>A &amp; b</title>', '<desc>what it\nshows</desc>', ' width="1" height="2"'):
            with self.assertRaisesRegex(LessonError, "step_1.svg of lesson_77 has no <title>, <desc> or size"):
                lesson_page.picture("lesson_77", "step_1.svg", whole.replace(part, ""))


class Material(Lessons):
    """What a lesson's page is made of, by a stand-in for the lesson."""

    def made(self, prints="Lesson 77\n", code=0, draws="step_1.svg"):
        program = self.folder / "program"
        program.write_text(f"#!/bin/sh\nprintf '{prints}'\necho it broke >&2\n: >\"$2/{draws}\"\nexit {code}\n", encoding="utf-8")
        program.chmod(0o755)
        self.write("lesson_77_stand_in.expected", "Lesson 77\n")
        make_material(program, self.folder / "lesson_77_stand_in", self.folder / "out")

    def test_of_a_lesson_that_does_what_is_expected(self):
        self.made()
        self.assertTrue((self.folder / "out" / "step_1.svg").exists())

    def test_of_any_other_there_is_none(self):
        for words, wrong in {"ended with exit code 1 instead of 0.*it broke": {"code": 1},
                             "ended with exit code 3": {"code": 3},
                             "line 1 should be \"Lesson 77\", but it is \"Lesson 78\"": {"prints": "Lesson 78\n"},
                             'line 2 should be "\\(nothing\\)", but it is "more"': {"prints": "Lesson 77\nmore\n"},
                             "drew no picture of a step": {"draws": "grid.svg"}}.items():
            with self.assertRaisesRegex(MaterialError, words):
                self.made(**wrong)


class Toy(Lessons):
    """The material of a lesson whose pictures are of a toy, by a stand-in that records other bytes with --toy."""

    def made(self, toy_title="gather", toy_code=0):
        program = self.folder / "program"
        program.write_text(f"""#!/bin/sh
record() {{
  printf '{{"before":["%s"],"after":["%s"],"steps":[{{"title":"start","lines":["%s"],"moves":[]}},' "$3" "$3" "$3" >"$1"
  printf '{{"title":"%s","lines":["%s"],"moves":[{{"bytes":%s}},{{"bytes":%s}}]}}]}}' "$2" "$3" "$3" "$4" >>"$1"
}}
case "$1" in
  --toy) : >"$3/step_1.svg"; record "$5" {toy_title} 1 2; exit {toy_code};;
  *) echo Lesson 77; record "$2" gather 100 23;;
esac
""", encoding="utf-8")
        program.chmod(0o755)
        self.write("lesson_77_stand_in.expected", "Lesson 77\n")
        make_material(program, self.folder / "lesson_77_stand_in", self.folder / "out", "--toy")
        return json.loads((self.folder / "out/recording.json").read_text(encoding="utf-8"))

    def test_the_recording_is_the_toys_and_says_what_the_real_sizes_send(self):
        recorded = self.made()
        start, gather = recorded["steps"]
        self.assertEqual([recorded["before"], recorded["after"], start["lines"], gather["lines"]], [["100"]] * 4)
        self.assertNotIn("real", start)
        self.assertEqual(gather["moves"], [{"bytes": 1}, {"bytes": 2}])
        self.assertEqual(gather["real"], {"messages": 2, "bytes": 123})
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()), ["recording.json", "step_1.svg"])

    def test_a_toy_that_fails_or_takes_other_steps_is_none(self):
        with self.assertRaisesRegex(MaterialError, "lesson_77_stand_in --toy .* ended with exit code 1"):
            self.made(toy_code=1)
        with self.assertRaisesRegex(MaterialError, "other steps as a toy.*scatter.*gather"):
            self.made(toy_title="scatter")


class Links(unittest.TestCase):
    TAGS = '''<tagfile>
      <compound kind="namespace"><name>n</name><filename>n.html</filename>
        <member kind="function"><name>tp_slice</name><anchorfile>n.html</anchorfile><anchor>a1</anchor></member>
        <member kind="typedef"><name>Flat</name><anchorfile>n.html</anchorfile><anchor>a2</anchor></member>
        <member kind="function"><name>plan</name><anchorfile>n.html</anchorfile><anchor>a3</anchor></member></compound>
      <compound kind="class"><name>n::Rank</name><filename>r.html</filename>
        <member kind="function"><name>show</name><anchorfile>r.html</anchorfile><anchor>b1</anchor></member>
        <member kind="function"><name>size</name><anchorfile>r.html</anchorfile><anchor>b2</anchor></member>
        <member kind="function"><name>group</name><anchorfile>r.html</anchorfile><anchor>b3</anchor></member>COMMON</compound>
      <compound kind="struct"><name>n::Vec&lt; int &gt;</name><filename>v.html</filename>
        <member kind="function"><name>each</name><anchorfile>v.html</anchorfile><anchor>d1</anchor></member></compound>
      <compound kind="file"><name>f.hpp</name><filename>f.html</filename>
        <member kind="function"><name>elsewhere</name><anchorfile>f.html</anchorfile><anchor>e1</anchor></member></compound>
      <compound kind="class"><name>n::Grid</name><filename>g.html</filename>
        <member kind="function"><name>group</name><anchorfile>g.html</anchorfile><anchor>c1</anchor></member></compound>
    </tagfile>'''

    COMMON = "empty begin end data clear insert front back at get add name text".split()  # containers have them, too

    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tag") as file:
            member = '<member kind="function"><name>{0}</name><anchorfile>r.html</anchorfile><anchor>{0}</anchor></member>'
            file.write(self.TAGS.replace("COMMON", "".join(map(member.format, self.COMMON))))
            file.flush()
            self.links = ApiLinks(file.name)

    def test_what_is_linked(self):
        link = '<a class="code" href="{}">{}</a>'
        for code, expected in {
            "tp_slice(x)": link.format("n.html#a1", "tp_slice") + "(x)",
            "Flat f;": link.format("n.html#a2", "Flat") + " f;",
            "rank.show(x)": "rank." + link.format("r.html#b1", "show") + "(x)",
            "x.size()": "x.size()",                     # anything may have a size
            "rank-&gt;show(x)": "rank-&gt;" + link.format("r.html#b1", "show") + "(x)",
            "vec.each(x)": "vec." + link.format("v.html#d1", "each") + "(x)",
            "rank.show": "rank.show",                   # not called
            "show(x)": "show(x)",                       # of what?
            "m::tp_slice(x)": "m::tp_slice(x)",         # of another namespace
            "Rank r; Grid g; Vec v;": link.format("r.html", "Rank") + " r; " + link.format("g.html", "Grid") + " g; Vec v;",
            "elsewhere(x)": "elsewhere(x)",
            "rank.group(x)": "rank.group(x)",           # two classes have one
            "tp_slice = 3": "tp_slice = 3",             # a variable of the same name
            "plan(seat)": "plan(seat)",                 # the lesson's own function
            '<span class="comment">// tp_slice(x)</span>': '<span class="comment">// tp_slice(x)</span>',
            '<a class="code" href="z">tp_slice</a>(x)': '<a class="code" href="z">tp_slice</a>(x)',
            '<a class="code hl_variable" href="z">tp_slice</a>(x)': link.format("n.html#a1", "tp_slice") + "(x)",  # a constant is not called
            '<a class="code hl_variable" href="z">tp_slice</a>[x]': '<a class="code hl_variable" href="z">tp_slice</a>[x]',
        }.items():
            self.assertEqual(self.links.link(code, {"plan"}), expected)
        for name in self.COMMON:
            self.assertEqual(self.links.link(f"x.{name}()", set()), f"x.{name}()")


class SerialMuon(unittest.TestCase):
    """The function that the README and the start page begin with."""

    def lines_of(self, *changes):
        source = (ROOT / serial_muon.SOURCE).read_text(encoding="utf-8")
        for before, after in changes:
            self.assertIn(before, source)
            source = source.replace(before, after, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / serial_muon.SOURCE
            path.parent.mkdir(parents=True)
            path.write_text(source, encoding="utf-8")
            return serial_muon.serial_muon(folder)

    def test_every_line_that_computes_is_marked(self):
        lines = self.lines_of()
        self.assertEqual(sum(line.endswith(serial_muon.ANY_SHARD) for line in lines), 5)
        self.assertIn("newton_schulz", next(line for line in lines if line.endswith(serial_muon.WHOLE)))

    def test_what_is_not_marked_is_refused(self):
        for change, says in (((f"  // {serial_muon.WHOLE}", ""), "a line that computes ends with the mark"),
                             ((f"  // {serial_muon.ANY_SHARD}", ""), "a line that computes ends with the mark"),
                             ((f"// {serial_muon.ANY_SHARD}", f"// {serial_muon.WHOLE}"), "exactly one line"),
                             (("void muon_step(", "void another_step("), "has no function muon_step"),
                             (("  const float mu", "\n" * 9 + "  const float mu"), "one screen has")):
            with self.assertRaisesRegex(LessonError, says):
                self.lines_of(change)


class Words(unittest.TestCase):
    """The glossary and the links to it."""

    def glossary(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "docs/glossary.md"
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8")
            return Glossary(folder)

    def linked(self, contents, text="- **rank**: a copy\n  of the program.\n- **TP slice**: some rows.\n- **TP**, **tensors**: a way.\n"):
        made = self.glossary(text).link(contents)
        self.assertEqual(re.sub(r'<a class="mw-word"[^>]*>(.*?)</a>', r"\1", made), contents)
        return re.findall(r'<a class="mw-word" href="md_docs_glossary.html#(\w+)" title="[^"]*">(.*?)</a>', made)

    def test_the_first_use_of_a_word_is_a_link(self):
        self.assertEqual(self.linked("<p>Ranks, and a rank.</p>"), [("word_rank", "Ranks")])
        self.assertEqual(self.linked("<p>TP slices of TP, of tensors</p>"), [("word_tp_slice", "TP slices"), ("word_tp", "TP")])
        self.assertEqual(self.linked("<p>frank ranking rank.rank() rank::x rank(1) co-rank tp</p>"), [])

    def test_headings_links_and_code_are_left_alone(self):
        closed = ("<h1>rank</h1>", '<a href="x">the <b>rank</b></a>', "<pre>rank</pre>", "<summary>rank</summary>", "<!-- rank -->",
                  '<div class="fragment"><div class="line">rank</div></div>', '<svg><text>rank</text></svg>', '<img alt="rank"/>',
                  "<h2>rank</h2>", "<h3>rank</h3>", "<nav>rank</nav>", "<script>rank</script>", "<style>rank</style>", "<figure>rank</figure>",
                  "<noscript>rank</noscript>", '<div class="mw-question"><p>rank</p></div>', '<a href="x">the <div><b>rank</b></div> rank</a>')
        for part in closed:
            self.assertEqual(self.linked(part), [], part)
            self.assertEqual(self.linked(f"{part}<div><p>A rank</p></div>"), [("word_rank", "rank")], part)

    def test_what_is_not_written_as_an_entry_is_refused(self):
        for text, says in (("- **rank**: one.\n- **rank**: two.\n", 'explains "rank" twice'),
                           ("- **rank** one.\n", "every entry has the form"), ("", "every entry has the form"),
                           ("- **a b**: one.\n- **a-b**: two.\n", "same address")):
            with self.assertRaisesRegex(LessonError, says):
                self.glossary(text)

    def test_every_entry_has_a_place_on_its_page(self):
        glossary = self.glossary("- **rank**: a copy.\n- **TP**, **tensors**: a way.\n")
        self.assertEqual(glossary.complete("<li><b>rank</b>: a</li><li><b>TP</b>, <b>tensors</b>: b</li>"),
                         '<li id="word_rank"><b>rank</b>: a</li><li id="word_tp"><b>TP</b>, <b>tensors</b>: b</li>')
        with self.assertRaisesRegex(LessonError, "2 entries, but its page has 1"):
            glossary.complete("<li><b>rank</b>: a</li>")

    def test_the_words_of_the_design_are_explained(self):
        design = (ROOT / "docs/design.md").read_text(encoding="utf-8")
        words = re.findall(r"\*([\w -]+)\*", re.search(r"^## Words\n(.*?)^## ", design, re.MULTILINE | re.DOTALL).group(1))
        self.assertGreater(len(words), 12)
        self.assertEqual([word for word in words if word not in Glossary(ROOT).meaning], [])


if __name__ == "__main__":
    unittest.main()
