"""The site of a small project (stand_in_site.py): every page of it is, byte for byte, what is kept in tests/golden."""

import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import stand_in_site  # noqa: E402
import lesson_graph  # noqa: E402
from lesson_source import LessonError  # noqa: E402
from make_pages import make_pages  # noqa: E402
from page_lines import expect_kept  # noqa: E402
from player_script import player_script  # noqa: E402

# What the project has as files of its own, and what Graphviz draws, each version in its own way.
OTHERS = {"player.js", "minisearch.js"}
GRAPH = re.compile(r'(<svg class="mw-graph"[^>]*>).*?(<title id="graph_title">.*?</desc>).*?</svg>', re.DOTALL)


class WholeSite(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        *arguments, cls.site = stand_in_site.make(Path(temporary.name))
        make_pages(*arguments, cls.site)
        cls.files = sorted(path for path in cls.site.rglob("*") if path.is_file())

    def test_each_page(self):
        # A line for each tag that begins one in a reader's eye, so that a difference can be read.
        text = ""
        for path in self.files:
            words = path.read_text(encoding="utf-8") if path.name not in OTHERS else "…"
            words = GRAPH.sub(r'<svg class="mw-graph">…\2</svg>', words)
            text += f"=== {path.relative_to(self.site)}\n" + re.sub(r"\n*(<(?:li|p|div|figure|rect|tr|td|h\d|section|details|script|nav)\b)", r"\n\1", words) + "\n"
        expect_kept(self, "site.txt", text.split("\n"))

    def test_what_pages_share_is_what_the_project_has(self):
        root = stand_in_site.ROOT
        self.assertEqual((self.site / "player.js").read_text(encoding="utf-8"), player_script(root / "docs/player"))
        self.assertEqual((self.site / "minisearch.js").read_bytes(), (root / "third_party/minisearch/minisearch.js").read_bytes())


class BrokenSites(unittest.TestCase):
    """Each mistake is made in a small project or its pages; the whole sentence is said, and names the file."""

    def said(self, name, before, after, of="doxygen"):
        with tempfile.TemporaryDirectory() as folder:
            root, doxygen, *others = stand_in_site.make(Path(folder))
            path = {"doxygen": doxygen, "root": root}[of] / name
            text = path.read_text(encoding="utf-8")
            self.assertIn(before, text)
            path.write_text(text.replace(before, after, 1), encoding="utf-8")
            drawn = SimpleNamespace(stdout="<svg ></svg>")  # Graphviz would take most of the time
            with mock.patch.object(lesson_graph.subprocess, "run", return_value=drawn), self.assertRaises(LessonError) as refused:
                make_pages(root, doxygen, *others)
            return str(refused.exception).replace(f"{root}/", "")

    def test_each_is_refused_in_one_sentence(self):
        page, source = "lesson_05_tp_gather.html", "lessons/lesson_05_tp_gather/lesson_05_tp_gather.cpp"
        for name, before, after, sentence in (
                ("md_docs_glossary.html", '<div class="textblock">', "<div>",
                 "md_docs_glossary.html is not built as Doxygen 1.9.4 builds pages: its text was found 0 times"),
                ("classmuonwalk_1_1Rank.html", "<body>", "<body class>", "classmuonwalk_1_1Rank.html is not built as Doxygen 1.9.4 builds "
                 "pages: its head, its body or its text is missing"),
                ("md_docs_glossary.html", "<li><b>rank</b>", "<li>rank", "docs/glossary.md has 2 entries, but its page has 1"),
                (page, "<!-- fragment -->", "", f"{source}: the page has 4 blocks of code instead of 5; does a drawing in the prose look like code?"),
                (page, "Hint: so", "so", f'{source}: the page has 2 hints instead of 3; each exercise ends with "Hint: …"'),
                (page, "lesson_05_tp_gather_the_idea", "idea", "the page has no section lesson_05_tp_gather_the_idea, in which something belongs"),
                (page, "lesson_05_tp_gather_the_reference", "x", "the page has no section lesson_05_tp_gather_the_reference, before which "
                 "something belongs"),
                (page, "You need to know", "Know", f'{source}: its page has no paragraph that begins with "You need to know"')):
            with self.subTest(sentence=sentence):
                self.assertEqual(self.said(name, before, after), sentence)

    def test_a_function_that_is_defined_nowhere(self):
        self.assertEqual(self.said("src/optim/plans.cpp", "int gather_plan(int n) {", "int other(int n) {", "root"),
                         "src/optim/steps.hpp: lessons link to gather_plan, whose page shows its source, but neither this header nor a .cpp "
                         "beside it defines it")

    def test_a_script_that_no_list_has(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "other.js").write_text("", encoding="utf-8")
            with self.assertRaisesRegex(LessonError, r"has the scripts \['other'\], and tools/site/player_script.py lists \['arrivals', 'arrows', .*'words'\]$"):
                player_script(folder)


if __name__ == "__main__":
    unittest.main()
