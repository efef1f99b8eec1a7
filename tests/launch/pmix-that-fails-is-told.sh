#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node without a usable libpmix ends the launch before a rank starts, and says where it looked; a service that dies
# ends the job; nothing of it stays. The library is a small one made here that fails on order.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

type -P cc >/dev/null || skip_all 'no compiler here'
mkdir -p good/lib bad
cc -shared -fPIC -Wl,-soname,libpmix.so.2 -o good/lib/libpmix.so.2 "$ROOT/tests/lib/fake_pmix.c" ||
    skip_all 'the compiler makes no libraries'
echo 'int nothing;' >nothing.c
cc -shared -fPIC -Wl,-soname,libpmix.so.2 -o bad/libpmix.so.2 nothing.c
good=(-x "PMIX_PREFIX=$PWD/good" --mpi pmix)

hn "${good[@]}" --local 2 --label none sh -c 'echo "$PMIX_RANK $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $PMIX_NAMESPACE ${PMI_FD-no}"'
exits 'a library that serves' 0
is 'each rank has its variables, and none of PMI' "$(sort "$OUT" | sed 's/hnlaunch-[^ ]*-0/NAME/' | xargs)" '0 0/2 NAME no 1 1/2 NAME no'
is 'the name of the job is that of both' "$(cut -d' ' -f3 "$OUT" | sort -u | wc -l)" 1
run "$HNLAUNCH" "${good[@]}" --local 2 --label none --timeout 60s --stdin all md5sum <nothing.c
exits 'input waits for the library' 0
is 'and comes to each rank' "$(sort "$OUT" | uniq -c | sed 's/^ *//')" "2 $(md5sum <nothing.c)"
hn "${good[@]}" --local 2 -v true
has '-v names the library' "$ERR" "PMIx is served by $PWD/good/lib/libpmix.so.2, fake 9.9.9"

hn_exits 'no library that serves: 125' 125 -x "LD_LIBRARY_PATH=$PWD/bad" -x "PMIX_PREFIX=$PWD/none" --mpi pmix --local 2 touch started
has 'it is an error with a number' "$ERR" 'error[HN243]: a node cannot serve PMIx'
has 'that says where it looked' "$ERR" "$PWD/none/lib"
has 'and what one was' "$ERR" 'lacks functions of a server'
has 'and what to do' "$ERR" 'PMIX_PREFIX=DIR'
ok 'nothing was started' test ! -e started

hn_exits 'a library that refuses: 125' 125 "${good[@]}" -x FAKE_PMIX=fail --local 2 touch started
has 'its step and its reason are told' "$ERR" 'PMIx_server_init failed: ERROR'
ok 'nothing was started' test ! -e started

marked_helper() {
    local pid
    for pid in $(pgrep -x hnlaunch-pmix); do
        ! grep -qz "TEST_MARK=$TEST_MARK" "/proc/$pid/environ" || { helper=$pid && return 0; }
    done
    return 1
}
start "${good[@]}" -x FAKE_PMIX=hang --local 2 touch started
ok 'a library that hangs' wait_for marked_helper
exits 'Ctrl-C: 130' 130 finish_by INT
ok 'nothing was started' test ! -e started

comes_up 'two ranks are up' 2 start "${good[@]}" --local 2 --label none sh -c 'echo up; exec sleep 600'
ok 'with a helper' marked_helper
kill -KILL "$helper"
exits 'a helper that is killed ends the job' 1 finish
has 'with a warning' "$ERR" 'warning[HN244]: localhost: PMIx is not served any more: hnlaunch-pmix has ended'
verdict_has 'and a reason' "the node's PMIx service has ended"

comes_up 'two ranks are up again' 2 start "${good[@]}" --local 2 --label none sh -c 'echo up; exec sleep 600'
finish_by KILL
ok 'the helper does not outlive hnlaunch' wait_for not marked_helper
nothing_left 'nothing is left'
done_testing
