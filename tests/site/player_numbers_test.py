"""How code scrolls, how numbers, sizes and long lists are written, and what is said of data that a page lacks: worked out here by hand."""

import struct

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

    def test_numbers_are_written_as_the_lessons_print_them(self):
        self.open(record("05"))
        values = [0.0, 1.0, -1.0, 0.5, 1.25, 9.9994, 9.9996, 99.995, 999.95, 9999.4, 9999.6, 12345.678, 123456.0, 1e10, -2.5e-5, 0.0001, 0.00099995, 0.00012345,
                  0.000099999, 1e-10, 1.5e38, 1e-38, 3.14159265, -1234.5, 2.0005, 2.0015, 1.0625, 0.03125, 1 / 3, 100.0, 1000.0, 10000.0, 1e20, 0.1, 123.45, 6.5e-7]
        shown = self.script("return arguments[0].map(muonwalkPlayer.numberText)", values)
        self.assertEqual(shown, ["%.4g" % struct.unpack("f", struct.pack("f", value)) for value in values])
        self.assertEqual(self.script("return ['nan', 'inf', '-inf', -0].map(muonwalkPlayer.numberText)"), ["nan", "inf", "-inf", "-0"])

    def test_words_of_sizes_and_places(self):
        self.open(record("05"))
        said = self.script("""
          const { grouped, count, bytesText, capital, joined, shapeText, rangeText, nameText, blockText, isWhole, elementsOf } = muonwalkPlayer;
          const flat = { name: "f", flat: true, rows: 1, cols: 1200, unit: "elements", begin: 1200, end: 2400, of: 3600, bytes: 4800 };
          const one = { ...flat, cols: 1, begin: 1200, end: 1201 }, whole = { ...flat, begin: 0, end: 3600 };
          const matrix = { name: "m", flat: false, rows: 20, cols: 3, unit: "", bytes: 240 };
          return [[0, 7, 999, 1000, 123456, 1234567].map(grouped), [count(0, "rank"), count(1, "rank"), count(2, "rank"), count(1000, "element")],
                  [bytesText(1), bytesText(12345)], [capital("a b"), capital("")], [joined([]), joined([1]), joined([1, 2]), joined([1, 2, 3])],
                  [shapeText(flat), shapeText(one), shapeText(matrix)], [rangeText(flat), rangeText(one)], [nameText(flat), nameText(matrix)],
                  [blockText(flat), blockText(matrix)], [isWhole(flat), isWhole(whole), isWhole(matrix), isWhole({ ...flat, begin: 0 }), isWhole({ ...whole, begin: 1 })], elementsOf(matrix)];""")
        self.assertEqual(said, [["0", "7", "999", "1,000", "123,456", "1,234,567"], ["0 ranks", "1 rank", "2 ranks", "1,000 elements"], ["1 B", "12,345 B"], ["A b", ""],
                                ["", "1", "1 and 2", "1, 2 and 3"], ["1,200 elements", "1 element", "20 × 3"], ["1,200–2,399", "1,200"], ["f[elements 1,200–2,399]", "m"],
                                ["f[elements 1,200–2,399], 1,200 elements, 4,800 B", "m, 20 × 3, 240 B"], [False, True, True, False, False], 60])

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
