#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Includes point only downward: head, agent, client -> store -> wire -> base; never head <-> agent.
set -u
cd "$(dirname "$0")/.." || exit 1
n=0 failed=0

result() { # NAME BAD-LINES
    n=$((n + 1))
    if [ -z "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "$2" | sed 's/^/# /'
        failed=1
    fi
}

# Lines of LAYER that include another folder of src/ than the allowed ones.
strangers() { # LAYER ALLOWED...
    layer=$1
    shift
    allowed=$(echo "$layer $*" | tr ' ' '|')
    grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' "src/$layer" --include='*.[ch]' --include='*.cc' --include='*.cpp' |
        grep -vE "\"($allowed)/" | grep -vE '"hnlaunch/'
}

result "base includes nothing above libc" "$(strangers base)"
result "wire includes only base" "$(strangers wire base)"
result "store includes only wire and base" "$(strangers store wire base)"
result "agent includes store, wire and base, never head" "$(strangers agent store wire base)"
result "head includes store, wire and base, never agent" "$(strangers head store wire base)"
result "client includes store, wire and base" "$(strangers client store wire base)"
result "public headers include nothing of src" "$(grep -rnE '^#[[:space:]]*include[[:space:]]+"(base|wire|store|head|agent|client)/' include)"
result "store and wire open no descriptors" "$(grep -rnE '#include <(uv\.h|sys/socket\.h|sys/epoll\.h|unistd\.h|fcntl\.h)>' src/store src/wire)"
result "every source names its licence in the first line" "$(
    find src include tests examples -name '*.[ch]' -o -name '*.cc' | while read -r f; do
        head -n 1 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"
    done)"
result "no source file is longer than 800 lines" "$(
    find src include tests examples -name '*.[ch]' -o -name '*.cc' | while read -r f; do
        [ "$(wc -l <"$f")" -le 800 ] || echo "$f"
    done)"
result "every header is included once" "$(
    find src include tests -name '*.h' | while read -r f; do
        grep -q '^#pragma once' "$f" || echo "$f"
    done)"
if command -v clang-format >/dev/null; then
    result "clang-format would change nothing" "$(
        find src include tests examples -name '*.[ch]' -o -name '*.cc' |
            xargs clang-format --dry-run 2>&1 | grep -o '^[^ ]*: warning' | sort -u)"
fi
echo "1..$n"
exit "$failed"
