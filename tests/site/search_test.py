#!/usr/bin/env python3
"""Searches the built site in a real browser, from file://, as a reader would.

    search_test.py SITE

Queries have to find their lessons, by the keyboard alone; each answer within a tenth of a second of the browser's own time. On copies with a broken index or without the page that a query
looks for, the same checks have to fail.
"""

import re
import time

from broken_copies import looking, site_test
from headless_browser import console_faults, request_faults

DOWN, UP, ENTER, ESCAPE = "\ue015", "\ue013", "\ue007", "\ue00c"
# What is typed, what has to be found, and among how many of the first.
QUERIES = [("virtual buffer", ["lesson_03_virtual_buffer"], 1),
           ("dp gather", ["lesson_04_dp_gather"], 1),
           ("ZeRO-1", ["lesson_11_zero1_adamw", "lesson_13_byte_ledger", "lesson_14_memory"], 3),
           ("newton schulz", ["lesson_06_newton_schulz"], 1),
           ("colectives", ["lesson_02_collectives"], 1),   # with a letter missing
           ("pipel", ["lesson_19_pipeline_3d"], 1),        # while it is being typed
           ("five laws", ["md_docs_design"], 1),
           ("newton schulz qqqzzz", ["lesson_06_newton_schulz"], 3),  # no section has all words
           ("full_step", ["function_full_step"], 1)]
SLOWEST_MS = 2000


class Search:
    def __init__(self, browser, site):
        self.browser, self.site, self.faults = browser, site, []

    def fault(self, where, sentence):
        self.faults.append(f"{where}: {sentence}")

    def press(self, *keys):
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)

    def wait_for(self, script, *arguments):
        """True as soon as the page says so; False after some seconds, in which it would have."""
        for _ in range(300):
            if self.browser.execute_script(f"return {script}", *arguments):
                return True
            time.sleep(0.05)
        return False

    def open(self, page):
        """Opens a page and goes to the search by the key that is made for it; False when there is no search."""
        self.browser.get((self.site / page).as_uri())
        self.browser.find_element("css selector", "body").send_keys("/")
        if not self.browser.execute_script("return document.activeElement.id === 'mw-search-field'"):
            self.fault(page, "the key / does not lead to the search")
            return False
        if not self.wait_for("document.documentElement.dataset.search === 'ready'"):
            self.fault(page, "the search does not begin: " +
                       self.browser.execute_script("return document.getElementById('mw-search-status').textContent"))
            return False
        return True

    def ask(self, query):
        """The files that are found, best first."""
        self.browser.execute_script("document.getElementById('mw-search-field').value = ''")
        self.press(query)
        self.wait_for("document.getElementById('mw-search-results').dataset.query === arguments[0]", query)
        found, took = self.browser.execute_script("""
          const list = document.getElementById("mw-search-results");
          return [list.hidden ? [] : [...list.children].map((link) => link.getAttribute("href")), Number(list.dataset.took)]""")
        if took > SLOWEST_MS:
            self.fault(query, f"took {took:.0f} ms, and may take {SLOWEST_MS}")
        return [re.sub(r"\.html(#.*)?$", "", address) for address in found]

    def queries(self):
        if not self.open("index.html"):
            return
        for query, wanted, first in QUERIES:
            found = self.ask(query)
            if not set(found[:first]) & set(wanted):
                self.fault(query, f"should find one of {wanted} among the first {first}, and found {found[:5]}")
            without = self.browser.execute_script("""
              return [...document.querySelectorAll("#mw-search-results a")].filter(
                (link) => !link.querySelector(".mw-search-snippet").textContent && !link.querySelector(".mw-search-heading").textContent
              ).map((link) => link.href)""")
            if without:
                self.fault(query, f"has results that show nothing of the page: {without}")
        if self.ask("qqqzzzxxx") or "Nothing was found" not in self.browser.find_element("css selector", "#mw-search-status").text:
            self.fault("qqqzzzxxx", "should find nothing, and say so")

    def keys(self):
        """Arrow keys choose, Escape closes, and Enter opens the page that is chosen, at its section."""
        if not self.open("lesson_09_full_step.html"):
            return
        self.ask("dp gather")
        chosen = "[...document.querySelectorAll('#mw-search-results a')].findIndex((link) => link.ariaSelected === 'true')"
        seen = [self.browser.execute_script(f"return {chosen}")]
        for key in (DOWN, DOWN, UP):
            self.press(key)
            seen.append(self.browser.execute_script(f"return {chosen}"))
        if seen != [0, 1, 2, 1]:
            self.fault("dp gather", f"arrow keys chose {seen} instead of [0, 1, 2, 1]")
        self.press(ESCAPE)
        if self.browser.find_element("css selector", "#mw-search-results").is_displayed():
            self.fault("dp gather", "Escape does not close the results")
        self.browser.find_element("css selector", "body").send_keys("/")
        self.ask("dp gather")
        self.press(ENTER)
        if not self.wait_for("location.pathname.endsWith('/lesson_04_dp_gather.html')"):
            self.fault("dp gather", "Enter does not open what is chosen")

    def console(self):
        for sentence in console_faults(self.browser) + request_faults(self.browser):
            self.fault("the browser", sentence)


INDEX = "search_index.js"
BROKEN = [
    ("a truncated index", INDEX, lambda text: text[:len(text) // 2], Search.queries, "does not begin"),
    ("an index without lesson 03", INDEX, lambda text: text.replace("lesson_03_virtual_buffer.html", "x.html", 1), Search.queries,
     "virtual buffer:"),
    ("an index whose words are gone", INDEX, lambda text: re.sub(r"(?i)gather", "rehtag", text), Search.queries, "dp gather:"),
]


def check(browser, site, _):
    search = Search(browser, site)
    search.queries()
    search.keys()
    search.console()
    return search.faults


if __name__ == "__main__":
    site_test((1280, 900), check, BROKEN, lambda browser: looking(browser, lambda folder: Search(browser, folder)))
