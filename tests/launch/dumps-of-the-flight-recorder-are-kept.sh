#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Dumps of PyTorch's flight recorder come into the log folder whole, or it is told how to keep them; nothing of them
# stays on the node. PyTorch writes them only with GPUs; dump.py writes files of the same names.
. "$(dirname "$0")/../lib/tap.sh"
unset "${!NCCL_@}" "${!TORCH_@}"

cat >dump.py <<'END'
import os, random, sys
rank, size = int(os.environ["RANK"]), int(sys.argv[1])
with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank), "wb") as f:
    f.write(random.Random(rank).randbytes(size + rank))
print("in", os.path.dirname(os.environ["HN_STORE"]))
sys.exit(3 if rank == 1 else 0)
END
cat >compare.py <<'END'
import os, random, sys
for rank in range(4):
    with open(f"{sys.argv[1]}/nccl_trace_rank_{rank}", "rb") as f:
        assert f.read() == random.Random(rank).randbytes(int(sys.argv[2]) + rank), rank
assert len(os.listdir(sys.argv[1])) == 4
END
gone() { ok 'nothing of the job is left on the node' test ! -e "$(sed -n 's/^in //p' "$OUT" | head -1)"; }

for size in 1 65535 3000000; do
    rm -rf logs
    hn --local 4 --label none --log-dir logs --on-failure continue python3 dump.py $size
    exits "$size bytes: the exit code is that of the rank" 3
    ok "$size bytes: each dump is the one that was written" python3 compare.py logs/latest/flight-recorder $size
    has "$size bytes: it is told where they are" "$ERR" 'flight-recorder: ranks 0-3'
    has "$size bytes: and how to read them" "$ERR" 'torchfrtrace --prefix nccl_trace_rank_ logs/'
    gone
done
is 'they are the user'\''s alone' "$(stat -c %a logs/latest/flight-recorder/nccl_trace_rank_0 logs/latest/flight-recorder | xargs)" '600 700'

hn_exits 'without a log folder: the same exit code' 3 --local 4 --label none --on-failure continue python3 dump.py 10
has 'it is told which dumps there were' "$ERR" "dumps of PyTorch's flight recorder were not kept: ranks 0-3"
has 'and how to keep them' "$ERR" '--log-dir DIR keeps them'
gone
hn_exits 'a job that succeeds' 0 --local 1 --label none python3 dump.py 10
lacks 'needs no advice' "$ERR" 'flight recorder'

# Each attempt has a folder of its own.
hn --local 2 --log-dir again --max-restarts 1 python3 dump.py 10
ok 'the dumps of the first attempt' test -e again/latest/flight-recorder/nccl_trace_rank_1
ok 'and of the second' test -e again/latest/flight-recorder-1/nccl_trace_rank_1

# Ranks may put anything there.
cat >hostile.sh <<'END'
p=$TORCH_FR_DUMP_TEMP_FILE
ln -s /etc/passwd "${p}1"
mkfifo "${p}2"
mkdir "${p}3"
truncate -s 33M "${p}4"
echo x >"${p}5x"
echo x >"${p}05"
echo x >"${p}99999999999"
: >"${p}6"
echo good >"${p}7"
exit 3
END
hn_exits 'files that are no dumps' 3 --local 1 --log-dir hostile sh hostile.sh
is 'only the dump is kept' "$(ls hostile/latest/flight-recorder)" nccl_trace_rank_7
has 'a large one is told' "$ERR" "warning[HN909]: dumps of PyTorch's flight recorder are missing: larger than 32 MiB: rank 4"
has 'others are told, too' "$ERR" 'not a regular file, or empty'

hn --local 1 --log-dir hostile sh -c 'for i in $(seq 140); do echo x >"$TORCH_FR_DUMP_TEMP_FILE$i"; done; exit 3'
is 'not more than 128' "$(find hostile/latest/flight-recorder -type f | wc -l)" 128
has 'which is told' "$ERR" 'more than 128 dumps'

# A log folder that cannot take them.
hn --local 1 --log-dir full sh -c 'echo dump >"${TORCH_FR_DUMP_TEMP_FILE}0";
    for d in full/*/; do : >"${d}flight-recorder"; done; exit 3'
exits 'a failure to store dumps does not change the exit code' 3
has 'it is told' "$ERR" "warning[HN909]: dumps of PyTorch's flight recorder are missing: cannot write full/"
done_testing
