#!/usr/bin/env python3
"""What nvcc makes of the kernels rounds as it is written: nothing is fused, flushed or approximated behind our back.

    ptx_test.py NVCC SOURCE

The processor that stands in for a GPU in other tests can't see this. nvcc is even allowed to fuse: that the kernels ask for
each rounding by name has to be enough.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

NVCC, SOURCE = sys.argv[1], Path(sys.argv[2]).resolve()
ROUNDS = ("add", "sub", "mul", "mad", "fma", "div", "sqrt", "rcp")
# The only kernels that multiply and add in one rounding, and what they call.
CHAINS = re.compile("chain_fp32|chain_bf16|multiply_carefully")


def ptx_of(text):
    with tempfile.TemporaryDirectory() as folder:
        kernels, out = Path(folder) / "kernels.cu", Path(folder) / "kernels.ptx"
        kernels.write_text(text)
        subprocess.run([NVCC, "-ptx", "-std=c++17", "-O3", "-fmad=true", "-arch=compute_75", "-I", SOURCE, "-o", out, kernels],
                       check=True)
        return out.read_text()


def faults_of(ptx):
    faults, counts, function = [], {}, ""
    for line in ptx.splitlines():
        begins = re.match(r"(?:\.visible )?\.(?:entry|func)[^(]*?(?:\(.*?\) )?(\w+)\($", line)
        function = begins.group(1) if begins else function
        instruction = re.match(r"\s+(?:@!?%p\d+ )?([a-z]\w*(?:\.\w+)*)\s", line)
        if not instruction or not re.search(r"\.f(32|64)", instruction.group(1)):
            continue
        words = instruction.group(1).split(".")
        if {"ftz", "approx", "full", "sat"} & set(words):
            faults.append(f"{function}: {instruction.group(1)} flushes or approximates")
        if words[0] in ROUNDS or words[:3] == ["cvt", "f32", "f64"]:
            if "rn" not in words:
                faults.append(f"{function}: {instruction.group(1)} leaves the rounding to the compiler")
        if words[0] in ("fma", "mad"):
            counts[function] = counts.get(function, 0) + 1
            if not CHAINS.search(function):
                faults.append(f"{function}: {instruction.group(1)}, and no kernel but the chains' may fuse")
    if len(counts) < 3 or min(counts.values()) < 1:
        faults.append(f"the chains' multiply-adds were found in {sorted(counts)} alone: this test looks for the wrong words")
    return faults


text = (SOURCE / "src/cuda/kernels.cu").read_text()
faults = faults_of(ptx_of(text))

# A check that has never failed proves nothing.
planted = text.replace("__fadd_rn(__fmul_rn(mu, momentum[i]), g)", "mu * momentum[i] + g")
planted = planted.replace("__ddiv_rn(values[i], denominator)", "__fdividef(values[i], float(denominator))")
found = "\n".join(faults_of(ptx_of(planted)))
for name, kind in (("momentum_step", "no kernel but the chains' may fuse"), ("divide", "approximates")):
    if not re.search(f"{name}: .*{kind}", found):
        faults.append(f"a planted fault in {name} was not noticed")

for fault in faults:
    print(f"FAILED  {fault}")
print(f"{len(faults)} faults")
sys.exit(1 if faults else 0)
