#!/usr/bin/env bash
# Build llama-cpp-python for this machine, and say while it compiles how far it has come.
# Usage: install_llama.sh PYTHON LOCK LOG
set -u
python=$1 lock=$2 log=$3

if ! command -v c++ >/dev/null; then
    echo "llama-cpp-python is compiled from source and needs a C++ compiler: install g++ or clang" >&2
    exit 1
fi
echo "Building llama-cpp-python, which runs the language model: it compiles from source, once,"
echo "about 8 minutes on 2 cores. The compiler's output goes to $log."

# The packages besides it are installed already, so that only this one is left to build.
CMAKE_ARGS="-DLLAVA_BUILD=OFF ${CMAKE_ARGS:-}" \
    "$python" -m pip --disable-pip-version-check install --verbose --require-hashes \
    --requirement "$lock" >"$log" 2>&1 &
build=$!
trap 'kill $build 2>/dev/null' INT TERM

started=$SECONDS
pause=2
[ -t 1 ] || pause=20
while kill -0 $build 2>/dev/null; do
    step=$(grep -oE '\[[0-9]+/[0-9]+\]' "$log" | tail -n 1)
    line="  ${step:-[preparing]} $((SECONDS - started)) s"
    if [ -t 1 ]; then printf '\r%s ' "$line"; else echo "$line"; fi
    sleep $pause
done
[ -t 1 ] && echo
if ! wait $build; then
    tail -n 25 "$log" | cut -c 1-200 >&2
    echo "The build failed; the end of $log is above. Without it: --extractor sentences" >&2
    exit 1
fi
echo "llama-cpp-python is built ($((SECONDS - started)) s)."
