"""The kinds of attacks. Each is a function that takes a Stage and random numbers, makes one attempt, and returns its class and the
promises that were broken; KINDS lists them all, and a new kind is one more function in that list. A kind that can't be tried here
raises NotHere with the reason."""

import gzip
import json
import random
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

from attempt import Job, Output, children_of, judge, run, send


class NotHere(Exception):
    """Why a kind of attack can't be tried on this machine."""


def floats(random_numbers, count):
    return struct.pack(f"<{count}f", *(random_numbers.uniform(-1, 1) for _ in range(count)))


def safetensors(random_numbers, shapes):
    header, data = {}, b""
    for name, shape in shapes.items():
        bytes_ = floats(random_numbers, shape[0] * (shape[1] if len(shape) > 1 else 1))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


SHAPES = {"a": [8, 8], "bias": [8], "b": [16, 8]}


class Stage:
    """The programs under attack, a folder to work in, and what undisturbed runs do."""

    def __init__(self, programs, scratch, limit):
        self.programs, self.scratch, self.limit = Path(programs), Path(scratch), limit
        self.lessons = sorted(path for path in self.programs.glob("lesson_*") if "test" not in path.name)
        self._clean, self._trace = {}, None
        self.longest_pause = 20
        self.root = Path(__file__).resolve().parents[2]
        self.judge = self.root / "sim/classroom/try_exercise.py"
        if not self.lessons:
            raise NotHere(f"there is no lesson in {programs}")

    def clean(self, job):
        if job.key() not in self._clean:
            undisturbed = run(Job(job.program, job.options, job.inputs, job.outputs), self.scratch / "clean",
                              limit=self.limit, mode="clean")
            kind, broken = judge(job, undisturbed, undisturbed)
            if kind != "ended well" or broken:
                raise RuntimeError(f"undisturbed, {job.program.name} {' '.join(job.options)} is not a success: {kind}, "
                                   f"{broken}, {undisturbed.err}")
            self._clean[job.key()] = undisturbed
        return self._clean[job.key()]

    def lesson(self, random_numbers):
        """A lesson with some outputs, over which a file may lie already."""
        program = random_numbers.choice(self.lessons)
        options = ["--timeout", "2"]
        if "09" in program.name:
            options += ["--small", "--steps", "2"]
        if "20" in program.name:
            options.append("--small")
        choices = [("--record", Output("run.json")), ("--trace", Output("trace.json", "json"))]
        outputs = []
        for option, output in random_numbers.sample(choices, random_numbers.choice([0, 1, 1, 2])):
            if option not in options:
                options += [option, output.name]
                outputs.append(output)
        old = {output.name: b"what was there before\n" for output in outputs
               if output.kind == "bytes" and random_numbers.random() < 0.3}
        return Job(program, options, {}, outputs, old)

    def trained_files(self):
        numbers = random.Random(1)
        return Job(self.programs / "lesson_09_full_step",
                   ["--dp", "2", "--tp", "1", "--timeout", "2", "--params", "P", "--grads", "G", "--out", "O"],
                   {"P": safetensors(numbers, SHAPES), "G": safetensors(numbers, SHAPES)}, [Output("O")])

    def trace(self):
        """A trace that a lesson wrote."""
        if self._trace is None:
            job = Job(self.lessons[0], ["--trace", "T"], {}, [Output("T", "json")])
            self._trace = self.clean(job).files["T"]
        return self._trace

    def analysis(self, random_numbers):
        options = ["summary", "T"] + random_numbers.choice([[], ["--json"]])
        return Job(self.programs / "muonwalk-trace", options, {"T": self.trace()}, [])

    def attempt(self, job, during=None, around=(), **judged):
        clean = self.clean(job)
        outcome = run(job, self.scratch / "attack", during, around, self.limit)
        return judge(job, outcome, clean, **judged)


def any_job(stage, random_numbers):
    which = random_numbers.random()
    return (stage.analysis(random_numbers) if which < 0.1 else stage.trained_files() if which < 0.2
            else stage.lesson(random_numbers))


def some_moment(stage, job, random_numbers):
    """Waits for any part of the time that an undisturbed run takes; the first ones, which are measured, are rather slow."""
    time.sleep(random_numbers.uniform(0, 0.8) * stage.clean(job).seconds)


# --- the kinds --------------------------------------------------------------------------------------------------------------------

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]


def signal_to_the_program(stage, random_numbers):
    """A signal that ends it, at any moment, to the parent or to all of its group, as Ctrl-C sends it."""
    job, number, to_group = any_job(stage, random_numbers), random_numbers.choice(ENDING), random_numbers.random() < 0.5

    def during(process):
        some_moment(stage, job, random_numbers)
        if process.poll() is None:
            if to_group:
                for child in children_of(process.pid):
                    send(child, number)
            send(process.pid, number)

    return stage.attempt(job, during, signals=[number])


def signal_to_a_rank(stage, random_numbers):
    """A rank is killed, stopped, or gets a signal that it ignores, at any moment."""
    job = stage.lesson(random_numbers)
    number = random_numbers.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGTERM,
                                    signal.SIGINT, signal.SIGQUIT, signal.SIGABRT])

    def during(process):
        some_moment(stage, job, random_numbers)
        children = children_of(process.pid) if process.poll() is None else []
        if children:
            send(random_numbers.choice(children), number)

    return stage.attempt(job, during)


def pause_of_everything(stage, random_numbers):
    """Ctrl-Z and fg, of the parent, of one rank, some, or all, for 0.2 to 20 s, which is less than --timeout: nothing has happened."""
    job, whom = stage.lesson(random_numbers), random_numbers.choice(["parent", "one rank", "some ranks", "all"])
    job.options[job.options.index("--timeout") + 1] = "30"
    seconds = 0.2 * (stage.longest_pause / 0.2) ** random_numbers.random()

    def during(process):
        some_moment(stage, job, random_numbers)
        if process.poll() is not None:
            return
        children = children_of(process.pid)
        some = random_numbers.sample(children, random_numbers.randint(1, len(children))) if children else []
        pids = {"parent": [process.pid], "one rank": some[:1], "some ranks": some, "all": [*children, process.pid]}[whom]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                send(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(seconds)

    kind, broken = stage.attempt(job, during)
    if kind != "ended well" and not broken:
        broken.append("a pause ended the run")
    return kind, broken


def mutated(content, random_numbers):
    """The bytes as a broken disk or a hostile hand may change them."""
    content = bytearray(content)
    for _ in range(random_numbers.choice([1, 1, 2, 5, 20])):
        at = random_numbers.randrange(len(content)) if content else 0
        how = random_numbers.randrange(6)
        if how == 0 and content:
            content[at] ^= 1 << random_numbers.randrange(8)
        elif how == 1:
            content[at:at] = random_numbers.randbytes(random_numbers.randrange(1, 40))
        elif how == 2:
            del content[at:at + random_numbers.randrange(1, 40)]
        elif how == 3 and random_numbers.random() < 0.3:
            del content[at:]
        elif how == 4:
            content[at:at] = random_numbers.choice([b"\"", b"{", b"[" * 1000, b"\n", b"\x1b[2J", b"-1e400", b"\xff\xfe", b"\0"])
        else:
            digits = [i for i in range(min(len(content), 4000)) if 48 <= content[i] <= 57]
            if digits:
                content[random_numbers.choice(digits)] = random_numbers.choice(b"0123456789-e.")
    return bytes(content)


def mutated_weights(stage, random_numbers):
    """Lesson 09 reads weights or gradients that were changed."""
    job = stage.trained_files()
    stage.clean(job)
    name = random_numbers.choice(["P", "G"])
    if random_numbers.random() < 0.3:  # still a file that can be read, with other numbers in it
        content = bytearray(job.inputs[name])
        content[-4 * random_numbers.randrange(1, 40):] = b""
        content += random_numbers.randbytes(len(job.inputs[name]) - len(content))
        changed = bytes(content)
    else:
        changed = mutated(job.inputs[name], random_numbers)
    attacked = Job(job.program, job.options, {**job.inputs, name: changed}, job.outputs)
    outcome = run(attacked, stage.scratch / "attack", limit=stage.limit)
    # What the new weights are can't be known here; that they are whole can: the file has the length that its header says.
    kind, broken = judge(Job(job.program, job.options, attacked.inputs, [Output("O", "json")]), outcome, None)
    output = outcome.files.get("O")
    if output is not None and "an output" not in " ".join(broken):
        if outcome.code != 0 or not is_whole_safetensors(output):
            broken.append("an output is torn, or was written by a run that failed: O")
    if output is None and outcome.code == 0:
        broken.append("it ended with 0, but an output is absent: O")
    usual = stage.clean(job)
    if outcome.code == 0:
        broken = [each for each in broken if "still said something" not in each]
        if (outcome.out.rstrip().splitlines() or [""])[-1] != (usual.out.rstrip().splitlines() or [""])[-1]:
            broken.append("it ended with 0, but its screen does not end as that of an undisturbed run")
    return kind, broken


def is_whole_safetensors(content):
    if len(content) < 8:
        return False
    length = struct.unpack("<Q", content[:8])[0]
    try:
        header = json.loads(content[8:8 + length])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError):
        return False
    return len(content) == 8 + length + max(ends, default=0)


def mutated_trace(stage, random_numbers):
    """muonwalk-trace reads a trace that was changed, plain or compressed."""
    job = stage.analysis(random_numbers)
    stage.clean(job)
    changed = mutated(job.inputs["T"], random_numbers)
    if random_numbers.random() < 0.3:
        changed = gzip.compress(changed, 1)
        if random_numbers.random() < 0.5:
            changed = mutated(changed, random_numbers)
    attacked = Job(job.program, job.options, {"T": changed}, job.outputs)
    outcome = run(attacked, stage.scratch / "attack", limit=stage.limit)
    kind, broken = judge(attacked, outcome, None)
    if outcome.code == 0 and not outcome.out:
        broken.append("it ended with 0, but said nothing")
    return kind, broken


def full_disk(stage, random_numbers):
    """The file system that the outputs go to has room for a part of them; or standard output is a full device."""
    job = stage.lesson(random_numbers) if random_numbers.random() < 0.7 else stage.trained_files()
    clean = stage.clean(job)
    if random_numbers.random() < 0.2:
        around = ["sh", "-c", 'exec "$@" >/dev/full', "sh"]
        kind, broken = stage.attempt(job, around=around, screen_is_lost=True)
        if kind == "ended well":
            broken.append("it ended with 0, but its screen went to a full device")
        return kind, broken
    if subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode != 0:
        raise NotHere("no small file system can be mounted here (unshare -Urm, mount -t tmpfs)")
    needed = sum(len(content or b"") for content in clean.files.values())
    room = max(16, random_numbers.randrange(needed // 1024 + 64))
    # The program works in a small file system that nobody else sees; what is in it at the end is copied out.
    script = (f'mkdir "{{folder}}.small" && mount -t tmpfs -o size={room}k none "{{folder}}.small" && '
              f'cp -a "{{folder}}/." "{{folder}}.small" 2>/dev/null || exit 77; cd "{{folder}}.small" || exit 77; '
              f'TMPDIR=$PWD "$@"; code=$?; cp -a "{{folder}}.small/." "{{folder}}"; exit $code')
    outcome_class, broken = stage.attempt(job, around=["unshare", "-Urm", "sh", "-c", script, "sh"])
    if any("it ended with 77" in each for each in broken):
        return "too small for the inputs", []
    return outcome_class, broken


SYSTEM_CALLS = ["openat", "write", "read", "close", "mmap", "munmap", "clone", "wait4", "pipe2", "fsync", "linkat", "rename",
                "unlink", "socket", "connect", "accept4", "epoll_wait", "epoll_ctl", "poll", "sendto", "recvfrom", "fcntl",
                "mprotect", "futex", "getpid", "kill", "exit_group", "clock_nanosleep", "mkdir", "newfstatat", "brk"]


def require_strace():
    if shutil.which("strace") is None:
        raise NotHere("there is no strace")
    if subprocess.run(["strace", "-f", "-e", "trace=none", "true"], capture_output=True).returncode != 0:
        raise NotHere("strace may not trace here")


def signal_at_a_system_call(stage, random_numbers):
    """strace delivers a signal at the n-th time that any process of the run enters a system call."""
    require_strace()
    job, number = any_job(stage, random_numbers), random_numbers.choice(ENDING)
    call, when = random_numbers.choice(SYSTEM_CALLS), int(2 ** random_numbers.uniform(0, 8))
    around = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
              f"inject={call}:signal={number.name}:when={when}"]
    return stage.attempt(job, around=around, signals=[number])


# What a machine that runs out of something answers, or a disk that fails.
FAILING = {"write": ["ENOSPC", "EIO"], "fsync": ["EIO"], "linkat": ["EPERM", "ENOSPC"], "rename": ["ENOSPC", "EACCES"],
           "socket": ["EMFILE", "ENOBUFS"], "connect": ["EADDRNOTAVAIL"], "accept4": ["EMFILE"], "epoll_ctl": ["ENOMEM"],
           "pipe2": ["EMFILE"], "clone": ["EAGAIN"], "clone3": ["EAGAIN"], "unshare": ["EPERM"], "mkdir": ["ENOSPC"]}


def failing_system_calls(stage, random_numbers):
    """The n-th time that any process of the run makes a system call, it fails, as on a machine that runs out of something."""
    require_strace()
    job, call = any_job(stage, random_numbers), random_numbers.choice(list(FAILING))
    around = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
              f"inject={call}:error={random_numbers.choice(FAILING[call])}:when={int(2 ** random_numbers.uniform(0, 6))}"]
    lost = call == "write"  # which may be that of the sentence
    return stage.attempt(job, around=around, screen_is_lost=lost, sentences=(0 if lost else 1, 1))


def launched_by_hand(stage, random_numbers):
    """Ranks that were started one by one; one of them gets a signal. Each process says why it stops, and none waits forever."""
    program, ranks = random_numbers.choice(stage.lessons[:6]), random_numbers.choice([2, 3, 4])
    if "09" in program.name:
        program = stage.lessons[0]
    number = random_numbers.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
    job = Job(program, ["--dp", str(ranks), "--tp", "1", "--pp", "1", "--timeout", "5", "--world-size", str(ranks), "--rendezvous",
                        f"127.0.0.1:{random_numbers.randrange(20000, 30000)}", "--secret-file", "S"], {"S": random_numbers.randbytes(48)})
    script = (f'chmod 600 S; for rank in $(seq {ranks - 1}); do "$@" --rank $rank & done; "$@" --rank 0; code=$?; wait; '
              'if [ $code -gt 128 ]; then kill -$((code - 128)) $$; fi; exit $code')

    def during(process):
        time.sleep(random_numbers.uniform(0, 1.5))
        started = children_of(process.pid)
        if started:
            send(random_numbers.choice(started), number)

    outcome = run(job, stage.scratch / "attack", during, ["sh", "-c", script, "sh"], stage.limit)
    kind, broken = judge(job, outcome, None, signals=[number], sentences=(1, 2 * ranks))
    if kind == "ended well" and ": interrupted; " in outcome.err:  # a rank that was done when rank 0 was
        broken = [each for each in broken if "standard error" not in each]
    return kind, broken


def under_mpirun(stage, random_numbers):
    """Ranks that mpirun started; one of the processes, or mpirun itself, gets a signal."""
    if shutil.which("mpirun") is None:
        raise NotHere("there is no mpirun")
    job, ranks = Job(stage.lessons[0], ["--dp", "2", "--tp", "1", "--pp", "1", "--timeout", "5"]), 2
    number = random_numbers.choice([None, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
    around = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "NO_COLOR=1", "mpirun", "--oversubscribe", "-n",
              str(ranks)]

    def during(process):
        time.sleep(random_numbers.uniform(0, 2))
        if number is not None:
            send(random_numbers.choice([process.pid, *children_of(process.pid)]), number)

    outcome = run(job, stage.scratch / "attack", during, around, stage.limit)
    # What mpirun says, and makes of exit codes, is its own: what counts is that nothing is left.
    outcome.files = {name: content for name, content in outcome.files.items() if not name.startswith(("ompi.", "pmix-"))}
    outcome.err = "\n".join(line for line in outcome.err.splitlines() if "started by Open MPI: rank " not in line)
    if outcome.code != 0:
        outcome.code, outcome.out, outcome.err = 3, "", f"{job.program.name}: mpirun said what there is to say"
    kind, broken = judge(job, outcome, None)
    if number is None and kind != "ended well":
        broken.append("a run that nobody attacked did not end well")
    return kind, broken


def interrupted_cells(stage, random_numbers):
    """Jupyter's button Interrupt, at random moments, while cells run and between them: a cell ends, and the kernel goes on."""
    job = Job(stage.programs / "cells_program", ["400"])
    if not job.program.exists():
        raise NotHere("the program cells_program has not been built")

    def during(process):
        for _ in range(int(stage.limit * 100)):
            if process.poll() is not None or "ready" in (stage.scratch / "attack/talk/out").read_text():
                break
            time.sleep(0.01)
        for _ in range(random_numbers.randint(1, 30)):
            time.sleep(random_numbers.uniform(0, 0.05))
            if process.poll() is None:
                send(process.pid, signal.SIGINT)

    outcome = run(job, stage.scratch / "attack", during, limit=stage.limit)
    kind, broken = judge(job, outcome, None)
    if outcome.code != 0 or not outcome.out.endswith(": OK\n"):
        broken.append("an interrupt ended the kernel, or left it unable to work")
    return kind, broken


def interrupted_training(stage, random_numbers):
    """Lesson 20 saves after every step and is ended, or one of its ranks is; then another run goes on from what was saved."""
    program = stage.programs / "lesson_20_pretrain"
    if not program.exists():
        raise NotHere("lesson 20 has not been built")
    options = ["--small", "--dp", "2", "--steps", "6", "--optimizer", "muon", "--timeout", "5"]
    job, number = Job(program, [*options, "--save", "ck", "--save-every", "1"]), random_numbers.choice(ENDING)
    to_a_rank = random_numbers.random() < 0.3

    def is_saved(name):
        return name == "ck" or name.startswith("ck/") and (number == signal.SIGKILL or ".partial" not in name)

    def during(process):
        time.sleep(random_numbers.uniform(0, 2.5))
        children = children_of(process.pid)
        if process.poll() is None:
            send(random_numbers.choice(children) if to_a_rank and children else process.pid, number)

    outcome = run(job, stage.scratch / "attack", during, limit=stage.limit)
    kind, broken = judge(job, outcome, None, signals=[number], may_leave=is_saved)
    if kind == "ended well" and any("standard error" in each for each in broken):
        broken = [each for each in broken if "standard error" not in each]  # its times
    if outcome.code == 0:
        return kind, broken
    saved = {name: content for name, content in outcome.files.items() if name.startswith("ck/") and content is not None}
    again = Job(program, [*options, "--resume", "ck"], saved)
    resumed = run(again, stage.scratch / "attack", limit=stage.limit)
    all_done = resumed.code == 2 and "nothing is left to do" in resumed.err
    if resumed.code != (0 if any(name.endswith(".safetensors") for name in saved) else 2) and not all_done:
        broken.append(f"what was saved can't be resumed: {resumed.code}, {resumed.err[-200:]}")
    return kind, broken


def mutated_run(stage, random_numbers):
    """muonwalk-scale reads the description of a run that was changed."""
    program = stage.programs / "muonwalk-scale"
    runs = sorted((stage.root / "tools/scale/runs").glob("*.json"))
    if not program.exists() or not runs:
        raise NotHere("muonwalk-scale has not been built")
    usual = random_numbers.choice(runs).read_bytes()
    job = Job(program, ["predict", "--run", "R", *random_numbers.choice([[], ["--json"]])], {"R": mutated(usual, random_numbers)})
    outcome = run(job, stage.scratch / "attack", limit=stage.limit)
    kind, broken = judge(job, outcome, None)
    if outcome.code == 0 and not outcome.out:
        broken.append("it ended with 0, but said nothing")
    return kind, broken


# What a file that is to be judged may do besides being wrong, in a static's constructor or destructor.
HOSTILE = ["for (;;) {}", "std::abort();", "std::_Exit(0);", "raise(SIGSEGV);", "kill(getppid(), SIGKILL);", "close(1); close(2);",
           'std::puts("Solved."); std::fflush(stdout); std::_Exit(0);', "if (fork() == 0) for (;;) pause();",
           "std::vector<char> all(std::size_t(1) << 46, 1);", "throw 1;", 'std::printf("\\xff\\xfe\\x1b[2J");']


def hostile_answers(stage, random_numbers):
    """./walk try judges a wrong answer that does something hostile before main or after it: it is never called solved."""
    wrong = sorted(stage.root.glob("lessons/lesson_05_*/try_*/wrong_*.cpp"))
    if not (stage.programs / "muonwalk-try").exists() or not wrong:
        raise NotHere("the judge of exercise 05 has not been built")
    before = random_numbers.random() < 0.5
    text = ("#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n#include <vector>\n#include <unistd.h>\n"
            f"namespace {{ struct Hostile {{ {'' if before else '~'}Hostile() {{ {random_numbers.choice(HOSTILE)} }} }} hostile; }}\n")
    job = Job(stage.programs / "muonwalk-try", ["05", "--file", "answer.cpp", "--json", "--build", str(stage.programs.parent)],
              {"answer.cpp": text.encode() + random_numbers.choice(wrong).read_bytes()})
    tool = ["sh", "-c", f'shift; exec python3 "{stage.judge}" --judge "$@"', "sh"]
    outcome = run(job, stage.scratch / "attack", around=tool, limit=stage.limit)
    kind, broken = judge(job, outcome, None)
    if outcome.code in (1, 2):
        kind = "refused"
        broken = [each for each in broken if "a check found" not in each and "sentences" not in each]
    lines = outcome.out.strip().splitlines() or [""]
    if outcome.code == 0 or '"solved": false' not in lines[-1]:
        broken.append(f"a wrong answer is not called wrong: exit code {outcome.code}, {lines[-1][:100]}")
    return kind, broken


WAYS = ["silent", "garbage", "opcodes", "megabyte", "half", "drop", "replay", "mixed"]


def hostile_connections(stage, random_numbers):
    """A process that is not a rank connects to every port that ranks open, in a network where it can see them."""
    stranger = stage.programs / "stranger"
    alone = ["unshare", "-Urn", "sh", "-c"]
    if not stranger.exists():
        raise NotHere("the program stranger has not been built")
    if subprocess.run(alone + ["ip link set lo up"], capture_output=True).returncode != 0:
        raise NotHere("no network of its own can be made here (unshare -Urn, ip link set lo up)")
    lesson = stage.lesson(random_numbers)
    job = Job(lesson.program, lesson.options + ["--network", "shared"], {}, lesson.outputs, lesson.old)
    said = stage.scratch / "stranger"
    script = (f'ip link set lo up; "{stranger}" {random_numbers.choice(WAYS)} >"{said}" & '
              f'until grep -q ready "{said}" 2>/dev/null; do sleep 0.01; done; '
              f'"$@"; code=$?; kill $!; wait $!; exit $code')
    said.unlink(missing_ok=True)
    kind, broken = stage.attempt(job, around=alone + [script, "sh"])
    words = said.read_text().split() if said.exists() else []
    # "ready", "12 connections, 0 bytes received"
    if len(words) < 4 or words[3] != "0":
        broken.append("bytes of the run got out to a process that is not a rank")
    return kind, broken


# The kinds of attacks, in the order of the table.
KINDS = {
    "signals to the program": signal_to_the_program,
    "signals to a rank": signal_to_a_rank,
    "pauses (Ctrl-Z)": pause_of_everything,
    "signals at system calls": signal_at_a_system_call,
    "failing system calls": failing_system_calls,
    "ranks started by hand": launched_by_hand,
    "interrupted training": interrupted_training,
    "mutated weights": mutated_weights,
    "mutated traces": mutated_trace,
    "mutated runs": mutated_run,
    "hostile answers": hostile_answers,
    "full disks": full_disk,
    "hostile connections": hostile_connections,
    "ranks under mpirun": under_mpirun,
    "cells interrupted": interrupted_cells,
}
