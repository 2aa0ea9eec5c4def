"""C++ as HTML with the classes that Doxygen gives it, for code that Doxygen does not show."""

import html
import re

_KEYWORDS = ("alignas auto class const constexpr enum explicit extern inline namespace noexcept operator override private protected "
             "public static static_assert struct template this typename using virtual volatile true false nullptr sizeof "
             "static_cast reinterpret_cast const_cast").split()
_FLOW = "break case catch continue default do else for goto if return switch throw try while".split()
_TYPES = "bool char double float int long short signed unsigned void".split()
_KIND = {**dict.fromkeys(_KEYWORDS, "keyword"), **dict.fromkeys(_FLOW, "keywordflow"), **dict.fromkeys(_TYPES, "keywordtype")}
_TOKEN = re.compile(r'(?P<comment>//.*)|(?P<stringliteral>"(?:\\.|[^"\\])*")|(?P<charliteral>\'(?:\\.|[^\'\\])+\')|(?P<word>[A-Za-z_]\w*)'
                    r"|(?P<other>\d[\w.']*|.)")


def highlighted(lines):
    """Lines of C++ as a fragment of Doxygen's."""
    def shown(line):
        parts = []
        for match in _TOKEN.finditer(line):
            kind = match.lastgroup
            kind = _KIND.get(match.group(), "") if kind == "word" else kind
            text = html.escape(match.group(), quote=False)
            parts.append(text if kind in ("", "other") else f'<span class="{kind}">{text}</span>')
        return "".join(parts) or " "

    return '<div class="fragment">' + "".join(f'<div class="line">{shown(line)}</div>\n' for line in lines) + "</div><!-- fragment -->"
