#!/usr/bin/env python3
"""Tests of tools/lesson_source.py, which is in the first argument's folder: how a lesson's source is read, and what is refused."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, TOOLS)
from lesson_source import LessonError, lessons_in_order, read_lesson, test_arguments, toy_arguments  # noqa: E402

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

    def test_steps(self):
        plain, made = read_lesson(self.lesson(SOURCE)).steps
        self.assertEqual((plain.title, plain.function), ('start \\"here\\"', "start"))
        self.assertTrue(plain.covers('start \\"here\\"'))
        self.assertFalse(plain.covers("start"))
        self.assertEqual((made.title, made.function), (None, "again"))
        for title, covered in (("step 1: two (all)", True), ("step : (all)", False), ("step 1:  (all)", True), ("step 1: two all", False),
                               ("a step 1: two (all)", False)):
            self.assertEqual(made.covers(title), covered, title)
        self.assertEqual(read_lesson(self.lesson("// # Lesson 42 · None\nint x;\n")).steps, [])

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

    def test_lists_of_lessons(self):
        for name in ("lesson_07_x", "lesson_03_y", "lesson_05_z"):
            self.lesson(f"// # Lesson {name[7:9]} · Title of {name}\nint x;\n", name)
        (self.root / "lessons" / "CMakeLists.txt").write_text(
            "# add_lesson(lesson_99_no)\nadd_lesson(lesson_07_x)\n"
            "add_lesson(lesson_03_y LIBRARIES a b TOY --toy --dp 4 TEST_ARGUMENTS --small --steps 3)\n"
            "add_lesson(lesson_05_z TEST_ARGUMENTS --few)\nadd_exercise(lesson_05_z some)\n", encoding="utf-8")
        self.assertEqual([(lesson.name, lesson.title) for lesson in lessons_in_order(self.root)],
                         [(name, f"Title of {name}") for name in ("lesson_07_x", "lesson_03_y", "lesson_05_z")])
        names = ("lesson_07_x", "lesson_03_y", "lesson_05_z", "lesson_11_none")
        self.assertEqual([test_arguments(self.root, name) for name in names], ["", "--small --steps 3", "--few", ""])
        self.assertEqual([toy_arguments(self.root, name) for name in names], [[], ["--toy", "--dp", "4"], [], []])


if __name__ == "__main__":
    unittest.main()
