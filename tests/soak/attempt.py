"""One attempt of the soak: a program runs in a session and a folder of its own while something happens to it, and what it leaves
behind is held against what Muonwalk promises."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

# What a program may take to end after everything that could happen to it has happened: far more than any --timeout here.
LIMIT_SECONDS = 90
# What was killed takes a moment to disappear.
SECONDS_TO_VANISH = 3
# Signals that no program can answer, and those that a broken program sends to itself.
WITHOUT_A_WORD = {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS}


@dataclass
class Output:
    """A file that a run is asked to write: "bytes" are the same in every run, "json" may hold times."""
    name: str
    kind: str = "bytes"


@dataclass
class Job:
    """What is run: a program with options, files that it reads, and files that it writes."""
    program: Path
    options: list
    inputs: dict = field(default_factory=dict)  # name → bytes
    outputs: list = field(default_factory=list)
    old: dict = field(default_factory=dict)  # name of an output → what is there before the run

    def key(self):
        return (self.program.name, tuple(self.options), tuple(sorted(self.inputs)))


@dataclass
class Outcome:
    code: int  # −N: ended by signal N
    out: str
    err: str
    seconds: float
    in_time: bool
    left_running: list  # names of processes
    files: dict  # path in the folder → bytes; None: a folder


def processes_of_session(session):
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            text = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        if rest[0] not in "ZX" and int(rest[3]) == session:
            found[int(entry)] = name
    return found


def children_of(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def send(pid, number):
    """A signal to a process that may have ended; never to a group by accident."""
    if pid > 0:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def files_in(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = None if path.is_dir() else path.read_bytes() if path.is_file() else b"<no regular file>"
    return found


def run(job, scratch, during=None, around=(), limit=LIMIT_SECONDS, mode="attack"):
    """Runs the job in a new folder below `scratch`. `during(process)` is called once it has been started; `around` are words
    before the command, which may name the folder as {folder}."""
    shutil.rmtree(scratch, ignore_errors=True)
    folder, talk = scratch / "folder", scratch / "talk"
    for each in (folder, talk):
        each.mkdir(parents=True)
    for name, content in {**job.inputs, **job.old}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    command = [word.format(folder=folder) for word in around] + [str(job.program)] + job.options
    began = time.monotonic()
    with open(talk / "out", "wb") as out, open(talk / "err", "wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True, env={**os.environ, "MUONWALK_SOAK": mode, "TMPDIR": str(folder)})
    try:
        if during is not None:
            during(process)
        in_time = True
        try:
            process.wait(max(0.1, limit - (time.monotonic() - began)))
        except subprocess.TimeoutExpired:
            in_time = False
        seconds = time.monotonic() - began
        left = processes_of_session(process.pid)
        while in_time and left and time.monotonic() - began - seconds < SECONDS_TO_VANISH:
            time.sleep(0.01)
            left = processes_of_session(process.pid)
    finally:
        for pid in processes_of_session(process.pid):
            send(pid, signal.SIGKILL)
        process.wait()
    return Outcome(process.returncode, (talk / "out").read_text(errors="replace"),
                   (talk / "err").read_text(errors="replace"), seconds, in_time, sorted(left.values()) if in_time else [],
                   files_in(folder))


def shape(line):
    """A line of timings without its figures."""
    return re.sub(r"[\s#]+", " ", re.sub(r"[0-9.,]+", "#", line)).strip()


def is_json(content):
    try:
        return content is not None and json.loads(content) is not None
    except ValueError:
        return False


def output_state(output, outcome, clean, job):
    """"whole", "absent", "old", or "torn"."""
    if output.name not in outcome.files:
        return "absent"
    content = outcome.files[output.name]
    whole = is_json(content) if output.kind == "json" else content == clean.files.get(output.name)
    return "whole" if whole else "old" if content == job.old.get(output.name) else "torn"


# What a program says beside its sentence: how it was started, what it does instead, what it does before it ends.
NO_ERROR = re.compile("started by hand: rank |^the two hosts of this run are two addresses|: stopping after this step; Ctrl-C again")


def judge(job, outcome, clean, signals=(), screen_is_lost=False, sentences=(1, 1), may_leave=lambda name: False):
    """The class of an outcome, and the promises that it broke. `clean` is the outcome of an undisturbed run, or None where there
    is nothing to compare with; `signals` are those that were sent; `sentences` how many there are at least and at most: of several
    programs each may say one, and one can be lost where writing fails."""
    broken = []
    code = outcome.code
    if not outcome.in_time:
        return "not ended", ["it did not end in time"]
    if outcome.left_running:
        broken.append("a process was left: " + ", ".join(outcome.left_running))
    # The sentence and the exit code.
    usual = {shape(line) for line in clean.err.splitlines()} if clean is not None else set()
    words = [line for line in outcome.err.splitlines() if shape(line) not in usual and not NO_ERROR.search(line)]
    last = (outcome.out.rstrip("\n").splitlines() or [""])[-1]
    if code == 0:
        kind = "ended well"
        if words:
            broken.append("it ended well and still said something on standard error: " + words[0][:200])
        if clean is not None and not screen_is_lost and outcome.out != clean.out:
            broken.append("it ended with 0, but its screen is not that of an undisturbed run")
    elif code == 1:
        kind = "check failed"
        broken.append("a check found a difference that nobody had planted")
    elif code in (2, 3):
        kind = "refused" if code == 2 else "one sentence"
        if not sentences[0] <= len(words) <= sentences[1] or not all(line.startswith(job.program.name + ": ") for line in words):
            broken.append(f"exit code {code} came with {len(words)} sentences" + (": " + words[-1][:200] if words else ""))
        if last.endswith(": OK"):
            broken.append(f"its screen ends with OK, and it ended with exit code {code}")
    elif code < 0 and -code in {int(number) for number in signals}:
        kind = "by the signal"
        if -code not in WITHOUT_A_WORD and outcome.out:
            broken.append(f"signal {signal.Signals(-code).name} ended it in the middle of its work without a sentence")
    else:
        kind = "otherwise"
        broken.append(f"it ended with {code}, which is neither an exit code of the four nor a signal that was sent")
    # The files.
    for output in job.outputs if clean is not None else []:
        state = output_state(output, outcome, clean, job)
        # Nothing tidies up after SIGKILL: what is promised then is that no half file is left.
        if state == "torn":
            broken.append(f"an output is {state}: {output.name}")
        elif code == 0 and state != "whole":
            broken.append(f"it ended with 0, but an output is {state}: {output.name}")
    for name, content in job.inputs.items():
        if outcome.files.get(name) != content:
            broken.append(f"an input was changed: {name}")
    ours = {output.name for output in job.outputs} | set(job.inputs)
    for name in outcome.files:
        if name not in ours and not may_leave(name):
            broken.append(f"a file was left behind: {re.sub('[0-9]+', 'N', name)}")
    return kind, broken
