"""Hosts for tests, on one machine: network namespaces, each with a name of its own and an interface eth0, joined by a bridge.

A test program calls enter() first. That starts it again in a network and a process namespace of its own, as root or in a user
namespace; everything that it makes lies in there, so the machine's own network is never touched, and all of it is gone when the
program ends, however it ends. Where the kernel forbids it, enter() says why and exits with SKIPPED.

    hosts = Hosts(2)
    process = hosts.start(1, ["some", "program"])     # on host 1; hosts count from 0
    hosts.cut(1); hosts.join(1)                       # its cable, silently: nobody is told that it is out
    hosts.vanish(1)                                   # the host is gone from one moment to the next
    hosts.slow(1, "1gbit")                            # its link, both ways
"""

import os
import shutil
import signal
import subprocess
import sys
import time

SKIPPED = 77  # what CMake knows as SKIP_RETURN_CODE
INSIDE = "MUONWALK_TEST_HOSTS"  # set inside of the namespaces


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def namespaces():
    """The command that starts a program in namespaces of its own, which end with it."""
    command = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"]
    return command if os.geteuid() == 0 else command[:1] + ["--user", "--map-root-user"] + command[1:]


def enter():
    """Goes on inside of namespaces of this test's own, or skips all of it."""
    if os.environ.get(INSIDE):
        # What started this may be killed; unshare(1) hears of that only while it lives itself.
        return
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
        if shutil.which(tool) is None:
            skip(f"there is no {tool} here; install Debian's {package}")
    tried = subprocess.run(
        namespaces() + ["sh", "-c", "ip link set lo up && ip link add bridge0 type bridge && ip link add veth0 type veth peer name veth1"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        reason = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        skip(f"this system lets a test have no network namespaces with a bridge and veth pairs: {reason}")
    # A test ends with whoever started it, too: ctest kills what is late, and that reaches only this process.
    os.execvpe(
        "setpriv",
        ["setpriv", "--pdeathsig", "KILL"] + namespaces() + sys.orig_argv,
        dict(os.environ, **{INSIDE: "1"}),
    )


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


# Interfaces that a network gets from here on have no IPv6: nobody on these hosts speaks it.
WITHOUT_IPV6 = "for all in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $all ] || echo 1 >$all; done"


class Hosts:
    """Some hosts that see each other over one switch. Addresses are 10.77.0.1, 10.77.0.2, …; a second set of hosts that lives at
    the same time needs another name and another net."""

    def __init__(self, count, name="host", net="10.77.0"):
        self.count, self.name, self.net = count, name, net
        self.bridge = f"{name}s"
        self.holders = []
        self.started = []
        command("sh", "-c", WITHOUT_IPV6)
        command("ip", "link", "set", "lo", "up")
        command("ip", "link", "add", self.bridge, "type", "bridge")
        command("ip", "link", "set", self.bridge, "up")
        for host in range(count):
            holder = subprocess.Popen(
                ["unshare", "--net", "--uts", "sh", "-c", f"hostname {self.host_name(host)} && {WITHOUT_IPV6} && echo ready && exec sleep infinity"],
                stdout=subprocess.PIPE,
                text=True,
            )
            self.holders.append(holder)
            if holder.stdout.readline() != "ready\n":
                raise RuntimeError(f"host {host} could not be made")
            port = self.port(host)
            command("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            command("ip", "link", "set", port, "master", self.bridge, "up")
            self.on(host, "ip", "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            self.on(host, "ip", "link", "set", "lo", "up")
            self.on(host, "ip", "link", "set", "eth0", "up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends all that runs on the hosts, and removes them. What is left out is removed when the test ends."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        for host, holder in enumerate(self.holders):
            if holder is not None:
                self.vanish(host)
        command("ip", "link", "del", self.bridge)

    def host_name(self, host):
        """host1 for host 0, as its address ends with 1."""
        return f"{self.name}{host + 1}"

    def know_names(self, folder):
        """Lets programs on all hosts find them by their names: in namespaces of this test's own, /etc/hosts is this test's."""
        path = os.path.join(folder, "hosts")
        with open(path, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{self.address(host)} {self.host_name(host)}\n" for host in range(self.count))
        command("mount", "--bind", path, "/etc/hosts")

    def for_stand_ins(self):
        """The hosts as the stand-ins for launchers are told of them (stand_ins/stand_in.py)."""
        return ",".join(f"{self.host_name(host)}:{self.holders[host].pid}" for host in range(self.count))

    def address(self, host):
        return f"{self.net}.{host + 1}"

    def port(self, host):
        """The interface at the switch's end of a host's cable."""
        return f"{self.name}{host}"

    def inside(self, host, words):
        return ["nsenter", "--target", str(self.holders[host].pid), "--net", "--uts"] + list(words)

    def on(self, host, *words):
        """Runs a command of the system on a host and returns what it prints."""
        return command(*self.inside(host, words))

    def start(self, host, words, **popen):
        """Starts a program on a host, as subprocess.Popen does."""
        process = subprocess.Popen(self.inside(host, words), **popen)
        self.started.append(process)
        return process

    def processes(self, host):
        """The processes that run on a host, without the one that keeps it."""
        network = os.readlink(f"/proc/{self.holders[host].pid}/ns/net")
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/ns/net") == network and int(pid) != self.holders[host].pid:
                    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                        if stat.read().rpartition(") ")[2][0] != "Z":
                            found.append(int(pid))
            except OSError:
                pass  # it has ended meanwhile
        return found

    def cut(self, host):
        """Nothing that is sent to or from the host arrives any more; no interface goes down, so nobody is told."""
        command("ip", "link", "set", self.port(host), "nomaster")

    def join(self, host):
        command("ip", "link", "set", self.port(host), "master", self.bridge)

    def flap(self, host, times, out_seconds, in_seconds):
        for _ in range(times):
            self.cut(host)
            time.sleep(out_seconds)
            self.join(host)
            time.sleep(in_seconds)

    def vanish(self, host):
        """The host loses its current: not a byte leaves it any more, and nothing on it goes on."""
        self.cut(host)
        for pid in self.processes(host):
            os.kill(pid, signal.SIGKILL)
        command("ip", "link", "del", self.port(host))  # the kernel would do it a little later
        self.holders[host].kill()
        self.holders[host].wait()
        self.holders[host].stdout.close()
        self.holders[host] = None

    def slow(self, host, rate):
        """A queue of the kernel's (tc) at both ends of the host's cable."""
        words = ["root", "tbf", "rate", rate, "burst", "64kb", "latency", "100ms"]
        command("tc", "qdisc", "replace", "dev", self.port(host), *words)
        self.on(host, "tc", "qdisc", "replace", "dev", "eth0", *words)

    def listening(self, host):
        """Where programs on the host wait for connections: addresses and ports, "10.77.0.1:4711"."""
        found = []
        with open(f"/proc/{self.holders[host].pid}/net/tcp", encoding="utf-8") as table:
            for line in list(table)[1:]:
                _, local, _, state = line.split()[:4]
                if state == "0A":
                    address, port = (int(part, 16) for part in local.split(":"))
                    found.append(".".join(str(address >> 8 * i & 255) for i in range(4)) + f":{port}")
        return found
