#!/usr/bin/env bash
# Where there is no GPU, tests/gpu/run.sh stops with one sentence before it builds or writes anything.
set -euo pipefail

run=$1
if compgen -G '/dev/nvidia[0-9]*' >/dev/null || [[ -e /dev/dxg ]]; then
  echo "skipped: this machine has a GPU"
  exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED  $1: $(<"$scratch/err")"; exit 1; }

# With a program of that name that sees nothing, too.
printf '#!/bin/sh\nexit 9\n' >"$scratch/nvidia-smi"
chmod +x "$scratch/nvidia-smi"
status=0
PATH="$scratch:$PATH" bash "$run" "$scratch/report.md" >"$scratch/out" 2>"$scratch/err" || status=$?
[[ $status == 2 ]] || fail "expected exit 2, got $status"
[[ ! -s $scratch/out && ! -e $scratch/report.md ]] || fail "nothing should have been written"
[[ $(wc -l <"$scratch/err") == 1 ]] || fail "expected one line"
grep -q "there is no GPU of NVIDIA's on this machine" "$scratch/err" || fail "expected the sentence"

status=0
bash "$run" one two >"$scratch/out" 2>"$scratch/err" || status=$?
[[ $status == 2 && $(wc -l <"$scratch/err") == 1 ]] || fail "two names should be refused"

# The whole of it, on a stand-in machine: tools and programs that say what they are asked, and do as a file tells them.
project=$scratch/project machine=$scratch/machine
mkdir -p "$project/tests/gpu" "$project/build/gpu/bin" "$machine"
cp "$run" "$project/tests/gpu/run.sh"
program() { printf '#!/bin/bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }
# shellcheck disable=SC2016
{
  program "$machine/nvidia-smi" '[[ $1 == -L ]] && echo "GPU 0: stand-in" || echo "0, stand-in, 580.1, 9.0"'
  program "$machine/nvcc" 'echo "release 13.0"'
  program "$machine/cmake" 'exit 0'
  program "$machine/compute-sanitizer" 'while [[ $1 == --* ]]; do if [[ $1 == *=* ]]; then shift; else shift 2; fi; done; exec "$@"'
  program "$project/build/gpu/bin/use_cuda" '[[ -z ${MUONWALK_CUDA_LIBRARY-} ]] && echo equal'
  program "$project/build/gpu/bin/gpu_bench" 'echo "| a table |"'
  program "$project/build/gpu/bin/cuda_kernels_test" 'exit 0'
  program "$project/build/gpu/bin/cuda_newton_schulz_test" 'echo "newton is wrong"; exit $(cat '"$scratch"'/newton)'
  program "$project/build/gpu/bin/lesson_22_nccl" 'echo "$@" >>'"$scratch/lesson_22"'; echo "step 8 · queued"'
  program "$project/build/gpu/bin/lesson_09_full_step" '
    if [[ $1 == --help ]]; then echo "--transport nccl"; exit; fi
    for word; do if [[ $last == --out ]]; then out=$word; fi; last=$word; done
    if [[ $* == *nccl* ]]; then cat '"$scratch"'/over_nccl; else echo right; fi >"$out"'
}
whole() {  # expected exit
  status=0
  MUONWALK_CUDA_LIBRARY=/nowhere PATH="$machine:$PATH" bash "$project/tests/gpu/run.sh" "$scratch/report.md" \
    >"$scratch/out" 2>"$scratch/err" || status=$?
  [[ $status == "$1" ]] || fail "expected exit $1 of the whole, got $status"
}
expect() { grep -qF -- "$1" "$scratch/report.md" || fail "the report should say: $1; it says $(<"$scratch/report.md")"; }
echo 0 >"$scratch/newton"
echo right >"$scratch/over_nccl"
whole 0
expect "- device: 0, stand-in, 580.1, 9.0"
expect "- holds: kernels: products, norms, trees, momentum, apply"
expect "- not run: cuda_device_test and cuda_errors_test: they let calls fail"
expect "| fp32 | $(echo right | sha256sum | cut -c 1-16) | $(echo right | sha256sum | cut -c 1-16) | equal |"
expect "| a table |"
expect "- not run: products by size: no peak is known of"
expect "- holds: memcheck: lesson 22"
lesson_22="--transport nccl --dp 1 --tp 1"
printf '%s\n' "$lesson_22" "$lesson_22 --precision bf16" "$lesson_22 --real-sizes" "$lesson_22 --real-sizes --precision bf16" \
  "$lesson_22" | cmp -s - "$scratch/lesson_22" || fail "lesson 22 ran as $(<"$scratch/lesson_22")"
expect "- not run: NCCL's own trace, read by muonwalk-trace: NCCL_PROFILER_PLUGIN names no profiler"
expect "step 8 · queued"
! grep -q "does not hold" "$scratch/report.md" || fail "all should hold"

# On two GPUs, with a profiler of NCCL's that somebody has built.
# shellcheck disable=SC2016
program "$machine/nvidia-smi" '[[ $1 == -L ]] && printf "GPU 0: stand-in\nGPU 1: stand-in\n" || echo "0, stand-in, 580.1, 9.0"'
# shellcheck disable=SC2016
program "$project/build/gpu/bin/muonwalk-trace" '[[ $1 == summary && $(ls "$2") == nccl_5_0.json ]]'
# shellcheck disable=SC2016
program "$project/build/gpu/bin/lesson_22_nccl" 'echo "step 8 · queued"; [[ -z ${NCCL_PROFILE_DUMP_FILE-} ]] || touch "${NCCL_PROFILE_DUMP_FILE}_5_0.json"'
NCCL_PROFILER_PLUGIN=/some/plugin.so whole 0
expect "- holds: lesson 22, --dp 2 --tp 1 --real-sizes"
expect "- holds: NCCL's own trace, read by muonwalk-trace"
program "$project/build/gpu/bin/muonwalk-trace" 'exit 2'
NCCL_PROFILER_PLUGIN=/some/plugin.so whole 1
expect "- **does not hold**: NCCL's own trace, read by muonwalk-trace (exit 2):"
# shellcheck disable=SC2016
program "$machine/nvidia-smi" '[[ $1 == -L ]] && echo "GPU 0: stand-in" || echo "0, stand-in, 580.1, 9.0"'

program "$machine/python3" 'echo "curves: ${*:2}"'
MUONWALK_PEAK_TFLOPS=989 whole 0
expect "curves: --peak 989"
program "$machine/python3" 'echo "there is no PyTorch here" >&2; exit 1'
MUONWALK_PEAK_TFLOPS=989 whole 0
expect "- not run: products by size: there is no PyTorch here"
rm "$machine/python3"

echo 1 >"$scratch/newton"
whole 1
expect "- **does not hold**: Newton–Schulz by chains (exit 1):"
expect "newton is wrong"
echo 0 >"$scratch/newton"
echo wrong >"$scratch/over_nccl"
whole 1
expect "| **not equal** |"
rm "$machine/compute-sanitizer" "$project/build/gpu/bin/lesson_22_nccl"
echo right >"$scratch/over_nccl"
whole 0
expect "- not run: all of it: compute-sanitizer is not on PATH"
expect "- not run: lesson 22: this checkout has none"
echo "ok      without a GPU, one sentence; with a stand-in for one, a report that tells what holds, what does not, and what was not run"
