#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An agent that speaks another protocol, from another installation, starts nothing: 76, with both versions.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export PYTHONPATH=$ROOT/tests/lib
ours=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
ok 'our own version is known' test "$ours" -gt 0
for theirs in $((ours - 1)) $((ours + 1)); do
    VERSION=$theirs hn --agent "$ROOT/tests/lib/fake_agent.py" -w 'localhost:1,127.0.0.1:1' touch started
    exits "version $theirs: 76" 76
    has 'it has its own message' "$ERR" 'error[HN211]: agents on 2 nodes speak another protocol version'
    has 'with both versions' "$ERR" "the agent has protocol version $theirs, this hnlaunch $ours"
    verdict_has 'the verdict has the code' '(exit 76)'
    ok 'nothing was started' test ! -e started
done
nothing_left 'nothing is left'
done_testing
