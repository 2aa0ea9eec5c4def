#!/usr/bin/env python3
"""What the scripts of a small site's pages (stand_in_site.py) do: all that a reader's deeds change there is what is kept in
tests/golden. Nothing has to be built for it.

    kept_pages_test.py ROOT
"""

import re
import sys
import tempfile
import unittest
from pathlib import Path

from headless_browser import console_faults, headless_browser, set_media, set_size
from page_lines import DO, LINES, changed, expect_kept
import stand_in_site
from make_pages import make_pages

ROOT = Path(sys.argv.pop(1)).resolve()
PLACE = {}
PAGES = {
    "lesson_05_tp_gather": [
        "focus('[data-strip=copied] [data-value]', 1)", "key('ArrowRight', document.activeElement)", "key('ArrowDown', document.activeElement)",
        "key('ArrowUp', document.activeElement)", "key('ArrowLeft', document.activeElement)", "key('ArrowLeft', document.activeElement)",
        "key('x', document.activeElement)", "hover('[data-strip=arrived] [data-value]', 'pointerover', 3)", "hover('[data-strip=arrived] [data-value]', 'click')",
        "press('.mw-plain-switch')", "press('.mw-plain-switch')", "press('.mw-left-out', 1)", "press('.mw-left-out', 1)",
        "enter('[data-guess=bytes]', '1233')", "press('#lesson_05_tp_gather_reveal_output summary')", "enter('[data-guess=bytes]', 'many')",
        "enter('[data-guess=bytes]', ' 1,234 B')", "enter('[data-guess=bytes]', '')", "enter('[data-guess=words]', 'so <that>')",
        "press('#lesson_05_tp_gather_reveal_answer summary')", "press('.mw-menu')", "key('Escape')", "press('.mw-menu')", "press('.mw-menu')",
        "press('nav.mw-contents summary')", "press('nav.mw-contents a', 1)", "hover('a.mw-word', 'pointerenter')", "key('Escape')",
        "focus('a.mw-word', 1)", "at('a.mw-word', 1).blur()", "press('.mw-enlarge')", "press('.mw-enlarge')", "dispatchEvent(new Event('beforeprint'))",
        "dispatchEvent(new Event('afterprint'))", "key('Home')", "key('End')"],
    "lesson_06_newton_schulz": [
        "enter('select', 1)", "enter('input[type=range]', 0)", "enter('input[type=range]', 2)", "enter('select', 0)", "hover('.mwf-step', 'pointerover', 1)",
        "press('button[data-step]', 2)", "focus('button[data-step]')", "enter('[data-guess=bytes]', '7')", "key('Enter', at('[data-guess=bytes]'))"],
    "lesson_09_full_step": [
        "enter('#figure-09-dp', 0)", "enter('#figure-09-tp', 0)", "enter('#figure-09-model', 0)", "enter('#figure-09-model', 1)", "enter('#figure-09-dp', 1)",
        "key('/')", "enter('#mw-search-field', 'gath')", "key('ArrowDown', at('#mw-search-field'))", "key('ArrowUp', at('#mw-search-field'))",
        "key('ArrowUp', at('#mw-search-field'))", "key('Escape', at('#mw-search-field'))", "key('ArrowDown', at('#mw-search-field'))",
        "enter('#mw-search-field', 'rank nowhere')", "enter('#mw-search-field', 'zzzz')", "enter('#mw-search-field', 'all_gather')",
        "enter('#mw-search-field', 'costs')", "hover('main', 'pointerdown')", "enter('#mw-search-field', '  ')"],
    "index": ["press('.mw-menu')", "press('.mw-forget')"]}


class KeptPages(unittest.TestCase):
    def setUp(self):
        self.browser = PLACE["browser"]
        set_size(self.browser, 1280, 900)
        set_media(self.browser, prefers_color_scheme="light", prefers_reduced_motion="reduce")

    def lines(self, page):
        lines = self.browser.execute_script(
            LINES + "add(arguments[0] ? new DOMParser().parseFromString(arguments[0], 'text/html').body : document.body, 0); return lines", page)
        return [re.sub(" · .*", '"', line) if line.strip().startswith('"On this page · ') else line for line in lines]  # where it has scrolled

    def settle(self):
        """Until the browser has done what was asked for, and the search, where it was asked for, has read its index."""
        self.browser.execute_async_script("""
          const done = arguments[0], field = document.querySelector("#mw-search-field");
          const look = () => {
            const began = document.querySelector('head script[src="search_index.js"]');
            if (began && document.documentElement.dataset.search !== "ready") setTimeout(look, 5);
            else requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)));
          };
          look();""")

    def test_every_deed(self):
        text = []
        for name, deeds in PAGES.items():
            page = PLACE["site"] / f"{name}.html"
            self.browser.get(page.as_uri())
            self.settle()
            before = self.lines(page.read_text(encoding="utf-8"))
            for deed in ["loading it", *deeds]:
                if deed in deeds:
                    self.browser.execute_script(DO.replace("ROOT", "document") + deed)
                    self.settle()
                now = self.lines("")
                text += [f"--- {name}: {deed}", *changed(before, now)]
                before = now
            self.assertEqual(console_faults(self.browser), [])
        expect_kept(self, "pages.txt", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, headless_browser() as PLACE["browser"]:
        *made, PLACE["site"] = stand_in_site.make(Path(folder))
        make_pages(*made, PLACE["site"])
        for part in ("shell", "search", "figures", "player", "theme"):
            for file in (ROOT / "docs" / part).glob("*.css" if part == "player" else "*.*s"):
                (PLACE["site"] / file.name).write_bytes(file.read_bytes())
        ended = unittest.main(exit=False)
    sys.exit(0 if ended.result.wasSuccessful() else 1)
