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
        os.environ.pop("MUONWALK_UNNAMED_FILES", None)

    def both_ways(self):
        for wanted in ("on", "off"):
            os.environ["MUONWALK_UNNAMED_FILES"] = wanted
            yield wanted
            self.path.unlink()

    def test_new_and_replaced(self):
        for _ in self.both_ways():
            for text in ("×" * 1000, "short", ""):
                write_whole(self.path, text)
                self.assertEqual(self.path.read_text(encoding="utf-8"), text)
                self.assertEqual(os.listdir(self.folder.name), ["file"])

    def test_permissions_and_links(self):
        for _ in self.both_ways():
            self.path.write_text("before")
            self.path.chmod(0o600)
            link = Path(self.folder.name) / "link"
            link.symlink_to("file")
            write_whole(link, "after")
            self.assertTrue(link.is_symlink())
            self.assertEqual(self.path.read_text(), "after")
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
            link.unlink()
            for mode in (0o644, 0o750, 0o400):
                self.path.chmod(mode)
                write_whole(self.path, "again")
                self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), mode)

    def test_failure_keeps_the_old_file(self):
        for _ in self.both_ways():
            self.path.write_text("before")
            with self.assertRaises(UnicodeEncodeError):
                write_whole(self.path, "half\ud800")
            self.assertEqual(self.path.read_text(), "before")
            self.assertEqual(os.listdir(self.folder.name), ["file"])

    def test_killed(self):
        """However it is killed while it writes, the old file stays, and nothing else where there are unnamed files."""
        self.path.write_text("before")
        program = (f"import os, signal, sys; sys.path.insert(0, {TOOLS!r}); import whole_file\n"
                   "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)\n"
                   f"whole_file.write_whole({str(self.path)!r}, 'after')")
        ended = subprocess.run([sys.executable, "-c", program], check=False)
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        self.assertEqual(self.path.read_text(), "before")
        try:
            os.close(os.open(self.folder.name, os.O_WRONLY | os.O_TMPFILE))
        except (AttributeError, OSError):
            self.skipTest("this file system has no unnamed files")
        self.assertEqual(os.listdir(self.folder.name), ["file"])


if __name__ == "__main__":
    unittest.main()
