#!/usr/bin/env python3
"""Runs the commands of docs/on-your-cluster.md as they stand there, on two hosts.

    page_test.py ROOT BUILD [--real]

A block of commands with <!-- run NAME on HOSTS --> before it is run on these hosts; blocks of one NAME are run at the same time,
but for those "before the rest". Each NAME has to end with exit code 0 everywhere and to print what the lesson prints when it starts
its ranks itself, apart from the first line. srun and torchrun are stand-ins, unless --real asks for Slurm and PyTorch themselves.
"""

import contextlib
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from slurm import Slurm, missing

from hosts import Hosts, enter, skip

ROOT, BUILD, REAL = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["--real"]
HERE = Path(__file__).resolve().parent
STARTED_BY = {"mpirun": "Open MPI", "srun": "Slurm", "torchrun": "torchrun", "by_hand": "hand"}
OF_A_LAUNCH = ("--rank", "--world-size", "--rendezvous", "--interface", "--secret-file")
LIMIT_SECONDS = 120


@dataclass
class Block:
    name: str
    hosts: list
    first: bool
    commands: str


def blocks_of(page):
    """The blocks that are run. Every block of commands on the page has to be one."""
    found = []
    for marker, commands in re.findall(r"^(?:<!-- run ([^\n]*) -->\n)?```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        said = re.fullmatch(r"(\w+) on (\w+(?: and \w+)*)(, before the rest)?", marker)
        if said is None:
            sys.exit(f"on-your-cluster.md: no test runs this; it takes <!-- run NAME on HOST --> before it:\n{commands}")
        found.append(Block(said[1], said[2].split(" and "), said[3] is not None, commands))
    return found


def forked(commands, folder):
    """What the lesson of these commands prints when it starts its ranks itself."""
    line = next(line for line in commands.replace("\\\n", " ").splitlines() if "build/bin/" in line)
    words = shlex.split(line[line.index("build/bin/") :])
    kept = [word for word, before in zip(words, [""] + words) if word not in OF_A_LAUNCH and before not in OF_A_LAUNCH]
    return subprocess.run(kept, cwd=folder, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS).stdout


def without_first_line(text):
    return text.split("\n", 1)[1] if "\n" in text else ""


def run(name, blocks, hosts, folder, launchers):
    """Runs the blocks of one name; returns what is wrong, if anything is."""
    environment = dict(
        os.environ,
        PATH=f"{launchers}:{os.environ['PATH']}",
        STAND_IN_HOSTS=hosts.for_stand_ins(),
        NO_COLOR="1",  # mpirun gives rank 0 a terminal
        # Open MPI warns root, and counts cores; neither is what this test is about.
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
    )
    names = [hosts.host_name(host) for host in range(hosts.count)]

    def start(block, host):
        return hosts.start(
            names.index(host),
            ["bash", "-euo", "pipefail", "-c", block.commands],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    out, err = "", ""
    for first in (True, False):
        processes = [start(block, host) for block in blocks if block.first == first for host in block.hosts]
        for process in processes:
            printed, errors = process.communicate(timeout=LIMIT_SECONDS)
            out, err = out + printed, err + errors
            if process.returncode != 0:
                return f"exit code {process.returncode}\n{out}{err}"
    launcher = STARTED_BY[name.removesuffix("_2")]
    places = {host for block in blocks for host in block.hosts} | set(re.findall(r"--nodes (2)", blocks[0].commands))
    several = name.endswith("_2") or len(places) > 1
    first_line = out.partition("\n")[0]
    said = rf" processes {'on 2 hosts ' if several else ''}over Gloo, started by {launcher} · "
    if re.search(said, first_line) is None:
        return f"the first line is not that of such a run:\n{first_line}"
    expected = forked(blocks[-1].commands, folder)
    if without_first_line(out) != without_first_line(expected):
        difference = difflib.unified_diff(expected.splitlines(), out.splitlines(), "started by the lesson", name, lineterm="")
        return "it prints other lines than when the lesson starts its ranks itself:\n" + "\n".join(difference)
    return None


def mended_torchrun(folder):
    """A folder with a torchrun that runs on any Python, for the one that has PyTorch."""
    with open(shutil.which("torchrun"), encoding="utf-8") as file:
        interpreter = file.readline()
    path = Path(folder) / "torchrun"
    path.write_text(interpreter + (HERE / "mended_torchrun.py").read_text(encoding="utf-8"), encoding="utf-8")
    path.chmod(0o755)
    return folder


def left_over(hosts, host, before):
    """What still runs on a host and did not run before; a launcher's own daemons get a moment to tidy up."""
    deadline = time.monotonic() + 10 * REAL
    while True:
        left = set(hosts.processes(host)) - before
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(0.1)


def main():
    if shutil.which("mpirun") is None:
        skip("there is no mpirun here; install Debian's openmpi-bin")
    if REAL and missing():
        skip(f"there is no {missing()[0]} here; install Debian's slurmctld, slurmd, slurm-client and munge")
    if REAL and shutil.which("torchrun") is None:
        skip("there is no torchrun here; install Debian's python3-torch")
    enter()
    blocks = blocks_of((ROOT / "docs" / "on-your-cluster.md").read_text(encoding="utf-8"))
    wrong = 0
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        hosts = stack.enter_context(Hosts(2, "node"))
        hosts.know_names(folder)
        launchers = HERE / "stand_ins"
        if REAL:
            stack.enter_context(Slurm(hosts, stack.enter_context(tempfile.TemporaryDirectory())))
            launchers = mended_torchrun(stack.enter_context(tempfile.TemporaryDirectory()))
        os.symlink(BUILD, os.path.join(folder, "build"))
        daemons = [set(hosts.processes(host)) for host in range(hosts.count)]
        for name in dict.fromkeys(block.name for block in blocks):
            if REAL and not name.startswith(("srun", "torchrun")):
                continue  # the other launchers are real in any case
            complaint = run(name, [block for block in blocks if block.name == name], hosts, folder, launchers)
            print(f"{name}: {complaint or 'as it should be'}", flush=True)
            wrong += complaint is not None
            for host in range(hosts.count):
                if left_over(hosts, host, daemons[host]):
                    print(f"{name}: something is left on {hosts.host_name(host)}")
                    wrong += 1
    sys.exit(1 if wrong or not blocks else 0)


main()
