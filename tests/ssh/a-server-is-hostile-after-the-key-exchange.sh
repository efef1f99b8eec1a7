#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A server that is known, and turns hostile behind the key exchange, costs its node only: hnlaunch comes back within its
# time limits, with little memory, names the node and the cause, and shows what the server sent as text.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"
. "$ROOT/tests/lib/measure.sh"

serve() { # MODE
    start_hostile_server "$1"
    read -r PORT key <"$TMP/port"
    printf 'node1 %s\n' "$key" >"$KNOWN"
    write_config 'Host node1' '    HostName 127.0.0.1' "    Port $PORT" '    HostKeyAlias node1' 'Host *'
}

# A fault that hnlaunch notices ends the wait, so that the limits may be far away.
hostile() { # MODE CODE TEXT [ARG...]
    serve "$1"
    measure "$PLAIN/hnlaunch" --ssh-config "$TMP/ssh_config" --connect-timeout 300s --start-timeout 600s "${@:4}" -w node1 true
    cut_short "$1" "$2" "| node1            $3"
    lacks "$1: no letter that turns the line around" "$ERR" $'\u202e'
    is "$1: no row of the server" "$(grep -c '^error\[HN999\]' "$ERR")" 0
    kill "${sshds[-1]}"
}

quick=(--connect-timeout 2s --start-timeout 4s)
silent='the agent did not answer within 4s (--start-timeout)'

hostile 'login: prompts' 68 'the server breaks the ssh protocol during the login'
hostile 'login: prompts without end' 68 'the server breaks the ssh protocol during the login'
hostile 'login: keys without end' 68 'the server breaks the ssh protocol during the login'
hostile 'login: banners without end' 68 'no answer to the ssh login in 4s' "${quick[@]}"
hostile 'login: packets to ignore' 68 'no answer to the ssh login in 4s' "${quick[@]}"
hostile 'login: unknown packets' 68 'the ssh server sends request after request and reads no answer'
hostile 'login: leaves' 77 'ssh login refused'
has 'with the text of the server' "$ERR" '| Received SSH_MSG_DISCONNECT: 2:\x1b]0;owned\x07\x1b[2J<U+202E>eurt<U+2066>'
hostile 'login: refused for ever' 77 'ssh login refused'
hostile 'login: partly good for ever' 77 'ssh login refused: the server wants a second method'

hostile 'channel: refused' 68 'the server refuses the command: Channel opening failure'
hostile 'channel: never opened' 68 'the remote command was not started in 2s' "${quick[@]}"
hostile 'channel: closes at once' 68 'the server refuses the command: the channel was closed'
hostile 'channel: command refused' 68 'the server refuses the command: Channel request exec failed'
hostile 'channel: signal' 69 'the remote command was killed by SIG\x1b]0;owned\x07\x1b[2J'
hostile 'channel: leaves' 68 'the connection was lost: Received SSH_MSG_DISCONNECT: 2:\x1b]0;owned\x07\x1b[2J'

hostile 'flood: packets to ignore' 69 "$silent" "${quick[@]}"
hostile 'flood: channels' 69 "$silent" "${quick[@]}"
hostile 'flood: requests' 69 "$silent" "${quick[@]}"
hostile 'flood: stderr' 69 "$silent" "${quick[@]}"
hostile 'flood: keys' 69 "$silent" "${quick[@]}"
hostile 'flood: questions, unread' 68 'the ssh server sends request after request and reads no answer'
hostile 'flood: unknown packets, unread' 68 'the ssh server sends request after request and reads no answer'

# The reader is slow, and the server does not wait for it.
serve 'flood: output'
measure "$PLAIN/tests/lib/link_probe" -F "$TMP/ssh_config" -s 1 -c true ssh node1
has 'flood: output: the reason' "$ERR" 'the connection was lost: the ssh server sends more than the window allows'
ok "flood: output: less than 64 MiB ($KIB KiB)" test "$KIB" -lt 65536

# Nor does a good server, whose window libssh opens again while the reader is behind.
sshd_start
trust "$PORT"
write_config
measure "$PLAIN/tests/lib/link_probe" -F "$TMP/ssh_config" -s 200000 -c 'head -c 80000000 /dev/zero' ssh "127.0.0.1:$PORT"
is 'a slow reader gets all' "$(wc -c <"$OUT")" 80000000
ok "a slow reader: less than 64 MiB ($KIB KiB)" test "$KIB" -lt 65536
done_testing
