#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# While nodes are waited for, one live line is drawn again and again. It never wraps, however narrow
# the terminal and however long the name of the host.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
export TERM=xterm

name=ip-10-0-0-1.a-very-long-name.compute.example.invalid
printf '#!/bin/sh\nexec sleep 600\n' >slow-ssh
chmod +x slow-ssh

draws_are() { # N: live lines that the terminal got
    [[ $(grep -ao $'\r\033\\[K   [0-9]' tty | wc -l) -ge $1 ]]
}

on_terminal() { # COLUMNS NAME [LATER COLUMNS]: until the live line has been drawn some times
    rm -f tty narrow
    cat >job.sh <<EOF2
stty cols $1
echo \$\$ >pid
exec $HNLAUNCH -w $2 --ssh-command ./slow-ssh --connect-timeout 600s --start-timeout 600s true
EOF2
    : >tty
    script -qefc 'sh job.sh' /dev/null >tty 2>&1 &
    wait_for draws_are 3
    if [[ -n ${3-} ]]; then
        stty -F "$(readlink "/proc/$(cat pid)/fd/2")" cols "$3"
        wait_for draws_are 6
    fi
    kill -TERM "$(cat pid)"
    wait $!
    cp tty "$OUT"
}

widest() { # of the live lines, in columns
    grep -ao $'\033\\[K   [0-9][^\r]*' tty | sed $'s/^\033\\[K//' | wc -L
}

for columns in 80 40 20; do
    on_terminal "$columns" "$name"
    ok "$columns columns: the live line is drawn" draws_are 3
    ok "$columns columns: it is narrower ($(widest))" test "$(widest)" -lt "$columns"
    python3 "$ROOT/tests/lib/screen.py" "$columns" <tty >screen
    is "$columns columns: nothing of it is left" "$(grep -c '^   [0-9]' screen)" 0
done
on_terminal 80 "$name"
ok 'the name has lost its middle' grep -aqE 'waiting for ip-10-[^ ]*\.\.\.[^ ]*invalid \(' tty
on_terminal 40 "$name"
ok 'so has it on a narrow one' grep -aqE '0/1 ready, ip-1[^ ]*\.\.\.[^ ]*lid ' tty
on_terminal 200 "$name"
ok 'a wide terminal shows all of it' grep -aq "waiting for $name (" tty
on_terminal 80 "$name" 40
ok 'a terminal that became narrower is noticed' grep -aq '0/1 ready, ' tty
done_testing
