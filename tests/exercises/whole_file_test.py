#!/usr/bin/env python3
"""Tests of sim/classroom/whole_file.py: a file is there whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = str(Path(__file__).resolve().parents[2] / "sim/classroom")
sys.path.insert(0, TOOLS)
from whole_file import write_whole  # noqa: E402


class WholeFile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "file"

    def tearDown(self):
        self.folder.cleanup()

    def test_new_and_replaced(self):
        for text in ("×" * 1000, "short", ""):
            write_whole(self.path, text)
            self.assertEqual(self.path.read_text(encoding="utf-8"), text)
            self.assertEqual(os.listdir(self.folder.name), ["file"])

    def test_permissions_and_links(self):
        self.path.write_text("before")
        link = Path(self.folder.name) / "link"
        link.symlink_to("file")
        for mode in (0o600, 0o644, 0o750, 0o400):
            self.path.chmod(mode)
            write_whole(link, f"after {mode}")
            self.assertTrue(link.is_symlink())
            self.assertEqual(self.path.read_text(), f"after {mode}")
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), mode)

    def test_failure_keeps_the_old_file(self):
        self.path.write_text("before")
        with self.assertRaises(UnicodeEncodeError):
            write_whole(self.path, "half\ud800")
        self.assertEqual(self.path.read_text(), "before")
        self.assertEqual(os.listdir(self.folder.name), ["file"])

    def test_killed(self):
        """However it is killed while it writes, the old file stays."""
        self.path.write_text("before")
        program = (f"import os, signal, sys; sys.path.insert(0, {TOOLS!r}); import whole_file\n"
                   "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)\n"
                   f"whole_file.write_whole({str(self.path)!r}, 'after')")
        ended = subprocess.run([sys.executable, "-c", program], check=False)
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        self.assertEqual(self.path.read_text(), "before")


if __name__ == "__main__":
    unittest.main()
