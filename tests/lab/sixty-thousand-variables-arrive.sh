#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Environments of 60,000 variables reach the ranks of two nodes over ssh, and no node is lost meanwhile.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 2 4
seq -f 'V%.0f=x' 60000 >"$TMP/variables"
lab_hn -q -H "$TMP/hosts.txt" --label none --env-file "$TMP/variables" sh -c "env | grep -c '^V[0-9]*=x\$'"
exits 'no node is lost' 0
is 'each rank has all variables' "$(sort "$OUT" | uniq -c | tr -s ' ')" ' 8 60000'
done_testing
