#!/usr/bin/env python3
"""The arrows between rooms: what a room sees is what it uses, nothing sees back, and an include against an arrow does not build.

    arrows_test.py SOURCE BUILD room...

Every room is asked with the compiler's own command line, as the build has it, which headers of other rooms it would find.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
ROOMS = [target.removeprefix("muonwalk_") for target in sys.argv[3:]]
faults = []


def check(holds, sentence):
    if not holds:
        faults.append(sentence)


def folder(room):
    """Where the room lies: the folder that its window shows."""
    shown = [path for path in (BUILD / "windows" / room).glob("*/*")]
    assert len(shown) == 1, f"the window of {room} shows {shown}"
    return shown[0].parent.name + "/" + room


def commands():
    """A compiler's command line for each room, without the file that it compiles."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = Path(entry["file"]).resolve()
        if SOURCE not in path.parents:
            continue
        parts = path.relative_to(SOURCE).parts
        if len(parts) > 2 and parts[1] not in found and f"/windows/{parts[1]} " in entry["command"]:
            words = shlex.split(entry["command"])
            cut = {words.index("-o"), words.index("-o") + 1, words.index("-c"), words.index("-c") + 1}
            found[parts[1]] = [word for i, word in enumerate(words) if i not in cut and not word.startswith("-M")]
            # -MT and -MF bring a word of their own.
            found[parts[1]] = [word for word in found[parts[1]] if not word.endswith((".o", ".o.d"))]
    return found


def compiles(command, text):
    done = subprocess.run(command + ["-E", "-x", "c++", "-"], input=text, cwd=BUILD, capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def a_header(room):
    headers = sorted((SOURCE / folder(room)).glob("*.hpp"))
    return f"{folder(room)}/{headers[0].name}" if headers else None


headers = {room: a_header(room) for room in ROOMS}
command = commands()
check(set(command) == set(ROOMS), f"rooms without a compiled file: {sorted(set(ROOMS) - set(command))}")

# What each room finds.
sees = {}
for room in command:
    lines = [f'#if __has_include("{header}")\n// finds\nfinds_{other}\n#endif' for other, header in headers.items() if header]
    done = subprocess.run(command[room] + ["-E", "-P", "-x", "c++", "-"], input="\n".join(lines), cwd=BUILD,
                          capture_output=True, text=True, check=True)
    sees[room] = {word.removeprefix("finds_") for word in done.stdout.split() if word.startswith("finds_")}
    check(room in sees[room], f"{room} does not find its own headers")

for room in sees:
    for other in sees[room] - {room}:
        check(room not in sees.get(other, set()), f"{room} and {other} see each other: a circle")
    if folder(room).startswith("src/"):
        for other in sees[room]:
            check(folder(other).startswith("src/"), f"{room} of src sees {other} of sim")

# An include with the arrow builds; the same against it does not.
for inner, outer in (("layout", "optim"), ("comm", "transport"), ("recording", "world"), ("world", "cluster"), ("cluster", "analyser")):
    check(inner in sees and outer in sees, f"there is no room {inner} or {outer}: name others in this test")
    if inner not in sees or outer not in sees:
        continue
    works, _ = compiles(command[inner], f'#include "{headers[inner]}"\n')
    check(works, f"a file of {inner} that includes {headers[inner]} does not build")
    works, words = compiles(command[inner], f'#include "{headers[outer]}"\n')
    check(not works, f"a file of {inner} that includes {headers[outer]} builds")
    check("No such file" in words or "not found" in words, f"it fails for another reason: {words}")

for fault in faults:
    print(f"FAILED  {fault}")
print(f"{len(sees)} rooms, {sum(len(found) - 1 for found in sees.values())} arrows, {len(faults)} faults")
sys.exit(1 if faults else 0)
