"""What the checks of a lesson stand on: a run of its program, and expectations, each of which says what is wrong and is counted."""

import os
import subprocess
from pathlib import Path

SECONDS = 240  # far more than any lesson needs, also under a sanitizer
COLUMNS, SOURCE_COLUMNS = 100, 120
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
