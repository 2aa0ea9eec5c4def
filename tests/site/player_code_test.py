"""The code of the step with its lines marked, what the program prints, and what a broken recording becomes."""

import json

from contrast import low_contrast
from headless_browser import set_media
from player_page import PlayerPage, gathered_bucket, record


class Code(PlayerPage):
    def marked(self):
        return [line.text for line in self.all(".player-code .player-marked")]

    def test_the_code_of_the_step_stands_beside_the_numbers_with_the_lines_of_the_frame_marked(self):
        player = self.open(record("05"))[0]
        self.assertIn("first(rank);", self.one(".player-code", player).text)
        self.assertEqual(self.marked(), ["show();"])
        self.assertEqual(self.one(".player-source .player-caption", player).text, "first here")
        code, numbers = self.one(".player-code", player).rect, self.one(".player-inspector", player).rect
        self.assertGreater(numbers["x"], code["x"] + code["width"] - 1)
        self.go(player, 4, "holds")
        self.assertIn("no code of its own", self.one(".player-code", player).text)

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
            step = int(player.get_attribute("data-step"))
            for line in recording["steps"][step - 1]["lines"]:
                self.assertIn(line.strip(), said)
            self.assertEqual("words before" in said, step == 1, f"frame {frame}")
            self.assertEqual("words after" in said, frame == frames - 1, f"frame {frame}")
            self.one(".player-forward", player).click()


class Colours(PlayerPage):
    def test_colours_follow_the_reader_and_the_switch_of_the_page(self):
        light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 28)"
        recording = record("05")
        colours = recording["palette"]["tensors"][recording["tensors"][0]["colour"]]
        for prefers, switched, paper in (("light", "", light), ("dark", "", dark), ("dark", "light-mode", light),
                                         ("light", "dark-mode", dark)):
            with self.subTest(prefers=prefers, switched=switched):
                set_media(self.browser, prefers_color_scheme=prefers)
                self.open(recording)
                found = self.script("""
                  if (arguments[0]) document.documentElement.classList.add(arguments[0]);
                  const colour = (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor;
                  return [colour(".player-body"), colour(".player-piece")];""", switched)
                fill = colours["light" if paper == light else "dark"]
                self.assertEqual(found, [paper, "rgb(%d, %d, %d)" % tuple(bytes.fromhex(fill[1:]))])

    def test_text_is_4_5_to_1_on_what_is_behind_it_and_lines_3_to_1(self):
        for scheme in ("light", "dark"):
            set_media(self.browser, prefers_color_scheme=scheme)
            for recording, step in ((gathered_bucket(), 2), (record("09"), 3), (record("04"), 4)):
                player = self.open(recording)[0]
                self.go(player, step, "moves")
                with self.subTest(scheme=scheme, step=step):
                    self.assertEqual(low_contrast(self.browser, ".muonwalk-player", 4.5), [])
                    self.assertEqual(self.faint_lines(), [])

    def faint_lines(self):
        """Arrows, outlines, edges and lines between parameters that are nearer than 3 : 1 to what they stand on."""
        return self.script("""
          const rgb = (colour) => { const parts = colour.match(/[\\d.]+/g).map(Number);
            return colour.startsWith("color(srgb") ? parts.map((part) => part * 255) : parts; };
          const light = (colour) => rgb(colour).slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => p - q); return (y + 0.05) / (x + 0.05); };
          const paper = getComputedStyle(document.querySelector(".player-body")).backgroundColor, faint = [];
          const check = (name, a, b) => { if (contrast(a, b) < 3) faint.push(`${name}: ${a} on ${b}, ${contrast(a, b).toFixed(2)}`); };
          const shadow = (element, pseudo) => getComputedStyle(element, pseudo).boxShadow.match(/(?:rgba?|color)\\([^)]*\\)/)[0];
          for (const line of document.querySelectorAll(".player-arrow-line")) check("arrow", getComputedStyle(line).stroke, paper);
          for (const piece of document.querySelectorAll(".player-piece")) check("outline", shadow(piece, "::after"), paper);
          for (const map of document.querySelectorAll(".player-map")) check("edge", shadow(map), paper);
          for (const span of document.querySelectorAll(".player-piece .player-span + .player-span, .player-piece .player-padding + .player-span"))
            if (parseFloat(getComputedStyle(span).borderLeftWidth) > 0)
              check("line", getComputedStyle(span).borderLeftColor, getComputedStyle(span).backgroundColor);
          return [...new Set(faint)];""")


class Broken(PlayerPage):
    def test_a_broken_recording_is_a_sentence_and_leaves_other_players_alone(self):
        good, bucket = json.dumps(record("05")), json.dumps(gathered_bucket())

        def changed(change, text=good):
            recording = json.loads(text)
            change(recording)
            return recording

        def first(recording):
            return recording["steps"][0]["holds"][0][0]

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
                 (changed(lambda r: r["steps"][1]["holds"][0][0].update(tensor=9)), "a tensor that is not in the list"),
                 (changed(lambda r: first(r).update(spans=[[7, 0, 2, 0]]), bucket), "a span of a tensor that is not in the list"),
                 (changed(lambda r: first(r).update(spans=[[0, 0, 7, 0]]), bucket), "a span outside of bucket"),
                 (changed(lambda r: first(r).update(spans=[[0, 0, 4, 0], [1, 3, 6, 0]]), bucket), "a span outside of bucket")]
        for broken, sentence in cases:
            with self.subTest(sentence=sentence):
                bad, other = self.open(broken, good)
                self.assertIn(sentence, bad.text)
                self.assertIn("This run can't be replayed: ", bad.text)
                self.focus(other)
                self.press("end")
                self.assertEqual(self.frame(other), (4, "holds"))

    def test_text_of_a_recording_is_never_markup(self):
        recording = record("05")
        markup = "<img src=nowhere onerror=document.title='broken'>"
        for held in recording["steps"][0]["holds"][0]:
            held.update(name=markup, note=markup)
        recording["steps"][0].update(title=markup, lines=[markup], says=[[markup], [markup]])
        recording["ranks"][0]["label"] = markup
        recording["tensors"][0]["name"] = markup
        player = self.open(recording)[0]
        self.assertEqual(self.all("img", player), [])
        self.assertEqual(self.one(".player-title", player).text, markup)
        self.assertEqual(self.browser.title, "a test")
