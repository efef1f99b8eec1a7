#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches MPI libraries, complete and not installed. What is there already is left alone.
#
# usage: mpi_kit.sh FOLDER NAME
#
# NAME is mpich5 (PyPI's MPICH with mpicc and mpiexec, 70 MB), impi (PyPI's Intel MPI with its benchmarks, 330 MB):
# virtual environments FOLDER/NAME with mpi4py; mpich4 (Debian's MPICH, unpacked), pmi2 (Debian's client of Slurm's
# PMI-2, unpacked), or mpich-tests (MPICH's own tests from Debian's source package of 22 MB, configured in
# FOLDER/mpich-tests/mpi for mpich5, which comes, too; clients/mpich_suite.py compiles its programs). On failure the last
# line of stderr says why.
set -u
kit=$1 name=$2
mkdir -p "$kit" || exit 1
exec 9>"$kit/lock.$name"
flock 9 # test files run side by side
[[ ! -e $kit/$name/ready ]] || exit 0
rm -rf "${kit:?}/$name"

wheels() { # WHEEL==VERSION...
    python3 -m venv "$kit/$name" && "$kit/$name/bin/pip" install --quiet --only-binary=:all: --retries 1 --timeout 20 \
        --disable-pip-version-check --no-cache-dir "$@"
}

packages() { # PACKAGE...
    mkdir -p "$kit/$name/debs" && cd "$kit/$name/debs" && apt-get download "$@" >/dev/null &&
        for deb in ./*.deb; do dpkg -x "$deb" .. || return; done && cd .. && rm -rf debs
}

. "$(dirname "$0")/source_package.sh" || exit 1

mpich_tests() {
    local library=$kit/mpich5
    bash "$0" "$kit" mpich5 && mkdir -p "$kit/$name" && cd "$kit/$name" && source_package mpich &&
        tar -xJf mpich_*.orig.tar.xz --strip-components=2 --wildcards --no-wildcards-match-slash '*/test/mpi' && rm -rf apt mpich_* && cd mpi &&
        ./configure CC="$library/bin/mpicc" --with-mpi="$library" --disable-fortran --disable-cxx --disable-romio >configure.log &&
        make -s -C dtpools >/dev/null 2>&1 && make -s -C util >/dev/null 2>&1
}

case $name in
mpich5) wheels mpich==5.0.2 mpi4py==4.1.2 ;;
impi) wheels impi-rt==2021.18.1 mpi4py==4.1.2 ;;
mpich4) packages libmpich12 libmpich-dev mpich libucx0 libslurm38 libgfortran5 libibverbs1 librdmacm1 libnl-3-200 libnl-route-3-200 libhwloc15 ;;
pmi2) packages libpmi2-0 libpmi2-0-dev ;;
mpich-tests) mpich_tests ;;
*) echo "mpi_kit.sh: there is no $name" >&2; false ;;
esac && : >"$kit/$name/ready"
