#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs libFuzzer targets one after the other and adds to each corpus the inputs that reach new edges.
#
# usage: sh tests/fuzz/fuzz.sh MINUTES [TARGET...]
#
#   MINUTES  for each target; 0 only merges the inputs of earlier runs
#   TARGET   a folder of tests/fuzz/corpus (default: all of them)
#
# Every input with new coverage is kept in build-fuzz/found/TARGET, and the next run continues from there. The merge cuts
# inputs to 1 KiB and takes the fewest that reach all edges beyond those of the corpus. An input that fails is
# build-fuzz/found/TARGET.crash-* (or .leak-*, .oom-*, .timeout-*): then the script names it and exits with 1.
# One line per target tells the executions, the edges of the corpus before and after, and the files added.
set -u
usage() { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
case ${1-} in '' | *[!0-9]*) usage ;; esac
MINUTES=$1
shift
cd "$(dirname "$0")/../.." || exit 1
[ $# -gt 0 ] || set -- $(cd tests/fuzz/corpus && echo */ | tr -d /)
FOUND=build-fuzz/found
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

[ -d build-fuzz ] || meson setup build-fuzz --native-file tests/fuzz.ini >&2 || exit 1
ninja -C build-fuzz $(printf 'tests/fuzz/fuzz_%s ' "$@") >&2 || exit 1
mkdir -p "$FOUND"

edges() { # TARGET: those that its corpus reaches
    "build-fuzz/tests/fuzz/fuzz_$1" -runs=0 -use_counters=0 "tests/fuzz/corpus/$1" 2>&1 |
        sed -n 's/.*INITED cov: \([0-9]*\).*/\1/p'
}

failed=0
printf '%-14s %11s %7s %7s %6s\n' target executions before after added
for target; do
    fuzz=build-fuzz/tests/fuzz/fuzz_$target
    corpus=tests/fuzz/corpus/$target
    log=$FOUND/$target.log
    mkdir -p "$FOUND/$target"
    before=$(edges "$target")
    executions=0
    if [ "$MINUTES" -gt 0 ]; then
        "$fuzz" -max_total_time=$((MINUTES * 60)) -timeout=60 -print_final_stats=1 \
            -artifact_prefix="$FOUND/$target." "$FOUND/$target" "$corpus" >"$log" 2>&1 || {
            failed=1
            echo "fuzz_$target failed: $log" >&2
            sed -n 's/.*Test unit written to /    /p' "$log" >&2
        }
        executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    fi
    "$fuzz" -set_cover_merge=1 -use_counters=0 -max_len=1024 "$corpus" "$FOUND/$target" >"$log.merge" 2>&1 || {
        failed=1
        echo "fuzz_$target cannot be merged: $log.merge" >&2
    }
    added=0
    for file in "$corpus"/*; do # libFuzzer names a file by its SHA-1
        name=${file##*/}
        [ "${#name}" -eq 40 ] || continue
        mv "$file" "$corpus/found-$(echo "$name" | cut -c1-10)"
        added=$((added + 1))
    done
    printf '%-14s %11s %7s %7s %6s\n' "$target" "${executions:-?}" "$before" "$(edges "$target")" "$added"
done
exit "$failed"
