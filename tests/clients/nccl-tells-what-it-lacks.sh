#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# NCCL where it cannot work: an answer with a sentence, in every rank, and soon.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HNLAUNCH=$PLAIN/hnlaunch
calls=$PLAIN/tests/clients/nccl_calls
[[ -x $calls ]] || skip_all 'built without NCCL'
[[ ! -e /dev/nvidiactl ]] || skip_all 'this machine has a GPU'

export NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=NONE
begin=$SECONDS
hn --local 2 --label none sh -c 'trap "" TERM; exec "$0" join' "$calls"
exits 'without a GPU there is no communicator' 3
is 'every rank says so' "$(grep -c '^nothing HN_ERR_' "$OUT")" 2
ok 'and why' grep -qE '^nothing HN_ERR_BACKEND: (ncclGetUniqueId|ncclCommInitRank|NCCL): ' "$OUT"
ok 'within half a minute' test $((SECONDS - begin)) -lt 30
sed 's/^/# /' "$OUT"

hn --local 2 --label none "$calls" ids
is 'one id goes by broadcast' "$(cat "$OUT")" '1 ids, 0 of them in the store'
hn --local 5 --label none "${calls}_many_ids" ids
is 'several ids go by the store, and leave it' "$(cat "$OUT")" '3 ids, 3 of them in the store'
nothing_left 'nothing is left'
done_testing
