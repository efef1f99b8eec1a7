#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Values of variables reach the ranks, but no command line, which all users of a machine may read, no table of a plan
# and no log.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
export A_SECRET_TOKEN=hunter2.$BASHPID

command_lines() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'; }

start --local 2 -x A_SECRET_TOKEN --log-dir logs sh -c 'test -n "$A_SECRET_TOKEN" && echo up; exec sleep 600'
ok 'both ranks have it' wait_for lines_are "$OUT" 2
printf '%s\n' "$A_SECRET_TOKEN" >pattern # a command line of this test would have it, too
is 'no command line has it' "$(command_lines | grep -cFf pattern)" 0
ok 'of any process, hnlaunch among them' grep -qxF -- "$HNLAUNCH" <(command_lines)
kill -INT "$PID"
finish
is 'no file of the log folder has it' "$(grep -rlFf pattern logs)" ''
lacks 'nor does a message' "$ERR" "$A_SECRET_TOKEN"

for how in '' '-v' '--ranks 0' --json; do
    # shellcheck disable=SC2086
    hn plan $how --local 2 true
    lacks "nor does plan $how" "$OUT" "$A_SECRET_TOKEN"
done
done_testing
