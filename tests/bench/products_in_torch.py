#!/usr/bin/env python3
"""The Newton-Schulz products of lesson 09's default run, in PyTorch: seconds for each precision, as a line of two numbers.

    products_in_torch.py JOB

JOB lists "rows cols times" in lines: how often all ranks and the reference orthogonalize a matrix of that shape in a step of
the lesson, times its steps. As the lesson's ranks do, one process a core works with one thread each. Of every shape a few
are computed, and the time is multiplied up. Ends with 77 where there is no PyTorch.
"""

import os
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(77)


def newton_schulz(x, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    if x.size(0) > x.size(1):
        x = x.T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + (c * gram) @ gram) @ x
    return x


def seconds(shapes, dtype):
    total = 0.0
    for rows, cols, times in shapes:
        x = torch.randn(rows, cols).to(dtype)
        newton_schulz(x)
        sample = max(2, min(times, int(4e9 / (rows * cols * min(rows, cols)))))
        begin = time.perf_counter()
        for _ in range(sample):
            newton_schulz(x)
        total += (time.perf_counter() - begin) / sample * times
    return total


def main():
    torch.set_num_threads(1)
    with open(sys.argv[1]) as job:
        shapes = [tuple(int(word) for word in line.split()) for line in job]
    cores = os.cpu_count() or 1
    read, write = os.pipe()
    for _ in range(cores - 1):  # the other cores are as busy as this one
        if os.fork() == 0:
            os.close(write)
            os.set_blocking(read, False)
            x = torch.randn(400, 500)
            while True:
                newton_schulz(x)
                try:
                    if os.read(read, 1) == b"":
                        os._exit(0)
                except BlockingIOError:
                    pass
    times = [seconds(shapes, dtype) / cores for dtype in (torch.float32, torch.bfloat16)]
    os.close(write)
    print(*times)


if __name__ == "__main__":
    main()
