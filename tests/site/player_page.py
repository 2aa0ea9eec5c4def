"""What all tests of docs/player share: recordings that the lessons write, or made by hand, and a page with a player of each."""

import json
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/make"))
from headless_browser import console_faults, request_faults, set_media, set_size  # noqa: E402
from player_script import player_script  # noqa: E402

RUNS = {"05": ("lesson_05_tp_gather",), "04": ("lesson_04_dp_gather",), "08": ("lesson_08_dp_shard",),
        "09": ("lesson_09_full_step", "--small", "--steps", "1")}
KEYS = {"right": "\ue014", "left": "\ue012", "up": "\ue013", "down": "\ue015", "home": "\ue011", "end": "\ue010", "tab": "\ue004",
        "space": " ", "enter": "\ue007"}
CODE = {"sources": [{"name": "first here", "html": '<div class="fragment"><div class="line">first(<b>rank</b>);</div>'
                                                   '<div class="line">gather();</div><div class="line">show();</div></div>'},
                    {"name": "second here", "html": '<div class="fragment"><div class="line">second();</div></div>'},
                    {"name": "library", "html": '<div class="fragment"><div class="line">a();</div><div class="line">b();</div></div>'}],
        "steps": [{"step": 1, "shown": [{"source": 0, "moves": [1], "holds": [2]}]},
                  {"step": 2, "shown": [{"source": 1, "moves": [0], "holds": [0]}, {"source": 2, "moves": [1], "holds": [0]}]}]}
PLACE = {}  # the folders player and bin, a folder of our own, and the browser: set by player_test.py


def record(number):
    """What this lesson records, as Python reads it."""
    path = PLACE["folder"] / f"{number}.json"
    if not path.exists():
        name, *options = RUNS[number]
        subprocess.run([PLACE["bin"] / name, *options, "--record", path], check=True, capture_output=True, timeout=300)
    return json.loads(path.read_text(encoding="utf-8"))


def frames_of(recording):
    """The frames that a reader should see: a step's messages, where it sends any, and what is held after it."""
    return [(step["number"], phase) for step in recording["steps"]
            for phase in (["moves"] if step["moves"] else []) + ["holds"]]


def script_json(identifier, text):
    """JSON as a page holds it for its scripts."""
    return f'<script type="application/json" id="{identifier}">' + text.replace("<", "\\u003c") + "</script>"


def printed(value):
    """A number as the lessons print it: they hold it as float32, of which the recording has the shortest digits."""
    return value if isinstance(value, str) else "%.4g" % struct.unpack("f", struct.pack("f", value))


def block(name, tensor, begin, end, of, **more):
    """A flat block of a recording made by hand: elements `begin` to `end` of `of`, with their places as numbers."""
    size = end - begin
    return {"name": name, "tensor": tensor, "rows": 1, "cols": size, "bytes": 4 * size, "flat": True, "unit": "elements", "begin": begin,
            "end": end, "of": of, "note": None, "values": list(range(begin, end)), "digest": None, "from": [], **more}


def matrix(name, tensor, rows, cols, **more):
    """A whole matrix of a recording made by hand."""
    return {**block(name, tensor, 0, rows * cols, rows * cols), "rows": rows, "cols": cols, "flat": False, "unit": "", "begin": 0, "end": 1,
            "of": 1, **more}


def message(sender, receiver, elements, collective="all_gather", call=0, group="dp"):
    return {"from": sender, "to": receiver, "group": group, "collective": collective, "type": "float32", "elements": elements,
            "bytes": 4 * elements, "call": call}


def by_hand(steps, dp=2, tensors=(("a", 0), ("b", 1), ("bucket", None))):
    """A recording of dp ranks with these steps, each (moves, [the blocks of each rank])."""
    recording = record("05")
    colours = [{"name": name, "colour": colour} for name, colour in tensors]
    ranks = [{"rank": rank, "label": f"rank {rank}  dp {rank}", "dp": rank, "tp": 0, "pp": 0} for rank in range(dp)]
    made = [{"number": number, "title": f"step {number}", "lines": [f"step {number}"], "moves": moves, "holds": holds,
             "says": [[] for _ in range(dp)]} for number, (moves, holds) in enumerate(steps, start=1)]
    return {**recording, "grid": {"dp": dp, "tp": 1, "pp": 1}, "ranks": ranks, "tensors": colours, "steps": made}


def gathered_bucket():
    """Two ranks gather a bucket of 12 elements, a of 2 × 3, two of padding, b of 2 × 2, and view the matrices in it."""
    spans = [[0, 0, 6, 0], [1, 8, 12, 0]]
    shards = [[block("bucket", 2, 0, 6, 12, spans=[[0, 0, 6, 0]])], [block("bucket", 2, 6, 12, 12, spans=[[1, 2, 6, 0]])]]
    whole = [[block("bucket", 2, 0, 12, 12, spans=spans)] for _ in range(2)]
    matrices = [[matrix("a", 0, 2, 3), matrix("b", 1, 2, 2)] for _ in range(2)]
    return by_hand([([], shards), ([message(0, 1, 6), message(1, 0, 6)], whole), ([], matrices)])


class PlayerPage(unittest.TestCase):
    """A test with a page of players; every one of them ends without a fault on the console."""

    def setUp(self):
        self.browser = PLACE["browser"]
        set_size(self.browser, 1280, 900)
        set_media(self.browser, prefers_color_scheme="light", prefers_reduced_motion="reduce")

    def tearDown(self):
        self.assertEqual(console_faults(self.browser), [])
        self.assertEqual(request_faults(self.browser), [])

    def open(self, *recordings, head="", body="", code=CODE):
        """A page with a player of each recording (a string is put into the page as it is); returns the players."""
        parts = []
        for at, recording in enumerate(recordings):
            text = recording if isinstance(recording, str) else json.dumps(recording)
            parts.append(f'<div class="muonwalk-player" data-recording="recording-{at}" data-code="code-{at}"></div>' +
                         script_json(f"recording-{at}", text) + script_json(f"code-{at}", json.dumps(code)))
        folder, source = PLACE["folder"], PLACE["player"]
        (folder / "player.js").write_text(player_script(source), encoding="utf-8")
        page = folder / "page.html"
        sheets = "".join(f'<link rel="stylesheet" href="{source}/{name}.css">' for name in ("player", "stage"))
        page.write_text('<!doctype html><html lang="en"><meta charset="utf-8"><title>a test</title>'
                        '<meta name="viewport" content="width=device-width, initial-scale=1">'
                        f'{sheets}{head}<script src="player.js" defer></script>'
                        f'<body><input id="elsewhere">{"".join(parts)}{body}</body></html>', encoding="utf-8")
        self.browser.get(page.as_uri())
        return self.all(".muonwalk-player")

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def settle(self):
        """Until the browser has laid out and drawn what was asked for."""
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(arguments[0])))")

    def all(self, selector, within=None):
        return (within or self.browser).find_elements("css selector", selector)

    def one(self, selector, within=None):
        found = self.all(selector, within)
        self.assertEqual(len(found), 1, f"{selector} is there {len(found)} times")
        return found[0]

    def press(self, key):
        self.browser.switch_to.active_element.send_keys(KEYS[key])

    def focus(self, element):
        self.script("arguments[0].focus()", element)

    def frame(self, player):
        return int(player.get_dom_attribute("data-step")), player.get_dom_attribute("data-phase")

    def go(self, player, step, phase):
        """Shows this frame, with the buttons."""
        self.all(".player-tick", player)[step - 1].click()
        if self.frame(player) != (step, phase):
            self.one(".player-forward", player).click()
        self.assertEqual(self.frame(player), (step, phase))

    def numbers(self, player):
        """The table of numbers: its lines as they are read, and the exact values."""
        lines = self.script("""
          return [...(arguments[0] || document).querySelectorAll(".player-numbers tbody tr")].map((line) =>
            [...line.querySelectorAll("td")].map((cell) => [cell.textContent, cell.dataset.value]))""", player)
        return [[text for text, _ in line] for line in lines], [value for line in lines for _, value in line]

    def pieces(self, rank):
        """What lies on the maps of a lane: for each block, {from, kind, left, right, top, bottom}, in fractions of its map."""
        return self.script("""
          const lane = document.querySelector(`.player-stage:not(.player-small) .player-lane[data-rank="${arguments[0]}"]`);
          return [...lane.querySelectorAll(".player-block")].map((block) => [...block.querySelectorAll(".player-piece")].map((piece) => {
            const at = piece.getBoundingClientRect(), whole = piece.parentElement.getBoundingClientRect();
            return {from: Number(piece.dataset.from), kind: piece.className.split(" player-")[1],
                    left: (at.left - whole.left) / whole.width, right: (at.right - whole.left) / whole.width,
                    top: (at.top - whole.top) / whole.height, bottom: (at.bottom - whole.top) / whole.height}; }))""", rank)
