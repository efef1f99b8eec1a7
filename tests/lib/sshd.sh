# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A real sshd on a free port of 127.0.0.1, run by whoever runs the test. After tap.sh:
#
#   sshd_start [LINE...]        more lines for its config; sets PORT; its files are in $SSHD
#   sshd_beside_ssh [LINE...]   the same, known to the client, at $at, for tests that ask ssh(1) the same; skips without
#   ssh_logs_in [HOST]          whether ssh(1) does, with $TMP/ssh_config; its words are in $TMP/ssh.err
#   key_refused, start_hostile_server, start_ssh_agent, add_locked
#   probe ARG...                link_probe with $TMP/ssh_config, as run() of tap.sh
#
# Client side: $KEY (allowed to log in), $TMP/ssh_config (names $KEY and $KNOWN), $KNOWN.

SSHD_BIN=$(PATH=$PATH:/usr/sbin:/sbin type -P sshd) || skip_all 'no sshd here'
PROBE=${PROBE:-$BUILD/tests/lib/link_probe}
[[ -x $PROBE ]] || skip_all "no $PROBE"
ME=$(id -un)
KEY=$TMP/id KNOWN=$TMP/known_hosts
sshds=()
unset SSH_AUTH_SOCK SSH_AGENT_PID

ssh-keygen -q -t ed25519 -N '' -C test -f "$KEY"
cp "$KEY.pub" "$TMP/authorized_keys"
: >"$KNOWN"

write_config() { # LINE...: the client's config
    {
        printf '%s\n' "$@"
        printf 'Host *\n    IdentityFile "%s"\n    UserKnownHostsFile "%s"\n' "$KEY" "$KNOWN"
        printf '    GlobalKnownHostsFile /dev/null\n    IdentitiesOnly yes\n'
    } >"$TMP/ssh_config"
}
write_config

sshd_key() { cut -d' ' -f1,2 "$SSHD/host_key.pub"; }

trust() { # PORT: writes the running sshd's key as known
    printf '[127.0.0.1]:%s %s\n' "$1" "$(sshd_key)" >>"$KNOWN"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

sshd_start() {
    local try how=()
    SSHD=$TMP/sshd.${#sshds[@]}
    mkdir -p "$SSHD"
    [[ -f $SSHD/host_key ]] || ssh-keygen -q -t "${HOST_KEY_TYPE:-ed25519}" -N '' -f "$SSHD/host_key"
    # As root it wants a folder in /run: give it one that only it sees. What the user's shell does at each login takes
    # longer than the login with many a .bashrc: it is out of sight, as in the lab.
    if ((EUID == 0)); then
        how=(unshare -m sh -c 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd &&
            { [ ! -f ~root/.bashrc ] || mount --bind /dev/null ~root/.bashrc; } && exec "$@"' sh)
    fi
    for try in 1 2 3 4 5 6 7 8; do
        PORT=$((20000 + (RANDOM * 7 + try) % 12000))
        listens "$PORT" && continue
        {
            printf '%s\n' "$@"
            # Unlike with other words, the last MaxStartups wins.
            [[ $* == *MaxStartups* ]] || printf 'MaxStartups 200:30:400\n'
            cat <<END
ListenAddress 127.0.0.1:$PORT
HostKey $SSHD/host_key
PidFile none
AuthorizedKeysFile $TMP/authorized_keys
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
PrintLastLog no
X11Forwarding no
END
        } >"$SSHD/config"
        "${how[@]}" "$SSHD_BIN" -D -E "$SSHD/log" -f "$SSHD/config" &
        SSHD_PID=$!
        if wait_for sshd_settled && sshd_listens; then
            sshds+=("$SSHD_PID")
            return
        fi
    done
    say_file 'sshd' "$SSHD/log"
    skip_all 'sshd does not start here'
}

# In its own words: another test's sshd may be at that port, and a connection would count for MaxStartups.
sshd_listens() { grep -qs "listening on .* port $PORT\." "$SSHD/log"; }

sshd_settled() { sshd_listens || ! kill -0 "$SSHD_PID"; }

sshd_beside_ssh() { # [LINE...]
    type -P ssh >/dev/null || skip_all 'no ssh here'
    sshd_start "$@"
    trust "$PORT"
    at=127.0.0.1:$PORT
}

ssh_logs_in() { # [HOST]
    ssh -F "$TMP/ssh_config" -oBatchMode=yes -p "$PORT" "${1-127.0.0.1}" true >/dev/null 2>"$TMP/ssh.err"
}

key_refused() { # NAME CAUSE: $at, for its host key, before any login
    probe -c 'echo in' ssh "$at"
    is "$1: not opened" "$RC" 1
    has "$1: $2" "$ERR" "failed hostkey $2:"
    lacks "$1: no login" "$ERR" 'phase auth'
}

start_hostile_server() { # MODE: of hostile_server.py; port and key are in $TMP/port
    rm -f "$TMP/port"
    python3 "$ROOT/tests/lib/hostile_server.py" "$1" "$TMP/port" &
    sshds+=($!)
    wait_for test -s "$TMP/port"
}

start_ssh_agent() { # it ends with the script
    eval "$(ssh-agent -s -a "$TMP/agent")" >/dev/null
    AGENT_PID=$SSH_AGENT_PID
    export SSH_AUTH_SOCK
    printf '#!/bin/sh\necho secret\n' >"$TMP/ask"
    chmod +x "$TMP/ask"
}

add_locked() { DISPLAY=x SSH_ASKPASS=$TMP/ask SSH_ASKPASS_REQUIRE=force ssh-add -q "$TMP/locked" 2>/dev/null; } # of the passphrase "secret"

probe() { run "$PROBE" -F "$TMP/ssh_config" "$@"; }

at_end() {
    local pid
    for pid in "${sshds[@]}"; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    [[ -z ${AGENT_PID-} ]] || kill "$AGENT_PID" 2>/dev/null
}
