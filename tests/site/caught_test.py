"""What is promised to be caught is caught: each mistake is made in a copy, and the check that should notice it is asked.

    caught_test.py ROOT BUILD      BUILD has the programs in bin/ and the site in docs/html
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_site import check_site  # noqa: E402

ROOT, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
LESSON = "lesson_05_tp_gather"
PAGE = f"{LESSON}.html"


# One place of a page is changed: the page, what is found there, what takes its place, and words of what the check then says.
MISTAKES = [
    (PAGE, r'<p class="mw-answer">.*?</p>', "", "should show the answer of the .expected once, but shows []"),
    (PAGE, "how does a rank get back", "how can a rank get back", "should show the question"),
    (PAGE, r'(<pre class="mw-output"[^>]*>[^<]*<b>Lesson 05.*?)96 B', r"\1 97 B", "does not show the .expected"),
    (PAGE, "24 of 48", "23 of 48", "stale_slice"),
    (PAGE, r'href="lesson_04_dp_gather.html"', 'href="lesson_04_db_gather.html"',
     'links to "lesson_04_db_gather.html", but there is no such file'),
    (PAGE, 'href="#lesson_05_tp_gather_the_idea"', 'href="#lesson_05_tp_gather_no_idea"', "has no such place"),
    ("lesson_22_nccl.html", "No GPU has printed what follows", "A GPU has printed what follows",
     "does not say above its output over NCCL that stand-ins printed it"),
    (PAGE, "</body>", f"<!-- {'x' * 300_000} --></body>", "and may have 300,000"),
    (PAGE, ' lang="en"', "", "should say that its language is English"),
    (PAGE, "<code>--", r"<code>\\--", "shows a backslash before an option"),
    ("index.html", "git clone ADDRESS", "git clone &lt;the address&gt;", "says git clone without a word"),
    (PAGE, r'<div class="fragment">.*?</div><!-- fragment -->', r"<ul><li>\g<0></li></ul>", "has code inside of a list"),
    ("lesson_09_full_step.html", r'"before":\["Lesson 09', '"before":["Lesson 90', 'has a line that the lesson does not print: "Lesson 90'),
    (PAGE, r'(<div class="muonwalk-player".*?</div>)', r"<p>before it</p>\1", "should have its player first under The idea"),
    (PAGE, 'data-mw-steps="3"', 'data-mw-steps=""', "should lead its player through the steps [1, 2, 3, 4]"),
    (PAGE, r'("step":3,"shown":)\[\{.*?\}\]', r"\1[]", "lacks the code of a step"),
    (PAGE, r'("step":2,"shown":\[\{"source":1,"moves":)\[[^]]*\]', r"\1[99]", "marks a line of code that is not there"),
    (PAGE, '<details class="mw-hint">', '<details class="mw-hint" open>', "open from the start"),
    (PAGE, r'<details class="mw-hint">.*?</details>', "", "should have 3 hints"),
    ("lesson_00_hello_ranks.html", '<details class="mw-reply">', '<details class="mw-reply" open>',
     "an answer that is open from the start"),
    ("lesson_00_hello_ranks.html", r'<details class="mw-hint">', 'Answer: see below. <details class="mw-hint">', "not folded away"),
    (PAGE, 'rel="next" href="lesson_06_newton_schulz.html"', 'rel="next" href="lesson_07_tp_shard.html"',
     "its link next should lead to lesson_06_newton_schulz"),
    ("index.html", r"w\(i, j\) \* keep", "w(i, j)", "should show muon_step as"),
    ("index.html", 'class="mw-whole"', 'class="mw-any-shard"', "should mark the line that needs the whole matrix"),
    ("index.html", r'<tr><td><a href="lesson_07_tp_shard.html">.*?</tr>', "", "what lessons 04 to 08 are in PyTorch"),
    ("md_docs_glossary.html", 'id="word_rank"', 'id="word_ranks"', 'links to "md_docs_glossary.html#word_rank", but'),
    ("index.html", r"4,757,912 B", "4,757,913 B", "should say what lesson_09_full_step has printed"),
    ("index.html", r'<li data-progress="[^"]*"><a href="lesson_05_tp_gather.html"><span class="mw-number">05</span><span.*?</li>', "",
     "should list all lessons")]
# Where one of these is made, others can't be told.
COARSE_MISTAKES = [
    (PAGE, r"<h2>(.*?)</h2>", r"<h1>\1</h1>", "should have one first heading"),
    (PAGE, '"format":"muonwalk-recording"', '"format:"muonwalk-recording"', "no readable data recording-05")]


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def lesson_copy(self):
        return Path(shutil.copytree(ROOT / "lessons" / LESSON, self.folder / "lessons" / LESSON))

    @staticmethod
    def edit(path, pattern, replacement):
        """Exactly one place changes, so that a test can't pass by changing nothing."""
        text, found = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), count=1, flags=re.DOTALL)
        if found != 1:
            raise AssertionError(f"{path} has nothing like {pattern}")
        path.write_text(text, encoding="utf-8")


class BeforeAPageIsMade(Folder):
    """A lesson that the tests have not checked never gets a page."""

    def material(self, lesson):
        return subprocess.run([sys.executable, ROOT / "docs/make/make_material.py", BUILD / "bin" / LESSON, lesson,
                               self.folder / "material"], capture_output=True, text=True)

    def test_untouched(self):
        run = self.material(self.lesson_copy())
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_wrong_number_in_expected(self):
        lesson = self.lesson_copy()
        self.edit(lesson / f"{LESSON}.expected", "96 B", "97 B")
        run = self.material(lesson)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"{LESSON} prints something other than its {LESSON}.expected", run.stderr)
        self.assertIn("97 B", run.stderr)

    def test_no_expected(self):
        lesson = self.lesson_copy()
        (lesson / f"{LESSON}.expected").unlink()
        run = self.material(lesson)
        self.assertEqual(run.returncode, 1)
        self.assertIn("BLESS=1", run.stderr)


class WhileDoxygenRuns(Folder):
    """Doxygen, on one lesson and the headers that it needs, stops at what it can't resolve, and names the right line."""

    def doxygen(self, lesson):
        settings = (BUILD / "Doxyfile").read_text(encoding="utf-8")
        settings += f'''
OUTPUT_DIRECTORY = "{self.folder}"
GENERATE_TAGFILE =
INPUT = "{lesson}" "{ROOT}/lessons/lesson_02_collectives" "{ROOT}/lessons/lesson_04_dp_gather" \\
        "{ROOT}/lessons/lesson_01_grid" "{ROOT}/lessons/lesson_00_hello_ranks" "{ROOT}/lessons/lesson_03_virtual_buffer" \\
        "{ROOT}/lessons/lesson_08_dp_shard" "{ROOT}/lessons/lesson_07_tp_shard" "{ROOT}/lessons/lesson_06_newton_schulz" \\
        "{ROOT}/src" "{ROOT}/docs/namespaces.dox"
EXCLUDE_PATTERNS = */try_* */tests/*
USE_MDFILE_AS_MAINPAGE =
LAYOUT_FILE =
'''
        return subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True)

    def test_untouched(self):
        run = self.doxygen(self.lesson_copy())
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_broken_reference(self):
        lesson = self.lesson_copy()
        self.edit(lesson / f"{LESSON}.cpp", r"You need to know", "You need to know [no_such_name],")
        run = self.doxygen(lesson)
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stderr, rf"{LESSON}.cpp:7: .*unable to resolve reference to 'muonwalk::no_such_name'")


class WhenTheSiteIsThere(Folder):
    API = ("search", "*_8hpp*", "*_8dox*", "class*", "struct*", "namespace*", "function_*", "api.html")

    @classmethod
    def setUpClass(cls):
        # What the copy lacks, most of the API, is not a mistake that a test here makes.
        with tempfile.TemporaryDirectory() as folder:
            cls.before = set(check_site(ROOT, cls.copy_to(folder)))

    @classmethod
    def copy_to(cls, folder):
        return Path(shutil.copytree(BUILD / "docs/html", Path(folder) / "html", ignore=shutil.ignore_patterns(*cls.API)))

    def setUp(self):
        super().setUp()
        self.site = self.copy_to(self.folder)

    def problems(self):
        return sorted(set(check_site(ROOT, self.site)) - self.before)

    def assert_caught(self, words):
        problems = self.problems()
        self.assertTrue(any(words in problem for problem in problems), problems)

    def test_untouched(self):
        self.assertEqual(self.problems(), [])

    def test_pages_that_say_something_else(self):
        for mistakes in (MISTAKES, COARSE_MISTAKES):
            with tempfile.TemporaryDirectory() as folder:
                self.site = self.copy_to(folder)
                for name, before, after, _ in mistakes:
                    self.edit(self.site / name, before, after)
                problems = self.problems()
            for *_, words in mistakes:
                with self.subTest(words=words):
                    self.assertTrue(any(words in problem for problem in problems), problems)

    def test_a_file_that_is_not_there(self):
        for name, words in (("player.js", 'loads "player.js"'), (PAGE, "has no page")):
            (self.site / name).unlink()
            self.assert_caught(words)

    def test_network(self):
        self.edit(self.site / PAGE, "</body>", '<script src="https://example.org/x.js"></script></body>')
        self.assert_caught("from a network")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
