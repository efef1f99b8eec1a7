#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/tutorial.md is run from top to bottom, and prints what it says.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/page.sh" || exit 1

for tool in cc pkg-config python3; do
    command -v "$tool" >/dev/null || skip_all "needs $tool"
done
tutorial=$ROOT/docs/tutorial.md
export PATH=$PLAIN:$PATH PKG_CONFIG_PATH=$PLAIN/meson-uninstalled LD_LIBRARY_PATH=$PLAIN

page_files "$tutorial"
ok 'there are programs' test -s pi.c -a -s pi_all.c -a -s keys.c -a -s rows.c -a -s sum.c -a -s sum_gpu.c -a -s stuck.c

page_check() { # COMMAND FILE-WITH-ITS-OUTPUT
    if [[ $1 == *./sum* && ! -e $PLAIN/hn_backend_gloo.so ]]; then
        skip "$1" 'built without Gloo'
    elif [[ $1 == *'hnlaunch why'* ]] && ! command -v eu-stack >/dev/null && ! command -v gdb >/dev/null; then
        skip "$1" 'needs eu-stack or gdb'
    else
        page_compare "$@"
    fi
}
page_commands "$tutorial"

awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$tutorial" >hello.py
cp -r "$ROOT/examples/python/hnlaunch/" .
run hnlaunch --local 2 --label none python3 hello.py
is 'the program in Python' "$(sort "$OUT")" $'0 hello\n1 hello'

cuda=/usr/local/cuda/include
if [[ -e $cuda/nccl.h && -e $cuda/cuda_runtime.h ]]; then
    # shellcheck disable=SC2046
    run cc -Wall -Wextra -Werror -c sum_gpu.c $(pkg-config --cflags hnlaunch) -isystem "$cuda"
    is 'the program for NCCL compiles' "$RC$(cat "$ERR")" 0
else
    skip 'the program for NCCL compiles' 'no CUDA with NCCL'
fi
done_testing
