#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A rank that is stopped in a debugger is ended like the others: a debugger at its prompt keeps the
# dead process from being reaped, and may not keep the job.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

cat >"$TMP/debugger" <<'EOF'
import ctypes, os, sys, time
PTRACE_ATTACH = 16
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
pid = int(sys.argv[1])
if ptrace(PTRACE_ATTACH, pid, 0, 0) != 0:
    sys.exit("cannot trace: " + os.strerror(ctypes.get_errno()))
os.waitpid(pid, 0)
print("attached", flush=True)
time.sleep(60)
EOF

# Rank 0's own word for its number is not ours where it lives in a namespace.
is_up() {
    lines_are "$OUT" 2 && pid=$(processes | while read -r p; do
        ! grep -qzx HN_RANK=0 "/proc/$p/environ" || echo "$p"
    done) && [[ $pid ]]
}
settled() { [[ $(cat "$TMP/attached" 2>/dev/null) == attached ]] || ! kill -0 "$debugger"; }

for level in tree cgroup pidns; do
    hn -o run.contain="$level" --local 1 true
    if [[ $RC != 0 ]]; then
        skip "$level" "this machine does not give it: $(verdict)"
        continue
    fi
    start -o run.contain="$level" --grace 500ms --local 2 --label none sh -c 'echo up; exec sleep 300'
    ok "$level: ranks are up" wait_for is_up
    rm -f "$TMP/attached"
    python3 "$TMP/debugger" "$pid" >"$TMP/attached" 2>"$TMP/why" &
    debugger=$!
    wait_for settled
    if ! kill -0 "$debugger" 2>/dev/null; then
        debugger=
        finish_by INT
        skip "$level" "$(cat "$TMP/why")"
        continue
    fi
    exits "$level: Ctrl-C ends the job" 130 finish_by INT
    has "$level: who is held is told" "$ERR" "(pid $pid) was killed but not reaped: a tracer is attached"
    lacks "$level: the node is not blamed" "$ERR" 'lost localhost'
    is "$level: the rank is dead" "$(awk '/^State/ { print $2 }' "/proc/$pid/status")" Z
    kill -KILL "$debugger"
    wait "$debugger" 2>/dev/null
    debugger=
    nothing_left "$level: nothing is left"
done
done_testing
