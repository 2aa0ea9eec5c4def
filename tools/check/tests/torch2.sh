#!/usr/bin/env bash
# The dump script with torch 2: its own Muon, FSDP2 and tensor parallelism in real ranks; what they dump is judged clean.
#
#     torch2.sh MUONWALK_CHECK FOLDER
#
# FOLDER keeps a virtual environment with torch, made from the package index with the first call (some 200 MB, and 1 GB on
# the disk). Exit code 77, with the reason: there is no such index. MUONWALK_TORCH=torch takes what the index has, with CUDA
# (several GB) where it has no wheel for CPUs alone.
set -u
program=$1 folder=$2
torch=${MUONWALK_TORCH:-torch==2.13.0+cpu}
tests=$(CDPATH="" cd -- "$(dirname -- "$0")" && pwd)
python=$folder/venv/bin/python

skip() {
  echo "SKIPPED: $1"
  exit 77
}

mkdir -p "$folder" || exit 1
if ! "$python" -c 'import torch' 2>/dev/null; then
  rm -rf "$folder/venv"
  python3 -m venv "$folder/venv" || skip "python3 can't make a virtual environment here"
  "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$torch" numpy >"$folder/pip.log" 2>&1 ||
    skip "the package index, if there is one, has no $torch: $(grep -m 1 -E '^ERROR' "$folder/pip.log")"
fi

dumped=$folder/dumped
rm -rf "$dumped" && mkdir "$dumped"
"$python" "$tests/torch2_ranks.py" "$dumped" || exit 1
failed=0
for what in alone fsdp fsdp_tp; do
  echo "--- $what"
  "$program" "$dumped/$what" || failed=1
done
exit $failed
