#!/usr/bin/env python3
"""Tests docs/promises.md: every test that it names is one, and what it quotes stands in the README or a page beside it.

    promises_test.py ROOT BUILD
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path


def words(text):
    return re.sub(r"[\s*`]+", " ", text).lower()


def main(root, build):
    listing = subprocess.run(["ctest", "--test-dir", build, "-N"], capture_output=True, text=True, check=True).stdout
    tests = re.findall(r"^ *Test +#\d+: (\S+)", listing, re.M)
    pages = ("README.md", "docs/bits-and-machines.md", "docs/more-to-run.md")
    readme = words(" ".join((root / page).read_text(encoding="utf-8") for page in pages))
    rows = [line.split("|")[1:3] for line in (root / "docs/promises.md").read_text(encoding="utf-8").splitlines()
            if line.startswith('| "')]
    wrong = [] if len(rows) >= 6 else [f"the table of promises has {len(rows)} rows that begin with a quotation"]
    for promise, tested in rows:
        for quotation in re.findall(r'"([^"]+)"', promise):
            if words(quotation) not in readme:
                wrong.append(f'neither the README nor a page beside it says: "{quotation}"')
        names = re.findall(r"`([^`]+)`", tested)
        wrong += [f"there is no test {name}" for name in names if not fnmatch.filter(tests, name)]
        if not names:
            wrong.append(f"no test is named for: {promise.strip()}")
    for each in wrong:
        print(f"docs/promises.md: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
