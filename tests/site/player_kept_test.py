"""All that a player shows of runs made by hand, in every frame and of whatever is pointed at, is what is kept in tests/golden."""

import re

from headless_browser import set_media, set_size
from page_lines import DO, LINES, MEMORY, changed, expect_kept
from page_looks import looks_of
from player_page import PlayerPage, block, by_hand, gathered_bucket, matrix, message

PLAYER = 'const player = document.querySelector(".muonwalk-player");'
STAGE = ".player-stage:not(.player-small)"
IN_EVERY_FRAME = ["focus('.player-numbers td', 2)", "key('ArrowLeft', document.activeElement)", "key('ArrowDown', document.activeElement)",
                  "press('.player-block', 1)", "press('[data-rank=\"1\"] .player-block', 1)", "focus('.player-numbers td', 3)",
                  f"point('{STAGE} .player-map', 0.9, 0.9)", f"point('{STAGE} [data-rank=\"1\"] .player-map', 0.1, 0.1)"]
AT_THE_END = ["press('.player-badge', 1)", "press('.player-badge', 1)", "press('.player-tab', 0)", "press('.player-tab', 1)",
              "press('.player-tab', 2)", "press('.player-tab', 3)", "press('.player-follow')", "key('Home')", "press('.player-tick', 1)",
              "press('.player-badge', 0)", "key('End')", "key('x')"]
# Once is enough: what the pointer, a finger and keys do that are not for the player, its buttons, and playing to the end.
ONCE = ["key('Home')", "key('ArrowLeft')", "press('.player-last')", "press('.player-forward')", "press('.player-back')", "press('.player-first')",
        *(f"key('{name}', ROOT, {{{held}: true}})" for held in ("altKey", "ctrlKey", "metaKey", "shiftKey") for name in ("End", " ")),
        *(f"key('ArrowRight', at('{selector}'))" for selector in (".player-code", ".player-moves", ".player-speed", ".player-badge", ".player-block")),
        *(f"hurried(() => {{ key(' ', at('{selector}')); key(' ', at('{selector}')); }})" for selector in (
            ".player-tick", ".player-tab", ".player-badge", ".player-code", ".player-speed", ".player-block", ".player-title")),
        "key('Home')", f"point('{STAGE} .player-map', 0.4, 0.1, 'pointermove', 'touch')", f"point('{STAGE} .player-map', 0.4, 0.1)",
        f"point('{STAGE} [data-rank=\"1\"] .player-map', 0.6, 0.1)", f"hover('{STAGE} .player-label b', 'pointermove')", f"hover('{STAGE}', 'pointerleave')",
        f"point('{STAGE} .player-map', 0.4, 0.1, 'click', 'mouse', 1)", f"point('{STAGE} .player-map', 0.7, 0.1)", f"hover('{STAGE}', 'pointerleave')",
        f"point('{STAGE} .player-map', 0.4, 0.1, 'click', 'mouse', 0)", f"hover('{STAGE}', 'click')",
        "hover('.player-numbers td', 'pointermove', 1, 'touch')", "hover('.player-numbers td', 'pointermove', 1)", "hover('.player-numbers th', 'pointermove', 1)",
        "hover('.player-numbers td', 'pointermove', 2)", "hover('.player-inspector', 'pointerleave')", "hover('.player-numbers td', 'click', 4)",
        "key('x', at('.player-numbers td', 4))", "key('ArrowRight', at('.player-numbers td', 5))", "key('ArrowUp', at('.player-numbers td', 2))",
        "key('ArrowDown', at('.player-numbers th', 1))", "key('End')",
        *(f"{move}('.player-badge', '{kind}', {rank})" for move, kind, rank in (
            ("touch", "pointerenter", 1), ("hover", "pointerenter", 1), ("hover", "pointerleave", 1), ("hover", "click", 1), ("hover", "pointerenter", 0),
            ("touch", "pointerleave", 0), ("hover", "pointerleave", 0), ("hover", "click", 0), ("hover", "click", 0))),
        "key('Home')", "press('.player-tick', 1)", "press('.player-badge', 1)", "key('ArrowRight')", "press('.player-badge', 1)", "key('Home')",
        "hurried(() => press('.player-play'))", "hurried(() => press('.player-play'), 3)",
        "enter('.player-speed', 2, 0, 'change'); hurried(() => press('.player-play'))", "enter('.player-speed', 0, 0, 'change'); key('Home')",
        "hurried(() => key(' '))", "hurried(() => { key('Home'); key(' '); press('.player-tick', 1); key('ArrowRight'); })",
        "hurried(() => { key('Home'); key(' '); key('x'); press('.player-play'); })", "press('.player-follow')", "press('.player-follow')",
        *(f"document.querySelector('.player-dock-{name}').click()" for name in ("back", "back", "forward", "open", "close"))]


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


def grid():
    """Two DP ranks of two TP ranks each: shards of a bucket whose matrices are cut by rows and by columns, gathered over dp; then, over tp, one
    matrix as a flat array and the other in its place; an array that is never cut, and one of which nobody says how it lies."""
    tensors = (("cols", 0), ("rows", 9), ("flat", 2), ("bucket", None), ("lost", -1))
    def cut(name, tensor, unit, tp, first):
        rows, cols = (3, 2) if unit == "columns" else (2, 3)
        whole = 4 if unit == "columns" else 6
        begin = tp * (whole // 2) if unit == "columns" else 2 * tp
        return {**matrix(name, tensor, rows, cols, values=[first + at for at in range(6)]), "unit": unit, "begin": begin,
                "end": begin + 2, "of": 4, "note": f"of tp {tp}"}

    ranks = [(dp, tp) for dp in (0, 1) for tp in (0, 1)]
    # The bucket of a TP rank: cols at 1 … 6, rows at 8 … 13, padding in 0, 7, 14 and 15.
    spans = [[[0, 1, 7, 0]], [[1, 0, 6, 0]]]
    shards = [[block("bucket", 3, 8 * dp, 8 * dp + 8, 16, spans=spans[dp], values=[100 * tp + 8 * dp + at for at in range(8)], note="of <me>"),
               block("lost", 4, 0, 3, 3, unit="", values=[0.5, -0.25, 1e10]), matrix("flat", 2, 1, 3, values=["inf", "-inf", -0.0])] for dp, tp in ranks]
    whole = [[block("bucket", 3, 0, 16, 16, spans=[[0, 1, 7, 0], [1, 8, 14, 0]], values=[100 * tp + at for at in range(16)])] for _, tp in ranks]
    views = [[cut("cols", 0, "columns", tp, 100 * tp), cut("rows", 1, "rows", tp, 100 * tp + 50)] for _, tp in ranks]
    gathered = [[block("cols, as it arrived", 0, 0, 12, 12, unit="", digest="abc"), matrix("rows", 1, 4, 3, values=None, digest="0f"),
                 block("lost", 4, 1, 3, 6)] for _ in ranks]
    peers = {"dp": [(a, b) for a in range(4) for b in range(4) if a != b and a % 2 == b % 2], "tp": [(0, 1), (1, 0), (2, 3), (3, 2)]}
    over = [message(a, b, 8, group="dp") for a, b in peers["dp"]]
    moves = [message(a, b, 6, group="tp", call=call) for call in (4, 7) for a, b in peers["tp"]]
    added = [message(a, b, 3, "all_reduce", 9, "tp") for a, b in peers["tp"]] + [message(a, b, 1, "send", 11, "pp") for a, b in peers["dp"]]
    made = by_hand([([], shards), (over, whole), ([], views), (moves, gathered), (added, [[shards[0][1]], [shards[1][1]], [], []])], dp=4, tensors=tensors)
    for rank, (dp, tp) in enumerate(ranks):
        made["ranks"][rank] = {"rank": rank, "label": f"rank {rank}  dp {dp}  tp {tp}", "dp": dp, "tp": tp, "pp": 0}
    return {**made, "grid": {"dp": 2, "tp": 2, "pp": 1}, "lesson": None, "heading": "a run by hand"}


ELEMENTS = """
  const mw = muonwalkPlayer, recording = mw.checkRecording(JSON.parse(document.getElementById("recording-0").textContent)), said = [];
  const elements = new mw.Elements(recording), all = recording.ranks.map((_, rank) => rank);
  recording.steps.forEach((step) => step.holds.forEach((blocks, rank) => blocks.forEach((block) => {
    said.push(`step ${step.number}, rank ${rank}, ${block.name}`);
    // What lies in each cell of its map, row by row, and beyond each edge.
    const whole = mw.wholeOf(block), middles = (count) => [-1, ...Array(count).keys(), count].map((at) => (at + 0.5) / count);
    said.push(...middles(whole.rows).map((down) => `  map: ${middles(whole.cols).map((across) => mw.positionAt(block, across, down)).join(" ")}`));
    for (let place = 0; place < block.rows * block.cols; ++place) {
      const element = elements.at(rank, block, place);
      if (!element) { said.push(`  ${place}: padding`); continue; }
      const home = ({ bucket, matrix }) => [bucket, matrix].map((its) => its && `${its.block.name} ${its.place}`).join(" and ");
      const held = step.holds.flatMap((others, other) => others.map((its) => [other, its.name, elements.placeIn(other, its, element)]));
      said.push(`  ${place}: ${elements.nameOf(element)} ${JSON.stringify(element)}, of ${elements.ownersOf(element)}; at home in ${home(elements.homesOf(rank, element))}; ` +
                `here ${held.filter(([, , at]) => at >= 0).map((each) => each.join(" ")).join(", ")}`);
    }
  })));
  return said;"""


class Kept(PlayerPage):
    def lines(self):
        """Of the player and of what follows the text."""
        return self.script(LINES + PLAYER + "add(player, 0); const dock = document.querySelector('.player-dock'); if (dock) add(dock, 0); state(); return lines")

    @staticmethod
    def short(lines):
        """Without the label of the player itself, which stays."""
        return (re.sub(r'<div aria-label="a run of .*?" (.*) role="group" tabindex="0">', r"<player \1>", line) for line in lines)

    def play(self, recording):
        self.open({"lesson": {"number": "77", "title": "Stand-in"}, **recording, "before": ["Lesson 77", "", "", "about"], "after": ["OK"]},
                  head=f"<script>{MEMORY.replace('KEPT', '{}')}</script>",
                  body='<div style="height:3000px"></div><p data-mw-steps="1">one</p><p data-mw-steps="2 3">two</p><p data-mw-steps=""></p>')
        self.settle()

    def shown(self, name, recording, once=()):
        """What the player shows at first, and what each deed changes of it."""
        self.play(recording)
        before = self.lines()
        text = [f"=== {name}", *before]
        frames = int(self.one(".muonwalk-player").get_dom_attribute("data-frames"))
        for deed in [deed for _ in range(frames) for deed in [*IN_EVERY_FRAME, "key('ArrowRight')"]] + AT_THE_END + list(once):
            self.script(LINES + PLAYER + DO.replace("ROOT", "player") + deed.replace("ROOT", "player"))
            now = self.lines()
            text += [f"--- {deed}", *self.short(changed(before, now))]
            before = now
        return text

    def test_every_frame(self):
        # Whatever other tests have done to the window, this page has the focus.
        self.browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setFocusEmulationEnabled", {"enabled": False})
        text = []
        for name, recording, once in (("a bucket", gathered_bucket(), ONCE), ("sums", sums(), ()), ("slices", slices(), ()), ("a grid", grid(), ())):
            text += self.shown(name, recording, once)
        expect_kept(self, "player.txt", text)

    def test_every_element(self):
        text = []
        for name, recording in (("a bucket", gathered_bucket()), ("sums", sums()), ("slices", slices()), ("a grid", grid())):
            for held in [held for step in recording["steps"] for blocks in step["holds"] for held in blocks]:
                if held["cols"] > 99:
                    held.update(cols=3, end=3, of=3)
            self.open(recording)
            text += [f"=== {name}", *self.script(ELEMENTS)]
        expect_kept(self, "elements.txt", text)

    def test_how_each_part_looks(self):
        many = by_hand([([message(0, 1, 6, "reduce_scatter")], [[block("a", 0, 0, 6, 6)]] * 8)], dp=8)
        text = []
        for name, recording, frame, deed in (("a bucket", gathered_bucket(), 1, f"point('{STAGE} .player-map', 0.4, 0.1)"), ("sums", sums(), 1, "press('.player-badge', 1)"),
                                             ("slices", slices(), 2, "press('.player-tab', 2)"), ("eight ranks", many, 0, "press('.player-tab', 1)"), ("broken", "null", 0, "")):
            def bring(size=None, recording=recording, frame=frame, deed=deed, **media):
                if size:
                    set_size(self.browser, *size)
                if media:
                    set_media(self.browser, prefers_reduced_motion="reduce", **media)
                if recording != "null":
                    self.script(PLAYER + f"for (let at = 0; at < {frame}; ++at) player.querySelector('.player-forward').click();" + DO.replace("ROOT", "player") + deed)
                    self.script("document.querySelector('.player-dock-body').hidden = false; document.querySelectorAll('details').forEach((fold) => fold.open = true)")
                self.settle()

            def set_up(recording=recording):
                self.setUp()
                self.open(recording, head=f"<script>{MEMORY.replace('KEPT', '{}')}</script>",
                          body='<p data-mw-steps="1">one</p><figure class="mw-of-step">a picture</figure><p class="mw-in-player">a link</p>')

            text += [f"##### {name}", *looks_of(self.browser, set_up, [("wide", bring), ("narrow", lambda bring=bring: bring((390, 844))),
                                                                       ("dark", lambda bring=bring: bring(prefers_color_scheme="dark")), ("on paper", lambda bring=bring: bring(medium="print"))])]
        set_media(self.browser)
        expect_kept(self, "player_looks.txt", text)
