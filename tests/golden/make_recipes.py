#!/usr/bin/env python3
"""Makes the golden file recipes.txt: three steps of each recipe of Muon, computed with PyTorch.

Run it with Debian's python3-torch (made with 1.13): /usr/bin/python3 tests/golden/make_recipes.py
The test reads the file and needs neither Python nor PyTorch. The steps are written here, by us, from the order of operations
that each implementation has (src/optim/recipes.cpp says where it was read), in tensor operations and one function each: a
second opinion, and not the C++ code's one loop with choices.

For each shape, "shape rows cols", the first weights and the three gradients; then for each recipe and precision
"result recipe precision" and the weights after the third step. Elements are the eight hexadecimal digits of their float32.
"""
import os
import struct

import torch

LR, MU, DECAY = 0.1, 0.9, 0.1
SHAPES = [(6, 4), (5, 9)]
STEPS = 3

JORDAN = [(3.4445, -4.7750, 2.0315)] * 5
YOU = [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046),
       (2.8366, -3.0525, 1.2012)]
POLAR_EXPRESS = [(8.156554524902461, -22.48329292557795, 15.878769915207462),
                 (4.042929935166739, -2.808917465908714, 0.5000178451051316),
                 (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
                 (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
                 (2.3465413258596377, -1.7097828382687081, 0.42323551169305323)]


def bf16(x):
    return x.to(torch.bfloat16).to(torch.float32)


def fp32(x):
    return x


def iterate(x, coefficients, r):
    """c A A as (c A) A, every result rounded by r."""
    for a, b, c in coefficients:
        gram = r(x @ x.T)
        polynomial = r(r(b * gram) + r(r(c * gram) @ gram))
        x = r(r(a * x) + r(polynomial @ x))
    return x


def orthogonal_wide(x, coefficients, r, denominator):
    tall = x.size(0) > x.size(1)
    x = r(x.T if tall else x)
    x = r(x / denominator(r(x.norm())))
    x = iterate(x, coefficients, r)
    return x.T if tall else x


def moonshot(w, m, g, r):
    m.mul_(MU).add_(g)
    u = g.add(m, alpha=MU)
    o = orthogonal_wide(u, JORDAN, r, lambda norm: r(norm + 1e-7))
    w.mul_(1 - LR * DECAY)
    w.sub_(LR * 0.2 * max(w.shape) ** 0.5 * o)


def kellerjordan(w, m, g, r):
    m.lerp_(g, 1 - MU)
    u = g.lerp(m, MU)
    o = orthogonal_wide(u, JORDAN, r, lambda norm: r(norm + 1e-7))
    o = r(o * max(1, w.size(0) / w.size(1)) ** 0.5)
    w.mul_(1 - LR * DECAY)
    w.sub_(LR * o)


def pytorch(w, m, g, r):
    m.lerp_(g, 1 - MU)
    u = g.lerp(m, MU)
    o = orthogonal_wide(u, JORDAN, r, lambda norm: norm.clamp(min=1e-7))
    w.mul_(1 - LR * DECAY)
    w.sub_(LR * max(1, w.size(0) / w.size(1)) ** 0.5 * o)


def emerging(w, m, g, r):
    w.sub_(LR * DECAY * w)
    m.lerp_(g, 1 - MU)
    tall = m.size(0) > m.size(1)
    x = m.T if tall else m
    x = r(x / x.norm().clamp(min=1e-15))  # the norm in float32, and rounded after the division
    for a, b, c in YOU:
        gram = r(x @ x.T)
        polynomial = r(r(b * gram) + r(c * r(gram @ gram)))
        x = r(r(a * x) + r(polynomial @ x))
    o = x.T if tall else x
    w.sub_(LR * (1.0 * (max(w.shape) ** 0.5 * o)))


def dion(w, m, g, r):
    m.mul_(MU).add_(g)
    x = r(m)
    x = r(x / r(r(1.02 * r(x.norm())) + 1e-8))
    for a, b, c in POLAR_EXPRESS:
        if m.size(0) > m.size(1):
            gram = r(x.T @ x)
            polynomial = r(r(b * gram) + r(c * r(gram @ gram)))
            x = r(r(a * x) + r(x @ polynomial))
        else:
            gram = r(x @ x.T)
            polynomial = r(r(b * gram) + r(c * r(gram @ gram)))
            x = r(r(a * x) + r(polynomial @ x))
    w.mul_(1 - LR * DECAY)
    w.sub_(r(LR * (w.size(0) / w.size(1)) ** 0.5 * x))


def moonshot_right(w, m, g, r):
    """Nobody's: what dion's way with tall matrices does to moonshot, whose polynomial bf16 leaves asymmetric."""
    m.mul_(MU).add_(g)
    x = r(g.add(m, alpha=MU))
    x = r(x / r(r(x.norm()) + 1e-7))
    if x.size(0) <= x.size(1):
        x = iterate(x, JORDAN, r)
    else:
        for a, b, c in JORDAN:
            gram = r(x.T @ x)
            polynomial = r(r(b * gram) + r(r(c * gram) @ gram))
            x = r(r(a * x) + r(x @ polynomial))
    w.mul_(1 - LR * DECAY)
    w.sub_(LR * 0.2 * max(w.shape) ** 0.5 * x)


RECIPES = {"moonshot": moonshot, "kellerjordan": kellerjordan, "torch": pytorch, "emerging": emerging, "dion": dion,
           "moonshot_right": moonshot_right}


def write_matrix(out, x):
    for row in x.tolist():
        print(" ".join(struct.pack(">f", value).hex() for value in row), file=out)


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "recipes.txt"), "w") as file:
        for rows, cols in SHAPES:
            generator = torch.Generator().manual_seed(1000 * rows + cols)
            weights = torch.randn(rows, cols, generator=generator)
            gradients = [torch.randn(rows, cols, generator=generator) for _ in range(STEPS)]
            print("shape", rows, cols, file=file)
            for matrix in [weights, *gradients]:
                write_matrix(file, matrix)
            for name, step in RECIPES.items():
                for precision, rounding in (("fp32", fp32), ("bf16", bf16)):
                    w, m = weights.clone(), torch.zeros(rows, cols)
                    for gradient in gradients:
                        step(w, m, gradient.clone(), rounding)
                    print("result", name, precision, file=file)
                    write_matrix(file, w)
