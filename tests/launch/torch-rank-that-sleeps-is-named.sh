#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Who waits for whom is known for unmodified PyTorch, too: connections to MASTER_PORT are found to be ranks.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip_all 'needs PyTorch in /usr/bin/python3'
sleeper=(/usr/bin/python3 "$ROOT/tests/clients/torch_sleeper.py")
row() { grep -E "^ *\| +$1 +localhost " "$ERR" | tail -n 1; }

comes_up 'three ranks are up' 3 start --local 3 --start-timeout 15s --label none "${sleeper[@]}" 1 init here
all_wait() {
    kill -QUIT "$PID"
    sleep 0.3
    [[ $(row 0) == *'waits for `'* && $(row 2) == *'waits for `'* ]]
}
ok 'Ctrl-\ shows what init_process_group waits for' wait_for all_wait
ok 'the sleeper has not joined' grep -q 'not joined' <(row 1)
exits 'a rank that does not come to init_process_group in the time that was given: 75' 75 finish
verdict_has 'it is named' 'rank 1 on localhost did not join within 15s'
has 'the others are counted' "$ERR" 'note: 2 ranks joined'

hn_exits 'TCPStore.wait ends when the key comes' 0 --local 3 --wait-warn 1s --label none "${sleeper[@]}" 2 wait
has 'until then it was told' "$ERR" 'warning[HN404]: ranks 0-1 wait for `/dawn` for '
has 'and who has not come' "$ERR" 'rank 2 on localhost has not come'
ok 'it has joined' grep -qE '\| +2 +localhost .* joined ' "$ERR"
nothing_left 'nothing is left'
done_testing
