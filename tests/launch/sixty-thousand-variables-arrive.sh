#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Environments of 60,000 variables reach many ranks while the agent answers its pings.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HNLAUNCH=$PLAIN/hnlaunch # time counts
seq -f 'V%.0f=x' 60000 >variables
# The parent of a rank is the agent, and the ranks wait for each other to be there.
cat >rank <<'END'
#!/bin/sh
n=$(env | grep -c '^V[0-9]*=x$')
[ "$RANK" = 0 ] && cut -d' ' -f14,15 /proc/$PPID/stat >ticks
echo "$n $V1 $V60000 $RANK"
END
chmod +x rank
hn -q --local 8 --label none --env-file variables --node-timeout 2s --unset 'V599*' ./rank
exits 'the job ends well' 0
is 'each rank has all variables but those of --unset' "$(cut -d' ' -f1-3 "$OUT" | sort | uniq -c | tr -s ' ')" ' 8 59889 x x'
read -r user system <ticks
echo "# ticks of the agent until the first rank ran: $user user, $system system"
ok 'the agent did not compute for a second' test "$user" -lt "$(getconf CLK_TCK)"
nothing_left 'nothing is left'
done_testing
