#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: layout.sh SEEDS CORPUS
#
# Compares each message that SEEDS encodes with the file in CORPUS. A difference is a changed layout, which needs a
# new MSG_VERSION in the next release; then SEEDS CORPUS writes the files anew.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
n=0 failed=0
for folder in frame msg pmix_msg store tcpstore_a tcpstore_b; do
    mkdir "$scratch/$folder"
done
"$1" "$scratch" || exit 1
for file in "$scratch"/*/*; do
    n=$((n + 1))
    name=${file#"$scratch/"}
    if cmp -s "$file" "$2/$name"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        failed=1
    fi
done
echo "1..$n"
exit "$failed"
