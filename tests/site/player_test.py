#!/usr/bin/env python3
"""Tests of docs/player in a real browser, with recordings that the lessons write and others that are made by hand.

    player_test.py PLAYER_DIR BUILD_BIN [TestClass[.test]...]

The tests stand in player_*_test.py beside this file.
"""

import importlib
import sys
import tempfile
import unittest
from pathlib import Path

from headless_browser import headless_browser
from player_page import PLACE

HERE = Path(__file__).resolve().parent


def suite(names):
    """All tests, or those that are named."""
    modules = [importlib.import_module(path.stem) for path in sorted(HERE.glob("player_*_test.py"))]
    classes = {name: its_class for module in modules for name, its_class in vars(module).items()
               if isinstance(its_class, type) and its_class.__module__ == module.__name__ and issubclass(its_class, unittest.TestCase)}
    loader = unittest.TestLoader()
    if not names:
        return unittest.TestSuite(loader.loadTestsFromTestCase(its_class) for its_class in classes.values())
    tests = [name.partition(".") for name in names]
    return unittest.TestSuite(classes[name](test) if test else loader.loadTestsFromTestCase(classes[name]) for name, _, test in tests)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    PLACE["player"], PLACE["bin"] = (Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder, headless_browser() as browser:
        PLACE["folder"], PLACE["browser"] = Path(folder), browser
        result = unittest.TextTestRunner(verbosity=1).run(suite(sys.argv[3:]))
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
