"""Files that are there whole or not at all: until it is whole, a file has a provisional name, which goes when the writing fails."""

import os
import stat


def write_whole(path, text):
    """Writes a text, as UTF-8, in place of what is at the path; a link is followed, and permissions stay as they are."""
    path = os.path.realpath(path)
    beside = os.path.join(os.path.dirname(path), f".muonwalk-{os.getpid()}-0.partial")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666), "wb") as out:
            if os.path.exists(path):
                os.fchmod(out.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            out.write(text.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, path)
    except BaseException:
        if os.path.lexists(beside):
            os.unlink(beside)
        raise
