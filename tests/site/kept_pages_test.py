#!/usr/bin/env python3
"""What the scripts of a small site's pages (stand_in_site.py) do: all that a reader's deeds change there is what is kept in
tests/golden. Nothing has to be built for it.

    kept_pages_test.py ROOT
"""

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

from headless_browser import console_faults, headless_browser, set_media, set_size
from page_lines import DO, LINES, MEMORY, changed, expect_kept
from page_looks import looks_of
import stand_in_site
from make_pages import make_pages

ROOT = Path(sys.argv.pop(1)).resolve()
PLACE = {}
AGAIN = "loading it again"
PAGES = {
    "lesson_05_tp_gather": [
        "focus('[data-strip=copied] [data-value]', 1)", "key('ArrowRight', document.activeElement)", "key('ArrowDown', document.activeElement)",
        "key('ArrowUp', document.activeElement)", "key('ArrowLeft', document.activeElement)", "key('ArrowLeft', document.activeElement)",
        "key('ArrowDown', document.activeElement)", "key('x', document.activeElement)",
        *(f"key('ArrowLeft', document.activeElement, {{{held}: true}})" for held in ("ctrlKey", "metaKey", "altKey")),
        "hover('[data-strip=arrived] [data-value]', 'pointerover', 3)", "hover('[data-strip=arrived] text.mwf-words', 'pointerover')",
        "hover('[data-strip=arrived] [data-value]', 'click')", "key('ArrowLeft', at('.mwf-said'))",
        "press('.mw-plain-switch')", AGAIN, "press('.mw-plain-switch')", "press('.mw-left-out', 1)", "press('.mw-left-out', 1)",
        "enter('[data-guess=bytes]', '1233')", "key('Enter', at('[data-guess=words]'))", "press('#lesson_05_tp_gather_reveal_output summary')",
        "key('Enter', at('[data-guess=bytes]'))", "enter('[data-guess=bytes]', 'many')",
        "enter('[data-guess=bytes]', ' 1,234 B')", "enter('[data-guess=bytes]', '1_2.3 4b')", "enter('[data-guess=bytes]', '12B34')",
        "enter('[data-guess=bytes]', '-1234')", "enter('[data-guess=bytes]', '')",
        "enter('[data-guess=bytes]', '01234')", "press('#lesson_05_tp_gather_reveal_output summary')", "press('#lesson_05_tp_gather_reveal_output summary')",
        "enter('[data-guess=words]', 'so <that>')",
        "press('#lesson_05_tp_gather_reveal_answer summary')", "press('#lesson_05_tp_gather_reveal_output summary')", AGAIN,
        "press('.mw-menu')", "key('Escape')", "press('.mw-menu')", "press('.mw-menu')", "press('.mw-menu')",
        "press('#mw-side .mw-sections a')", "press('nav.mw-contents summary')", "key('x')", "key('Escape')",
        "press('nav.mw-contents summary')", "press('nav.mw-contents a', 1)", "hover('a.mw-word', 'pointerenter')", "key('x')", "key('Escape')",
        "focus('a.mw-word', 1)", "hover('a.mw-word', 'pointerenter', 0)", "at('a.mw-word', 1).blur()",
        "touch('a.mw-word', 'pointerenter')", "touch('a.mw-word', 'click')", "touch('a.mw-word', 'pointerleave')", "touch('a.mw-word', 'pointerdown')",
        "hover('.mw-tip', 'pointerdown')", "touch('a.mw-word', 'click', 1)", "touch('a.mw-word', 'click', 1)", "hover('main', 'pointerdown')",
        "touch('a.mw-word', 'click', 1)", "hover('main', 'pointerdown')", "hover('a.mw-word', 'click')",
        "hurried(() => { hover('a.mw-word', 'pointerenter'); hover('a.mw-word', 'pointerleave'); })",
        "hurried(() => { hover('a.mw-word', 'pointerenter'); hover('a.mw-word', 'pointerleave'); hover('.mw-tip', 'pointerenter'); })",
        "hurried(() => { hover('.mw-tip', 'pointerleave'); hover('a.mw-word', 'pointerenter'); })",
        "hurried(() => { hover('.mw-tip', 'pointerleave'); focus('a.mw-word', 1); })", "document.activeElement.blur()",
        "press('.mw-enlarge')", "press('.mw-enlarge')", "at('pre.fragment').style.setProperty('font-size', '8.9px', 'important'); dispatchEvent(new Event('resize'))",
        "press('.mw-enlarge')", "at('pre.fragment').style.setProperty('font-size', '9px', 'important'); dispatchEvent(new Event('resize'))", "press('.mw-enlarge')",
        "dispatchEvent(new Event('resize'))",
        "dispatchEvent(new Event('beforeprint'))",
        "dispatchEvent(new Event('afterprint'))", "dispatchEvent(new Event('afterprint'))", "press('.mw-hint summary')", "dispatchEvent(new Event('beforeprint'))",
        "dispatchEvent(new Event('afterprint'))", "key('Home')", "key('End')"],
    "lesson_06_newton_schulz": [
        "enter('select', 1)", "enter('input[type=range]', 0, 0, 'change')", "enter('input[type=range]', 2)", "enter('select', 0, 0, 'change')",
        "hover('.mwf-step', 'pointerover', 1)", "hover('.mwf-formula', 'pointerover')",
        "press('button[data-step]', 2)", "focus('button[data-step]')", "enter('select', 1)", "focus('button[data-step]', 1)",
        "enter('[data-guess=bytes]', '7')", "key('x', at('[data-guess=bytes]'))", "key('Enter', at('[data-guess=bytes]'))"],
    "lesson_09_full_step": [
        "enter('#figure-09-dp', 0)", "enter('#figure-09-tp', 0)", "enter('#figure-09-model', 0, 0, 'change')", "enter('#figure-09-model', 1)", "enter('#figure-09-dp', 1)",
        *(f"key('/', document.body, {{{held}: true}})" for held in ("ctrlKey", "metaKey", "altKey")), "key('/', at('textarea'))", "key('/', at('select'))",
        "at('#mw-search-field').value = 'old'; key('/', document.body)", "became = [getSelection().toString()]",
        "key('/', at('#mw-search-field'))", "enter('#mw-search-field', 'gath')", "key('x', at('#mw-search-field'))",
        "key('ArrowDown', at('#mw-search-field'))", "key('ArrowUp', at('#mw-search-field'))",
        "key('ArrowUp', at('#mw-search-field'))", "key('ArrowDown', at('#mw-search-field'))", "key('ArrowDown', at('#mw-search-field'))",
        "key('Enter', at('#mw-search-field'))", "key('Enter', at('#mw-search-field'))", "key('ArrowUp', at('#mw-search-field'))",
        "hover('.mw-search-snippet', 'pointerdown')", "key('Escape', at('#mw-search-field'))", "key('ArrowDown', at('#mw-search-field'))",
        "enter('#mw-search-field', 'rank nowhere')", "enter('#mw-search-field', 'zzzz')", "key('ArrowDown', at('#mw-search-field'))",
        "key('Enter', at('#mw-search-field'))", "hover('main', 'pointerdown')", "enter('#mw-search-field', 'all_gather')",
        "enter('#mw-search-field', 'costs')", "hover('main', 'pointerdown')", "enter('#mw-search-field', '  ')"],
    "index": [
        "press('.mw-menu')", "press('.mw-forget')", AGAIN,
        *(deed for progress in ("{'lesson_05_tp_gather': {words: 'x'}}", "{'lesson_05_tp_gather': {output: true}, 'lesson_06_newton_schulz': {answer: true}}",
                                "{'lesson_06_newton_schulz': {output: true, answer: true}}", "{'lesson_09_full_step': {output: true, answer: true}}", "null", "'text'", "7")
          for deed in (f"localStorage.setItem('muonwalk.progress', JSON.stringify({progress}))", AGAIN)),
        "localStorage.setItem('muonwalk.progress', '{')", AGAIN]}
# A page for each kind of place of a word: [page, title, kind], and sections [page, anchor, heading, text].
INDEX = {"pages": [["lesson_05_x.html", "Gather", 0], ["lesson_06_y.html", "Rows", 0], ["md_docs_z.html", "Design of zebra", 1], ["api.html", "API", 2],
                   ["steps_8hpp.html", "steps.hpp", 2], ["lesson_07_q.html", "Quilt", 0]],
         "sections": [[0, "", "", "It gathers zebra."], [0, "a", "Zebra", "About stripes."], [0, "b", "The rest", "zebra"], [1, "", "", "zebra"], [1, "r", "", "zebra"],
                      [2, "", "", "zebra"], [3, "", "", "zebra"], [4, "f", "zebra_crossing()", "Crosses. " + "word " * 60 + "middle " + "more " * 60 + "zebra at the end"],
                      [4, "g", "zebra_crossing()", "Again."], [5, "", "", "ZeRO-1 and all_gather, a+b (c) [d] C++ café, quagga quilted"],
                      [5, "s", "Stop", "x" * 200 + " okapi"]] + [[4, f"m{at}", f"okapi_{at}()", f"tapir {at}"] for at in range(14)]}
QUERIES = ["zebra", "ZEBRA", "zeb", "ze", "okapi", "tapir", "crossing", "zebra_crossing", "zero-1", "zero", "1", "gather", "all_gather", "middle", "quaggs", "quxgga",
           "quilte", "kuilted", "café", "c++", "zebra quagga", "zebra tapir", "stripes about", "zebra the", "nowhere", "okap1", "."]


def open_with(browser, page, kept):
    memory = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": MEMORY.replace("KEPT", json.dumps(kept))})
    browser.get(page.as_uri())
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", memory)


class KeptPages(unittest.TestCase):
    def setUp(self):
        self.kept = {}
        self.browser = PLACE["browser"]
        set_size(self.browser, 1280, 900)
        set_media(self.browser, prefers_color_scheme="light", prefers_reduced_motion="reduce")

    def lines(self, page):
        lines = self.browser.execute_script(
            LINES + "add(arguments[0] ? new DOMParser().parseFromString(arguments[0], 'text/html').body : document.body, 0); if (!arguments[0]) state(); return lines", page)
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

    def load(self, name):
        """Opens a page in a browser that keeps what this test has made it keep."""
        page = PLACE["site"] / f"{name}.html"
        open_with(self.browser, page, self.kept)
        self.settle()
        return self.lines(page.read_text(encoding="utf-8"))

    def do(self, deed):
        self.browser.execute_script(DO.replace("ROOT", "document") + deed)
        self.settle()

    def test_every_deed(self):
        text = []
        for name, deeds in PAGES.items():
            before = self.load(name)
            for deed in ["loading it", *deeds]:
                if deed == AGAIN:
                    before = self.load(name)
                elif deed in deeds:
                    self.do(deed)
                now = self.lines("")
                self.kept = self.browser.execute_script("return localStorage.all()")
                text += [f"--- {name}: {deed}", *changed(before, now)]
                before = now
            self.assertEqual(console_faults(self.browser), [])
        expect_kept(self, "pages.txt", text)

    def test_what_is_found_best_first_and_how_it_is_shown(self):
        index = PLACE["site"] / "search_index.js"
        own = index.read_text(encoding="utf-8")
        self.addCleanup(index.write_text, own, encoding="utf-8")
        index.write_text(f"window.muonwalkSearch = {json.dumps(INDEX)};", encoding="utf-8")
        self.load("index")
        self.do("focus('#mw-search-field')")
        text = []
        for query in QUERIES:
            self.do(f"enter('#mw-search-field', {json.dumps(query)})")
            found, said = self.browser.execute_script("""
              const shown = (link) => [...link.childNodes].map((part) => part.innerHTML).join(" | ");
              const list = document.querySelector("#mw-search-results"), status = document.querySelector("#mw-search-status");
              return [list.hidden ? [] : [...list.children].map((link) => `${link.getAttribute("href")} | ${shown(link)}`), `${status.className}: ${status.textContent}`]""")
            text += [f"--- {query}", *found, said]
        below = self.browser.execute_script("""
          return [document.querySelector("#mw-search-results").style.getPropertyValue("--mw-search-below"),
                  `${Math.ceil(document.querySelector("#mw-search-field").getBoundingClientRect().bottom) + 3}px`]""")
        self.assertEqual(*below)
        expect_kept(self, "search.txt", text)

    def test_a_search_that_can_not_begin_says_what_is_missing(self):
        for name, says in (("search_index.js", "search_index.js is missing or broken"), ("minisearch.js", "minisearch.js is missing or broken")):
            path = PLACE["site"] / name
            own = path.read_bytes()
            self.addCleanup(path.write_bytes, own)
            path.unlink()
            self.load("index")
            self.browser.execute_script("document.getElementById('mw-search-field').focus()")
            said = self.browser.execute_async_script("""
              const done = arguments[0], status = document.querySelector("#mw-search-status");
              const look = () => status.textContent ? done([status.className, status.textContent]) : setTimeout(look, 5);
              look();""")
            self.assertEqual(said, ["", f"The search can't begin: {says}."])
            path.write_bytes(own)
            console_faults(self.browser)

    def test_a_browser_that_keeps_nothing(self):
        nothing = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """
          Object.defineProperty(window, "localStorage", { get() { throw new Error("nothing is kept"); } });"""})
        self.addCleanup(self.browser.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", nothing)
        self.browser.get((PLACE["site"] / "lesson_05_tp_gather.html").as_uri())
        for deed in ("press('.mw-plain-switch')", "enter('[data-guess=bytes]', '1234')", "press('#lesson_05_tp_gather_reveal_output summary')",
                     "press('#lesson_05_tp_gather_reveal_answer summary')"):
            self.do(deed)
        shown = self.browser.execute_script("""
          return [document.documentElement.classList.contains("mw-plain"), document.querySelector(".mw-verdict").textContent,
                  document.querySelectorAll(".mw-done-mark").length, document.querySelectorAll(".mw-reveal[open]").length]""")
        self.assertEqual(shown, [True, "✔ Just as many.", 1, 2])
        self.assertEqual(console_faults(self.browser), [])

    def test_the_section_that_is_read_is_marked_and_in_view(self):
        self.load("lesson_05_tp_gather")
        seen = self.browser.execute_async_script("""
          const done = arguments[0], side = document.getElementById("mw-side"), seen = [];
          const frame = () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
          const headings = [...document.querySelectorAll(".textblock > h2")];
          document.head.insertAdjacentHTML("beforeend", `<style>.textblock > h2 { margin-top: 900px !important; } html { scroll-behavior: auto !important; }
            #mw-side { position: fixed !important; top: 100px !important; height: 120px !important; max-height: none !important; overflow-y: scroll !important; }</style>`);
          const look = async (what) => {
            await frame();
            const marked = [...document.querySelectorAll("[aria-current=location]")].map((link) => link.hash.slice(1));
            const box = side.querySelector("[aria-current=location]")?.getBoundingClientRect(), room = side.getBoundingClientRect();
            seen.push([what, marked, document.querySelector("nav.mw-contents summary").textContent, !box || (box.top >= room.top && box.bottom <= room.bottom)]);
          };
          (async () => {
            await frame();
            await look("top");
            for (const heading of headings.slice(0, -1)) {
              const top = heading.getBoundingClientRect().top + scrollY;
              scrollTo(0, top - 139);
              await look(heading.querySelector(".anchor").id);
              scrollTo(0, top - 141);
              await look("above it");
            }
            scrollTo(0, document.documentElement.scrollHeight);
            await look("end");
            done([seen, headings.map((heading) => [heading.querySelector(".anchor").id, heading.textContent.trim()])]);
          })();""")
        seen, headings = seen
        names, wanted = dict(headings), [("top", "")]
        for at, (anchor, _) in enumerate(headings[:-1]):
            wanted += [(anchor, anchor), ("above it", headings[at - 1][0] if at else "")]
        wanted.append(("end", headings[-1][0]))
        self.assertEqual(seen, [[what, [anchor] * 2 if anchor else [], f"On this page · {names[anchor]}" if anchor else "On this page", True]
                                for what, anchor in wanted])

    def test_the_navigation_begins_where_the_page_is_in_view(self):
        narrow = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """
          const sheet = new CSSStyleSheet();
          sheet.replaceSync("#mw-side { position: fixed; top: 100px; height: 120px; overflow-y: scroll; } #mw-side li { padding: 20px; }");
          document.adoptedStyleSheets = [sheet];"""})
        self.addCleanup(self.browser.execute_cdp_cmd, "Page.removeScriptToEvaluateOnNewDocument", narrow)
        for name in ("lesson_09_full_step", "api"):
            self.load(name)
            here, room, scrolled = self.browser.execute_script("""
              const side = document.getElementById("mw-side"), link = side.querySelector("[aria-current=page]");
              return [link.getBoundingClientRect().toJSON(), side.getBoundingClientRect().toJSON(), side.scrollTop];""")
            self.assertGreater(scrolled, 0)
            self.assertTrue(room["top"] <= here["top"] and here["bottom"] <= room["bottom"], (name, here, room))

    def test_what_a_word_means_stands_below_it_or_above_where_there_is_no_room_and_never_past_the_sides(self):
        self.load("lesson_05_tp_gather")
        self.browser.execute_async_script("""
          const sheet = document.createElement("link");
          [sheet.rel, sheet.href, sheet.onload] = ["stylesheet", "lesson.css", arguments[0]];
          document.head.append(sheet);""")
        for left, top, where in ((300, 200, "below"), (300, 850, "above"), (2, 200, "below"), (1230, 850, "above"), (300, 5, "below")):
            word, tip, wide = self.browser.execute_script("""
              const word = document.querySelector("a.mw-word"), tip = document.getElementById("mw-tip");
              scrollTo(0, 400);
              word.style.cssText = `position: fixed; white-space: nowrap; left: ${arguments[0]}px; top: ${arguments[1]}px`;
              word.focus();
              const shown = [word.getClientRects()[0].toJSON(), tip.getBoundingClientRect().toJSON(), document.documentElement.clientWidth];
              word.blur();
              return shown;""", left, top)
            with self.subTest(left=left, top=top):
                self.assertAlmostEqual(tip["left"], max(8, min(word["left"], wide - tip["width"] - 8)), delta=0.6)
                self.assertAlmostEqual(tip["top"] if where == "below" else tip["bottom"], word["bottom"] + 6 if where == "below" else word["top"] - 6, delta=0.6)
                self.assertGreaterEqual(tip["left"], 7)
                self.assertLessEqual(tip["right"], wide - 7)


class KeptLooks(unittest.TestCase):
    """How the project's own style sheets make the pages look: wide and narrow, in the light, in the dark, and on paper."""

    SHEETS = ("theme/doxygen-awesome", "theme/muonwalk", "shell/shell", "shell/lesson", "player/player", "player/stage", "search/search", "figures/figures")

    def open(self, name, kept):
        browser = PLACE["browser"]
        set_media(browser, prefers_color_scheme="light", prefers_reduced_motion="reduce")
        set_size(browser, 1280, 900)
        open_with(browser, PLACE["site"] / f"{name}.html", kept)
        browser.execute_async_script("""
          const [sheets, done] = arguments;
          document.head.insertAdjacentHTML("beforeend", '<meta name="viewport" content="width=device-width, initial-scale=1"/>');
          Promise.all(sheets.map((href) => new Promise((loaded) => {
            const sheet = document.createElement("link");
            [sheet.rel, sheet.href, sheet.onload] = ["stylesheet", href, loaded];
            document.head.append(sheet);
          }))).then(() => requestAnimationFrame(() => requestAnimationFrame(done)));""", [(ROOT / "docs" / f"{sheet}.css").as_uri() for sheet in self.SHEETS])

    def test_each_kind_of_element(self):
        browser = PLACE["browser"]
        unfold = "document.querySelectorAll('details').forEach((fold) => fold.open = true);"
        
        def do(deed, size=None, **media):
            def done():
                if size:
                    set_size(browser, *size)
                if media:
                    set_media(browser, prefers_reduced_motion="reduce", **media)
                browser.execute_script(unfold + DO.replace("ROOT", "document") + deed)
                browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
            return done

        phone = (390, 844)
        situations = [("wide", do("")), ("narrow", do("", phone)), ("dark", do("", prefers_color_scheme="dark")), ("on paper", do("", medium="print"))]
        busy = [("the menu, on a phone", do("press('.mw-menu')", phone)), ("a word", do("focus('a.mw-word')")),
                ("plain", do("press('.mw-plain-switch'); press('.mw-left-out')")), ("enlarged", do("press('.mw-enlarge')", phone)), ("without scripts", do("document.documentElement.className = ''"))]
        text = []
        for name, more in (("index", []), ("lesson_05_tp_gather", busy), ("lesson_06_newton_schulz", [("a step", do("focus('button[data-step]', 1)"))]),
                           ("lesson_09_full_step", [("a grid that is refused", do("enter('#figure-09-dp', 0); enter('#figure-09-tp', 0); enter('#figure-09-model', 1)"))]),
                           ("api", []), ("function_gather", [])):
            text += [f"##### {name}", *looks_of(browser, lambda name=name: self.open(name, {}), situations + more)]
        set_media(browser)
        set_size(browser, 1280, 900)
        expect_kept(self, "looks.txt", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, headless_browser() as PLACE["browser"]:
        *made, PLACE["site"] = stand_in_site.make(Path(folder))
        make_pages(*made, PLACE["site"])
        for part in ("shell", "search", "figures", "player", "theme"):
            for file in (ROOT / "docs" / part).glob("*.css" if part == "player" else "*.*s"):
                (PLACE["site"] / file.name).write_bytes(file.read_bytes())
        ended = unittest.main(exit=False)
    sys.exit(0 if ended.result.wasSuccessful() else 1)
