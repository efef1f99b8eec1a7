#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# When the connection to a node ends while the agent is uploaded, or the shell there is told to end, no part of the
# agent stays on the node.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# In the place of ssh: keeps the remote command, its last argument.
printf '#!/bin/sh\nfor last; do :; done\nprintf %%s "$last" >"%s"\n' "$TMP/command" >"$TMP/remote"
chmod +x "$TMP/remote"
hn --ssh-command "$TMP/remote" -w node1 true
ok 'the remote command is known' test -s "$TMP/command"
command=$(cat "$TMP/command")

export XDG_CACHE_HOME=$TMP/cache XDG_RUNTIME_DIR=$TMP/run
files() { find "$TMP/cache" "$TMP/run" -type f 2>/dev/null; }
no_files() { [[ -z $(files) ]]; }

exec {closed}> >(:)
wait "$!"
env --default-signal sh -c "$command" </dev/null 2>"$ERR" 1>&"$closed"
exec {closed}>&-
is 'nobody reads that the agent is wanted: no file stays' "$(files)" ''

mkfifo bytes
for signal in HUP INT TERM; do
    env --default-signal sh -c "$command" <bytes >"$OUT" 2>"$ERR" &
    pid=$!
    exec {bytes}>bytes
    wait_for grep -q '^HNLAUNCH-NEED ' "$OUT"
    printf 'the beginning' 1>&"$bytes"
    kill -"$signal" "$pid"
    exec {bytes}>&-
    wait "$pid"
    ok "SIG$signal during the upload: no file stays" wait_for no_files
done
done_testing
