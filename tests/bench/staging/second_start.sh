#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# second_start - what --venv adds to a start on nodes that have the environment.
#
#   tests/bench/staging/second_start.sh -d VENV [-b BUILD] [-n NODES] [-p PAIRS]
#
# Lab nodes with a /tmp of their own (tests/lab/lab) get the environment once. Then a start without --venv, one with
# it and a `find` that looks at all sizes follow each other PAIRS times. VENV must be older than some seconds, else it is
# not remembered. Needs root.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)
BUILD=$ROOT/build venv='' nodes=2 pairs=15
while getopts b:d:n:p: opt; do
    case $opt in
    b) BUILD=$(cd "$OPTARG" && pwd -P) ;;
    d) venv=$(cd "$OPTARG" && pwd -P) ;;
    n) nodes=$OPTARG ;;
    p) pairs=$OPTARG ;;
    *) exit 64 ;;
    esac
done
[[ -n $venv ]] || { echo 'second_start: name a virtual environment with -d' >&2; exit 64; }
TMP=$(mktemp -d "${TMPDIR:-/tmp}/hnsecond.XXXXXX")
export LAB_DIR=$TMP/lab LAB_NET=${LAB_NET:-10.67} LAB_PRIVATE='/dev/shm /run /tmp /var/tmp'
export XDG_CACHE_HOME=$TMP/cache XDG_STATE_HOME=$TMP/state
LAB=$ROOT/tests/lab/lab
trap '"$LAB" down >/dev/null 2>&1; rm -rf "$TMP"' EXIT
mkdir "$TMP/cache" "$TMP/state"
cd /
"$LAB" up "$nodes" >/dev/null
"$LAB" hosts plain >"$TMP/hosts"
start() { "$LAB" run "$BUILD/hnlaunch" -q -H "$TMP/hosts" "$@" true; }
start --venv "$venv"
"$LAB" run "$BUILD/hnlaunch" -v -H "$TMP/hosts" --venv "$venv" true 2>&1 | grep 'all files already there' ||
    { echo 'second_start: the second start sends files' >&2; exit 1; }
uptime
"$LAB" run python3 - "$pairs" "$venv" "$BUILD/hnlaunch" -q -H "$TMP/hosts" <<'PY'
import statistics
import subprocess
import sys
import time

pairs, venv, start = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
ways = {
    "without": [*start, "true"],
    "with --venv": [*start, "--venv", venv, "true"],
    "find": ["find", venv, "-size", "+1000000k"],
}
times = {name: [] for name in ways}
for _ in range(pairs):
    for name, command in ways.items():
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        times[name].append((time.perf_counter() - begin) * 1e3)
for name, all_of in times.items():
    print(f"{name:12} {statistics.median(all_of):7.1f} ms, least {min(all_of):.1f}")
more = [b - a for a, b in zip(times["without"], times["with --venv"])]
print(f"more by --venv, median of {pairs} pairs: {statistics.median(more):.1f} ms")
PY
uptime
