"""What makes the shell around Doxygen's text, on stand-ins: the plain program, the predictions, the sidebar, and the pages of the API."""

import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/site"))
sys.path.insert(0, str(ROOT / "tools"))
import api_members  # noqa: E402
import function_source  # noqa: E402
import guesses  # noqa: E402
import highlight  # noqa: E402
import plain_program  # noqa: E402
import sidebar  # noqa: E402
from api_pages import Rooms  # noqa: E402
from lesson_source import LessonError, lessons_in_order  # noqa: E402

SOURCE = """\
Layout plan(const Seat& seat) { return plan_layout(seat); }
Layout plan_of(int n) {
  return {};
}
struct Local {
  Flat bucket;
  Flat kept;  // only with the planted bug kept_buckets
};
void start(Rank& rank, Local& local) {
  if (rank.bug("a")) local.bucket = {};
  if (rank.bug("b")) {
    local.kept = {};
    if (x) { y(); }
  }
  if (rank.bug("c")) one();
  else two();
  if (rank.bug("d")) {
    three();
  } else {
    four();
  }
  if (rank.bug("e") && far)
    local.bucket = join(local.bucket,
                        local.kept);
  const int n = rank.bug("f") ? 1 : 2;
  local.bucket = planted(local);
}
Prediction predict(const Seat& seat) {
  return {};
}
std::string plant(int n) { return ""; }
int main(int argc, char** argv) {
  Lesson<Local> lesson(info);""".split("\n")
REST = ["  lesson.step(start);", "}", "int after() { return 1; }"]


class PlainProgram(unittest.TestCase):
    def test_what_is_there_for_the_lesson_alone(self):
        first, second = plain_program.kinds([SOURCE, REST])
        marked = dict(zip(SOURCE, first))
        wanted = {"planted bug": [6, 9, 10, 11, 12, 13, 21, 22, 23], "plan": [0], "plan_of": [1, 2, 3], "predict": [27, 28, 29], "main": [31, 32]}
        for kind, lines in wanted.items():
            self.assertEqual([at for at, mark in enumerate(first) if mark == kind], lines, kind)
        self.assertEqual(marked['std::string plant(int n) { return ""; }'], "")
        self.assertEqual(second, ["main", "main", ""])

    def test_each_piece_stands_behind_a_button_and_no_line_is_lost(self):
        lines = "".join(f'<div class="line">{line}</div>\n' for line in SOURCE)
        page = f'<p>x</p><div class="fragment">{lines}</div><!-- fragment --><p>y</p>'
        made = plain_program.marked(page)
        self.assertEqual(re.findall('<div class="line">.*?</div>\n', made), re.findall('<div class="line">.*?</div>\n', page))
        self.assertIn('aria-expanded="false">⋯ planted bug, 5 lines</button><div class="mw-machinery"><div class="line">  if (rank.bug("a"))', made)
        self.assertIn("⋯ plan, 1 line</button>", made)
        self.assertEqual(made.count("<div"), made.count("</div>"))

    def test_every_lesson_folds_its_main_and_keeps_its_steps(self):
        for lesson in lessons_in_order(ROOT):
            kinds, = plain_program.kinds([lesson.path.read_text(encoding="utf-8").rstrip("\n").split("\n")])
            source = dict(zip(lesson.lines, kinds))
            self.assertEqual(source["int main(int argc, char** argv) {"], "main", lesson.name)
            self.assertEqual(kinds[-1], "main", lesson.name)
            for step in lesson.steps:
                begins = [kind for line, kind in zip(lesson.lines, kinds) if line.startswith(f"void {step.function}(")]
                self.assertIn(begins, ([""], []), f"{lesson.name}: {step.function}")


class Guesses(unittest.TestCase):
    TABLE = "cost    sent by a rank                                           predicted      counted messages\n{}\n"

    def test_the_first_row_of_rank_0_is_asked_for(self):
        def asked(*rows):
            return guesses.bytes_asked(self.TABLE.format("\n".join(" " * 8 + row for row in rows)))

        self.assertEqual(asked("all_gather over dp, float32 × 2       every rank           1,096 B      1,096 B        2   ✔"),
                         ("How many bytes will rank 0 send in 2 calls of all_gather over dp?", "1096"))
        self.assertEqual(asked("send over pp, float32   rank 1   4 B   4 B   1   ✔", "send over dp, float32   ranks 0, 3   8 B   8 B   1   ✔"),
                         ("How many bytes will rank 0 send in one call of send over dp?", "8"))
        self.assertEqual(asked("recv over dp, float32   every rank   0 B   0 B   0   ✔", "reduce_scatter over tp, float32 × 100 4 ranks: 0…  8 B  8 B 1 ✔"),
                         ("How many bytes will rank 0 send in 100 calls of reduce_scatter over tp?", "8"))
        self.assertEqual(asked("nothing   every rank   0 B   0 B   0   ✔")[1], "0")
        self.assertIsNone(asked("all_gather over dp, float32   ranks 1–3   8 B   8 B   1   ✔"))
        self.assertIsNone(asked("all_gather over dp, float32   every rank   8 B   9 B   1   ✘"))  # not what was counted
        self.assertIsNone(asked("kernel, with 416 B of headers   every rank   512 B   512 B   ✔"))

    def test_what_is_printed_stands_behind_the_question(self):
        lesson = SimpleNamespace(name="lesson_77")
        made = guesses.before_output(lesson, self.TABLE.format("        nothing   every rank   0 B   0 B   0   ✔"), "<pre>out</pre>")
        self.assertRegex(made, r'data-guess="bytes" data-is="0".*<details class="mw-reveal" id="lesson_77_reveal_output"><summary>.*</summary>\n<pre>out')
        self.assertNotIn("data-guess", guesses.before_output(lesson, "no table", "<pre>out</pre>"))
        self.assertIn("is a &lt; b?", guesses.before_answer(lesson, "is a < b?", "<p>yes</p>"))


class Sidebar(unittest.TestCase):
    def test_sections_stand_below_the_page_that_is_open(self):
        lessons = [SimpleNamespace(name=f"lesson_0{n}_x", number=f"0{n}", title=f"X & {n}") for n in (0, 1)]
        page = '<h2><a class="anchor" id="idea"></a>\nThe <code>idea</code></h2>'
        made = sidebar.navigation(lessons, "lesson_01_x.html", page)
        self.assertEqual(re.findall(r'href="(lesson_\w+\.html)"', made), ["lesson_00_x.html", "lesson_01_x.html"])
        self.assertRegex(made, r'href="lesson_01_x.html" aria-current="page">.*</a><ol class="mw-sections"><li><a href="#idea">The idea</a></li></ol></li>')
        self.assertEqual(made.count("mw-sections"), 1)
        self.assertIn("X &amp; 0", made)
        self.assertEqual(made.count('href="api.html"'), 1)


class Functions(unittest.TestCase):
    HEADER = "/// Says.\nint gather(int n);\ninline int half(int n) { return n / 2; }\nint other(\n    int n);\n"
    SOURCE = ('int not_gather(int n) {\n  return gather(n);\n}\n\n// Why it\n// does.\nint gather(int n) {\n  return f("}");\n}\n\n'
              'Matrix\ngather_not(int n) {\n}\n\nint gather(const char* name,\n           int n) {\n  return 2;\n}\n')

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        (self.root / "src").mkdir()
        (self.root / "src/a.hpp").write_text(self.HEADER, encoding="utf-8")
        (self.root / "src/a.cpp").write_text(self.SOURCE, encoding="utf-8")
        (self.root / "src/b.cpp").write_text("int other(int n) {\n  return n;\n}\n", encoding="utf-8")

    def test_all_definitions_with_the_comment_above_and_no_declaration(self):
        found = function_source.definitions(self.root, "src/a.hpp", "gather")
        self.assertEqual([(file, body[0], body[-1]) for file, body in found],
                         [("src/a.cpp", "// Why it", "}"), ("src/a.cpp", "int gather(const char* name,", "}")])
        self.assertEqual(len(found[0][1]), 5)

    def test_in_the_header_or_in_another_file_of_the_room(self):
        self.assertEqual(function_source.definitions(self.root, "src/a.hpp", "half"), [("src/a.hpp", ["inline int half(int n) { return n / 2; }"])])
        self.assertEqual(function_source.definitions(self.root, "src/a.hpp", "other")[0][0], "src/b.cpp")
        self.assertEqual(function_source.definitions(self.root, "src/a.hpp", "missing"), [])

    def test_code_keeps_every_letter(self):
        line = 'if (a < b && c) return "x\\"y";  // for > all'
        made = highlight.highlighted([line, ""])
        self.assertEqual(re.sub("<[^>]*>", "", made).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"), f"{line}\n \n")
        self.assertIn('<span class="keywordflow">return</span> <span class="stringliteral">"x\\"y"</span>;  <span class="comment">// for', made)


class Api(unittest.TestCase):
    def test_items_end_where_the_next_one_begins(self):
        item = '<a id="a{0}" name="a{0}"></a>\n<h2 class="memtitle">f{0}</h2><div class="memdoc"><p>Does {0}.</p></div>\n'
        page = item.format(1) + item.format(2) + '<h2 class="groupheader">Next</h2>' + item.format(3) + "</div><!-- contents -->"
        self.assertEqual(api_members.items_of(page), {f"a{n}": item.format(n) for n in (1, 2, 3)})

    def test_one_sentence_without_links(self):
        self.assertEqual(api_members.first_sentence('Takes <a href="x">a</a>. And more.'), "Takes a.")
        for markup, sentence in {"": "", "Is it? Yes.": "Is it?", "Go! Now.": "Go!", "1.5 of it\nis more. Yes.": "1.5 of it\nis more.",
                                 " Takes two: ": "Takes two", "<abbr>a</abbr> b": "<abbr>a</abbr> b"}.items():
            self.assertEqual(api_members.first_sentence(markup), sentence)

    def test_every_header_has_a_room(self):
        rooms = Rooms(ROOT)
        self.assertEqual(rooms.of("src/optim/steps.hpp"), "src/optim")
        self.assertEqual(rooms.of("sim/lesson_23/x.hpp"), rooms.of("sim/lesson_09/x.hpp"))
        with self.assertRaisesRegex(LessonError, "no line for the room of tools/x.hpp"):
            rooms.of("tools/x.hpp")


if __name__ == "__main__":
    unittest.main()
