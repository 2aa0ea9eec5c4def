"""Lesson 24 is ended by a signal while the files that it judges are in a folder of their own: nothing of them stays behind.

    ended_while_judging_test.py PROGRAM
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

RUNS = 50  # the folder is there for some milliseconds, six times in a run

seen = 0
with tempfile.TemporaryDirectory() as folder:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for _ in range(RUNS):
            process = subprocess.Popen([sys.argv[1]], env={**os.environ, "TMPDIR": folder}, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            until, there = time.monotonic() + 20, False
            while process.poll() is None and not there and time.monotonic() < until:
                there = bool(os.listdir(folder))
            process.send_signal(number)
            process.wait()
            if there and process.returncode != 0:  # it was not done before
                seen += 1
                left = os.listdir(folder)
                if left:
                    sys.exit(f"after {signal.Signals(number).name}, {', '.join(left)} was left behind")
                break
if seen != 3:
    sys.exit(f"only {seen} of 3 signals came while there was something to leave behind")
print("3 runs were ended, and nothing was left behind")
