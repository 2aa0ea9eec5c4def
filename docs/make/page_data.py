"""Data that a page carries for its scripts."""

import json


def script_json(identifier, value):
    """JSON in a script element. "<" is escaped, so that nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{text}</script>'
