"""Files that are there whole or not at all, as src/io/file_beside.hpp writes them: until it is whole, a file has no name
where the file system knows such files, and elsewhere a provisional one, which goes when the writing fails."""

import os
import stat


def write_whole(path, text):
    """Writes a text, as UTF-8, in place of what is at the path; a link is followed, and permissions stay as they are."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    beside = os.path.join(folder, f".muonwalk-{os.getpid()}-0.partial")
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = None
    file, unnamed = _open(folder, beside, 0o666 if mode is None else 0o600)
    named = not unnamed
    try:
        with os.fdopen(file, "wb") as out:
            if mode is not None:
                os.fchmod(file, mode)
            out.write(text.encode("utf-8"))
            out.flush()
            os.fsync(file)
            if unnamed and mode is None and _link(file, path):
                return
            if unnamed:
                named = True
                if not _link(file, beside):  # left by a process that had our number and was killed
                    os.unlink(beside)
                    _link(file, beside)
        os.replace(beside, path)
        named = False
    finally:
        if named and os.path.lexists(beside):
            os.unlink(beside)


def _open(folder, beside, mode):
    if hasattr(os, "O_TMPFILE") and os.environ.get("MUONWALK_UNNAMED_FILES") != "off":
        try:
            file = os.open(folder, os.O_WRONLY | os.O_TMPFILE, mode)
            if os.path.exists(f"/proc/self/fd/{file}"):
                return file, True
            os.close(file)
        except OSError:
            pass  # the file system has none; if it is something else, the next call says so
    return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), False


def _link(file, name):
    """False where the name is taken."""
    try:
        # Only with a folder to start from, which the path does not need, does Python ask the system to follow the link.
        os.link(f"/proc/self/fd/{file}", name, src_dir_fd=file, follow_symlinks=True)
        return True
    except FileExistsError:
        return False
