#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Thousands of groups, made and freed: neither worker nor agent nor head keeps anything of them.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Sanitizers keep what is freed.
HNLAUNCH=$PLAIN/hnlaunch
# The agent also keeps the trace of requests, which grows with time: --trace writes the trace, so that its size is known.
churn() { # NAME ROUNDS [gloo]
    local name=$1 rounds=$2 log=$TMP/log-$2 who kib more
    shift 2
    run sh -c 'echo $$ >"$0"; exec "$@"' "$TMP/pid" "$HNLAUNCH" --local 4 --label none --trace --log-dir "$log" \
        "$PLAIN/tests/clients/group_churn" "$rounds" "$TMP/pid" "$@"
    exits "$name: $rounds rounds" 0
    kib=$(du -k --apparent-size "$log/latest/trace" | cut -f 1)
    printf '# KiB: %s\n' "trace ${kib:=0}"
    sed 's/^/# KiB: /' "$OUT"
    for who in worker agent head; do
        more=64
        [[ $who != agent ]] || more=$((more + kib))
        # shellcheck disable=SC2046
        set -- $(sed -n "s/^$who //p" "$OUT")
        ok "$name: the $who does not grow" test "${1:-0}" -gt 50 -a "${2:-999999}" -le "$((${1:-0} + more))"
    done
}

churn groups 1500
if [[ -e $PLAIN/hn_backend_gloo.so ]]; then
    churn 'groups with Gloo' 200 gloo
else
    skip 'groups with Gloo' 'built without Gloo'
fi
nothing_left 'nothing is left'
done_testing
