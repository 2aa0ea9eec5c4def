"""What makes the shell around Doxygen's text, on stand-ins: the plain program, the predictions, the sidebar, and the pages of the API."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/make"))
import api_members  # noqa: E402
import guesses  # noqa: E402
import plain_program  # noqa: E402
from api_pages import Rooms  # noqa: E402
from lesson_source import LessonError, lessons_in_order  # noqa: E402

SOURCE = """\
Layout plan(const RankInfo& rank) { return plan_layout(rank); }
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
Prediction predict(const RankInfo& rank) {
  return {};
}
std::string plant(int n) { return ""; }
int main(int argc, char** argv) {
  Lesson<Local> lesson(info);""".split("\n")


class PlainProgram(unittest.TestCase):
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
        self.assertEqual(asked("recv over dp, float32   every rank   0 B   0 B   0   ✔", "reduce_scatter over tp, float32 × 100 0 and 3 more  8 B  8 B 1 ✔"),
                         ("How many bytes will rank 0 send in 100 calls of reduce_scatter over tp?", "8"))
        self.assertEqual(asked("nothing   every rank   0 B   0 B   0   ✔")[1], "0")
        self.assertIsNone(asked("all_gather over dp, float32   ranks 1–3   8 B   8 B   1   ✔"))
        self.assertIsNone(asked("all_gather over dp, float32   every rank   8 B   9 B   1   ✘"))  # not what was counted
        self.assertIsNone(asked("TCP, with 416 B of headers   every rank   512 B   512 B   ✔"))


class Api(unittest.TestCase):
    def test_items_end_where_the_next_one_begins(self):
        item = '<a id="a{0}" name="a{0}"></a>\n<h2 class="memtitle">f{0}</h2><div class="memdoc"><p>Does {0}.</p></div>\n'
        page = item.format(1) + item.format(2) + '<h2 class="groupheader">Next</h2>' + item.format(3) + "</div><!-- contents -->"
        self.assertEqual(api_members.items_of(page), {f"a{n}": item.format(n) for n in (1, 2, 3)})

    def test_every_header_has_a_room(self):
        rooms = Rooms(ROOT)
        self.assertEqual(rooms.of("src/optim/steps.hpp"), "src/optim")
        self.assertEqual(rooms.of("lessons/lesson_23_two_hosts/x.hpp"), rooms.of("lessons/lesson_09_full_step/x.hpp"))
        with self.assertRaisesRegex(LessonError, "no line for the room of tools/x.hpp"):
            rooms.of("tools/x.hpp")


if __name__ == "__main__":
    unittest.main()
