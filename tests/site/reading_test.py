#!/usr/bin/env python3
"""Holds pages of the built site, in a real browser, to what it takes to read them.

    reading_test.py SITE

Text and code have a contrast of at least 4.5 : 1, in the light and in the dark, and the first press of the tab key leads to a link
that skips the navigation. A line of a lesson's prose has about 70 letters, while its code has all the room. On a phone
no picture, drawing or graph is cut. On copies of the site in which one of these
things is broken, the same checks have to fail.
"""

import re

from broken_copies import looking, site_test
from contrast import low_contrast
from headless_browser import set_media, set_size

# The start page, lessons with a player and without one, pages of docs/, and of the API a class, a struct and a source.
PAGES = ["index", "lesson_04_dp_gather", "lesson_09_full_step", "lesson_13_byte_ledger", "lesson_16_strategies", "md_docs_design",
         "md_docs_glossary", "classmuonwalk_1_1AdamW", "structmuonwalk_1_1Buffer", "adamw_8hpp_source"]

DESKTOP = (1400, 900)
TAB, ENTER = "\ue004", "\ue007"


class Reading:
    def __init__(self, browser, site):
        self.browser, self.site, self.faults = browser, site, []

    def open(self, page):
        self.browser.get((self.site / f"{page}.html").as_uri())

    def contrast(self, pages):
        for scheme in ("light", "dark"):
            set_media(self.browser, prefers_color_scheme=scheme)
            for page in pages:
                self.open(page)
                self.faults += [f"{page}, {scheme}: {sentence}" for sentence in low_contrast(self.browser)]
        set_media(self.browser)

    def skip_link(self, pages):
        for page in pages:
            self.open(page)
            self.browser.find_element("css selector", "body").send_keys(TAB)
            seen = self.browser.execute_script("""
              const link = document.activeElement, box = link.getBoundingClientRect();
              return link.className === "mw-skip" && box.top >= 0 && box.bottom < innerHeight && box.left >= 0""")
            self.browser.switch_to.active_element.send_keys(ENTER)
            arrived = self.browser.execute_script("return document.activeElement.id")
            if not seen or arrived != "doc-content":
                self.faults.append(f"{page}: the first tab does not show a link that skips the navigation, or it leads to \"{arrived}\"")

    def width(self, lessons):
        for page in lessons:
            self.open(page)
            long, widest, code = self.browser.execute_script("""
              const canvas = document.createElement("canvas").getContext("2d");
              const prose = [...document.querySelectorAll(".textblock p, .textblock li")].filter((element) =>
                !element.closest(".muonwalk-player, nav") && element.checkVisibility() && element.textContent.trim().length > 160);
              const letters = prose.map((element) => {
                const style = getComputedStyle(element), text = element.textContent.replace(/\\s+/g, " ").trim();
                canvas.font = `${style.fontSize} ${style.fontFamily}`;
                const inside = element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
                return [Math.round(inside / (canvas.measureText(text).width / text.length)), text.slice(0, 40)];
              });
              const code = [...document.querySelectorAll(".textblock > div.fragment, .textblock > pre")];
              return [letters.filter(([count]) => count > 80), Math.max(0, ...letters.map(([count]) => count)),
                      Math.min(...code.map((element) => element.getBoundingClientRect().width))];""")
            self.faults += [f'{page}: "{text} …" has lines of {count} letters, and should have about 70' for count, text in long]
            if widest < 60:
                self.faults.append(f"{page}: the longest lines of its prose have {widest} letters, and should have about 70")
            if code < 900:
                self.faults.append(f"{page}: there is code that has {code} pixels instead of all the room")

    def phone(self, pages):
        set_size(self.browser, 390, 844)
        for page in pages:
            self.open(page)
            self.faults += self.browser.execute_script("""
              const shown = [...document.querySelectorAll("figure, pre.fragment, .mw-graph")].filter((element) => element.checkVisibility());
              return shown.filter((element) => element.scrollWidth > element.clientWidth + 1 ||
                                               element.getBoundingClientRect().right > innerWidth + 1).map((element) =>
                `${arguments[0]}, phone: ${element.tagName} ${element.className} is cut: ${element.scrollWidth} pixels in ${element.clientWidth}`)""",
                page)
            if not self.browser.execute_script("""
              for (const fold of document.querySelectorAll(".mw-before")) fold.open = true;
              return [...document.querySelectorAll('.mw-graph, .mw-graph-words')].some((element) => element.checkVisibility())"""):
                self.faults.append(f"{page}, phone: does not say which lesson builds on which")
        set_size(self.browser, *DESKTOP)


# What is broken, in which file and how, by which check it has to be noticed, and what that check says.
BROKEN = [
    ("comments as grey as they were", "muonwalk.css",
     lambda text: re.sub(r"--fragment-comment: #\w+", "--fragment-comment: #969696", text, count=1),
     lambda reading: reading.contrast(["lesson_04_dp_gather"]), "span.comment"),
    ("a skip link that can't be seen", "muonwalk.css",
     lambda text: text.replace("a.mw-skip:focus { top: 0.5rem; }", ""),
     lambda reading: reading.skip_link(["index"]), "does not show a link"),
    ("prose as wide as the window", "muonwalk.css", lambda text: text.replace("max-width: 58ch", "max-width: none"),
     lambda reading: reading.width(["lesson_04_dp_gather"]), "and should have about 70"),
    ("code as narrow as prose", "muonwalk.css", lambda text: text.replace(".textblock > p,", ".textblock > p, .textblock > div.fragment,", 1),
     lambda reading: reading.width(["lesson_04_dp_gather"]), "instead of all the room"),
]


def check(browser, site, _):
    reading = Reading(browser, site)
    reading.contrast(PAGES)
    reading.skip_link(PAGES)
    reading.width([page for page in PAGES if page.startswith("lesson")])
    reading.phone(["index"] + sorted(path.stem for path in site.glob("lesson_[0-9][0-9]_*.html")))
    return reading.faults


if __name__ == "__main__":
    site_test(DESKTOP, check, BROKEN, lambda browser: looking(browser, lambda folder: Reading(browser, folder)))
