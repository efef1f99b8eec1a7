#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317  # methods are called by name
#
# staging - what it costs to bring files to N nodes over links of a given rate.
#
#   tests/bench/staging/run.sh [-b BUILD] [-n "1 2 4 8"] [-s BYTES] [-f FILES] [-r RATE] [-w "WAY..."] [-o OUT.json]
#
# Every node has a real sshd and a home of its own (tests/lab/lab); what the login node sends and what each
# node sends goes through a token bucket of RATE (tc's words, default 80mbit). For every number of nodes and
# every way: seconds until the files are on all nodes (for hnlaunch: until a job that needs them has run and
# left), as a multiple of the first number of nodes, and bytes that the login node sent. With FILES, BYTES are
# divided among so many files; without, they are one file beside 50 small ones. Where strace is installed the
# bytes that hnlaunch reads from the files for the largest number of nodes follow; once is for the hashes. Needs
# root. Ways that are not installed are left out.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)
BUILD=$ROOT/build counts="1 2 4 8" size=8000000 files=0 rate=80mbit out=
ways="push push_tree push_again scp_parallel rsync_parallel pdcp_parallel"
while getopts b:n:s:f:r:w:o: opt; do
    case $opt in
    b) BUILD=$(cd "$OPTARG" && pwd -P) ;;
    n) counts=$OPTARG ;;
    s) size=$OPTARG ;;
    f) files=$OPTARG ;;
    r) rate=$OPTARG ;;
    w) ways=$OPTARG ;;
    o) out=$OPTARG ;;
    *) exit 64 ;;
    esac
done
TMP=$(mktemp -d "${TMPDIR:-/tmp}/hnstaging.XXXXXX")
export LAB_DIR=$TMP/lab LAB_NET=${LAB_NET:-10.66} LAB_PRIVATE="/dev/shm /run $TMP/cache"
export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache HNLAUNCH_STAGE_DIR=$TMP/cache"
LAB=$ROOT/tests/lab/lab
trap '"$LAB" down >/dev/null 2>&1; rm -rf "$TMP"' EXIT
mkdir "$TMP/cache" "$TMP/work"
cd "$TMP/work"
mkdir data
if ((files)); then
    for ((i = 0; i < files; i++)); do head -c $((size / files)) /dev/urandom >"data/file$i"; done
    one=data/file0
else
    head -c "$size" /dev/urandom >data/large
    for i in {1..50}; do head -c 2000 /dev/urandom >"data/small$i"; done
    one=data/large
fi

most=0
for n in $counts; do most=$((n > most ? n : most)); done
"$LAB" up "$most" >/dev/null
"$LAB" hosts openmpi 1 >hosts.txt
awk '{ print $1 }' hosts.txt >names.txt
"$LAB" run "$BUILD/hnlaunch" -q --connect-timeout 300s -H hosts.txt true # the agents are there from now on
for ((i = 1; i <= most; i++)); do
    "$LAB" exec "$(printf 'node%03d' "$i")" tc qdisc add dev eth0 root tbf rate "$rate" burst 64k latency 100ms
done
"$LAB" run tc qdisc add dev br0 root tbf rate "$rate" burst 64k latency 100ms

uplink() { "$LAB" run awk '$1 == "br0:" { print $10 }' /proc/self/net/dev; }
hn() { "$LAB" run "$BUILD/hnlaunch" -v --connect-timeout 120s -H hosts.txt --nodes "$N" "$@" --push data test -s "$one"; }
push() { hn; }
push_tree() { hn --tree 2; }
push_again() { hn; }
each() { # COMMAND with NODE in it, for all nodes side by side
    head -n "$N" names.txt | "$LAB" run xargs -P 64 -I NODE "$@"
}
scp_parallel() { each scp -O -q -r data NODE:"$TMP/cache/data"; }
rsync_parallel() { each rsync -a data NODE:"$TMP/cache/"; }
pdcp_parallel() { "$LAB" run pdcp -R ssh -w "$(head -n "$N" names.txt | paste -sd,)" -r data "$TMP/cache/"; }

results=$TMP/results
# shellcheck disable=SC2094
measure() { # NAME FUNCTION
    local before after from to
    before=$(uplink) from=$EPOCHREALTIME
    "$2" >"$TMP/log" 2>&1 || { echo "staging: $1 failed:" >&2; cat "$TMP/log" >&2; return; }
    to=$EPOCHREALTIME after=$(uplink)
    printf '%s %s %s %s\n' "$1" "$N" "$(awk "BEGIN { print $to - $from }")" $((after - before)) >>"$results"
    # Without connections and the job: what hnlaunch says of the files alone.
    sed -n 's/.*: push [0-9/]* in \([0-9.]*\)\(m\{0,1\}s\) .*/\1 \2/p' "$TMP/log" | tail -n 1 |
        awk -v way="$1, the files alone" -v n="$N" -v bytes=$((after - before)) '{ print way, n, $2 == "ms" ? $1 / 1000 : $1, bytes }' >>"$results"
}
fresh() {
    local i
    for ((i = 1; i <= most; i++)); do
        "$LAB" exec "$(printf 'node%03d' "$i")" sh -c "rm -rf $TMP/cache/data $TMP/cache/hnlaunch-stage-0"
    done
}

declare -A names=([push]=--push [push_tree]='--push --tree 2' [push_again]='--push, kept' [scp_parallel]='scp in parallel'
    [rsync_parallel]='rsync in parallel' [pdcp_parallel]=pdcp)
for N in $counts; do
    for way in $ways; do
        case $way in
        rsync*) command -v rsync >/dev/null || continue ;;
        pdcp*) command -v pdcp >/dev/null || continue ;;
        esac
        fresh
        [[ $way != push_again ]] || hn --push-keep >/dev/null 2>&1
        measure "${names[$way]}" "$way"
    done
done

reads=
if command -v strace >/dev/null; then
    N=$most
    fresh
    "$LAB" run strace -f -qq -y -e trace=read,pread64 -o "$TMP/trace" "$BUILD/hnlaunch" -q -H hosts.txt --nodes "$N" --push data true
    reads=$(grep -F "<$PWD/data/" "$TMP/trace" | awk -F' = ' '$NF > 0 { n += $NF } END { print n + 0 }')
fi

total=$(find data -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')
python3 - "$results" "$total" "$rate" "$out" "$reads" <<'PY'
import json
import re
import sys

rows = [re.match(r"(.*) (\d+) (\S+) (\d+)$", line).groups() for line in open(sys.argv[1])]
data = [{"way": w, "nodes": int(n), "seconds": round(float(s), 2), "uplink_bytes": int(b)} for w, n, s, b in rows]
ways = list(dict.fromkeys(d["way"] for d in data))
counts = sorted({d["nodes"] for d in data})
print(f"{int(sys.argv[2]) / 1e6:.1f} MB to N nodes, every link {sys.argv[3]}: seconds, MB that the login node sent\n")
print("| way | " + " | ".join(f"N={n}" for n in counts) + " |")
print("|---|" + "---|" * len(counts))
for w in ways:
    first = next(d["seconds"] for d in data if d["way"] == w)
    cells = {d["nodes"]: f"{d['seconds']:.1f} s ({d['seconds'] / first:.2f}), {d['uplink_bytes'] / 1e6:.1f} MB"
             for d in data if d["way"] == w}
    print(f"| {w} | " + " | ".join(cells.get(n, "") for n in counts) + " |")
if sys.argv[5]:
    print(f"\nhnlaunch read {int(sys.argv[5]) / 1e6:.1f} MB of the files for {counts[-1]} nodes, one time for the hashes")
if sys.argv[4]:
    json.dump({"bytes": int(sys.argv[2]), "rate": sys.argv[3], "results": data}, open(sys.argv[4], "w"), indent=1)
PY
