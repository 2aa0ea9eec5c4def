#!/usr/bin/env python3
"""Holds pages to what axe-core (third_party/axe-core) knows of accessibility, in a real browser, in the light and in the dark, on a
desktop and on a phone, served over http: the start page, lessons 04, 09 and 17, and a function of the API.

    axe_test.py SITE

No page may break a rule. On a page that is broken in one place, the rule that this breaks has to say so.
"""

import sys
from pathlib import Path

from headless_browser import console_faults, headless_browser, set_media, set_size
from served import served

AXE = Path(__file__).resolve().parents[2] / "third_party/axe-core/axe.min.js"
PAGES = ["index", "lesson_04_dp_gather", "lesson_09_full_step", "lesson_17_overlap", "function_full_step", "api"]
SIZES = {"desktop": (1400, 1000), "phone": (390, 844)}
_RUN = """
  const done = arguments[arguments.length - 1];
  axe.run(document, {resultTypes: ["violations"]}).then((result) => done({violations: result.violations.map((rule) => [rule.id,
    rule.nodes.length, rule.nodes.slice(0, 3).map((node) => node.target.join(" ") + ": " + node.html.slice(0, 90))]),
    passed: result.passes.length}), (error) => done({error: String(error)}));"""

# What is done to the page, and the rule that notices it.
BROKEN = [
    ("document.documentElement.removeAttribute('lang')", "html-has-lang"),
    ("document.querySelector('.textblock p').style.color = '#ddd'", "color-contrast"),
    ("document.querySelector('.textblock').append(document.createElement('img'))", "image-alt"),
]


def violations(browser):
    """[(rule, number of places, the first of them), …] of the page as it is."""
    if not browser.execute_script("return Boolean(window.axe)"):
        browser.execute_script(AXE.read_text(encoding="utf-8"))
    result = browser.execute_async_script(_RUN)
    if "error" in result or result["passed"] < 10:
        sys.exit(f"axe_test.py: axe-core could not look at {browser.current_url}: {result}")
    return result["violations"]


def main(site):
    faults, looked = [], 0
    with served(site) as address, headless_browser() as browser:
        browser.set_script_timeout(120)
        pages = {page: f"{address}/{page}.html" for page in PAGES}
        for size, pixels in SIZES.items():
            set_size(browser, *pixels)
            for scheme in ("light", "dark"):
                set_media(browser, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
                for page, opened in pages.items():
                    browser.get(opened)
                    # Folded text is looked at as well.
                    browser.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true;")
                    looked += 1
                    faults += [f"{page}, {size}, {scheme}: {rule} in {count} places: {places}"
                               for rule, count, places in violations(browser)]
        faults += [f"the console says: {message}" for message in console_faults(browser) if "favicon.ico" not in message]
        set_size(browser, *SIZES["desktop"])
        set_media(browser)
        for script, rule in BROKEN:
            browser.get(pages["lesson_17_overlap"])
            browser.execute_script(script)
            said = [violation[0] for violation in violations(browser)]
            if rule not in said:
                faults.append(f"after {script}, {rule} should be broken, and axe-core says {said}")
    for sentence in faults:
        print(sentence)
    print(f"{looked} looks at {len(pages)} pages, {len(BROKEN)} broken pages: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "index.html").exists():
        sys.exit("axe_test.py takes the folder of the built site")
    sys.exit(main(Path(sys.argv[1]).resolve()))
