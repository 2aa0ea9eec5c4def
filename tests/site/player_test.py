#!/usr/bin/env python3
"""Tests of docs/player in a real browser, with recordings that the lessons write.

    player_test.py PLAYER_DIR BUILD_BIN [unittest argument...]
"""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/site"))
from lesson_page import packed  # noqa: E402
from headless_browser import console_faults, headless_browser, request_faults, set_media, set_size, too_wide

PLAYER = BIN = FOLDER = BROWSER = None
CODE = [{"step": 1, "html": "<pre>first(<b>rank</b>);</pre>"}, {"step": 2, "html": "<pre>second();</pre>"}]
RUNS = {"05": ("lesson_05_tp_gather",), "04": ("lesson_04_dp_gather",), "08": ("lesson_08_dp_shard",),
        "09": ("lesson_09_full_step", "--small", "--steps", "1")}
KEYS = {"right": "\ue014", "left": "\ue012", "home": "\ue011", "end": "\ue010", "tab": "\ue004"}
LONG_NAME = "transformer.layers.11.self_attention.query_key_value_projection.weight"


def record(number):
    """What this lesson records, as Python reads it."""
    path = FOLDER / f"{number}.json"
    if not path.exists():
        name, *options = RUNS[number]
        subprocess.run([BIN / name, *options, "--record", path], check=True, capture_output=True, timeout=300)
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


class PlayerTest(unittest.TestCase):
    def setUp(self):
        set_size(BROWSER, 1280, 900)
        set_media(BROWSER, prefers_color_scheme="light", prefers_reduced_motion="reduce")

    def tearDown(self):
        self.assertEqual(console_faults(BROWSER), [])
        self.assertEqual(request_faults(BROWSER), [])

    def open(self, *recordings, head=""):
        """A page with a player of each recording (a string is put into the page as it is); returns the players."""
        parts = []
        for at, recording in enumerate(recordings):
            text = recording if isinstance(recording, str) else json.dumps(recording)
            parts.append(f'<div class="muonwalk-player" data-recording="recording-{at}" data-code="code-{at}"></div>' +
                         script_json(f"recording-{at}", text) + script_json(f"code-{at}", json.dumps(CODE)))
        page = FOLDER / "page.html"
        page.write_text('<!doctype html><html lang="en"><meta charset="utf-8"><title>a test</title>'
                        '<meta name="viewport" content="width=device-width, initial-scale=1">'
                        f'<link rel="stylesheet" href="{PLAYER}/player.css">{head}'
                        f'<script src="{PLAYER}/player.js" defer></script>'
                        f'<body><input id="elsewhere">{"".join(parts)}</body></html>', encoding="utf-8")
        BROWSER.get(page.as_uri())
        return self.all(".muonwalk-player")

    def all(self, selector, within=None):
        return (within or BROWSER).find_elements("css selector", selector)

    def one(self, selector, within=None):
        found = self.all(selector, within)
        self.assertEqual(len(found), 1, f"{selector} is there {len(found)} times")
        return found[0]

    def press(self, key):
        BROWSER.switch_to.active_element.send_keys(KEYS[key])

    def focus(self, element):
        BROWSER.execute_script("arguments[0].focus()", element)

    def frame(self, player):
        return int(player.get_dom_attribute("data-step")), player.get_dom_attribute("data-phase")

    def numbers(self, player):
        """The table of numbers: its lines as they are read, and the exact values."""
        lines = BROWSER.execute_script("""
          return [...(arguments[0] || document).querySelectorAll(".player-numbers tbody tr")].map((line) =>
            [...line.querySelectorAll("td")].map((cell) => [cell.textContent, cell.dataset.value]))""", player)
        return [[text for text, _ in line] for line in lines], [value for line in lines for _, value in line]

    # --- frames ---

    def test_the_arrow_keys_go_through_all_frames_and_back(self):
        for number in RUNS:
            with self.subTest(lesson=number):
                recording = record(number)
                player = self.open(recording)[0]
                self.focus(player)
                expected = frames_of(recording)
                seen = [self.frame(player)]
                for _ in expected[1:]:
                    self.press("right")
                    seen.append(self.frame(player))
                self.assertEqual(seen, expected)
                self.press("right")
                self.assertEqual(self.frame(player), expected[-1], "beyond the end nothing comes")
                for frame in reversed(expected[:-1]):
                    self.press("left")
                    self.assertEqual(self.frame(player), frame)
                self.press("left")
                self.assertEqual(self.frame(player), expected[0], "before the start nothing comes")

    def test_a_packed_recording_shows_the_same(self):
        words = """return [...arguments[0].querySelectorAll(".player-words, .player-moves, .player-stage")].map(
                     (element) => element.textContent)"""
        for number in RUNS:
            with self.subTest(lesson=number):
                recording = record(number)
                plain, small = self.open(recording, packed(recording))
                self.assertLess(len(json.dumps(packed(recording))), len(json.dumps(recording)))
                self.focus(plain)
                for player in (plain, small):
                    self.focus(player)
                    self.press("home")
                for _ in frames_of(recording):
                    self.assertEqual(self.frame(plain), self.frame(small))
                    self.assertEqual(BROWSER.execute_script(words, plain), BROWSER.execute_script(words, small))
                    for player in (plain, small):
                        self.focus(player)
                        self.press("right")

    def test_a_message_of_a_kind_that_is_not_there(self):
        recording = packed(record("04"))
        recording["steps"][1]["moves"][0][2] = 7
        self.assertIn("step 2 has a message of a kind that is not in the list", self.open(recording)[0].text)

    def test_home_and_end_go_to_the_first_and_the_last_frame(self):
        recording = record("04")
        player = self.open(recording)[0]
        self.focus(player)
        self.press("end")
        self.assertEqual(self.frame(player), frames_of(recording)[-1])
        self.press("home")
        self.assertEqual(self.frame(player), frames_of(recording)[0])

    def test_buttons_do_what_the_keys_do_and_say_where_we_are(self):
        recording = record("05")
        player = self.open(recording)[0]
        expected = frames_of(recording)
        progress = self.one(".player-progress", player)
        self.assertIn("step 1 of 4", progress.text)
        self.assertEqual(self.one(".player-back", player).get_attribute("aria-disabled"), "true")
        for frame in expected[1:]:
            self.one(".player-forward", player).click()
            self.assertEqual(self.frame(player), frame)
        self.assertIn("step 4 of 4", progress.text)
        self.assertEqual(self.one(".player-forward", player).get_attribute("aria-disabled"), "true")
        self.one(".player-back", player).click()
        self.assertEqual(self.frame(player), expected[-2])
        self.one(".player-first", player).click()
        self.assertEqual(self.frame(player), expected[0])
        self.one(".player-last", player).click()
        self.assertEqual(self.frame(player), expected[-1])
        self.all(".player-tick", player)[1].click()
        self.assertEqual(self.frame(player), (2, "moves"))
        self.assertEqual(self.one(".player-tick[aria-current=step]", player).text, "2")

    def test_play_goes_to_the_end_by_itself_stops_there_and_starts_again(self):
        recording = record("05")
        hurry = "<script>const wait = setTimeout; setTimeout = (call, time) => wait(call, time / 50);</script>"
        player = self.open(recording, head=hurry)[0]
        button = self.one(".player-play", player)
        seen = BROWSER.execute_async_script("""
          const [player, button, done] = arguments, seen = [];
          new MutationObserver(() => {
            const frame = `${player.dataset.step} ${player.dataset.phase}`;
            if (seen[seen.length - 1] !== frame) seen.push(frame);
            if (seen.length > 1 && player.dataset.playing === "no") done(seen);
          }).observe(player, { attributes: true });
          button.click();""", player, button)
        self.assertEqual(seen, [f"{step} {phase}" for step, phase in frames_of(recording)][-len(seen):])
        self.assertEqual(self.frame(player), frames_of(recording)[-1])
        self.assertEqual(button.text, "Play")
        button.click()
        self.assertEqual(button.text, "Pause")
        button.click()
        self.assertEqual(player.get_dom_attribute("data-playing"), "no")

    # --- what a frame shows ---

    def test_every_block_is_named_placed_and_shows_its_numbers(self):
        for number in RUNS:
            recording = record(number)
            player = self.open(recording)[0]
            for step in recording["steps"]:
                self.all(".player-tick", player)[step["number"] - 1].click()
                self.focus(player)
                if step["moves"]:
                    self.press("right")
                for rank, blocks in enumerate(step["holds"]):
                    shown = self.all(f'.player-lane[data-rank="{rank}"] .player-block', player)
                    self.assertEqual(len(shown), len(blocks))
                    for element, block in zip(shown, blocks):
                        with self.subTest(lesson=number, step=step["number"], rank=rank, block=block["name"]):
                            self.check_block(element, block, rank)

    def check_block(self, element, block, rank):
        shown = BROWSER.execute_script("""
          const block = arguments[0], player = block.closest(".muonwalk-player");
          const box = (selector) => { const b = block.querySelector(selector).getBoundingClientRect();
                                      return {left: b.left, top: b.top, width: b.width, height: b.height}; };
          const text = (selector) => player.querySelector(selector)?.textContent;
          block.focus();
          const table = player.querySelector(".player-numbers");
          const heads = (part) => [...player.querySelectorAll(`.player-numbers ${part} th`)].map((th) => th.textContent);
          return {name: block.querySelector("b").textContent, label: block.getAttribute("aria-description"),
                  text: block.textContent, whole: box(".player-map"), held: box(".player-piece"),
                  pressed: block.getAttribute("aria-pressed"),
                  about: text(".player-about"), rows: heads("tbody"), columns: heads("thead"),
                  description: table && table.getAttribute("aria-description")};""", element)
        self.assertEqual(shown["name"], block["name"])
        self.assertIn(f"rank {rank}: {block['name']}", shown["label"])
        self.assertIn(f"{block['bytes']:,} B", shown["text"])
        self.assertEqual(shown["pressed"], "true")
        self.assertIn(f"rank {rank} · {block['name']}", shown["about"])
        whole, held = shown["whole"], shown["held"]
        begin, end = (block["begin"] / block["of"], block["end"] / block["of"]) if block["unit"] else (0, 1)
        start, size = ("top", "height") if block["unit"] == "rows" else ("left", "width")
        self.assertAlmostEqual((held[start] - whole[start]) / whole[size], begin, delta=0.01)
        self.assertAlmostEqual(held[size] / whole[size], end - begin, delta=0.01)
        lines, exact = self.numbers(None)
        if block["values"] is None:
            self.assertEqual(lines, [])
            return
        self.assertEqual(exact, BROWSER.execute_script("return arguments[0].map(String)", block["values"]))
        self.assertEqual([text for line in lines for text in line], [printed(value) for value in block["values"]])
        if not block["flat"]:
            self.assertEqual([len(line) for line in lines], [block["cols"]] * block["rows"])
        # Rows and columns are counted as in the whole; of a flat array, a line's number and a column's make up the place.
        first_row = block["begin"] if block["unit"] in ("rows", "elements") else 0
        first_column = block["begin"] if block["unit"] == "columns" else 0
        if block["flat"]:
            wide = len(lines[0])
            self.assertEqual(shown["rows"], [str(first_row + wide * line) for line in range(len(lines))])
            self.assertEqual(shown["columns"], [f"+{column}" for column in range(wide)])
        else:
            self.assertEqual(shown["rows"], [str(first_row + row) for row in range(block["rows"])])
            self.assertEqual(shown["columns"], [str(first_column + column) for column in range(block["cols"])])
        self.assertIn(f"{block['rows']} row" if not block["flat"] else f"{block['cols']} number", shown["description"])

    def test_numbers_read_as_the_program_prints_them(self):
        recording = record("05")
        values = [0, -0.0, 1, -1, 0.5, 123.4, 1234, 12345, 123456.7, 99995, 9999.4, 9999.6, 0.001, 0.0001, 0.00001,
                  1e-7, 3.1415927, -2.7182817, 1e10, 3.4028235e38, 1.1754944e-38, "nan", "inf", "-inf", 0.00099996,
                  999.96, 0.1, 1 / 3, 2.5, 1000, 10000, 100000]
        recording["steps"][0]["holds"][0][0].update(values=values, rows=4, cols=8)
        player = self.open(recording)[0]
        shown = [text for line in self.numbers(player)[0] for text in line]
        self.assertEqual(shown, [printed(value) for value in values])

    def test_pieces_arrive_where_their_sender_held_them(self):
        for number, step_number in (("05", 2), ("05", 3), ("04", 2), ("04", 4), ("08", 4), ("09", 5), ("09", 11)):
            recording = record(number)
            player = self.open(recording)[0]
            self.all(".player-tick", player)[step_number - 1].click()
            self.assertEqual(self.frame(player), (step_number, "moves"))
            step = recording["steps"][step_number - 1]
            for rank, blocks in enumerate(step["holds"]):
                senders = sorted(move["from"] for move in step["moves"] if move["to"] == rank)
                pieces = BROWSER.execute_script("""
                  const lane = document.querySelector(`.player-lane[data-rank="${arguments[0]}"]`);
                  return [...lane.querySelectorAll(".player-arrives")].map((piece) => {
                    const at = piece.getBoundingClientRect(), whole = piece.parentElement.getBoundingClientRect();
                    return {from: Number(piece.dataset.from), key: piece.closest("[data-key]").dataset.key,
                            left: (at.left - whole.left) / whole.width,
                            right: (at.right - whole.left) / whole.width, top: (at.top - whole.top) / whole.height,
                            bottom: (at.bottom - whole.top) / whole.height}; })""", rank)
                with self.subTest(lesson=number, step=step_number, rank=rank):
                    self.assertEqual(sorted(piece["from"] for piece in pieces), senders)
                    for piece in pieces:
                        held = [block for earlier in recording["steps"][:step_number - 1]
                                for block in earlier["holds"][piece["from"]]
                                if block["tensor"] == blocks[int(piece["key"].split("/")[1])]["tensor"]][-1]
                        first, last = ("top", "bottom") if held["unit"] == "rows" else ("left", "right")
                        self.assertAlmostEqual(piece[first], held["begin"] / held["of"], delta=0.01)
                        self.assertAlmostEqual(piece[last], held["end"] / held["of"], delta=0.01)

    def by_hand(self, moves, after):
        """A recording of two DP ranks. First each holds its half of a and b, four elements each; then, once `moves` have
        arrived, the blocks `after`."""
        recording = record("05")
        whole = {"name": "a", "tensor": 0, "rows": 1, "cols": 4, "bytes": 16, "flat": True, "unit": "", "begin": 0, "end": 1,
                 "of": 1, "note": None, "values": None, "digest": None, "from": []}

        def half(name, tensor, rank):
            return {**whole, "name": name, "tensor": tensor, "cols": 2, "bytes": 8, "unit": "elements", "begin": 2 * rank,
                    "end": 2 * rank + 2, "of": 4}

        first = {**recording["steps"][0], "moves": [], "holds": [[half("a", 0, rank), half("b", 1, rank)] for rank in (0, 1)]}
        second = {**recording["steps"][1], "moves": moves, "holds": [[{**whole, **block} for block in after]] * 2}
        grid = {**recording["grid"], "dp": 2, "tp": 1, "pp": 1}
        ranks = [{**rank, "dp": number, "tp": 0, "pp": 0} for number, rank in enumerate(recording["ranks"])]
        tensors = [{**recording["tensors"][0], "name": name} for name in ("a", "b")]
        return {**recording, "grid": grid, "ranks": ranks, "tensors": tensors, "steps": [first, second]}

    @staticmethod
    def message(sender, call, collective="all_gather", elements=2):
        return {"from": sender, "to": 1 - sender, "group": "dp", "collective": collective, "type": "float32",
                "elements": elements, "bytes": 4 * elements, "call": call}

    def test_of_equal_calls_the_first_fills_the_first_block_and_the_second_the_second(self):
        moves = [self.message(sender, call) for call in (0, 1) for sender in (0, 1)]
        player = self.open(self.by_hand(moves, [{"name": "a", "tensor": 0}, {"name": "b", "tensor": 1}]))[0]
        self.all(".player-tick", player)[1].click()
        self.assertEqual(self.frame(player), (2, "moves"))
        for rank in (0, 1):
            shown = BROWSER.execute_script("""
              return [...document.querySelectorAll(`.player-lane[data-rank="${arguments[0]}"] .player-block`)].map((block) => [
                block.querySelector("b").textContent, ...[...block.querySelectorAll(".player-piece")].map((piece) =>
                  `${piece.className.split(" ")[1]} ${piece.dataset.from} ${piece.style.left} ${piece.style.width}`)])""", rank)
            own, other = f"player-own {rank} {50 * rank}% 50%", f"player-arrives {1 - rank} {50 - 50 * rank}% 50%"
            self.assertEqual(shown, [["a", own, other], ["b", own, other]])
        self.assertEqual(self.all(".player-parcel", player), [])

    def test_messages_without_a_place_are_parcels_and_those_of_one_sender_are_added_up(self):
        moves = [self.message(0, 0, "send", 3), self.message(0, 1, "send", 5), self.message(1, 0, "send", 6)]
        player = self.open(self.by_hand(moves, [{"name": "a", "tensor": 0, "cols": 1, "bytes": 4}]))[0]
        self.all(".player-tick", player)[1].click()
        self.assertEqual([[parcel.text for parcel in self.all(".player-parcel", lane)]
                          for lane in self.all(".player-lane", player)],
                         [["from rank 1: 24 B"], ["from rank 0: 32 B"]])
        self.assertEqual(self.one("[aria-live=polite]", player).text, "send over dp sends 3 messages, 56 B in all.")

    def test_slices_arrive_as_rows_or_columns_even_where_the_run_shows_them_only_later(self):
        recording = record("09")
        player = self.open(recording)[0]
        self.all(".player-tick", player)[5].click()
        sizes = BROWSER.execute_script("""
          return [...document.querySelectorAll('.player-lane[data-rank="0"] .player-block')].map((block) => [
            block.querySelector("b").textContent, block.querySelector(".player-arrives").style.height])""")
        self.assertEqual(sizes, [["w0", "50%"], ["w1", "100%"], ["w3", "100%"]])

    def test_messages_are_listed_and_summed(self):
        player = self.open(record("05"))[0]
        self.all(".player-tick", player)[1].click()
        self.assertEqual([item.text for item in self.all(".player-moves li", player)],
                         ["rank 0 → rank 1 12 elements · 48 B", "rank 1 → rank 0 12 elements · 48 B"])
        said = self.one("[aria-live=polite]", player)
        self.assertEqual(said.text, "all_gather over tp sends 2 messages of 48 B, 96 B in all.")
        self.one(".player-forward", player).click()
        self.assertEqual(said.text, "Every rank holds all of up.")

    def test_a_part_that_all_ranks_hold_is_named_by_its_place(self):
        player = self.open(record("04"))[0]
        said = self.one("[aria-live=polite]", player)
        self.assertEqual(said.text, "Every rank holds a part of bucket 0 and a part of bucket 1.")
        self.all(".player-tick", player)[1].click()
        self.one(".player-forward", player).click()
        self.assertEqual(said.text, "Every rank holds bucket 0, elements 0–23.")

    def test_the_code_and_the_lines_of_the_step_stand_beside_it(self):
        recording = record("05")
        player = self.open(recording)[0]
        self.assertEqual(self.one(".player-code", player).text, "first(rank);")
        lines = self.one(".player-lines", player)
        for line in recording["steps"][0]["lines"]:
            self.assertIn(line, lines.get_attribute("textContent"))
        stage, code = self.one(".player-stage", player).rect, self.one(".player-code", player).rect
        self.assertGreater(code["x"], stage["x"] + stage["width"] - 1)
        self.focus(player)
        self.press("end")
        self.assertFalse(self.one(".player-code", player).is_displayed(), "step 4 was given no code")
        self.assertIn(recording["after"][-1], lines.get_attribute("textContent"))

    def test_what_is_printed_before_and_after_the_steps_stands_at_the_first_step_and_in_the_last_frame(self):
        recording = record("05")
        # Up to the first step in which something moves, so that the last step has two frames.
        moving = next(index for index, step in enumerate(recording["steps"]) if step["moves"])
        recording["steps"] = recording["steps"][:moving + 1]
        recording["before"], recording["after"] = ["words before"], ["words after"]
        player = self.open(recording)[0]
        lines = self.one(".player-lines", player)
        frames = int(player.get_attribute("data-frames"))
        self.assertEqual(frames, moving + 2 + sum(bool(step["moves"]) for step in recording["steps"][:moving]))
        for frame in range(frames):
            said = lines.get_attribute("textContent")
            first = player.get_attribute("data-step") == str(recording["steps"][0]["number"])
            self.assertEqual("words before" in said, first, f"frame {frame}")
            self.assertEqual("words after" in said, frame == frames - 1, f"frame {frame}")
            self.one(".player-forward", player).click()

    def test_the_pointer_shows_numbers_as_long_as_it_stays(self):
        player = self.open(record("05"))[0]
        about = self.one(".player-about", player).text
        second = self.all(".player-block", player)[3]
        for kind, target in (("pointermove", second), ("pointerleave", self.one(".player-stage", player))):
            BROWSER.execute_script(
                "arguments[0].dispatchEvent(new PointerEvent(arguments[1], {pointerType: 'mouse'}))", target, kind)
            shown = self.one(".player-about", player).text
            self.assertIn("rank 1 · down" if kind == "pointermove" else about, shown)
        second.click()
        self.assertIn("rank 1 · down", self.one(".player-about", player).text)

    # --- keys and focus ---

    def test_keys_elsewhere_are_left_alone(self):
        player = self.open(record("05"))[0]
        self.focus(self.one("#elsewhere"))
        for key in ("right", "end"):
            self.press(key)
        self.assertEqual(self.frame(player), (1, "holds"))
        self.focus(self.one(".player-lines", player))
        self.press("right")
        self.assertEqual(self.frame(player), (1, "holds"), "inside what scrolls, arrow keys scroll")

    def test_arrows_with_another_key_held_down_are_the_browsers(self):
        player = self.open(record("05"))[0]
        for held in ("shiftKey", "ctrlKey", "altKey", "metaKey"):
            for key in ("ArrowRight", "End"):
                with self.subTest(held=held, key=key):
                    left_alone = BROWSER.execute_script("""
                      return arguments[0].dispatchEvent(new KeyboardEvent("keydown",
                        { key: arguments[2], [arguments[1]]: true, bubbles: true, cancelable: true }))""", player, held, key)
                    self.assertTrue(left_alone)
                    self.assertEqual(self.frame(player), (1, "holds"))

    def test_a_key_ends_the_playing(self):
        for key in ("right", "left", "home", "end"):
            with self.subTest(key=key):
                player = self.open(record("05"))[0]
                self.one(".player-play", player).click()
                self.assertEqual(player.get_dom_attribute("data-playing"), "yes")
                self.focus(player)
                self.press(key)
                self.assertEqual(player.get_dom_attribute("data-playing"), "no")
                self.assertEqual(self.one(".player-play", player).text, "Play")

    def test_a_block_keeps_the_focus_from_frame_to_frame(self):
        player = self.open(record("05"))[0]
        self.focus(self.all('.player-block[data-key="1/0"]', player)[0])
        self.press("right")
        self.assertEqual(self.frame(player), (2, "moves"))
        self.assertEqual(BROWSER.switch_to.active_element.get_dom_attribute("data-key"), "1/0")
        self.focus(self.all('.player-block[data-key="1/0"]', player)[0])
        self.press("home")
        self.focus(self.all('.player-block[data-key="1/1"]', player)[0])
        self.press("right")
        self.assertEqual(BROWSER.switch_to.active_element, player, "where the block is gone, the player itself has it")

    def test_every_block_can_be_reached_with_the_tab_key(self):
        player = self.open(record("05"))[0]
        self.focus(player)
        reached = set()
        for _ in range(30):
            self.press("tab")
            reached.add(BROWSER.switch_to.active_element.get_dom_attribute("data-key"))
        self.assertLessEqual({"0/0", "0/1", "1/0", "1/1"}, reached)

    def test_two_players_of_a_page_are_independent(self):
        first, second = self.open(record("05"), record("04"))
        self.focus(second)
        self.press("right")
        self.assertEqual((self.frame(first), self.frame(second)), ((1, "holds"), (2, "moves")))
        self.focus(first)
        self.press("end")
        self.assertEqual((self.frame(first), self.frame(second)), ((4, "holds"), (2, "moves")))

    # --- motion, colours, sizes ---

    def test_pieces_travel_unless_the_reader_prefers_reduced_motion(self):
        for preference, travels in (("reduce", False), ("no-preference", True)):
            set_media(BROWSER, prefers_reduced_motion=preference)
            for number in RUNS:
                recording = record(number)
                player = self.open(recording)[0]
                for step in recording["steps"]:
                    if not step["moves"]:
                        continue
                    with self.subTest(motion=preference, lesson=number, step=step["number"]):
                        flights, pieces = BROWSER.execute_script("""
                          document.querySelectorAll(".player-tick")[arguments[0]].click();
                          return [document.getAnimations().map((flight) => flight.effect.target.dataset.from),
                                  document.querySelectorAll(".player-arrives, .player-parcel").length];
                          """, step["number"] - 1)
                        self.assertGreater(pieces, 0)
                        self.assertEqual(len(flights), pieces if travels else 0)

    def test_a_piece_starts_in_the_lane_of_its_sender(self):
        set_media(BROWSER, prefers_reduced_motion="no-preference")
        self.open(record("04"))
        starts = BROWSER.execute_script("""
          document.querySelectorAll(".player-tick")[1].click();
          return document.getAnimations().map((flight) => {
            flight.pause(); flight.currentTime = flight.effect.getTiming().delay;
            const piece = flight.effect.target, at = piece.getBoundingClientRect();
            const sender = document.querySelector(`.player-lane[data-rank="${piece.dataset.from}"]`);
            const lane = sender.getBoundingClientRect();
            return at.top >= lane.top && at.bottom <= lane.bottom; });""")
        self.assertEqual(starts, [True] * 4)

    def test_colours_follow_the_reader_and_the_switch_of_the_page(self):
        light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
        recording = record("05")
        colours = recording["palette"]["tensors"][recording["tensors"][0]["colour"]]
        for prefers, switched, paper in (("light", "", light), ("dark", "", dark), ("dark", "light-mode", light),
                                         ("light", "dark-mode", dark)):
            with self.subTest(prefers=prefers, switched=switched):
                set_media(BROWSER, prefers_color_scheme=prefers)
                self.open(recording)
                found = BROWSER.execute_script("""
                  if (arguments[0]) document.documentElement.classList.add(arguments[0]);
                  const colour = (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor;
                  return [colour(".player-body"), colour(".player-piece")];""", switched)
                fill = colours["light" if paper == light else "dark"]
                self.assertEqual(found, [paper, "rgb(%d, %d, %d)" % tuple(bytes.fromhex(fill[1:]))])

    def test_nothing_scrolls_the_page_sideways_on_a_phone(self):
        set_size(BROWSER, 360, 740)
        for number in RUNS:
            recording = record(number)
            for blocks in recording["steps"][-1]["holds"]:
                for block in blocks:
                    block["name"] = LONG_NAME
            player = self.open(recording)[0]
            self.focus(player)
            for frame in frames_of(recording):
                with self.subTest(lesson=number, frame=frame):
                    self.assertEqual(too_wide(BROWSER), [])
                self.press("right")
        self.one(".player-first", player).click()
        stage, code = self.one(".player-stage", player).rect, self.one(".player-code", player).rect
        self.assertGreaterEqual(code["y"], stage["y"] + stage["height"], "on a phone the code stands below")

    # --- what is wrong ---

    def test_a_broken_recording_is_a_sentence_and_leaves_other_players_alone(self):
        good = json.dumps(record("05"))

        def changed(change):
            recording = json.loads(good)
            change(recording)
            return recording

        cases = [("{not json", "damaged"), ("null", "not the recording of a lesson"),
                 ("[]", "not the recording of a lesson"),
                 (changed(lambda r: r.update(version=2)), "has version 2, and this player reads version 1"),
                 (changed(lambda r: r.update(format="other")), "not the recording of a lesson"),
                 (changed(lambda r: r.update(steps=[])), "no step or no rank"),
                 (changed(lambda r: r.pop("palette")), "no palette"),
                 (changed(lambda r: r.pop("grid")), "no grid"),
                 (changed(lambda r: r["steps"][0]["holds"].pop()), "for each of 2 ranks"),
                 (changed(lambda r: r["steps"][1]["holds"][0][0]["values"].pop()), "not as many numbers of up"),
                 (changed(lambda r: r["steps"][1]["moves"][0].update(to=2)), "a rank that is not there"),
                 (changed(lambda r: r["steps"][1]["holds"][0][0].update(tensor=9)), "a tensor that is not in the list")]
        for broken, sentence in cases:
            with self.subTest(sentence=sentence):
                first, second = self.open(broken, good)
                self.assertIn(sentence, first.text)
                self.assertIn("This run can't be replayed: ", first.text)
                self.focus(second)
                self.press("end")
                self.assertEqual(self.frame(second), (4, "holds"))

    def test_text_of_a_recording_is_never_markup(self):
        recording = record("05")
        markup = "<img src=nowhere onerror=document.title='broken'>"
        for block in recording["steps"][0]["holds"][0]:
            block.update(name=markup, note=markup)
        recording["steps"][0].update(title=markup, lines=[markup], says=[[markup], [markup]])
        recording["ranks"][0]["label"] = markup
        player = self.open(recording)[0]
        self.assertEqual(self.all("img", player), [])
        self.assertEqual(self.one(".player-title", player).text, markup)
        self.assertEqual(BROWSER.title, "a test")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    PLAYER, BIN = (Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder, headless_browser() as BROWSER:
        FOLDER = Path(folder)
        unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
