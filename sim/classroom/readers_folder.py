"""The folder try/: the reader's files, and what is known of them."""

import hashlib
import json
import os
from pathlib import Path

from exercises import Broken, Refused
from whole_file import write_whole


def require_file(path, shown):
    """Refuses what is not a file: nobody knows what opening it does, and a pipe would be waited for."""
    if not path.is_file():
        raise Refused(f"{shown} is not a file{'' if os.path.lexists(path) else ', and nothing else either'}; name one that holds C++")


class ReadersFolder:
    """The folder try/: the reader's files, and in .progress.json what was solved and how many hints were shown."""

    def __init__(self, folder):
        self.folder = folder
        self.state_file = folder / ".progress.json"
        try:
            known = json.loads(self.state_file.read_text(encoding="utf-8")) if self.state_file.is_file() else {}
        except (OSError, ValueError, RecursionError):
            known = {}
        self.state = known if isinstance(known, dict) else {}

    def path(self, exercise):
        return self.folder / exercise.file_name

    def shown(self, path):
        """The path as the reader types it."""
        try:
            return str(path.relative_to(Path.cwd()))
        except ValueError:
            return str(path)

    def of(self, exercise):
        known = self.state.get(exercise.number)
        return known if isinstance(known, dict) else {}

    def note(self, exercise, **what):
        if os.path.lexists(self.state_file) and (self.state_file.is_symlink() or not self.state_file.is_file()):
            raise Broken(f"{self.shown(self.state_file)}, which keeps what was solved, is not a plain file; move it away")
        self.state[exercise.number] = {**self.of(exercise), **what}
        self.write(self.state_file, json.dumps(self.state, indent=1, sort_keys=True) + "\n")

    def write(self, path, text):
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            raise Broken(f"{self.shown(path)} can't be written: {error.strerror}; make {self.shown(self.folder)} a folder "
                         "that you can write to") from error

    def put_in_place(self, exercise):
        """True when the file was not there."""
        path = self.path(exercise)
        if path.exists():
            require_file(path, self.shown(path))
            return False
        self.write(path, exercise.code("stub.cpp"))
        return True

    def put_aside(self, exercise):
        """Renames what the reader wrote; returns the new path, or None where there was nothing but the stub."""
        path = self.path(exercise)
        if not path.exists():
            return None
        if path.is_file() and path.read_bytes() == exercise.code("stub.cpp").encode():
            return None
        number = 1
        while (aside := path.with_name(f"{path.stem}.{number}.cpp")).exists():
            number += 1
        try:
            os.rename(path, aside)
        except OSError as error:
            raise Broken(f"{self.shown(path)} can't be renamed to {aside.name}: {error.strerror}") from error
        return aside

    def digest(self, exercise):
        path = self.path(exercise)
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        except OSError:
            return None

    def standing(self, exercise):
        """"solved", "solved before, changed since", "begun", or "" where there is no file yet."""
        digest, solved = self.digest(exercise), self.of(exercise).get("solved")
        if digest is None:
            return ""
        if solved:
            return "solved ✔" if solved == digest else "solved before, changed since"
        return "" if self.path(exercise).read_bytes() == exercise.code("stub.cpp").encode() else "begun"
