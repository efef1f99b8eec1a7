#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A home that does not exist (a service user, another machine's home) is never made: not for records, for the uploaded
# agent, or for pushed files.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

unset XDG_STATE_HOME XDG_CONFIG_HOME XDG_CACHE_HOME
export HOME=$TMP/gone XDG_RUNTIME_DIR=$TMP/runtime
mkdir -m 700 "$XDG_RUNTIME_DIR"
is_missing() { is "$1" "$(test -e "$HOME" && find "$HOME")" ''; } # NAME

hn_exits 'ranks run' 0 --local 2 true
is_missing 'no records make it'
hn_exits 'there are no runs' 0 ps
hn_exits '--detach has no place for the output' 73 --detach --local 1 true
has 'which is told' "$ERR" 'error[HN822]: there is no home'
is_missing 'nor does --detach'

# ssh runs the command in the home of the login.
cat >remote <<'END'
#!/bin/sh
while [ $# -gt 1 ]; do shift; done
exec env -u XDG_CACHE_HOME sh -c "$1"
END
chmod +x remote
echo data >data
hn_exits 'an agent that is uploaded runs' 0 --ssh-command ./remote -w n1 --push data cat data
has 'with the pushed file' "$OUT" data
is_missing 'neither of them makes it'
ok 'the agent has gone to another folder' test -n "$(find "$XDG_RUNTIME_DIR/hnlaunch" "/var/tmp/hnlaunch-$(id -u)" -type f 2>/dev/null | head -n 1)"
done_testing
