#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A server that floods, stays silent or lies costs its node only: hnlaunch comes back within its
# time limits, with little memory, and the terminal shows what the server sent as text.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"
. "$ROOT/tests/lib/measure.sh"

# A hostile server gets two seconds for each phase.
launch() {
    measure "$PLAIN/hnlaunch" --ssh-config "$TMP/ssh_config" --connect-timeout 2s --start-timeout 4s "$@" -w node1 true
}

before_login() { # MODE TEXT
    start_hostile_server "$1"
    write_config 'Host node1' '    HostName 127.0.0.1' "    Port $(cut -d' ' -f1 "$TMP/port")" 'Host *'
    launch
    cut_short "$1" 68 "$2"
    kill "${sshds[-1]}"
}

before_login 'silence' 'no ssh handshake on port'
before_login 'lines' 'no ssh handshake on port'
before_login 'a line' 'no ssh server on port'
before_login 'a version' 'Receiving banner: too large banner'
lacks 'which is no drop' "$ERR" 'the server closes'
before_login 'lines, slowly' 'no ssh handshake on port'
before_login 'a version, slowly' 'no ssh handshake on port'
before_login 'escapes' "it sent '\\x1b]0;owned\\x07\\x1b[2Jhello'"
before_login 'version 1' 'No version of SSH protocol usable'
before_login 'only a version' 'no ssh handshake on port'
before_login 'a huge packet' 'Packet len too high'
lacks 'which is no drop' "$ERR" 'the server closes'
before_login 'noise' 'ssh handshake on port'
before_login 'ignored packets' 'no ssh handshake on port'
before_login 'debug packets' 'no ssh handshake on port'
before_login 'a disconnect' 'the server closes the connection during the handshake'
is 'its text is one row' "$(grep -c forged "$ERR")" 1

# Servers that let in, and then never become an agent.
after_login() { # NAME COMMAND [ARG...]
    sshd_start "ForceCommand $2"
    printf 'node1 %s\n' "$(sshd_key)" >>"$KNOWN"
    write_config 'Host node1' '    HostName 127.0.0.1' "    Port $PORT" '    HostKeyAlias node1' 'Host *'
    launch "${@:3}"
    cut_short "$1" 69 'error[HN210]: the agent cannot run on node1'
}

after_login 'a login that floods stdout' 'exec yes'
after_login 'a login that floods stderr' 'exec yes >&2'
after_login 'a login that sends zeros' 'exec cat /dev/zero'
after_login 'a login that sends escapes' 'printf "\033]0;owned\007\033[2J\n" >&2; exit 3'
after_login 'a login that is silent' 'exec sleep 1000'
after_login 'a login that drips' 'while :; do echo junk; echo junk >&2; sleep 0.1; done'
done_testing
