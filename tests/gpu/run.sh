#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests with GPUs. What needs none runs everywhere, with the real NCCL; the rest is skipped with its
# reason.
#
# usage: sh tests/gpu/run.sh [PATTERN...]
#        sh tests/gpu/run.sh --fake VERSION [PATTERN...]
#        sh tests/gpu/run.sh --pack FOLDER
#
#   PATTERN          only files whose name matches the shell pattern *PATTERN*
#   --fake VERSION   on simulated GPUs, with the code of NCCL 2.22 or 2.29: tests/lib/fakegpu_kit.sh fetches and
#                    builds both at first use, into $NCCL_KIT (default ~/.cache/hnlaunch-tests/nccl). Without
#                    patterns all files that make sense there: not bandwidth, not PyTorch
#   --pack FOLDER    copies what was built, and the libraries it needs, for a machine with GPUs that has
#                    neither network nor the packages to build with; there: PLAIN=FOLDER sh tests/gpu/run.sh
#
#   PLAIN        the build folder (default build), without sanitizers
#   CUDA_HOME, NCCL_HOME    where they are, if not in /usr/local/cuda, the system's folders or beside
#                PyTorch; found nowhere, they are fetched from PyPI
#   TORCH_PYTHON    a Python with PyTorch for CUDA (default python3)
#
# The last line is "N passed, N failed, N skipped"; the exit code is 1 when anything failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
PLAIN=$(cd "${PLAIN:-build}" && pwd -P) || exit 1

# The C library and the compiler's stay those of the machine.
libraries_of() { # FILE...
    ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libhnlaunch)\.so'
}

pack() { # FOLDER
    mkdir -p "$1/lib" "$1/examples" "$1/tests/clients" || return 1
    set -- "$1" hnlaunch hnlaunch-agent libhnlaunch.so libhnlaunch.so.0 hn_backend_gloo.so hn_backend_nccl.so \
        examples/train tests/clients/collectives tests/clients/collectives_random
    to=$1
    shift
    for file; do
        [ ! -e "$PLAIN/$file" ] || cp -L "$PLAIN/$file" "$to/$file" || return 1
    done
    # shellcheck disable=SC2046
    cp -L $(libraries_of "$PLAIN/hnlaunch" "$PLAIN"/hn_backend_*.so) "$to/lib/" || return 1
    strip --strip-debug "$to"/*.so* "$to"/hnlaunch "$to"/lib/* 2>/dev/null
    du -sh "$to"
}

if [ "${1-}" = --pack ]; then
    pack "${2:?"--pack wants a folder"}"
    exit
fi

# NCCL's own code, on tests/gpu/fake. Few channels: less to set up.
simulate() { # VERSION
    kit=${NCCL_KIT:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hnlaunch-tests/nccl}
    if [ "$kit" = none ]; then
        echo '1..0 # SKIP no NCCL could be fetched'
        exit 0
    fi
    if ! why=$(timeout 100 bash tests/lib/fakegpu_kit.sh "$kit" "$1" 2>&1); then
        echo "1..0 # SKIP no NCCL $1 on simulated GPUs: $(echo "$why" | tail -n 1 | cut -c1-160)"
        exit 0
    fi
    export CUDA_HOME="$kit/fake/cuda" NCCL_HOME="$kit/fake/nccl-$1" NCCL_MAX_NCHANNELS=2
    export LD_LIBRARY_PATH="$NCCL_HOME/lib:$CUDA_HOME/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

if [ "${1-}" = --fake ]; then
    simulate "${2:?"--fake wants a version: 2.22 or 2.29"}"
    shift 2
    [ $# -gt 0 ] || set -- collectives come-and-go killed-rank during-setup every-call-of-setup ras-answers why-asks ranks-get masks-stay train-learns
fi

wanted() { # FILE PATTERN...
    file=$1
    shift
    [ $# -gt 0 ] || return 0
    for pattern; do
        # shellcheck disable=SC2254
        case $(basename "$file") in *$pattern*) return 0 ;; esac
    done
    return 1
}

export PLAIN BUILD="$PLAIN"
# A pack brings its libraries along; they may have been built elsewhere.
if [ -d "$PLAIN/lib" ]; then
    export LD_LIBRARY_PATH="$PLAIN:$PLAIN/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
limit=900
[ -z "${HN_CHURN-}${HN_FAULTS-}" ] || limit=14400 # more than usual is wanted
log=$(mktemp "${TMPDIR:-/tmp}/hngpu.XXXXXX")
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM
for file in tests/clients/headers-compile-without-warnings.sh tests/clients/nccl-tells-what-it-lacks.sh tests/gpu/*.sh; do
    [ "$file" != tests/gpu/run.sh ] || continue
    wanted "$file" "$@" || continue
    echo "== $file" | tee -a "$log"
    timeout -k 15 "$limit" bash "$file" 2>&1 | tee -a "$log"
done
awk '
    /^== / { file = $2 }
    /^not ok/ { failed++; next }
    /^ok.*# SKIP/ || /^1\.\.0/ { skipped++; sub(/^.*# SKIP */, ""); print "skipped: " file ": " $0; next }
    /^ok/ { passed++ }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 || !passed }' "$log"
