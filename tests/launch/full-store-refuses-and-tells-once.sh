#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that fill the store stop at net.store_size: libhnlaunch returns HN_ERR_NO_SPACE, a connection of PyTorch's store is
# closed, hnlaunch warns once and stays small, and deleted keys make room. Without sanitizers, because memory is
# measured.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HNLAUNCH=$PLAIN/hnlaunch
cat >rank.py <<END
import ctypes, os, sys
sys.path.insert(0, "$ROOT/tests/lib")
from store_client import Client, text
rank = int(os.environ["RANK"])
hn = ctypes.CDLL("$PLAIN/libhnlaunch.so")
hn.hn_last_error.restype = hn.hn_status_name.restype = hn.hn_store_default.restype = ctypes.c_void_p
words = lambda p: ctypes.string_at(p).decode()
assert hn.hn_init(None) == 0
store = ctypes.c_void_p(hn.hn_store_default())
mib = b"v" * (8 << 20)
def put(key):
    return hn.hn_store_set(store, key.encode(), mib, ctypes.c_size_t(len(mib)))
if rank == 0:
    n, status = 0, 0
    while n < 150 and not status:
        status = put("key%d" % n)
        n += not status
    print("library:", n, words(hn.hn_status_name(status)), words(hn.hn_last_error()))
    print("again:", words(hn.hn_status_name(put("key%d" % n))))
    assert put("key0") == 0, "the same size again"
    assert hn.hn_store_delete(store, b"key1", None) == 0
    print("after a delete:", words(hn.hn_status_name(put("key%d" % n))))
    assert hn.hn_barrier(None, ctypes.c_int64(20000)) == 0
elif rank == 1:
    assert hn.hn_barrier(None, ctypes.c_int64(20000)) == 0
    client = Client(int(os.environ["MASTER_PORT"]))
    client.ping()
    client.say(client.op("SET", text(b"tcp"), text(mib)))
    print("tcp is closed:", client.closed())
    print("others are served:", Client(int(os.environ["MASTER_PORT"])).ping())
else:
    assert hn.hn_barrier(None, ctypes.c_int64(20000)) == 0
assert hn.hn_barrier(None, ctypes.c_int64(20000)) == 0
if rank == 0:
    head = os.environ["HEAD"]
    kb = [int(x.split()[1]) for x in open("/proc/%d/status" % int(open(head).read())) if x.startswith("VmHWM")]
    print("head:", kb[0])
END
export HEAD=$TMP/head
"$HNLAUNCH" --local 3 --label none -o net.store_size=64m python3 rank.py >"$OUT" 2>"$ERR" &
PID=$!
echo "$PID" >"$HEAD"
exits 'the job goes on and ends well' 0 finish
has 'the library is refused at the limit' "$OUT" 'library: 7 HN_ERR_NO_SPACE '
has 'in words' "$OUT" 'the store is full: '
has 'and refused again' "$OUT" 'again: HN_ERR_NO_SPACE'
has 'a deleted key makes room' "$OUT" 'after a delete: HN_OK'
has "a connection of PyTorch's store is closed" "$OUT" 'tcp is closed: True'
has 'with the reason and the address' "$ERR" 'closed connection to the store from 127.0.0.1:'
has 'which is the limit' "$ERR" 'a write failed: the store is full: '
has 'other connections are served' "$OUT" 'others are served: 7'
is 'the warning comes once' "$(grep -c '^warning\[HN405\]' "$ERR")" 1
has 'with the next step' "$ERR" 'delete keys that are no longer needed, or raise the limit: -o net.store_size=4G'
has 'and the rank is named' "$ERR" 'refused a request of rank 0 to the store'
kb=$(sed -n 's/^head: //p' "$OUT")
echo "# peak memory of hnlaunch: $kb kB"
ok 'hnlaunch stays near the limit' test "${kb:-999999999}" -lt 200000

# The default is 1 GiB; a size has a unit and a lower limit.
has 'the default' <("$HNLAUNCH" config) '1G'
for size in 1000 1K x 1GB -1 99999999T ''; do
    hn_exits "-o net.store_size='$size' is refused" 64 --local 1 -o net.store_size="$size" true
done
hn_exits 'a large one is not reserved' 0 --local 1 -o net.store_size=1T true
nothing_left 'nothing is left'
done_testing
