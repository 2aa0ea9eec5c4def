#!/usr/bin/env python3
"""A training step of a GPT in PyTorch, on one thread: what bench_model compares ours with.

    model_in_torch.py VOCABULARY WIDTH LAYERS HEADS KV_HEADS HIDDEN TOKENS SEQUENCES

Does a step whenever a line comes on standard input, and says how many seconds of processor time it took: forward, backward,
AdamW, in one line. Says "ready" first. Ends with 77 where there is no PyTorch.
"""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
try:
    import torch
    from torch.nn import functional
except ImportError:
    sys.exit(77)


def attend(q, k, v):
    # From PyTorch 2 on a public function; in 1.13 it has another name and an output more.
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return functional._scaled_dot_product_attention(q, k, v, is_causal=True)[0]


class Norm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def linear(inputs, outputs):
    layer = torch.nn.Linear(inputs, outputs, bias=False)
    torch.nn.init.normal_(layer.weight, std=0.02)
    return layer


class Layer(torch.nn.Module):
    def __init__(self, width, heads, kv_heads, hidden, tokens):
        super().__init__()
        self.heads, self.kv_heads, self.head_width = heads, kv_heads, width // heads
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.q, self.o = linear(width, width), linear(width, width)
        self.k, self.v = [linear(width, kv_heads * self.head_width) for _ in range(2)]
        self.gate, self.up, self.down = linear(width, hidden), linear(width, hidden), linear(hidden, width)
        frequencies = 10000.0 ** (-torch.arange(0, self.head_width, 2) / self.head_width)
        angles = torch.outer(torch.arange(tokens), frequencies)
        self.cosine, self.sine = [table.repeat(1, 2) for table in (angles.cos(), angles.sin())]

    def rotated(self, x):
        first, second = x.chunk(2, -1)
        return x * self.cosine + torch.cat((-second, first), -1) * self.sine

    def forward(self, x):
        sequences, tokens, width = x.shape
        normed = self.norm1(x)

        def split(y, heads):
            return y.view(sequences, tokens, heads, self.head_width).transpose(1, 2)

        q = self.rotated(split(self.q(normed), self.heads))
        k = self.rotated(split(self.k(normed), self.kv_heads))
        v = split(self.v(normed), self.kv_heads)
        if self.kv_heads != self.heads:
            k, v = [y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v)]
        x = x + self.o(attend(q, k, v).transpose(1, 2).reshape(sequences, tokens, width))
        normed = self.norm2(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


def main():
    vocabulary, width, layers, heads, kv_heads, hidden, tokens, sequences = [int(word) for word in sys.argv[1:]]
    torch.set_num_threads(1)
    embedding = torch.nn.Embedding(vocabulary, width)
    body = [Layer(width, heads, kv_heads, hidden, tokens) for _ in range(layers)]
    model = torch.nn.Sequential(embedding, *body, Norm(width), linear(width, vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = torch.randint(vocabulary, (sequences, tokens + 1))
    print("ready", flush=True)
    for _ in sys.stdin:
        times = [time.process_time()]
        loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        times.append(time.process_time())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        times.append(time.process_time())
        optimizer.step()
        times.append(time.process_time())
        print(*[after - before for before, after in zip(times, times[1:])], flush=True)


if __name__ == "__main__":
    main()
