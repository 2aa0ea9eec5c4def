#!/usr/bin/env python3
"""Every C++ and CUDA file of the project is laid out as .clang-format says, and clang-format can tell.

    format_test.py SOURCE CLANG_FORMAT
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE, PROGRAM = Path(sys.argv[1]).resolve(), sys.argv[2]
FOLDERS = ("src", "sim", "lessons", "tests", "notebooks")


def laid_out_otherwise(paths):
    """Those of the files that clang-format would write in another way."""
    done = subprocess.run([PROGRAM, f"--style=file:{SOURCE / '.clang-format'}", "--dry-run", *map(str, paths)],
                          capture_output=True, text=True, check=True)
    named = {line.split(":", 1)[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line}
    return [path for path in paths if str(path) in named]


files = [path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*")) if path.suffix in (".cpp", ".hpp", ".cu")]
assert len(files) > 100, f"only {len(files)} files were found"
wrong = [str(path.relative_to(SOURCE)) for path in laid_out_otherwise(files)]

with tempfile.TemporaryDirectory() as folder:  # A check that can't fail is a defect.
    planted = Path(folder) / "planted.cpp"
    planted.write_text("int  x( int a ){return a ;}\n")
    assert laid_out_otherwise([planted]), "a file with a wrong layout was not noticed"

for name in wrong:
    print(f"FAILED  {name} is not laid out as .clang-format says; clang-format -i {name} mends it")
print(f"{len(files)} files, {len(wrong)} with another layout")
sys.exit(1 if wrong else 0)
