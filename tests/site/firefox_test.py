#!/usr/bin/env python3
"""Opens the start page and lesson 04 in Firefox, from file:// and served over http.

    firefox_test.py SITE

Nothing is wider than the window, wide or narrow, in the light and in the dark, and the console stays silent. The search finds the
lesson, a word says what it means, the plain program and what was opened are remembered, the section that is read is marked, and the
player goes to its end, all by the keyboard. On copies of the site in which one of these things is broken, the same checks have to
fail.
"""

import sys
import time
from pathlib import Path

from broken_copies import not_noticed
from headless_firefox import headless_firefox
from served import served

LESSON = "lesson_04_dp_gather"
WIDE, NARROW = (1400, 1000), (500, 844)  # Firefox makes no window that is narrower
ENTER, ESCAPE, END, SPACE = "\ue007", "\ue00c", "\ue010", " "
_WIDE = """return [...document.querySelectorAll("#doc-content *")].filter((element) => {
    const box = element.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1) return false;
    for (let parent = element.parentElement; parent; parent = parent.parentElement)
      if (getComputedStyle(parent).overflowX !== "visible" && parent !== document.documentElement && parent !== document.body) return false;
    return true; }).slice(0, 3).map((element) => `${element.tagName} ${element.className}`).concat(
    document.documentElement.scrollWidth > innerWidth ? ["the page"] : [])"""


class Visit:
    def __init__(self, firefox, address):
        self.firefox, self.address, self.faults = firefox, address, []

    def fault(self, sentence):
        self.faults.append(sentence)

    def open(self, page):
        self.firefox.open(f"{self.address}/{page}.html")

    def wait_for(self, script, *arguments):
        for _ in range(100):
            if self.firefox.script(f"return {script}", *arguments):
                return True
            time.sleep(0.05)
        return False

    def fits(self):
        for size in (WIDE, NARROW):
            self.firefox.set_size(*size)
            for page in ("index", LESSON):
                self.open(page)
                for element in self.firefox.script(_WIDE):
                    self.fault(f"{page}, {size[0]}: too wide because of {element}")
        self.firefox.set_size(*WIDE)
        self.open("index")
        if not self.firefox.script("return document.querySelector('ol.mw-journey').getBoundingClientRect().bottom < innerHeight && "
                                   "document.querySelector('.mw-start-button').getBoundingClientRect().bottom < innerHeight"):
            self.fault("index: the first screen lacks the journey or the button")

    def search(self):
        self.open("index")
        self.firefox.press("/")
        if not self.wait_for("document.documentElement.dataset.search === 'ready'"):
            self.fault("index: the key / does not begin a search")
            return
        self.firefox.press(*"dp gather")
        if not self.wait_for("document.getElementById('mw-search-results').dataset.query === 'dp gather'"):
            self.fault("index: the search does not answer")
        self.firefox.press(ENTER)
        if not self.wait_for(f"location.pathname.endsWith('/{LESSON}.html')"):
            self.fault(f"index: a search for dp gather does not lead to {LESSON}")

    def lesson(self):
        self.open(LESSON)
        self.firefox.script("localStorage.clear()")
        self.open(LESSON)
        self.firefox.script("document.querySelector('.mw-plain-switch').focus()")
        self.firefox.press(SPACE)
        self.firefox.script(f"document.querySelector('#{LESSON}_reveal_output summary').focus()")
        self.firefox.press(ENTER)
        self.open(LESSON)
        if not self.firefox.script("return document.documentElement.classList.contains('mw-plain') && "
                                   f"document.getElementById('{LESSON}_reveal_output').open && ![...document.querySelectorAll("
                                   "'.textblock > div.fragment .line')].some((line) => line.textContent.startsWith('int main') && line.checkVisibility())"):
            self.fault(f"{LESSON}: the plain program, or what was opened, is not remembered")
        self.firefox.script("localStorage.clear()")
        self.firefox.script("document.querySelector('a.mw-word').focus()")
        if not self.wait_for("document.getElementById('mw-tip') && !document.getElementById('mw-tip').hidden && document.getElementById("
                             "'mw-tip').textContent.length > 30"):
            self.fault(f"{LESSON}: a word does not say what it means")
        self.firefox.press(ESCAPE)
        self.firefox.script(f"document.getElementById('{LESSON}_the_cost').closest('h2').scrollIntoView()")
        if not self.wait_for(f"document.querySelector('#mw-side [aria-current=location]')?.hash === '#{LESSON}_the_cost'"):
            self.fault(f"{LESSON}: the section that is read is not marked")

    def player(self):
        self.open(LESSON)
        if not self.wait_for("document.querySelector('.muonwalk-player')?.dataset.frames"):
            self.fault(f"{LESSON}: the player is not ready")
            return
        self.firefox.script("document.querySelector('.muonwalk-player').focus()")
        self.firefox.press(END)
        last = self.firefox.script("return JSON.parse(document.getElementById(document.querySelector('.muonwalk-player').dataset.recording)"
                                   ".textContent).steps.at(-1).number")
        if not self.wait_for("Number(document.querySelector('.muonwalk-player').dataset.step) === arguments[0]", last):
            self.fault(f"{LESSON}: the player does not go to its end")

    def all(self):
        self.fits()
        self.search()
        self.lesson()
        self.player()
        self.console()

    def console(self):
        """What has come since the last time; Firefox keeps all of it."""
        self.faults += [f"the console says: {message}" for message in self.firefox.console() if self.address in message]


BROKEN = [
    ("code wider than the window", "muonwalk.css", lambda text: text + "\ndiv.fragment, pre.fragment { overflow: visible !important; width: 2000px; }",
     Visit.fits, "too wide because of"),
    ("an index that is cut off", "search_index.js", lambda text: text[:len(text) // 2], Visit.search, "does not begin a search"),
    ("choices that are forgotten", "lesson.js", lambda text: text.replace("localStorage.setItem(key, value)", "value.length"),
     Visit.lesson, "is not remembered"),
    ("words without a meaning", "words.js", lambda text: text.replace('addEventListener("focus"', 'addEventListener("focused"'),
     Visit.lesson, "does not say what it means"),
    ("a player that is missing", "player.js", lambda text: "\"use strict\";\n", Visit.player, "is not ready"),
    ("a script that fails", "shell.js", lambda text: text + "\nthrow new Error('broken');",
     lambda visit: (visit.open("index"), visit.console()), "the console says: Error: broken"),
]


def main(site):
    faults = []
    for dark in (False, True):
        with headless_firefox(dark) as firefox, served(site) as address:
            firefox.set_size(*WIDE)
            for where in (site.as_uri(), address):
                visit = Visit(firefox, where)
                visit.all()
                scheme = "dark" if dark else "light"
                if firefox.script("return matchMedia('(prefers-color-scheme: dark)').matches") != dark:
                    visit.fault(f"Firefox does not show it in the {scheme}")
                faults += [f"{where.split(':')[0]}, {scheme}: {sentence}" for sentence in visit.faults]
            if dark:
                continue

            def look(folder, check):
                """Served, for from files Firefox would follow the links of the copy to the site itself."""
                with served(folder) as of_copy:
                    visit = Visit(firefox, of_copy)  # noqa: B023
                    check(visit)
                    return visit.faults

            faults += not_noticed(site, BROKEN, look)
    for sentence in faults:
        print(sentence)
    print(f"the start page and {LESSON} in Firefox, {len(BROKEN)} broken copies: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "index.html").exists():
        sys.exit("firefox_test.py takes the folder of the built site")
    sys.exit(main(Path(sys.argv[1]).resolve()))
