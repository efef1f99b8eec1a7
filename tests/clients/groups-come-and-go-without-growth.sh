#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Thousands of groups, made and freed: neither worker nor agent nor head keeps anything of them.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Sanitizers keep what is freed.
HNLAUNCH=$PLAIN/hnlaunch
churn() { # NAME ROUNDS KIB-ALLOWED [gloo]
    local name=$1 rounds=$2 more=$3 who
    shift 3
    # shellcheck disable=SC2016
    run sh -c 'echo $$ >"$0"; exec "$@"' "$TMP/pid" \
        "$HNLAUNCH" --local 4 --label none "$PLAIN/tests/clients/group_churn" "$rounds" "$TMP/pid" "$@"
    exits "$name: $rounds rounds" 0
    sed 's/^/# KiB: /' "$OUT"
    for who in worker agent head; do
        # shellcheck disable=SC2046
        set -- $(sed -n "s/^$who //p" "$OUT")
        ok "$name: the $who does not grow" test "${1:-0}" -gt 50 -a "${2:-999999}" -le "$((${1:-0} + more))"
    done
}

churn groups 1500 128
if [[ -e $PLAIN/hn_backend_gloo.so ]]; then
    churn 'groups with Gloo' 200 256 gloo
else
    skip 'groups with Gloo' 'built without Gloo'
fi
nothing_left 'nothing is left'
done_testing
