#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What an agent, or its guard after the agent's death, cannot remove on a node is told with the place and the reason.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

INJECT=$WORKERS/inject
"$INJECT" count true 2>"$ERR" || skip_all "cannot hold system calls here: $(tail -n 1 "$ERR")"

# In the place of ssh: runs the remote command with a fault.
cat >"$TMP/remote" <<END
#!/bin/sh
for last; do :; done
export XDG_CACHE_HOME=$TMP/cache XDG_RUNTIME_DIR=$TMP/run HNLAUNCH_STAGE_DIR=$TMP/stage
exec $INJECT -o $TMP/report \$FAULT /bin/sh -c "\$last"
END
chmod +x "$TMP/remote"
echo pushed >file

stays() { # FAULT TEXT PROGRAM...
    mkdir -p "$TMP/run"
    : >"$TMP/report"
    FAULT=$1 hn --ssh-command "$TMP/remote" -w n1 --push file "${@:3}"
    has "$1: it fails" "$TMP/report" hit
    has "$1: what is left is told with its place" "$ERR" "warning[HN314]: n1: cannot remove all $2"
    ok "$1: why" grep -q '^warning.*: Input/output error$' "$ERR"
    rm -rf "$TMP/run" "$TMP/stage/hnlaunch-stage-$(id -u)"
}

stays 'agent unlinkat 1 5@file' "pushed files in $TMP/stage/hnlaunch-stage-$(id -u):" true
exits 'the job is not affected' 0
stays 'guard unlinkat 1 5@file' "pushed files in $TMP/stage/hnlaunch-stage-$(id -u):" sh -c 'kill -KILL $PPID'
exits 'an agent that is killed' 125
stays 'guard rmdir 1 5@run/hnlaunch-' "files of the job in $TMP/run/hnlaunch-" sh -c 'kill -KILL $PPID'
nothing_left 'no process is left'
done_testing
