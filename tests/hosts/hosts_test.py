#!/usr/bin/env python3
"""Tests of hosts.py: what it says of its hosts is so, and nothing of them is left."""

import os
import subprocess
import sys
import time
import unittest

import hosts as under_test
from hosts import INSIDE, Hosts

# Sends as many bytes as it is told to whoever connects.
SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 4711))
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    connection.sendall(bytes(int(sys.argv[2])))
    connection.close()
"""
# Connects within some seconds, and says how much came.
CLIENT = """
import socket, sys
try:
    connection = socket.create_connection((sys.argv[1], 4711), timeout=float(sys.argv[2]))
    count = 0
    while True:
        part = connection.recv(1 << 16)
        if not part:
            break
        count += len(part)
    print(count)
except OSError as error:
    print("nothing")
"""


class OfHosts(unittest.TestCase):
    def serve(self, hosts, host, count):
        server = hosts.start(
            host, [sys.executable, "-c", SERVER, hosts.address(host), str(count)], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(server.stdout.close)
        self.assertEqual(server.stdout.readline(), "ready\n")

    def fetch(self, hosts, host, of, seconds=20.0):
        client = [sys.executable, "-c", CLIENT, hosts.address(of), str(seconds)]
        return hosts.on(host, *client).strip()

    def test_three_hosts_see_each_other(self):
        with Hosts(3) as hosts:
            self.assertEqual([hosts.on(host, "hostname").strip() for host in range(3)], ["host1", "host2", "host3"])
            self.serve(hosts, 0, 100000)
            self.assertEqual([hosts.listening(host) for host in range(3)], [["10.77.0.1:4711"], [], []])
            self.assertEqual(self.fetch(hosts, 2, 0), "100000")

    def test_a_slow_link_holds_back_what_is_sent(self):
        with Hosts(2) as hosts:
            self.serve(hosts, 0, 400000)
            hosts.slow(0, "20mbit")
            self.assertEqual(self.fetch(hosts, 1, 0), "400000")
            statistics = hosts.on(0, "tc", "-s", "qdisc", "show", "dev", "eth0")
            self.assertIn("qdisc tbf", statistics)
            self.assertNotIn("overlimits 0 ", statistics)


class FromOutside(unittest.TestCase):
    """What becomes of hosts whose test is killed; run before this test enters namespaces itself."""

    def test_nothing_is_left_of_a_test_that_was_killed(self):
        program = "import hosts, time; hosts.enter(); h = hosts.Hosts(2); print('ready', flush=True); time.sleep(1000)"
        mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
        folder = os.path.dirname(os.path.abspath(__file__))
        script = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=folder, MARK=mark),
        )
        self.addCleanup(script.stdout.close)
        self.assertEqual(script.stdout.readline(), "ready\n")
        self.assertGreaterEqual(len(marked(mark)), 4)
        script.kill()
        script.wait()
        deadline = time.monotonic() + 20
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(marked(mark), [])

    def test_where_the_kernel_forbids_it_it_says_why_and_skips(self):
        folder = os.path.dirname(os.path.abspath(__file__))
        program = "import hosts; hosts.namespaces = lambda: ['sh', '-c', 'echo no you may not >&2; exit 1']; hosts.enter()"
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, under_test.SKIPPED)
        self.assertRegex(done.stdout, "^skipped: this system lets a test have no network namespaces.*: no you may not\n$")


def marked(mark):
    """The processes that were started with this mark in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                if mark.encode() in environment.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def run(tests):
    return unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromTestCase(tests)).wasSuccessful()


if __name__ == "__main__":
    # The killed test may not be allowed to make hosts either; then all of this is skipped below.
    if not os.environ.get(INSIDE):
        probe = subprocess.run(
            [sys.executable, "-c", "import hosts; hosts.enter()"],
            cwd=os.path.dirname(os.path.abspath(__file__)),
            capture_output=True,
            check=False,
        )
        if probe.returncode == 0 and not run(FromOutside):
            sys.exit(1)
    under_test.enter()
    sys.exit(0 if run(OfHosts) else 1)
