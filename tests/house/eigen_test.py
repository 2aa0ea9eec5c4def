#!/usr/bin/env python3
"""One set of flags for all files that include Eigen, and no shared code from files that are compiled for one processor.

    eigen_test.py SOURCE BUILD

Instances of Eigen's templates are merged when a program is linked, and so is every inline function that two files bring. So
every file that can find Eigen has the options of cmake/eigen_files.cmake, no other finds it. One is compiled for another
processor, in a namespace of its own: its object file, and those of the chain's kernels, bring no function that the linker
could give to others.
"""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
faults = []


def check(holds, sentence):
    if not holds:
        faults.append(sentence)


def finds_eigen(words, folder):
    """Does a compiler with these words find Eigen?"""
    probe = [word for word in words if word not in ("-MD", "-c")]
    for option in ("-o", "-MT", "-MF"):
        if option in probe:
            at = probe.index(option)
            del probe[at : at + 2]
    if probe[0].endswith("ccache"):
        del probe[0]
    return subprocess.run([*probe[:-1], "-E", "-x", "c++", "-"], input="#include <Eigen/Core>\n", text=True, cwd=folder,
                          capture_output=True).returncode == 0


def target_of(words):
    """What decides which instructions a file is compiled to: the last -march, and all other -m options."""
    march = [word for word in words if word.startswith("-march")][-1:]
    return tuple(march + sorted(word for word in words if word.startswith("-m") and not word.startswith("-march")))


commands = [(Path(entry["file"]), shlex.split(entry["command"]), entry["directory"])
            for entry in json.loads((BUILD / "compile_commands.json").read_text())]
includes_eigen = re.compile(r'#include (<Eigen/|"src/numerics/eigen_view.hpp")')
kernels, users, others = [], [], {}
for path, words, folder in commands:
    if path.name.startswith("chain_kernel_") or path.name == "newton_schulz_eigen_avx512.cpp":
        kernels.append((path, words, folder))
    elif SOURCE in path.parents and BUILD not in path.parents and path.exists():
        if includes_eigen.search(path.read_text()):
            users.append((path, words, folder))
        else:
            others.setdefault(path.parent, (path, words, folder))

check(len(users) >= 2, "no file includes Eigen: this test looks for the wrong words")
check(len({target_of(words) for _, words, _ in users}) == 1,
      "files that include Eigen are compiled for different processors: "
      + ", ".join(f"{path.name} {' '.join(target_of(words))}" for path, words, _ in users))
check(not any("avx512" in option for _, words, _ in users for option in target_of(words)),
      "Eigen is compiled for more than AVX2 and FMA")
for path, words, folder in users:
    check("-DEIGEN_DONT_PARALLELIZE" in words, f"{path.name} includes Eigen without EIGEN_DONT_PARALLELIZE")
    check(finds_eigen(words, folder), f"{path.name} does not find Eigen: this test asks wrongly")
for path, words, folder in others.values():
    check(not finds_eigen(words, folder), f"{path.name} finds Eigen without eigen_files()")
for header in [*SOURCE.glob("src/**/*.hpp"), *SOURCE.glob("sim/**/*.hpp"), *SOURCE.glob("tests/**/*.hpp")]:
    check(header.name == "eigen_view.hpp" or not includes_eigen.search(header.read_text()),
          f"{header.name} includes Eigen for whoever includes it; .cpp files do that")

check(len(kernels) >= 3, "there is no code for one kind of processor")
for path, words, folder in kernels:
    object_file = Path(folder) / words[words.index("-o") + 1]
    if "-fsanitize" in " ".join(words) and "chain" in path.name or not object_file.exists():
        continue  # a sanitizer brings weak symbols of its own
    symbols = subprocess.run(["nm", "-C", object_file], capture_output=True, text=True, check=True).stdout
    for line in symbols.splitlines():
        check(not re.search(r" [VWu] ", line) or "DW.ref" in line or "Eigen_avx512::" in line,
              f"{path.name} brings a shared function: {line.strip()}")

for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
