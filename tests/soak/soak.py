#!/usr/bin/env python3
"""Attacks every lesson, and the programs beside them, for as long as it is told, and counts what happens.

    soak.py --programs build/bin [--minutes 30] [--seed N] [--kind NAME ...] [--only NAME:N]
            [--page docs/promises.md]

Each attempt is one of the kinds in attacks.py, in turn. What is random comes from the seed, the kind and the attempt's number, so
--only repeats a single attempt (moments apart: when a signal arrives is also the machine's doing). Ends with 1 if a promise was
broken.
"""

import argparse
import collections
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from attacks import KINDS, NotHere, Stage  # noqa: E402
from attempt import LIMIT_SECONDS  # noqa: E402

CLASSES = ["ended well", "refused", "one sentence", "by the signal"]


class Counts:
    """What happened so far: classes of outcomes, and broken promises with the attempts that broke them."""

    def __init__(self):
        self.classes = collections.defaultdict(collections.Counter)  # kind → class → attempts
        self.broken = collections.defaultdict(list)  # (kind, promise) → numbers of attempts
        self.breaking = collections.Counter()  # kind → attempts that broke a promise
        self.not_here = {}  # kind → reason

    def add(self, kind, number, outcome_class, broken):
        self.classes[kind][outcome_class] += 1
        self.breaking[kind] += bool(broken)
        for promise in sorted(set(broken)):
            self.broken[kind, promise].append(number)

    def attempts(self, kind):
        return sum(self.classes[kind].values())

    def table(self):
        heads = ["attack", "attempts"] + CLASSES + ["otherwise", "broken"]
        rows = []
        for kind in self.classes:
            of_class = [self.classes[kind][each] for each in CLASSES]
            attempts = self.attempts(kind)
            rows.append([kind, attempts, *of_class, attempts - sum(of_class), self.breaking[kind]])
        rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, len(heads)))])
        lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
        return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def attack(stage, counts, seed, kind, number):
    try:
        outcome_class, broken = KINDS[kind](stage, random.Random(f"{seed}:{kind}:{number}"))
    except NotHere as reason:
        counts.not_here.setdefault(kind, str(reason))
        return False
    counts.add(kind, number, outcome_class, broken)
    return True


def soak(stage, seed, kinds, seconds, counts, say):
    """Attempts of all kinds in turn, until the time is over. Each kind is tried at least once."""
    began, number = time.monotonic(), 0
    while kinds and (number == 0 or time.monotonic() - began < seconds):
        for kind in list(kinds):
            if number > 0 and time.monotonic() - began >= seconds:
                break
            if not attack(stage, counts, seed, kind, number):
                kinds.remove(kind)
        number += 1
        if number % 50 == 0:
            say(f"{time.monotonic() - began:.0f} s: {sum(map(counts.attempts, list(counts.classes)))} attempts, "
                f"{sum(counts.breaking.values())} broke a promise")


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def heading(seed, seconds):
    return (f"{time.strftime('%Y-%m-%d')} · {seconds / 60:.0f} minutes, seed {seed} · {processor()}, {os.cpu_count()} cores · "
            f"{platform.system()} {platform.release().split('-')[0]}")


PAGE_BEGIN, PAGE_END = "<!-- begin: the last soak -->\n", "<!-- end -->"


def write_page(path, counts, seed, seconds):
    """Puts the counts between the two marks of a page."""
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(PAGE_BEGIN)
    _, ended, after = rest.partition(PAGE_END)
    if not found or not ended:
        raise ValueError(f"{path} has no place for the counts, which begins with {PAGE_BEGIN.strip()} and ends with {PAGE_END}")
    lines = [heading(seed, seconds), "", *counts.table(), ""]
    for kind, reason in counts.not_here.items():
        lines += [f"Not tried: {kind}, because {reason}.", ""]
    broken = sorted(counts.broken.items(), key=lambda item: -len(item[1]))
    lines += [f"- {len(numbers)} × {kind}: {promise.replace('_', chr(92) + '_')}" for (kind, promise), numbers in broken]
    lines += [""] if broken else ["No promise was broken.", ""]
    path.write_text(before + PAGE_BEGIN + "\n".join(lines) + PAGE_END + after, encoding="utf-8")


def report(counts, seed, command, seconds=0):
    print(heading(seed, seconds) + "\n")
    print("\n".join(counts.table()))
    for kind, reason in counts.not_here.items():
        print(f"\nSKIPPED: {kind}: {reason}")
    for (kind, promise), numbers in sorted(counts.broken.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(numbers)} × {kind}: {promise}")
        for number in numbers[:3]:
            print(f"    {command} --seed {seed} --only '{kind}:{number}'")
    broke = sum(counts.breaking.values())
    attempts = sum(counts.attempts(kind) for kind in list(counts.classes))
    print(f"\n{attempts} attempts, {broke} broke a promise")
    return 1 if broke else 0


class OneSentence(argparse.ArgumentParser):
    """Refuses as Muonwalk's programs do."""

    def error(self, message):
        self.exit(2, f"soak: {message}; --help says what works\n")


def parsed(arguments):
    parser = OneSentence(prog="soak", description=__doc__.split("\n\n")[0])
    parser.add_argument("--programs", required=True, help="the folder of the programs")
    parser.add_argument("--minutes", type=float, default=30, help="how long (default 30)")
    parser.add_argument("--seed", type=int, default=None, help="of what is random (default: another one each time)")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="this kind of attack alone; may be repeated")
    parser.add_argument("--only", help="one attempt, NAME:N")
    parser.add_argument("--page", type=Path, help="also put the counts into this page, docs/promises.md")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds in which every run has to end")
    options = parser.parse_args(arguments)
    if not 0 < options.minutes < 100_000:
        parser.error(f"--minutes {options.minutes} makes no sense; it takes a number above 0")
    if options.only is not None:
        kind, _, number = options.only.rpartition(":")
        if kind not in KINDS or not number.isdigit():
            parser.error(f"--only {options.only!r} names no attempt; it takes NAME:N, NAME one of {', '.join(KINDS)}")
    return options


def main(arguments):
    options = parsed(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    scratch = Path(tempfile.mkdtemp(prefix="muonwalk-soak-"))
    counts, began = Counts(), time.monotonic()
    try:
        stage = Stage(Path(options.programs).resolve(), scratch, options.limit)
        say(f"soak: seed {seed}, {options.minutes:g} minutes")
        if options.only is not None:
            kind, _, number = options.only.rpartition(":")
            attack(stage, counts, seed, kind, int(number))
        else:
            soak(stage, seed, list(options.kind or KINDS), options.minutes * 60, counts, say)
    except NotHere as reason:
        say(f"soak: {reason}; build them first, as ./walk test soak does")
        return 2
    except RuntimeError as error:
        say(f"soak: {error}")
        return 3
    except KeyboardInterrupt:
        say("soak: interrupted; what was counted until then:")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    seconds = time.monotonic() - began
    if options.page is not None:
        write_page(options.page, counts, seed, seconds)
    return report(counts, seed, "./walk test soak", seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
