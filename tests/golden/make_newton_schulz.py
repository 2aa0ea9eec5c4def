#!/usr/bin/env python3
"""Makes the golden files newton_schulz_*.txt: inputs and results of Newton-Schulz, computed with PyTorch.

Run it with Debian's python3-torch (made with 1.13): /usr/bin/python3 tests/golden/make_newton_schulz.py
The tests read the files and need neither Python nor PyTorch. The formula below is written from the paper's description;
the results are therefore a second opinion, not a copy of the C++ code's.

A file holds one case: "rows cols steps", then the elements of the input, of the result in float32 and of that in bfloat16, row by
row, each as the eight hexadecimal digits of its float32.
"""
import os
import struct

import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
SHAPES = [(1, 7), (4, 6), (6, 4), (16, 16), (40, 17)]


def in_fp32(x):
    return x


def in_bf16(x):
    return x.to(torch.bfloat16).to(torch.float32)


def newton_schulz(x, steps, rounded):
    """Every input and every result goes through `rounded`.

    This is what a GPU does with bfloat16 tensors: operations in float32, results in bfloat16. PyTorch 1.13's own bfloat16
    on a CPU is not the same: it rounds the coefficients as well, and sums small products in bfloat16.
    """
    a, b, c = COEFFICIENTS
    tall = x.size(0) > x.size(1)
    if tall:
        x = x.T
    x = rounded(x)
    x = rounded(x / rounded(rounded(x.norm()) + 1e-7))
    for _ in range(steps):
        gram = rounded(x @ x.T)
        polynomial = rounded(rounded(b * gram) + rounded(rounded(c * gram) @ gram))
        x = rounded(rounded(a * x) + rounded(polynomial @ x))
    return x.T if tall else x


def hex_lines(x):
    for row in x.to(torch.float32).tolist():
        yield " ".join(struct.pack(">f", value).hex() for value in row)


def write_case(folder, rows, cols):
    generator = torch.Generator().manual_seed(1000 * rows + cols)
    x = torch.randn(rows, cols, generator=generator)
    results = [newton_schulz(x, STEPS, rounded) for rounded in (in_fp32, in_bf16)]
    assert all(result.dtype == torch.float32 and result.shape == x.shape for result in results)
    with open(os.path.join(folder, f"newton_schulz_{rows}x{cols}.txt"), "w") as out:
        print(rows, cols, STEPS, file=out)
        for matrix in (x, *results):
            for line in hex_lines(matrix):
                print(line, file=out)


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = os.path.dirname(os.path.abspath(__file__))
    for shape_rows, shape_cols in SHAPES:
        write_case(here, shape_rows, shape_cols)
