"""What the figures of the site show, compared with what the programs print; moved by keyboard and by pointer."""

import re
import subprocess

from figure_values import Table, find_expected

LEFT, RIGHT, UP, DOWN, HOME, END = "\ue012", "\ue014", "\ue013", "\ue015", "\ue011", "\ue010"


class Figures:
    def __init__(self, browser, root, site, programs):
        self.browser, self.root, self.site, self.programs = browser, root, site, programs
        self.page, self.faults, self.compared = "", [], 0

    def fault(self, sentence):
        self.faults.append(f"{self.page}: {sentence}")

    def open(self, number):
        self.page = next(self.site.glob(f"lesson_{number}_*.html")).stem
        self.browser.get((self.site / f"{self.page}.html").as_uri())

    def table(self, number):
        return Table(find_expected(self.root, number).read_text(encoding="utf-8"))

    def same(self, what, shown, wanted):
        self.compared += 1
        if shown != wanted:
            self.fault(f"{what} should be {wanted}, and the figure shows {shown}")

    # --- bars ---------------------------------------------------------------------------------------------------------------

    def choose(self, number, **wanted):
        """By keyboard: a slider is moved with the arrow keys, a list with the letters of its entry."""
        data = self.browser.execute_script("return JSON.parse(document.getElementById(arguments[0]).textContent)", f"figure-{number}-data")
        for choice in data["choices"]:
            if choice["name"] not in wanted:
                continue
            control, value = self.browser.find_element("id", f"figure-{number}-{choice['name']}"), wanted[choice["name"]]
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", control)
            if control.tag_name == "select":
                for option in control.find_elements("tag name", "option"):
                    if option.text == value:
                        option.click()
                continue
            control.send_keys(HOME)
            control.send_keys(RIGHT * choice["values"].index(value))
            now = self.browser.find_element("id", f"figure-{number}-{choice['name']}-now").text
            self.same(f"the number beside the slider of {choice['name']}", (now, control.get_dom_attribute("aria-valuetext")), (value, value))

    def rows(self):
        """{row: (its numbers, its parts' widths over those of the room)}, as they are on the screen."""
        return {name: (cells, shares) for name, cells, shares in self.browser.execute_script("""
          document.getAnimations().forEach((motion) => motion.finish());
          return [...document.querySelectorAll(".mwf-bars tbody tr")].map((row) => {
            const room = row.querySelector(".mwf-bar").getBoundingClientRect().width;
            return [row.querySelector("th").textContent, [...row.querySelectorAll(".mwf-number")].map((cell) => cell.textContent),
                    [...row.querySelectorAll(".mwf-part")].map((part) => part.getBoundingClientRect().width / room)];
          })""")}

    def lengths(self, what, shares, values):
        """The parts of a bar stand to each other as the numbers do, to a pixel or so."""
        self.compared += 1
        total, drawn = sum(values), sum(shares)
        if total and (not drawn or any(abs(share / drawn - value / total) > 0.02 for share, value in zip(shares, values))):
            self.fault(f"{what} should be drawn as {values}, and has the shares {[round(share, 3) for share in shares]}")

    def byte_ledger(self):
        table = self.table("13")
        self.open("13")
        for which, grid in ((1, ("2", "2")), (2, ("4", "1"))):
            self.choose("13", dp=grid[0], tp=grid[1], matrices="each side a sixteenth")
            shown = self.rows()
            for name, cells in table.below("counted on rank 0", which):
                self.same(f"{name} on dp {grid[0]} × tp {grid[1]}", shown[name][0], cells[-2:])
                values = [float(cell.replace(",", "").replace("–", "0")) for cell in cells[:4]]
                if name == "AdamW, all-reduce":
                    self.same(f"{name}, all of it", values[0], float(cells[4].replace(",", "")))
                self.lengths(name, shown[name][1], values)
        # At published sizes the lesson prints sums.
        for grid, row in ((("2", "2"), "all of Muon, dp 2 × tp 2  +AdamW, ZeRO-1"), (("4", "1"), "Muon in bf16, dp 4  +AdamW, ZeRO-1")):
            self.choose("13", dp=grid[0], tp=grid[1], matrices="as published")
            shown = self.rows()
            found = next(filter(None, (re.match(row + r".*? ([\d.]+) MB +/ +([\d.]+) MB +([\d.]+)$", line) for line in table.lines)))
            all_of = {name: f"{int(shown[name][0][0].replace(',', '')) / 1e6:.1f}" for name in ("Muon, gathers in bf16", "AdamW, ZeRO-1")}
            self.same(f"published sums on dp {grid[0]} × tp {grid[1]}", [*all_of.values(), shown["Muon, gathers in bf16"][0][1]], list(found.groups()))
        self.choose("13", dp="2", tp="8", matrices="each side a sixteenth")
        self.refused("13", ["--dp", "2", "--tp", "8"])
        self.choose("13", tp="2")
        self.same("what it says where nothing is refused", self.said(), "")

    def printed(self, number, *options):
        program = next(self.programs.glob(f"lesson_{number}_*"))
        return subprocess.run([program, *options], capture_output=True, text=True, timeout=300, check=True).stdout

    def said(self):
        return self.browser.find_element("css selector", ".mwf-refused").text

    def refused(self, number, options):
        """A grid that can't be laid out has the sentence that the program says, and no numbers."""
        program = next(self.programs.glob(f"lesson_{number}_*"))
        run = subprocess.run([program, *options], capture_output=True, text=True, timeout=60)
        self.same("what is said of a grid that is refused", f"{program.name}: {self.said()}\n", run.stderr)
        if any(element.is_displayed() for element in self.browser.find_elements("css selector", ".mwf-bars .mwf-number")):
            self.fault("shows numbers of a grid that is refused")

    def memory(self):
        table = self.table("14")
        lines = dict(table.below("bytes that rank 2 holds", 1))
        self.open("14")
        self.choose("14", dp="4", tp="2")
        shown = self.rows()
        kinds = ["weights, bfloat16", "gradients, float32", "master weights, float32", "momentum, first moments", "second moments", "for a moment"]
        for at, name in ((0, "AdamW"), (1, "Muon"), (3, "ZeRO-1 AdamW"), (4, "ZeRO-1 Muon")):
            self.same(name, shown[name][0], [f"{lines[line][at]} B" for line in ("between two steps", "at most")])
            self.lengths(name, shown[name][1], [float(lines[kind][at].replace(",", "")) for kind in kinds])
        self.choose("14", dp="64", tp="1", model="llama-7b")
        model = next(cells for name, cells in table.below("Muon over AdamW, ZeRO-1, dp 64 × tp 1", 1) if name == "llama-7b")
        number = {name: [float(cell.split()[0].replace(",", "")) for cell in cells] for name, (cells, _) in self.rows().items()}
        ratios = [f"{number['ZeRO-1 Muon'][at] / number['ZeRO-1 AdamW'][at]:.2f}" for at in (0, 1)]
        self.same("Muon over AdamW with llama-7b on dp 64", ratios, model[-2:])

    def sharding(self):
        lines = dict(self.table("15").below("                     cut", 1))
        self.open("15")
        self.choose("15", dp="4", tp="2", model="this lesson's")
        options = [option.text for option in self.browser.find_elements("css selector", "#figure-15-shown option")]
        for shown, column in zip(options, (-1, -5, -3)):
            self.choose("15", shown=shown)
            found = self.rows()
            for name, (cells, _) in found.items():
                self.same(f"{name}, {shown}", cells, [lines[name][column]])
            longest = max(shares[0] for _, shares in found.values())
            self.same("the longest bar has all the room", round(longest, 2), 1.0)
        self.choose("15", dp="256", tp="8", model="qwen3-30b", shown=options[0])
        slowest = Table(self.printed("15", "--model", "qwen3-30b", "--dp", "256", "--tp", "8")).below("                             cut", 1)
        self.same("qwen3-30b on dp 256 × tp 8", [cells[0] for cells, _ in self.rows().values()], [cells[-1] for _, cells in slowest[:5]])

    def full_step(self):
        first = re.split(r"^Lesson 09 · .*$", find_expected(self.root, "09").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
        second = self.printed("09", "--dp", "2", "--tp", "4", "--steps", "10")
        self.open("09")
        for layout, grid in ((first, ("4", "2")), (second, ("2", "4"))):
            self.choose("09", dp=grid[0], tp=grid[1])
            # The table says of all ranks from which to which number; of rank 0, step 1 says it exactly, below.
            spans = re.findall(r"^ +(?:reduce_scatter|all_gather) over .* (?:every rank|ranks 0–\d) +(?:[\d,]+ B +)?([\d,]+)(?:–([\d,]+))? B ",
                               layout, re.MULTILINE)
            least, most = (sum(int((span[end] or span[0]).replace(",", "")) for span in spans) // 10 for end in (0, 1))
            peak = re.search(r"peak elements held +every rank +([\d,]+)", layout)[1]
            work = re.search(r"one bucket +[\d.]+ +([\d.]+)", layout)[1]
            shown = [cells for cells, _ in self.rows().values()]
            sent = min(max(int(shown[0][0].replace(",", "")), least), most)
            self.same(f"a step on dp {grid[0]} × tp {grid[1]}", shown, [[f"{sent:,}"], [peak], [work]])
        self.choose("09", dp="4", tp="2")
        self.same("all phases", next(iter(self.rows().values()))[0], re.findall(r"^  all +([\d,]+) B$", first, re.MULTILINE))

    # --- lessons 05 and 06 --------------------------------------------------------------------------------------------------

    def lit(self):
        return self.browser.execute_script("""
          return [...document.querySelectorAll(".mwf-memory .mwf-lit")].map((cell) =>
            [cell.closest("svg").dataset.strip, cell.querySelector("text").textContent, Number(cell.dataset.at)])""")

    def memory_order(self):
        text = find_expected(self.root, "05").read_text(encoding="utf-8")
        value, at = re.search(r"★ down\S+ = (\d+) at element (\d+) of what arrived", text).groups()
        row, column = re.search(rf"★ down\S+ = {value} at row (\d+), column (\d+) of the whole matrix", text).groups()
        self.open("05")
        columns = int(self.browser.find_element("id", "figure-05").get_dom_attribute("data-columns"))
        marked = [["arrived", value, int(at)], ["copied", value, int(row) * columns + int(column)]]
        self.same("what lights up at first", self.lit(), marked)
        first = {}
        for strip, line in (("arrived", 0), ("copied", 1)):
            printed = re.findall(r"its first row +([\d ]+)\n +came from tp +([\d|]+)", text)[line]
            numbers = self.browser.execute_script("""
              return [...document.querySelectorAll(`[data-strip=${arguments[0]}] [data-value]`)].map((cell) =>
                [cell.querySelector("text").textContent, cell.dataset.from])""", strip)
            first[strip] = [number for number, _ in numbers]
            self.same(f"the first row of {strip}", first[strip][:columns], printed[0].split())
            self.same(f"who sent what of {strip}", "".join(rank for _, rank in numbers), printed[1].replace("|", ""))
        places = self.browser.execute_script("""
          return [...document.querySelectorAll("[data-strip=copied] [data-value]")].map((cell) =>
            [cell.dataset.at, cell.dataset.row, cell.dataset.column].map(Number))""")
        self.same("row and column of every element", places, [[i, i // columns, i % columns] for i in range(len(places))])
        # By keyboard: the first element, then one to the right, one line down, and back.
        self.browser.execute_script("document.querySelector('[data-strip=arrived] [tabindex=\"0\"]').focus()")
        for keys, where in (("", 0), (RIGHT, 1), (DOWN, 1 + columns), (LEFT, columns), (UP, 0), (LEFT, 0)):
            if keys:
                self.browser.switch_to.active_element.send_keys(keys)
            number = first["arrived"][where]
            self.same(f"what lights up at element {where}", self.lit(), [["arrived", number, where], ["copied", number, first["copied"].index(number)]])
        # By pointer, on the matrix.
        cell = self.browser.find_elements("css selector", "[data-strip=copied] [data-value]")[5]
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'}); "
                                    "arguments[0].querySelector('rect').dispatchEvent(new PointerEvent('pointerover', {bubbles: true}))", cell)
        number = first["copied"][5]
        self.same("what lights up under the pointer", self.lit(), [["arrived", number, first["arrived"].index(number)], ["copied", number, 5]])
        said = self.browser.find_element("css selector", ".mwf-said").text
        if not said.startswith(f"{number}, from tp ") or f"element {first['arrived'].index(number)};" not in said:
            self.fault(f'says "{said}" of {number}')

    def numbers(self):
        return self.browser.execute_script("""
          return [...document.querySelectorAll(".mwf-table tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent))""")

    def curves(self):
        lines = re.findall(r"^ +(fp32|bf16) σ. +([\d. ]+)$", find_expected(self.root, "06").read_text(encoding="utf-8"), re.MULTILINE)
        self.open("06")
        for at, precision in ((0, "fp32"), (1, "bf16")):
            self.browser.find_elements("css selector", "#figure-06-set option")[at].click()
            # 0.015515 is printed as 0.016 from float32 and stands in the data as 0.01550: compare as numbers.
            shown = [[float(cell) for cell in row] for row in self.numbers()[:3]]
            wanted = [[float(cell) for cell in values.split()] for kind, values in lines if kind == precision]
            self.compared += 1
            if any(abs(a - b) > 0.0011 for row, line in zip(shown, wanted) for a, b in zip(row, line)) or len(wanted) != 3:
                self.fault(f"the singular values in {precision} should be {wanted}, and the figure shows {shown}")
        self.browser.find_elements("css selector", "#figure-06-set option")[0].click()
        slider = self.browser.find_element("id", "figure-06-start")
        for key, start in ((HOME, 0.001), (END, 1.0)):
            slider.send_keys(key)
            wanted = [start]
            for _ in range(5):
                wanted.append(3.4445 * wanted[-1] - 4.7750 * wanted[-1] ** 3 + 2.0315 * wanted[-1] ** 5)
            self.same(f"what becomes of {start}", self.numbers()[3], [f"{value:.3f}" for value in wanted])
            points = self.browser.execute_script("return [...document.querySelectorAll('.mwf-now')].map((dot) => Number(dot.getAttribute('cy')))")
            self.same("the dots lie as the numbers say", points, [round(14 + (1 - value / 1.3) * 240, 1) for value in wanted])
        self.browser.find_elements("css selector", "#figure-06-set option")[2].click()
        self.same("the textbook's coefficients", self.browser.find_element("css selector", ".mwf-formula span").text, "1.5000 σ − 0.5000 σ³")
        self.same("what they leave of 1", self.numbers()[3], ["1.000"] * 6)
        self.browser.find_element("css selector", '.mwf-table button[data-step="2"]').send_keys(" ")
        self.same("what lights up for step 2", self.browser.execute_script("return [...document.querySelectorAll('[data-step].mwf-lit')].length"), 6)
        self.same("how far the way has gone", self.browser.execute_script(
            "return document.querySelector('[data-plot=curve] .mwf-web').getAttribute('d').split('L').length"), 5)
