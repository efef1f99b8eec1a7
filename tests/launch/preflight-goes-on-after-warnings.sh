#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --preflight: a warning is told, and the ranks start; so it is with a node that does not answer. A node that dies while it is
# asked is a lost node, and Ctrl-C ends the launch. Each node is an agent of this machine, whose login sets a fault.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >login <<'END'
#!/bin/bash
host=${*: -2:1}
[[ ! -e fault.$host ]] || . "./fault.$host"
exec sh -c "${*: -1}"
END
chmod +x login
export XDG_RUNTIME_DIR=$TMP/runtime XDG_CACHE_HOME=$TMP/cache
mkdir -m 700 "$XDG_RUNTIME_DIR"
base=(--ssh-command "$PWD/login" --oversubscribe --ppn 1 --label none)

# --- warnings
echo 'ulimit -n 1000' >fault.n2
hn_exits 'a warning ends nothing' 0 "${base[@]}" -w n1,n2,n3 --preflight echo up
is 'all ranks run' "$(sort "$OUT" | uniq -c | xargs)" '3 up'
has 'it is one message' "$ERR" 'warning[HN611]: '
has '... with a row for the check' "$ERR" '| limit.files: n2: 1000, expected at least 4096'
has '... and a next step' "$ERR" 'hnlaunch check with the same options tells the next steps'
hn_exits 'stop heeds no warnings' 0 "${base[@]}" -w n1,n2,n3 --preflight=0 --on-bad-node stop --spares 1 echo up
hn "${base[@]}" -w n1,n2 true
lacks 'without the option nothing is told' "$ERR" HN611
hn plan "${base[@]}" -w n1,n2 --preflight true
lacks 'plan asks nothing' "$ERR" HN611
rm fault.n2

# --- this machine
hn --local 2 --label none --preflight echo up
is 'processes of this machine are asked, too' "$RC $(sort "$OUT" | uniq -c | xargs)" '0 2 up'
hn --local 2 --label none --preflight --chdir /nowhere true
is 'a missing directory is found before the start' "$RC $(grep -c 'error.HN610.: 1 of 1 nodes is not fit' "$ERR")" '69 1'
has '... with the check' "$ERR" '| workdir: '
hn_exits 'so is a missing program' 69 "${base[@]}" -w n1,n2 --preflight ./gone
has '... on all nodes' "$ERR" 'error[HN610]: 2 of 2 nodes are not fit'
verdict_has '... and nothing runs' 'nothing was started' '(exit 69)'

# --- a node that does not answer: it is frozen when it has connected, while another one is still connecting
echo 'sleep 5' >fault.n1
cat >freeze <<'END'
me=$BASHPID
sleep 3
for process in $(pgrep -P $$); do
    [[ $process == "$me" ]] || { kill -STOP "$process"; echo "$process"; }
done >frozen
END
freeze() { # COMMAND: what follows
    echo "(. ./freeze; $1) >/dev/null 2>&1 </dev/null &" >fault.n2
}
thaw() { xargs kill -CONT <frozen; }
freeze :
start "${base[@]}" -w n1,n2,n3 --preflight echo up
ok 'it is told' wait_for grep -qE 'n2: no answer in time' "$ERR"
thaw
exits '... and the launch goes on' 0 finish
is '... with all ranks' "$(sort "$OUT" | uniq -c | xargs)" '3 up'

# --- a node that dies while it is asked
freeze 'sleep 3; xargs kill -KILL <frozen'
hn_exits 'a node that dies meanwhile is a lost one' 68 "${base[@]}" -w n1,n2,n3 --preflight echo up
ok '... with its name' grep -qE '\| n2 +its agent was ended' "$ERR"
hn_exits '... which a spare host replaces' 0 "${base[@]}" -w n1,n2,n3,n4 --preflight --spares 1 -x HIP_VISIBLE_DEVICES=-1 echo up
has '... with a line' "$ERR" 'n4 takes the place of n2: '
is '... and the second plan repeats no warning' "$(grep -c 'warning.HN159.' "$ERR")" 1
is '... and all ranks' "$(sort "$OUT" | uniq -c | xargs)" '3 up'

# --- Ctrl-C
freeze :
start "${base[@]}" -w n1,n2,n3 --preflight -v echo up
ok 'all are connected' wait_for grep -qF 'agent 3/3' "$ERR"
exits 'Ctrl-C ends the launch' 130 finish_by INT
is '... before any rank' "$(<"$OUT")" ''
thaw
nothing_left 'nothing is left'
done_testing
