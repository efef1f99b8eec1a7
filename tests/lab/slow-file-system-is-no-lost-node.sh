#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that a cold file system hands out only after more than --node-timeout starts late, and its
# node is not lost meanwhile; who asks hears what it waits for.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh"
command -v python3 >/dev/null || skip_all 'needs python3'
lab_up 2

cat >"$TMP/hold" <<'EOS'
import ctypes, os, struct, sys, time
CLASS_CONTENT, MARK_ADD, OPEN_EXEC_PERM, ALLOW, AT_FDCWD = 4, 1, 0x40000, 1, -100
libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
fd = libc.fanotify_init(CLASS_CONTENT, os.O_RDONLY)
if fd < 0 or libc.fanotify_mark(fd, MARK_ADD, OPEN_EXEC_PERM, AT_FDCWD, sys.argv[1].encode()):
    sys.exit(os.strerror(ctypes.get_errno()))
print("holding", flush=True)
events = os.read(fd, 24 * 64)
time.sleep(float(sys.argv[2]))
while True:
    for event in struct.iter_unpack("<IBBHQii", events):
        os.write(fd, struct.pack("<iI", event[5], ALLOW))
        os.close(event[5])
    events = os.read(fd, 24 * 64)
EOS
cp /bin/true "$TMP/program"
# From now on whoever wants to execute the program waits for so long.
hold() { # SECONDS
    rm -f "$TMP/holding"
    timeout 100 python3 "$TMP/hold" "$TMP/program" "$1" >"$TMP/holding" 2>"$TMP/why" &
    holder=$!
    wait_for settled
}
settled() { [[ -s $TMP/holding ]] || ! kill -0 "$holder"; }
waits() { [[ $(grep -c "waiting for '" "$ERR") == 2 ]]; }
let_go() {
    kill "$holder"
    wait "$holder" 2>/dev/null
}

hold 6
kill -0 "$holder" 2>/dev/null || skip_all "this kernel does not let us hold a program: $(cat "$TMP/why")"
exits 'ranks that start late' 0 lab_hn -w node001,node002 --node-timeout 3s --verbose "$TMP/program"
for node in node001 node002; do
    has "$node tells what it waits for" "$ERR" "$node: waiting for '$TMP/program' to be executed"
done
let_go

hold 60
lab_start -w node001,node002 --grace 200ms --verbose "$TMP/program"
ok 'both wait' wait_for waits
exits 'Ctrl-C ends who waits' 130 finish_by INT
lacks 'and no node is blamed' "$ERR" 'lost node0'
lab_nothing_left 'nothing is left'
let_go
done_testing
