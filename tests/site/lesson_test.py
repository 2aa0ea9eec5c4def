#!/usr/bin/env python3
"""Holds what a reader can choose on the page of a lesson to what it promises, in a real browser.

    lesson_test.py SITE

"Plain program" folds away what is there for the lesson alone; what is printed and the answer are revealed after a prediction; both
are remembered, and the lessons that are done are ticked, until the reader wants that forgotten. Words of the glossary say what they
mean under the pointer, under the focus, and on a touch. On paper everything is there and no line is cut. From file:// and, what
is remembered, served over http; by the keyboard and by the pointer. On copies of the site in which one of these things is broken, the same checks have to
fail.
"""

import re
from pathlib import Path

from broken_copies import site_test
from headless_browser import console_faults, set_media
from shell_test import ENTER, ESCAPE, LESSON, PHONE, SPACE, WIDE, Shell

OTHER = "lesson_05_tp_gather"
DRAWN = "lesson_06_newton_schulz"  # what its drawings say in letters stays letters
_PAGE = Path(__file__).resolve().parents[2] / "lessons" / LESSON / f"{LESSON}.expected"
_SEEN = """[...document.querySelectorAll('.textblock > div.fragment .line')].filter((line) => line.checkVisibility()).map(
           (line) => line.textContent).join('\\n')"""


class Reader(Shell):
    def forget(self):
        self.open("index")
        self.ask("localStorage.clear()")

    def focus(self, selector):
        self.ask("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.ask("document.querySelector(arguments[0]).focus()", selector)

    def plain_program(self):
        """Folded by the keyboard, remembered on another page, a piece shown by a click, and all of it on paper."""
        self.forget()
        self.open(LESSON)
        whole = self.ask(_SEEN)
        self.focus(".mw-plain-switch")
        self.press(SPACE)
        plain = self.ask(_SEEN)
        for gone in ("int main(", "Prediction predict(", "Layout plan(", 'rank.bug("flat_matrix")', "planted bug kept_buckets"):
            if gone not in whole or gone in plain:
                self.fault(f"{LESSON}: the plain program should be without \"{gone}\"")
        for kept in ("void gather_bucket(Rank& rank, Local& local) {", "local.bucket = dp_gather(", "struct Local {", "used += size;"):
            if kept not in plain:
                self.fault(f"{LESSON}: the plain program lacks \"{kept}\"")
        if self.ask("document.querySelector('.mw-plain-switch').getAttribute('aria-pressed')") != "true":
            self.fault(f"{LESSON}: the switch does not say that it is on")
        set_media(self.browser, medium="print")
        if self.ask(_SEEN) != whole:
            self.fault(f"{LESSON}: on paper, the plain program lacks what is folded")
        set_media(self.browser)
        button = self.browser.find_element("css selector", ".textblock > div.fragment .mw-left-out")
        self.ask("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        if button.get_attribute("aria-expanded") != "true" or len(self.ask(_SEEN)) <= len(plain):
            self.fault(f"{LESSON}: a click does not show a piece that is folded")
        self.open(OTHER)
        if "int main(" in self.ask(_SEEN):
            self.fault(f"{OTHER}: the plain program is not remembered")
        self.browser.find_element("css selector", ".mw-plain-switch").click()
        if "int main(" not in self.ask(_SEEN):
            self.fault(f"{OTHER}: a click does not bring the whole program back")

    def words(self):
        """What a word means: by the pointer, by the keyboard, and by a touch."""
        self.open(LESSON)
        word = self.browser.find_element("css selector", "a.mw-word")
        meaning = self.ask("arguments[0].dataset.meaning", word)
        shown = "(() => { const tip = document.getElementById('mw-tip'); return tip && tip.checkVisibility() ? tip.textContent : ''; })()"
        described = "arguments[0].getAttribute('aria-describedby')"

        def expect(what, is_shown):
            if not self.wait_for(f"Boolean({shown}) === arguments[0]", is_shown):
                self.fault(f"{LESSON}: {what}, what a word means is {'not ' * is_shown}shown")
            elif is_shown and (meaning not in self.ask(shown) or self.ask(described, word) != "mw-tip"):
                self.fault(f"{LESSON}: {what}, a word says {self.ask(shown)} in place of \"{meaning}\"")

        if not meaning or len(meaning) < 20 or self.ask("arguments[0].title", word):
            self.fault(f"{LESSON}: a word does not know what it means")
        self.focus("a.mw-word")
        expect("with the keyboard's focus", True)
        self.press(ESCAPE)
        expect("after Escape", False)
        self.ask("document.activeElement.blur()")
        expect("without focus", False)
        box = self.ask("(({x, y, width, height}) => [x + width / 2, y + height / 2])(arguments[0].getClientRects()[0])", word)
        self.mouse(*box)
        expect("under the pointer", True)
        self.mouse(2, 2)
        expect("when the pointer has left", False)
        self.open(LESSON, PHONE)
        word = self.browser.find_element("css selector", "a.mw-word")
        self.ask("arguments[0].scrollIntoView({block: 'center'})", word)
        box = self.ask("(({x, y, width, height}) => [x + width / 2, y + height / 2])(arguments[0].getClientRects()[0])", word)
        self.touch(*box)
        expect("after a touch", True)
        if LESSON not in self.browser.current_url:
            self.fault(f"{LESSON}: the first touch of a word leaves the page")
            return
        room = self.ask("(({left, right}) => [left, innerWidth - right])(document.getElementById('mw-tip').getBoundingClientRect())")
        if min(room) < 0:
            self.fault(f"{LESSON}, phone: what a word means is cut at the side")
        self.touch(*box)
        if not self.wait_for("location.pathname.endsWith('md_docs_glossary.html')"):
            self.fault(f"{LESSON}: a second touch does not follow a word to the glossary")

    def mouse(self, x, y):
        self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def touch(self, x, y):
        self.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        self.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        self.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        self.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})

    def predictions(self):
        """Predict, reveal, compare; remembered, ticked, gone on with, and forgotten."""
        counted = re.search(r"^cost.*\n.*?([\d,]+) B +\1 B", _PAGE.read_text(encoding="utf-8"), re.MULTILINE).group(1).replace(",", "")
        self.forget()
        self.open(LESSON)
        hidden = ("[...document.querySelectorAll('.mw-reveal')].every((fold) => !fold.open && "
                  "!fold.querySelector('pre, .mw-answer').checkVisibility())")
        if not self.ask(f"document.querySelectorAll('.mw-reveal').length === 2 && {hidden}"):
            self.fault(f"{LESSON}: shows its output or its answer before it is asked for")
        verdict = "document.querySelector('.mw-verdict').textContent"
        self.focus("[data-guess=bytes]")
        self.press("7")
        if self.ask(verdict):
            self.fault(f"{LESSON}: judges a prediction before the output is shown")
        self.press(ENTER)
        if not self.ask("document.querySelector('.mw-reveal pre').checkVisibility()") or not self.wait_for(f"{verdict}.includes(arguments[0])", counted):
            self.fault(f"{LESSON}: after a wrong prediction, it should say that there are {counted} B, and says \"{self.ask(verdict)}\"")
        self.press("\ue003" + counted)
        if not self.wait_for(f"{verdict}.startsWith('✔')"):
            self.fault(f"{LESSON}: after the right prediction, it says \"{self.ask(verdict)}\"")
        self.focus("[data-guess=words]")
        self.press("they stand side by side")
        self.focus(f"#{LESSON}_reveal_answer summary")
        self.press(ENTER)
        ticked = f"[...document.querySelectorAll('[data-progress] .mw-done-mark')].map((mark) => mark.closest('li').dataset.progress)"
        if self.ask(ticked) != [LESSON]:
            self.fault(f"{LESSON}: when output and answer are open, it should be ticked, and ticked is {self.ask(ticked)}")
        self.open(OTHER)
        if self.ask("[...document.querySelectorAll('.mw-reveal')].some((fold) => fold.open)"):
            self.fault(f"{OTHER}: shows what was opened on another page")
        self.open(LESSON)
        kept = self.ask("[...document.querySelectorAll('.mw-reveal')].every((fold) => fold.open) && [...document.querySelectorAll("
                        "'[data-guess]')].map((field) => field.value).join('|')")
        if kept != f"{counted}|they stand side by side":
            self.fault(f"{LESSON}: what was predicted and opened is not remembered: {kept}")
        self.open("index")
        if self.ask("document.querySelector('.mw-continue')?.getAttribute('href')") != f"{OTHER}.html":
            self.fault(f"index: should lead on to {OTHER}")
        if self.ask(ticked) != [LESSON] * 2:
            self.fault(f"index: should tick the lesson that is done, in the navigation and in the list, and ticks {self.ask(ticked)}")
        if not self.ask("Boolean(document.querySelector('.mw-forget'))"):
            self.fault("index: does not offer to forget what was done")
            return
        self.ask("document.querySelector('.mw-forget').scrollIntoView({block: 'center'})")
        self.browser.find_element("css selector", ".mw-forget").click()
        if self.ask(ticked) or self.ask("localStorage.getItem('muonwalk.progress')"):
            self.fault("index: does not forget what was done")
        self.open(LESSON)
        if not self.ask(hidden):
            self.fault(f"{LESSON}: remembers what should be forgotten")

    def without_storage(self):
        """What another program has left in the browser's memory does no harm."""
        self.forget()
        self.ask("localStorage.setItem('muonwalk.progress', '[nonsense')")
        self.open(LESSON)
        self.browser.find_element("css selector", ".mw-plain-switch").click()
        if not self.ask("document.querySelector('.mw-plain-switch').getAttribute('aria-pressed') === 'true'"):
            self.fault(f"{LESSON}: the page does not work with what it can't read in the browser's memory")
        self.forget()

    def drawings(self):
        """A drawing whose letters are too small on a phone can be enlarged, and scrolls by itself."""
        self.open(DRAWN, PHONE)
        letters = "parseFloat(getComputedStyle(document.querySelector('pre.fragment')).fontSize)"
        fits = "(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth + 1)(document.querySelector('pre.fragment'))"
        button = "document.querySelector('pre.fragment + .mw-enlarge')"
        if not self.ask(fits) or not self.ask(f"{letters} >= 9 || {button}?.checkVisibility()"):
            self.fault(f"{DRAWN}, phone: a drawing is cut, or too small without a way to enlarge it")
            return
        self.focus("pre.fragment + .mw-enlarge")
        self.press(ENTER)
        if self.ask(letters) < 11 or self.ask("getComputedStyle(document.querySelector('pre.fragment')).overflowX") != "auto":
            self.fault(f"{DRAWN}, phone: a drawing that is enlarged has letters of {self.ask(letters)} pixels, or does not scroll")
        self.open(DRAWN, WIDE)
        if self.ask(f"{button}?.checkVisibility()"):
            self.fault(f"{DRAWN}: offers to enlarge a drawing that can be read")

    def on_paper(self):
        """Nothing is folded, cut, or there only to be clicked."""
        for page in (LESSON, "lesson_09_full_step"):
            self.open(page, (700, 1000))
            set_media(self.browser, medium="print")
            # Where the letters are, not how wide their box would like to be.
            cut = self.ask("""[...document.querySelectorAll(".textblock pre, .textblock div.fragment")].filter((code) => {
                if (!code.checkVisibility() || code.closest(".muonwalk-player") || code.matches(".mw-heard")) return false;
                const letters = document.createRange(), box = code.getBoundingClientRect();
                letters.selectNodeContents(code);
                const right = [...letters.getClientRects()].reduce((most, each) => Math.max(most, each.right), 0);
                return right > box.right || box.right > innerWidth + 1 || code.scrollHeight > code.clientHeight + 2;
                }).map((code) => code.textContent.slice(0, 60))""")
            if cut:
                self.fault(f"{page}, on paper: {len(cut)} pieces of code are cut, the first: {cut[0]}")
            folded = self.ask("""[...document.querySelectorAll(".textblock details > :not(summary)")].filter((part) =>
                part.textContent.trim() && !part.closest("nav, .muonwalk-player, .mw-graph-words, .mw-wide") && getComputedStyle(part).display !== "none" &&
                (!part.checkVisibility({contentVisibilityAuto: true}) || part.getBoundingClientRect().height < 4)).map(
                (part) => part.textContent.trim().slice(0, 60))""")
            if folded:
                self.fault(f"{page}, on paper: {len(folded)} parts stay folded, the first: {folded[0]}")
            controls = self.ask("""[...document.querySelectorAll("#mw-side, .mw-bar, .mw-controls, .mw-guess, .mw-left-out, nav.mw-steps")].filter(
                (each) => each.checkVisibility()).map((each) => each.className || each.id)""")
            if controls:
                self.fault(f"{page}, on paper: there is something to click: {sorted(set(controls))}")
            set_media(self.browser)


BROKEN = [
    ("a main that stays", "lesson_04_dp_gather.html", lambda text: text.replace('<div class="mw-machinery">', "<div>"),
     lambda reader: reader.plain_program(), 'should be without "int main("'),
    ("a word that the keyboard does not reach", "words.js", lambda text: text.replace('addEventListener("focus"', 'addEventListener("focused"'),
     lambda reader: reader.words(), "with the keyboard's focus"),
    ("an answer that is given away", "lesson.js", lambda text: text.replace("fold.open = Boolean(mine()[what])", "fold.open = true"),
     lambda reader: reader.predictions(), "before it is asked for"),
    ("a drawing that stays small", "drawings.js", lambda text: text.replace("drawing.after(button);", ""),
     lambda reader: reader.drawings(), "too small without a way to enlarge it"),
    ("buttons on paper", "shell.css", lambda text: text.replace(".mw-controls, ", ""),
     lambda reader: reader.on_paper(), "something to click"),
]


def look(browser):
    """Asks a check of a folder, from file://."""
    def looked(folder, check):
        reader = Reader(browser, folder.as_uri())
        check(reader)
        set_media(browser)
        reader.forget()
        browser.get("about:blank")
        console_faults(browser)
        return reader.faults

    return looked


def check(browser, site, address):
    of_files, served_ones = Reader(browser, site.as_uri()), Reader(browser, address)
    for reader in (of_files, served_ones):  # what the browser remembers, it remembers by address
        reader.plain_program()
        reader.predictions()
        reader.without_storage()
    of_files.words()
    of_files.drawings()
    of_files.on_paper()
    for reader in (of_files, served_ones):
        reader.console()
    return of_files.faults + [f"served: {sentence}" for sentence in served_ones.faults]


if __name__ == "__main__":
    site_test(WIDE, check, BROKEN, look)
