#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The public headers are good C17 and C++17 under all warnings, alone and together, and nccl.h calls
# of each NCCL only what that one has: the oldest and the newest from PyPI, and the one of this machine.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/nccl.sh"

WARN="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Wcast-qual -Werror"

compiles() { # NAME COMPILER ARG...: no warning either
    local name=$1
    shift
    rm -f "$TMP/a.o"
    # shellcheck disable=SC2086
    ok "$name" "$@" $WARN -I "$ROOT/include" -c -o "$TMP/a.o"
}

each_way() { # NAME SOURCE ARG...: C and C++ with the compilers that there are
    local name=$1 source=$2 cc
    shift 2
    for cc in gcc clang; do
        command -v "$cc" >/dev/null || continue
        compiles "$name: C17, $cc" "$cc" -std=c17 -Wstrict-prototypes -Wmissing-prototypes "$@" -x c "$source"
    done
    for cc in g++ clang++; do
        command -v "$cc" >/dev/null || continue
        compiles "$name: C++17, $cc" "$cc" -std=c++17 "$@" -x c++ "$source"
    done
}

for header in hnlaunch comm nccl_rules; do
    # Twice: nothing may be defined twice then.
    printf '#include <hnlaunch/%s.h>\n#include <hnlaunch/%s.h>\n' "$header" "$header" >alone.c
    each_way "$header.h alone" alone.c
done
printf '#include <hnlaunch/%s.h>\n' comm nccl_rules hnlaunch >all.c
each_way 'all of them together' all.c

# --- NCCL: real headers -----------------------------------------------------------------------------

calls=$ROOT/tests/clients/nccl_calls.c

# The same header says that it is older: then nothing newer may be called.
calls_of() { # MINOR: NCCL's functions that the program calls, in $TMP/calls
    mkdir -p "old$1"
    sed -e "s/^#define NCCL_MINOR .*/#define NCCL_MINOR $1/" \
        -e "s/^#define NCCL_VERSION_CODE .*/#define NCCL_VERSION_CODE NCCL_VERSION(2,$1,0)/" "$NCCL_HEADER" >"old$1/nccl.h"
    compiles "a program for NCCL 2.$1" gcc -std=c17 -isystem "old$1" "${NCCL_INCLUDES[@]}" "$calls"
    nm -u "$TMP/a.o" 2>&1 | awk '/ nccl/ { print $2 }' >"$TMP/calls"
}

with_this_nccl() {
    local name="NCCL 2.$NCCL_MINOR"
    echo "# $name: $NCCL_HEADER"
    printf '#include <hnlaunch/nccl.h>\n#include <hnlaunch/nccl.h>\n' >alone.c
    each_way "$name: nccl.h alone" alone.c "${NCCL_INCLUDES[@]}"
    each_way "$name: a program that uses all of it" "$calls" "${NCCL_INCLUDES[@]}"
    ok "$name: the plug-in takes it for what it is" gcc -std=c17 -Wall -Wextra -Werror -fsyntax-only \
        "${NCCL_INCLUDES[@]}" "$ROOT/tests/clients/nccl_numbers.c"
}

ok 'the plug-in takes NCCL for what it says itself' gcc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only \
    -DPLUGIN -I "$ROOT/include" -I "$ROOT/src" "$ROOT/tests/clients/nccl_numbers.c"
for which in OLDEST NEWEST here; do
    if [[ $which == here ]] && ! nccl_here || [[ $which != here ]] && ! nccl_kit "$which"; then
        skip "nccl.h with an NCCL: $which" "$NCCL_LACKS"
        continue
    fi
    with_this_nccl
done
if [[ -z ${NCCL_HEADER-} ]]; then
    done_testing
fi
for minor in 14 17 18 20 22 23 27 28 30; do
    [[ $minor -le $NCCL_MINOR ]] || continue
    calls_of "$minor"
    has "2.$minor: a config is used" "$TMP/calls" ncclCommInitRankConfig
    "$([[ $minor -ge 18 ]] && echo has || echo lacks)" "2.$minor: splitting" "$TMP/calls" ncclCommSplit
    "$([[ $minor -ge 23 ]] && echo has || echo lacks)" "2.$minor: several ids" "$TMP/calls" ncclCommInitRankScalable
done
mkdir old13
sed 's/^#define NCCL_VERSION_CODE .*/#define NCCL_VERSION_CODE NCCL_VERSION(2,13,4)/' "$NCCL_HEADER" >old13/nccl.h
run gcc -std=c17 -I "$ROOT/include" -isystem old13 "${NCCL_INCLUDES[@]}" -c -o "$TMP/a.o" "$calls"
has 'NCCL 2.13 is too old, and that is told' "$ERR" 'hnlaunch/nccl.h needs NCCL 2.14 or newer'
done_testing
