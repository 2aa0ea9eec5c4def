"""Tests of which lines of code the player marks: they follow from the source, whatever stands in which line."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/site")]
import lesson_page  # noqa: E402
from highlight import highlighted  # noqa: E402
from lesson_source import LessonError, read_lesson  # noqa: E402
from marked_code import LIBRARY, MarkedCode, lines_of_phases, phase_names  # noqa: E402
from player_script import player_script  # noqa: E402

NAMES = {"DP gather": "dp_gather", "apply": "apply", "TP gather": "tp_gather"}
PHASES = ["reduce-scatter of gradients", "momentum", "DP gather", "TP gather", "Newton–Schulz", "TP shard", "DP shard", "apply",
          "all-gather of weights"]


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

    def test_calls_of_the_function_that_is_named_as_the_phase_belong_to_it(self):
        self.assertEqual(self.lines("""
Work begins() { return {phases::tp_gather, 0}; }
  context.begin(way.begins(meta).phase, &meta);
  a();

Matrix g() {
  matrix = tp_gather(tp, matrix);
  other(tp_gather_all);
  dp_gather(x);
}"""), {"TP gather": [1, 2, 5]})

    def test_a_phase_that_a_rank_names_itself(self):
        self.assertEqual(self.lines('  rank.phase("gradients");\n  a();\n\n  b();'), {"gradients": [0, 1]})

    def test_what_is_in_a_string_or_a_comment_is_no_bracket(self):
        self.assertEqual(self.lines('  begin(phases::apply);\n  a("}");  // }\n  b();'), {"apply": [0, 1, 2]})


class CodeOfTheProject(unittest.TestCase):
    def code_of(self, name, steps):
        lesson = read_lesson(ROOT / "lessons" / name / f"{name}.cpp")
        code = MarkedCode(ROOT, lesson, [f"block {at}" for at in range(99)])
        recorded = {"steps": [{"number": at, "title": title} for at, (title, _) in enumerate(steps, start=1)]}
        functions = {at: function for at, (_, function) in enumerate(steps, start=1)}
        return code, recorded, functions

    def phases_of_lesson_09(self):
        return self.code_of("lesson_09_full_step", [(f"optimizer step 1: {phase}", "optimizer_step") for phase in PHASES])

    def test_the_nine_phases_of_lesson_09_have_nine_places_in_its_loop_and_in_the_librarys(self):
        code, recorded, functions = self.phases_of_lesson_09()
        made = code.of_steps(recorded, functions)
        self.assertEqual([source["name"] for source in made["sources"]], ["full_step in this lesson", LIBRARY])
        lesson = next(stretch for stretch in code.stretches if stretch.functions and stretch.functions[-1].name == "full_step").lines
        library = (ROOT / LIBRARY).read_text(encoding="utf-8").split("\n")
        names, seen = phase_names(ROOT), set()
        for phase, step in zip(PHASES, made["steps"]):
            own, of_library = step["shown"]
            self.assertEqual((own["source"], of_library["source"]), (0, 1))
            self.assertIn(f"begin(phases::{names[phase]}", "\n".join(lesson[line] for line in own["moves"]))
            self.assertRegex("\n".join(library[line] for line in of_library["moves"]), rf"\b(all_)?{names[phase]}\b")
            self.assertEqual((own["moves"], of_library["moves"]), (own["holds"], of_library["holds"]))
            for source, lines in ((0, own["moves"]), (1, of_library["moves"])):
                self.assertFalse(seen & {(source, line) for line in lines}, f"{phase} shares a line with another phase")
                seen |= {(source, line) for line in lines}

    def test_the_text_of_the_loop_leads_from_phase_to_phase(self):
        code, recorded, functions = self.phases_of_lesson_09()
        at = next(at for at, stretch in enumerate(code.stretches) if stretch.functions and stretch.functions[-1].name == "full_step")
        numbers, lines = code.steps_in(at, recorded, functions)
        self.assertEqual(numbers, list(range(1, 10)))
        self.assertEqual([steps for _, steps in sorted(lines.items())], [[number] for number in range(1, 10)])

    def test_elsewhere_the_messages_and_what_is_shown_are_marked(self):
        code, recorded, functions = self.code_of("lesson_04_dp_gather", [("start from my DP shards", "start"),
                                                                         ("DP gather of bucket 0: all_gather over dp", "gather_bucket")])
        first, second = (step["shown"][0] for step in code.of_steps(recorded, functions)["steps"])
        lines = {stretch.functions[-1].name: stretch.lines for stretch in code.stretches if stretch.functions}
        self.assertEqual(first["moves"], [])
        self.assertTrue(all(re.search(r"rank\.(show|say)\(", lines["start"][line]) for line in first["holds"]))
        self.assertEqual([lines["gather_bucket"][line].strip() for line in second["moves"]],
                         ["local.bucket = dp_gather(rank.dp(), local.shards[local.bucket_idx], rank.precision);"])

    def test_a_step_of_a_function_that_is_not_there(self):
        code, recorded, functions = self.code_of("lesson_04_dp_gather", [("start", "no_such_function")])
        with self.assertRaisesRegex(LessonError, "no block of code declares no_such_function"):
            code.of_steps(recorded, functions)

    def test_a_line_of_the_library_is_a_line_of_the_player(self):
        text = (ROOT / LIBRARY).read_text(encoding="utf-8")
        shown = highlighted(text.rstrip("\n").split("\n"))
        self.assertEqual(shown.count('<div class="line">'), text.count("\n"))
        self.assertIn('<span class="comment">// Every DP rank saw other data.', shown)
        self.assertIn("std::vector&lt;Index&gt;", shown)

    def test_marks_stand_in_the_lines_with_which_a_phase_begins(self):
        self.assertEqual(lesson_page._with_marks('<div class="line">a</div><div class="line">b</div>', {1: [3, 4]}),
                         '<div class="line">a</div><div class="line" data-mw-steps="3 4">b</div>')


class ScriptOfThePlayer(unittest.TestCase):
    def test_a_part_that_is_missing_or_not_listed(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in (ROOT / "docs/player").glob("*.js"):
                (Path(folder) / part.name).write_text(f"// {part.stem}\n", encoding="utf-8")
            self.assertIn("// words\n// recording\n", player_script(folder))
            (Path(folder) / "forgotten.js").write_text("", encoding="utf-8")
            with self.assertRaisesRegex(LessonError, "forgotten"):
                player_script(folder)


if __name__ == "__main__":
    unittest.main()
