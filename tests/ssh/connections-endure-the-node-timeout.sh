#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TCP ends a connection later than --node-timeout gives its node up, also during a push: the option of the head's socket
# is read through a copy of it (pidfd_getfd).
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

cat >"$TMP/user_timeout" <<'END'
import ctypes, os, socket, sys
PIDFD_GETFD, TCP_USER_TIMEOUT = 438, 18
pid, port = int(sys.argv[1]), int(sys.argv[2])
pidfd, libc = os.pidfd_open(pid), ctypes.CDLL(None, use_errno=True)
for name in os.listdir(f'/proc/{pid}/fd'):
    fd = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
    if fd < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    try:
        with socket.socket(fileno=fd) as one:
            if one.family == socket.AF_INET and one.getpeername()[1] == port:
                print(one.getsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT))
                break
    except OSError:
        pass
END
sshd_start
trust "$PORT"
write_config 'Host node1' '    HostName 127.0.0.1' "    Port $PORT"
echo pushed >file

endures() { # NAME MS ARG...
    start --ssh-config "$TMP/ssh_config" -w node1 "${@:3}" sh -c 'echo up; exec sleep 600'
    wait_for grep -q up "$OUT"
    got=$(python3 "$TMP/user_timeout" "$PID" "$PORT" 2>&1)
    if [[ $got == *'not permitted'* || $got == *'not implemented'* ]]; then
        skip "$1" "no pidfd_getfd: $got"
    else
        is "$1" "$got" "$2"
    fi
    kill -TERM "$PID"
    finish
}

endures 'the default: a minute and 30 s' 90000
endures 'a longer time: a minute more' 160000 --node-timeout 100s
endures 'a push has ten times as long' 1060000 --node-timeout 100s --push "$PWD/file"
done_testing
