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
        return subprocess.run([sys.executable, ROOT / "tools/site/make_material.py", BUILD / "bin" / LESSON, lesson,
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

    def test_answer_removed_from_expected(self):
        lesson = self.lesson_copy()
        self.edit(lesson / f"{LESSON}.expected", r"Answer: [^\n]*\n(  [^\n]*\n)+", "")
        self.assertIn("prints something other than", self.material(lesson).stderr)

    def test_no_expected(self):
        lesson = self.lesson_copy()
        (lesson / f"{LESSON}.expected").unlink()
        run = self.material(lesson)
        self.assertEqual(run.returncode, 1)
        self.assertIn("BLESS=1", run.stderr)


class WhileDoxygenRuns(Folder):
    """Doxygen, on one lesson and the headers that it needs, stops at what it can't resolve, and names the right line."""

    def doxygen(self, lesson, headers=ROOT / "src"):
        settings = (BUILD / "Doxyfile").read_text(encoding="utf-8")
        settings += f'''
OUTPUT_DIRECTORY = "{self.folder}"
GENERATE_TAGFILE =
INPUT = "{lesson}" "{ROOT}/lessons/lesson_02_collectives" "{ROOT}/lessons/lesson_04_dp_gather" \\
        "{ROOT}/lessons/lesson_01_grid" "{ROOT}/lessons/lesson_00_hello_ranks" "{ROOT}/lessons/lesson_03_virtual_buffer" \\
        "{ROOT}/lessons/lesson_08_dp_shard" "{ROOT}/lessons/lesson_07_tp_shard" "{ROOT}/lessons/lesson_06_newton_schulz" \\
        "{headers}" "{ROOT}/docs/namespaces.dox"
EXCLUDE_PATTERNS = */try_*
USE_MDFILE_AS_MAINPAGE =
LAYOUT_FILE =
'''
        return subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True)

    def test_untouched(self):
        run = self.doxygen(self.lesson_copy())
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_broken_reference(self):
        lesson = self.lesson_copy()
        self.edit(lesson / f"{LESSON}.cpp", r"\\ref lesson_02_collectives", r"\\ref lesson_02_colectives")
        run = self.doxygen(lesson)
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stderr, rf"{LESSON}.cpp:7: .*unable to resolve reference to 'lesson_02_colectives'")

    def without_comment(self, header, pattern):
        """What Doxygen says of the headers when one of them lacks a comment; they are not looked at elsewhere."""
        headers = Path(shutil.copytree(ROOT / "src", self.folder / "src"))
        self.edit(headers / header, pattern, "")
        run = self.doxygen(self.lesson_copy(), headers)
        self.assertNotEqual(run.returncode, 0)
        return run.stderr

    def test_member_function_without_comment(self):
        said = self.without_comment("layout/grid.hpp", r"  /// The rank at the coordinates\.\n")
        self.assertRegex(said, r"grid.hpp:\d+: .*rank\(int dp, int tp, int pp=0\) const .*is not documented")

    def test_function_without_comment(self):
        said = self.without_comment("layout/slicing.hpp", r"(///[^\n]*\n)+(?=Matrix )")
        self.assertRegex(said, r"slicing.hpp:\d+: .*\(function\) of namespace muonwalk is not documented")

    def test_class_without_comment(self):
        said = self.without_comment("layout/grid.hpp", r"(///[^\n]*\n)+(?=class Grid )")
        self.assertRegex(said, r"grid.hpp:\d+: .*Grid is not documented")

    def test_field_without_comment(self):
        said = self.without_comment("layout/buffer.hpp", r"  ///< the number of the parameter group")
        self.assertRegex(said, r"buffer.hpp:\d+: .*group \(variable\) of struct muonwalk::Buffer is not documented")


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
        self.page = self.site / f"{LESSON}.html"

    def problems(self):
        return sorted(set(check_site(ROOT, self.site)) - self.before)

    def assert_caught(self, words):
        problems = self.problems()
        self.assertTrue(any(words in problem for problem in problems), problems)

    def test_untouched(self):
        self.assertEqual(self.problems(), [])

    def test_answer_removed_from_page(self):
        self.edit(self.page, r'<p class="mw-answer">.*?</p>', "")
        self.assert_caught("should show the answer of the .expected once, but shows []")

    def test_question_changed(self):
        self.edit(self.page, "how does a rank get back", "how can a rank get back")
        self.assert_caught("should show the question")

    def test_wrong_number_in_output(self):
        self.edit(self.page, r'(<pre class="mw-output"[^>]*>[^<]*<b>Lesson 05.*?)96 B', r"\1 97 B")
        self.assert_caught("does not show the .expected")

    def test_wrong_number_in_bug(self):
        self.edit(self.page, "24 of 48", "23 of 48")
        self.assert_caught("stale_slice")

    def test_dead_link(self):
        self.edit(self.page, r'href="lesson_04_dp_gather.html"', 'href="lesson_04_db_gather.html"')
        self.assert_caught('links to "lesson_04_db_gather.html", but there is no such file')

    def test_dead_anchor(self):
        self.edit(self.page, 'href="#lesson_05_tp_gather_the_idea"', 'href="#lesson_05_tp_gather_no_idea"')
        self.assert_caught("has no such place")

    def test_missing_picture(self):
        (self.site / "material" / LESSON / "step_2.svg").unlink()
        self.assert_caught(f'loads "material/{LESSON}/step_2.svg", which does not exist')

    def test_picture_not_shown(self):
        self.edit(self.page, r'<figure class="mw-picture mw-of-step"><a href="[^"]*step_3.svg.*?</figure>', "")
        self.assert_caught("shows step_3.svg 0 times")

    def test_page_that_is_too_heavy(self):
        self.edit(self.page, "</body>", f"<!-- {'x' * 300_000} --></body>")
        self.assert_caught("and may have 300,000")

    def test_page_without_its_language(self):
        self.edit(self.page, ' lang="en"', "")
        self.assert_caught("should say that its language is English")

    def test_second_first_heading(self):
        self.edit(self.page, r"<h2>(.*?)</h2>", r"<h1>\1</h1>")
        self.assert_caught("should have one first heading")

    def test_skip_link_that_leads_nowhere(self):
        self.edit(self.page, '<main id="doc-content" tabindex="-1">', '<main id="doc-content">')
        self.assert_caught("should begin with a link that skips the navigation")

    def test_pictures_in_another_order(self):
        figure = r'(<figure class="mw-picture mw-of-step"><a href="[^"]*step_{}.svg.*?</figure>)'
        page = self.page.read_text(encoding="utf-8")
        second, third = (re.search(figure.format(step), page, re.DOTALL).group(1) for step in (2, 3))
        self.edit(self.page, re.escape(third), "")
        self.edit(self.page, f"(?={re.escape(second)})", third.replace("\\", "\\\\"))
        self.assert_caught("shows the pictures of its steps in the order [1, 3, 2")

    def test_backslash_before_an_option(self):
        self.edit(self.page, "<code>--", r"<code>\\--")
        self.assert_caught("shows a backslash before an option")

    def test_address_that_cannot_be_typed(self):
        self.edit(self.site / "index.html", "git clone ADDRESS", "git clone &lt;the address&gt;")
        self.assert_caught("says git clone without a word")

    def test_punctuation_in_an_address(self):
        self.edit(self.page, "</body>", '<a href="https://example.org/x:">x</a></body>')
        self.assert_caught("with the punctuation of the sentence in the address")

    def test_picture_of_nothing(self):
        self.edit(self.site / "material" / LESSON / "step_3.svg", r"<desc>.*?</desc>", "<desc>Step 3; nothing travels.</desc>")
        self.assert_caught("shows step_3.svg, on which there is nothing to see")

    def test_code_in_a_list(self):
        self.edit(self.page, r'<div class="fragment">.*?</div><!-- fragment -->', r"<ul><li>\g<0></li></ul>")
        self.assert_caught("has code inside of a list")

    def test_line_that_no_run_prints(self):
        self.edit(self.site / "lesson_09_full_step.html", r'"before":\["Lesson 09', '"before":["Lesson 90')
        self.assert_caught('has a line that the lesson does not print: "Lesson 90')

    def test_player_in_another_place(self):
        self.edit(self.page, r'(<div class="muonwalk-player".*?</div>)', r"<p>before it</p>\1")
        self.assert_caught("should have its player first under The idea")

    def test_step_whose_text_leads_the_player_nowhere(self):
        self.edit(self.page, 'data-mw-steps="3"', 'data-mw-steps=""')
        self.assert_caught("should lead its player through the steps [1, 2, 3, 4]")

    def test_player_that_is_never_let_go(self):
        self.edit(self.page, r'(.*)data-mw-steps=""', r'\1data-mw-steps="4"')  # the last one
        self.assert_caught("and out of them")

    def test_step_without_code(self):
        self.edit(self.page, r'("step":3,"shown":)\[\{.*?\}\]', r"\1[]")
        self.assert_caught("lacks the code of a step")

    def test_marked_line_that_is_not_there(self):
        self.edit(self.page, r'("step":2,"shown":\[\{"source":1,"moves":)\[[^]]*\]', r"\1[99]")
        self.assert_caught("marks a line of code that is not there")

    def test_missing_script(self):
        (self.site / "player.js").unlink()
        self.assert_caught('loads "player.js"')

    def test_network(self):
        self.edit(self.page, "</body>", '<script src="https://example.org/x.js"></script></body>')
        self.assert_caught("from a network")
        with open(self.site / "player.css", "a", encoding="utf-8") as sheet:
            sheet.write("@import '//example.org/font.css';")
        self.assert_caught("player.css: loads")

    def test_open_hint(self):
        self.edit(self.page, '<details class="mw-hint">', '<details class="mw-hint" open>')
        self.assert_caught("open from the start")

    def test_missing_hint(self):
        self.edit(self.page, r'<details class="mw-hint">.*?</details>', "")
        self.assert_caught("should have 3 hints")

    def test_open_answer(self):
        self.edit(self.site / "lesson_00_hello_ranks.html", '<details class="mw-reply">', '<details class="mw-reply" open>')
        self.assert_caught("an answer that is open from the start")

    def test_missing_answer_to_an_exercise(self):
        self.edit(self.site / "lesson_00_hello_ranks.html", r'<details class="mw-reply">.*?</details>', "")
        self.assert_caught("should have 3 answers")

    def test_answer_that_is_not_folded_away(self):
        self.edit(self.site / "lesson_00_hello_ranks.html", r'<details class="mw-hint">', 'Answer: see below. <details class="mw-hint">')
        self.assert_caught("not folded away")

    def test_damaged_recording(self):
        self.edit(self.page, '"format":"muonwalk-recording"', '"format:"muonwalk-recording"')
        self.assert_caught("no readable data recording-05")

    def test_missing_page(self):
        self.page.unlink()
        self.assert_caught(f"{LESSON}: has no page")

    def test_wrong_neighbour(self):
        self.edit(self.page, 'rel="next" href="lesson_06_newton_schulz.html"', 'rel="next" href="lesson_07_tp_shard.html"')
        self.assert_caught("its link next should lead to lesson_06_newton_schulz")

    def test_serial_muon_that_is_not_the_source(self):
        self.edit(self.site / "index.html", r"w\(i, j\) \* keep", "w(i, j)")
        self.assert_caught("should show muon_step as")

    def test_line_that_is_not_marked(self):
        self.edit(self.site / "index.html", 'class="mw-whole"', 'class="mw-any-shard"')
        self.assert_caught("should mark the line that needs the whole matrix")

    def test_stage_without_pytorch(self):
        self.edit(self.site / "index.html", r'<tr><td><a href="lesson_07_tp_shard.html">.*?</tr>', "")
        self.assert_caught("what lessons 04 to 08 are in PyTorch")

    def test_word_without_its_place_in_the_glossary(self):
        self.edit(self.site / "md_docs_glossary.html", 'id="word_rank"', 'id="word_ranks"')
        self.assert_caught('links to "md_docs_glossary.html#word_rank", but')

    def test_word_that_is_linked_twice(self):
        self.edit(self.page, r'(<a class="mw-word".*?</a>)', r"\1 \1")
        self.assert_caught("more than once")

    def test_words_that_are_not_linked(self):
        page = self.page.read_text(encoding="utf-8")
        self.page.write_text(page.replace('<a class="mw-word"', '<a class="mw-none"'), encoding="utf-8")
        self.assert_caught("should link its words to the glossary")

    def test_proof_that_no_run_has_printed(self):
        self.edit(self.site / "index.html", r"4,757,912 B", "4,757,913 B")
        self.assert_caught("should say what lesson_09_full_step has printed")

    def test_second_start_button(self):
        self.edit(self.site / "index.html", r'(<a class="mw-start-button".*?</a>)', r"\1\1")
        self.assert_caught("should have one button Start")

    def test_lesson_missing_on_start_page(self):
        self.edit(self.site / "index.html", r'<li data-progress="[^"]*"><a href="lesson_05_tp_gather.html"><span class="mw-number">05</span><span.*?</li>', "")
        self.assert_caught("should list all lessons")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
