#!/usr/bin/env python3
"""No two headers define types of one name in one namespace: the linker would take one of them for both, without a word.

    names_test.py SOURCE            looks through the headers of src and sim
    names_test.py SOURCE --plant    plants such a pair in a copy of two of them, and has to find it
"""

import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

_NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
_END = re.compile(r"^\}  // namespace ")
# At the beginning of a line, so not within another type; with a body, so no declaration of one that is elsewhere.
_TYPE = re.compile(r"^(?:template .*> )?(?:struct|class|enum class|enum|union) (?:alignas\([^)]*\) )?(\w+)(?: final)?(?: : [^;{]*)? ?\{")


def defined_types(headers):
    """{qualified name: [header, …]}"""
    found = defaultdict(list)
    for header in headers:
        namespaces = []
        for line in header.read_text(encoding="utf-8").splitlines():
            if opened := _NAMESPACE.match(line):
                namespaces.append(opened.group(1))
            elif _END.match(line) and namespaces:
                namespaces.pop()
            elif defined := _TYPE.match(line):
                found["::".join([*namespaces, defined.group(1)])].append(header)
    return found


def faults(folders):
    headers = sorted(header for folder in folders for header in folder.rglob("*.hpp"))
    types = defined_types(headers)
    for name, where in types.items():
        if len(where) > 1:
            yield f"{name} is defined in {' and in '.join(str(header) for header in where)}; one of them needs another name"
    if not types:
        yield "no type was found in any header"


def main():
    source = Path(sys.argv[1]).resolve()
    if "--plant" in sys.argv:
        with tempfile.TemporaryDirectory() as scratch:
            for room, text in (("a", "struct Pair {\n  int one;\n};"), ("b", "class Pair : public Base {\n};")):
                folder = Path(scratch) / room
                folder.mkdir()
                (folder / "pair.hpp").write_text(f"namespace planted {{\nstruct Only;\n{text}\n}}  // namespace planted\n")
            found = list(faults([Path(scratch)]))
        print("\n".join(found))
        return 0 if len(found) == 1 and found[0].startswith("planted::Pair is defined in") else 1
    wrong = list(faults([source / "src", source / "sim"]))
    print("\n".join(f"FAILED  {each}" for each in wrong) or "no name has two types")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
