"""All that a player shows of runs made by hand, in every frame and of whatever is pointed at, is what is kept in tests/golden."""

import re

from page_lines import DO, LINES, changed, expect_kept
from player_page import PlayerPage, block, by_hand, gathered_bucket, matrix, message

PLAYER = 'const player = document.querySelector(".muonwalk-player");'
IN_EVERY_FRAME = ["focus('.player-numbers td', 2)", "key('ArrowLeft', document.activeElement)", "key('ArrowDown', document.activeElement)",
                  "press('.player-block', 1)", "press('[data-rank=\"1\"] .player-block', 1)", "focus('.player-numbers td', 3)", "point('.player-stage:not(.player-small) .player-map', 0.9, 0.9)",
                  "point('.player-stage:not(.player-small) [data-rank=\"1\"] .player-map', 0.1, 0.1)"]
AT_THE_END = ["press('.player-badge', 1)", "press('.player-badge', 1)", "press('.player-tab', 0)", "press('.player-tab', 1)",
              "press('.player-tab', 2)", "press('.player-tab', 3)", "press('.player-follow')", "key('Home')", "press('.player-tick', 1)",
              "press('.player-badge', 0)", "key('End')", "key('x')"]


def sums():
    """Three ranks reduce, scatter, and gather again; what is sent over a second call has no block of its own."""
    whole = [[block("g", 0, 0, 6, 6, note="before <it>"), matrix("a", 1, 2, 2, values=["nan", 1e-9, -2.5, 12345.678])] for _ in range(3)]
    parts = [[block("g", 0, 2 * rank, 2 * rank + 2, 6)] for rank in range(3)]
    scattered = [message(a, b, 2, "reduce_scatter") for a in range(3) for b in range(3) if a != b]
    gathered = [message(a, b, 2) for a in range(3) for b in range(3) if a != b]
    lost = [message(0, 1, 5, "broadcast"), message(2, 1, 1, "broadcast"), message(0, 1, 3, "all_reduce", group="tp")]
    made = by_hand([([], whole), (scattered, parts), (gathered + lost, [[block("g", 0, 0, 6, 6)], [block("g", 0, 0, 6, 6, values=None)], []])],
                   dp=3, tensors=(("g", 2), ("a", 5)))
    made["steps"][2]["says"] = [["one", "two", "three", "four"], [], ["a < b"]]
    made["steps"][2]["real"] = {"messages": 1, "bytes": 1234567}
    return made


def slices():
    """Two ranks hold columns and rows of a matrix, and gather it."""
    def cut(name, tensor, unit, rank):
        rows, cols = (2, 3) if unit == "columns" else (1, 6)
        first, of = (3 * rank, 6) if unit == "columns" else (rank, 2)
        return {**matrix(name, tensor, rows, cols), "unit": unit, "begin": first, "end": first + (3 if unit == "columns" else 1), "of": of}

    held = [[cut("w", 0, "columns", rank), cut("v", 1, "rows", rank), block("none", 2, 0, 3000, 3000, values=None, digest="0123")] for rank in range(2)]
    gathered = [[matrix("w", 0, 2, 6), matrix("v", 1, 2, 6)] for _ in range(2)]
    moves = [message(0, 1, 6), message(1, 0, 6), message(0, 1, 6, call=1), message(1, 0, 6, call=1)]
    return by_hand([([], held), (moves, gathered), ([message(0, 1, 6, "send", group="pp")] * 9, [[], [cut("w", 0, "columns", 0)]])],
                   tensors=(("w", 0), ("v", None), ("none", 1)))


class Kept(PlayerPage):
    def lines(self):
        return self.script(LINES + PLAYER + "add(player, 0); return lines")

    @staticmethod
    def short(lines):
        """Without the label of the player itself, which stays."""
        return (re.sub(r'<div aria-label="a run of .*?" (.*) role="group" tabindex="0">', r"<player \1>", line) for line in lines)

    def shown(self, name, recording):
        """What the player shows at first, and what each deed changes of it."""
        self.open({**recording, "lesson": {"number": "77", "title": "Stand-in"}, "before": ["Lesson 77", "", "", "about"], "after": ["OK"]},
                  body='<div style="height:3000px"></div><p data-mw-steps="1">one</p><p data-mw-steps="2 3">two</p><p data-mw-steps=""></p>')
        self.settle()
        before = self.lines()
        text = [f"=== {name}", *before]
        frames = int(self.one(".muonwalk-player").get_dom_attribute("data-frames"))
        for deed in [deed for _ in range(frames) for deed in [*IN_EVERY_FRAME, "key('ArrowRight')"]] + AT_THE_END:
            self.script(LINES + PLAYER + DO.replace("ROOT", "player") + deed)
            now = self.lines()
            text += [f"--- {deed}", *self.short(changed(before, now))]
            before = now
        return text

    def test_every_frame(self):
        # Whatever other tests have done to the window, this page has the focus.
        self.browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setFocusEmulationEnabled", {"enabled": False})
        text = []
        for name, recording in (("a bucket", gathered_bucket()), ("sums", sums()), ("slices", slices())):
            text += self.shown(name, recording)
        expect_kept(self, "player.txt", text)
