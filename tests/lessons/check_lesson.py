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
import sys
import tempfile
from pathlib import Path

import expectations
from expectations import Lesson, SOURCE_COLUMNS, expect, expect_kept, expect_readable, expect_refusal, expect_same, fail, works_or_is_refused
from kept_files import expect_cost_table, expect_digests, expect_recording, expect_trace, ledgers_of, read_json

SECTIONS = ("The idea", "The reference", "The steps", "The cost", "Exercises")
MOST_LINES = {"09": 45, "18": 80, "21": 80}  # of a screen; of all others 60


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
    lines, most = len(run.out.splitlines()), MOST_LINES.get(lesson.name[7:9], 60)
    expect(lines <= most, f"{lines} lines are printed; a screen has at most {most}, and what the answer doesn't need goes to Lesson::detail")
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
        run = lesson.run("--threads", "2", "--record", f"{folder}/run.json", "--trace", f"{folder}/all.json")
        if not run.ended(0):
            return
        plain = lesson.run()
        expect_same("--threads 2 --record --trace: ", "without", plain.out, "with", run.out)
        trace, recording = read_json(folder / "all.json"), read_json(folder / "run.json")
        if expectations.failures:
            return
        expect_trace(trace)
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
    return 1 if expectations.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
