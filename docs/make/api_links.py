"""Links the names in a lesson's code to their pages of the API reference, where Doxygen did not: it knows nothing of a
`using namespace` that stands in another block of code. The names come from the tag file that Doxygen writes."""

import html
import re
import xml.etree.ElementTree as ElementTree

# Members that the standard library's containers have as well: `x.size()` says nothing of what x is.
_COMMON = {"size", "empty", "begin", "end", "data", "clear", "insert", "front", "back", "at", "get", "add", "name", "text"}
_TOKEN = re.compile(r"(<a\b.*?</a>|<span class=\"(?:comment|stringliteral|preprocessor)\">.*?</span>|<[^>]*>|&\w+;|[A-Za-z_]\w*)",
                    re.DOTALL)
# Of a function and a constant with one name, in two namespaces, Doxygen links to the constant; but what is called is the function.
_CALLED_VARIABLE = re.compile(r'(?<![.>;])<a class="code hl_variable"[^>]*>(\w+)</a>(?=\()')


class ApiLinks:
    def __init__(self, tag_file):
        self._names = {}     # of the namespaces: functions, types, constants
        self._members = {}   # of classes
        for compound in ElementTree.parse(tag_file).getroot().iter("compound"):
            if compound.get("kind") in ("class", "struct") and "<" not in compound.findtext("name"):
                self._add(self._names, compound.findtext("name").split("::")[-1], compound.findtext("filename"))
            if compound.get("kind") not in ("class", "struct", "namespace"):
                continue
            for member in compound.iter("member"):
                target = f'{member.findtext("anchorfile")}#{member.findtext("anchor")}'
                table = self._names if compound.get("kind") == "namespace" else self._members
                self._add(table, member.findtext("name"), target)

    @staticmethod
    def _add(table, name, target):
        table.setdefault(name, []).append(target)

    def link(self, code, own_names):
        """`code` is HTML, `own_names` are declared by the lesson itself and mean nothing of the library."""
        parts = _TOKEN.split(_CALLED_VARIABLE.sub(r"\1", code))
        for at in range(1, len(parts), 2):
            name = parts[at]
            if not re.match(r"[A-Za-z_]", name) or name in own_names:
                continue
            target = self._target(name, "".join(parts[max(0, at - 3):at]), parts[at + 1])
            if target:
                parts[at] = f'<a class="code" href="{html.escape(target)}">{name}</a>'
        return "".join(parts)

    def _target(self, name, before, after):
        called = after.startswith("(") or after.startswith("&lt;")
        if before.endswith((".", "-&gt;")):
            # A member that several classes have is left alone: the code does not say whose it is.
            classes = {target.split("#")[0] for target in self._members.get(name, ())}
            return self._members[name][0] if called and name not in _COMMON and len(classes) == 1 else None
        if before.endswith("::") or name not in self._names:
            return None
        is_type = name[0].isupper()
        return self._names[name][0] if called or is_type else None
