#!/usr/bin/env python3
"""Lessons across hosts, started by hand: what they print, and how they end when something becomes of a host or of the network.

    launched_test.py ROOT BUILD
"""

import itertools
import os
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hosts import Hosts, enter

ROOT, BUILD = (Path(argument) for argument in sys.argv[1:3])
LIMIT_SECONDS = 60
TIMEOUT = "2"  # what runs that are to break are given as --timeout

# Comes to a port and does not know the secret; each way is tried so often.
STRANGER = """
import os, socket, sys
closed = 0
for count in range(int(sys.argv[3])):
    try:
        stranger = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
        if count % 3 == 0: stranger.sendall(os.urandom(64))
        if count % 3 == 1: stranger.sendall(os.urandom(3))
        if count % 3 == 2: stranger.sendall(stranger.recv(32) * 2)
        if count % 3 == 1: stranger.shutdown(socket.SHUT_WR)
        heard = b"x"
        while heard: heard = stranger.recv(100)
        closed += 1
    except ConnectionRefusedError:
        break
    except OSError:
        closed += 1
print(closed)
"""


class Run:
    """A program that was started by hand as so many ranks; rank r runs on the host that `places` says."""

    def __init__(self, test, hosts, places, words, port=29500, secret="secret", ranks=None):
        self.hosts, self.places, self.processes = hosts, places, {}
        self.words, self.port, self.secret, self.test = words, port, secret, test
        for rank in range(len(places)) if ranks is None else ranks:
            self.start(rank)

    def start(self, rank, secret=None):
        process = self.hosts.start(
            self.places[rank],
            [str(BUILD / "bin" / self.words[0])]
            + self.words[1:]
            + ["--rank", str(rank), "--world-size", str(len(self.places)), "--interface", "eth0"]
            + ["--rendezvous", f"{self.hosts.address(self.places[0])}:{self.port}"]
            + ["--secret-file", str(self.test.folder / (secret or self.secret))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes[rank] = process
        return process

    def wait_for_line(self, begin):
        for line in self.processes[0].stdout:
            if line.startswith(begin):
                return
        self.test.fail(f"it never printed {begin}: {self.processes[0].stderr.read()}")

    def end(self, rank):
        """Exit code, standard output and standard error of a rank's process."""
        out, err = self.processes[rank].communicate(timeout=LIMIT_SECONDS)
        return self.processes[rank].returncode, out, err

    def ends(self):
        return [self.end(rank) for rank in self.processes]


class Launched(unittest.TestCase):
    """The tests spend their time waiting, so they run side by side (main): each has hosts, names and a net of its own."""

    numbers = itertools.count(1)

    def make_hosts(self, count):
        number = next(self.numbers)
        return Hosts(count, f"n{number}host", f"10.77.{number}")

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        for name in ("secret", "another"):
            (self.folder / name).write_bytes(os.urandom(32).hex().encode())
            (self.folder / name).chmod(0o600)

    def forked(self, words):
        done = subprocess.run(
            [str(BUILD / "bin" / words[0])] + words[1:], capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
        )
        return done.stdout

    def assert_as_forked(self, run, first_line):
        """All processes ended well; rank 0 printed what the forked world does, apart from the first line, the others nothing."""
        for rank, (code, out, err) in enumerate(run.ends()):
            self.assertEqual(code, 0, f"rank {rank}: {out}{err}")
            if rank > 0:
                self.assertEqual((out, err), ("", ""))
                continue
            first, _, rest = out.partition("\n")
            self.assertIn(first_line, first)
            self.assertEqual(rest, self.forked(run.words).partition("\n")[2])

    def wait_for_port(self, hosts, run):
        """Until a stranger can come to the port of rank 0."""
        come = hosts.inside(1, [sys.executable, "-c", STRANGER, hosts.address(0), str(run.port), "1"])
        while subprocess.run(come, capture_output=True, text=True, check=True).stdout != "1\n":
            self.assertIsNone(run.processes[0].poll())

    def assert_nothing_left(self, hosts):
        deadline = time.monotonic() + 10
        for host in range(hosts.count):
            while hosts.holders[host] is not None and hosts.processes(host):
                self.assertLess(time.monotonic(), deadline, f"processes are left on host {host}")
                time.sleep(0.02)

    def assert_one_sentence(self, err, *words):
        """The last line of a standard error is one sentence with these words in it; before it comes at most who started it."""
        lines = [line for line in err.splitlines() if ": started by hand: rank " not in line]
        self.assertEqual(len(lines), 1, err)
        for word in words:
            self.assertRegex(lines[0], word)

    def test_two_and_three_hosts_print_what_one_machine_prints(self):
        expected = (ROOT / "lessons/lesson_05_tp_gather/lesson_05_tp_gather.expected").read_text(encoding="utf-8")
        with self.make_hosts(3) as hosts:
            hosts.slow(2, "20mbit")  # which changes nothing that is printed
            run = Run(self, hosts, [0, 1], ["lesson_05_tp_gather"])
            other = Run(self, hosts, [0, 1, 2], ["lesson_09_full_step", "--small", "--dp", "3", "--tp", "1"], 29501)
            more = Run(self, hosts, [2, 2, 0, 0], ["lesson_02_collectives"], 29502, "another")
            code, out, err = run.end(0)
            self.assertEqual(code, 0, err)
            self.assertIn("2 processes on 2 hosts over Gloo, started by hand", out.partition("\n")[0])
            self.assertEqual(out.partition("\n")[2], expected.partition("\n")[2])
            self.assertEqual(run.end(1), (0, "", ""))
            self.assert_as_forked(other, "3 processes on 3 hosts over Gloo, started by hand")
            self.assert_as_forked(more, "4 processes on 2 hosts over Gloo, started by hand")
            self.assert_nothing_left(hosts)

    def test_two_runs_at_once_do_not_meet(self):
        with self.make_hosts(2) as hosts:
            small = ["lesson_09_full_step", "--small", "--dp", "2", "--tp", "1", "--seed"]
            runs = [Run(self, hosts, [0, 1], small + [str(seed)], 29500 + seed) for seed in (1, 2)]
            for run in runs:
                self.assert_as_forked(run, "2 processes on 2 hosts")
            # At one port there is only one of them; ranks of the other are refused, and so is its rank 0.
            first = Run(self, hosts, [0, 1], small + ["1"], ranks=[0])
            self.wait_for_port(hosts, first)
            second = Run(self, hosts, [0, 1], small + ["2"], ranks=[0])
            code, _, err = second.end(0)
            self.assertEqual(code, 2)
            self.assert_one_sentence(err, f"can't listen at {hosts.address(0)} port 29500", "another port")
            first.start(1)
            self.assert_as_forked(first, "2 processes on 2 hosts")

    def test_who_does_not_know_the_secret_is_turned_away_and_the_run_goes_on(self):
        with self.make_hosts(2) as hosts:
            run = Run(self, hosts, [0, 1], ["lesson_05_tp_gather"], ranks=[0])
            self.wait_for_port(hosts, run)
            self.assertEqual(hosts.listening(0), [f"{hosts.address(0)}:29500"])
            strangers = [
                hosts.start(host, [sys.executable, "-c", STRANGER, hosts.address(0), "29500", "300"],
                            stdout=subprocess.PIPE, text=True)
                for host in (0, 1)
            ]
            without = run.start(1, "another")
            counts = [int(stranger.communicate(timeout=LIMIT_SECONDS)[0]) for stranger in strangers]
            self.assertEqual(counts, [300, 300])
            self.assertIsNone(without.poll())  # it tries until its time is over
            without.kill()
            without.communicate()
            run.start(1)
            self.assert_as_forked(run, "2 processes on 2 hosts")

    def test_a_link_that_flaps_is_borne(self):
        with self.make_hosts(2) as hosts:
            run = Run(self, hosts, [0, 1], ["fault_program", "--dp", "2", "--tp", "1", "--mode", "loop", "--seconds", "1.5"])
            run.wait_for_line("step 1")
            self.assertEqual([hosts.listening(0), hosts.listening(1)], [[], []])
            hosts.flap(1, 4, 0.15, 0.1)
            for rank in (0, 1):
                code, _, err = run.end(rank)
                self.assertEqual(code, 0, err)
            self.assert_nothing_left(hosts)

    def broken(self, hosts, places, breaks, grid):
        """A run of ranks that talk all the time, in the middle of which `breaks` is called; how its processes end."""
        words = ["fault_program", "--mode", "loop", "--seconds", "60", "--timeout", TIMEOUT] + grid
        run = Run(self, hosts, places, words)
        run.wait_for_line("step 1")
        time.sleep(0.3)  # and on into the step in which they talk
        breaks()
        begin = time.monotonic()
        ends = run.ends()
        # The timeout, and as much again for what a busy machine needs; far less than the run's 60 seconds.
        self.assertLess(time.monotonic() - begin, 20)
        self.assert_nothing_left(hosts)
        return ends

    def test_a_link_that_is_cut_ends_the_run_on_both_sides(self):
        with self.make_hosts(2) as hosts:
            first, second = self.broken(hosts, [0, 1], lambda: hosts.cut(1), ["--dp", "2", "--tp", "1"])
            self.assertEqual((first[0], second[0]), (3, 3), first[2] + second[2])
            self.assert_one_sentence(first[2], "rank 1 ", "n[0-9]+host2", "in step 'trouble'", "host does not answer|or its host is")
            self.assert_one_sentence(second[2], "rank 1 on n[0-9]+host2", "rank 0")

    def test_a_host_that_vanishes_ends_the_run(self):
        with self.make_hosts(3) as hosts:
            ends = self.broken(hosts, [0, 1, 1, 2], lambda: hosts.vanish(1), ["--dp", "2", "--tp", "2"])
            self.assertEqual([code for code, _, _ in ends], [3, -9, -9, 3], ends[0][2] + ends[3][2])
            self.assert_one_sentence(ends[0][2], "rank (1|2) ", "n[0-9]+host2", "in step 'trouble'", "host does not answer|or its host is")

    def test_a_host_of_rank_0_that_vanishes_ends_all_others(self):
        with self.make_hosts(3) as hosts:
            ends = self.broken(hosts, [0, 0, 1, 2], lambda: hosts.vanish(0), ["--dp", "2", "--tp", "2"])
            self.assertEqual([code for code, _, _ in ends], [-9, -9, 3, 3], ends[2][2] + ends[3][2])
            self.assert_one_sentence(ends[2][2], "rank 2 on n[0-9]+host2", "rank 0")
            self.assert_one_sentence(ends[3][2], "rank 3 on n[0-9]+host3", "rank 0")


def run_test(test):
    result = unittest.TestResult()
    test.run(result)
    return test, result


if __name__ == "__main__":
    enter()
    wrong = 0
    with ThreadPoolExecutor(4) as pool:
        for test, result in pool.map(run_test, unittest.defaultTestLoader.loadTestsFromTestCase(Launched)):
            print(f"{test.id().rpartition('.')[2]}: {'ok' if result.wasSuccessful() else 'FAILED'}", flush=True)
            for _, trace in result.errors + result.failures:
                print(trace)
                wrong += 1
    sys.exit(1 if wrong else 0)
