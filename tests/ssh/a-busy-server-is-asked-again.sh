#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# MaxStartups 2 drops what is more than two at once; all 16 links get through all the same.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

sshd_start 'MaxStartups 2'
trust "$PORT"
targets=()
for ((i = 0; i < 16; i++)); do
    targets+=("127.0.0.1:$PORT")
done
probe -t 20000 -c 'echo in' ssh "${targets[@]}"
exits 'all links open' 0
is 'each once' "$(sort "$OUT" | uniq -c | tr -s ' ')" ' 16 in'
ok 'the server did drop some' test "$(grep -c 'phase connecting' "$ERR")" -gt 16
is 'no login was tried twice' "$(grep -c '^127.*phase auth' "$ERR")" 16

done_testing
