#!/usr/bin/env python3
"""A check that can't fail is a defect: check_lesson.py accepts lesson 05, and refuses it when any one thing is wrong with it.

    check_lesson_test.py PROGRAM EXPECTED
"""

import contextlib
import copy
import io
import os
import sys
import tempfile
from pathlib import Path

os.environ["MUONWALK_TURNS"] = "2"
import check_lesson
import expectations

wrong = 0


def expect_said(what, check, *words):
    """The check fails and says all these words; without any it holds."""
    global wrong
    expectations.failures = 0
    with contextlib.redirect_stdout(io.StringIO()) as said:
        check()
    text = said.getvalue()
    if bool(expectations.failures) != bool(words) or not all(word in text for word in words):
        print(f"FAILED  {what}: it should {'say ' + ' and '.join(words) if words else 'hold'}, but it said:\n{text}")
        wrong += 1


class Changed(check_lesson.Lesson):
    """The lesson with something wrong: `change` is told the options and the run, and says what the run was. Runs that write no file are
    made once."""
    runs = {}

    def __init__(self, lesson, expected, change=lambda options, run: None):
        super().__init__(lesson.program, expected, [])
        self.change = change

    def run(self, *options):
        if f"{options}" not in self.runs or "--record" in options:
            self.runs[f"{options}"] = super().run(*options)
        run = copy.copy(self.runs[f"{options}"])
        self.change(options, run)
        return run

    run_in_full = run


def printing(old, new, *only):
    """Prints something else, in runs with one of these options if any are named."""
    def change(options, run):
        if not only or set(only) & set(options):
            run.out = run.out.replace(old, new)
    return change


def ending(code, *only):
    def change(options, run):
        if set(only) <= set(options):
            run.code = code
    return change


def recording(old, new, *only):
    def change(options, run):
        if {"--record", *only} <= set(options):
            path = Path(options[options.index("--record") + 1])
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(old, new), encoding="utf-8")
            assert old in text
    return change


def refusing(text):
    def change(options, run):
        if run.code == 2:
            run.err = text.format(run.err)
    return change


def check_source(lesson, folder):
    text = lesson.source.read_text(encoding="utf-8")
    exercises = text.index("// ## Exercises")
    expected = folder / "source.expected"

    def expect(what, source, *words):
        expected.with_suffix(".cpp").write_text(source, encoding="utf-8")
        changed = Changed(lesson, expected)
        expect_said(what, lambda: check_lesson.check_anatomy(changed), *words)

    def in_exercises(old, new):
        return text[:exercises] + text[exercises:].replace(old, new, 1)

    expect("the lesson itself", text)
    expect("no title", "// # Something\n" + text, "the first line of the source")
    expect("another title", text.replace("info.title =", "info.other ="), "does not print the title")
    for section in check_lesson.SECTIONS:
        expect(f"no {section}", text.replace(f"// ## {section}", "//"), f'"// ## {section}" is missing')
    expect("the cost first", text.replace("// ## The idea", "// ## The cost\n// ## The idea").replace("// ## The steps", "//"), "The steps")
    expect("two exercises", in_exercises("  // 3. ", "  //    "), "has 2")
    expect("no hint", in_exercises("Hint:", "Look:"), "exercise 1 has no hint")
    expect("no answer", in_exercises("Answer:", "So:"), "exercise 1 has no answer")
    expect("answer first", in_exercises("Hint:", "Answer:"), "exercise 1 has no hint", "two answers")
    expect("a wide line", text + "// " + "x" * 118 + "\n", "has 121 columns")


def check_screens(lesson, folder):
    kept = lesson.expected
    odd = folder / "odd.expected"
    for check in ("expected", "bugs", "fibers", "otherwise"):
        expect_said(check, lambda: check_lesson.CHECKS[check](Changed(lesson, kept)))
    for check, change, *words in (
            ("expected", printing("48 B   ████····", "49 B   ████····"), "the first difference is in line 8"),
            ("expected", printing("Question", "Q" * 60), "columns; the limit is 100"),
            ("expected", printing("\n\n", " \n\n"), "ends in blanks"),
            ("expected", printing("\n\n", "\n" * 30), "a screen has at most 60"),
            ("expected", ending(3), "ended with 3"),
            ("bugs", lambda options, run: setattr(run, "out", "") if "--list-bugs" in options else None, "at least one bug"),
            ("bugs", ending(0, "--bug", "stale_slice"), "stale_slice: ended with 0"),
            ("bugs", ending(3, "--bug", "stale_slice"), "not with one sentence about other calls"),
            ("bugs", printing(": FAILED", ": OK", "stale_slice"), "does not say FAILED"),
            ("bugs", printing("24 of 48", "25 of 48", "stale_slice"), "the first difference is in line"),
            ("bugs", printing("0x43480000", "0x43580000", "stale_slice"), "the first difference is in line"),
            # What another processor would round in another way is not compared.
            ("bugs", printing("0x43480000   1128792064 ULP", "0x43480001    1128792060 ULP", "stale_slice"),),
            ("bugs", printing("24 of 48", "25 of 48", "fibers"), "the first difference is in line"),
            ("bugs", ending(0, "stale_slice", "fibers"), "ended with 0, and with 1 among processes"),
            ("fibers", printing("416", "417", "fibers"), "the first difference"),
            ("fibers", recording("TP gather of rows", "TP gather of columns", "fibers"), "--record: the first difference"),
            ("fibers", printing("416", "417", "--turns"), "the first difference"),
            ("fibers", ending(3, "fibers"), "ended with 3"),
            ("otherwise", ending(0, "--no-such-option"), "ended with 0 instead of 2"),
            ("otherwise", refusing("{0}{0}"), "a refusal is one sentence"),
            ("otherwise", refusing(""), "a refusal is one sentence"),
            ("otherwise", refusing("lesson_05_tp_gather: this can't be, try something else\n"), "does not name --no-such-option"),
            ("otherwise", lambda options, run: setattr(run, "out", "x\n") if run.code == 2 else None, "leaves standard output empty"),
            ("otherwise", printing("416", "417", "--trace"), "the first difference is in line"),
            ("otherwise", ending(3, "bf16"), "bf16", "ended with 3"),
            ("otherwise", ending(1, "--dp", "3"), "--dp 3: ended with 1"),
            ("otherwise", printing(": OK", ": FAILED", "--tp"), "does not say OK"),
            ("otherwise", lambda options, run: setattr(run, "out", run.out * 99) if "0" in options else None, "prints no less")):
        expect_said(f"{check}, {words}", lambda: check_lesson.CHECKS[check](Changed(lesson, kept, change)), *words)

    # A bug that changes nothing: its run is the one without it, and still ends as if it had been caught.
    def nothing(options, run):
        if "--bug" in options:
            run.out = Changed.runs["()"].out
    expect_said("a bug that changes nothing", lambda: check_lesson.check_bugs(Changed(lesson, kept, nothing)), "does not say FAILED")

    # Over NCCL, for which there may be no GPU here: what it prints there is made up.
    def over_nccl(*changes):
        def change(options, run):
            if "nccl" in options:
                run.code, run.out, run.err = 0, Changed.runs["()"].out.replace("over Gloo", "over NCCL"), ""
                for old, new in changes:
                    run.out = run.out.replace(old, new)
        return change
    own = folder / "own.expected"
    own.with_suffix(".nccl.expected").write_text(kept.read_text(encoding="utf-8").replace("over Gloo", "over NCCL"), encoding="utf-8")
    for expected, changes, *words in ((kept, ()), (kept, (("416", "417"),), "the first difference"), (kept, (("over NCCL", "over Gloo"),), "does not say so"),
                                      (own, ()), (own, (("416", "417"),), "the first difference", "BLESS=1"),
                                      (own, (("48 elements, bit", "49 elements, bit"),), "--transport nccl: the first difference")):
        expect_said(f"nccl, {changes}", lambda: check_lesson.check_nccl(Changed(lesson, expected, over_nccl(*changes))), *words)

    # Where nothing is kept yet, the checks say how it is written, and BLESS=1 writes what was printed, unless that is wrong.
    for check, suffix in (("expected", ".expected"), ("bugs", ".bugs.expected")):
        def run(change=printing("", "")):
            return lambda: check_lesson.CHECKS[check](Changed(lesson, odd, change))
        expect_said(f"{check}, no file", run(), "BLESS=1")
        os.environ["BLESS"] = "1"
        expect_said(f"{check}, BLESS=1 of what fails", run(ending(3)), "ended with 3")
        if odd.with_suffix(suffix).exists():
            expect_said("BLESS=1 wrote what failed", lambda: None, "nothing")
        expect_said(f"{check}, BLESS=1", run())
        del os.environ["BLESS"]
        expect_said(f"{check}, after BLESS=1", run())
        expect_said(f"{check}, something else after BLESS=1", run(printing("columns", "lines")), "the first difference")


def check_files(lesson, folder):
    """Of one run each of its files is changed in one thing."""
    run = lesson.run("--record", f"{folder}/run.json", "--trace", f"{folder}/all.json", "--verbose", "2")
    trace, recording = check_lesson.read_json(folder / "all.json"), check_lesson.read_json(folder / "run.json")
    ledgers = check_lesson.ledgers_of(trace)

    def first_slice(trace, kind):
        return next(event for event in trace["traceEvents"] if event.get("cat") == kind)

    def change_ledger(trace):
        trace["muonwalk"]["ledger"][1][0]["bytes"] += 1

    def drop_arrow(trace):
        trace["traceEvents"].remove(next(event for event in trace["traceEvents"] if event["ph"] == "s"))

    def overlap(trace):
        first_slice(trace, "computation")["dur"] += 1e6

    expect_said("the trace", lambda: check_lesson.expect_trace(trace))
    for change, words in ((change_ledger, "the transports counted"), (drop_arrow, "arrows leave it"), (overlap, "overlap"),
                          (lambda it: it["muonwalk"].update(ok=False), "the run was wrong"),
                          (lambda it: it["muonwalk"]["dropped_events"].__setitem__(0, 1), "dropped events"),
                          (lambda it: it["traceEvents"][0].update(pid=7), "one process per rank"),
                          (lambda it: first_slice(it, "communication")["args"].update(group="dp"), "the slices are"),
                          (lambda it: first_slice(it, "communication").update(tid=1), "lies on the thread")):
        changed = copy.deepcopy(trace)
        change(changed)
        expect_said(words, lambda: check_lesson.expect_trace(changed), words)

    expect_said("the costs", lambda: check_lesson.expect_cost_table(run.out, ledgers))
    for old, new in (("96 B        2   ✔", "97 B        2   ✔"), ("96 B        2   ✔", "96 B        3   ✔"), ("float32 × 2", "float32 × 3")):
        expect_said(new, lambda: check_lesson.expect_cost_table(run.out.replace(old, new), ledgers), "but the table says")
    expect_said("no row", lambda: check_lesson.expect_cost_table(run.out.replace(" over ", " along "), ledgers), "no row of the table")

    def expect_recording(what, change, *words):
        changed = copy.deepcopy(recording)
        change(changed)
        expect_said(what, lambda: check_lesson.expect_recording(lesson, changed, run.out, ledgers), *words)

    def of_step(change):
        return lambda it: change(it["steps"][1])

    def more_bytes(step):
        step["moves"][0]["elements"] += 1
        step["moves"][0]["bytes"] += 4

    expect_recording("the recording", lambda it: None)
    for words, change in (
            ("is not ok", lambda it: it.update(ok=False)), ("is of lesson_06", lambda it: it["lesson"].update(name="lesson_06")),
            ("not those of its grid", lambda it: it["ranks"].pop()), ("not numbered", lambda it: it["steps"].reverse()),
            ("not the first line", lambda it: it.update(heading="")), ("the first difference", lambda it: it["after"].insert(0, "x")),
            ("lines, but", lambda it: it["after"].pop()), ("does not begin with its title", of_step(lambda it: it.update(title="x"))),
            ("a list for every rank", of_step(lambda it: it["holds"].pop())), ("not part of its whole", of_step(lambda it: it["holds"][0][0].update(end=9))),
            ("as many values", of_step(lambda it: it["holds"][0][0]["values"].pop())), ("without a colour", lambda it: it["tensors"][0].update(colour=None)),
            ("a move to nobody", of_step(lambda it: it["moves"][0].update(to=7))), ("are not those of its elements", of_step(lambda it: it["moves"][0].update(bytes=1))),
            ("which differ in", of_step(lambda it: it["moves"][0].update(group="dp"))), ("its moves add up to", of_step(more_bytes)),
            ("but the transports counted", of_step(more_bytes)), ("but the transports counted", of_step(lambda it: it["moves"][0].update(collective="send")))):
        expect_recording(words, change, words)
    expect_said("the digests", lambda: check_lesson.expect_digests(recording))
    changed = copy.deepcopy(recording)
    changed["steps"][1]["holds"][0][0]["digest"] = "0" * 16
    expect_said("a digest", lambda: check_lesson.expect_digests(changed), "digests that are printed")


def main(program, expected):
    os.environ["NO_COLOR"] = "1"
    lesson = check_lesson.Lesson(program, expected, [])
    for check in (check_source, check_screens, check_files):
        with tempfile.TemporaryDirectory() as folder:
            check(lesson, Path(folder))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
