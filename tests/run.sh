#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds hnlaunch twice (plain in build/, with sanitizers in build-test/) and runs its tests.
#
# usage: sh tests/run.sh [-k PATTERN] [SUITE...]
#
#   SUITE       layers unit fuzz launch ssh lab clients install   (default: all)
#   -k PATTERN  only files whose suite/name matches the shell pattern *PATTERN*
#   -j N        so many at once (default 2)
#
# Missing Debian packages are installed first. The last line is always
# "N passed, N failed, N skipped"; the exit code is 1 when anything failed.
set -u
cd "$(dirname "$0")/.." || exit 1
ROOT=$(pwd -P)

PACKAGES="gcc g++ meson ninja-build pkg-config libssh-dev libssl-dev libuv1-dev libinih-dev
libjansson-dev libsodium-dev libsmartcols-dev uthash-dev libgloo-dev libcmocka-dev scdoc
openssh-server openssh-client iproute2 procps util-linux python3 tcsh fish zsh bash-completion clang libclang-rt-14-dev
clang-format man-db groff-base build-essential dpkg-dev debhelper"
# Without them tests are left out, and say so.
EXTRAS="python3-torch python3-pip gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static lintian"
SUITES="layers unit fuzz launch ssh lab clients install"
BUILD=$ROOT/build-test
PLAIN=$ROOT/build

say() { printf '%s\n' "== $*"; }

# --- one test file: how this script calls itself -----------------------------------------------------

limit_of() {
    case $1 in
        install) echo 900 ;; # builds the whole once more
        *) echo 240 ;;       # a busy machine is not what is tested
    esac
}

# Runs "SUITE FILE" with its output in a log; tells the result when it has ended.
run_one() { # SUITE FILE
    id=$1-$(basename "${2%.*}")
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
            set -- "$1" "$BUILD/tests/fuzz/replay_${name#fuzz_}" "tests/fuzz/corpus/${name#fuzz_}"
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
        [ -s "$report" ] || continue
        echo "not ok - no sanitizer report" >>"$2"
        head -n 60 "$report" | sed 's/^/# /' >>"$2"
    done
    if grep -q '^not ok' "$2"; then
        { printf 'FAIL %s (%s s)\n' "$1" "$4" && sed 's/^/     /' "$2"; } >"$2.told"
    elif reason=$(grep '^1\.\.0' "$2"); then
        printf 'skip %s: %s\n' "$1" "${reason#*SKIP }" >"$2.told"
    else
        printf 'pass %s (%s tests, %s s)\n' "$1" "$(grep -c '^ok' "$2")" "$4" >"$2.told"
    fi
    cat "$2.told"
}

if [ "${1-}" = __one ]; then
    run_one "$2" "$3"
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
fetch_nccl() { # SUITE...
    case " $* " in
        *' clients '*) timeout 240 bash tests/lib/nccl_kit.sh "$NCCL_KIT" >"$LOGS/nccl.log" 2>&1 || return ;;
    esac
    case " $* " in
        *' clients '* | *' lab '*)
            timeout 240 bash tests/lib/fakegpu_kit.sh "$NCCL_KIT" 2.22 2.29 >>"$LOGS/nccl.log" 2>&1
            return 0
            ;;
    esac
}

files_of() { # SUITE
    case $1 in
        layers) echo tests/layers.sh ;;
        unit) find tests/unit -name '*.c' | sort ;;
        fuzz) ls tests/fuzz/fuzz_*.c ;;
        *) find "tests/$1" -maxdepth 1 -name '*.sh' ! -name run.sh | sort ;;
    esac
}

give_up() {
    say "$1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

# --- all of them -------------------------------------------------------------------------------------------

pattern=
jobs=2
while getopts k:j: option; do
    case $option in
        k) pattern=$OPTARG ;;
        j) jobs=$OPTARG ;;
        *) exit 64 ;;
    esac
done
shift $((OPTIND - 1))
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $SUITES

LOGS=$(mktemp -d "${TMPDIR:-/tmp}/hntests.XXXXXX")
export LOGS
trap 'rm -rf "$LOGS"' EXIT
trap 'exit 130' INT TERM

export NCCL_KIT="${NCCL_KIT:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hnlaunch-tests/nccl}"
install_packages || give_up "the packages could not be installed"
fetch_nccl "$@" &
nccl=$!
build "$PLAIN" --buildtype=release || give_up "the plain build failed"
build "$BUILD" --native-file tests/ci.ini || give_up "the build with sanitizers failed"

wait "$nccl" || { say "no NCCL from PyPI: $(tail -n 1 "$LOGS/nccl.log")" && NCCL_KIT=none; }

for suite in "$@"; do
    for file in $(files_of "$suite"); do
        case $suite/$(basename "$file") in
            *$pattern*) printf '%s %s\n' "$suite" "$file" ;;
        esac
    done
done >"$LOGS/jobs"
say "running $(wc -l <"$LOGS/jobs") test files, $jobs at once"
xargs -r -L 1 -P "$jobs" sh tests/run.sh __one <"$LOGS/jobs"

rm -f "$LOGS"/build-*.log "$LOGS/apt.log" "$LOGS/nccl.log"
cat "$LOGS"/*.log 2>/dev/null | awk '
    /^not ok/ { failed++; next }
    /^ok.*# [Ss][Kk][Ii][Pp]/ { skipped++; next }
    /^ok/ { passed++ }
    /^1\.\.0/ { skipped++ }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }'
