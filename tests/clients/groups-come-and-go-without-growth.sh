#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Thousands of groups, made and freed: neither worker nor agent nor head keeps anything of them.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Sanitizers keep what is freed.
HNLAUNCH=$PLAIN/hnlaunch
start --local 4 --label none "$PLAIN/tests/clients/group_churn" "${ROUNDS:-1500}" "$TMP/pid"
echo "$PID" >"$TMP/pid"
finish
exits 'all rounds are done' 0
sed 's/^/# KiB: /' "$OUT"
for who in worker agent head; do
    # shellcheck disable=SC2046
    set -- $(sed -n "s/^$who //p" "$OUT")
    ok "the $who does not grow" test "${1:-0}" -gt 500 -a "${2:-999999}" -le "$((${1:-0} + 512))"
done
nothing_left 'nothing is left'
done_testing
