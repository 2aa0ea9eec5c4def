#!/usr/bin/env python3
"""Holds what stands around the text of the built site to what a reader relies on, in a real browser.

    shell_test.py SITE

The navigation lists all lessons and marks the section that is read; on a phone it is a menu, and "On this page" is folded at the top.
The first screen of the start page and of a lesson is what it should be. Old addresses of the API lead to where its entries are, and
no page of it is too long to be read. From file:// and, where that may differ, served over http; at three widths, in the light and in the dark,
without a word on the console. On copies of the site in which one of these things is broken, the same checks have to fail.
"""

import re
import time

from broken_copies import site_test
from headless_browser import console_faults, set_size

WIDE, PHONE, LOW = (1400, 1000), (390, 844), (1400, 500)
PAGES = ["index", "lesson_00_hello_ranks", "lesson_04_dp_gather", "lesson_09_full_step", "api", "function_full_step", "steps_8hpp",
         "md_docs_design", "md_docs_glossary", "classmuonwalk_1_1Communicator", "namespacemuonwalk_1_1sim"]
LESSON = "lesson_04_dp_gather"
LONGEST = 14_500  # pixels of a page of the API at 1400; a namespace on one page had 39,000
ENTER, ESCAPE, SPACE = "\ue007", "\ue00c", " "


class Shell:
    def __init__(self, browser, address):
        self.browser, self.address, self.faults = browser, address, []

    def fault(self, sentence):
        self.faults.append(sentence)

    def open(self, page, size=WIDE):
        set_size(self.browser, *size)
        name, _, anchor = page.partition("#")
        self.browser.get(f"{self.address}/{name}.html" + (f"#{anchor}" if anchor else ""))

    def ask(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def wait_for(self, script, *arguments):
        """True as soon as the page says so; False after some seconds, in which it would have."""
        for _ in range(300):
            if self.ask(script, *arguments):
                return True
            time.sleep(0.05)
        return False

    def press(self, key):
        self.browser.switch_to.active_element.send_keys(key)

    def navigation(self, lessons):
        """All lessons, always; one door to the API; the page that is open is marked."""
        for page in PAGES[:4] + ["api"]:
            self.open(page)
            shown = self.ask("[...document.querySelectorAll('#mw-side .mw-side-lessons > li > a')].filter((link) => "
                             "link.checkVisibility()).map((link) => link.getAttribute('href'))")
            if shown != [f"{lesson}.html" for lesson in lessons]:
                self.fault(f"{page}: the navigation should show all lessons, and shows {shown}")
            here = self.ask("[...document.querySelectorAll('#mw-side [aria-current=page]')].map((link) => link.getAttribute('href'))")
            if here != [f"{page}.html"]:
                self.fault(f"{page}: the navigation should mark this page, and marks {here}")
            doors = self.ask("document.querySelectorAll('#mw-side a[href=\"api.html\"]').length")
            others = self.ask("[...document.querySelectorAll('#mw-side a')].map((link) => link.getAttribute('href')).filter("
                              "(href) => /^(class|struct|namespace|function|annotated|files)/.test(href))")
            if doors != 1 or others:
                self.fault(f"{page}: the navigation should have one door to the API, and has {doors} and {others}")

    def tracking(self, page=LESSON, size=WIDE):
        """Scrolling to a section marks it, and the mark is in view."""
        self.open(page, size)
        anchors = self.ask("[...document.querySelectorAll('#mw-side .mw-sections a')].map((link) => link.hash.slice(1))")
        headings = self.ask("[...document.querySelectorAll('.textblock > h2 > .anchor')].map((anchor) => anchor.id)")
        if anchors != headings or len(anchors) < 8:
            self.fault(f"{page}: the navigation should have the sections {headings}, and has {anchors}")
        for anchor in anchors[1:-1]:
            self.ask("document.getElementById(arguments[0]).closest('h2').scrollIntoView()", anchor)
            if self.ask("innerHeight + scrollY >= document.documentElement.scrollHeight - 2"):
                break  # from here on the end of the page is read, whose section is the last one
            if not self.wait_for("document.querySelector('#mw-side .mw-sections [aria-current=location]')?.hash === '#' + arguments[0]",
                                 anchor):
                marked = self.ask("document.querySelector('#mw-side .mw-sections [aria-current]')?.hash")
                self.fault(f"{page}: when {anchor} is read, the navigation marks {marked}")
                return
            if not self.ask("(() => { const box = document.querySelector('#mw-side .mw-sections [aria-current]').getBoundingClientRect();"
                            " return box.top >= 0 && box.bottom <= innerHeight; })()"):
                self.fault(f"{page}: the mark of {anchor} is out of view")

    def on_a_phone(self, page=LESSON):
        """The navigation is a menu; "On this page" stays at the top, folded, and says what is read."""
        self.open(page, PHONE)
        shown = "document.getElementById('mw-side').checkVisibility()"
        if self.ask(shown):
            self.fault(f"{page}, phone: the menu is open from the start")
        menu = self.browser.find_element("css selector", ".mw-menu")
        menu.send_keys(ENTER)
        if not self.ask(shown) or menu.get_attribute("aria-expanded") != "true":
            self.fault(f"{page}, phone: Enter does not open the menu")
        self.press(ESCAPE)
        if self.ask(shown) or not self.ask("document.activeElement.className === 'mw-menu'"):
            self.fault(f"{page}, phone: Escape does not close the menu")
        menu.click()
        if not self.ask(shown):
            self.fault(f"{page}, phone: a click does not open the menu")
        menu.click()
        anchor = self.ask("[...document.querySelectorAll('nav.mw-contents a')][2].hash.slice(1)")
        summary = self.browser.find_element("css selector", "nav.mw-contents summary")
        if self.ask("document.querySelector('nav.mw-contents details').open"):
            self.fault(f"{page}, phone: On this page is not folded")
        self.ask("document.getElementById(arguments[0]).scrollIntoView()", anchor)
        title = self.ask("document.getElementById(arguments[0]).closest('h2').textContent.trim()", anchor)
        if not self.wait_for("document.querySelector('nav.mw-contents summary').textContent.includes(arguments[0])", title):
            self.fault(f'{page}, phone: On this page does not say that "{title}" is read, and says "{summary.text}"')
        box = self.ask("(({top, bottom}) => [top, bottom])(arguments[0].getBoundingClientRect())", summary)
        if not (-1 <= box[0] and box[1] <= 80):
            self.fault(f"{page}, phone: On this page does not stay at the top: it is at {box}")
        covered = self.ask("document.getElementById(arguments[0]).closest('h2').getBoundingClientRect().top < arguments[1] - 2", anchor, box[1])
        if covered:
            self.fault(f"{page}, phone: On this page covers the heading that it leads to")
        summary.click()
        self.browser.find_element("css selector", "nav.mw-contents li:nth-child(5) a").click()
        if self.ask("document.querySelector('nav.mw-contents details').open"):
            self.fault(f"{page}, phone: On this page stays open over the text that it leads to")

    def first_screen(self):
        """What is seen without scrolling."""
        for size in (WIDE, PHONE):
            self.open("index", size)
            low = self.ask("""[".mw-lead p", ".mw-start-button", ".mw-proof", "ol.mw-journey"].filter((selector) => {
                const element = document.querySelector(selector), box = element && element.getBoundingClientRect();
                return !box || !box.height || box.bottom > innerHeight || box.top < 0; })""")
            if low or self.ask("document.querySelectorAll('.mw-jarrow').length") < 4:
                self.fault(f"index at {size}: the first screen lacks {low or 'arrows between ranks'}")
            if self.ask("document.querySelectorAll('.mw-start-button').length") != 1:
                self.fault("index: there should be one button Start")
            self.open(LESSON, size)
            words = self.ask("""[...document.querySelectorAll(".textblock p")].filter((text) => text.checkVisibility() &&
                text.getBoundingClientRect().bottom < innerHeight).map((text) => text.textContent).join(" ").split(/\\s+/).length""")
            if words < 60:
                self.fault(f"{LESSON} at {size}: the first screen has {words} words of the lesson")
            if self.ask("[...document.querySelectorAll('.mw-graph, .mw-graph-words, .mw-includes .line')].some((each) => each.checkVisibility())"):
                self.fault(f"{LESSON} at {size}: the graph or the includes are not folded away")
        self.open(LESSON, WIDE)
        if self.ask("document.getElementById('lesson_04_dp_gather_the_idea').getBoundingClientRect().top > innerHeight"):
            self.fault(f"{LESSON}: The idea does not begin on the first screen")

    def api(self, site):
        """Functions with their sources, old addresses that lead on, and no page that nobody reads to its end."""
        lists = [path.name for path in site.glob("*.html")
                 if re.match(r"(annotated|classes|files|hierarchy|namespaces|functions|globals|namespacemembers|dir_)", path.name)]
        if lists:
            self.fault(f"the site has lists of all names: {lists[:5]}")
        self.open("api")
        keys = self.ask("[...document.querySelectorAll('ul.mw-functions a')].map((link) => link.textContent)")
        missing = {"full_step", "tp_gather", "dp_gather", "newton_schulz", "plan_layout", "tp_shard", "dp_shard"} - set(keys)
        if missing or len(keys) != len(set(keys)):
            self.fault(f"api: should lead once to each key function; it lacks {sorted(missing)}")
        for name in ("full_step", "tp_gather", "newton_schulz"):
            self.open(f"function_{name}")
            if not self.ask("[...document.querySelectorAll('div.fragment')].some((code) => code.textContent.includes(arguments[0] + '('))", name):
                self.fault(f"function_{name}: does not show its source")
        tags = (site.parent / "api.tag").read_text(encoding="utf-8") if (site.parent / "api.tag").exists() else ""
        old = re.search(r"<name>tp_gather</name>\s*<anchorfile>(namespacemuonwalk)\.html</anchorfile>\s*<anchor>(\w+)</anchor>", tags)
        anchor = old.group(2) if old else self.ask("document.querySelector('.memtitle').previousElementSibling.id")
        self.open(f"namespacemuonwalk#{anchor}")
        if not self.wait_for("/(function_\\w+|_8hpp)\\.html/.test(location.pathname) && Boolean(document.getElementById(location.hash.slice(1)))"):
            self.fault(f"namespacemuonwalk#{anchor}: does not lead to where that entry is now, but to {self.browser.current_url}")
        pages = sorted(site.glob("*.html"), key=lambda path: -path.stat().st_size)
        pages = [path.stem for path in pages if not path.name.startswith(("lesson_0", "lesson_1", "lesson_2"))][:25]
        for page in dict.fromkeys(pages + ["api"]):
            self.open(page)
            height = self.ask("document.documentElement.scrollHeight")
            if height > LONGEST:
                self.fault(f"{page}: is {height} pixels long, and may be {LONGEST}")

    def console(self):
        self.faults += [f"the console says: {message}" for message in console_faults(self.browser) if "favicon.ico" not in message]


LESSONS = []
BROKEN = [
    ("a navigation without a lesson", "index.html", lambda text: re.sub(r'<li data-progress="lesson_07.*?</li>', "", text, count=1),
     lambda shell: shell.navigation(LESSONS), "should show all lessons"),
    ("a mark that leaves the view", "shell.js", lambda text: text.replace("side.scrollTop +=", "side.scrollTop = 0; box.x +="),
     lambda shell: shell.tracking("lesson_22_nccl", LOW), "out of view"),
    ("contents that cover headings", "shell.css", lambda text: text.replace("scroll-padding-top: 3.4rem", "scroll-padding-top: 0"),
     lambda shell: shell.on_a_phone(), "covers the heading"),
    ("an old address that leads nowhere", "namespacemuonwalk.html", lambda text: text.replace("location.replace(to)", "to.length"),
     lambda shell: shell.api(shell.site), "does not lead to where that entry is now"),
    ("a script that fails", "shell.js", lambda text: text + "\nthrow new Error('broken');",
     lambda shell: (shell.open("index"), shell.console()), "broken"),
]


def look(browser):
    """Asks a check of a folder, from file://."""
    def looked(folder, check):
        shell = Shell(browser, folder.as_uri())
        shell.site = folder
        check(shell)
        browser.get("about:blank")
        console_faults(browser)
        return shell.faults

    return looked


def check(browser, site, address):
    LESSONS.extend(sorted(path.stem for path in site.glob("lesson_[0-9][0-9]_*.html")))
    of_files, served_ones = Shell(browser, site.as_uri()), Shell(browser, address)
    of_files.navigation(LESSONS)
    of_files.tracking()
    of_files.tracking("lesson_22_nccl", LOW)
    of_files.on_a_phone()
    of_files.first_screen()
    of_files.console()
    served_ones.navigation(LESSONS)
    served_ones.api(site)
    served_ones.console()
    return of_files.faults + [f"served: {sentence}" for sentence in served_ones.faults]


if __name__ == "__main__":
    site_test(WIDE, check, BROKEN, look)
