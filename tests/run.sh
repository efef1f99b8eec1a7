#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds hnlaunch twice (plain in build/, with sanitizers in build-test/) and runs its tests.
#
# usage: sh tests/run.sh [-k PATTERN] [-j N] [-B] [--by-turns] [--as-on-a-workstation] [SUITE|FILE...]
#
#   SUITE       layers unit fuzz launch ssh lab clients install   (default: all of them), or gpu
#   FILE        one test file, such as tests/launch/ctrl-c-stops-in-order.sh or tests/unit/base/buf.c
#   -k PATTERN  only files whose suite/name matches the shell pattern *PATTERN*
#   -j N        runs N files at once that keep a processor busy, and N + 1 that mostly wait (default: the processors);
#               when no busy one is left, 3 N + 1 of the others
#   -B          installs and builds nothing: tests the builds as they are
#   --by-turns   of the longest files (LONG) only a fifth, another one for each commit: the others are skipped, and named
#   --as-on-a-workstation
#               with what people have: programs of Slurm, MPICH and Open MPI in PATH, mpi4py, an active conda
#               environment, settings of their own, a long HOME, and a folder /nonexistent
#
# Missing Debian packages are installed first. A file that failed beside others runs once more, alone: what passes then
# counts as passed, and is listed as unsteady, because a test that depends on the load is to be mended. At the end come
# the skipped tests, by their reasons, and once more the unsteady and the failed ones. The last line is always
# "N passed, N failed, N skipped"; the exit code is 1 when a test failed.
set -u
CALLER=$(pwd -P)
cd "$(dirname "$0")/.." || exit 1
ROOT=$(pwd -P)

PACKAGES="gcc g++ meson ninja-build pkg-config libssh-dev libssl-dev libuv1-dev libinih-dev
libjansson-dev libncurses-dev libsodium-dev libsmartcols-dev uthash-dev zlib1g-dev libgloo-dev libcmocka-dev scdoc
openssh-server openssh-client iproute2 procps util-linux python3 tcsh fish zsh bash-completion clang libclang-rt-14-dev
clang-format man-db groff-base build-essential dpkg-dev debhelper"
# Without them tests are left out, and say so.
EXTRAS="tmux valgrind strace charliecloud-runtime busybox-static elfutils python3-torch python3-rich python3-tqdm python3-pip python3-venv patchelf gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static lintian"
# What --as-on-a-workstation adds.
WORKSTATION="slurm-client mpich openmpi-bin python3-mpi4py"
SUITES="layers unit fuzz launch ssh lab clients install"
# Of more failed files none runs again: then it was not the load.
AGAIN_MAX=4
BUILD=$ROOT/build-test
PLAIN=$ROOT/build
# The files that take longest begin first: those that keep a processor busy, and those that mostly wait, each of which
# takes a quarter of a processor on average. Ranks of NCCL and MPI spin while they wait for each other: the more of them
# run at once, the more they take, so that no two files of NCCL stand side by side.
BUSY="lab/check-measures-gpus-with-nccl clients/nccl-2.29-works-on-simulated-gpus
lab/torch-programs-run-on-four-nodes install/debian-packages-install-and-run lab/nccl-spans-two-nodes
clients/mpich-tests-end-as-under-mpiexec lab/tree-merges-what-the-store-is-asked
clients/why-names-the-odd-rank-of-mpi clients/torch-programs-run-unchanged clients/torch-leaves-no-shared-memory
lab/trainer-learns-on-32-ranks launch/every-call-can-fail launch/clean-runs-raise-no-alarm
lab/torch-programs-continue-in-prepared-interpreters launch/launches-cost-what-they-did
launch/recorded-machines-agree-with-hwloc lab/roles-meet-over-ssh lab/preflight-replaces-nodes-that-are-not-fit
unit/store/engine/store_scale clients/nccl-2.22-works-on-simulated-gpus clients/jax-programs-find-each-other
install/agent-for-aarch64-runs-jobs clients/howtos-are-true clients/role-recipes-run
clients/torch-store-stands-random-use lab/torch-groups-follow-on-four-nodes
clients/openmpi-programs-of-debian-run-unchanged clients/torch-rank-that-dies-is-named lab/jax-programs-span-nodes
launch/push-leaves-this-machine-as-it-is clients/torch-training-survives-restarts
clients/torch-groups-follow-one-another clients/torch-parts-run-unchanged launch/pytorch-runs-unchanged
lab/openmpi-runs-on-four-nodes ssh/ten-thousand-known-hosts-cost-little install/python-wheel-runs-jobs
lab/tree-carries-a-whole-job lab/own-ranks-meet-under-per-node lab/mpi-programs-span-four-nodes lab/groups-span-nodes
clients/accelerate-and-fabric-run-unchanged clients/endings-name-their-cause clients/mpi-programs-run-unchanged
clients/headers-compile-without-warnings clients/collectives-are-right-on-random-data
clients/nccl-versions-are-compared-before-the-join"
SLOW="launch/why-names-the-odd-rank lab/runs-start-on-a-hold lab/scripts-continue-in-prepared-interpreters
lab/tree-is-watched-by-its-parents launch/why-brings-flight-recorders-home launch/unfinished-commands-are-bounded
launch/idle-agent-asks-for-its-head launch/live-line-tells-what-goes-on launch/hangs-are-told-unasked
launch/what-why-has-found-is-in-the-verdict install/shells-complete-hnlaunch lab/push-passes-from-node-to-node
lab/segments-lie-within-domains clients/openmpi-programs-run-unchanged lab/short-outage-is-no-loss
lab/drained-hosts-lose-no-step launch/hold-serves-runs-in-turn lab/sge-page-is-true lab/lost-nodes-shrink-the-job
lab/spares-replace-nodes-before-the-start launch/bindings-agree-with-hwloc lab/fault-matrix
launch/runs-are-found-and-ordered launch/ranks-with-ranks-of-their-own-are-told lab/frozen-node-is-shown-as-silent
lab/silent-node-is-a-lost-node launch/gpus-are-sampled launch/no-container-lets-a-process-flee
launch/unfinished-frames-are-bounded launch/containers-hold-the-ranks lab/faults-in-a-tree
lab/tree-loses-a-subtree-at-once launch/message-out-of-turn-loses-the-node lab/push-that-cannot-be-done-is-told
lab/pull-comes-from-every-node lab/store-behind-a-firewall-starts-nothing lab/report-merges-the-nodes
lab/why-finds-the-rank-on-its-node launch/report-tells-what-happened launch/runs-outlive-their-terminal
launch/torch-rank-that-sleeps-is-named clients/c-programs-run-under-torchrun lab/sge-tasks-start-the-agents
lab/signalled-agents-drain-their-hosts lab/roles-survive-lost-nodes launch/nics-are-near
launch/mpi-programs-are-told-apart launch/logs-show-what-ranks-wrote launch/restarts-are-decided-by-facts
lab/tree-lends-the-ssh-agent launch/gpus-are-free-before-a-restart lab/failing-rank-stops-all-nodes
lab/top-shows-every-node launch/options-of-other-launchers-are-known lab/containers-run-on-many-nodes
lab/late-nodes-are-tried-again launch/tcp-endpoint-outlives-bad-clients launch/flood-of-an-ssh-command-is-cut-short
launch/why-bounds-what-ras-says lab/slurm-steps-start-the-agents lab/slurm-signals-reach-all-ranks
lab/slurm-page-is-true lab/allocation-is-run-over-ssh lab/store-endpoint-knows-the-jobs-user
lab/store-endpoint-outlives-its-ranks lab/tree-explains-its-ways ssh/a-server-that-drops-is-spared
launch/what-others-say-is-escaped launch/report-names-the-first-rank launch/top-shows-what-ranks-do
launch/ranks-that-do-not-join-are-named lab/nodes-dial-in launch/known-bad-nccl-is-told
clients/mpi-that-does-not-fit-is-told launch/agent-leaves-nothing-behind launch/progress-bars-show-on-a-terminal
launch/agent-that-hangs-is-ended lab/chaos lab/chaos-of-roles lab/roles-in-random-orders lab/spare-host-takes-over
lab/failures-are-decided-by-facts ssh/a-server-is-hostile-after-the-key-exchange"
# What takes longest, and tests with other programs what other files test, too: --by-turns has a fifth of it. In this
# order each fifth takes about as long as another: places 1, 6, 11 and so on.
LONG="lab/torch-programs-run-on-four-nodes clients/nccl-2.29-works-on-simulated-gpus clients/torch-programs-run-unchanged
clients/nccl-2.22-works-on-simulated-gpus install/debian-packages-install-and-run
clients/why-names-the-odd-rank-of-mpi lab/torch-programs-continue-in-prepared-interpreters
clients/torch-leaves-no-shared-memory clients/howtos-are-true clients/jax-programs-find-each-other
lab/torch-groups-follow-on-four-nodes clients/torch-store-stands-random-use lab/tree-merges-what-the-store-is-asked
install/agent-for-aarch64-runs-jobs clients/torch-training-survives-restarts launch/pytorch-runs-unchanged
lab/trainer-learns-on-32-ranks lab/roles-meet-over-ssh launch/launches-cost-what-they-did
lab/jax-programs-span-nodes install/python-wheel-runs-jobs clients/torch-groups-follow-one-another
clients/torch-rank-that-dies-is-named launch/recorded-machines-agree-with-hwloc
clients/openmpi-programs-run-unchanged clients/role-recipes-run lab/openmpi-runs-on-four-nodes lab/faults-in-a-tree
clients/torch-parts-run-unchanged launch/torch-rank-that-sleeps-is-named launch/bindings-agree-with-hwloc
clients/headers-compile-without-warnings install/shells-complete-hnlaunch clients/c-programs-run-under-torchrun
clients/openmpi-programs-of-debian-run-unchanged lab/nccl-spans-two-nodes lab/mpi-programs-span-four-nodes
clients/accelerate-and-fabric-run-unchanged lab/own-ranks-meet-under-per-node lab/tree-carries-a-whole-job
clients/collectives-are-right-on-random-data lab/groups-span-nodes clients/mpich-tests-end-as-under-mpiexec
clients/mpi-programs-run-unchanged"
TURNS=5

say() { printf '%s\n' "== $*"; }

# --- one test file: how this script calls itself -----------------------------------------------------

limit_of() { # SUITE: seconds, for the load of now
    case $1 in
        install) set -- 900 ;; # builds the whole once more
        *) set -- 240 ;;
    esac
    bash -c '. tests/lib/wait.sh && scaled "$1"' bash "$1"
}

# The name of a file in the lines of this script, and of its log.
id_of() { # SUITE FILE
    set -- "$1" "${2##*/}"
    echo "$1-${2%.*}"
}

# Runs a file with its output in a log; tells the result when it has ended.
run_one() { # SUITE FILE
    id=$(id_of "$1" "$2")
    log=$LOGS/$id.log
    begin=$(date +%s)
    export BUILD PLAIN SOURCE_ROOT="$ROOT" HNLAUNCH="$BUILD/hnlaunch" CMOCKA_MESSAGE_OUTPUT=TAP
    export ASAN_OPTIONS="log_path=$LOGS/$id.san:detect_leaks=1"
    export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:log_path=$LOGS/$id.san"
    case $1 in
        layers) set -- "$1" sh "$2" ;;
        unit) set -- "$1" "$BUILD/tests/test_$(basename "$2" .c)" ;;
        fuzz)
            name=$(basename "$2" .c)
            if [ "$name" = layout.sh ]; then
                set -- "$1" sh "$2" "$BUILD/tests/fuzz/seeds" tests/fuzz/corpus
            elif [ "$name" = interleave ]; then
                set -- "$1" "$BUILD/tests/fuzz/interleave" 100 tests/fuzz/corpus/tcpstore_?
            else
                set -- "$1" "$BUILD/tests/fuzz/replay_${name#fuzz_}" "tests/fuzz/corpus/${name#fuzz_}"
            fi
            ;;
        lab) set -- "$1" with_root bash "$2" ;;
        *) set -- "$1" bash "$2" ;;
    esac
    suite=$1
    shift
    if [ "$1" = with_root ]; then
        shift
        with_root "$(limit_of "$suite")" "$@" >"$log" 2>&1
    else
        timeout -k 15 "$(limit_of "$suite")" "$@" >"$log" 2>&1
    fi
    code=$?
    judge "$id" "$log" "$code" $(($(date +%s) - begin))
}

# Runs a lab script as root, or tells why not.
with_root() { # LIMIT COMMAND...
    limit=$1
    shift
    if [ "$(id -u)" = 0 ]; then
        run_as=
    elif sudo -n true 2>/dev/null; then
        run_as="sudo -n -E"
    else
        echo "1..0 # SKIP needs root (network namespaces with sshd inside)"
        return 0
    fi
    if ! $run_as unshare --net --uts --ipc --mount true 2>/dev/null; then
        echo "1..0 # SKIP this machine does not allow new namespaces"
        return 0
    fi
    $run_as timeout -k 15 "$limit" "$@"
}

# Adds what the log alone does not say: time limits, sanitizer reports, silent deaths.
judge() { # ID LOG CODE SECONDS
    if [ "$3" = 124 ] || [ "$3" = 137 ]; then
        echo "not ok - ended within its time limit" >>"$2"
    elif [ "$3" != 0 ] && ! grep -q '^not ok' "$2"; then
        echo "not ok - ended with exit code $3" >>"$2"
    elif ! grep -q -e '^ok' -e '^not ok' -e '^1\.\.0' "$2"; then
        echo "not ok - said something" >>"$2"
    fi
    for report in "$LOGS/$1".san.*; do
        # Of a thread that has just ended the kernel gives no registers: nothing about the program.
        grep -sqv '^==[0-9]*==Unable to get registers from thread [0-9]*\.$' "$report" || continue
        echo "not ok - no sanitizer report" >>"$2"
        head -n 60 "$report" | sed 's/^/# /' >>"$2"
    done
    if grep -q '^not ok' "$2"; then
        { printf 'FAIL %s (%s s)\n' "$1" "$4" && sed 's/^/     /' "$2"; } >"$2.told"
    elif reason=$(grep '^1\.\.0' "$2"); then
        printf 'skip %s: %s\n' "$1" "${reason#*SKIP }" >"$2.told"
    else
        skipped=$(grep -ci '^ok.*# skip' "$2")
        [ "$skipped" = 0 ] && skipped= || skipped=", $skipped skipped"
        printf 'pass %s (%s tests%s, %s s)\n' "$1" "$(grep -c '^ok' "$2")" "$skipped" "$4" >"$2.told"
    fi
    cat "$2.told"
}

take_job() { # LIST: prints its first line, and takes it away
    flock "$LOGS/todo.lock" sed -i -e '1w /dev/stdout' -e 1d "$LOGS/todo.$1"
}

# The next file of a list; when there is none, one of the others. A spare lane waits until no busy file is left.
if [ "${1-}" = __next ]; then
    while [ "$2" = spare ] && [ -s "$LOGS/todo.busy" ]; do sleep 1; done
    job=$(take_job "$2")
    [ -n "$job" ] || job=$(take_job other)
    # shellcheck disable=SC2086 # SUITE FILE
    [ -z "$job" ] || run_one $job
    exit 0
fi

# --- preparing -------------------------------------------------------------------------------------------

missing_of() { # PACKAGE...
    for p; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf ' %s' "$p"
    done
}

# Installs packages; no daemon may come up by itself: the tests start their own sshd.
apt_install() { # PACKAGE...
    as_root=
    [ "$(id -u)" = 0 ] || as_root="sudo"
    set -- $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
    "$@" >"$LOGS/apt.log" 2>&1 && return
    $as_root apt-get update -qq -o Acquire::Retries=3 >>"$LOGS/apt.log" 2>&1
    "$@" >>"$LOGS/apt.log" 2>&1
}

# Packages that are not there yet are installed; on systems without dpkg meson tells what it lacks.
# shellcheck disable=SC2046,SC2086
install_packages() {
    command -v dpkg-query >/dev/null || return 0
    if [ -n "$(missing_of $EXTRAS)" ]; then
        say "installing$(missing_of $EXTRAS)"
        apt_install $(missing_of $EXTRAS) || say "could not be installed:$(missing_of $EXTRAS)"
    fi
    [ -n "$(missing_of $PACKAGES)" ] || return 0
    say "installing$(missing_of $PACKAGES)"
    apt_install $(missing_of $PACKAGES) && return
    tail -n 20 "$LOGS/apt.log"
    return 1
}

build() { # FOLDER SETUP-OPTION...
    folder=$1
    shift
    say "building $folder"
    log=$LOGS/build-$(basename "$folder").log
    if [ -f "$folder/build.ninja" ]; then
        ninja -C "$folder" >"$log" 2>&1 && return
    else
        meson setup "$folder" "$@" >"$log" 2>&1 && ninja -C "$folder" >>"$log" 2>&1 && return
    fi
    tail -n 60 "$log"
    return 1
}

# NCCL is tested with the real one, which takes a while to come; without it those tests are left out. Those on
# simulated GPUs tell themselves what they lack.
fetch_nccl() {
    if grep -q '^clients ' "$LOGS/jobs"; then
        timeout 240 bash tests/lib/nccl_kit.sh "$NCCL_KIT" >"$LOGS/nccl.log" 2>&1 || return
    fi
    if grep -q -e '^clients ' -e '^lab ' "$LOGS/jobs"; then
        timeout 240 bash tests/lib/fakegpu_kit.sh "$NCCL_KIT" 2.22 2.29 >>"$LOGS/nccl.log" 2>&1
    fi
    return 0
}

build_all() {
    install_packages || give_up "the packages could not be installed"
    fetch_nccl &
    nccl=$!
    build "$PLAIN" --buildtype=release -Dwerror=true -Dunit_tests=false || give_up "the plain build failed"
    build "$BUILD" --native-file tests/ci.ini || give_up "the build with sanitizers failed"
    wait "$nccl" || { say "no NCCL from PyPI: $(tail -n 1 "$LOGS/nccl.log")" && NCCL_KIT=none; }
}

give_up() {
    say "$1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

# --- which files -------------------------------------------------------------------------------------------

misused() {
    printf 'tests/run.sh: %s\n' "$1" >&2
    exit 64
}

files_of() { # SUITE
    case $1 in
        layers) echo tests/layers.sh ;;
        unit) find tests/unit -name '*.c' | sort ;;
        fuzz) ls tests/fuzz/fuzz_*.c tests/fuzz/interleave.c tests/fuzz/layout.sh ;;
        *) find "tests/$1" -maxdepth 1 -name '*.sh' ! -name run.sh | sort ;;
    esac
}

# Prints "SUITE FILE" of a file that was named by the caller, from the caller's folder or from the sources'.
job_of() { # FILE
    for path in "$CALLER/$1" "$ROOT/$1" "$1"; do
        [ -f "$path" ] || continue
        path=$(cd "$(dirname "$path")" && pwd -P)/$(basename "$path")
        file=${path#"$ROOT/"}
        suite=${file#tests/}
        suite=${suite%%/*}
        [ "$file" != tests/layers.sh ] || suite=layers
        case " $SUITES gpu " in
            *" $suite "*) files_of "$suite" | grep -qxF "$file" && echo "$suite $file" && return ;;
        esac
        misused "$1 is no test file"
    done
    misused "$1 is neither a test file nor a suite; there are: $SUITES gpu"
}

# Prints "SUITE FILE" of all that is wanted, each once, in the order in which they shall begin.
choose_jobs() { # SUITE|FILE...
    for wanted; do
        case " $SUITES gpu " in
            *" $wanted "*) files_of "$wanted" | sed "s/^/$wanted /" ;;
            *) job_of "$wanted" || exit ;;
        esac
    done >"$LOGS/wanted" || exit
    while read -r suite file; do
        case $suite/${file##*/} in
            *$pattern*) echo "$suite $file" ;;
        esac
    done <"$LOGS/wanted" >"$LOGS/matching"
    {
        for name in $BUSY $SLOW; do
            grep -F " tests/$name." "$LOGS/matching"
        done
        cat "$LOGS/matching"
    } | awk '!seen[$0]++' >"$LOGS/jobs"
    [ -s "$LOGS/jobs" ] || misused "no test file has '$pattern' in suite/name"
}

# Takes the files of LONG whose turn is not at this commit out of $LOGS/jobs, and leaves their reason as their logs.
leave_out_long() {
    commit=$(git rev-parse --short=8 HEAD 2>/dev/null) || return 0
    turn=$((0x${commit%"${commit#???????}"} % TURNS))
    place=0
    for name in $LONG; do
        place=$((place + 1))
        [ $((place % TURNS)) != "$turn" ] || continue
        grep -F " tests/$name." "$LOGS/jobs"
    done >"$LOGS/left"
    grep -vxFf "$LOGS/left" "$LOGS/jobs" >"$LOGS/jobs.now" && mv "$LOGS/jobs.now" "$LOGS/jobs"
    while read -r suite file; do
        echo "1..0 # SKIP runs at one commit of $TURNS; sh tests/run.sh runs all" >"$LOGS/$(id_of "$suite" "$file").log"
    done <"$LOGS/left"
}

# Writes the jobs that keep a processor busy to $LOGS/todo.busy, the others to $LOGS/todo.other.
split_jobs() {
    for name in $BUSY; do
        grep -F " tests/$name." "$LOGS/jobs"
    done >"$LOGS/todo.busy"
    grep -vxFf "$LOGS/todo.busy" "$LOGS/jobs" >"$LOGS/todo.other"
    : >"$LOGS/todo.spare"
}

# --- a workstation -----------------------------------------------------------------------------------------

# Settings that no test may depend on. What tests have fetched before is found again.
set_up_workstation() {
    # shellcheck disable=SC2086
    [ -n "$as_built" ] || [ -z "$(missing_of $WORKSTATION)" ] || apt_install $(missing_of $WORKSTATION) ||
        give_up "could not be installed: $WORKSTATION"
    export XDG_CACHE_HOME="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}"
    HOME=$LOGS/home/with-a-name-that-is-much-longer-than-those-of-most-people/and-one-more-folder-below-it
    mkdir -p "$HOME/.config/hnlaunch"
    printf '[run]\nppn = 3\noversubscribe = yes\n[log]\nlabel = none\n[env]\nexport = NONE\n' >"$HOME/.config/hnlaunch/config.ini"
    unset XDG_CONFIG_HOME XDG_STATE_HOME
    python3 -m venv --without-pip "$LOGS/conda" || give_up "python3 -m venv failed"
    export HOME CONDA_PREFIX="$LOGS/conda" CONDA_DEFAULT_ENV=base CONDA_SHLVL=1 VIRTUAL_ENV="$LOGS/conda" PATH="$LOGS/conda/bin:$PATH"
    export HNLAUNCH_LOG_TIMESTAMPS=yes OMP_NUM_THREADS=7 CUDA_VISIBLE_DEVICES=1 LANG=C.UTF-8 CDPATH=/usr NO_COLOR=1
    mkdir /nonexistent 2>/dev/null && made_nonexistent=yes
    return 0
}

# --- what happened -----------------------------------------------------------------------------------------

# Prints the skipped tests of all logs, under their reasons.
tell_skipped() {
    while read -r suite file; do
        awk -v file="$file" '
            /^1\.\.0.*# [Ss][Kk][Ii][Pp]/ || /^ok.*# [Ss][Kk][Ii][Pp]/ {
                reason = test = $0
                sub(/^.*# [Ss][Kk][Ii][Pp] */, "", reason)
                sub(/ *# [Ss][Kk][Ii][Pp].*/, "", test)
                print reason "\t" file (test ~ /^ok/ ? ": " substr(test, 4) : "")
            }' "$LOGS/$(id_of "$suite" "$file").log"
    done <"$LOGS/jobs" | awk -F '\t' '
        !($1 in tests) { reason[++n] = $1 }
        { tests[$1] = tests[$1] "     " $2 "\n" }
        END {
            if (n) print "== skipped"
            for (i = 1; i <= n; i++) printf "%s\n%s", reason[i], tests[reason[i]]
        }'
}

# Prints the failed tests of logs, each with the first lines of what its file says of it, under a heading.
tell_failed() { # HEADING JOBS ENDING-OF-LOGS
    while read -r suite file; do
        awk -v file="$file" '
            /^not ok/ { if (!n++) print file; print "     " $0; left = 8; next }
            /^#/ && left-- > 0 { print "     " $0; next }
            { left = 0 }' "$LOGS/$(id_of "$suite" "$file").$3"
    done <"$2" >"$LOGS/failed"
    [ ! -s "$LOGS/failed" ] || say "$1"
    cat "$LOGS/failed"
}

# Prints the last line; fails when a test failed.
tell_sum() {
    while read -r suite file; do
        cat "$LOGS/$(id_of "$suite" "$file").log"
    done <"$LOGS/jobs" | awk '
        /^not ok/ { failed++; next }
        /^ok.*# [Ss][Kk][Ii][Pp]/ { skipped++; next }
        /^ok/ { passed++ }
        /^1\.\.0/ { skipped++ }
        END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }'
}

# Runs the files that failed beside others once more, one by one. Their first logs end in .first.
run_failed_again() {
    while read -r suite file; do
        ! grep -q '^not ok' "$LOGS/$(id_of "$suite" "$file").log" || echo "$suite $file"
    done <"$LOGS/jobs" >"$LOGS/jobs.again"
    n=$(wc -l <"$LOGS/jobs.again")
    if [ "$n" -gt "$AGAIN_MAX" ] || [ "$(wc -l <"$LOGS/jobs")" = 1 ]; then
        : >"$LOGS/jobs.again"
    fi
    [ -s "$LOGS/jobs.again" ] || return 0
    say "running $n failed test files again, alone"
    while read -r suite file; do
        id=$LOGS/$(id_of "$suite" "$file")
        mv "$id.log" "$id.first"
        rm -f "$id".san.*
    done <"$LOGS/jobs.again"
    cp "$LOGS/jobs.again" "$LOGS/todo.again"
    run_jobs 1 again &
    lanes=$!
    wait
    # Those that have failed again are no more than failed.
    while read -r suite file; do
        grep -q '^not ok' "$LOGS/$(id_of "$suite" "$file").log" || echo "$suite $file"
    done <"$LOGS/jobs.again" >"$LOGS/jobs.unsteady"
    tell_failed "unsteady: failed beside others, passed alone" "$LOGS/jobs.unsteady" first
}

# --- all of them -------------------------------------------------------------------------------------------

# In the background a shell has its children ignore SIGINT; the tests shall end with Ctrl-C.
run_jobs() { # N LIST
    seq "$(wc -l <"$LOGS/jobs")" >"$LOGS/turns.$2"
    exec env --default-signal=INT,QUIT xargs -n 1 -P "$1" sh tests/run.sh __next "$2" <"$LOGS/turns.$2"
}

pattern=
jobs=$(nproc)
as_built=
workstation=
made_nonexistent=
by_turns=
while getopts k:j:B-: option; do
    case $option in
        -)
            case $OPTARG in
                as-on-a-workstation) workstation=yes ;;
                by-turns) by_turns=yes ;;
                *) exit 64 ;;
            esac
            ;;
        k) pattern=$OPTARG ;;
        j) jobs=$OPTARG ;;
        B) as_built=yes ;;
        *) exit 64 ;;
    esac
done
shift $((OPTIND - 1))
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $SUITES

LOGS=$(mktemp -d "${TMPDIR:-/tmp}/hntests.XXXXXX")
export LOGS
trap 'rm -rf "$LOGS"; [ -z "$made_nonexistent" ] || rmdir /nonexistent' EXIT
lanes=
# shellcheck disable=SC2086
trap 'kill $lanes 2>/dev/null; exit 130' INT TERM

choose_jobs "$@"
: >"$LOGS/left"
[ -z "$by_turns" ] || leave_out_long
export NCCL_KIT="${NCCL_KIT:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hnlaunch-tests/nccl}"
[ -n "$as_built" ] || build_all
[ -z "$workstation" ] || set_up_workstation

split_jobs
say "running $(wc -l <"$LOGS/jobs") test files, at once $jobs that are busy and $((jobs + 1)) that mostly wait"
run_jobs "$jobs" busy &
lanes=$!
run_jobs $((jobs + 1)) other &
lanes="$lanes $!"
run_jobs "$jobs" spare &
lanes="$lanes $!"
wait

run_failed_again
cat "$LOGS/left" >>"$LOGS/jobs"
tell_skipped
tell_failed failed "$LOGS/jobs" log
tell_sum
