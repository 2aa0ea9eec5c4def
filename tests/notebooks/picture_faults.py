"""What a picture in a notebook has to be, so that a reader can see it, or have it read aloud."""

import xml.etree.ElementTree as ElementTree

_SVG = "{http://www.w3.org/2000/svg}"


def fault_of_picture(data):
    """Why an output is not such a picture, as a sentence; empty when it is one."""
    try:
        root = ElementTree.fromstring("".join(data["image/svg+xml"]))
    except ElementTree.ParseError as error:
        return f"its SVG is not well-formed ({error})"
    if root.tag not in ("svg", f"{_SVG}svg"):
        return f"it is not an SVG but {root.tag}"
    title = root.find(f"{_SVG}title") if root.tag.startswith(_SVG) else root.find("title")
    if title is None or not (title.text or "").strip():
        return "its SVG has no title"
    return "" if "".join(data.get("text/plain", "")).strip() else "it has no words beside it"
