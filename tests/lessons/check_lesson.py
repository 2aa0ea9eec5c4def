#!/usr/bin/env python3
"""Runs a lesson and holds it to what every lesson promises. ctest calls it once for each lesson and each check:

    check_lesson.py CHECK PROGRAM EXPECTED [ARGUMENT...]

    anatomy    its source has the sections of every lesson
    expected   it prints EXPECTED, byte by byte
    bugs       every planted bug is caught, and changes on the screen what NAME.bugs.expected says, with fibers as with processes
    fibers     ranks as fibers, through memory, print and record what processes do, in whatever order they take turns
    grids      what it predicts holds on every grid of up to 64 ranks
    nccl       over NCCL it prints the same as well, or its NAME.nccl.expected where it has one, with the same checks
    otherwise  it runs or refuses in other sizes, precisions and details, and what it records and traces is what it printed

With BLESS=1 in the environment, files of what is expected are written anew instead of compared. ARGUMENTs are handed to the lesson in
all checks but `expected`, so that a lesson that works long can be checked in a smaller size.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SECONDS = 240  # far more than any lesson needs, also under a sanitizer
COLUMNS, SOURCE_COLUMNS = 100, 120
SECTIONS = ("The idea", "The reference", "The steps", "The cost", "Exercises")
BLESS_IF_RIGHT = "If what it prints now is right, run this test with BLESS=1 in the environment and review the difference."

failures = 0


def fail(what):
    global failures
    print(f"FAILED  {what}")
    failures += 1


def expect(holds, what):
    if not holds:
        fail(what)
    return bool(holds)


class Run:
    """A run of a program: how it ended and what it printed."""

    def __init__(self, command):
        self.what = " ".join(word or "''" for word in command[1:]) + ": " if command[1:] else ""
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
            self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()
        except subprocess.TimeoutExpired:
            self.code, self.out, self.err = None, "", f"(it was still running after {SECONDS} s)"

    def ended(self, code):
        """Whether it ended with this exit code."""
        return expect(self.code == code, f"{self.what}ended with {self.code} instead of {code}; on standard error:\n    {self.err}")


class Lesson:
    def __init__(self, program, expected, arguments):
        self.program, self.expected, self.arguments = program, Path(expected), arguments
        self.name = Path(program).name
        self.source = self.expected.with_suffix(".cpp")

    def run(self, *options):
        return Run([self.program, *self.arguments, *options])

    def run_in_full(self):
        return Run([self.program])


# --- texts ---------------------------------------------------------------------------------------------------------------------------

def expect_readable(what, text):
    """It fits on the screen. Of the lines that don't, the first is shown and the others are counted."""
    wrong = [(number, line, "ends in blanks" if line != line.rstrip() else f"has {len(line)} columns; the limit is {COLUMNS}")
             for number, line in enumerate(text.splitlines(), 1) if line != line.rstrip() or len(line) > COLUMNS]
    if wrong:
        number, line, why = wrong[0]
        fail(f"{what}line {number} {why}:\n    {line}|" + (f"\n    (and {len(wrong) - 1} more such lines)" if wrong[1:] else ""))
    expect(not text or text.endswith("\n"), f"{what}the last line has no end")


def expect_same(what, of_first, first, of_second, second):
    """Both are equal; otherwise the first line that differs is printed as both have it."""
    if first == second:
        return True
    a, b = first.split("\n"), second.split("\n")
    at = next((i for i in range(min(len(a), len(b))) if a[i] != b[i]), min(len(a), len(b)))
    width = max(len(of_first), len(of_second))
    lines = [f"\n    {of:{width}}  {text[at] if at < len(text) else '(no such line)'}" for of, text in ((of_first, a), (of_second, b))]
    fail(f"{what}the first difference is in line {at + 1}{''.join(lines)}")
    return False


def expect_kept(path, text, same=lambda a, b: a == b):
    """The file holds this text; with BLESS=1 it is written instead."""
    if failures:
        return
    if os.environ.get("BLESS") == "1":
        path.write_text(text, encoding="utf-8")
        print(f"BLESSED: {path} was written anew; review the difference before committing it")
    elif not path.exists():
        fail(f"{path} does not exist; run this test with BLESS=1 in the environment to write it, and review it")
    else:
        kept = path.read_bytes().decode()
        if not same(kept, text):
            expect_same("", "expected", kept, "printed", text)
            print(BLESS_IF_RIGHT)


def expect_refusal(lesson, run, *words):
    """What can't work as asked is refused in one sentence with these words, and nothing else is printed."""
    if not run.ended(2):
        return
    lines = run.err.splitlines()
    expect(len(lines) == 1 and lines[0].startswith(f"{lesson.name}: ") and len(lines[0]) >= len(lesson.name) + 20,
           f"{run.what}a refusal is one sentence on standard error that begins with \"{lesson.name}: \", but it says:\n{run.err}")
    for word in words:
        expect(word in run.err, f"{run.what}the refusal does not name {word}:\n{run.err}")
    expect(not run.out, f"{run.what}a refusal leaves standard output empty, but it has:\n{run.out}")


def works_or_is_refused(lesson, run):
    """True when it worked."""
    if run.code == 2:
        expect_refusal(lesson, run)
        return False
    if not run.ended(0):
        return False
    expect_readable(run.what, run.out)
    return expect(run.out.endswith(f"{lesson.name}: OK\n"), f"{run.what}the last line does not say OK")


# --- anatomy -------------------------------------------------------------------------------------------------------------------------

def check_anatomy(lesson):
    """The title, the sections in their order, and three exercises, each with a hint and behind it an answer."""
    if not lesson.source.exists():
        return fail(f"{lesson.source} does not exist; the source of a lesson lies beside its .expected")
    text = lesson.source.read_text(encoding="utf-8")
    lines = text.split("\n")
    title = f"// # Lesson {lesson.name[7:9]} · "
    if not lines[0].startswith(title) or lines[0] == title:
        fail(f"the first line of the source is \"{title}Title\", but it is:\n    {lines[0]}")
    else:
        printed = f'info.title = "{lines[0][len(title):]}";'
        expect(printed in text, f"the program does not print the title of the source's first line; it should say {printed}")
    for number, line in enumerate(lines, 1):
        expect(len(line) <= SOURCE_COLUMNS, f"line {number} has {len(line)} columns; the limit is {SOURCE_COLUMNS}")

    headings = [match[1] for match in map(re.compile(r" *// ## (.*)").fullmatch, lines) if match]
    at = 0
    for section in SECTIONS:
        if section not in headings[at:]:
            return fail(f'the section "// ## {section}" is missing, or comes too early')
        at = headings.index(section, at)

    comments = re.search(r"^ *// ## Exercises\n((?: *//.*\n)*)", text, re.MULTILINE)[1]
    items = re.split(r"^ \d+\. ", re.sub(r"^ *//", "", comments, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    expect(len(items) == 3, f"a lesson ends with 3 exercises, but it has {len(items)}")
    for number, item in enumerate((" ".join(item.split()) for item in items), 1):
        question, _, rest = item.partition("Hint: ")
        hint, _, answer = rest.partition("Answer: ")
        if len(hint) < 15 or "Answer:" in question:  # shorter than this is nothing said
            fail(f'exercise {number} has no hint; write one behind the question, "Hint: …"')
        elif len(answer) < 15:
            fail(f'exercise {number} has no answer; write it behind the hint, "Answer: …", and try it before')
        expect(item.count("Hint:") < 2 and item.count("Answer:") < 2, f"exercise {number} has two hints or two answers")


# --- planted bugs --------------------------------------------------------------------------------------------------------------------

def lines_in_both(before, after):
    """For each line of `after`, whether it is part of the longest common subsequence with `before`."""
    longest = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            longest[i][j] = 1 + longest[i + 1][j + 1] if before[i] == after[j] else max(longest[i + 1][j], longest[i][j + 1])
    both, i, j = [False] * len(after), 0, 0
    while i < len(before) and j < len(after):
        if before[i] == after[j]:
            both[j] = True
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return both


def bug_excerpt(without_bug, with_bug):
    """What a bug changes on the screen: the lines that are new, each below the line that it belongs to, and the last line. "…" stands
    where lines were left out."""
    lines = with_bug.splitlines()
    kept = {len(lines) - 1}
    for i, both in enumerate(lines_in_both(without_bug.splitlines(), lines)):
        if not both and lines[i]:
            kept |= {i, next(head for head in range(i, -1, -1) if head == 0 or not lines[head].startswith(" "))}
    excerpt = ""
    for i in sorted(kept):
        excerpt += ("" if i == 0 or i - 1 in kept else "…\n") + lines[i] + "\n"
    return excerpt


NUMBER = re.compile(r"(0x[0-9a-f]+|\d[\d,.]*(?:e[+-]?\d+)?)")


def value_of(number):
    """Bits, "0x3f800000", are read as the float that they are."""
    if number.startswith("0x"):
        return struct.unpack("f", struct.pack("I", int(number, 16) & 0xFFFFFFFF))[0]
    return float(number.replace(",", "").rstrip("."))


def same_line(a, b):
    """True when both are the same but for what rounding on another processor may change: the values where a check found its first
    difference and the number of elements that differ by a hundredth, their distance in ULP by a factor of two."""
    if a == b:
        return True
    if not any(words in a for words in ("  the rank holds ", "  the reference has ", " elements differ ")):
        return False
    left, right = (NUMBER.split(re.sub(" +", " ", line)) for line in (a, b))
    if len(left) != len(right) or left[::2] != right[::2]:
        return False
    for i in range(1, len(left), 2):
        small, large = sorted(abs(value_of(side[i])) for side in (left, right))
        if not (2 * small >= large if left[i + 1].startswith(" ULP") else large - small <= 0.01 * large):
            return False
    return True


def same_on_any_processor(a, b):
    a, b = a.split("\n"), b.split("\n")
    return len(a) == len(b) and all(map(same_line, a, b))


def check_bugs(lesson):
    listed = lesson.run("--list-bugs")
    without = lesson.run()
    if not listed.ended(0) or not without.ended(0):
        return
    bugs = listed.out.splitlines()
    expect(bugs, "a lesson plants at least one bug that its check catches, but --list-bugs names none")
    kept = (f"What the planted bugs of {lesson.name} change in its output: the test {lesson.name}.bugs compares,\n"
            "and writes this file when it is run with BLESS=1 in the environment.\n")
    for line in bugs:
        bug, _, why = line.partition("  ")
        why, _, needed = why.partition("  (with ")
        options = ["--bug", bug, *needed.rstrip(")").split()]
        expect(why, f'--list-bugs: "{line}" does not say what goes wrong')
        run = lesson.run(*options)
        kept += f"\nbug {bug}: {why.strip()}\n$ {' '.join([lesson.name, *lesson.arguments, *options])}\n"
        # A rank that makes other calls than the rest is caught by whoever waits for it, before there is anything to check. Who that is
        # may be another rank in each run.
        if run.code == 3:
            expect(re.fullmatch(rf"{lesson.name}: rank [^\n]*do not make the same calls[^\n]*\n", run.err),
                   f"{run.what}ended with code 3, but not with one sentence about other calls:\n{run.err}")
            kept += "…\n(Exit code 3, and a sentence on standard error: the ranks do not make the same calls.)\n"
        elif run.ended(1):
            expect("first difference" in run.out or "✘" in run.out, f"{run.what}the output does not show a difference:\n{run.out}")
            expect(run.out.endswith(f"{lesson.name}: FAILED\n"), f"{run.what}the last line does not say FAILED")
            expect_readable(run.what, run.out)
            kept += bug_excerpt(lesson.run(*options[2:]).out if needed else without.out, run.out)
        fibers = lesson.run(*options, "--world", "fibers")
        if fibers.code != 2 and expect(fibers.code == run.code, f"{fibers.what}ended with {fibers.code}, and with {run.code} among processes"):
            expect_same(fibers.what, "processes", without_world(run.out), "fibers", without_world(fibers.out))
    expect_kept(lesson.expected.with_suffix(".bugs.expected"), kept, same_on_any_processor)
    print(f"{len(bugs)} planted bugs were run")


# --- the same in another world -------------------------------------------------------------------------------------------------------

def without_world(text):
    """The output without what may differ between worlds: the right half of headings, and what the kernel counted."""
    lines = (line.split("  ")[0] if line.startswith("Lesson ") else line for line in text.splitlines())
    return "\n".join(line for line in lines if not line.startswith("        TCP"))


def check_expected(lesson):
    run = lesson.run_in_full()
    if not run.ended(0):
        print(run.out)
    expect_readable("", run.out)
    expect_kept(lesson.expected, run.out)


def check_fibers(lesson):
    """A lesson that needs processes may refuse. The screen is that of processes, whosever turn it is: the orders in which fibers take
    turns are drawn by seeds, of which MUONWALK_TURNS says how many."""
    fibers = lesson.run("--world", "fibers")
    if not works_or_is_refused(lesson, fibers):
        return print(f"refused: {fibers.err}")
    processes = lesson.run()
    if processes.ended(0):
        expect_same(fibers.what, "processes", without_world(processes.out), "fibers", without_world(fibers.out))
    with tempfile.TemporaryDirectory() as folder:
        recorded = []
        for world in ("processes", "fibers"):
            lesson.run("--world", world, "--record", f"{folder}/{world}.json")
            recording = json.loads(Path(f"{folder}/{world}.json").read_text(encoding="utf-8"))
            recorded.append("\n".join(f"{key}: {value}" for key, value in recording.items() if key not in ("heading", "before", "after")))
        expect_same("--record: ", "processes", recorded[0], "fibers", recorded[1])
    orders = int(os.environ.get("MUONWALK_TURNS", 200))
    for seed in range(orders):
        drawn = lesson.run("--world", "fibers", "--turns", str(seed))
        if not (drawn.ended(0) and expect_same(drawn.what, "turns that go round", fibers.out, f"turns drawn by {seed}", drawn.out)):
            return None
    return print(f"{orders} orders of turns were run")


def check_grids(lesson):
    """Ranks are fibers, so that all of it takes seconds. Where a lesson works longer, MUONWALK_GRIDS says how many grids it skips at a time."""
    grids = [(ranks // tp, tp) for ranks in range(1, 65) for tp in range(1, ranks + 1) if ranks % tp == 0]
    worked = 0
    for dp, tp in grids[:: int(os.environ.get("MUONWALK_GRIDS", 1))]:
        run = lesson.run("--world", "fibers", "--verbose", "0", "--dp", str(dp), "--tp", str(tp))
        worked += works_or_is_refused(lesson, run)
    print(f"{worked} grids were run")


def check_nccl(lesson):
    """Where the environment names stand-ins for CUDA and NCCL, everything is staged through their devices. With chains, Newton–Schulz
    runs there too."""
    own = lesson.expected.with_suffix(".nccl.expected")
    for options in ((), ("--products", "chain")):
        here = lesson.run(*options)
        if here.code == 2 and options:
            continue  # it multiplies nothing
        there = lesson.run(*options, "--transport", "nccl")
        if not here.ended(0) or not there.ended(0):
            return
        expect(" over NCCL · " in there.out, f"{there.what}the first line does not say so")
        here, said = without_world(here.out), without_world(there.out)
        if own.exists():
            here, said = ("\n".join(line for line in text.splitlines() if "✔" in line) for text in (here, said))
            expect(here, "it checks nothing")
        expect_same(there.what, "over Gloo", here, "over NCCL", said)
        if own.exists():
            expect_readable(there.what, there.out)
            return expect_kept(own, there.out)


# --- what a run writes ---------------------------------------------------------------------------------------------------------------

def read_json(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fail(f"{path} can't be read as JSON: {error}")
        return None


def ranks_in(text, all_ranks):
    """ "every rank", "rank 2", "ranks 0–3", "ranks 0, 2, 3"; of "0 and 3 more" nobody but the first is known."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if text == "every rank":
        return range(all_ranks)
    if "more" in text:
        return numbers[:1]
    return range(numbers[0], numbers[1] + 1) if "–" in text else numbers


def number_of(text):
    return int(text.replace(",", ""))


SPAN = r"([\d,]+(?:–[\d,]+)?)"  # of ranks that are drawn together: from the least to the most
COST_ROW = re.compile(rf"(?:cost  |      ) +(\w+) over ([\w ]+), (\w+)(?: × {SPAN})? +(every rank|ranks? [\d–, ]+?|\d+ (?:and|\+) \d+ more) +"
                      rf"(?:[\d,]+ B +)?{SPAN} B +{SPAN} +✔")
COST_NAME = re.compile(rf" +\w+ over [\w ]+, \w+(?: × {SPAN})?")


def span_of(text):
    numbers = [number_of(number) for number in text.split("–")]
    return numbers[0], numbers[-1]


def expect_cost_table(printed, ledgers):
    """The first table of costs says what the transports counted. A long name has a line to itself there."""
    lines = printed.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("cost ")), len(lines))
    rows, name = 0, ""
    for line in lines[begin + 1:]:
        if not line.startswith("        "):
            break
        if COST_NAME.fullmatch(line):
            name = line
            continue
        row, name = COST_ROW.fullmatch(name + line), ""
        if not row:
            continue
        rows += 1
        collective, group, element_type, calls, who, sent, messages = row.groups()
        said = {"calls": span_of(calls or "1"), "bytes": span_of(sent), "messages": span_of(messages)}
        counted = [ledgers[rank].get((group, collective, element_type)) for rank in ranks_in(who, len(ledgers))]
        for what, (least, most) in said.items():
            found = sorted(one[what] if one else 0 for one in counted)
            right = found[0] >= least and found[-1] <= most if "more" in who else (found[0], found[-1]) == (least, most)
            expect(right, f"the transports counted {found[0]} to {found[-1]} {what}, but the table says\n    {line}")
    if begin < len(lines) and (row := re.fullmatch(rf"cost    sent, each call as predicted +every rank +{SPAN} B +{SPAN} +✔", lines[begin])):
        for text, what in zip(row.groups(), ("bytes", "messages")):
            sums = [sum(line[what] for line in ledger.values()) for ledger in ledgers]
            expect((min(sums), max(sums)) == span_of(text), f"the transports counted {min(sums)} to {max(sums)} {what}, but one line says\n    {lines[begin]}")
        rows += 1
    expect(rows or begin == len(lines) or not any(line["messages"] for ledger in ledgers for line in ledger.values()),
           "no row of the table of costs could be read")


def ledgers_of(trace):
    """For each rank: (group, collective, type) → calls, bytes and messages, as the transports counted them."""
    return [{(line["group"], line["collective"], line["type"]): {key: line[key] for key in ("calls", "bytes", "messages")} for line in ledger}
            for ledger in trace["muonwalk"]["ledger"]]


def expect_trace(trace, ok=True):
    """The trace of all ranks: what its slices and arrows tell is what the transports counted."""
    about = trace["muonwalk"]
    expect(about["ok"] == ok, f"the trace says that the run was {'right' if about['ok'] else 'wrong'}")
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    expect(sorted(names) == list(range(about["ranks"])), "the trace has not one process per rank")
    for rank, ledger in enumerate(ledgers_of(trace)):
        who = f"rank {rank}"
        expect(names.get(rank, "").startswith(who), f"{who} is called something else in the trace")
        expect(about["dropped_events"][rank] == 0, f"{who} dropped events of its trace")
        mine = [event for event in trace["traceEvents"] if event["pid"] == rank]
        seen, busy, arrows = {}, [], sum(event["ph"] == "s" for event in mine)
        for event in mine:
            if event["ph"] != "X":
                continue
            thread, kind = threads.get((rank, event["tid"])), event["cat"]
            if kind in ("communication", "computation"):
                expect(thread == kind, f"{who}: a slice of {kind} lies on the thread {thread}")
                busy.append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
            if kind == "communication":
                args = event["args"]
                line = seen.setdefault((args["group"], args["collective"], args["type"]), {"calls": 0, "bytes": 0, "messages": 0})
                line["calls"] += 1
                line["bytes"] += args["bytes"]
                line["messages"] += args["messages"]
        expect(busy, f"{who} did nothing in its trace")
        expect(seen == ledger, f"{who}: the slices are\n    {seen}\nand the transports counted\n    {ledger}")
        messages = sum(line["messages"] for line in ledger.values())
        expect(arrows == messages, f"{who}: {arrows} arrows leave it, and {messages} messages did")
        busy.sort()
        # A rank is one thread: it computes or it is in a call. A microsecond's third digit may be rounded either way.
        expect(all(end <= begin + 1 for (_, end), (begin, _) in zip(busy, busy[1:])), f"{who}: computation and communication overlap")


def expect_traces_per_rank(folder, trace):
    """The files of one rank each: the same calls and the same computation, in PyTorch's words."""
    ranks = trace["muonwalk"]["ranks"]
    files = sorted(path.name for path in folder.iterdir())
    expect(files == sorted(f"rank_{rank}.json" for rank in range(ranks)), f"--trace-per-rank wrote {files}")
    for rank in range(ranks if not failures else 0):
        one = read_json(folder / f"rank_{rank}.json")
        about = one["distributedInfo"]
        expect((about["rank"], about["world_size"]) == (rank, ranks), f"rank_{rank}.json is of rank {about['rank']} of {about['world_size']}")
        kernels = [event["name"] for event in one["traceEvents"] if event.get("cat") == "kernel"]
        calls = sum(name.startswith("gloo:") for name in kernels)
        of_rank = Counter(event["cat"] for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == rank)
        expect((calls, len(kernels) - calls) == (of_rank["communication"], of_rank["computation"]),
               f"rank_{rank}.json has {calls} calls and {len(kernels) - calls} computations, and the trace of all ranks {dict(of_rank)}")


def is_quiet(step):
    """Of a quiet step nothing is printed; its lines, if any, come after it."""
    return not step["lines"] or not step["lines"][0].startswith("step ")


def expect_blocks(what, step, tensors):
    """What the ranks hold: parts of tensors that are in the list, with as many values as elements, each in a colour."""
    for block in (block for of_rank in step["holds"] for block in of_rank):
        name, size = f"{what}, {block['name']}", block["rows"] * block["cols"]
        extent = {"rows": block["rows"], "columns": block["cols"], "elements": size}.get(block["unit"])
        expect(0 <= block["begin"] <= block["end"] <= block["of"], f"{name} is not part of its whole")
        expect(extent in (None, block["end"] - block["begin"]), f"{name} does not have the extent of its range")
        expect(block["values"] is None or len(block["values"]) == size, f"{name} has not as many values as elements")
        expect(block["values"] is None or len(block["digest"]) == 16, f"{name} has values and no digest")
        at = 0
        for tensor, begin, end, from_element in block.get("spans", [[block["tensor"], 0, block["cols"], 0]]):
            expect(at <= begin < end <= block["cols"] or size == 0 or not block["cols"], f"{name} has a span that is not in order")
            expect(tensors[tensor]["colour"] is not None and from_element >= 0, f"{name} has a span without a colour")
            at = end


def expect_moves(what, step, ranks):
    """Every move is between two ranks of its group; their sums are what the step prints of each rank."""
    sent, received, messages = Counter(), Counter(), Counter()
    for move in step["moves"]:
        size = {"float32": 4, "bfloat16": 2}.get(move["type"], 1)
        source, target = move["from"], move["to"]
        if not expect(source != target and 0 <= min(source, target) and max(source, target) < len(ranks), f"{what} has a move to nobody"):
            return
        expect(move["bytes"] == size * move["elements"], f"{what} has a move whose bytes are not those of its elements")
        group = "pp" if move["group"] == "first and last stage" else move["group"]
        differ = {kind for kind in ("dp", "tp", "pp") if ranks[source][kind] != ranks[target][kind]}
        expect(group == "world" or differ == {group}, f"{what} has a move over {group} between ranks {source} and {target}, which differ in {differ}")
        sent[source] += move["bytes"]
        received[target] += move["bytes"]
        messages[source] += 1
    said = {}
    for line in step["lines"]:
        row = re.fullmatch(rf"  (.+?) sent {SPAN} B in {SPAN} messages? and received {SPAN} B", line)
        if not row:
            continue
        who = ranks_in(row[1], len(ranks))
        said.update(dict.fromkeys(who))
        for text, counted in zip(row.groups()[1:], (sent, messages, received)):
            found = [counted[rank] for rank in who]
            expect((min(found), max(found)) == span_of(text), f"{what} says\n    {line}\nbut its moves add up to {min(found)} to {max(found)}")
    expect(said or not messages or is_quiet(step), f"{what} does not say what its ranks sent")


def expect_recording(lesson, recording, printed, ledgers):
    """The recording says what the run said, line by line, and moves what its ranks sent, byte by byte."""
    about, ranks, steps = recording["lesson"], recording["ranks"], recording["steps"]
    expect((recording["format"], recording["version"], recording["ok"]) == ("muonwalk-recording", 1, True), "the recording of a good run is not ok")
    expect((about["name"], about["number"]) == (lesson.name, lesson.name[7:9]), f"the recording is of {about['name']}")
    sizes = recording["grid"]
    places = [(pp, dp, tp) for pp in range(sizes["pp"]) for dp in range(sizes["dp"]) for tp in range(sizes["tp"])]
    expect(sorted((rank["pp"], rank["dp"], rank["tp"]) for rank in ranks) == places and [rank["rank"] for rank in ranks] == list(range(len(places))),
           f"the recording has ranks {ranks}, which are not those of its grid")
    expect(steps and [step["number"] for step in steps] == list(range(1, len(steps) + 1)), "the steps are not numbered in order")
    if failures:
        return
    quiet = any(map(is_quiet, steps))
    recorded = recording["before"] + [line for step in steps for line in step["lines"]] + recording["after"]
    lines = printed.splitlines()
    expect(recording["heading"] == lines[0], "the heading is not the first line that is printed")
    # Of quiet steps only the first are recorded; of two layouts, the first one is.
    expect_same("the recording: ", "recorded", "\n".join(recorded), "printed", "\n".join(lines[:len(recorded)]))
    expect(quiet or len(recorded) == len(lines), f"the recording has {len(recorded)} lines, but {len(lines)} are printed")
    moved = Counter()
    for step in steps:
        what = f"step {step['number']} of the recording"
        expect(len(step["holds"]) == len(step["says"]) == len(ranks), f"{what} has not a list for every rank")
        title = is_quiet(step) or step["lines"][0].partition(" · ")[2]
        expect(title is True or title == step["title"], f"{what} does not begin with its title")
        expect_blocks(what, step, recording["tensors"])
        expect_moves(what, step, ranks)
        for move in step["moves"]:
            moved[move["from"], move["group"], move["collective"], move["type"]] += move["bytes"]
    sent = Counter({(rank, *key): line["bytes"] for rank, ledger in enumerate(ledgers) for key, line in ledger.items()})
    for key in moved | sent:
        expect(moved[key] == sent[key] or quiet and moved[key] < sent[key],
               f"{key}: the moves of the recording add up to {moved[key]} B, but the transports counted {sent[key]} B")
    expect(moved or not +sent, "the recording has no move")


def expect_digests(recording):
    """With --verbose 2 every digest that is printed is that of a block, in the same order."""
    for step in recording["steps"]:
        printed = [line.split()[1] for line in step["lines"] if line.strip().startswith("digest ")]
        recorded = [block["digest"] for of_rank in step["holds"] for block in of_rank if block["digest"] is not None]
        if not is_quiet(step):
            expect(printed == recorded, f"step {step['number']}: the digests that are printed are not those of the blocks")


REFUSED = ((("--no-such-option",), "--no-such-option"), (("--dp", "64", "--tp", "64"), "--dp 64"), (("--bug", "no_such_bug"), "no_such_bug"),
           (("--record", "/no/such/folder/run.json"), "/no/such/folder"))
WORKS_OR_IS_REFUSED = (("--precision", "bf16", "--seed", "7"), ("--dp", "3"), ("--tp", "3"), ("--dp", "1", "--tp", "1"),
                       ("--dp", "2", "--tp", "2", "--pp", "2", "--verbose", "2"))


def check_otherwise(lesson):
    for options, word in REFUSED:
        expect_refusal(lesson, lesson.run(*options), word)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Neither the number of threads nor a recording or a trace changes a line.
        run = lesson.run("--threads", "2", "--record", f"{folder}/run.json", "--trace", f"{folder}/all.json", "--trace-per-rank", f"{folder}/ranks")
        if not run.ended(0):
            return
        plain = lesson.run()
        expect_same("--threads 2 --record --trace: ", "without", plain.out, "with", run.out)
        trace, recording = read_json(folder / "all.json"), read_json(folder / "run.json")
        if failures:
            return
        expect_trace(trace)
        expect_traces_per_rank(folder / "ranks", trace)
        expect_cost_table(run.out, ledgers_of(trace))
        expect_recording(lesson, recording, run.out, ledgers_of(trace))

        full = lesson.run("--verbose", "2", "--record", f"{folder}/values.json")
        if works_or_is_refused(lesson, full):
            values = read_json(folder / "values.json")
            expect_digests(values)
            expect([step["moves"] for step in values["steps"]] == [step["moves"] for step in recording["steps"]],
                   "with --verbose 2 the ranks send something else")
        brief = lesson.run("--verbose", "0", "--world", "processes")
        if works_or_is_refused(lesson, brief):
            expect(len(brief.out) < len(plain.out), "--verbose 0 prints no less than without it")

        # What was wrong is recorded as the failure that it is, unless the run broke.
        bug = lesson.run("--list-bugs").out.split(" ")[0]
        broken = lesson.run("--bug", bug, "--record", f"{folder}/bug.json", "--trace", f"{folder}/bug_trace.json")
        if broken.code == 1:
            expect(read_json(folder / "bug.json")["ok"] is False, f"--bug {bug} is recorded as ok")
            expect(read_json(folder / "bug_trace.json")["muonwalk"]["ok"] is False, f"the trace of --bug {bug} says that all was well")
        else:
            expect(broken.code == 3 and not (folder / "bug.json").exists(), f"--bug {bug} ended with {broken.code}, and a recording")
    for options in WORKS_OR_IS_REFUSED:
        works_or_is_refused(lesson, lesson.run(*options))


CHECKS = {name[6:]: check for name, check in list(globals().items()) if name.startswith("check_")}


def main(arguments):
    if len(arguments) < 3 or arguments[0] not in CHECKS:
        print(f"check_lesson.py takes {', '.join(CHECKS)}; a program, its .expected, and arguments for the program", file=sys.stderr)
        return 2
    os.environ["NO_COLOR"] = "1"
    CHECKS[arguments[0]](Lesson(arguments[1], arguments[2], arguments[3:]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
