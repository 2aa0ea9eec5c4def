#!/usr/bin/env python3
"""Times products in bf16, and Newton–Schulz, by size, and prints what share of its peak an accelerator reaches.

    tests/gpu/product_efficiency.py --peak 989 [--device cuda] [--sizes 1024,2048,4096,8192] [--batch 16]

The output is the list "product_efficiency" of a cluster file (docs/cost-model.md), three curves: one product after the
other; Newton–Schulz of one matrix after the other, by the FLOPs of one of its products, with all that is not a product;
and of a batch of matrices at a time. `--peak` is in TFLOP/s, dense bf16, from the data sheet.
"""
import argparse
import json
import statistics
import sys
import time

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5


def newton_schulz(torch, x):
    """Of square matrices, one or a stack of them, as most optimizers write it."""
    a, b, c = COEFFICIENTS
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x


def seconds_of(torch, device, call):
    """The median of five rounds of at least a tenth of a second, after two calls that do not count."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    call()
    call()
    rounds = []
    for _ in range(5):
        wait()
        start, calls = time.perf_counter(), 0
        while calls == 0 or time.perf_counter() - start < 0.1:
            for _ in range(10 if device == "cuda" else 1):
                call()
                calls += 1
            wait()
        rounds.append((time.perf_counter() - start) / calls)
    return statistics.median(rounds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peak", type=float, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", default="512,1024,2048,4096,8192")
    parser.add_argument("--batch", type=int, default=16)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("product_efficiency.py: there is no PyTorch here; pip install torch")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("product_efficiency.py: PyTorch sees no GPU here; try --device cpu")
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    curves = {}
    for size in map(int, arguments.sizes.split(",")):
        flops = 2 * size**3
        x = torch.randn(size, size, device=arguments.device, dtype=torch.bfloat16)
        stack = torch.randn(arguments.batch, size, size, device=arguments.device, dtype=torch.bfloat16)
        for what, work, call in (
            ("one product after the other", flops, lambda: x @ x.mT),
            ("Newton–Schulz, one matrix after the other", 3 * STEPS * flops, lambda: newton_schulz(torch, x)),
            (f"Newton–Schulz, {arguments.batch} matrices at a time", 3 * STEPS * flops * arguments.batch,
             lambda: newton_schulz(torch, stack)),
        ):
            share = work / seconds_of(torch, arguments.device, call) / (arguments.peak * 1e12)
            curves.setdefault(what, []).append({"gflop": flops / 1e9, "share_of_peak": min(1.0, float(f"{share:.3g}"))})
    print(json.dumps([{"source": f"measured on {name} with PyTorch {torch.__version__}: {what}", "points": points}
                      for what, points in curves.items()], indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
