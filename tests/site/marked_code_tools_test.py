"""Tests of which lines of code the player marks: they follow from the source, whatever stands in which line."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/make"))
from lesson_source import read_lesson  # noqa: E402
from marked_code import MarkedCode, lines_of_phases  # noqa: E402
from player_script import player_script  # noqa: E402

NAMES = {"DP gather": "dp_gather", "apply": "apply", "TP gather": "tp_gather"}


class PhasesOfALoop(unittest.TestCase):
    def lines(self, text, names=None):
        return lines_of_phases(text.strip("\n").split("\n"), names or NAMES)

    def test_a_phase_goes_from_its_call_and_the_comment_above_it_to_an_empty_line(self):
        self.assertEqual(self.lines("""
void f() {
  before();

  // why
  // and how
  begin(phases::dp_gather);
  a();
  b();

  begin(phases::apply, &meta);  // begin(phases::tp_gather)
  c();
  after();
}"""), {"DP gather": [3, 4, 5, 6, 7], "apply": [9, 10, 11]})

    def test_the_end_of_its_block_ends_it(self):
        self.assertEqual(self.lines("""
  if (x) {
    context.begin(phases::dp_gather);
    for (;;) {
      a();
    }
  }
  after();"""), {"DP gather": [1, 2, 3, 4]})

    def test_what_is_in_a_string_or_a_comment_is_no_bracket(self):
        self.assertEqual(self.lines('  begin(phases::apply);\n  a("}");  // }\n  b();'), {"apply": [0, 1, 2]})


class CodeOfTheProject(unittest.TestCase):
    def code_of(self, name, steps):
        lesson = read_lesson(ROOT / "lessons" / name / f"{name}.cpp")
        code = MarkedCode(ROOT, lesson, [f"block {at}" for at in range(99)])
        recorded = {"steps": [{"number": at, "title": title} for at, (title, _) in enumerate(steps, start=1)]}
        functions = {at: function for at, (_, function) in enumerate(steps, start=1)}
        return code, recorded, functions

    def test_elsewhere_the_messages_and_what_is_shown_are_marked(self):
        code, recorded, functions = self.code_of("lesson_04_dp_gather", [("start from my DP shards", "start"),
                                                                         ("DP gather of bucket 0: all_gather over dp", "gather_bucket")])
        first, second = (step["shown"][0] for step in code.of_steps(recorded, functions)["steps"])
        lines = {stretch.functions[-1].name: stretch.lines for stretch in code.stretches if stretch.functions}
        self.assertEqual(first["moves"], [])
        self.assertTrue(all(re.search(r"rank\.(show|say)\(", lines["start"][line]) for line in first["holds"]))
        self.assertEqual([lines["gather_bucket"][line].strip() for line in second["moves"]],
                         ["local.bucket = dp_gather(rank.dp(), local.shards[local.bucket_idx], rank.precision);"])


if __name__ == "__main__":
    unittest.main()
