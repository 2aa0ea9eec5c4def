#!/usr/bin/env python3
"""Opens the built site in a real browser, as a reader would: every page of a lesson, on a desktop and on a phone.

    browse_site.py SITE_DIR [--screenshots DIR]

It fails when the console shows an error, a request fails or leaves the site's files, a page is wider than the window, a
hint does not open on a click, a player is missing or can't be played to its end with the keyboard, changes its height or
has a label beside which its map shows something else, marks the same lines for two phases, does not follow the text, or shows other
numbers in its last frame than the program has recorded.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/make"))
from lesson_source import lessons_in_order  # noqa: E402
from headless_browser import console_faults, headless_browser, request_faults, set_media, set_size, too_wide
from player_stage_test import LABELS_THAT_DIFFER

PIXELS = {"desktop": (1400, 1000), "tablet": (1000, 800), "phone": (390, 844)}
SIZES = [("desktop", "light"), ("tablet", "dark"), ("phone", "light")]
PHASES = "lesson_09_full_step"    # the lesson whose phases are lines of one function


class Visit:
    """What was checked, and what was wrong, each with the page and the size at which it was."""

    def __init__(self, browser, screenshots):
        self.browser, self.screenshots = browser, screenshots
        self.where, self.faults = "", []
        self.counts = dict.fromkeys(("pages", "hints", "players", "frames", "numbers", "marks"), 0)

    def fault(self, sentence):
        self.faults.append(f"{self.where}: {sentence}")

    def open(self, page, size, anew):
        self.where = f"{page.name}, {size}"
        set_size(self.browser, *PIXELS[size])
        if anew:
            self.browser.get(page.as_uri())
        self.counts["pages"] += 1

    def close(self, page, size):
        """What holds for every page, after all that was done on it."""
        for element in too_wide(self.browser):
            self.fault(f"the page is too wide because of {element}")
        for message in console_faults(self.browser):
            self.fault(f"the console says: {message}")
        for sentence in request_faults(self.browser):
            self.fault(sentence)
        if self.screenshots:
            self.browser.save_screenshot(str(self.screenshots / f"{page.stem}_{size}.png"))

    def open_hints(self):
        """Every hint lies open to a pointer, and opens on a click."""
        # "On this page" is a menu that lies over the text while it is open; shell_test.py opens it. lesson_test.py answers by keyboard.
        for words, hit, opened in self.browser.execute_script("""
            return [...document.querySelectorAll(":not(nav) > details:not([open])")].map((hint) => [hint, hint.querySelector("summary")])
              .filter(([, summary]) => summary.checkVisibility()).map(([hint, summary]) => {
                summary.scrollIntoView({block: "center", behavior: "instant"});
                const box = summary.getClientRects()[0];
                const hit = summary.contains(document.elementFromPoint(box.left + Math.min(box.width, 40) / 2, box.top + box.height / 2));
                summary.click();
                return [summary.textContent, hit, hint.open];
              });"""):
            self.counts["hints"] += 1
            if not hit or not opened:
                self.fault(f'"{words}" {"lies under something else" if not hit else "does not open on a click"}')

    def play(self, every_frame):
        """Plays the page's player with keys from its first frame to its last, or, where that was done at another size, its first two
        frames and its last two; returns whether there is one that could be played, and compares the last frame's numbers."""
        found = self.browser.execute_script("""
          const [player, ...more] = document.querySelectorAll(".muonwalk-player");
          if (!player || more.length || player.dataset.frames === undefined) return player ? player.textContent || "it is empty" : "there is none";
          player.focus();
          return JSON.parse(document.getElementById(player.dataset.recording).textContent);""")
        if isinstance(found, str):
            self.fault(f"there is not one player that is ready: {found[:200]}")
            return False
        expected = [[step["number"], phase] for step in found["steps"] for phase in (["moves"] if step["moves"] else []) + ["holds"]]
        keys = ["Home"] + ["ArrowRight"] * (len(expected) - 1)
        if not every_frame and len(expected) > 4:
            keys, expected = ["Home", "ArrowRight", "End", "ArrowLeft", "ArrowRight"], [*expected[:2], expected[-1], expected[-2], expected[-1]]
        frames, numbers, lines = self.browser.execute_async_script("const labels = " + LABELS_THAT_DIFFER + """;
          const [keys, done] = arguments, frame = () => new Promise((resolve) => requestAnimationFrame(resolve)), seen = [];
          const player = document.querySelector(".muonwalk-player"), content = document.getElementById("doc-content");
          (async () => {
            for (const key of keys) {
              document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
              await frame();
              seen.push([[Number(player.dataset.step), player.dataset.phase], player.offsetHeight, content.scrollWidth > content.clientWidth, labels()]);
            }
            const numbers = [], recording = JSON.parse(document.getElementById(player.dataset.recording).textContent);
            recording.steps[recording.steps.length - 1].holds.forEach((blocks, rank) => blocks.forEach((block, item) => {
              player.querySelector(`.player-stage:not(.player-small) [data-key="${rank}/${item}"]`).focus();
              const shown = [...player.querySelectorAll(".player-numbers td[data-value]")].map((cell) => cell.dataset.value);
              numbers.push([`${block.name} on rank ${rank}`, shown, (block.values || []).map(String)]);
            }));
            done([seen, numbers, player.querySelector(".player-lines").textContent]);
          })();""", keys)
        for shown, _, wide, labels in frames:
            if wide:
                self.fault(f"frame {shown} of the player makes the page too wide")
            for sentence in labels:
                self.fault(f"frame {shown} of the player: block {sentence}")
        if len({height for _, height, _, _ in frames}) != 1:
            self.fault(f"the player has the heights {sorted({height for _, height, _, _ in frames})}")
        if [shown for shown, _, _, _ in frames] != expected:
            self.fault(f"the player's frames should be {expected}, and it showed {[shown for shown, _, _, _ in frames]}")
        for line in found["steps"][-1]["lines"]:
            if line.strip() and line.strip() not in lines:
                self.fault(f'the last frame does not show the printed line "{line}"')
        for name, shown, wanted in numbers:
            if shown != wanted:
                self.fault(f"the last frame shows {shown[:4]}… of {name}, and the program had {wanted[:4]}…")
            self.counts["numbers"] += len(shown)
        self.counts["frames"] += len(frames)
        self.counts["players"] += 1
        if self.screenshots:
            self.browser.execute_script("document.querySelector('.muonwalk-player').scrollIntoView()")
            self.browser.save_screenshot(str(self.screenshots / f"{self.where.replace('.html, ', '_')}_player.png"))
        return True

    def read(self):
        """Scrolls through the text; every mark leads the player to one of its steps. Returns the lines marked in each step."""
        marked = {}
        marks = self.browser.execute_async_script("""
          const done = arguments[0], frame = () => new Promise((resolve) => requestAnimationFrame(resolve)), seen = [];
          const player = document.querySelector(".muonwalk-player");
          (async () => {
            for (const mark of document.querySelectorAll("[data-mw-steps]")) {
              let scroller = mark.parentElement;
              while (scroller !== document.documentElement && !/auto|scroll/.test(getComputedStyle(scroller).overflowY)) scroller = scroller.parentElement;
              scroller.scrollTop += mark.getBoundingClientRect().top - 0.48 * innerHeight;
              for (let left = 3; left; --left) await frame();
              seen.push([mark.dataset.mwSteps, player.dataset.step, !document.querySelector(".player-dock-body").hidden,
                         [...player.querySelectorAll(".player-code .player-marked")].map((line) => line.textContent)]);
            }
            done(seen);
          })();""")
        for mark, step, docked, lines in marks:
            if mark and (step not in mark.split() or not docked):
                self.fault(f"where the text of the steps {mark} begins, the player shows step {step}, and its dock is {'there' if docked else 'hidden'}")
            if mark:
                marked[int(step)] = lines
        self.counts["marks"] += len(marks)
        if not marks:
            self.fault("its text leads the player nowhere")
        return marked


def check_phases(visit, marked):
    """Each phase of lesson 09 has lines of its own, and they begin it."""
    phases = [tuple(lines) for step, lines in marked.items() if step > 2]
    if len(phases) != 9 or len(set(phases)) != 9 or not all(any("begin(phases::" in line for line in lines) for lines in phases):
        visit.fault(f"nine phases should have lines of their own, and {len(set(phases))} of {len(phases)} have")


def browse(site, screenshots):
    lessons = sorted(page for page in site.glob("lesson_*.html") if re.fullmatch(r"lesson_\d\d_\w+\.html", page.name))
    missing = {lesson.name for lesson in lessons_in_order(Path(__file__).resolve().parents[2])} - {page.stem for page in lessons}
    if missing or not (site / "index.html").exists():
        what = f"pages of {', '.join(sorted(missing))}" if missing else "start page"
        sys.exit(f"browse_site.py: {site} has no {what}; ./walk docs builds the site")
    with headless_browser() as browser:
        visit = Visit(browser, screenshots)
        for page in [site / "index.html", *lessons]:
            for size, scheme in SIZES:
                # A tablet is a window made narrower, a phone opens the page anew.
                visit.open(page, size, anew=size != "tablet")
                set_media(browser, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
                if size != "tablet":
                    visit.open_hints()
                if page in lessons and visit.play(every_frame=size == "desktop") and size != "tablet":
                    marked = visit.read()
                    if page.stem == PHASES:
                        check_phases(visit, marked)
                visit.close(page, size)
    for sentence in visit.faults:
        print(sentence)
    print("browsed " + ", ".join(f"{count} {what}" for what, count in visit.counts.items()) +
          f" at {' and '.join(f'{wide} × {high}' for wide, high in PIXELS.values())}: {len(visit.faults)} faults")
    return 1 if visit.faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--screenshots", type=Path)
    options = parser.parse_args()
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    sys.exit(browse(options.site.resolve(), options.screenshots))
