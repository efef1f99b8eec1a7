#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What waits for an agent that does not read has a limit, 1 GiB and the size of the store: then its node is lost, and
# hnlaunch keeps no more. Without sanitizers, because memory is measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

[[ -x $PLAIN/hnlaunch ]] || skip_all 'no plain build'
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export ENDPOINT_OPENED=41731 VERSION PYTHONPATH=$ROOT/tests/lib
printf 'import resource, subprocess, sys\ncode = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL)\nopen(sys.argv[1], "w").write(f"{code} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")\n' >measure

# The limit is 1040 MiB. 320 values of 8 MiB are 2560 MiB: hnlaunch without the limit would take more than twice the
# limit. The time limit ends a launch that keeps them all.
ORDERED='STARTED GET:320' run python3 measure measured "$PLAIN/hnlaunch" --agent "$ROOT/tests/lib/fake_agent.py" \
    --local 1 -o net.store_size=16M --timeout "$(scaled 60)s" never-run
read -r code kib <measured
is 'the node is lost: 125' "$code" 125
verdict_has 'so says the verdict' 'lost localhost' 'the agent does not read: ' ' MiB of messages wait for it'
mib=$(sed -n 's/.*does not read: \([0-9]*\) MiB.*/\1/p' "$ERR" | head -n 1)
ok "what waits is below the limit ($mib MiB)" test "${mib:-9999}" -le 1040
ok '... and near it' test "${mib:-0}" -ge 1000
echo "# peak memory of hnlaunch: $kib KiB"
# The limit, and 400 MiB for all else.
ok 'hnlaunch keeps no more' test "$kib" -lt $(((1040 + 400) * 1024))
nothing_left 'nothing is left'
done_testing
