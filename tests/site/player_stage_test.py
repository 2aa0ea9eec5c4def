"""What a frame shows: blocks, maps and labels that agree, pieces, arrows, sums, parameters and padding."""

from headless_browser import set_media
from player_page import RUNS, PlayerPage, block, by_hand, gathered_bucket, message, printed, record


class Blocks(PlayerPage):
    def test_every_block_is_named_placed_and_shows_its_numbers(self):
        for number in RUNS:
            recording = record(number)
            player = self.open(recording)[0]
            for step in recording["steps"]:
                self.go(player, step["number"], "holds")
                for rank, blocks in enumerate(step["holds"]):
                    shown = self.all(f'.player-lane[data-rank="{rank}"] .player-block', player)
                    self.assertEqual(len(shown), len(blocks))
                    for element, its_block in zip(shown, blocks):
                        with self.subTest(lesson=number, step=step["number"], rank=rank, block=its_block["name"]):
                            self.check_block(element, its_block, rank)

    def check_block(self, element, its_block, rank):
        shown = self.script("""
          const block = arguments[0], player = block.closest(".muonwalk-player");
          const text = (selector) => player.querySelector(selector)?.textContent;
          block.focus();
          const table = player.querySelector(".player-numbers");
          const heads = (part) => [...player.querySelectorAll(`.player-numbers ${part} th`)].map((th) => th.textContent);
          return {name: block.querySelector("b").textContent, label: block.getAttribute("aria-description"),
                  text: block.textContent, pressed: block.getAttribute("aria-pressed"),
                  about: text(".player-about"), rows: heads("tbody"), columns: heads("thead"),
                  description: table && table.getAttribute("aria-description")};""", element)
        self.assertEqual(shown["name"], its_block["name"])
        self.assertIn(f"rank {rank}: {its_block['name']}", shown["label"])
        self.assertIn(f"{its_block['bytes']:,} B", shown["text"])
        self.assertEqual(shown["pressed"], "true")
        self.assertIn(f"rank {rank} · {its_block['name']}", shown["about"])
        lines, exact = self.numbers(None)
        if its_block["values"] is None:
            self.assertEqual(lines, [])
            return
        self.assertEqual(exact, self.script("return arguments[0].map(String)", its_block["values"]))
        self.assertEqual([text for line in lines for text in line], [printed(value) for value in its_block["values"]])
        # Rows and columns are counted as in the whole; of a flat array, a line's number and a column's make up the place.
        first_row = its_block["begin"] if its_block["unit"] in ("rows", "elements") else 0
        first_column = its_block["begin"] if its_block["unit"] == "columns" else 0
        if its_block["flat"]:
            wide = len(lines[0])
            self.assertEqual(shown["rows"], [str(first_row + wide * line) for line in range(len(lines))])
            self.assertEqual(shown["columns"], [f"+{column}" for column in range(wide)])
        else:
            self.assertEqual([len(line) for line in lines], [its_block["cols"]] * its_block["rows"])
            self.assertEqual(shown["rows"], [str(first_row + row) for row in range(its_block["rows"])])
            self.assertEqual(shown["columns"], [str(first_column + column) for column in range(its_block["cols"])])
        self.assertIn(f"{its_block['rows']} row" if not its_block["flat"] else f"{its_block['cols']} number", shown["description"])

    def test_a_frame_of_moves_shows_the_block_that_it_fills_and_says_what_was_there(self):
        player = self.open(record("04"))[0]
        self.go(player, 2, "moves")
        label = self.all(".player-label", player)[2].text
        for words in ("bucket 0", "elements 0–23 of 48", "24 elements · 96 B", "elements 12–23 were here"):
            self.assertIn(words, label)

    def test_numbers_read_as_the_program_prints_them(self):
        recording = record("05")
        values = [0, -0.0, 1, -1, 0.5, 123.4, 1234, 12345, 123456.7, 99995, 9999.4, 9999.6, 0.001, 0.0001, 0.00001,
                  1e-7, 3.1415927, -2.7182817, 1e10, 3.4028235e38, 1.1754944e-38, "nan", "inf", "-inf", 0.00099996,
                  999.96, 0.1, 1 / 3, 2.5, 1000, 10000, 100000]
        recording["steps"][0]["holds"][0][0].update(values=values, rows=4, cols=8)
        player = self.open(recording)[0]
        shown = [text for line in self.numbers(player)[0] for text in line]
        self.assertEqual(shown, [printed(value) for value in values])

    def test_a_part_that_all_ranks_hold_is_named_by_its_place(self):
        player = self.open(record("04"))[0]
        said = self.one("[aria-live=polite]", player)
        self.assertEqual(said.text, "Every rank holds a part of bucket 0 and a part of bucket 1.")
        self.go(player, 2, "holds")
        self.assertEqual(said.text, "Every rank holds bucket 0, elements 0–23.")


# A function of a page: blocks of the frame that is shown whose map shows another part of its whole, or another number of elements,
# than the label beside it says.
LABELS_THAT_DIFFER = r"""() => {
      const number = (text) => Number(text.replace(/,/g, ""));
      return [...document.querySelectorAll(".player-stage:not(.player-small) .player-block")].map((block) => {
        const words = [...block.querySelector(".player-label").children].map((part) => part.textContent).join(" · ");
        const map = [...block.querySelectorAll(".player-map")].pop();
        const box = map.getBoundingClientRect();
        const pieces = [...map.querySelectorAll(".player-piece")].map((piece) => piece.getBoundingClientRect());
        const down = /rows [\d,]+/.test(block.querySelector(".player-range")?.textContent || "");
        const [from, to, size] = down ? ["top", "bottom", "height"] : ["left", "right", "width"];
        const shown = [Math.min(...pieces.map((piece) => piece[from])), Math.max(...pieces.map((piece) => piece[to]))]
          .map((edge) => (edge - box[from]) / box[size]);
        const range = words.match(/(?:elements|rows|columns) ([\d,]+)(?:–([\d,]+))? of ([\d,]+)/);
        const said = range ? [number(range[1]) / number(range[3]), (number(range[2] || range[1]) + 1) / number(range[3])] : [0, 1];
        const covered = pieces.reduce((sum, piece) => sum + piece.width * piece.height, 0) / (box.width * box.height);
        const count = words.match(/([\d,]+) elements?/), across = Number(map.style.getPropertyValue("--across"));
        const close = (a, b) => Math.abs(a - b) < 0.012;
        const agrees = close(shown[0], said[0]) && close(shown[1], said[1]) && covered < said[1] - said[0] + 0.02 &&
          (!map.matches(".player-flat") || !count || close(number(count[1]) / across, said[1] - said[0]));
        return agrees ? null : `${block.dataset.key} says ${words} and shows ${shown}`;
      }).filter(Boolean);
}"""


class Arrivals(PlayerPage):
    def test_pieces_arrive_where_their_sender_held_them(self):
        for number, step_number in (("05", 2), ("05", 3), ("04", 2), ("04", 4), ("08", 5), ("09", 5), ("09", 11)):
            recording = record(number)
            player = self.open(recording)[0]
            self.go(player, step_number, "moves")
            step = recording["steps"][step_number - 1]
            for rank, blocks in enumerate(step["holds"]):
                senders = sorted(move["from"] for move in step["moves"] if move["to"] == rank)
                shown = self.pieces(rank)
                with self.subTest(lesson=number, step=step_number, rank=rank):
                    self.assertEqual(sorted(piece["from"] for its_block in shown for piece in its_block if piece["kind"] == "arrives"), senders)
                    for its_block, pieces in zip(blocks, shown):
                        self.assertEqual([piece["from"] for piece in pieces if piece["kind"] == "own"], [rank], "its own is there")
                        for piece in pieces:
                            self.check_place(recording, step_number, its_block, piece)

    def check_place(self, recording, step_number, its_block, piece):
        held = [earlier for step in recording["steps"][:step_number - 1] for earlier in step["holds"][piece["from"]]
                if earlier["tensor"] == its_block["tensor"]][-1]
        first, last = ("top", "bottom") if held["unit"] == "rows" else ("left", "right")
        self.assertAlmostEqual(piece[first], held["begin"] / held["of"], delta=0.01)
        self.assertAlmostEqual(piece[last], held["end"] / held["of"], delta=0.01)

    def test_what_has_arrived_keeps_the_outline_of_its_sender_when_the_step_has_ended(self):
        player = self.open(record("04"))[0]
        self.go(player, 2, "moves")
        moving = [self.pieces(rank) for rank in range(4)]
        self.go(player, 2, "holds")
        self.assertEqual([self.pieces(rank) for rank in range(4)], moving)
        colours = self.script("""return [...document.querySelectorAll('.player-lane[data-rank="0"] .player-piece')].map(
          (piece) => getComputedStyle(piece, "::after").boxShadow.match(/rgb\\([^)]*\\)/)[0])""")
        ranks = record("04")["palette"]["ranks"]
        self.assertEqual(colours, ["rgb(%d, %d, %d)" % tuple(bytes.fromhex(ranks[rank]["light"][1:])) for rank in (0, 2)])

    def test_messages_without_a_place_are_parcels_and_those_of_one_sender_are_added_up(self):
        moves = [message(0, 1, 3, "send"), message(0, 1, 5, "send", call=1), message(1, 0, 6, "send")]
        player = self.open(by_hand([([], [[], []]), (moves, [[block("a", 0, 0, 1, 4)], [block("a", 0, 0, 1, 4)]])]))[0]
        self.go(player, 2, "moves")
        self.assertEqual([[parcel.text for parcel in self.all(".player-parcel", lane)] for lane in self.all(".player-lane", player)],
                         [["from rank 1: 24 B"], ["from rank 0: 32 B"]])
        self.assertEqual(self.one("[aria-live=polite]", player).text, "send over dp sends 3 messages, 56 B in all.")

    def test_slices_arrive_as_rows_or_columns_even_where_the_run_shows_them_only_later(self):
        player = self.open(record("09"))[0]
        self.go(player, 6, "moves")
        sizes = self.script("""
          return [...document.querySelectorAll('.player-lane[data-rank="0"] .player-block')].map((block) => [
            block.querySelector("b").textContent, block.querySelector(".player-arrives").style.height])""")
        self.assertEqual(sizes, [["w0", "50%"], ["w1", "100%"], ["w3", "100%"]])

    def test_messages_are_listed_and_summed(self):
        player = self.open(record("05"))[0]
        self.go(player, 2, "moves")
        self.all(".player-inspector, .player-tab", player)
        next(tab for tab in self.all(".player-tab", player) if tab.text == "Messages").click()
        self.assertEqual([item.text for item in self.all(".player-moves li", player)],
                         ["rank 0 → rank 1 12 elements · 48 B", "rank 1 → rank 0 12 elements · 48 B"])
        said = self.one("[aria-live=polite]", player)
        self.assertEqual(said.text, "all_gather over tp sends 2 messages of 48 B, 96 B in all.")
        self.one(".player-forward", player).click()
        self.assertEqual(said.text, "Every rank holds all of up.")


class Sums(PlayerPage):
    def test_a_sum_shows_its_terms_what_each_rank_adds_and_the_sum(self):
        whole = [[block("a", 0, 0, 6, 6)] for _ in range(3)]
        sums = [[block("a", 0, 2 * rank, 2 * rank + 2, 6)] for rank in range(3)]
        moves = [message(sender, receiver, 2, "reduce_scatter") for sender in range(3) for receiver in range(3) if sender != receiver]
        player = self.open(by_hand([([], whole), (moves, sums)], dp=3))[0]
        self.go(player, 2, "moves")
        for rank in range(3):
            lane = self.one(f'.player-lane[data-rank="{rank}"]', player)
            self.assertEqual([sign.text for sign in self.all(".player-sign", lane)], ["", "+", "+", "="])
            adds, terms = self.pieces(rank)
            self.assertEqual([round(adds[0][side], 2) for side in ("left", "right")], [0, 1], "what it adds is the whole")
            self.assertEqual([piece["from"] for piece in terms], [0, 1, 2, rank])
            for piece in terms:
                self.assertAlmostEqual(piece["left"], rank / 3, delta=0.01)
                self.assertAlmostEqual(piece["right"], (rank + 1) / 3, delta=0.01)
            self.assertIn("sum of 3 ranks", lane.text)
        self.assertEqual(len(self.all(".player-arrow", player)), 6)


class Spans(PlayerPage):
    def fills(self, selector):
        return self.script("""
          return [...document.querySelectorAll(arguments[0])].map((part) => {
            const at = part.getBoundingClientRect(), map = part.closest(".player-map").getBoundingClientRect();
            return [part.className.split(" ")[0], part.dataset.tensor ? Number(part.dataset.tensor) : null,
                    getComputedStyle(part).backgroundColor, Math.round(100 * (at.left - map.left) / map.width),
                    Math.round(100 * (at.right - map.left) / map.width)]; })""", selector)

    def test_a_bucket_shows_its_parameters_and_its_padding(self):
        player = self.open(gathered_bucket())[0]
        self.go(player, 2, "holds")
        colours = record("05")["palette"]["tensors"]
        a, b = ["rgb(%d, %d, %d)" % tuple(bytes.fromhex(colours[tensor]["light"][1:])) for tensor in (0, 1)]
        shown = self.fills('.player-lane[data-rank="0"] :is(.player-span, .player-padding)')
        self.assertEqual([part[:2] + part[3:] for part in shown],
                         [["player-span", 0, 0, 50], ["player-padding", None, 50, 67], ["player-span", 1, 67, 100]])
        self.assertEqual([shown[0][2], shown[2][2]], [a, b])
        hatched = self.script("return getComputedStyle(document.querySelector('.player-map .player-padding')).backgroundImage")
        self.assertIn("repeating-linear-gradient", hatched)
        # A shard has its part of them where it lies in the buffer.
        self.go(player, 1, "holds")
        shown = self.fills('.player-lane[data-rank="1"] :is(.player-span, .player-padding)')
        self.assertEqual([part[:2] + part[3:] for part in shown], [["player-padding", None, 50, 67], ["player-span", 1, 67, 100]])

    def test_a_parameter_has_one_colour_everywhere(self):
        player = self.open(gathered_bucket())[0]
        seen = {}
        self.focus(player)
        for _ in range(4):
            for tensor, colour in self.script("""
                return [...document.querySelectorAll(".player-stage .player-span[data-tensor]")].map((span) =>
                  [span.dataset.tensor, getComputedStyle(span).backgroundColor]).concat(
                  [...document.querySelectorAll(".player-block:not(.player-long)")].map((block) =>
                    [block.dataset.tensor, getComputedStyle(block.querySelector(".player-piece")).backgroundColor]))"""):
                seen.setdefault(tensor, set()).add(colour)
            self.press("right")
        self.assertEqual({tensor: len(colours) for tensor, colours in seen.items()}, {"0": 1, "1": 1})
        self.assertEqual([item.text for item in self.all(".player-legend li", player)],
                         ["a", "b", "padding", "outline: the rank that it comes from"])


class Motion(PlayerPage):
    def test_an_arrow_leads_from_what_was_sent_to_where_it_arrived(self):
        for number, step in (("04", 2), ("05", 3), ("08", 5), ("09", 3), ("09", 5), ("09", 6)):
            player = self.open(record(number))[0]
            self.go(player, step, "moves")
            wrong = self.script("""
              const stage = document.querySelector(".player-stage").getBoundingClientRect();
              const near = (point, box) => point.x + stage.left > box.left - 2 && point.x + stage.left < box.right + 2 &&
                point.y + stage.top > box.top - 2 && point.y + stage.top < box.bottom + 2;
              const lane = (rank) => document.querySelector(`.player-lane[data-rank="${rank}"]`);
              return [...document.querySelectorAll(".player-arrow")].filter((arrow) => {
                const line = arrow.querySelector(".player-arrow-line");
                const [start, end] = [line.getPointAtLength(0), line.getPointAtLength(line.getTotalLength())];
                const pieces = [...lane(arrow.dataset.to).querySelectorAll(`.player-arrives[data-from="${arrow.dataset.from}"]`)];
                const sent = [...lane(arrow.dataset.from).querySelectorAll(".player-own")];
                return !(pieces.some((piece) => near(end, piece.getBoundingClientRect())) &&
                         sent.some((piece) => near(start, piece.getBoundingClientRect())));
              }).map((arrow) => `${arrow.dataset.from} ${arrow.dataset.to}`)""")
            with self.subTest(lesson=number, step=step):
                self.assertEqual(wrong, [])
                self.assertEqual(len(self.all(".player-arrow", player)), len(record(number)["steps"][step - 1]["moves"]))

    def test_pieces_travel_unless_the_reader_prefers_reduced_motion(self):
        for preference, travels in (("reduce", False), ("no-preference", True)):
            set_media(self.browser, prefers_reduced_motion=preference)
            for number in RUNS:
                self.open(record(number))
                for step in (step for step in record(number)["steps"] if step["moves"]):
                    with self.subTest(motion=preference, lesson=number, step=step["number"]):
                        flights, pieces = self.script("""
                          document.querySelectorAll(".player-tick")[arguments[0]].click();
                          return [document.getAnimations().map((flight) => flight.effect.target.dataset.from),
                                  document.querySelectorAll(".player-arrives, .player-parcel:not(.player-mine)").length];
                          """, step["number"] - 1)
                        self.assertGreater(pieces, 0)
                        self.assertEqual(len(flights), pieces if travels else 0)

    def test_a_piece_starts_in_the_lane_of_its_sender(self):
        set_media(self.browser, prefers_reduced_motion="no-preference")
        self.open(record("04"))
        starts = self.script("""
          document.querySelectorAll(".player-tick")[1].click();
          return document.getAnimations().map((flight) => {
            flight.pause(); flight.currentTime = flight.effect.getTiming().delay;
            const piece = flight.effect.target, at = piece.getBoundingClientRect();
            const sender = document.querySelector(`.player-lane[data-rank="${piece.dataset.from}"]`);
            const lane = sender.getBoundingClientRect();
            return at.top >= lane.top && at.bottom <= lane.bottom && at.left >= lane.left; });""")
        self.assertEqual(starts, [True] * 4)
