#!/usr/bin/env python3
"""Makes the golden files adamw_*.txt: weights and gradients, and the weights that torch.optim.AdamW makes of them.

Run it with Debian's python3-torch (made with 1.13): /usr/bin/python3 tests/golden/make_adamw.py
The tests read the files and need neither Python nor PyTorch.

A file holds one case: "steps count", then lr, beta1, beta2, epsilon and weight decay, the first weights, and for each step
the gradient and the weights after it. Every number is the eight hexadecimal digits of its float32. Gradients are of sizes
from 1 down to 1e-9, so that epsilon has its say.
"""
import os
import struct

import torch

STEPS, COUNT = 12, 20
# lr, beta1, beta2, epsilon, weight decay: PyTorch's own, and others.
CASES = {"usual": (1e-3, 0.9, 0.999, 1e-8, 0.1), "other": (0.1, 0.8, 0.95, 1e-6, 0.0)}


def digits(values):
    return " ".join("%08x" % struct.unpack("<I", struct.pack("<f", value))[0] for value in values)


def rounded(value):
    return torch.tensor(value, dtype=torch.float32).item()


def main():
    torch.manual_seed(11)
    for name, settings in CASES.items():
        lr, beta1, beta2, eps, weight_decay = [rounded(value) for value in settings]
        sizes = 10.0 ** -(torch.arange(COUNT) % 10).float()
        weights = torch.nn.Parameter(torch.randn(COUNT))
        optimizer = torch.optim.AdamW([weights], lr, (beta1, beta2), eps, weight_decay, foreach=False)
        lines = ["%d %d" % (STEPS, COUNT), digits((lr, beta1, beta2, eps, weight_decay)), digits(weights.tolist())]
        for _ in range(STEPS):
            weights.grad = torch.randn(COUNT) * sizes
            optimizer.step()
            lines += [digits(weights.grad.tolist()), digits(weights.tolist())]
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adamw_%s.txt" % name)
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
