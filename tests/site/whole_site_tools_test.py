"""The site of a small project (stand_in_site.py): every page of it is, byte for byte, what is kept in tests/golden."""

import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import stand_in_site  # noqa: E402
from make_pages import make_pages  # noqa: E402
from player_script import player_script  # noqa: E402

KEPT = stand_in_site.ROOT / "tests/golden/site.txt"
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
        if os.environ.get("BLESS") == "1":
            KEPT.write_text(text, encoding="utf-8")
            self.skipTest(f"{KEPT} was written anew; review the difference before committing it")
        kept, made = KEPT.read_text(encoding="utf-8").split("\n"), text.split("\n")
        for at, (line, now) in enumerate(zip(kept, made), start=1):
            self.assertEqual(line, now, f"line {at} of {KEPT}; where the new one is right, run this test with BLESS=1")
        self.assertEqual(len(kept), len(made))

    def test_what_pages_share_is_what_the_project_has(self):
        root = stand_in_site.ROOT
        self.assertEqual((self.site / "player.js").read_text(encoding="utf-8"), player_script(root / "docs/player"))
        self.assertEqual((self.site / "minisearch.js").read_bytes(), (root / "third_party/minisearch/minisearch.js").read_bytes())


if __name__ == "__main__":
    unittest.main()
