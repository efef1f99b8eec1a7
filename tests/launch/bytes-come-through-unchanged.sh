#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With --label none the output of one rank is what the rank wrote, whatever the bytes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

python3 -c '
import random, sys
random.seed(7)
sys.stdout.buffer.write(bytes(range(256)) * 40 + random.randbytes(3_000_000) + b"no end of line")' >blob

hn -q --local 1 --label none cat blob
exits 'cat of a binary gives 0' 0
same 'stdout is byte-exact' "$OUT" blob

hn -q --local 1 --label none sh -c 'cat blob >&2'
same 'stderr is byte-exact' "$ERR" blob

run sh -c '"$1" -q --local 1 --label none cat blob | cat' sh "$HNLAUNCH"
same 'stdout is byte-exact through a pipe' "$OUT" blob

# Two ranks: the order of lines is free, each rank's own is not.
python3 -c '
for i in range(20000):
    print(i, "é\x1b[31m\t", "x" * (i % 97))' >text
hn -q --local 2 sh -c 'cat text'
for r in 0 1; do
    sed -nE "s/^([^ ]+:)? *$r \\| //p" "$OUT" >"got.$r"
    same "lines of rank $r in their order" "got.$r" text
done
done_testing
