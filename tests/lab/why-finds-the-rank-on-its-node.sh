#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch why finds the odd rank on other nodes, also through a tree, and a node that does not answer.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1
. "$ROOT/tests/lib/why.sh"

command -v eu-stack >/dev/null || command -v gdb >/dev/null || skip_all 'needs eu-stack (elfutils) or gdb'
runtime_dir
# A user without privileges, on the nodes only: a passwd of the machine that is replaced loses what other tests mount.
[[ $(id -u) == 0 ]] || skip_all 'needs root (makes a user)'
uid=$((20000 + $$ % 10000))
{ cat /etc/passwd; echo "hnwhy:*:$uid:$uid::$TMP/home:/bin/sh"; } >"$TMP/passwd"
mkdir "$TMP/home"
chown "$uid:$uid" "$TMP/home"
chmod 755 "$TMP" "$TMP/work"
lab_up 4 2
for node in node003 node004; do
    lab exec "$node" mount --bind "$TMP/passwd" /etc/passwd
done
hanging=$PLAIN/tests/clients/hanging

why() { "$LAB" run "$LAB_HNLAUNCH" why --json >answer 2>"$TMP/why.err"; }
named() { # NAME
    is "$1: rank 5 is named" "$(field "a['kind'], a['outliers']")" "('hang', [5])"
    is "$1: with its node and its stack" "$(field "ranks[5]['host'], 'load_batch' in ' '.join(ranks[5]['stack'])")" "('node003', True)"
    is "$1: and all others with theirs" "$(field "sum('hn_barrier' in ' '.join(r['stack']) for r in ranks)")" 7
}

for how in '' --tree=2; do
    # shellcheck disable=SC2086
    comes_up "${how:-flat}: eight ranks have met" 8 lab_start -H "$TMP/hosts.txt" $how --node-timeout 60s --label none "$hanging" sleep 5
    ok "${how:-flat}: the others wait" wait_for others_wait 5
    named "${how:-flat}"
    finish_by INT
    lab_nothing_left "${how:-flat}: nothing is left"
done

if "$LAB" run ssh hnwhy@node003 test -x "$hanging"; then
    comes_up 'user: eight ranks have met' 8 lab_start -w 'node[001-002]:2,hnwhy@node[003-004]:2' --label none "$hanging" sleep 5
    ok 'user: the others wait' wait_for others_wait 5
    named user
    finish_by INT
    lab_nothing_left 'user: nothing is left'
else
    skip 'stacks for a user without privileges' 'the build is not readable for other users'
fi

comes_up 'frozen: eight ranks have met' 8 lab_start -H "$TMP/hosts.txt" --node-timeout 60s --label none "$hanging" sleep 5
ok 'frozen: the others wait' wait_for others_wait 5
lab freeze node002
silent() { why && [[ $(field "ranks[2]['life'], ranks[3]['life']") == "('silent', 'silent')" ]]; }
ok 'frozen: a node that does not answer holds nothing up' wait_for silent
is 'frozen: its ranks are among those that differ' "$(field "a['kind'], a['outliers']")" "('hang', [2, 3, 5])"
lab thaw node002
finish_by INT
lab_nothing_left 'nothing is left'
done_testing
