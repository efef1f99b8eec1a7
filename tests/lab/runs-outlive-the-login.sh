#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A run that was started on a login node goes on when the ssh connection of its user is cut, and another login attaches.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 3 1
mkdir -m 700 "$TMP/runtime"
# node001 is the login node; its sessions share the home and the runtime folder.
login() { # COMMAND: what ssh is told
    "$LAB" run ssh -tt node001 "cd '$PWD' && export XDG_STATE_HOME='$XDG_STATE_HOME' XDG_RUNTIME_DIR='$TMP/runtime' TERM=dumb TEST_MARK=$TEST_MARK && $1"
}
holds() { grep -qF -- "$2" "$1"; }
cat >worker.sh <<'END'
i=0
while [ ! -e go ]; do
    i=$((i + 1))
    echo "$RANK wrote $i"
    sleep 0.02
done
echo "$RANK wrote the last of $i"
END

for how in '--on-hup detach' --detach; do
    rm -f go
    login "echo \$\$ >shell; exec $LAB_HNLAUNCH $how -w 'node[002-003]:1' --label none sh worker.sh" >screen 2>&1 </dev/null &
    ssh=$!
    if [[ $how == --detach ]]; then
        wait $ssh
        is "$how: the login is over" $? 0
    else
        ok "$how: a run in a login" wait_for holds screen '1 wrote 20'
        # The connection is cut: the client has no time to say good-bye.
        pkill -KILL -P $ssh
        kill -KILL $ssh 2>/dev/null
        wait $ssh 2>/dev/null
    fi
    login "$LAB_HNLAUNCH ps" >runs 2>&1 </dev/null
    id=$(awk '/ running / { print $1 }' runs)
    ok "$how: it goes on" test -n "$id"
    running=$(lab ps | grep -c 'worker.sh')
    ok "$how: with its ranks" test "$running" -ge 2
    if [[ $how != --detach ]]; then
        ok "$how: and tells it" wait_for holds "$XDG_STATE_HOME/hnlaunch/runs/$id/output" 'the terminal is gone'
    fi
    touch go
    login "$LAB_HNLAUNCH attach $id" >rest 2>&1 </dev/null
    is "$how: another login attaches, until its end" $? 0
    has "$how: and sees it" rest "run $id: finished: 2 ranks exited 0"
    cat screen rest | tr -d '\r' >all
    for r in 0 1; do
        last=$(sed -n "s/^$r wrote the last of //p" all)
        is "$how: no line of rank $r is lost" "$(sed -n "s/^$r wrote \([0-9]*\)\$/\1/p" all | sort -nu | wc -l)" "$last"
    done
    lab_nothing_left "$how: nothing is left"
done
done_testing
