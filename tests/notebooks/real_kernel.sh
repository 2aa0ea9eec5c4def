#!/usr/bin/env bash
# Executes all notebooks in a kernel called xcpp17, which Jupyter finds (also through JUPYTER_PATH), and checks what a reader
# does with it: cells, pictures, interrupt and restart. For whoever has such a kernel; needs ./walk notebooks --library.
#
#   tests/notebooks/real_kernel.sh [--only CHECKS] [--into FOLDER] [--limit SECONDS] [--library FILE] [NOTEBOOK...]
#
# Exit code 0: all checks hold. 1: one does not. 2: nothing can be checked as asked. 77: there is no such kernel here, or no
# Python with the module jupyter_client; a sentence says which. MUONWALK_PYTHON names the Python to use.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# The module is where Jupyter is; Debian's belongs to the system's Python, and another Python may come first.
for python in ${MUONWALK_PYTHON:-python3 /usr/bin/python3}; do
  if "$python" -c 'import jupyter_client' 2>/dev/null; then exec "$python" "$here/real_kernel.py" "$@"; fi
done
echo "skipped: no Python here has the module jupyter_client, which comes with Jupyter and with Debian's python3-jupyter-client"
exit 77
