#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A version of NCCL with a known fault is told once, while the ranks run; they are not asked. The library here has
# nothing but the text that real ones have.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/driver_files.sh"

# Nodes without GPUs are not looked at: the files of a driver are ours, in a mount namespace.
in_mount_namespace "$@"
driver_of 1

library() { # FOLDER VERSION
    mkdir -p "$1"
    echo "const char version[] __attribute__((used)) = \"NCCL version $2+cuda12.1\"; int f(void) { return version[0]; }" |
        cc -shared -fPIC -x c -o "$1/libnccl.so.2" -
}
library faulty 2.18.1 || skip_all 'no C compiler'
library good 2.29.7

# Ends when the warning is there, or when it has had its chance: a file that the test writes.
cat >rank.py <<'END'
import ctypes, os, sys, time
ctypes.CDLL(os.path.abspath(sys.argv[1] + "/libnccl.so.2"))
open("ready-" + os.environ["RANK"], "w")
while not os.path.exists("stop"):
    time.sleep(0.02)
END
# 2.18.1 is bad on more than one node, of any architecture.
nodes() { "$HNLAUNCH" -w 'localhost:2,127.0.0.1:2' --oversubscribe "$@" >"$OUT" 2>"$ERR"; }
nodes python3 rank.py faulty &
job=$!
wait_for grep -q HN408 "$ERR"
touch stop
wait "$job"
RC=$?
exits 'the job goes on' 0
has 'the version and the node are told' "$ERR" "warning[HN408]: NCCL 2.18.1 on $(uname -m) can corrupt data"
has 'the library' "$ERR" 'faulty/libnccl.so.2'
has 'and the next step' "$ERR" 'NCCL_PROTO=^LL128'
is 'once, though two nodes have it' "$(grep -c HN408 "$ERR")" 1

# Behind a shell, and as seen by the agent itself.
rm -f stop ready-*
export PYTHONPATH=$ROOT/tests/lib
cat >agent.py <<'END'
import os, sys
from fake_head import Agent
agent = Agent()
agent.launch(["sh", "-c", "cd '%s' && python3 rank.py %s; true" % (os.getcwd(), sys.argv[1])], agent_store=True)
kind = 0
while kind not in (61, 36):  # NCCL, EXITED
    kind, r = agent.next()
print(kind, r.take("I"), os.path.basename(r.text().decode()))
END
AGENT=$BUILD/hnlaunch-agent python3 agent.py good >said 2>"$ERR"
touch stop
is 'the agent finds the library of a descendant' "$(cat said)" '61 22907 libnccl.so.2'

# Architectures are those of a fake agent.
VERSION=$(sed -n 's/^#define MSG_VERSION *//p' "$ROOT/src/wire/msg.h")
export VERSION ENDPOINT_OPENED=41731 ORDERED='STARTED NCCL EXITED GONE'
fake() { hn --agent "$ROOT/tests/lib/fake_agent.py" --local 1 never-run; }
ARCH=aarch64 fake
has 'NCCL before 2.29.3 on aarch64 is told' "$ERR" \
    'warning[HN408]: NCCL 2.28.9 on aarch64 can hang for ever without an error'
has 'with the place' "$ERR" 'localhost: /lib/libnccl.so.2'
has 'and the release that is right' "$ERR" '2.29.3 or newer'
ARCH=x86_64 fake
lacks 'on x86_64 it is not' "$ERR" HN408
ARCH=aarch64 NCCL_CODE=22903 fake
lacks 'nor is 2.29.3' "$ERR" HN408
done_testing
