#!/usr/bin/env bash
# Runs on a GPU all that there is to run on one, and writes a report: what device, driver and day, what holds, how fast it
# is, and what was not run and why.
#
#     tests/gpu/run.sh [REPORT]       build/gpu/report.md, unless another file is named
#
# It builds in build/gpu, takes the machine's own libcuda and libnccl, and changes nothing else. Exit codes: 0 all
# that ran holds, 1 something does not, 2 there is no GPU (or no toolkit) to run it on, 3 the build broke.
set -euo pipefail

root=$(CDPATH="" cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
folder=$root/build/gpu
report=${1:-$folder/report.md}
bin=$folder/bin

stop() {  # code sentence
  printf 'tests/gpu/run.sh: %s\n' "$2" >&2
  exit "$1"
}

[[ $# -le 1 ]] || stop 2 "it takes one name, that of the report, but was given $# words."
# All that it says is read: one that is not read to its end might take that for a failure.
gpus() { nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true; }
# /dev/dxg is how WSL shows a GPU.
{ command -v nvidia-smi >/dev/null && [[ $(gpus) -gt 0 ]]; } || compgen -G '/dev/nvidia[0-9]*' >/dev/null ||
  [[ -e /dev/dxg ]] ||
  stop 2 "there is no GPU of NVIDIA's on this machine; ./walk test runs the same kernels on the processor."
command -v nvcc >/dev/null || [[ -n ${CUDA_PATH-} && -x $CUDA_PATH/bin/nvcc ]] ||
  stop 2 "there is no nvcc on PATH, and the kernels have to be compiled; put the CUDA toolkit's bin folder on PATH."

# The real libraries, whatever the environment says.
unset MUONWALK_CUDA_LIBRARY MUONWALK_NCCL_LIBRARY

printf 'Building in %s\n' "$folder" >&2
{ cmake -S "$root" --preset release -B "$folder" -DMUONWALK_CUDA=ON -DMUONWALK_BENCH=OFF --log-level=NOTICE &&
  cmake --build "$folder"; } >&2 || stop 3 "the build stopped; what the compiler said is above."

# The programs' own answer, before anything is written.
answer=$("$bin/use_cuda" 2>&1) || stop 2 "$answer"

mkdir -p "$(dirname "$report")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
devices=1
if command -v nvidia-smi >/dev/null; then devices=$(gpus); fi
if [[ $devices -lt 1 ]]; then devices=1; fi

write() { printf '%s\n' "$*" >>"$report"; }
not_run() { write "- not run: $1: $2"; }

# holds WHAT COMMAND...: runs it; a line in the report says how it went, with the end of what it said where it went wrong.
holds() {
  local what=$1 status=0
  shift
  printf '%s\n' "$what" >&2
  "$@" >"$work/out" 2>&1 || status=$?
  if [[ $status == 0 ]]; then
    write "- holds: $what"
  else
    failed=1
    write "- **does not hold**: $what (exit $status):"
    write '```'
    tail -n 25 "$work/out" >>"$report"
    write '```'
  fi
  return 0
}

: >"$report"
write "# What ran on a GPU"
write ""
write "- date: $(date -u +%Y-%m-%d)"
write "- source: $(git -C "$root" rev-parse HEAD 2>/dev/null || echo "no git here")$(git -C "$root" diff --quiet HEAD 2>/dev/null || echo ", changed")"
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=index,name,driver_version,compute_cap,memory.total,clocks.max.sm --format=csv,noheader |
    while read -r line; do write "- device: $line"; done
else
  write "- device: nvidia-smi is not here to say"
fi
write "- toolkit: $( (nvcc --version 2>/dev/null || "$CUDA_PATH/bin/nvcc" --version) | grep release)"
write ""
write "## Bits"
write ""
write "Kernels, and Newton–Schulz, against the CPU's, byte by byte."
write ""
holds "kernels: products, norms, trees, momentum, apply" "$bin/cuda_kernels_test"
holds "Newton–Schulz by chains" "$bin/cuda_newton_schulz_test"
not_run "cuda_device_test and cuda_errors_test" "they let calls fail, which only the stand-in can"

write ""
write "## The main job: digests of lesson 09's weights"
write ""
lesson=$bin/lesson_09_full_step
# NCCL wants a GPU of its own for each rank.
grid=(--dp "$devices" --tp 1)
digest() {  # options...
  "$lesson" "${grid[@]}" --products chain --out "$work/weights" "$@" >"$work/out" 2>&1 || return $?
  sha256sum "$work/weights" | cut -c 1-16
  rm -f "$work/weights"
}
if [[ $("$lesson" --help) != *nccl* ]]; then
  not_run "lesson 09 over NCCL" "this program knows no --transport nccl"
else
  write "| precision | ${grid[*]}, CPU over Gloo | ${grid[*]}, GPU over NCCL | |"
  write "|---|---|---|---|"
  for precision in fp32 bf16; do
    printf 'lesson 09 in %s\n' "$precision" >&2
    on_cpu=$(digest --precision "$precision") || on_cpu="failed: $(tail -n 1 "$work/out")"
    on_gpu=$(digest --precision "$precision" --transport nccl) || on_gpu="failed: $(tail -n 1 "$work/out")"
    equal="equal"
    if [[ $on_cpu != "$on_gpu" || $on_cpu == failed* ]]; then equal="**not equal**" failed=1; fi
    write "| $precision | $on_cpu | $on_gpu | $equal |"
  done
  if [[ $devices -lt 2 ]]; then
    write ""
    not_run "more than one rank over NCCL" "this machine shows one GPU, and NCCL wants one for each rank"
  fi
fi

write ""
write "## Lesson 22"
write ""
lesson_22=$(compgen -G "$bin/lesson_22_*" || true)
# NCCL's example profiler writes a trace, where somebody has built it and names it.
# shellcheck disable=SC2317  # "holds" calls it by name
own_trace() {
  rm -rf "$work/trace" && mkdir "$work/trace" || return
  NCCL_PROFILE_DUMP_FILE=$work/trace/nccl NCCL_PROFILE_EVENT_MASK=70 "$lesson_22" "${over_nccl[@]}" &&
    "$bin/muonwalk-trace" summary "$work/trace"
}
if [[ -n $lesson_22 ]]; then
  over_nccl=(--transport nccl "${grid[@]}")
  for options in "" "--precision bf16" "--real-sizes" "--real-sizes --precision bf16"; do
    # shellcheck disable=SC2086
    holds "lesson 22, ${grid[*]}${options:+ $options}" "$lesson_22" "${over_nccl[@]}" $options
  done
  write ""
  write "What rank 0 had queued, with real sizes:"
  write '```'
  grep -A 9 '^step 8 ' "$work/out" >>"$report" || write "nothing was said of it"
  write '```'
  if [[ -z ${NCCL_PROFILER_PLUGIN-} ]]; then
    not_run "NCCL's own trace, read by muonwalk-trace" "NCCL_PROFILER_PLUGIN names no profiler"
  elif [[ $devices -lt 2 ]]; then
    not_run "NCCL's own trace, read by muonwalk-trace" "one rank calls nothing of NCCL's"
  else
    holds "NCCL's own trace, read by muonwalk-trace" own_trace
  fi
else
  not_run "lesson 22" "this checkout has none"
fi

write ""
write "## Speed"
write ""
printf 'Newton–Schulz (a minute or two)\n' >&2
if "$bin/gpu_bench" >"$work/bench" 2>"$work/out"; then
  cat "$work/bench" >>"$report"
else
  failed=1
  cat "$work/bench" >>"$report"
  write ""
  write "- **gpu_bench did not end well**: $(tail -n 1 "$work/out")"
fi

write ""
write "## Products by size"
write ""
# Dense bf16, from the data sheets, by a part of the device's name.
peak_of() {
  case $1 in
    *H100*PCIe*) echo 756 ;; *H100* | *H200* | *H800* | *GH200*) echo 989 ;; *A100* | *A800*) echo 312 ;; *4090*) echo 165 ;;
    *GB300* | *GB200*) echo 2500 ;; *B200* | *B300*) echo 2250 ;;
  esac
}
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || name=
peak=${MUONWALK_PEAK_TFLOPS:-$(peak_of "$name")}
if [[ -z $peak ]]; then
  not_run "products by size" "no peak is known of \"$name\"; set MUONWALK_PEAK_TFLOPS to the dense bf16 TFLOP/s of its data sheet"
elif python3 "$root/tests/gpu/product_efficiency.py" --peak "$peak" >"$work/products" 2>"$work/out"; then
  write "\"product_efficiency\" of a cluster file (docs/cost-model.md), over a peak of $peak TFLOP/s:"
  write '```'
  cat "$work/products" >>"$report"
  write '```'
else
  not_run "products by size" "$(tail -n 1 "$work/out")"
fi

write ""
write "## compute-sanitizer"
write ""
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck synccheck; do
    holds "$tool: kernels, products over several tiles" compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$bin/cuda_kernels_test" --test-case="*several tiles*,*transpose*,*norm*"
  done
  holds "memcheck: Newton–Schulz" compute-sanitizer --tool memcheck --error-exitcode 9 "$bin/cuda_newton_schulz_test"
  if [[ -n $lesson_22 ]]; then
    holds "memcheck: lesson 22" compute-sanitizer --tool memcheck --target-processes all --error-exitcode 9 \
      "$lesson_22" "${over_nccl[@]}"
  else
    not_run "lesson 22 under compute-sanitizer" "this checkout has none"
  fi
else
  not_run "all of it" "compute-sanitizer is not on PATH"
fi

printf 'The report: %s\n' "$report" >&2
exit "$failed"
