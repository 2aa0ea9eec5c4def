"""What the page of a trace draws and how it reacts, looked up in the shapes that its charts have painted."""

import json

from headless_browser import set_media, set_size
try:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    pass  # headless_browser says what is missing, and skips

NASTY = "gemm </script><b>bold</b> {{data}} ×"


def kernel(name, begin, duration, **arguments):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": begin, "dur": duration,
            "args": arguments}


def ms_text(ms):
    return f"{ms:.4f}" if round(ms * 1e6) != 0 and abs(ms) < 0.1 else f"{ms:.2f}"


class DrawnPage:
    """Tests of the page's pictures; PageTest opens the pages."""

    # ── what is drawn ──

    def painted(self, name, kind):
        """What a chart has painted of a kind (rect, tspan, path): places in pixels, texts and colours."""
        return self.script("""
          return chart(arguments[0]).getZr().storage.getDisplayList(true).filter((one) => one.type === arguments[1])
            .map((one) => ({...one.shape, fill: one.style.fill, stroke: one.style.stroke, edge: one.style.lineWidth,
              over: one.z2, text: one.style.text || "", left: one.transform ? one.transform[4] : one.style.x,
              middle: one.transform ? one.transform[5] : one.style.y}));""", name, kind)

    def scale(self):
        """The edges of the timeline's frame in pixels, and where a time in ms stands in it."""
        left, top, width = self.script("""
          const grid = chart("timeline").getModel().getComponent("grid").coordinateSystem.getRect();
          return [grid.x, grid.y, grid.width];""")
        begin, end = self.view()
        return left, left + width, top, lambda ms: left + (ms - begin) / (end - begin) * width

    def check_timeline(self, theme="light"):
        """Each event that is in sight is a rectangle in the row of its lane, from its begin to its end."""
        data = self.data()
        left, right, top, at = self.scale()
        self.assertAlmostEqual(left, 106, places=3)
        expected = []
        for line, begin, duration, *_ in data["slices"]:
            x, end = at(begin / 1e6), max(at((begin + duration) / 1e6), at(begin / 1e6) + 1)
            if end > left and x < right:
                x, end = max(x, left), min(end, right)
                expected.append((round(x), round(top + 20 * line + 2), round(end - x), 16,
                                 data["lane_colours"][data["lines"][line]["kind"]][theme]))
        rectangles = [one for one in self.painted("timeline", "rect") if one["height"] == 16]
        found = [(round(one["x"]), round(one["y"]), round(one["width"]), 16, one["fill"]) for one in rectangles]
        self.assertEqual(sorted(found), sorted(expected))
        texts = self.painted("timeline", "tspan")
        for number, line in enumerate(data["lines"]):
            place = (4, top + 20 * number + 13) if line["kind"] is None else (98, top + 20 * number + 10)
            there = [one["text"] for one in texts if abs(one["left"] - place[0]) < 0.5 and abs(one["middle"] - place[1]) < 0.5]
            self.assertEqual([text for text in there if text], [line["text"]] if line["text"] else [])

    def check_bars(self, theme="light"):
        """Each rank has its parts side by side, on the scale of the longest, with figures where there is room."""
        data = self.data()
        rectangles, texts = self.painted("bars", "rect"), [one["text"] for one in self.painted("bars", "tspan")]
        longest = max(bar["span_ns"] for bar in data["bars"])
        first = min(one["x"] for one in rectangles)
        width = max(one["x"] + one["width"] for one in rectangles) - first
        self.assertGreater(width, self.box("bars").size["width"] - 60)
        self.assertEqual(self.box("bars").size["height"], 28 + 58 * len(data["bars"]))
        for number, bar in enumerate(data["bars"]):
            rows = sorted({one["y"] for one in rectangles})
            self.assertEqual(len(rows), len(data["bars"]))
            self.assertIn(f"{bar['text']} · {ms_text(bar['span_ns'] / 1e6)} ms", texts)
            x = first
            for part, ns in enumerate(bar["parts_ns"]):
                there = [one for one in rectangles if one["y"] == rows[number] and abs(one["x"] - x) < 0.1
                         and one["fill"] == data["part_colours"][part][theme]]
                if ns > 0:
                    self.assertEqual(len(there), 1)
                    self.assertAlmostEqual(there[0]["width"], ns / longest * width, delta=0.1)
                room = ns / longest * width
                full = f"{ms_text(ns / 1e6)} ms, {100 * ns / bar['span_ns']:.1f} %"
                if room > 8 * len(full) + 10:
                    self.assertIn(full, texts)
                x += room

    def write_lesson(self):
        """A lesson's trace: phases in a step, a call of which nothing was sent, one without a size, and a message."""
        def event(category, thread, name, begin, duration, **arguments):
            return {"ph": "X", "pid": 1, "tid": thread, "cat": category, "name": name, "ts": begin, "dur": duration,
                    "args": arguments}
        events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "rank 3 (dp 1)"}},
                  event("step", 1, "step 1", 0, 90), event("phase", 1, "optimizer: gather", 5, 40),
                  event("computation", 1, "product", 10, 20),
                  event("communication", 2, "all_gather over dp", 30, 15, collective="all_gather", group="dp", group_size=2,
                        group_ranks="[1, 3]", type="bfloat16", bytes=0, message_bytes=4096),
                  event("communication", 2, "barrier", 50, 5, collective="barrier", group="world", group_size=4, bytes=17),
                  event("communication", 2, "send", 60, 5, collective="send", group="pp", type="bytes", message_bytes=0),
                  event("transfer", 3, "message from rank 1", 56, 30)]
        path = self.folder / "lesson.json"
        path.write_text(json.dumps({"traceEvents": events, "muonwalk": {"name": "lesson_12", "ranks": 1}}), encoding="utf-8")
        return path

    def test_events_and_bars_are_drawn_where_they_belong(self):
        for files in (self.ranks, [self.write_lesson()]):
            self.open_summary(*files)
            self.check_timeline()
            self.check_bars()
        self.open_summary(*self.ranks)
        for key in ("+", "+", "]", "]", "-", "["):  # what begins before the view, or ends after it, is drawn in part
            self.press(key)
            self.check_timeline()

    def test_an_event_is_told_with_all_that_the_trace_says_of_it(self):
        events = [kernel(f"k{i % 3}", 30 * i, 1 + i % 2) for i in range(20000)]
        (self.folder / "many.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        for files in (self.ranks, [self.write_lesson()], [self.folder / "many.json"]):
            self.open_summary(*files)
            data = self.data()
            tips = self.script("""
              const tip = chart("timeline").getOption().tooltip[0].formatter;
              return JSON.parse(document.getElementById("data").textContent).slices.slice(0, 500).map((_, i) =>
                [...tip({seriesIndex: 0, dataIndex: i}).children].map((line) => line.textContent));""")
            for (line, begin, takes, covered, many, name, kind, group, message, sent), tip in zip(data["slices"], tips):
                text = data["texts"][name] if name >= 0 else "events of several names"
                facts = [f"{many} events: {text}" if many > 1 else text, data["lines"][line]["lane"],
                         f"begins at {ms_text(begin / 1e6)} ms", f"takes {ms_text(takes / 1e6)} ms"]
                facts[-1] += f", {ms_text(covered / 1e6)} ms of it covered" if covered != takes else ""
                facts += [f"message of {message:,} B"] if message >= 0 else []
                facts += [f"sent {sent:,} B"] if sent >= 0 else []
                facts += [data["texts"][kind]] if kind >= 0 else []
                facts += [f"group {data['texts'][group]}"] if group >= 0 else []
                self.assertEqual(tip, facts)
        self.assertTrue(any("of it covered" in line for tip in tips for line in tip))

    def test_the_chosen_event_has_a_frame_and_its_words_below(self):
        self.open_summary(*self.ranks)
        data = self.data()
        x, y = self.script("return chart('timeline').convertToPixel({gridIndex: 0}, [2.5, 2]);")
        self.point_at("timeline", x, y)
        ActionChains(self.browser).click().perform()
        self.point_at("timeline", 300, 5)  # what the mouse is over has a frame of its own
        self.assertTrue(self.box("selected").text.startswith("ncclDevKernel_AllReduce_Sum_f32_RING_LL · rank 0"))
        for key, chosen in ((None, 2), ("ArrowDown", 3), ("ArrowDown", 4), ("ArrowUp", 3)):
            if key:
                self.press(key)
            framed = [one for one in self.painted("timeline", "rect") if one["edge"] == 2.5]
            self.assertEqual([(one["stroke"], one["over"]) for one in framed], [(data["colours"]["ink"]["light"], 2)])
            self.assertAlmostEqual(framed[0]["x"], self.scale()[3](data["slices"][chosen][1] / 1e6), places=2)
            if key:
                self.assertEqual(self.box("selected").text, " · ".join(self.tip()))

    # ── what keys do ──

    def press(self, key, **more):
        """Presses a key in the timeline; whether the page keeps the browser from reacting to it."""
        return self.script("""
          const event = new KeyboardEvent("keydown", {key: arguments[0], bubbles: true, cancelable: true, ...arguments[1]});
          document.getElementById("timeline").dispatchEvent(event);
          return event.defaultPrevented;""", key, more)

    def expect_view(self, begin, end, words=""):
        for edge, expected in zip(self.view(), (begin, end)):
            self.assertAlmostEqual(edge, expected, places=5, msg=words)
        self.assertEqual(self.box("view").text, f"{ms_text(begin)} to {ms_text(end)} ms of 4.01 ms")

    def test_every_key_has_its_action_and_others_have_none(self):
        self.open_summary(*self.ranks)
        span = 4.0125
        quarter, half = (span / 4, 3 * span / 4), (3 * span / 8, 5 * span / 8)
        for key, shown in (("+", quarter), ("=", half), ("-", quarter), ("−", (0, span)), ("=", quarter), ("Home", (0, span)),
                           ("+", quarter), ("0", (0, span)), ("+", quarter), ("[", (span / 8, 5 * span / 8)),
                           ("]", quarter)):
            self.assertTrue(self.press(key), key)
            self.expect_view(*shown, key)
        for key in ("+", "=", "-", "−", "0", "Home", "[", "]", "ArrowRight", "ArrowDown", "x", "Tab", "1"):
            for more in ({"ctrlKey": True}, {"metaKey": True}, {"altKey": True}) if len(key) > 1 or key not in "x1" else ({},):
                self.assertFalse(self.press(key, **more), key)
        self.assertFalse(self.press("Tab"))
        self.expect_view(*quarter)
        self.assertTrue(self.box("selected").text.startswith("Point at an event"))

    def test_the_view_stays_within_the_span_and_is_never_too_small(self):
        self.open_summary(*self.ranks)
        span = 4.0125
        for _ in range(30):
            self.press("+")
        begin, end = self.view()
        self.assertAlmostEqual(end - begin, 0.0005, places=7)
        self.press("-")
        self.assertAlmostEqual(self.view()[1] - self.view()[0], 0.001, places=7)
        self.press("0")
        self.press("+")
        for key, shown in (("[", (span / 8, 5 * span / 8)), ("[", (0, span / 2)), ("[", (0, span / 2)),
                           ("]", (span / 8, 5 * span / 8)), ("]", (span / 4, 3 * span / 4)), ("]", (3 * span / 8, 7 * span / 8)),
                           ("]", (span / 2, span)), ("]", (span / 2, span)), ("-", (0, span)), ("-", (0, span))):
            self.press(key)
            self.expect_view(*shown, key)

    def test_zooming_is_around_the_chosen_event_and_choosing_shows_it(self):
        self.open_summary(*self.ranks)
        self.press("ArrowRight")
        self.press("ArrowRight")  # the last event, in the middle of 4 and 4.0125
        self.press("+")
        self.expect_view(4.00625 / 2, 4.00625 + 0.00625 / 2)
        self.press("ArrowLeft")  # from 0 to 2, which is before the view: its middle comes into the view's
        width = 4.00625 / 2 + 0.00625 / 2
        self.expect_view(0, width)
        self.press("+")
        self.expect_view(1 - 1 / 2, 1 + (width - 1) / 2)
        self.press("0")
        self.press("+")
        for _ in range(4):
            self.press("]")
        begin, end = self.view()
        self.press("+")  # the chosen event is not in sight: around the middle
        self.expect_view((3 * begin + end) / 4, (begin + 3 * end) / 4)

    def test_arrows_stop_at_the_ends_of_a_lane(self):
        self.open_summary(*self.ranks)
        for key, words in (("ArrowRight", NASTY), ("ArrowLeft", NASTY), ("ArrowUp", NASTY), ("ArrowRight", "short"),
                           ("ArrowRight", "short"), ("ArrowDown", "nccl"), ("ArrowRight", "nccl"), ("ArrowLeft", "nccl"),
                           ("ArrowDown", "Memcpy"), ("ArrowDown", "Optimizer"), ("ArrowDown", NASTY)):
            self.assertTrue(self.press(key))
            self.assertTrue(self.box("selected").text.startswith(words), f"{key}: {self.box('selected').text}")
        for words in ("nccl", "Memcpy", "Optimizer", "Optimizer"):
            self.press("ArrowDown")
            self.assertTrue(self.box("selected").text.startswith(words))
            self.assertIn("rank 1", self.box("selected").text)

    def test_the_wheel_zooms_with_ctrl_and_says_what_is_shown(self):
        self.open_summary(*self.ranks)
        timeline = self.box("timeline")
        self.script("arguments[0].scrollIntoView({block: 'center'});", timeline)
        actions = ActionChains(self.browser).key_down(Keys.CONTROL)
        actions.scroll_from_origin(ScrollOrigin.from_element(timeline), 0, -100).key_up(Keys.CONTROL).perform()
        self.assertNotEqual(self.script("return document.activeElement.id;"), "timeline")
        WebDriverWait(self.browser, 10).until(lambda _: self.view()[1] - self.view()[0] < 4)
        begin, end = self.view()
        self.assertEqual(self.box("view").text, f"{ms_text(begin)} to {ms_text(end)} ms of 4.01 ms")

    def test_another_width_and_other_colours_keep_the_view(self):
        self.open_summary(*self.ranks, width=420)
        self.press("+")
        before = self.view()
        set_size(self.browser, 1200, 1000)
        WebDriverWait(self.browser, 10).until(lambda _: self.script(
            "return Math.min(chart('timeline').getWidth(), chart('bars').getWidth());") > 1000)
        self.expect_view(*before)
        self.check_timeline()
        self.check_bars()
        set_media(self.browser, prefers_color_scheme="dark")
        self.addCleanup(set_media, self.browser, prefers_color_scheme="light")
        WebDriverWait(self.browser, 10).until(lambda _: self.painted("bars", "rect")[0]["fill"] ==
                                              self.data()["part_colours"][0]["dark"])
        self.expect_view(*before)
        self.check_timeline("dark")
        self.check_bars("dark")
