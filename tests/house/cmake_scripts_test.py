#!/usr/bin/env python3
"""Tests of the scripts that make C++ out of files while Muonwalk is built: cmake/write_texts.cmake and cmake/write_bytes.cmake.
The first argument is the project's folder, the second one CMake."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CMAKE = sys.argv.pop(2)
ROOT = Path(sys.argv.pop(1)).resolve()


class CMakeScripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "made.cpp"

    def run_script(self, name, *given):
        return subprocess.run([CMAKE, f"-DOUTPUT={self.output}", *given, "-P", str(ROOT / "cmake" / name)], capture_output=True,
                              text=True, check=False)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def test_texts(self):
        """Each under its name, with all that CMake or C++ might take for something else."""
        first, second = 'a;b "c" \\n [x] $(y) ${z} @w@\n\n  )"\n', "é × ✔, and no line end"
        one, two = self.file("one.html", first.encode()), self.file("two.css", second.encode())
        done = self.run_script("write_texts.cmake", f"-DTEXTS=page_html;{one};page_css;{two}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.output.read_text(encoding="utf-8"),
                         "#include <utility>\nnamespace muonwalk::sim::page_texts {\n"
                         "extern const char* const page_html;\n"
                         f'const char* const page_html = R"muonwalk_text({first})muonwalk_text";\n'
                         "extern const char* const page_css;\n"
                         f'const char* const page_css = R"muonwalk_text({second})muonwalk_text";\n'
                         "}\n")
        self.assertEqual(self.output.with_suffix(".hpp").read_text(encoding="utf-8"),
                         "#pragma once\n#include <utility>\nnamespace muonwalk::sim::page_texts {\n"
                         "extern const char* const page_html;\n"
                         "extern const char* const page_css;\n"
                         "}\n")

    def test_folders(self):
        """All their files, in the order in which they are given, whatever stands before and after."""
        one, two = self.file("z-1.5b.json", b"[1;2]"), self.file("a.json", b"{}")
        done = self.run_script("write_texts.cmake", f"-DTEXTS=first;{two};some/;{one};{two};others/;{two};last;{one}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        pairs = "const std::pair<const char*, const char*>"
        made = self.output.read_text(encoding="utf-8")
        self.assertIn(f'{pairs} some[] = {{\n{{"z-1.5b", R"muonwalk_text([1;2])muonwalk_text"}},\n'
                      '{"a", R"muonwalk_text({})muonwalk_text"},\n};\n', made)
        self.assertIn(f'{pairs} others[] = {{\n{{"a", R"muonwalk_text({{}})muonwalk_text"}},\n}};\n', made)
        self.assertTrue(made.endswith('const char* const last = R"muonwalk_text([1;2])muonwalk_text";\n}\n'), made)
        self.assertEqual(self.output.with_suffix(".hpp").read_text(encoding="utf-8"),
                         "#pragma once\n#include <utility>\nnamespace muonwalk::sim::page_texts {\n"
                         "extern const char* const first;\n"
                         f"extern {pairs} some[2];\nextern {pairs} others[1];\n"
                         "extern const char* const last;\n}\n")

    def test_a_text_that_ends_the_literal(self):
        """It is refused by name, and nothing is written."""
        good, bad = self.file("good.js", b"x"), self.file("bad.js", b'R"muonwalk_text(y)muonwalk_text"')
        done = self.run_script("write_texts.cmake", f"-DTEXTS=good;{good};bad;{bad}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{bad} holds", " ".join(done.stderr.split()))
        self.assertNotIn(str(good), done.stderr)
        self.assertFalse(self.output.exists())

    def test_bytes(self):
        """All of them, in order, whatever their number; aligned as the driver wants them."""
        for count in (1, 7, 8, 9, 16, 300):
            image = bytes((i * 37 + 5) % 256 for i in range(count))
            done = self.run_script("write_bytes.cmake", f"-DIMAGE={self.file('image', image)}")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            made = self.output.read_text(encoding="utf-8")
            self.assertEqual(bytes(int(each, 16) for each in re.findall(r"0x(..),", made)), image)
            self.assertTrue(made.startswith('extern "C" {\nextern const unsigned char muonwalk_kernels_image[];\n'
                                            "alignas(64) const unsigned char muonwalk_kernels_image[] = {\n"), made)
            self.assertTrue(made.endswith("};\n}\n"), made)


if __name__ == "__main__":
    unittest.main()
