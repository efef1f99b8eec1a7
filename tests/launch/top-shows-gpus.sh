#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch top shows what the GPUs of a node do, as the driver's library tells. Library and driver's files are made here.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
driver_of 3
nvml_library whole
runtime_dir
export FAKE_NVML_GPUS=3 FAKE_NVML=$PWD/word
echo fine >word

LD_LIBRARY_PATH=$PWD/whole start --local 3 --label none sh -c 'echo up; exec sleep 1000'
ok 'the ranks run' wait_for lines_are "$OUT" 3
"$HNLAUNCH" top --json >lines 2>top.err &
looker=$!
gpus_are() { [[ $(gpus) == "$1" ]]; }
gpus() {
    python3 -c 'import json
t = json.loads(open("lines").read().rsplit("\n", 2)[-2])
print(*[tuple(g[n] for n in ("use_percent", "memory_mib", "memory_total_mib", "celsius", "watts"))
        for g in t["hosts"][0].get("gpus", [])])'
}
ok 'figures of all GPUs' wait_for gpus_are '(90, 70000, 81920, 60, 651) (91, 70001, 81920, 61, 652) (92, 70002, 81920, 62, 653)'
table_has() { "$HNLAUNCH" top >table && grep -qE -- "$1" table; }
ok 'the table has their mean, sums, and the hottest' wait_for table_has '^localhost .* 91% +205G/240G +62C +2\.0kW '
ok 'below their titles' grep -qE '^HOST .* GPU% +GMEM +TEMP +POWER ' table
kill "$looker"
finish_by INT
nothing_left 'nothing is left'
done_testing
