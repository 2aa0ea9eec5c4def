"""Tests of what takes a lesson apart and makes its page, on small lessons written here."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs/make"))
import doxygen_filter  # noqa: E402
import lesson_graph  # noqa: E402
import lesson_page  # noqa: E402
import lesson_text  # noqa: E402
from api_links import ApiLinks  # noqa: E402
from glossary import Glossary  # noqa: E402
from journey import journey  # noqa: E402
from search_index import LESSON, sections_of  # noqa: E402
from lesson_source import LessonError, lessons_in_order, read_lesson  # noqa: E402

SOURCE = '''// # Lesson 77 · Stand-in
//
// What it is about. With --tp 2 it is about `--tp 2`.
//
// You need to know nothing, or lesson 76: all of it.

#include "sim/classroom/lesson.hpp"

// ## The idea
//
// A drawing:
//
//     a ── b
//
//     c
//
// And [full_step], of lesson 77.
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


class SearchIndex(unittest.TestCase):
    def test_sections_of_a_page_are_its_prose(self):
        contents = ('<p>A <a href="x">buck</a>et &amp; more.</p><div class="fragment">code</div><!-- fragment -->'
                    '<h1><a class="anchor" id="idea"></a>\nThe idea</h1><pre>out</pre><p>Words<svg><text>no</text></svg></p>')
        self.assertEqual(sections_of(LESSON, contents), [("", "", "A bucket & more."), ("idea", "The idea", "Words")])


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

    def test_drawings_stay_as_they_are(self):
        page = "\n".join(self.page())
        self.assertIn("A drawing:\n@verbatim\na ── b\n\nc\n@endverbatim\nAnd", page)

    def test_other_lessons_and_names_of_the_library_are_links_outside_of_code(self):
        page = "\n".join(self.page(SOURCE.replace("all of it", "all of it, [step], not `lesson 76` or `[step]`")))
        self.assertIn('or \\ref lesson_76_before "lesson 76": all of it, \\ref muonwalk::step "step", not `lesson 76` or `[step]`.', page)
        self.assertIn('And \\ref muonwalk::full_step "full_step", of lesson 77.', page)  # not to itself
        with self.assertRaisesRegex(LessonError, "refers to lesson 75, and there is none"):
            self.page(SOURCE.replace("lesson 76", "lesson 75"))

    def test_the_answer_is_not_given_away(self):
        page = "\n".join(self.page())
        self.assertNotIn("it is so", page)
        self.assertIn('const char* const kAnswer = "…";', page)
        self.assertNotIn("return lesson.answer", page)

    def test_end_of_comment_is_refused(self):
        with self.assertRaisesRegex(LessonError, 'cpp:19: "\\*/" would end the page'):
            self.page(SOURCE.replace("a brace in a string", "a */ in a comment"))


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


class Exercises(Lessons):
    def test_the_contract_of_each_is_on_the_page(self):
        lesson = next(each for each in lessons_in_order(ROOT) if each.number == "04")
        page = lesson_page.try_section(lesson)
        self.assertIn('id="lesson_04_dp_gather_try"', page)
        for words in ("<code>./walk try 04</code>", "<code>./walk try 04.2</code>", "view_in_bucket(const Flat&amp; bucket",
                      "where the bucket begins in the buffer", "<code>dist_meta</code>"):
            self.assertIn(words, page)
        self.assertNotIn("//", page)


class Pieces(unittest.TestCase):
    def test_output_is_shown_letter_by_letter(self):
        block = lesson_page.output_block("a <b> & ✔\n  c\n", "What")
        self.assertIn('a &lt;b&gt; &amp; <b class="mw-good">✔</b>\n  c\n</pre>', block)


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
            "plan(rank)": "plan(rank)",                 # the lesson's own function
            '<span class="comment">// tp_slice(x)</span>': '<span class="comment">// tp_slice(x)</span>',
            '<a class="code" href="z">tp_slice</a>(x)': '<a class="code" href="z">tp_slice</a>(x)',
            '<a class="code hl_variable" href="z">tp_slice</a>(x)': link.format("n.html#a1", "tp_slice") + "(x)",  # a constant is not called
            '<a class="code hl_variable" href="z">tp_slice</a>[x]': '<a class="code hl_variable" href="z">tp_slice</a>[x]',
        }.items():
            self.assertEqual(self.links.link(code, {"plan"}), expected)
        for name in self.COMMON:
            self.assertEqual(self.links.link(f"x.{name}()", set()), f"x.{name}()")


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

    def test_the_words_of_the_design_are_explained(self):
        design = (ROOT / "docs/design.md").read_text(encoding="utf-8")
        words = re.findall(r"\*([\w -]+)\*", re.search(r"^## Words\n(.*?)^## ", design, re.MULTILINE | re.DOTALL).group(1))
        self.assertGreater(len(words), 12)
        self.assertEqual([word for word in words if word not in Glossary(ROOT).meaning], [])


if __name__ == "__main__":
    unittest.main()
