#!/usr/bin/env python3
"""Lesson 09's default run in PyTorch, and its Newton-Schulz products alone, for bench_lessons.

    lesson_09_in_torch.py JOB

Prints four numbers in a line: the seconds of the whole job in float32 and in bfloat16, and those of its products alone.

The job is the lesson's: for each layout dp × tp ranks over Gloo, one process and one thread each, take all steps of the
journey, from random gradients to the all-gather of weights, while a process of its own takes the same steps on whole
matrices. Only the lesson's comparison is left out. PyTorch is imported once, before the processes are forked. What a
process sends, and which matrices it orthogonalizes, follows from JOB, whose lines are

    steps COUNT
    layout DP TP
    matrix ROWS COLS DIM BEGIN END    (of the last layout; DIM is where TP cuts, −1 for nowhere; the slice's place in the bucket)

For the products alone, one process per core computes a few of each shape, and the time is multiplied up. Ends with 77 where
there is no PyTorch.
"""

import os
import sys
import tempfile
import time
from typing import NamedTuple

try:
    import torch
    import torch.distributed as dist
except ImportError:
    sys.exit(77)

LR, MOMENTUM = 0.02, 0.95


class Matrix(NamedTuple):
    rows: int
    cols: int
    dim: int
    begin: int
    end: int

    def slice_shape(self, tp):
        return (self.rows // tp if self.dim == 0 else self.rows, self.cols // tp if self.dim == 1 else self.cols)

    def owned(self, shard, dp_rank):
        """What a DP rank owns of the slice, counted in the bucket; empty where end <= begin."""
        return max(self.begin, shard * dp_rank), min(self.end, shard * (dp_rank + 1))


class Layout(NamedTuple):
    dp: int
    tp: int
    matrices: list


def newton_schulz(x, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    if x.size(0) > x.size(1):
        return newton_schulz(x.T, steps).T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + (c * gram) @ gram) @ x
    return x


def momentum_step(momentum, gradient):
    momentum.mul_(MOMENTUM).add_(gradient)
    return gradient.add(momentum, alpha=MOMENTUM)


def rank_main(layout, steps, dtype, meeting, rank):
    """What one rank does from start to end."""
    dp, tp, matrices = layout
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=dp * tp)
    dp_rank, tp_rank = divmod(rank, tp)
    dp_group = [dist.new_group([d * tp + t for d in range(dp)]) for t in range(tp)][tp_rank]
    tp_group = [dist.new_group([d * tp + t for t in range(tp)]) for d in range(dp)][dp_rank]
    size = matrices[-1].end
    shard = size // dp
    mine = slice(shard * dp_rank, shard * (dp_rank + 1))
    weights, momentum = torch.randn(size), torch.zeros(shard)

    def gather(part, count, group):
        """The parts of all of a group's ranks, as a list. Old versions of Gloo know no bfloat16: they move its bytes."""
        part = part.contiguous()
        into = [torch.empty_like(part) for _ in range(count)]
        dist.all_gather([whole.view(torch.uint8) for whole in into], part.view(torch.uint8), group=group)
        return into

    for _ in range(steps):
        gradients = torch.randn(size)
        dist.all_reduce(gradients, group=dp_group)  # Gloo's reduce-scatter in PyTorch is an all-reduce
        update = momentum_step(momentum, gradients[mine])
        bucket = torch.cat(gather(update.to(dtype), dp, dp_group))
        for matrix in matrices:
            begin, end = matrix.owned(shard, dp_rank)
            if end <= begin:
                continue
            whole = bucket[matrix.begin : matrix.end].view(matrix.slice_shape(tp))
            if matrix.dim >= 0:
                whole = torch.cat(gather(whole, tp, tp_group), dim=matrix.dim)
            whole = newton_schulz(whole)
            if matrix.dim >= 0:
                whole = whole.chunk(tp, dim=matrix.dim)[tp_rank]
            owned = whole.reshape(-1)[begin - matrix.begin : end - matrix.begin]
            weights[begin:end] -= LR * owned.float()
        weights = torch.cat(gather(weights[mine], dp, dp_group))
    dist.barrier()
    dist.destroy_process_group()


def reference_main(layout, steps, dtype):
    """The same steps on whole matrices, in one process."""
    weights = [torch.randn(matrix.rows, matrix.cols) for matrix in layout.matrices]
    momenta = [torch.zeros_like(weight) for weight in weights]
    for _ in range(steps):
        for weight, momentum in zip(weights, momenta):
            gradient = sum(torch.randn_like(weight) for _ in range(layout.dp))
            weight -= LR * newton_schulz(momentum_step(momentum, gradient).to(dtype)).float()


def forked(function, *arguments):
    """The number of a process that calls the function and ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function(*arguments)
            code = 0
        finally:
            os._exit(code)
    return pid


def wait_for(pids):
    # With a list, every process has ended before one that failed is spoken of.
    if any([os.waitpid(pid, 0)[1] for pid in pids]):
        sys.exit("a process of lesson 09 in PyTorch failed")


def seconds_of_job(layouts, steps, dtype):
    begin = time.perf_counter()
    reference = forked(reference_main, layouts[0], steps, dtype)
    for layout in layouts:
        with tempfile.TemporaryDirectory() as folder:
            ranks = range(layout.dp * layout.tp)
            wait_for([forked(rank_main, layout, steps, dtype, folder + "/meeting", rank) for rank in ranks])
    wait_for([reference])
    return time.perf_counter() - begin


def times_of_shapes(layouts, steps):
    """How often all ranks and the reference orthogonalize a matrix of each shape."""
    times = {}
    for matrix in layouts[0].matrices:
        times[matrix.rows, matrix.cols] = steps
    for dp, tp, matrices in layouts:
        for matrix in matrices:
            for dp_rank in range(dp):
                begin, end = matrix.owned(matrices[-1].end // dp, dp_rank)
                times[matrix.rows, matrix.cols] += steps * tp if begin < end else 0
    return times


def seconds_of_products(times, dtype):
    total = 0.0
    for (rows, cols), count in times.items():
        x = torch.randn(rows, cols).to(dtype)
        newton_schulz(x)
        sample = max(2, min(count, int(4e9 / (rows * cols * min(rows, cols)))))
        begin = time.perf_counter()
        for _ in range(sample):
            newton_schulz(x)
        total += (time.perf_counter() - begin) / sample * count
    return total


def keep_busy(read):
    os.set_blocking(read, False)
    x = torch.randn(400, 500)
    while True:
        newton_schulz(x)
        try:
            if os.read(read, 1) == b"":
                return
        except BlockingIOError:
            pass


def main():
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    steps, layouts = 0, []
    with open(sys.argv[1]) as job:
        for line in job:
            word, *numbers = line.split()
            numbers = [int(number) for number in numbers]
            if word == "steps":
                steps = numbers[0]
            elif word == "layout":
                layouts.append(Layout(*numbers, []))
            else:
                layouts[-1].matrices.append(Matrix(*numbers))

    # All of it in forked processes, which would not survive that this one had computed, and so started threads.
    kinds = (torch.float32, torch.bfloat16)
    whole = [seconds_of_job(layouts, steps, dtype) for dtype in kinds]

    cores = os.cpu_count() or 1
    read, write = os.pipe()
    for _ in range(cores - 1):  # the other cores are as busy as this one
        if os.fork() == 0:
            os.close(write)
            keep_busy(read)
            os._exit(0)
    times = times_of_shapes(layouts, steps)
    alone = [seconds_of_products(times, dtype) / cores for dtype in kinds]
    os.close(write)
    print(*whole, *alone)


if __name__ == "__main__":
    main()
