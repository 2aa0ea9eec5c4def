"""What the reader points at: a rank and its traffic, an element and all that belongs to it, a block and its numbers."""

from player_page import PlayerPage, by_hand, block, gathered_bucket, matrix, message, record

POINT = """
  const [selector, across, down, kind] = arguments, map = document.querySelector(selector), box = map.getBoundingClientRect();
  const place = {bubbles: true, detail: 1, pointerType: "mouse", clientX: box.left + across * box.width, clientY: box.top + down * box.height};
  map.dispatchEvent(kind === "click" ? new MouseEvent("click", place) : new PointerEvent(kind, place));"""
LIT = """
  return [...document.querySelectorAll(".player-stage:not(.player-small) .player-lit")].map((lit) => {
    const at = lit.parentElement.getBoundingClientRect(), cell = lit.getBoundingClientRect(), block = lit.closest(".player-block");
    return [block.dataset.key, lit.style.left, lit.style.top].map((part) => part.endsWith("%") ? Math.round(parseFloat(part)) : part); })"""


class Ranks(PlayerPage):
    def traffic(self):
        """The pairs of ranks whose arrows are seen, and whose pieces are not faint."""
        return self.script("""
          const stage = document.querySelector(".player-stage");
          const arrows = [...stage.querySelectorAll(".player-arrow")].filter((arrow) => getComputedStyle(arrow).display !== "none");
          const pieces = [...stage.querySelectorAll(".player-arrives")].filter((piece) => Number(getComputedStyle(piece).opacity) > 0.9);
          return [arrows.map((arrow) => [Number(arrow.dataset.from), Number(arrow.dataset.to)]).sort(),
                  pieces.map((piece) => [Number(piece.dataset.from), Number(piece.closest(".player-lane").dataset.rank)]).sort()];""")

    def own_traffic(self, rank):
        pairs = sorted([move["from"], move["to"]] for move in record("08")["steps"][4]["moves"])
        return [pair for pair in pairs if rank is None or rank in pair]

    def test_hover_focus_and_touch_of_a_rank_show_its_traffic_alone(self):
        player = self.open(record("08"))[0]
        self.go(player, 5, "moves")
        self.assertEqual(self.traffic(), [self.own_traffic(None)] * 2)
        event = """document.querySelectorAll(".player-badge")[arguments[0]].dispatchEvent(
                     new PointerEvent(arguments[1], {pointerType: "mouse"}))"""
        for rank in range(4):
            self.script(event, rank, "pointerenter")
            self.assertEqual(self.traffic(), [self.own_traffic(rank)] * 2, f"hover of rank {rank}")
            self.script(event, rank, "pointerleave")
            self.assertEqual(self.traffic(), [self.own_traffic(None)] * 2)
        # By keyboard: the focus comes to the badge of rank 0, and the enter key keeps it.
        self.focus(player)
        while self.browser.switch_to.active_element.get_dom_attribute("aria-description") != "only the traffic of rank 0":
            self.press("tab")
        self.assertEqual(self.traffic(), [self.own_traffic(0)] * 2)
        self.press("enter")
        self.press("tab")
        self.assertEqual(self.traffic(), [self.own_traffic(0)] * 2)
        self.assertEqual(self.all(".player-badge", player)[0].get_attribute("aria-pressed"), "true")
        # By touch: a tap on another rank, and the same again.
        self.all(".player-badge", player)[3].click()
        self.script("document.activeElement.blur()")
        self.script(event, 3, "pointerleave")
        self.assertEqual(self.traffic(), [self.own_traffic(3)] * 2)
        self.all(".player-badge", player)[3].click()
        self.script("document.activeElement.blur()")
        self.script(event, 3, "pointerleave")
        self.assertEqual(self.traffic(), [self.own_traffic(None)] * 2)

    def test_the_list_of_messages_is_of_that_rank_too_and_it_stays_from_frame_to_frame(self):
        player = self.open(record("05"))[0]
        moves = [message(a, b, 2) for a in range(3) for b in range(3) if a != b]
        player = self.open(by_hand([(moves, [[], [], []]), ([], [[], [], []]), (moves, [[], [], []])], dp=3))[0]
        self.all(".player-badge", player)[1].click()
        listed = "return [...document.querySelectorAll('.player-moves li')].filter((line) => !line.hidden).map((line) => line.textContent)"
        for _ in range(2):
            self.assertEqual([line[:15] for line in self.script(listed)],
                             ["rank 0 → rank 1", "rank 1 → rank 0", "rank 1 → rank 2", "rank 2 → rank 1"])
            self.go(player, 3, "moves")


class ElementsOfARun(PlayerPage):
    def point(self, selector, across, down=0.5, kind="pointermove"):
        self.script(POINT, selector, across, down, kind)

    def map_of(self, key):
        return f'.player-stage:not(.player-small) .player-block[data-key="{key}"] .player-map'

    def card(self):
        return self.one(".player-card").text.replace("\n", " ")

    def test_an_element_lights_its_place_its_owner_and_its_line_in_every_frame(self):
        player = self.open(gathered_bucket())[0]
        # b[1,0] is element 10 of the bucket, which rank 1 owns.
        expected = {(1, "holds"): [["1/0", 83, 0]], (2, "moves"): [["0/0", 83, 0], ["1/0", 83, 0]],
                    (2, "holds"): [["0/0", 83, 0], ["1/0", 83, 0]], (3, "holds"): [["0/1", 0, 50], ["1/1", 0, 50]]}
        for (step, phase), lit in expected.items():
            self.go(player, step, phase)
            if step == 3:
                self.point(self.map_of("1/1"), 0.25, 0.75)
            else:
                self.point(self.map_of("1/0"), 10.5 / 12)
            with self.subTest(step=step, phase=phase):
                self.assertEqual(self.script(LIT), lit)
                self.assertEqual(player.get_dom_attribute("data-lit"), "b[1,0]")
                self.assertEqual([lane.get_dom_attribute("data-rank") for lane in self.all(".player-owner", player)], ["1"])
                for words in ("b[1,0] · owned by rank 1", "element 10 of bucket", "row 1, column 0 of b"):
                    self.assertIn(words, self.card())
                self.assertEqual(len(self.all(".player-card .player-lit")), 2, "both its bucket and its matrix")
                self.assertEqual(bool(self.all(".player-lit-code .player-marked")), step < 3)
        self.script("document.querySelector('.player-stage').dispatchEvent(new PointerEvent('pointerleave'))")
        self.assertEqual((self.script(LIT), self.all(".player-owner", player)), ([], []))

    def test_its_number_is_lit_and_numbers_light_elements(self):
        player = self.open(gathered_bucket())[0]
        self.go(player, 2, "holds")
        self.point(self.map_of("1/0"), 10.5 / 12)
        self.assertEqual([cell.text for cell in self.all("td.player-lit-number", player)], ["10"])
        cells = self.all("td[data-place]", player)
        self.script("arguments[0].focus()", cells[2])
        self.assertEqual(player.get_dom_attribute("data-lit"), "a[0,2]")
        self.press("right")
        self.assertEqual(player.get_dom_attribute("data-lit"), "a[1,0]")
        self.press("down")
        self.assertEqual(player.get_dom_attribute("data-lit"), "b[1,1]")
        self.press("left")
        self.assertEqual(player.get_dom_attribute("data-lit"), "b[1,0]")
        self.assertEqual(self.frame(player), (2, "holds"), "arrow keys go from number to number here")

    def test_a_tap_stays_until_another_one(self):
        player = self.open(gathered_bucket())[0]
        self.point(self.map_of("0/0"), 0.5 / 12, kind="click")
        self.assertEqual(player.get_dom_attribute("data-lit"), "a[0,0]")
        self.point(self.map_of("0/0"), 5.5 / 12, kind="pointermove")
        self.assertEqual(player.get_dom_attribute("data-lit"), "a[1,2]")
        self.script("document.querySelector('.player-stage').dispatchEvent(new PointerEvent('pointerleave'))")
        self.assertEqual(player.get_dom_attribute("data-lit"), "a[0,0]")

    def test_wherever_an_element_is_it_has_the_same_number_and_those_owners_whose_shards_have_it(self):
        # No two elements of lesson 04 have the same number, and those below 0 are padding.
        for number in ("04", "05"):
            self.open(record(number))
            wrong = self.script("""
              const mw = muonwalkPlayer, recording = mw.checkRecording(JSON.parse(document.getElementById("recording-0").textContent));
              const elements = new mw.Elements(recording), wrong = [], holds = recording.steps.flatMap((step) => step.holds.map((blocks, rank) => [rank, blocks]));
              for (const [rank, blocks] of holds) for (const block of blocks) block.values.forEach((value, place) => {
                const element = elements.at(rank, block, place), padding = arguments[0] && value < 0;
                if (!element !== padding) wrong.push([block.name, place, element]);
                if (!element) return;
                let found = 0;
                for (const [other, held] of holds) for (const candidate of held) {
                  const at = elements.placeIn(other, candidate, element);
                  if (at >= 0 && ++found && candidate.values[at] !== value) wrong.push([block.name, place, candidate.name, at]);
                }
                const owners = elements.ownersOf(element), shards = recording.steps[0].holds.flatMap((held, owner) =>
                  held.some((shard) => shard.values.includes(value)) ? [owner] : []);
                if (!found || (arguments[0] ? String(owners) !== String(shards) : owners.length !== 1)) wrong.push([block.name, place, owners]);
              });
              return wrong;""", number == "04")
            self.assertEqual(wrong, [], f"lesson {number}")


class Numbers(PlayerPage):
    def test_the_pointer_shows_numbers_as_long_as_it_stays(self):
        player = self.open(record("05"))[0]
        about = self.one(".player-about", player).text
        second = self.all(".player-block", player)[3]
        for kind, target in (("pointermove", second), ("pointerleave", self.one(".player-stage", player))):
            self.script("arguments[0].dispatchEvent(new PointerEvent(arguments[1], {pointerType: 'mouse', bubbles: true}))", target, kind)
            shown = self.one(".player-about", player).text
            self.assertIn("rank 1 · down" if kind == "pointermove" else about, shown)
        second.click()
        self.assertIn("rank 1 · down", self.one(".player-about", player).text)
