"""The file of a notebook: how it is written, which cells it has, and what tells two outputs apart."""

import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks/make"))
import notebook_file as nf  # noqa: E402


def code(*tags, outputs=()):
    return {"cell_type": "code", "id": "c", "metadata": {"tags": list(tags)} if tags else {}, "outputs": list(outputs),
            "execution_count": None, "source": []}


class NotebookFile(unittest.TestCase):
    def test_it_is_written_as_jupyter_does_and_read_back(self):
        notebook = {"nbformat": 4, "cells": [], "metadata": {"b": "×", "a": 1}}
        text = nf.as_jupyter_writes(notebook)
        self.assertEqual(text, '{\n "cells": [],\n "metadata": {\n  "a": 1,\n  "b": "×"\n },\n "nbformat": 4\n}\n')
        with TemporaryDirectory() as folder:
            path = Path(folder) / "n.ipynb"
            path.write_text(text, encoding="utf-8")
            self.assertEqual(nf.read(path), notebook)

    def test_outputs_come_and_go(self):
        prose = {"cell_type": "markdown", "metadata": {}}
        notebook = {"cells": [code(), prose, code(), code()]}
        shown = nf.shown({"text/html": "<pre>\n</pre>", "text/plain": "x"})
        self.assertEqual(shown, {"data": {"text/html": ["<pre>\n", "</pre>"], "text/plain": ["x"]}, "metadata": {},
                                 "output_type": "display_data"})
        said = nf.stream("a\nb")
        self.assertEqual(said, {"name": "stdout", "output_type": "stream", "text": ["a\n", "b"]})
        self.assertIs(nf.with_outputs(notebook, [[said], [], [shown, said]]), notebook)
        cells = nf.code_cells(notebook)
        self.assertEqual([(cell["execution_count"], cell["outputs"]) for cell in cells], [(1, [said]), (2, []), (3, [shown, said])])
        self.assertEqual(nf.without_outputs(notebook), {"cells": [code(), prose, code(), code()]})


if __name__ == "__main__":
    unittest.main()
