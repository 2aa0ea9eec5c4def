#!/usr/bin/env python3
"""What a reader does with a real kernel xcpp17 (xeus-cpp or xeus-cling), prepared as ./walk jupyter does it, over Jupyter's own
client: interrupts, options that a lesson refuses, and definitions that run again.

    real_kernel.py LIBRARY [unittest's words...]

Exit code 77: there is no Jupyter or no such kernel; a sentence says so. notebooks/README.md says how to get one.
"""

import os
import queue
import subprocess
import sys
import time
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "notebooks/make"), str(ROOT / "sim/classroom")]
import notebook_file  # noqa: E402
from kernel_spec import KERNEL, find_spec  # noqa: E402
from open_notebooks import OWN, prepare_kernel  # noqa: E402
from run_in_jupyter import what_is_missing  # noqa: E402

LIBRARY = Path(sys.argv.pop(1)).resolve()
LIMIT = 120  # seconds that a cell may take: against hanging


class Dead(AssertionError):
    """The kernel has ended."""


class RealKernel(unittest.TestCase):
    def setUp(self):
        scratch = TemporaryDirectory()  # where the kernel may leave its log
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        prepare_kernel(find_spec(OWN), self.folder)
        specs = KernelSpecManager(kernel_dirs=[str(self.folder / "kernels")])
        self.manager = KernelManager(kernel_name=KERNEL, kernel_spec_manager=specs)
        self.manager.start_kernel(env={**os.environ, "MUONWALK_LIBRARY": str(LIBRARY)}, cwd=scratch.name,
                                  stderr=subprocess.DEVNULL)  # where it tells how it looks for headers
        self.addCleanup(self.manager.shutdown_kernel, now=True)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(timeout=LIMIT)

    def ask(self, source):
        return self.client.execute(source, allow_stdin=False)

    def answer(self, asked):
        """What the cell has put out, and the error that it ended with."""
        said, deadline = "", time.monotonic() + LIMIT
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                if not self.manager.is_alive():
                    raise Dead(f"the kernel has ended, after: {said}") from None
                self.assertLess(time.monotonic(), deadline, f"the cell does not end, after: {said}")
                continue
            content = message["content"]
            if message["parent_header"].get("msg_id") != asked:
                continue
            said += content.get("text", "") + content.get("evalue", "") + content.get("data", {}).get("text/plain", "")
            if content.get("execution_state") == "idle":
                return said

    def run_cell(self, source):
        return self.answer(self.ask(source))

    def interrupt(self):
        """As the button does."""
        self.manager.interrupt_kernel()
        time.sleep(0.2)  # for what a dying kernel takes
        self.assertTrue(self.manager.is_alive(), "an interrupt has ended the kernel")

    def begin(self, name):
        """Defines all that the lesson defines; {name: source} of the other cells, and self.defined those of definitions."""
        found, self.defined = {}, {}
        for cell in notebook_file.code_cells(notebook_file.read(ROOT / "notebooks" / f"{name}.ipynb")):
            if not cell["id"].startswith(("try", "your")):
                defines = notebook_file.is_once(cell) or cell["id"].startswith("define-")
                (self.defined if defines else found)[cell["id"]] = source = "".join(cell["source"])
                if defines:
                    self.assertEqual(self.run_cell(source), "")
        return found

    def test_an_interrupt_does_nothing_while_the_headers_are_compiled(self):
        self.run_cell('#include "interrupts.hpp"')
        asked = self.ask('#include "setup.hpp"')
        for _ in range(5):
            self.interrupt()
        self.assertEqual(self.answer(asked), "")
        self.assertEqual(self.run_cell('nb::print("still here");'), "still here\n")

    def test_an_interrupt_of_an_idle_kernel_does_nothing(self):
        self.run_cell('#include "setup.hpp"')
        for number in range(3):
            self.interrupt()
            self.assertEqual(self.run_cell(f'nb::print("still here {number}");'), f"still here {number}\n")

    def test_an_interrupt_ends_the_step_and_the_lesson_begins_again(self):
        cells = self.begin("lesson_00_hello_ranks")
        self.run_cell("#include <fstream>")
        self.run_cell(f'void wait_forever(Rank& rank, Local&) {{\n  if (rank.rank() == 0) std::ofstream("{self.folder}/busy");\n'
                      "  while (true) rank.dp().barrier();\n}")
        for _ in range(3):
            self.assertIn("Hello, ranks", self.run_cell(cells["begin"].replace(', "")', ', "--timeout 600")')))
            asked = self.ask('lesson->step("wait", wait_forever);')
            while not (self.folder / "busy").exists():
                time.sleep(0.01)
            self.interrupt()
            self.assertIn("interrupted: the ranks stopped in the middle of their work; begin the lesson again", self.answer(asked))
            (self.folder / "busy").unlink()
            self.interrupt()
        said = "".join(self.run_cell(source) for source in cells.values())
        self.assertIn("lesson_00_hello_ranks: OK", said)

    def test_a_function_that_is_defined_again_is_the_one_that_runs(self):
        cells = self.begin("lesson_00_hello_ranks")
        define = self.defined["define-who_am_i"]
        for words in ("I am rank", "It is me, rank", "I am rank"):
            self.assertEqual(self.run_cell(define.replace("I am rank", words)), "")
            self.run_cell(cells["begin"])
            self.assertIn(f"{words} 3 of 4", self.run_cell(cells["step-who_am_i"]))

    def test_behind_options_that_are_refused_the_next_cell_says_so(self):
        for name, words in (("lesson_09_full_step", "--nesterov --no-nesterov"), ("lesson_11_zero1_adamw", "--tp 3"),
                            ("lesson_14_memory", "--tp 3"), ("lesson_15_sharding_layouts", "--ep 3"), ("lesson_17_overlap", "--pp 2"),
                            ("lesson_18_read_a_trace", "--pp 2"), ("lesson_20_pretrain", "--steps 0"), ("lesson_21_scale_out", "--pp 2"),
                            ("lesson_23_two_hosts", "--placement foo")):
            with self.subTest(name=name):
                self.doCleanups()
                self.setUp()
                cells = self.begin(name)
                behind = list(cells)[1]
                refused = cells["begin"].replace('")', f' {words}")')
                for _ in range(2):  # also where the lesson has begun before
                    self.assertIn(words.split()[0][2:], self.run_cell(refused))
                    self.assertIn("the lesson has not begun; run the cell with lesson.emplace, to its end", self.run_cell(cells[behind]))
                    for source in (cells["begin"], cells[behind]):
                        self.assertNotIn("not begun", self.run_cell(source))


if __name__ == "__main__":
    missing = what_is_missing()
    try:
        from jupyter_client import KernelManager
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError:
        missing = missing or "there is no jupyter_client here"
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main()
