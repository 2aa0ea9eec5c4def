#!/usr/bin/env python3
"""Tests of docs/make/lesson_source.py: how a lesson's source is read, and what is refused."""

import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = str(Path(__file__).resolve().parents[2] / "docs/make")
sys.path.insert(0, TOOLS)
from lesson_source import LessonError, read_lesson  # noqa: E402

SOURCE = """\
// # Lesson 42 · A toy: brackets, "quotes"
//
// About it.

#include <cmath>
#define TWO 2
using namespace muonwalk;

// What is held.
struct Local {
  int number = '{';  // one {
  // not prose
  const char* text = "; }";
};
template <class T>
T twice(T x) {
  return 2 * x;
}
constexpr int kThree[] = {1,
                          2};

int main(int argc, char** argv) {
  // In main.
  LessonInfo info;
  info.bugs = {{"first", "is (wrong)"},
               {"second", "is worse"}};

  if (argc > 1) {
    go();
  } else {
    stay();
  }
  lesson.step("start \\"here\\"", start);
  lesson.quiet_step(
      fmt::format("step {}: {:>3} (all)", number, name(2)), again);
  return lesson.finish();
}
"""


class LessonSource(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def lesson(self, text, name="lesson_42_toy"):
        path = self.root / "lessons" / name / f"{name}.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def refusal(self, text):
        with self.assertRaises(LessonError) as refused:
            read_lesson(self.lesson(text))
        return str(refused.exception).replace(str(self.root), "")

    def test_a_lesson(self):
        path = self.lesson(SOURCE)
        lesson = read_lesson(path)
        self.assertEqual((lesson.path, lesson.name, lesson.number, lesson.title),
                         (path, "lesson_42_toy", "42", 'A toy: brackets, "quotes"'))
        self.assertEqual(lesson.lines, SOURCE.split("\n")[:-1])
        self.assertEqual(read_lesson(self.lesson(SOURCE[:-1])).lines, lesson.lines)
        self.assertEqual([(block.kind, block.first_line, len(block.lines), block.name, block.in_main) for block in lesson.blocks], [
            ("prose", 1, 3, "", False), ("include", 5, 1, "", False), ("declaration", 6, 1, "", False), ("using", 7, 1, "", False),
            ("prose", 9, 1, "", False), ("declaration", 10, 5, "Local", False), ("declaration", 15, 4, "twice", False),
            ("declaration", 19, 2, "kThree", False), ("main_open", 22, 1, "", True), ("prose", 23, 1, "", True),
            ("statement", 24, 1, "", True), ("statement", 25, 2, "", True), ("statement", 28, 5, "", True),
            ("statement", 33, 1, "", True), ("statement", 34, 2, "", True), ("statement", 36, 1, "", True),
            ("main_close", 37, 1, "", True)])
        for block in lesson.blocks:
            self.assertEqual(block.lines, lesson.lines[block.first_line - 1:block.first_line - 1 + len(block.lines)])
        self.assertEqual(lesson.blocks[0].prose, '# Lesson 42 · A toy: brackets, "quotes"\n\nAbout it.')
        self.assertEqual(lesson.blocks[9].prose, "In main.")
        self.assertEqual(lesson.blocks[11].text, '  info.bugs = {{"first", "is (wrong)"},\n               {"second", "is worse"}};')
        self.assertEqual(lesson.bugs, ["first", "second"])
        prose, held = lesson.declaration("Local")
        self.assertEqual((prose.first_line, held.first_line), (9, 10))
        self.assertEqual([block and block.name for block in lesson.declaration("twice")], [None, "twice"])
        self.assertIsNone(lesson.declaration("nothing"))

    def test_what_is_no_lesson(self):
        place, title = "/lessons/lesson_42_toy/lesson_42_toy.cpp", "// # Lesson 42 · A toy\n"
        begin = f'{place}:1: a lesson begins with the line "// # Lesson NN · Title"'
        for text in ("", "\n", "// # Lesson 4 · One digit\n", "// Lesson 42 · No mark\n", "\n" + title, "// # Lesson 42 - A dash\n"):
            self.assertEqual(self.refusal(text), begin)
        self.assertEqual(self.refusal(title + "\nint x = 1;\n};\n"), f"{place}:4: '}}' closes nothing; is a bracket missing above it?")
        ends = "what begins here never ends; is a bracket or a semicolon missing?"
        self.assertEqual(self.refusal(title + "\nint x = (1;\n"), f"{place}:3: {ends}")
        self.assertEqual(self.refusal(title + "\nint y;\n\nint x = 1\n"), f"{place}:5: {ends}")
        with self.assertRaises(LessonError) as refused:
            read_lesson(self.root / "none.cpp")
        self.assertEqual(str(refused.exception), f"{self.root}/none.cpp can't be read: No such file or directory")


if __name__ == "__main__":
    unittest.main()
