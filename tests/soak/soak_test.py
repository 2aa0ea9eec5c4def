#!/usr/bin/env python3
"""Tests the soak itself: for each kind of attack, a stand-in for Muonwalk's programs that breaks a promise is seen and counted, and
one that keeps all of them is not; and a short soak of the real programs comes to its table.

    soak_test.py PROGRAMS [unittest's options...]
"""

import io
import re
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import attempt  # noqa: E402
import soak  # noqa: E402
from attacks import KINDS, Stage  # noqa: E402

PROGRAMS = None
attempt.SECONDS_TO_VANISH = 0.5

# Writes what it is asked to, prints a screen that ends with OK, and breaks the promise $1 unless the run is an undisturbed one.
STAND_IN = r"""#!/bin/sh
# The loader and the shell don't count: signals end them as they end any program.
name=$(basename "$0") promise=%s text=whole folder= next=
[ "$MUONWALK_SOAK" = attack ] || promise=none
for word in "$@"; do
  case $next in
    --record | --out | --trace)
      content='{"whole": true}'
      if [ $promise = tears_outputs ]; then printf '{"wh' >"$word"; else
        case $word in
          O) if [ $promise = none ]; then cat P >O; fi ;;
          *) { printf '%%s\n' "$content" >"$word.part" && mv "$word.part" "$word"; } 2>/dev/null ||
               { rm -f "$word.part"; echo "$name: no room is left" >&2; exit 3; } ;;
        esac
      fi ;;
  esac
  next=$word
done
case $promise in
  leaves_a_process) sleep 1000 >/dev/null 2>&1 & ;;
  leaves_a_file) echo >.muonwalk-12-3.partial ;;
  says_two_sentences) printf '%%s: one\nand another\n' "$name" >&2; exit 3 ;;
  says_nothing) exit 3 ;;
  fails_after_ok) echo "$name: OK"; echo "$name: it failed" >&2; exit 3 ;;
  ends_with_7) exit 7 ;;
  finds_a_difference) exit 1 ;;
  says_a_wrong_ok) echo "$name: wrong"; exit 0 ;;
  dies) kill -SEGV $$ ;;
  never_ends) sleep 1000; exit 0 ;;
  changes_an_input) for input in P T R S; do if [ -e $input ]; then echo >>$input; fi; done ;;
esac
echo "the screen"
echo "$name: OK"
"""

NEVER_ENDS = "it did not end in time"

STRANGER = r"""#!/bin/sh
trap 'echo "3 connections, %d bytes received"; exit 0' TERM
echo ready
while :; do sleep 0.01; done
""" % 0

# Every promise, and the words that a broken one is counted under.
PROMISES = {"leaves_a_process": "a process was left: sleep", "leaves_a_file": "a file was left behind: .muonwalk-N-N.partial",
            "says_two_sentences": "came with 2 sentences", "says_nothing": "came with 0 sentences",
            "fails_after_ok": "its screen ends with OK", "ends_with_7": "it ended with 7",
            "finds_a_difference": "a check found a difference", "dies": "which is neither an exit code of the four",
            "never_ends": NEVER_ENDS, "tears_outputs": "an output is", "changes_an_input": "an input was changed",
            "says_a_wrong_ok": "its screen"}
# What can't happen in a kind of attack: no file is read, no outcome is foreseen, a screen goes to a full device, …
NOT_SEEN = {("mutated traces", "says_a_wrong_ok"), ("ranks started by hand", "says_two_sentences")}
NOT_SEEN |= {("ranks under mpirun", each) for each in PROMISES if not each.startswith(("leaves", "never"))}  # exit codes are mpirun's
NO_OUTPUT = {"ranks started by hand", "interrupted training", "mutated runs", "cells interrupted"}  # nor a screen that is known
NO_INPUT = {"signals to a rank", "pauses (Ctrl-Z)", "hostile connections", "interrupted training", "cells interrupted"}
OF_PROGRAMS = [kind for kind in KINDS if kind != "hostile answers"]  # of which one program of the project's own attempts a part
ATTEMPTS = 20


def stand_ins(folder, promise):
    for name in ("lesson_00_hello_ranks", "lesson_09_full_step", "lesson_20_pretrain", "cells_program", "muonwalk-trace", "muonwalk-scale"):
        (folder / name).write_text(STAND_IN % promise)
        (folder / name).chmod(0o755)
    # What connects, and has heard nothing.
    (folder / "stranger").write_text(STRANGER)
    (folder / "stranger").chmod(0o755)


class Soak(unittest.TestCase):
    maxDiff = None

    def counted(self, kind, promise, until=None):
        """Attempts against stand-ins that break the promise, until one is counted under these words."""
        counts = soak.Counts()
        with tempfile.TemporaryDirectory() as scratch:
            programs = Path(scratch) / "bin"
            programs.mkdir()
            stand_ins(programs, promise)
            # A stand-in that never ends must not take long; the others need time on a busy machine.
            stage = Stage(programs, Path(scratch) / "work", 2 if until == NEVER_ENDS else 60)
            stage.longest_pause = 0.3
            for number in range(ATTEMPTS if until else 4):
                if not soak.attack(stage, counts, 1, kind, number):
                    self.skipTest(counts.not_here[kind])
                if until and any(until in broken for _, broken in counts.broken):
                    break
        return counts

    def test_a_broken_promise_is_counted(self):
        # All kinds see a process that is left; the other promises take turns, so that each is broken in some kinds.
        promises = [each for each in PROMISES if each != "leaves_a_process"]
        for at, kind in enumerate(OF_PROGRAMS):
            mine = ["leaves_a_process"] + [promises[(at * 4 + i) % len(promises)] for i in range(4)]
            for promise in mine:
                if ((kind, promise) in NOT_SEEN or (promise == "changes_an_input" and kind in NO_INPUT)
                        or (promise in ("tears_outputs", "says_a_wrong_ok") and kind in NO_OUTPUT)):
                    continue
                words = PROMISES[promise]
                if kind.endswith("system calls") and promise == "leaves_a_process":
                    words = NEVER_ENDS  # strace waits for all that it traces
                with self.subTest(kind=kind, promise=promise):
                    counts = self.counted(kind, promise, words)
                    self.assertTrue(any(words in broken for _, broken in counts.broken),
                                    f"not counted: {dict(counts.broken)}")
                    self.assertGreater(counts.breaking[kind], 0)

    def test_bytes_that_get_out_are_counted(self):
        counts = soak.Counts()
        with tempfile.TemporaryDirectory() as scratch:
            programs = Path(scratch)
            stand_ins(programs, "none")
            (programs / "stranger").write_text(STRANGER.replace("0 bytes", "768 bytes"))
            if not soak.attack(Stage(programs, programs / "work", 60), counts, 1, "hostile connections", 0):
                self.skipTest(counts.not_here["hostile connections"])
        self.assertEqual(1, counts.breaking["hostile connections"], dict(counts.broken))

    def test_a_wrong_answer_that_is_called_solved_is_counted(self):
        with tempfile.TemporaryDirectory() as scratch:
            programs = Path(scratch)
            stand_ins(programs, "none")
            (programs / "muonwalk-try").touch()
            for solved, broke in (("false", 0), ("true", 1)):
                counts, stage = soak.Counts(), Stage(programs, programs / "work", 60)
                stage.judge = programs / "judge.py"
                stage.judge.write_text(f"print('{{\"solved\": {solved}}}')\nraise SystemExit({1 - broke})\n")
                soak.attack(stage, counts, 1, "hostile answers", 0)
                self.assertEqual(broke, counts.breaking["hostile answers"], dict(counts.broken))

    def test_kept_promises_are_not_counted(self):
        # Where signals meet a stand-in, a shell script without handlers, there is no telling what it says.
        for kind in ("mutated traces", "pauses (Ctrl-Z)", "hostile connections"):
            with self.subTest(kind=kind):
                counts = self.counted(kind, "none")
                self.assertEqual({}, dict(counts.broken))
                self.assertEqual(4, counts.attempts(kind))

    def test_the_report_counts_and_says_how_to_repeat(self):
        counts = soak.Counts()
        counts.add("full disks", 4, "ended well", [])
        counts.add("full disks", 5, "one sentence", ["a file was left behind: x", "an output is torn: y"])
        counts.not_here["signals at system calls"] = "there is no strace"
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = soak.report(counts, 17, "./walk test soak")
        self.assertEqual(1, code)
        for line in ("| full disks | 2 | 1 | 0 | 1 | 0 | 0 | 1 |", "| all | 2 | 1 | 0 | 1 | 0 | 0 | 1 |",
                     "SKIPPED: signals at system calls: there is no strace", "1 × full disks: an output is torn: y",
                     "    ./walk test soak --seed 17 --only 'full disks:5'", "2 attempts, 1 broke a promise"):
            self.assertIn(line, printed.getvalue().splitlines())
        whole = soak.Counts()
        whole.add("full disks", 0, "ended well", [])
        with redirect_stdout(io.StringIO()):
            self.assertEqual(0, soak.report(whole, 17, "./walk test soak"))

    def test_a_short_soak_comes_to_its_table(self):
        done = subprocess.run([sys.executable, str(HERE / "soak.py"), "--programs", str(PROGRAMS), "--minutes", "0.05",
                               "--seed", "3"],  # no pause of 20 s, no answer that loops until its limit
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for kind in KINDS:
            tried = re.search(rf"^\| {re.escape(kind)} \| [1-9]", done.stdout, re.M)
            skipped = f"SKIPPED: {kind}: " in done.stdout
            self.assertTrue(tried or skipped, f"{kind}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    PROGRAMS = Path(sys.argv.pop(1)).resolve()
    unittest.main()
