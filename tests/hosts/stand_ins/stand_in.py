"""What the stand-ins for launchers share: they set the variables that the real one sets, and start the tasks on the hosts of
hosts.py, whose names and processes are in STAND_IN_HOSTS ("node1:4711,node2:4712"); without it, here."""

import os
import signal
import socket
import subprocess
import sys


def hosts():
    """The hosts there are: (name, what starts a program there)."""
    listed = os.environ.get("STAND_IN_HOSTS", "")
    if not listed:
        return [(socket.gethostname(), [])]
    pairs = [host.split(":") for host in listed.split(",")]
    return [(name, ["nsenter", "--target", pid, "--net", "--uts"]) for name, pid in pairs]


def options(arguments, known):
    """The launcher's own options, as a dictionary, and the program with its arguments. `known` says of each whether it takes a
    value; what the page does not use, a stand-in does not know."""
    found = {}
    while arguments and arguments[0].startswith("-"):
        name, equals, value = arguments.pop(0).partition("=")
        if name not in known:
            sys.exit(f"{sys.argv[0]}: this stand-in does not know {name}")
        found[name] = (value if equals else arguments.pop(0)) if known[name] else "yes"
    return found, arguments


def run(tasks, program):
    """Starts a task for each (what starts a program on its host, variables) and waits for all. The exit code is the highest; a
    signal to the launcher goes on to them."""
    processes = [
        subprocess.Popen(["setpriv", "--pdeathsig", "KILL"] + prefix + program, env=dict(os.environ, **variables))
        for prefix, variables in tasks
    ]

    def pass_on(number, _):
        for process in processes:
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    codes = [process.wait() for process in processes]
    sys.exit(max(code if code >= 0 else 128 - code for code in codes))
