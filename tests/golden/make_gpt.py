#!/usr/bin/env python3
"""Makes the golden files gpt_dense.txt: the loss and the gradients that PyTorch's autograd finds for a small model.

Run it with Debian's python3-torch (made with 1.13): /usr/bin/python3 tests/golden/make_gpt.py
The tests read the files and need neither Python nor PyTorch.

The model is what Hugging Face's Llama computes, written with torch's own functions. Weights and tokens come from
a formula that the test has too (see `fraction`), so a file holds results alone. PyTorch computes in double precision; every
number is the eight hexadecimal digits of the float32 next to it. The first line is the mean loss, the following lines the
gradients of the tensors, in the order of src/model's gpt_parameters.
"""
import os
import struct

import torch
from torch.nn import functional

CASES = {
    "dense": dict(vocabulary=12, width=16, layers=2, heads=4, kv_heads=2, hidden=12, tokens=10, tied=False,
                  sequences=2),
}


def fraction(tensor, element):
    """Between -1/2 and 1/2, and the same in any language: 24 bits of a product of integers."""
    mixed = (element * 2654435761 + (tensor + 1) * 2246822519) % 2**32
    mixed = (mixed ^ (mixed >> 15)) * 3266489917 % 2**32
    mixed ^= mixed >> 13
    return (mixed >> 8) / 2.0**24 - 0.5


def shapes(c):
    """Names and shapes, in order."""
    width, kv_width = c["width"], c["width"] // c["heads"] * c["kv_heads"]
    yield "embedding", (c["vocabulary"], width)
    for layer in range(c["layers"]):
        yield "%d.norm1" % layer, (width,)
        yield "%d.q" % layer, (width, width)
        yield "%d.k" % layer, (kv_width, width)
        yield "%d.v" % layer, (kv_width, width)
        yield "%d.o" % layer, (width, width)
        yield "%d.norm2" % layer, (width,)
        yield "%d.gate" % layer, (c["hidden"], width)
        yield "%d.up" % layer, (c["hidden"], width)
        yield "%d.down" % layer, (width, c["hidden"])
    yield "norm", (width,)
    if not c["tied"]:
        yield "output", (c["vocabulary"], width)


def weights(c):
    """Gains between 3/4 and 5/4, everything else between -1/2 and 1/2."""
    tensors = {}
    for number, (name, shape) in enumerate(shapes(c)):
        size = 1
        for length in shape:
            size *= length
        values = [fraction(number, i) if len(shape) == 2 else 1 + fraction(number, i) / 2 for i in range(size)]
        tensors[name] = torch.tensor(values, dtype=torch.float64).reshape(shape).float().double().requires_grad_()
    return tensors


def norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * gain


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def attention(c, w, layer, x):
    sequences, tokens, width = x.shape
    head_width = width // c["heads"]
    frequencies = 10000.0 ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float64), frequencies)
    angles = torch.cat((angles, angles), -1)

    def heads(name, count):
        return (x @ w["%d.%s" % (layer, name)].T).reshape(sequences, tokens, count, head_width).transpose(1, 2)

    q, k, v = heads("q", c["heads"]), heads("k", c["kv_heads"]), heads("v", c["kv_heads"])
    q, k = [turned * angles.cos() + rotate_half(turned) * angles.sin() for turned in (q, k)]
    k, v = [shared.repeat_interleave(c["heads"] // c["kv_heads"], 1) for shared in (k, v)]
    scores = q @ k.transpose(-1, -2) / head_width**0.5
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    mixed = torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v
    return mixed.transpose(1, 2).reshape(sequences, tokens, width) @ w["%d.o" % layer].T


def feed_forward(w, layer, x):
    gate, up, down = [w["%d.%s" % (layer, name)] for name in ("gate", "up", "down")]
    return (functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def loss(c, w):
    rows = c["sequences"] * c["tokens"]
    inputs, targets = [torch.tensor([int((fraction(1000 + which, t) + 0.5) * c["vocabulary"]) for t in range(rows)])
                       for which in (0, 1)]
    x = w["embedding"][inputs].reshape(c["sequences"], c["tokens"], c["width"])
    for layer in range(c["layers"]):
        x = x + attention(c, w, layer, norm(x, w["%d.norm1" % layer]))
        x = x + feed_forward(w, layer, norm(x, w["%d.norm2" % layer]))
    logits = norm(x, w["norm"]) @ w["embedding" if c["tied"] else "output"].T
    return functional.cross_entropy(logits.reshape(rows, -1), targets)


def digits(values):
    return " ".join("%08x" % struct.unpack("<I", struct.pack("<f", value))[0] for value in values)


def main():
    for name, case in CASES.items():
        tensors = weights(case)
        found = loss(case, tensors)
        found.backward()
        lines = [digits([found.item()])] + [digits(tensor.grad.flatten().tolist()) for tensor in tensors.values()]
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt_%s.txt" % name)
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
