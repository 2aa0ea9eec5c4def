"""Going through the frames: keys, buttons, playing, and that nothing jumps."""

from player_page import RUNS, PlayerPage, frames_of, record
from headless_browser import set_size, too_wide
from lesson_page import packed

LONG_NAME = "transformer.layers.11.self_attention.query_key_value_projection.weight"


class Frames(PlayerPage):
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
                for player in (plain, small):
                    self.focus(player)
                    self.press("home")
                for _ in frames_of(recording):
                    self.assertEqual(self.frame(plain), self.frame(small))
                    self.assertEqual(self.script(words, plain), self.script(words, small))
                    for player in (plain, small):
                        self.focus(player)
                        self.press("right")

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


class Playing(PlayerPage):
    HURRY = "<script>const wait = setTimeout; setTimeout = (call, time) => wait(call, time / 50);</script>"
    TIMES = "<script>const wait = setTimeout, times = []; setTimeout = (call, time) => (times.push(time), wait(call, 1));</script>"

    def play(self, player, button):
        return self.browser.execute_async_script("""
          const [player, button, done] = arguments, seen = [];
          new MutationObserver(() => {
            const frame = `${player.dataset.step} ${player.dataset.phase}`;
            if (seen[seen.length - 1] !== frame) seen.push(frame);
            if (seen.length > 1 && player.dataset.playing === "no") done(seen);
          }).observe(player, { attributes: true });
          button.click();""", player, button)

    def test_play_goes_to_the_end_by_itself_stops_there_and_starts_again(self):
        recording = record("05")
        player = self.open(recording, head=self.HURRY)[0]
        button = self.one(".player-play", player)
        seen = self.play(player, button)
        self.assertEqual(seen, [f"{step} {phase}" for step, phase in frames_of(recording)][-len(seen):])
        self.assertEqual(self.frame(player), frames_of(recording)[-1])
        self.assertEqual(button.text, "Play")
        again = self.script("return [1, 2].map(() => { arguments[0].click(); return [arguments[0].textContent, arguments[1].dataset.playing]; })",
                            button, player)
        self.assertEqual(again, [["Pause", "yes"], ["Play", "no"]])

    def test_the_space_bar_plays_and_pauses(self):
        player = self.open(record("05"))[0]
        for selector in (".muonwalk-player", '.player-block[data-key="1/0"]'):
            self.focus(self.one(selector))
            self.press("space")
            self.assertEqual(player.get_dom_attribute("data-playing"), "yes")
            self.focus(player)
            self.press("space")
            self.assertEqual(player.get_dom_attribute("data-playing"), "no")
        self.assertEqual([key.text for key in self.all("kbd", player)], ["space", "←", "→", "Home", "End"])

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


class Keys(PlayerPage):
    def test_keys_elsewhere_are_left_alone(self):
        player = self.open(record("05"))[0]
        self.focus(self.one("#elsewhere"))
        for key in ("right", "end", "space"):
            self.press(key)
        self.assertEqual(self.frame(player), (1, "holds"))
        self.focus(self.one(".player-code", player))
        self.press("right")
        self.assertEqual(self.frame(player), (1, "holds"), "inside what scrolls, arrow keys scroll")

    def test_arrows_with_another_key_held_down_are_the_browsers(self):
        player = self.open(record("05"))[0]
        for held in ("shiftKey", "ctrlKey", "altKey", "metaKey"):
            for key in ("ArrowRight", "End", " "):
                with self.subTest(held=held, key=key):
                    left_alone = self.script("""
                      return arguments[0].dispatchEvent(new KeyboardEvent("keydown",
                        { key: arguments[2], [arguments[1]]: true, bubbles: true, cancelable: true }))""", player, held, key)
                    self.assertTrue(left_alone)
                    self.assertEqual(self.frame(player), (1, "holds"))

    def test_a_block_keeps_the_focus_from_frame_to_frame(self):
        player = self.open(record("05"))[0]
        self.focus(self.one('.player-block[data-key="1/0"]', player))
        self.press("right")
        self.assertEqual(self.frame(player), (2, "moves"))
        self.assertEqual(self.browser.switch_to.active_element.get_dom_attribute("data-key"), "1/0")
        self.press("home")
        self.focus(self.one('.player-block[data-key="1/1"]', player))
        self.press("right")
        self.assertEqual(self.browser.switch_to.active_element, player, "where the block is gone, the player itself has it")

    def test_every_block_and_every_rank_can_be_reached_with_the_tab_key(self):
        player = self.open(record("05"))[0]
        self.focus(player)
        reached, ranks = set(), set()
        for _ in range(30):
            self.press("tab")
            element = self.browser.switch_to.active_element
            reached.add(element.get_dom_attribute("data-key"))
            ranks.add(element.get_dom_attribute("aria-description"))
        self.assertLessEqual({"0/0", "0/1", "1/0", "1/1"}, reached)
        self.assertLessEqual({"only the traffic of rank 0", "only the traffic of rank 1"}, ranks)


class Sizes(PlayerPage):
    def test_nothing_jumps_from_frame_to_frame(self):
        places = """return [".player-stage", ".player-words", ".player-card", ".player-code", ".player-inspector, .player-moves, .player-lines"]
          .map((name) => [...document.querySelectorAll(name)].find((part) => !part.hidden).getBoundingClientRect())
          .map((box) => [box.top, box.height].map(Math.round)).concat(
            [[document.documentElement.scrollHeight, document.querySelector(".muonwalk-player").offsetHeight]])"""
        for width in (1400, 1000, 390):
            set_size(self.browser, width, 900)
            for number in RUNS:
                recording = record(number)
                player = self.open(recording)[0]
                self.settle()
                self.focus(player)
                seen = set()
                for _ in frames_of(recording):
                    self.script("window.scrollTo(0, 0)")
                    seen.add(str(self.script(places)))
                    self.press("right")
                with self.subTest(width=width, lesson=number):
                    self.assertEqual(len(seen), 1, seen)

    def test_nothing_scrolls_the_page_sideways_on_a_phone(self):
        set_size(self.browser, 360, 740)
        for number in RUNS:
            recording = record(number)
            for blocks in recording["steps"][-1]["holds"]:
                for held in blocks:
                    held["name"] = LONG_NAME
            player = self.open(recording)[0]
            self.focus(player)
            for frame in frames_of(recording):
                with self.subTest(lesson=number, frame=frame):
                    self.assertEqual(too_wide(self.browser), [])
                self.press("right")
        stage, code = self.one(".player-stage", player).rect, self.one(".player-code", player).rect
        self.assertGreaterEqual(code["y"], stage["y"] + stage["height"], "on a phone the code stands below")
