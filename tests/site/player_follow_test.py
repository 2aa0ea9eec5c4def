"""While the text of a step is read, the dock shows that step."""

from headless_browser import set_size, too_wide
from player_page import PlayerPage, record

TEXT = "".join([
    '<p style="height: 1200px">the idea</p>',
    *(f'<span data-mw-steps="{steps}"></span><p id="read-{at}" style="height: 1300px">text {at}</p>'
      for at, steps in enumerate(["1", "2 4", "3", "2 4", ""]))])


class Follow(PlayerPage):
    def read(self, at):
        """Scrolls so that this paragraph is in the middle of the window; returns whether the dock is seen, and its frame."""
        self.script("document.getElementById(`read-${arguments[0]}`).scrollIntoView({block: 'center'})", at)
        self.settle()
        player = self.one(".muonwalk-player")
        return self.one(".player-dock-body").is_displayed(), self.frame(player)[0]

    def follow(self, **more):
        return self.open(record("05"), body=TEXT, **more)[0]

    def test_scrolling_to_the_text_of_a_step_shows_it(self):
        player = self.follow()
        self.assertFalse(self.one(".player-dock-body").is_displayed())
        self.assertEqual([self.read(at) for at in range(5)], [(True, 1), (True, 2), (True, 3), (True, 2), (False, 2)])
        self.assertEqual(self.read(2), (True, 3))
        self.assertIn("Step 3 · TP gather of columns", self.one(".player-dock-title").text)
        lanes = self.script("return [...document.querySelectorAll('.player-dock .player-lane')].map((lane) => lane.textContent)")
        self.assertEqual(len(lanes), 2)
        for lane in lanes:
            self.assertIn("down, as it arrived", lane)
        self.assertEqual(self.frame(player), (3, "moves"))

    def test_of_several_steps_the_one_that_is_shown_stays(self):
        player = self.follow()
        self.read(2)
        self.all(".player-tick", player)[3].click()
        self.assertEqual(self.frame(player)[0], 4)
        self.assertEqual(self.read(3), (True, 4))

    def test_the_reader_goes_on_from_the_dock_back_to_the_player_and_out_of_it(self):
        player = self.follow()
        self.read(1)
        self.one(".player-dock-forward").click()
        self.assertEqual(self.frame(player), (2, "holds"))
        self.assertIn("what is held", self.one(".player-dock-title").text)
        self.one(".player-dock-back").click()
        self.assertEqual(self.frame(player), (2, "moves"))
        self.one(".player-dock-open").click()
        self.settle()
        self.assertEqual(self.browser.switch_to.active_element, player)
        self.assertFalse(self.one(".player-dock-body").is_displayed())
        self.read(2)
        self.one(".player-dock-close").click()
        self.assertFalse(self.one(".player-dock-body").is_displayed())
        self.assertEqual(self.read(1), (False, 3), "it follows no longer")
        toggle = self.one(".player-follow", player)
        self.assertEqual(toggle.get_attribute("aria-pressed"), "false")
        # The next page remembers it, and the button takes it back.
        player = self.follow()
        self.assertEqual(self.read(1), (False, 1))
        self.script("arguments[0].click()", self.one(".player-follow", player))
        self.assertEqual(self.read(2), (True, 3))

    def test_while_it_plays_it_follows_nothing(self):
        player = self.follow()
        self.script("arguments[0].click()", self.one(".player-play", player))
        before = self.frame(player)
        self.assertEqual(self.read(2)[1] in (before[0], before[0] + 1), True)
        self.script("arguments[0].click()", self.one(".player-play", player))

    def test_the_dock_leaves_the_text_its_room_on_a_phone(self):
        for width, height, number in ((1400, 1000, "09"), (1000, 900, "04"), (390, 844, "04"), (390, 844, "09")):
            set_size(self.browser, width, height)
            self.open(record(number), body=TEXT)
            self.read(1)
            dock = self.one(".player-dock-body").rect
            with self.subTest(width=width, lesson=number):
                self.assertTrue(self.one(".player-dock-body").is_displayed())
                self.assertLess(dock["height"], 0.345 * height)
                self.assertEqual(too_wide(self.browser), [])
                # What is jumped to stands below the dock.
                self.script("document.getElementById('read-2').scrollIntoView({block: 'start'})")
                self.settle()
                tops = self.script("""return [document.getElementById("read-2").getBoundingClientRect().top,
                                      document.querySelector(".player-dock-body").getBoundingClientRect().bottom]""")
                self.assertGreaterEqual(tops[0], tops[1])
