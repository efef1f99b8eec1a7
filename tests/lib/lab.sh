# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Nodes with real sshd in namespaces of this machine: source after tap.sh, then lab_up N.
#
#   lab CMD...        the lab's own commands (see tests/lab/lab)
#   lab_hn ARG...     hnlaunch in the lab's "head"; sets RC, fills $OUT and $ERR
#
# Every script has a lab of its own; it is gone when the script ends. Without root, or where
# namespaces are forbidden, lab_up skips the whole script.

LAB=$ROOT/tests/lab/lab
export LAB_DIR=$TMP/lab LAB_NET=10.$((100 + BASHPID % 100))
# The agent is cached in a folder that all nodes share; each script begins without, and has its own: nodes of
# two labs may have the same name and process numbers.
export LAB_PRIVATE='/dev/shm /run'
export LAB_SSHD_OPTS="SetEnv XDG_CACHE_HOME=$TMP/cache HNLAUNCH_STAGE_DIR=$TMP/cache"
# Nodes get the plain build: its agent is the static one that users get.
LAB_HNLAUNCH=$PLAIN/hnlaunch
WORKERS=$PLAIN/tests/lib

lab() { "$LAB" "$@"; }

lab_up() { # N [SLOTS]
    [[ $(id -u) == 0 ]] || skip_all 'needs root (network namespaces with sshd inside)'
    unshare --net --uts --ipc --mount true 2>/dev/null || skip_all 'this machine does not allow new namespaces'
    # The newest key exchange takes three times as long as all else of a connection; tests/ssh has it.
    LAB_SSHD_OPTS+=$'\nKexAlgorithms -sntrup761*,mlkem768*'
    if ! lab up "$1" >"$TMP/lab.log" 2>&1; then
        cat "$TMP/lab.log" >&2
        fail 'the lab comes up'
        done_testing
    fi
    lab hosts openmpi "${2:-4}" >"$TMP/hosts.txt"
}

lab_run() { run "$LAB" run "$@"; }

lab_hn() { lab_run "$LAB_HNLAUNCH" "$@"; }

# Starts hnlaunch in the lab's head in the background; PID is hnlaunch itself.
lab_start() {
    : >"$OUT"
    : >"$ERR"
    "$LAB" run env --default-signal "$LAB_HNLAUNCH" "$@" >"$OUT" 2>"$ERR" &
    PID=$!
}

# No process of a job on any node: neither agent nor worker, and no ssh session either.
lab_empty() {
    [[ -z $(lab ps) ]]
}

lab_nothing_left() { # NAME
    if wait_for lab_empty; then
        pass "$1"
    else
        fail "$1" "$(lab ps)"
    fi
}

head_sent() { lab run awk '/br0:/ { sub(/.*:/, ""); print $9 }' /proc/net/dev; } # bytes that the head itself has sent

no_staged_files() { # NODE...
    local node
    for node; do
        [[ -z $(lab exec "$node" find "$TMP/cache" -path '*hnlaunch-stage-*') ]] || return
    done
}

at_end() {
    [[ ! -d $LAB_DIR ]] || lab down
}
