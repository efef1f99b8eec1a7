#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests with PyTorch programs, one after the other: here and, as root, in the lab.
#
# usage: sh tests/clients/run.sh [--torch2|--frameworks|--releases|--mpi] [PATTERN...]
#        sh tests/clients/run.sh --mpich-suite [FOLDER,...]
#        sh tests/clients/run.sh --slurm RELEASE [PATTERN...]
#
#   --torch2    with the newest PyTorch instead of Debian's: in a virtual environment that is made
#               at first use (some GB), and with the tests of its new parts
#   --frameworks
#               with that PyTorch and Lightning, Accelerate, Transformers, DeepSpeed, Ray, torchft and Monarch (7 GB): their
#               tests, those of PyTorch parts that they build on, and the pages of docs/howto
#   --releases  with older releases of PyTorch for CUDA, on simulated GPUs: what hnlaunch sets for each of them
#               (900 MB to fetch for each; RELEASES="2.6.0 2.8.0" chooses)
#   --mpich-suite
#               instead runs all of MPICH's own tests, or some of their folders, under hnlaunch and under MPICH's mpiexec
#               (hours on two processors), and prints what ends differently
#   --slurm     instead, the tests with Slurm, with that of another release of Debian (trixie: 24.11); patchelf must be there
#   --mpi       instead, the tests with programs of MPI, with the long parts that a whole run leaves out
#   PATTERN     only files whose name matches the shell pattern *PATTERN*
#
#   TORCH2_VENV, FRAMEWORKS_VENV
#                   where the virtual environments are (default ~/.cache/hnlaunch-tests/torch2, frameworks)
#   BUILD, PLAIN    build folders: what is tested here, and in the lab (default build)
#
# The last line is "N passed, N failed, N skipped"; the exit code is 1 when anything failed.
set -u
cd "$(dirname "$0")/../.." || exit 1

install() { # FOLDER PACKAGE...
    python=$1/bin/python
    shift
    "$python" -m pip install --quiet "$@"
}

add_frameworks() { # FOLDER
    install "$1" setuptools wheel lightning accelerate transformers 'ray[default,train]' torchft-nightly 'torchmonarch[torchx]' &&
        install "$1" --no-build-isolation deepspeed # its set-up asks PyTorch
}

make_venv() { # FOLDER [FUNCTION]
    [ ! -e "$1/ready" ] || return 0
    echo "== making $1"
    python3 -m venv "$1" && install "$1" torch numpy && ${2-:} "$1" && : >"$1/ready"
}

use_venv() { # FOLDER [FUNCTION]
    if ! make_venv "$@"; then
        echo "run.sh: the virtual environment $1 could not be made (is python3-venv there, and the network?)" >&2
        exit 1
    fi
    export TORCH_PYTHON="$1/bin/python"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests
if [ "${1-}" = --mpich-suite ]; then
    bash tests/lib/mpi_kit.sh "$cache/mpi" mpich-tests || exit 1
    exec python3 tests/clients/mpich_suite.py ${2:+-f "$2"} "$cache/mpi/mpich-tests/mpi" \
        "${PLAIN:-$PWD/build}/hnlaunch -q --label none -w localhost:64" "$cache/mpi/mpich5/bin/mpiexec"
fi
files="tests/launch/pytorch-*.sh tests/clients/torch-*.sh tests/lab/torch-*.sh"
if [ "${1-}" = --torch2 ]; then
    shift
    use_venv "${TORCH2_VENV:-$cache/torch2}"
    files="$files tests/clients/torch2/*.sh"
elif [ "${1-}" = --frameworks ]; then
    shift
    use_venv "${FRAMEWORKS_VENV:-$cache/frameworks}" add_frameworks
    export TORCH_EXTENSIONS_DIR="$cache/torch_extensions" # what DeepSpeed compiles takes minutes
    files="tests/clients/frameworks/*.sh tests/clients/howtos-are-true.sh"
elif [ "${1-}" = --releases ]; then
    shift
    files="tests/clients/releases/*.sh"
elif [ "${1-}" = --slurm ] && [ -n "${2-}" ]; then
    export TEST_SLURM="$2"
    shift 2
    files="tests/lab/slurm-*.sh"
elif [ "${1-}" = --mpi ]; then
    shift
    export MPI_TESTS=long
    files="tests/clients/*mpi*.sh tests/lab/*mpi*.sh"
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

log=$(mktemp "${TMPDIR:-/tmp}/hntorch.XXXXXX")
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM
for file in $files; do
    wanted "$file" "$@" || continue
    echo "== $file"
    begin=$(date +%s)
    { timeout -k 15 1800 bash "$file" || [ $? = 1 ] || echo "not ok - $file did not come to its end"; } | tee -a "$log"
    echo "== $(($(date +%s) - begin)) s"
done
awk '
    /^not ok/ { failed++; next }
    /^ok.*# SKIP/ || /^1\.\.0/ { skipped++; next }
    /^ok/ { passed++ }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 || !passed }' "$log"
