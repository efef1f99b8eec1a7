#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a CUDA without GPUs (tests/gpu/fake) and the real NCCL on it, from the static library of Debian's package
# libnccl-dev (contrib, BSD-3-Clause, 110 MB, of which 2 MB are kept). What is there already is left alone.
#
# usage: fakegpu_kit.sh FOLDER VERSION...       2.22 (trixie) or 2.29 (sid)
#
# FOLDER/fake/cuda is a CUDA_HOME, FOLDER/fake/nccl-VERSION an NCCL_HOME. FOLDER/cuda has CUDA's headers, of
# nccl_kit.sh. On failure the last line of stderr says why: other machines than amd64, no network, no Debian mirror
# among the sources of apt, or a package that is gone.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/fake" && kit=$(cd "$1" && pwd) || exit 1
to=$kit/fake
shift

give_up() {
    echo "$1" >&2
    exit 1
}

[[ $(uname -m) == x86_64 ]] || give_up "the simulated GPUs are for x86_64 only"
bash "$here/nccl_kit.sh" "$kit" cuda || exit 1
exec 9>"$to/lock"
flock 9 # test files run side by side

# apt with lists of its own: the machine's are left alone. The mirror is the machine's.
fetch() { # FOLDER PACKAGE=VERSION SUITE
    local apt=$1/apt mirror
    local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Acquire::Retries=1 -o Acquire::http::Timeout=20)
    command -v apt-get >/dev/null || give_up 'no apt-get here'
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/*$') ||
        give_up 'no Debian mirror among the sources of apt'
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb $mirror $3 contrib" >"$apt/sources.list"
    apt-get "${options[@]}" update && (cd "$1" && apt-get "${options[@]}" download "$2")
}

# Keeps the code for the host: the kernels, 99 % of the library, are never run.
unpack() { # FOLDER DEB
    local archive
    dpkg -x "$2" "$1/unpacked" || return 1
    archive=$(compgen -G "$1/unpacked/usr/lib/*/libnccl_static.a") || return 1
    ar d "$archive" enhcompat.o || return 1 # weak stand-ins for an old CUDA's calls would win over ours
    echo 'SECTIONS { .nv_fatbin (NOLOAD) : { *(.nv_fatbin) *(__nv_relfatbin) } } INSERT AFTER .bss;' >"$1/no-kernels"
    ld -r -S -T "$1/no-kernels" -o "$1/nccl.o" --whole-archive "$archive" || return 1
    mkdir -p "$1/include" && cp -r "$1"/unpacked/usr/include/nccl* "$1/include/"
}

nccl() { # VERSION DEBIAN-VERSION SUITE
    local dir=$to/nccl-$1
    [[ ! -e $dir/nccl.ready ]] || return 0
    rm -rf "$dir"
    mkdir -p "$dir/lib"
    fetch "$dir" "libnccl-dev=$2" "$3" && unpack "$dir" "$(compgen -G "$dir/*.deb")" && : >"$dir/nccl.ready"
    local code=$?
    rm -rf "$dir/apt" "$dir"/*.deb "$dir/unpacked"
    return "$code"
}

# --- our own part: made anew when the sources have changed ---------------------------------------------

fake=$here/../gpu/fake
cuda=$to/cuda
cflags=(-O1 -g -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -fPIC -fwrapv -fvisibility=hidden
    -isystem "$cuda/include")

make_cuda() {
    local part
    mkdir -p "$cuda/include" "$cuda/lib64" || return 1
    for part in cuda_runtime cuda_nvcc; do
        ln -sf "$kit/cuda/nvidia/$part/include"/* "$cuda/include/" || return 1
    done
    echo 'libcudart.so.12 { };' >"$cuda/versions" # programs ask for the version that the real runtime has
    gcc "${cflags[@]}" -shared -o "$cuda/lib64/libcuda.so.1" "$fake"/{machine,streams,runtime,driver}.c \
        -Wl,-soname,libcuda.so.1 -Wl,--version-script="$cuda/versions" -lpthread -ldl || return 1
    for part in libcuda.so libcudart.so libcudart.so.12 libnvidia-ml.so.1; do
        ln -sf libcuda.so.1 "$cuda/lib64/$part"
    done
}

# --no-relax: ld 2.40 spoils "push symbol@GOTPCREL" of newer assemblers.
link_nccl() { # VERSION
    local dir=$to/nccl-$1
    gcc "${cflags[@]}" -c -isystem "$dir/include" -o "$dir/fakenccl.o" "$fake/fakenccl.c" &&
        g++ -shared -o "$dir/lib/libnccl.so.2" -Wl,-soname,libnccl.so.2 -Wl,--no-relax -Wl,-Bsymbolic \
            -Wl,-z,noexecstack "$dir/fakenccl.o" "$dir/nccl.o" -L"$cuda/lib64" -l:libcuda.so.1 -lpthread -ldl -lrt &&
        ln -sf libnccl.so.2 "$dir/lib/libnccl.so"
}

up_to_date() { # FOLDER: has the libraries of these sources
    [[ -e $1/made && $(<"$1/made") == "$sources" ]]
}

sources=$(cat "$fake"/*.[ch] "$0" | sha256sum)
if ! up_to_date "$cuda"; then
    { make_cuda && echo "$sources" >"$cuda/made"; } || give_up 'the simulated CUDA could not be built'
fi
for version; do
    case $version in
        2.22) nccl 2.22 2.22.3-1-1 trixie ;;
        2.29) nccl 2.29 2.29.7-1-1 sid ;;
        *) give_up "no NCCL $version in this kit" ;;
    esac || exit 1
    up_to_date "$to/nccl-$version" ||
        { link_nccl "$version" && echo "$sources" >"$to/nccl-$version/made"; } || give_up "NCCL $version could not be linked"
done
