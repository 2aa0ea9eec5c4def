"""How code scrolls, how numbers, sizes and long lists are written, and what is said of data that a page lacks: worked out here by hand."""

from player_page import PlayerPage, by_hand, message, record


class CodeAndNumbers(PlayerPage):
    def test_the_first_marked_line_has_two_lines_above_it(self):
        lines = "".join(f'<div class="line" style="height: 20px">line({number});</div>' for number in range(200))
        for marked in (150, 2, 0, 5):
            code = {"sources": [{"name": "long", "html": lines}], "steps": [{"step": 1, "shown": [{"source": 0, "moves": [], "holds": [190, marked]}]}]}
            self.open(record("05"), code=code)
            inset = self.script("""const code = document.querySelector(".player-code"), first = code.querySelector(".line");
                                   return first.getBoundingClientRect().top - code.getBoundingClientRect().top + code.scrollTop""")
            self.assertAlmostEqual(self.script("return document.querySelector('.player-code').scrollTop"), max(0, 20 * (marked - 2) + inset), delta=1.01)

    def test_long_lists_of_messages_are_folded_and_cut(self):
        for count, folded, listed, more in ((8, False, 8, None), (9, True, 9, None), (240, True, 240, None), (241, True, 241, "and 1 message more"), (1242, True, 241, "and 1,002 messages more")):
            self.open(by_hand([([message(0, 1, 1, "send", call=call) for call in range(count)], [[], []])]))
            found = self.script("""const list = [...document.querySelectorAll(".player-moves li")];
                                   return [Boolean(document.querySelector(".player-moves details")), list.length, list[list.length - 1].textContent]""")
            self.assertEqual(found[:2], [folded, listed])
            self.assertEqual(found[2], more or "rank 0 → rank 1 1 element · 4 B")

    def test_what_a_rank_says_is_cut_after_three_lines(self):
        for lines, shown in ((["a"], ["a"]), (list("abc"), list("abc")), (list("abcd"), [*"abc", "and 1 line more, among the prints"]),
                             (list("abcdef"), [*"abc", "and 3 lines more, among the prints"])):
            recording = by_hand([([], [[], []])])
            recording["steps"][0]["says"] = [lines, []]
            self.open(recording)
            self.assertEqual([word.text for word in self.all('.player-lane[data-rank="0"] .player-word')], shown)
            self.assertEqual([word.text for word in self.all('.player-lane[data-rank="1"] .player-word')], ["shows nothing"])


class Refused(PlayerPage):
    def test_data_that_a_page_lacks(self):
        page = '<div class="muonwalk-player" id="one" data-recording="nowhere"></div><div class="muonwalk-player" id="two"></div>'
        self.open(record("05"), body=page)
        again = "building the site again with ./walk docs makes a new recording."
        for name, says in (("one", 'the page has no recording with the id "nowhere"'), ("two", 'the page has no recording with the id "undefined"')):
            self.assertEqual(self.one(f"#{name}").text, f"This run can't be replayed: {says}; {again}")
        player = self.open(record("05"), body='<script type="application/json" id="broken">{</script>')[0]
        said = self.script("""try { muonwalkPlayer.readJson("broken", "code"); } catch (error) { return error.message; }""")
        self.assertRegex(said, r'^the code "broken" is damaged \(.+\)$')
        self.assertIsNotNone(player)
