"""The file of a notebook: how it is written, which cells it has, and what tells two outputs apart."""

import json
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
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

    def test_cells_and_their_tags(self):
        prose = {"cell_type": "markdown", "metadata": {}}
        once, begin, plain = code("once"), code("x", "begin"), code()
        self.assertEqual(nf.code_cells({"cells": [prose, once, prose, begin, plain]}), [once, begin, plain])
        self.assertEqual([nf.is_once(cell) for cell in (once, begin, plain)], [True, False, False])
        self.assertEqual([nf.begins_lesson(cell) for cell in (once, begin, plain)], [False, True, False])

    def test_outputs_come_and_go(self):
        prose = {"cell_type": "markdown", "metadata": {}}
        notebook = {"cells": [code(), prose, code(), code()]}
        shown = nf.picture({"image/svg+xml": "<svg>\n</svg>", "text/plain": "x"})
        self.assertEqual(shown, {"data": {"image/svg+xml": ["<svg>\n", "</svg>"], "text/plain": ["x"]}, "metadata": {},
                                 "output_type": "display_data"})
        said = nf.stream("a\nb")
        self.assertEqual(said, {"name": "stdout", "output_type": "stream", "text": ["a\n", "b"]})
        self.assertIs(nf.with_outputs(notebook, [[said], [], [shown, said]]), notebook)
        cells = nf.code_cells(notebook)
        self.assertEqual([(cell["execution_count"], cell["outputs"]) for cell in cells], [(1, [said]), (2, []), (3, [shown, said])])
        self.assertEqual(nf.without_outputs(notebook), {"cells": [code(), prose, code(), code()]})

    def test_the_first_difference(self):
        first, second = nf.stream("one\ntwo\nthree\n"), nf.stream("four\n")
        in_one_piece = {"name": "stdout", "output_type": "stream", "text": "one\ntwo\nthree\n"}
        self.assertEqual(nf.first_difference([first, second], [in_one_piece, second]), "")
        self.assertEqual(nf.first_difference([], []), "")
        self.assertEqual(nf.first_difference([first, second], [first, nf.stream("five\n")]),
                         "output 2, line 1\n    is kept as four\n    and is now five")
        self.assertEqual(nf.first_difference([first], [nf.stream("one\n2\nthree\n")]),
                         "output 1, line 2\n    is kept as two\n    and is now 2")
        self.assertEqual(nf.first_difference([first], [nf.stream("one\ntwo")]),
                         "output 1, line 3\n    is kept as three\n    and is now (no such line)")
        self.assertEqual(nf.first_difference([nf.stream("one")], [nf.stream("one\ntwo")]),
                         "output 1, line 2\n    is kept as (no such line)\n    and is now two")
        self.assertEqual(nf.first_difference([first], [first, second]), "1 outputs are kept, and it has 2")
        self.assertEqual(nf.first_difference([first, second], []), "2 outputs are kept, and it has 0")
        shown, other = nf.picture({"image/svg+xml": "<svg>\n1</svg>"}), nf.picture({"image/svg+xml": "<svg>\n2</svg>"})
        self.assertEqual(nf.first_difference([shown], [shown]), "")
        self.assertEqual(nf.first_difference([shown], [other]), "output 1, line 2\n    is kept as 1</svg>\n    and is now 2</svg>")
        self.assertTrue(nf.first_difference([shown], [first]).startswith("output 1, line 1\n    is kept as <svg>\n    and is now one"))
        wide = nf.first_difference([nf.stream("x" * 300)], [nf.stream("y" * 300)])
        self.assertEqual(wide, f"output 1, line 1\n    is kept as {'x' * 200}\n    and is now {'y' * 200}")
        warned = {"name": "stderr", "output_type": "stream", "text": "four\n"}
        self.assertNotEqual(nf.first_difference([second], [warned]), "")
        self.assertEqual(json.loads(nf.as_jupyter_writes({"cells": [warned]})), {"cells": [warned]})


if __name__ == "__main__":
    unittest.main()
