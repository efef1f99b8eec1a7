#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The store's TCP endpoint is on the node of rank 0. When the ranks of that node have ended, those of other nodes are
# still answered.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

export PYTHONPATH=$ROOT/tests/lib
printf '127.0.0.%d slots=1 addr=127.0.0.1\n' 1 2 >hosts
cat >rank <<'END'
import os
import sys

from store_client import NAMES, Client, number, text
from waiting import wait_for

if os.environ["RANK"] == "0":
    with open("pid.new", "w") as f:
        f.write(str(os.getppid()))
    os.rename("pid.new", "pid")
    sys.exit(0)


def children():
    """Of the agent of rank 0: none when the rank has been reaped."""
    with open("pid") as f:
        agent = f.read()
    with open("/proc/%s/task/%s/children" % (agent, agent)) as f:
        return f.read().split()


wait_for(lambda: not children())
client = Client(int(os.environ["MASTER_PORT"]), os.environ["MASTER_ADDR"])
# The agent tells the end in its next turn: most of the requests come later.
for i in range(300):
    client.say(bytes([NAMES.index("ADD")]) + text(b"k") + number(1))
    assert client.hear(8) == number(i + 1)
print("answered")
END
hn -H hosts --oversubscribe --label none --timeout 60s --ssh-command "sh -c 'exec $BUILD/hnlaunch-agent' --" python3 rank
exits 'the job ends well' 0
has 'every request is answered' "$OUT" 'answered'
nothing_left 'nothing is left'
done_testing
