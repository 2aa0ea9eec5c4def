#!/usr/bin/env python3
"""Opens the built site in a real browser, as a reader would: every page of a lesson, on a desktop and on a phone.

    browse_site.py SITE_DIR BUILD_BIN [--screenshots DIR]

It fails when the console shows an error, a request fails or leaves the site's files, a page is wider than the window, a
hint does not open on a click, a player is missing or can't be played to its end with the keyboard, changes its height or
has a label beside which its map shows something else, marks the same lines for two phases, does not follow the text, or shows other
numbers in its last frame than the program writes.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/make"))
from lesson_source import lessons_in_order, toy_arguments  # noqa: E402
from headless_browser import console_faults, headless_browser, request_faults, set_media, set_size, too_wide
from player_stage_test import labels_that_differ

SIZES = {"desktop": (1400, 1000), "tablet": (1000, 800), "phone": (390, 844)}
SCHEMES = {"desktop": "light", "tablet": "dark", "phone": "light"}
PHASES = "lesson_09_full_step"    # the lesson whose phases are lines of one function
RIGHT, LEFT, HOME, END, ENTER = "\ue014", "\ue012", "\ue011", "\ue010", "\ue007"


class Visit:
    """What was checked, and what was wrong, each with the page and the size at which it was."""

    def __init__(self, browser, screenshots):
        self.browser, self.screenshots = browser, screenshots
        self.where, self.faults = "", []
        self.counts = dict.fromkeys(("pages", "hints", "players", "frames", "numbers", "marks"), 0)

    def fault(self, sentence):
        self.faults.append(f"{self.where}: {sentence}")

    def open(self, page, size):
        self.where = f"{page.name}, {size}"
        set_size(self.browser, *SIZES[size])
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
        # "On this page" is a menu that lies over the text while it is open; shell_test.py opens it.
        for hint in self.browser.find_elements("css selector", ":not(nav) > details:not([open])"):
            summary = hint.find_element("css selector", "summary")
            if not summary.is_displayed():
                continue
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", summary)
            by_key = hint.get_attribute("class") == "mw-reply"  # answers by the keyboard, everything else by the mouse
            summary.send_keys(ENTER) if by_key else summary.click()
            self.counts["hints"] += 1
            if hint.get_attribute("open") is None:
                self.fault(f'"{summary.text}" does not open {"on the enter key" if by_key else "on a click"}')

    def play(self, every_frame):
        """Plays the page's player with the keyboard from its first frame to its last, or, where that was done at another size, its
        first two frames and its last two; returns it, or None."""
        players = self.browser.find_elements("css selector", ".muonwalk-player")
        if len(players) != 1:
            self.fault(f"there should be one player, and there are {len(players)}")
            return None
        player = players[0]
        if player.get_dom_attribute("data-frames") is None:
            self.fault(f"the player is not ready: {player.text or 'it is empty'}")
            return None
        recording = json.loads(self.browser.execute_script(
            "return document.getElementById(arguments[0].dataset.recording).textContent", player))
        expected = [(step["number"], phase) for step in recording["steps"]
                    for phase in (["moves"] if step["moves"] else []) + ["holds"]]
        self.browser.execute_script("arguments[0].focus()", player)
        keys = [HOME] + [RIGHT] * (len(expected) - 1)
        if not every_frame and len(expected) > 4:
            keys, expected = [HOME, RIGHT, END, LEFT, RIGHT], [*expected[:2], expected[-1], expected[-2], expected[-1]]
        seen, heights = [], set()
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)
            step, phase, height, wide = self.browser.execute_script("""
              const player = document.querySelector(".muonwalk-player"), content = document.getElementById("doc-content");
              return [Number(player.dataset.step), player.dataset.phase, player.offsetHeight, content.scrollWidth > content.clientWidth];""")
            seen.append((step, phase))
            heights.add(height)
            for element in too_wide(self.browser) if wide else []:
                self.fault(f"frame {seen[-1]} of the player makes the page too wide because of {element}")
            for sentence in labels_that_differ(self.browser):
                self.fault(f"frame {seen[-1]} of the player: block {sentence}")
        if len(heights) != 1:
            self.fault(f"the player has the heights {sorted(heights)}")
        if seen != expected:
            self.fault(f"the player's frames should be {expected}, and it showed {seen}")
        shown = self.browser.execute_script("return document.querySelector('.player-lines').textContent")
        self.counts["frames"] += len(seen)
        for line in recording["steps"][-1]["lines"]:
            if line.strip() and line.strip() not in shown:
                self.fault(f'the last frame does not show the printed line "{line}"')
        self.counts["players"] += 1
        if self.screenshots:
            self.browser.execute_script("arguments[0].scrollIntoView()", player)
            self.browser.save_screenshot(str(self.screenshots / f"{self.where.replace('.html, ', '_')}_player.png"))
        return player

    def compare_recorded(self, recorded):
        """The numbers of the last frame, block by block, with those that the program writes when it is run once more."""
        last = recorded["steps"][-1]
        for rank, blocks in enumerate(last["holds"]):
            for item, block in enumerate(blocks):
                shown = self.browser.execute_script("""
                  document.querySelector(`.player-stage:not(.player-small) [data-key="${arguments[0]}"]`).focus();
                  return [...document.querySelectorAll(".player-numbers td[data-value]")].map((cell) => cell.dataset.value)""",
                                                    f"{rank}/{item}")
                wanted = self.browser.execute_script("return arguments[0].map(String)", block["values"] or [])
                if shown != wanted:
                    self.fault(f"the last frame shows {shown[:4]}… of {block['name']} on rank {rank}, and the program has {wanted[:4]}…")
                self.counts["numbers"] += len(shown)

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


def recorded_run(program, folder):
    """What the program records in a run of its own, of the kind that the player shows."""
    path = Path(folder) / "recording.json"
    arguments = toy_arguments(Path(__file__).resolve().parents[2], program.name)
    subprocess.run([program, *arguments, "--record", path], capture_output=True, check=True, timeout=300)
    return json.loads(path.read_text(encoding="utf-8"))


def browse(site, bin_folder, screenshots):
    lessons = sorted(page for page in site.glob("lesson_*.html") if re.fullmatch(r"lesson_\d\d_\w+\.html", page.name))
    root = Path(__file__).resolve().parents[2]
    missing = {lesson.name for lesson in lessons_in_order(root)} - {page.stem for page in lessons}
    if missing or not (site / "index.html").exists():
        what = f"pages of {', '.join(sorted(missing))}" if missing else "start page"
        sys.exit(f"browse_site.py: {site} has no {what}; ./walk docs builds the site")
    with headless_browser() as browser, tempfile.TemporaryDirectory() as folder:
        runs = {page.stem: recorded_run(bin_folder / page.stem, folder) for page in lessons}
        visit = Visit(browser, screenshots)
        for size in SIZES:
            for page in [site / "index.html", *lessons]:
                visit.open(page, size)
                set_media(browser, prefers_color_scheme=SCHEMES[size], prefers_reduced_motion="reduce")
                if size != "tablet":
                    visit.open_hints()
                if page.stem in runs and visit.play(every_frame=size == "desktop"):
                    if size != "tablet":
                        visit.compare_recorded(runs[page.stem])
                        marked = visit.read()
                        if page.stem == PHASES:
                            check_phases(visit, marked)
                visit.close(page, size)
    for sentence in visit.faults:
        print(sentence)
    print("browsed " + ", ".join(f"{count} {what}" for what, count in visit.counts.items()) +
          f" at {' and '.join(f'{wide} × {high}' for wide, high in SIZES.values())}: {len(visit.faults)} faults")
    return 1 if visit.faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("bin", type=Path)
    parser.add_argument("--screenshots", type=Path)
    options = parser.parse_args()
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    sys.exit(browse(options.site.resolve(), options.bin.resolve(), options.screenshots))
