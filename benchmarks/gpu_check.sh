#!/usr/bin/env bash
# Check both model stages on the CUDA device of this machine; see gpu_check.py.
# PYTHON names an interpreter that has torch and llama-cpp-python built for CUDA.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}"
PYTHONPATH=. HF_HUB_OFFLINE=1 exec "$PYTHON" benchmarks/gpu_check.py "$@"
