#!/usr/bin/env python3
"""No two headers define types of one name in one namespace: the linker would take one of them for both, without a word.

    names_test.py SOURCE
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
    with tempfile.TemporaryDirectory() as scratch:  # a check that can't fail is a defect
        for room, text in (("a", "struct Pair {\n  int one;\n};"), ("b", "class Pair : public Base {\n};")):
            (Path(scratch) / f"{room}.hpp").write_text(f"namespace planted {{\nstruct Only;\n{text}\n}}  // namespace planted\n")
        planted = list(faults([Path(scratch)]))
    source = Path(sys.argv[1]).resolve()
    wrong = list(faults([source / "src", source / "sim", source / "tools"]))
    if len(planted) != 1 or not planted[0].startswith("planted::Pair is defined in"):
        wrong.append(f"what is planted is found as {planted}")
    print("\n".join(f"FAILED  {each}" for each in wrong) or "no name has two types")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
