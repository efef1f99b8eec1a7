#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# BindAddress and BindInterface choose the local address of a connection, or end it, as with
# ssh(1), which is asked the same each time.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_beside_ssh 'LogLevel VERBOSE'

# The addresses of the clients that came since the last question, in one line.
came_from() {
    local all
    mapfile -t all < <(sed -n 's/^Connection from \([^ ]*\) .*/\1/p' "$SSHD/log")
    printf '%s' "${all[*]:${seen:-0}}"
    seen=${#all[@]}
}

arrives() { # NAME ADDRESS...: of hnlaunch's connections, and then of ssh's
    came_from >/dev/null
    probe -c 'echo in' ssh "$at"
    exits "$1" 0
    came_from >"$TMP/from"
    is "$1: the server sees it" "$(<"$TMP/from")" "$2"
    ok "$1: for ssh, too" ssh_logs_in
    came_from >"$TMP/from"
    is "$1: the server sees the same of ssh" "$(<"$TMP/from")" "$2"
}

refused() { # NAME TEXT
    came_from >/dev/null
    probe -c 'echo in' ssh "$at"
    is "$1: not opened" "$RC" 1
    has "$1: the reason" "$ERR" "$2"
    ok "$1: ssh does not connect either" not ssh_logs_in
    is "$1: nothing came" "$(came_from)" ''
}

write_config 'BindAddress 127.0.0.5'
arrives 'BindAddress' 127.0.0.5
write_config 'BindAddress 127.0.0.6' 'BindAddress 127.0.0.5' 'BindInterface nosuch0'
arrives 'the first BindAddress wins, and wins over BindInterface' 127.0.0.6
write_config 'BindInterface lo'
arrives 'BindInterface' 127.0.0.1
write_config 'Host other' '    BindAddress 127.0.0.5'
arrives 'a BindAddress of another host' 127.0.0.1

write_config 'BindAddress 203.0.113.77'
refused 'an address of another machine' 'cannot connect from BindAddress 203.0.113.77: Cannot assign'
write_config 'BindAddress ::1'
refused 'an address of the other family' 'cannot connect from BindAddress ::1: '
write_config 'BindAddress no.such.name.invalid'
refused 'a name that does not resolve' 'cannot use BindAddress no.such.name.invalid: '
write_config 'BindInterface nosuch0'
refused 'an interface that is not there' 'cannot use BindInterface nosuch0: no such interface'

# A jump host is reached from its own BindAddress; behind it the jump host connects.
write_config 'Host jump' '    HostName 127.0.0.1' "    Port $PORT" '    BindAddress 127.0.0.7' \
    '    HostKeyAlias inner' \
    'Host inner' '    HostName 127.0.0.1' "    Port $PORT" '    BindAddress 203.0.113.77' \
    '    HostKeyAlias inner' '    ProxyJump jump'
printf 'inner %s\n' "$(sshd_key)" >>"$KNOWN"
came_from >/dev/null
probe -c 'echo in' ssh inner
exits 'over a jump host' 0
came_from >"$TMP/from"
is 'the jump host is reached from its own address' "$(<"$TMP/from")" '127.0.0.7 127.0.0.1'
ok 'ssh goes there' ssh_logs_in inner
came_from >"$TMP/from"
is 'in the same way' "$(<"$TMP/from")" '127.0.0.7 127.0.0.1'

write_config 'BindInterface nosuch0' 'Host node1' '    HostName 127.0.0.1'
hn --ssh-config "$TMP/ssh_config" -p "$PORT" -w node1 true
exits 'a launch' 68
has 'tells the interface' "$ERR" 'cannot use BindInterface nosuch0'
done_testing
