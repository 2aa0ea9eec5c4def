#!/usr/bin/env bash
# fibers_in_node.sh EM++ NODE DOCTEST: the tests of fibers (tests/fibers), compiled to WebAssembly and run by node; in the folder of
# the sources. DOCTEST is the folder above doctest/. What main returns is lost once a fiber has had a turn, so ctest looks for
# doctest's last line.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/headers"
ln -s "$3/doctest" "$folder/headers/doctest"  # alone: beside it lie headers of this machine's C library
NODE_PATH=/usr/share/nodejs "$1" -std=c++17 -O2 -fexceptions -DDOCTEST_CONFIG_NO_POSIX_SIGNALS -I. -isystem "$folder/headers" -sASYNCIFY \
  -sALLOW_MEMORY_GROWTH=1 -sSINGLE_FILE=1 tests/test_main.cpp tests/fibers/fibers_test.cpp sim/fibers/fibers.cpp \
  sim/fibers/fiber_stacks_emscripten.cpp src/numerics/memory_meter.cpp -o "$folder/fibers_test.js"
"$2" "$folder/fibers_test.js" --no-colors
