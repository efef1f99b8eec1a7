#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Limits on open files, threads and memory: a launch works or ends with a message and an exit code of its
# own, whatever the limit; no crash, no hang. Without sanitizers, which need all of them themselves.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

HNLAUNCH=$PLAIN/hnlaunch

# Good launches have all their output, others a message and one of those exit codes.
told() { # NAME CODE...
    local name=$1 code
    shift
    for code in "$@"; do
        if ((RC == code)) && { ((code == 0)) && [[ $(sort "$OUT") == $'0\n1\n2' ]] || ((code != 0)) && [[ -s $ERR ]]; }; then
            pass "$name ($RC)"
            return
        fi
    done
    fail "$name"
}

rank='echo $RANK'
works=0
for ((n = 4; n <= 40; n++)); do
    run prlimit --nofile="$n" "$HNLAUNCH" --local 3 --label none sh -c "$rank"
    told "$n open files" 0 69 125 127 # 127: there was no program, for ld.so
    ((RC == 0 || n < 12)) || ok "$n: what is missing is named" grep -qE 'open (files|descriptors)' "$ERR"
    works=$((works + (RC == 0)))
done
ok 'some of them are enough' test "$works" -gt 0
run prlimit --nofile=8 "$HNLAUNCH" --local 3 true
exits 'no room for the event loop: 125' 125
has 'it is told' "$ERR" 'error[HN904]: cannot start the event loop: Too many open files'
has 'with the next step' "$ERR" 'ulimit -n'

# 1 to 60 MB, of which the libraries take the first part.
for ((kb = 4000; kb <= 60000; kb += 4000)); do
    run prlimit --as=$((kb * 1024)) "$HNLAUNCH" --local 3 --label none sh -c "$rank"
    told "$kb kB of address space" 0 69 125 126 127 # 126, 127: before main(), or before that of sh
done

# A user of its own, whose processes are counted from 0; this test's own user may have no limit.
if [[ $EUID == 0 ]]; then
    user=$((64000 + RANDOM % 1000))
    mkdir "$TMP/home" "$TMP/there"
    cp "$PLAIN/hnlaunch" "$PLAIN/hnlaunch-agent" "$TMP/there"
    chown "$user" "$TMP/home"
    chmod 711 "$TMP" "$TMP/work"
    cd "$TMP/home" || exit 1
    works=0
    for n in 1 2 3 4 5 6 7 8 9 10 12 14 100; do
        run setpriv --reuid "$user" --regid "$user" --clear-groups \
            env -u XDG_STATE_HOME -u XDG_CONFIG_HOME -u XDG_RUNTIME_DIR HOME="$TMP/home" \
            prlimit --nproc="$n" "$TMP/there/hnlaunch" --local 3 --label none sh -c "$rank"
        told "$n processes and threads" 0 69 125
        works=$((works + (RC == 0)))
        [[ $n != 1 ]] || has 'the limit is told' "$ERR" 'Resource temporarily unavailable'
    done
    ok 'some of them are enough' test "$works" -gt 0
else
    skip 'limits of processes' 'needs root'
fi
nothing_left 'nothing is left'
done_testing
