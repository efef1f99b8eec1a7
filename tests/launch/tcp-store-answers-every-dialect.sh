#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that speak PyTorch's TCPStore protocol, byte for byte, to the real store: every command in
# every dialect, waits that are cancelled or race with what they wait for, and a rank's own keys
# through hnlaunch's own library's endpoint.
. "$(dirname "$0")/../lib/tap.sh"

export PYTHONPATH=$ROOT/tests/lib

cat >speak.py <<'END'
import os
import sys
from store_client import *

dialect = sys.argv[1]
c = Client(int(os.environ["MASTER_PORT"]), dialect=dialect)
D = dialect == "D"


def same(name, got, want):
    print(name if got == want else "%s: %r, not %r" % (name, got, want))


if D:
    same("ping", c.ping(0xfedcba98), 0xfedcba98)
same("add", c.add(b"init/", 1), 1)
c.set(b"/a", b"\0\xff one")
same("get", c.get(b"/a"), b"\0\xff one")
same("get of nothing", c.get(b"/nothing"), b"")
same("add again", c.add(b"init/", -5), -4)
same("get of a number", c.get(b"init/"), b"-4")
same("check", (c.check(b"/a", b"init/"), c.check(b"/a", b"/nothing"), c.check()),
     (b"\0", b"\1", b"\0"))
same("wait", (c.wait(b"/a", b"/a"), c.wait()), (b"\0", b"\0"))
same("num_keys", c.num_keys(), 2)
same("compare_set", [c.compare_set(b"/c", b"x", b"y"), c.compare_set(b"/c", b"", b"one"),
                     c.compare_set(b"/c", b"two", b"three"), c.compare_set(b"/c", b"one", b"two"),
                     c.get(b"/c")], [b"x", b"one", b"one", b"two", b"two"])
c.set(b"/empty", b"")
same("an empty value", (c.check(b"/empty"), c.get(b"/empty")), (b"\0", b""))
same("delete", (c.delete(b"/c"), c.delete(b"/c")), (1, 0))
big = bytes(range(256)) * (4 << 10)
c.set(b"/big", big)
same("a large value", c.get(b"/big") == big, True)
c.say(b"".join(c.op("SET", text(b"/p%d" % i), text(b"%d" % i)) for i in range(3000)) +
      c.op("GET", text(b"/p2999")))
same("writes without an answer", c.vector(), b"2999")
if dialect != "A":
    c.append(b"/x", b"one")
    c.append(b"/x", b" two")
    same("append", c.get(b"/x"), b"one two")
    c.multi_set([(b"/m%d" % i, b"v%d" % i) for i in range(200)])
    same("multi_get", c.multi_get(*(b"/m%d" % i for i in range(201))),
         [b"v%d" % i for i in range(200)] + [b""])
    same("multi_get of nothing", c.multi_get(), [])
    c.cancel()
    same("cancel_wait", c.hear(1), b"\1")
if D:
    same("an empty queue", (c.queue_len(b"/q"), c.pop(b"/q")), (0, (0, None)))
    c.push(b"/q", b"first")
    c.push(b"/q", b"")
    same("a queue", (c.check(b"/q"), c.wait(b"/q"), c.queue_len(b"/q"), c.pop(b"/q"), c.pop(b"/q"),
                     c.queue_len(b"/q")), (b"\0", b"\0", 2, (2, b"first"), (1, b""), 0))
    keys = c.list_keys()
    same("list_keys", (len(keys), set(keys) >= {b"init/", b"/a", b"/big", b"/p0"}),
         (c.num_keys(), True))
    same("barrier", (c.barrier(b"/b", 1), c.get(b"/b")), (b"\0", b"1"))
c.append(b"/a", b"") if dialect != "A" else None
c.say(c.op("ADD", text(b"/a"), number(1)))
same("add to what is no number ends the connection", c.closed(), True)
END
for dialect in A B D; do
    hn_exits "$dialect: 0" 0 --local 1 python3 speak.py "$dialect"
    ok "$dialect: every answer is right" [ -s "$OUT" ]
    lacks "$dialect: and none is wrong" "$OUT" ', not '
    has "$dialect: the lost connection is told" "$ERR" 'is not a number'
done

cat >race.py <<'END'
import os
import random
import time
from store_client import *

rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
c = Client(port)
wrong = 0
random.seed(rank)
if rank == 0:  # sets keys while rank 1 gives up waiting for them
    for i in range(400):
        c.wait(b"/go%d" % i)
        time.sleep(random.random() * 0.002)
        c.set(b"/k%d" % i, b"v")
else:
    for i in range(400):
        c.say(c.op("SET", text(b"/go%d" % i), text(b"")))
        c.start_wait(b"/k%d" % i)
        time.sleep(random.random() * 0.002)
        c.cancel()
        said = c.hear(1)
        if said == b"\0":  # it was over already
            said += c.hear(1)
        # Nothing more may come: the next answer is that of the next command.
        wrong += said not in (b"\1", b"\0\1") or c.ping(i) != i
        wrong += c.wait(b"/k%d" % i) != b"\0"
        c.start_wait(b"/never")
        wrong += c.get(b"/k%d" % i) != b"v"
    print("wrong:", wrong)
# All at one barrier, again and again, and one counter.
for i in range(50):
    c.add(b"/n", 1)
    c.barrier(b"/b%d" % i, 2)
    wrong += c.add(b"/n", 0) < 2 * (i + 1)
print("rank", rank, "wrong:", wrong)
END
hn_exits 'races: 0' 0 --local 2 --label none python3 race.py
is 'a cancelled wait is answered once, whatever comes first' "$(sort "$OUT")" \
    "$(printf 'rank 0 wrong: 0\nrank 1 wrong: 0\nwrong: 0')"

cat >crowd.py <<'END'
import os
import resource
from store_client import *

most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
crowd = [Client(port) for _ in range(300)]
for c in crowd:
    c.say(c.op("ADD", text(b"init/"), number(1)))
sums = [c.integer() for c in crowd]
value = os.urandom(200 << 10)
if rank == 0:
    crowd[0].set(b"/id", value)
for c in crowd:
    c.start_wait(b"/id")
assert all(c.hear(1) == b"\0" for c in crowd)
for c in crowd:
    c.say(c.op("GET", text(b"/id")))
values = {c.vector() for c in crowd}
assert len(values) == 1 and (rank or values == {value})
crowd[0].say(crowd[0].op("BARRIER", text(b"/end"), number(4)))
crowd[0].hear(1)
print(*sums, sep="\n")
END
hn_exits '1200 connections: 0' 0 --local 4 --label none python3 crowd.py
is 'every ADD has a sum of its own' "$(sort -n "$OUT" | uniq | wc -l) $(sort -n "$OUT" | tail -1)" '1200 1200'

cat >again.py <<'END'
import os
import sys
from store_client import *

attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
port = int(os.environ["MASTER_PORT"])
waiting = [Client(port) for _ in range(20)]
c = Client(port)
print("attempt", attempt, "keys", c.check(b"/key%d" % rank), flush=True)  # it may be killed
c.set(b"/key%d" % rank, b"")
for one in waiting[:10]:
    one.start_wait(b"/never")
for i, one in enumerate(waiting[10:]):
    one.start_wait(b"/never", b"/%d" % i)
c.barrier(b"/b", 2)
if attempt == 2:
    sys.exit(0)
if rank == 1:
    sys.exit(3)
while True:
    c.add(b"/n", 1)
END
hn_exits 'an attempt that fails amid waits is followed by another' 0 --local 2 --max-restarts 2 --label none python3 again.py
is 'each finds an empty store' "$(sort "$OUT" | uniq -c | tr -s ' ')" "$(printf '%s\n' \
    " 2 attempt 0 keys b'\\x01'" " 2 attempt 1 keys b'\\x01'" " 2 attempt 2 keys b'\\x01'")"
done_testing
