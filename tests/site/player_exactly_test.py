"""Where arrows begin, bend and end, how long pieces fly, how code scrolls, how numbers are written, and which recordings are refused: worked
out here by hand."""

import json
import math
import re
import struct

from headless_browser import set_media
from player_page import PlayerPage, by_hand, block, gathered_bucket, message, record

# Two or three lanes with boxes of known places: {lane: [(class, attributes, left, top, width, height), …]}.
STAGE = """
  const [lanes, many] = arguments;
  document.querySelector(".by-hand")?.remove();
  const put = (parent, name, data, [left, top, width, height]) => {
    const element = document.createElement("span");
    element.className = name;
    Object.assign(element.dataset, data);
    const around = parent.getBoundingClientRect();
    element.style.cssText = `all: unset; position: absolute; left: ${left - around.left}px; top: ${top - around.top}px; width: ${width}px; height: ${height}px`;
    parent.append(element);
    return element;
  };
  const stage = put(document.body, "by-hand", {}, [0, 0, 700, 500]);
  stage.style.position = "fixed";
  stage.style.left = "100px";
  stage.style.top = "50px";
  lanes.forEach((parts, rank) => {
    const lane = put(stage, "player-lane", {rank}, [100, 50 + 120 * rank, 700, 100]);
    let within = lane;
    for (const [name, data, box] of parts) {
      if (name.startsWith("player-block") || name === "player-sum") within = put(name === "player-sum" ? within : lane, name, data, box);
      else if (name === "player-map") within = put(within, name, data, box);
      else put(name.startsWith("player-badge") || name.startsWith("player-parcel") ? lane : within, name, data, box);
    }
  });
  const mw = muonwalkPlayer;
  mw.drawArrows(stage, (rank) => `rgb(${rank}, 0, 0)`);
  const svg = stage.querySelector("svg");
  return svg && [svg.getAttribute("class"), svg.getAttribute("width"), svg.getAttribute("height"), [...svg.querySelectorAll("g")].map((arrow) =>
    [arrow.dataset.from, arrow.dataset.to, arrow.style.getPropertyValue("--rank"), ...[...arrow.children].map((path) => path.getAttribute("d"))])];"""
FLIGHTS = """
  const [ranks, speed] = arguments, stage = document.querySelector(".by-hand");
  const took = muonwalkPlayer.fly(stage, ranks, speed);
  return [took, stage.classList.contains("player-flying"), stage.getAnimations({subtree: true}).map((flight) =>
    [flight.effect.getTiming().delay, flight.effect.getTiming().duration, flight.effect.getTiming().fill, ...flight.effect.getKeyframes().map((frame) => `${frame.transform} ${frame.zIndex}`)])];"""


def numbers(path):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", path)]


class ArrowsByHand(PlayerPage):
    def drawn(self, *lanes):
        self.open(record("05"))
        return self.script(STAGE, lanes)

    def check(self, arrow, start, control, end):
        """The places are counted from the corner of the stage, at 100, 50."""
        start, control, end = ([x - 100, y - 50] for x, y in (start, control, end))
        halo, line, head = map(numbers, arrow[3:])
        self.assertEqual(halo, line)
        angle = math.atan2(end[1] - control[1], end[0] - control[0])
        barbs = [[end[0] - 8 * math.cos(angle + turn), end[1] - 8 * math.sin(angle + turn)] for turn in (0.42, -0.42)]
        for wanted, found in ((start + control + end, line), (end + barbs[0] + barbs[1], head)):
            self.assertEqual(len(wanted), len(found))
            for a, b in zip(wanted, found):
                self.assertAlmostEqual(a, b, delta=0.01)

    BADGES = [[["player-badge", {}, [100, 60 + 120 * rank, 40, 20]]] for rank in range(3)]

    def test_a_gathered_piece_comes_from_its_senders_own(self):
        lanes = [[*self.BADGES[rank], ["player-block", {"tensor": 3}, [150, 50 + 120 * rank, 600, 90]], ["player-map", {}, [200, 70 + 120 * rank, 200, 20]]]
                 for rank in range(3)]
        lanes[0] += [["player-own", {"from": 0}, [200, 70, 100, 20]], ["player-arrives", {"from": 1}, [300, 70, 60, 20]]]
        lanes[1] += [["player-arrives", {"from": 0}, [200, 190, 120, 20]], ["player-own", {"from": 1}, [320, 190, 60, 20]]]
        lanes[2] += [["player-arrives", {"from": 0}, [210, 310, 50, 20]], ["player-arrives", {"from": 1}, [260, 310, 50, 20]]]
        name, wide, high, arrows = self.drawn(*lanes)
        self.assertEqual((name, wide, high), ("player-arrows", "700", "500"))
        self.assertEqual([arrow[:3] for arrow in arrows], [["1", "0", "rgb(1, 0, 0)"], ["0", "1", "rgb(0, 0, 0)"], ["0", "2", "rgb(0, 0, 0)"], ["1", "2", "rgb(1, 0, 0)"]])
        self.check(arrows[0], (350, 190), (340 + 12 + 7, 140), (330, 90))
        self.check(arrows[1], (250, 90), (255 + 12 + 7, 140), (260, 190))
        self.check(arrows[2], (250, 90), (242.5 + 12 + 14, 200), (235, 310))
        self.check(arrows[3], (350, 210), (317.5 + 12 + 7, 260), (285, 310))

    def test_between_lanes_side_by_side_it_leaves_at_the_side_and_bends_up(self):
        lanes = [[*self.BADGES[0], ["player-block", {"tensor": 3}, [150, 50, 200, 90]], ["player-own", {}, [160, 70, 100, 20]], ["player-arrives", {"from": 1}, [270, 70, 10, 20]]],
                 [*self.BADGES[1], ["player-block", {"tensor": 3}, [450, 50, 200, 90]], ["player-own", {}, [460, 73, 100, 20]], ["player-arrives", {"from": 0}, [600, 73, 20, 20]]]]
        arrows = self.drawn(*lanes)[3]
        self.check(arrows[0], (460, 83), (370, 83 - 14 - 7), (280, 80))
        self.check(arrows[1], (260, 80), (430, 80 - 14 - 7), (600, 83))

    def test_four_pixels_apart_is_above_each_other(self):
        lanes = [[*self.BADGES[0], ["player-block", {"tensor": 3}, [150, 50, 200, 90]], ["player-own", {}, [160, 70, 100, 20]]],
                 [*self.BADGES[1], ["player-block", {"tensor": 3}, [450, 50, 200, 90]], ["player-arrives", {"from": 0}, [600, 74, 20, 20]]]]
        self.check(self.drawn(*lanes)[3][0], (210, 90), (410 + 12 + 7, 82), (610, 74))

    def test_a_term_of_a_sum_comes_from_the_same_place_of_what_its_sender_adds(self):
        lanes = [[*self.BADGES[rank], ["player-block", {"tensor": 3, "adds": "yes"}, [150, 50 + 120 * rank, 200, 90]], ["player-map", {}, [160, 70 + 120 * rank, 120, 20]],
                  ["player-own", {}, [160, 70 + 120 * rank, 120, 20]],
                  ["player-block", {"tensor": 3}, [450, 50 + 120 * rank, 200, 90]], ["player-sum", {}, [460, 60 + 120 * rank, 180, 80]],
                  ["player-map", {}, [460, 60 + 120 * rank, 60, 20]]] for rank in range(2)]
        lanes[1] += [["player-arrives", {"from": 0}, [475, 180, 15, 20]]]
        arrows = self.drawn(*lanes)[3]
        self.assertEqual(len(arrows), 1)
        # A quarter to a half of the target's map is that of a map of 120: 190 to 220.
        self.check(arrows[0], (205, 90), ((205 + 482.5) / 2 + 12 + 7, 135), (482.5, 180))

    def test_what_has_no_such_place_comes_from_the_senders_name_and_of_two_ranks_once(self):
        lanes = [[*self.BADGES[0], ["player-block", {"tensor": 4}, [150, 50, 200, 90]], ["player-own", {}, [160, 70, 100, 20]]],
                 [*self.BADGES[1], ["player-parcel", {"from": 0}, [300, 190, 40, 20]], ["player-parcel", {"from": 0}, [360, 190, 40, 20]],
                  ["player-parcel player-mine", {"from": 1}, [420, 190, 40, 20]], ["player-block", {"tensor": 3}, [500, 170, 200, 90]],
                  ["player-arrives", {"from": 0}, [520, 190, 20, 20]], ["player-arrives", {"from": 0}, [560, 190, 0, 20]],
                  ["player-sum", {}, [600, 170, 80, 80]], ["player-map", {}, [600, 170, 80, 80]], ["player-arrives", {"from": 0}, [610, 180, 20, 20]]],
                 [*self.BADGES[2], ["player-parcel", {"from": 0}, [300, 310, 40, 20]]]]
        arrows = self.drawn(*lanes)[3]
        self.assertEqual([arrow[:2] for arrow in arrows], [["0", "1"], ["0", "1"], ["0", "1"], ["0", "2"]])
        ends = sorted(tuple(numbers(arrow[4])) for arrow in arrows)
        self.assertEqual([end[:2] for end in ends], [(20, 30)] * 4, "all begin at the name")
        self.assertEqual(sorted(end[4:] for end in ends), [(220, 140), (220, 260), (430, 140), (520, 130)])

    def test_nothing_arrives_without_arrows_and_more_than_forty_are_thin(self):
        self.assertIsNone(self.drawn(*self.BADGES))
        for count, name in ((40, "player-arrows"), (41, "player-arrows player-many")):
            lanes = [[*self.BADGES[0]], [*self.BADGES[1], ["player-block", {"tensor": 3}, [150, 170, 600, 90]],
                                         *([["player-arrives", {"from": 0}, [160 + 10 * at, 190, 8, 20]] for at in range(count)])]]
            self.assertEqual(self.drawn(*lanes)[0], name)

    def test_how_long_pieces_fly(self):
        lanes = [[*self.BADGES[0], ["player-parcel", {"from": 1}, [300, 70, 40, 20]]],
                 [*self.BADGES[1], ["player-parcel", {"from": 0}, [300, 190, 40, 20]], ["player-parcel player-mine", {"from": 1}, [420, 190, 40, 20]]]]
        for speed in (1, 2, 0.5):
            self.drawn(*lanes)
            took, flies, flights = self.script(FLIGHTS, 4, speed)
            self.assertEqual((took, flies), ((150 + 4 * 180 + 800) / speed, True))
            self.assertEqual(flights, [[(150 + 180) / speed, 800 / speed, "backwards", "translate(-200px, 110px) 3", "none 3"],
                                       [150 / speed, 800 / speed, "backwards", "translate(-200px, -130px) 3", "none 3"]])
        self.script("document.querySelector('.by-hand').getAnimations({subtree: true}).forEach((flight) => flight.finish())")
        self.settle()
        self.assertFalse(self.script("return document.querySelector('.by-hand').classList.contains('player-flying')"))
        self.drawn(*self.BADGES)
        self.assertEqual(self.script(FLIGHTS, 4, 1), [0, False, []])

    def test_what_flies_is_waited_for(self):
        set_media(self.browser, prefers_reduced_motion="no-preference")
        for speed in (1, 4):
            player = self.open(gathered_bucket(), head="<script>const times = []; setTimeout = (call, time) => (times.push([call, time]), times.length);</script>")[0]
            times = self.script("""
              const [player, speed] = arguments, select = player.querySelector(".player-speed");
              select.value = speed;
              select.dispatchEvent(new Event("change"));
              player.querySelector(".player-play").click();
              for (let at = 0; at < times.length && at < 20; ++at) times[at][0]();
              return [times.map(([, time]) => time), player.dataset.playing]""", player, speed)
            self.assertEqual(times, [[0, *((2600 + flight) / speed for flight in (150 + 2 * 180 + 800, 0, 0))], "no"])


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
    def test_each_recording_that_lacks_something_is_refused_with_what_it_lacks(self):
        whole = {**by_hand([([message(0, 1, 3)], [[block("a", 0, 0, 6, 6, spans=[[0, 0, 2, 0], [1, 3, 6, 0]])], []]), ([], [[], [block("b", 1, 0, 2, 2)]])])}
        packed = json.loads(json.dumps(whole))
        packed["kinds"] = [{"collective": "all_gather", "group": "dp", "type": "float32"}]
        packed["steps"][0]["moves"] = [[0, 1, 0, 3, 12, 0]]
        step, held, spans, moves = ["steps", 0], ["steps", 0, "holds", 0, 0], ["steps", 0, "holds", 0, 0, "spans"], ["steps", 0, "moves", 0]
        not_there = "step 1 has a message from or to a rank that is not there"
        outside = "step 1 has a span outside of a"
        cases = [([*lacking], value, "it has no " + says) for lacking, value, says in (
            *(([name], value, f'list "{name}"') for name in ("ranks", "steps", "tensors", "before", "after") for value in (None, {})),
            (["ranks"], [], "step or no rank"), (["steps"], [], "step or no rank"), (["grid"], None, "grid"), *((["grid", name], 0, "grid") for name in ("dp", "tp", "pp")),
            (["palette"], None, "palette"), *((["palette", name], value, "palette") for name in ("tensors", "ranks") for value in (None, [])))]
        cases += [([*step, name], None, "step 1 has no lines or no moves") for name in ("lines", "moves")]
        cases += [([*step, name], value, f'step 1 needs one list "{name}" for each of 2 ranks') for name in ("holds", "says") for value in (None, [[]], [[], [], []])]
        cases += [([*held, "tensor"], 3, "step 1 shows a tensor that is not in the list"), ([*held, "values"], [1] * 5, "step 1 has not as many numbers of a as its shape says"),
                  ([*held, "values"], [1] * 7, "step 1 has not as many numbers of a as its shape says"), ([*spans, 1, 0], 3, "step 1 has a span of a tensor that is not in the list"),
                  ([*spans, 1, 1], 1, outside), ([*spans, 0, 2], -1, outside), ([*spans, 1, 2], 7, outside), ([*spans, 0, 3], -1, outside), ([*spans, 1, 2], 2, outside),
                  ([*moves, "from"], 2, not_there), ([*moves, "to"], 2, not_there), ([*moves, "to"], -1, not_there)]
        right = [([*held, "values"], None), ([*spans, 1, 1], 2), ([*spans, 1, 2], 3), ([*spans, 0, 0], 2), (["steps", 1, "moves"], [])]
        of_packed = [([*moves], 7, "step 1 has a message of a kind that is not in the list"), ([*moves, 2], 1, "step 1 has a message of a kind that is not in the list"),
                     ([*moves, 0], 2, not_there), ([*moves, 1], 2, not_there)]
        self.open(record("05"))

        def said(recording, place, value):
            changed = json.loads(json.dumps(recording))
            at = changed
            for name in place[:-1]:
                at = at[name]
            at[place[-1]] = value
            return self.script("try { muonwalkPlayer.checkRecording(arguments[0]); return ''; } catch (error) { return error.message; }", changed)

        for recording, wrong in ((whole, cases), (packed, of_packed)):
            self.assertEqual(said(recording, ["version"], 1), "")
            for place, value, says in wrong:
                self.assertEqual(said(recording, place, value), f"the recording is damaged ({says})", f"{place} = {value}")
        for place, value in right:
            self.assertEqual(said(whole, place, value), "", f"{place} = {value}")
        unpacked = self.script("return muonwalkPlayer.checkRecording(arguments[0]).steps[0].moves", packed)
        self.assertEqual(unpacked, [message(0, 1, 3)])

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
