#!/usr/bin/env python3
"""Executes notebooks cell by cell with clang-repl, as a kernel would, and stops at the first cell that fails.

    notebooks/make/run_notebook.py [--interpreter clang-repl-19] [--library libmuonwalk.so] [--limit SECONDS] [--quiet] [--once]
                          [--keep | --compare] [--may-skip] NOTEBOOK...

After its last cell, a notebook is run again from the cell that begins the lesson, with other options: all cells but those that
are marked as to be run once. --keep writes what the cells put out into the notebook; --compare holds it against what is kept
there, which does as --keep with BLESS=1 in the environment.

Exit code 0: every cell of every notebook ran. 1: a cell did not, or put out something other than what is kept; what the notebook
printed is shown up to there. 2: nothing can be run as asked (no interpreter, no library, no such notebook). 77: with
--may-skip, there is no interpreter.

clang-repl ends with code 0 whatever happens in it, and raw input of several lines leaves it waiting on an open brace. So
each cell is written to a file of its own and included; after each, a marker has to come back on standard output and on
standard error; and a cell has failed when an error stands on standard error, when no marker comes back in time, or when the
interpreter is dead.
"""

import argparse
import codecs
import json
import os
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "sim/classroom"))
import notebook_file  # noqa: E402
from whole_file import write_whole  # noqa: E402
DISPLAY = ROOT / "notebooks/make/clang_repl"  # a stand-in for what a kernel shows HTML with
SHOWN = "@@ display "                    # how its lines begin
DEFAULT_LIMIT = 120  # seconds per cell: against hanging, not for measuring
AFTER_AN_ERROR = 5   # seconds: some errors leave the interpreter unable to do anything more, also to reach the marker

# What the compiler inside the interpreter says begins with a place or with nothing; a lesson's own words never look like it.
ERROR = re.compile(r"^(?:.*?:\d+:\d+: )?(?:fatal )?error: |^JIT session error: |^LLVM ERROR: ", re.MULTILINE)


def visible(text):
    """Control characters, with which a terminal can be made to do things, as letters."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def say(text, file=None):
    print(visible(text), file=file)


class CellFailed(Exception):
    """A cell that did not run: why, in a sentence, and what it printed on standard output and on standard error."""

    def __init__(self, why, output="", errors=""):
        super().__init__(why)
        self.output, self.errors = output, errors


class Interpreter:
    """A clang-repl that executes one cell after the other."""

    def __init__(self, command, folder, environment, include_folders):
        self.folder = Path(folder)
        self.cells = 0
        self.process = subprocess.Popen(
            [command, "-Xcc=-std=c++17", *(f"-Xcc=-I{path}" for path in include_folders)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        self.streams = {self.process.stdout: "", self.process.stderr: ""}
        # What is read at once may end within a letter.
        self.decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in self.streams}
        self.selector = selectors.DefaultSelector()
        for stream in self.streams:
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ)

    def run(self, source, limit):
        """Executes a cell. Returns what it printed on standard output and on standard error; throws CellFailed."""
        self.cells += 1
        marker = f"@@ end of cell {self.cells} @@"
        cell = self.folder / f"cell_{self.cells:02}.cpp"
        cell.write_text(source + "\n", encoding="utf-8")
        end = self.folder / f"end_of_cell_{self.cells:02}.cpp"
        # Streams of C and C++ may hold words back; what the marker is written with does not.
        end.write_text('extern "C" long write(int, const void*, unsigned long);\n'
                       f'for (int file = 1; file <= 2; ++file) write(file, "{marker}\\n", {len(marker) + 1});\n',
                       encoding="utf-8")
        self._send(f'#include "{cell}"\n#include "{end}"\n')
        output, errors = self._read_to(marker, limit)
        if ERROR.search(errors):
            raise CellFailed("an error", output, errors)
        return output, errors

    def _send(self, text):
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the interpreter is dead, which reading will tell

    def _read_to(self, marker, limit):
        """What both streams say before the marker."""
        deadline = time.monotonic() + limit
        pending = set(self.streams)
        while pending:
            left = deadline - time.monotonic()
            ready = [key.fileobj for key, _ in self.selector.select(max(0, left))] if left > 0 else []
            if not ready:
                self.process.kill()
                said = self._take_all()
                raise CellFailed("an error" if ERROR.search(said[1]) else f"no end after {limit:g} seconds", *said)
            for stream in ready:
                read = stream.read()
                if read is None:
                    continue
                if not read:
                    # A stream that has ended: the interpreter is gone, and what the other stream still has is all there is.
                    self.selector.unregister(stream)
                    if len(self.selector.get_map()) == 0:
                        raise CellFailed(self._death(), *self._take_all())
                else:
                    self.streams[stream] += self.decoders[stream].decode(read)
                if marker in self.streams[stream]:
                    pending.discard(stream)
            if ERROR.search(self.streams[self.process.stderr]):
                deadline = min(deadline, time.monotonic() + AFTER_AN_ERROR)
        said = []
        for stream in self.streams:
            before, _, after = self.streams[stream].partition(marker)
            said.append(before.strip("\n"))
            self.streams[stream] = after
        return said

    def _take_all(self):
        return [text.strip("\n") for text in self.streams.values()]

    def _death(self):
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            return "the interpreter has closed its output"
        return f"the interpreter died of signal {-code}" if code < 0 else f"the interpreter ended with code {code}"

    def close(self, limit):
        """Ends the session as a reader does. Returns what was still printed; throws CellFailed when it does not end well."""
        self._send("%quit\n")
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            output, errors = self._drain(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise CellFailed(f"the interpreter does not end: it was given {limit:g} seconds") from None
        if self.process.returncode != 0:
            raise CellFailed(self._death() + " when it was asked to quit", output, errors)
        return output.strip("\n"), errors.strip("\n")

    def _drain(self, limit):
        self.process.wait(limit)
        return [decoder.decode(stream.read() or b"", final=True) for stream, decoder in self.decoders.items()]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, *self.streams):
            try:
                stream.close()
            except BrokenPipeError:
                pass
        self.selector.close()


def code_cells(path):
    """The code cells of a notebook as (id, source)."""
    return [(cell.get("id", "?"), "".join(cell["source"])) for cell in notebook_file.code_cells(notebook_file.read(Path(path)))]


def cells_again(notebook):
    """The cells of a second run, (id, source): from the one that begins the lesson on, which gets other options."""
    cells = notebook_file.code_cells(notebook)
    first = next((at for at, cell in enumerate(cells) if notebook_file.begins_lesson(cell)), len(cells))
    for at, cell in enumerate(cells[first:]):
        source = "".join(cell["source"])
        if at == 0:
            other = cell["metadata"].get("again", "")
            source, changed = re.subn(r'(nb::options\(info, .*, ")([^"]*)("\)\);)',
                                      lambda found: f"{found[1]}{f'{found[2]} {other}'.strip()}{found[3]}", source)
            if changed != 1:
                raise CellFailed(f"cell {cell['id']}: no place for other options in it")
        if not notebook_file.is_once(cell):
            yield cell["id"], source


def outputs_of(printed):
    """What a cell printed on standard output, as notebooks keep it: text, and what is shown as HTML."""
    outputs, text = [], ""
    for line in printed.split("\n") if printed else ():
        if line.startswith(SHOWN):
            if text:
                outputs.append(notebook_file.stream(text))
            try:
                outputs.append(notebook_file.shown(json.loads(line[len(SHOWN):])))
            except (ValueError, AttributeError, RecursionError):
                raise CellFailed(f"{SHOWN.strip()!r} is how HTML is shown, and what comes after it is none") from None
            text = ""
        else:
            text += line + "\n"
    return outputs + ([notebook_file.stream(text)] if text else [])


def run_notebook(path, command, environment, limit=DEFAULT_LIMIT, say=say, again=True):
    """Executes a notebook and tells what its cells print through `say`; throws CellFailed at the first cell that fails.
    Returns what each code cell put out in the first run, as notebooks keep it."""
    notebook, outputs = notebook_file.read(path), []
    # As in Jupyter, what a cell includes is looked for beside the notebook; the project's root comes from the environment.
    with tempfile.TemporaryDirectory(prefix="muonwalk_notebook_") as folder:
        interpreter = Interpreter(command, folder, environment, [Path(path).resolve().parent, DISPLAY])

        def execute(name, source, which):
            try:
                printed, aside = interpreter.run(source, limit)
            except CellFailed as failure:
                raise CellFailed(f"cell {name}{which}: {failure}", failure.output, failure.errors) from None
            for text in (printed, aside):
                if text:
                    say("\n".join(line[:200] if line.startswith(SHOWN) else line for line in text.split("\n")))
            return printed

        try:
            for cell in notebook_file.code_cells(notebook):
                name, source = cell.get("id", "?"), "".join(cell["source"])
                printed = execute(name, source, "")
                try:
                    outputs.append(outputs_of(printed))
                except CellFailed as failure:
                    raise CellFailed(f"cell {name}: {failure}") from None
            for name, source in cells_again(notebook) if again else ():
                execute(name, source, " of the second run")
            for text in interpreter.close(limit):
                if text:
                    say(text)
        finally:
            interpreter.kill()
    return outputs


def compare(path, outputs):
    """Throws CellFailed at the first cell that does not put out what it is kept with."""
    for cell, fresh in zip(notebook_file.code_cells(notebook_file.read(path)), outputs):
        if difference := notebook_file.first_difference(cell["outputs"], fresh):
            raise CellFailed(f"cell {cell['id']} does not put out what is kept: {difference}\n    ./walk notebooks keeps what "
                             "it puts out now")


def keep(path, outputs):
    write_whole(path, notebook_file.as_jupyter_writes(notebook_file.with_outputs(notebook_file.read(path), outputs)))


def environment_for(library):
    """What ./walk jupyter does for a reader, and nothing that would change how the lesson prints."""
    environment = dict(os.environ)
    before = environment.get("CPLUS_INCLUDE_PATH", "")
    environment["CPLUS_INCLUDE_PATH"] = f"{ROOT}:{before}" if before else str(ROOT)
    environment["MUONWALK_ASIDES_APART"] = "1"  # what is measured is not compared
    if library is not None:
        environment["MUONWALK_LIBRARY"] = str(library)
    return environment


def main():
    parser = argparse.ArgumentParser(description="Executes notebooks cell by cell with clang-repl.")
    parser.add_argument("--interpreter", default="clang-repl-19", help="the clang-repl to use (default: clang-repl-19)")
    parser.add_argument("--library", type=Path, help="Muonwalk's shared library (default: the one in build/lib)")
    parser.add_argument("--limit", type=float, default=DEFAULT_LIMIT, help="seconds that a cell may take (default: %(default)g)")
    parser.add_argument("--quiet", action="store_true", help="show what a notebook prints only when it fails")
    parser.add_argument("--once", action="store_true", help="no second run with other options")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--keep", action="store_true", help="write what the cells put out into the notebook")
    what.add_argument("--compare", action="store_true", help="what the cells put out has to be what is kept in the notebook")
    parser.add_argument("--may-skip", action="store_true", help="exit with 77, as a skipped test does, without an interpreter")
    parser.add_argument("notebooks", nargs="+", type=Path)
    options = parser.parse_args()

    def refuse(sentence):
        say(f"run_notebook: {sentence}", sys.stderr)
        sys.exit(2)

    if shutil.which(options.interpreter) is None:
        missing = (f"there is no {options.interpreter} here; install Debian's clang-tools-19, or name another one with "
                   "--interpreter")
        if options.may_skip:
            print(f"skipped: {missing}")
            sys.exit(77)
        refuse(missing)
    if options.library is not None and not options.library.is_file():
        refuse(f"--library {options.library} is not a file; build it with ./walk notebooks --library")
    for path in options.notebooks:
        if not path.is_file():
            refuse(f"{path} is not a notebook; notebooks/make/make_notebooks.py makes those of the lessons")
        try:
            notebook_file.read(path)
        except notebook_file.Malformed as malformed:
            refuse(f"{malformed}; notebooks/make/make_notebooks.py makes those of the lessons")

    failed = 0
    for path in options.notebooks:
        said = []
        begin = time.monotonic()
        try:
            outputs = run_notebook(path, options.interpreter, environment_for(options.library), options.limit,
                                   said.append if options.quiet else say, not options.once)
            if options.keep or options.compare and os.environ.get("BLESS") == "1":
                keep(path, outputs)
            elif options.compare:
                compare(path, outputs)
            say(f"{path.stem}: ran from top to bottom in {time.monotonic() - begin:.1f} s")
        except CellFailed as failure:
            failed += 1
            for text in (*said, failure.output, failure.errors):
                if text:
                    say(text)
            say(f"{path.stem}: FAILED in {failure}")
    print(f"{len(options.notebooks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
