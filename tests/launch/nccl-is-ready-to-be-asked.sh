#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Each job has a port of its own for NCCL's RAS, and PyTorch's flight recorder is on, under the names that the PyTorch of
# the program reads; the user's settings win.
. "$(dirname "$0")/../lib/tap.sh"
unset "${!NCCL_@}" "${!TORCH_@}"

hn -q --local 2 --label none sh -c 'echo "$RANK $NCCL_RAS_ADDR"; env >rank-$RANK'
exits 'two ranks' 0
first=$(awk '$1 == 0 { print $2 }' "$OUT")
is 'the ranks of a node share the address' "$(awk '$1 == 1 { print $2 }' "$OUT")" "$first"
ok 'it is a port on this node' grep -Eqx '127\.0\.0\.1:[0-9]+' <<<"$first"
ok 'and not the one that all jobs share by default' test "$first" != 127.0.0.1:28028

# Two jobs at once: the first one listens before the second is given an address. NCCL's own setting of the socket is
# SO_REUSEPORT: without another port the second would be in the same group.
cat >listen.py <<'END'
import os, socket, sys, time
host, port = os.environ["NCCL_RAS_ADDR"].split(":")
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind((host, int(port)))
s.listen()
open("address", "w").write(port)
while not os.path.exists("stop"):
    time.sleep(0.02)
END
"$HNLAUNCH" -q --local 1 python3 listen.py &
job=$!
wait_for test -s address
for _ in 1 2 3; do
    hn -q --local 1 --label none sh -c 'echo "${NCCL_RAS_ADDR##*:}"'
    ok 'another job has another port' test "$(cat "$OUT")" != "$(cat address)"
done
touch stop
wait "$job"

# Of an older name PyTorch would warn. Its interpreter is not run: this one is a shell.
var() { sed -n "s/^$1=//p" rank-0; }
interpreter() { # VERSION: of its PyTorch; prints its path
    local venv=$PWD/venv-$1
    mkdir -p "$venv/bin" "$venv/lib/python3.11/site-packages/torch"
    : >"$venv/pyvenv.cfg"
    cp /bin/sh "$venv/bin/python3.11"
    ln -sf python3.11 "$venv/bin/python3"
    echo "__version__ = '$1'" >"$venv/lib/python3.11/site-packages/torch/version.py"
    echo "$venv/bin/python3.11"
}
older='^(NCCL_ASYNC_ERROR_HANDLING|TORCH_NCCL_(TRACE_BUFFER_SIZE|DEBUG_INFO_TEMP_FILE|DUMP_ON_TIMEOUT))='
hn -q --local 1 "$(interpreter 2.15.0+cu132)" -c 'env >rank-0'
is 'the recorder is on' "$(var TORCH_FR_BUFFER_SIZE)" 2000
ok 'under the name that the newest PyTorch reads alone' not grep -Eq "$older" rank-0
hn -q --local 1 "$(interpreter 1.13.1)" -c 'env >rank-0'
is 'releases without a recorder know no 3' "$(grep -E "$older" rank-0)" NCCL_ASYNC_ERROR_HANDLING=1
hn -q --local 3 "$(interpreter 1.13.1)" -c 'env >rank-$RANK'
is 'the other ranks of the node have what the first found' "$(grep -hE "$older" rank-1 rank-2 | uniq -c | tr -s ' ')" \
    ' 2 NCCL_ASYNC_ERROR_HANDLING=1'
mv venv-1.13.1 venv-of-0 && interpreter 2.15.0 >new && mv venv-2.15.0 venv-of-1
hn -q --local 2 --wrap "$PWD/venv-of-{rank}/bin/python3.11 -c \"env >rank-{rank}\"" none
is 'unless each has a program of its own' "$(grep -E "$older" rank-0), $(grep -E "$older" rank-1)" \
    'NCCL_ASYNC_ERROR_HANDLING=1, '
interpreter 1.13.1 >new
PATH=$PWD/venv-1.13.1/bin:$PATH hn -q --local 1 /bin/sh -c 'env >rank-0'
is 'a program that may start Python: the one in PATH counts' "$(grep -E "$older" rank-0)" NCCL_ASYNC_ERROR_HANDLING=1
PYTHONPATH=$PWD/venv-1.13.1/lib/python3.11/site-packages hn -q --local 1 "$(interpreter 2.15.0)" -c 'env >rank-0'
is 'PYTHONPATH comes first' "$(grep -E "$older" rank-0)" NCCL_ASYNC_ERROR_HANDLING=1
TORCH_NCCL_DUMP_ON_TIMEOUT=0 hn -q --local 1 "$(interpreter 2.15.0)" -c 'env >rank-0'
is 'the older name that a user has set stays' "$(grep -E "$older" rank-0)" TORCH_NCCL_DUMP_ON_TIMEOUT=0

hn -q --local 1 "$(interpreter 2.6.0+cu124)" -c 'env >rank-0'
is 'PyTorch 2.6 has the recorder under its name' "$(var TORCH_FR_BUFFER_SIZE) $(var TORCH_NCCL_TRACE_BUFFER_SIZE)" '2000 2000'
is 'it dumps when an operation times out' "$(var TORCH_NCCL_DUMP_ON_TIMEOUT)" 1
is 'which an abort of the communicators does not prevent' "$(var TORCH_NCCL_ASYNC_ERROR_HANDLING)" 3
is 'dumps go to the folder of the job' "$(var TORCH_FR_DUMP_TEMP_FILE)" "$(dirname "$(var HN_STORE)")/nccl_trace_rank_"
is 'under both names' "$(var TORCH_NCCL_DEBUG_INFO_TEMP_FILE)" "$(var TORCH_FR_DUMP_TEMP_FILE)"

# PyTorch makes PREFIX<rank>.pipe, where its rank may differ from ours, and ends the process if it cannot.
# Another user who could guess the name would take it first.
hn -q --local 1 --label none sh -c 'mkfifo "${TORCH_NCCL_DEBUG_INFO_PIPE_FILE}7.pipe" && echo "$TORCH_NCCL_DEBUG_INFO_PIPE_FILE $HN_STORE"'
exits 'a rank makes its FIFO' 0
read -r pipes store <"$OUT"
ok 'in a folder that containers have, too' test "${pipes#/tmp/hnlaunch-}" != "$pipes"
ok 'under a name that no other name tells' test -z "$(grep -F "$(basename "$(dirname "$store")")" <<<"$pipes")"
ok 'the FIFO is gone after the job' test ! -e "${pipes}7.pipe"
"$HNLAUNCH" -q --local 1 --label none sh -c 'mkfifo "${TORCH_NCCL_DEBUG_INFO_PIPE_FILE}0.pipe"
    echo "$TORCH_NCCL_DEBUG_INFO_PIPE_FILE" >pipes; kill -9 $PPID; sleep 600' 2>"$ERR"
wait_for test ! -e "$(cat pipes)0.pipe"
ok 'also when the agent was killed' test ! -e "$(cat pipes)0.pipe"

NCCL_RAS_ADDR=localhost:4000 TORCH_NCCL_TRACE_BUFFER_SIZE=0 hn -q --local 1 --label none env
ok 'an address of the user is kept' grep -qx NCCL_RAS_ADDR=localhost:4000 "$OUT"
ok 'so is a recorder that the user has turned off' grep -qx TORCH_NCCL_TRACE_BUFFER_SIZE=0 "$OUT"
lacks 'by its old name' "$OUT" TORCH_FR_BUFFER_SIZE
NCCL_RAS_ENABLE=0 hn -q --local 1 --label none --unset 'TORCH_*' env
lacks 'RAS that is off needs no address' "$OUT" NCCL_RAS_ADDR
lacks '--unset removes these variables, too' "$OUT" TORCH_FR
hn plan --local 1 --ranks 0
has 'the plan shows the address' "$OUT" 'NCCL_RAS_ADDR=127.0.0.1:(free port there)'
has 'the plan shows the recorder' "$OUT" TORCH_FR_BUFFER_SIZE=2000
done_testing
