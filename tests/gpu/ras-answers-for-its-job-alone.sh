#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two jobs on one node: RAS of the real NCCL listens where hnlaunch says, and each answers for its own job alone.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/gpu.sh
. "$ROOT/tests/lib/gpu.sh"
unset NCCL_RAS_ADDR NCCL_RAS_ENABLE

gpu_build train
gpu_needed 'questions to RAS'
if ((NCCL_MINOR < 24)); then
    skip 'questions to RAS' "NCCL 2.$NCCL_MINOR has none"
    done_testing
fi

# Says "status", and prints the answer.
cat >ask.py <<'END'
import socket, sys
host, port = sys.argv[1].split(":")
try:
    s = socket.create_connection((host, int(port)), 5)
except OSError as e:
    sys.exit("nobody listens: %s" % e)
s.settimeout(30)
s.sendall(b"verbose status\n")
while data := s.recv(65536):
    sys.stdout.write(data.decode())
END
answers() { python3 ask.py "$(cat "$1")" >"$1.said" 2>"$1.why" && grep -qE '^ +[0-9]+ .*RUNNING' "$1.said"; } # JOB

job() { # NAME RANKS
    # shellcheck disable=SC2016
    "$HNLAUNCH" -q --local "$2" --oversubscribe -x HNLAUNCH_BACKENDS --timeout 100s \
        sh -c "echo \$NCCL_RAS_ADDR >$1; NCCL_HOSTID=\$HN_RANK exec \"\$@\"" sh "$TMP/train" --epochs 1000000 >/dev/null 2>&1 &
}
job one 1
first=$!
job two 2
second=$!
for name in one two; do
    wait_for test -s "$name"
    wait_for answers "$name" || { cat "$name.said" "$name.why" | sed 's/^/# /'; }
done
ok 'both jobs have an address of their own' test "$(cat one)" != "$(cat two)"
sed 's/^/# /' two.said | head -40
ok 'the first answers for one process' grep -qE '^ +1 +1 +1 ' one.said
ok 'the second for two' grep -qE '^ +[12] +[12] +[12] +2 ' two.said
kill "$first" "$second"
wait "$first" "$second" 2>/dev/null
nothing_left 'nothing is left'
done_testing
