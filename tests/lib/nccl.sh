# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# The real NCCL, without a GPU as well: source after tap.sh.
#
#   nccl_kit OLDEST|NEWEST   those of PyPI, fetched at first use by nccl_kit.sh into $NCCL_KIT (default
#                            ~/.cache/hnlaunch-tests/nccl; none: not at all)
#   nccl_here                the one of this machine: $NCCL_HOME and $CUDA_HOME, /usr/local/cuda, or what
#                            $TORCH_PYTHON (default python3) has installed; else the newest of the kit
#   nccl_cc OUT SOURCE ARG...    compiles a program with what was found
#
# Both set NCCL_INCLUDES (for the compiler), NCCL_SO (libnccl and libcudart), NCCL_LIBS (their folders, colons
# between them), NCCL_HEADER and NCCL_MINOR, or return 1 with the reason in NCCL_LACKS.

NCCL_KIT=${NCCL_KIT:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hnlaunch-tests/nccl}
NCCL_LACKS=

nccl_kit() { # OLDEST|NEWEST
    local dir=$NCCL_KIT/$1/nvidia/nccl
    if [[ $NCCL_KIT == none ]]; then
        NCCL_LACKS=${NCCL_LACKS:-'no NCCL from PyPI'}
        return 1
    fi
    if ! timeout 100 bash "$ROOT/tests/lib/nccl_kit.sh" "$NCCL_KIT" 2>"$TMP/kit.log"; then
        NCCL_LACKS="no NCCL from PyPI: $(tail -n 1 "$TMP/kit.log" | cut -c1-160)"
        NCCL_KIT=none # once is enough
        return 1
    fi
    nccl_take "$dir/include" "$dir/lib" "$NCCL_KIT/cuda/nvidia/cuda_runtime/include" \
        "$NCCL_KIT/cuda/nvidia/cuda_nvcc/include" "$NCCL_KIT/cuda/nvidia/cuda_runtime/lib"
}

# The newest libNAME of the first folder that has any.
nccl_first() { # NAME
    local dir
    while IFS= read -r -d: dir; do
        compgen -G "$dir/lib$1.so*" | sort -V | tail -n 1 | grep . && return
    done <<<"$NCCL_LIBS:"
}

# Folders of headers and of libraries: what is in two of them is taken from the first.
nccl_take() { # FOLDER...
    local dir name lib header='' includes=() found=()
    NCCL_LIBS=
    for dir; do
        if compgen -G "$dir/*.h" >/dev/null; then
            includes+=(-isystem "$dir")
            [[ -n $header || ! -e $dir/nccl.h ]] || header=$dir/nccl.h
        fi
        if compgen -G "$dir/lib*.so*" >/dev/null; then
            NCCL_LIBS+=${NCCL_LIBS:+:}$dir
        fi
    done
    for name in nccl cudart; do
        lib=$(nccl_first "$name")
        if [[ -z $lib ]]; then
            NCCL_LACKS="no lib$name here"
            return 1
        fi
        found+=("$lib") # wheels have no link without a number
    done
    if [[ -z $header ]] || ! printf '#include <nccl.h>\n' | gcc -fsyntax-only "${includes[@]}" -x c - 2>/dev/null; then
        NCCL_LACKS='no nccl.h here that compiles'
        return 1
    fi
    NCCL_INCLUDES=("${includes[@]}") NCCL_SO=("${found[@]}")
    NCCL_MINOR=$(sed -n 's/^#define NCCL_MINOR //p' "$header")
    NCCL_HEADER=$header
}

# Where the wheels of an installed PyTorch lie.
nccl_beside_torch() {
    "${TORCH_PYTHON:-python3}" - 2>/dev/null <<'END'
import glob, os, sys
for path in sys.path:
    for folder in sorted(glob.glob(os.path.join(path, "nvidia", "*", "include")) + glob.glob(os.path.join(path, "nvidia", "*", "lib"))):
        print(folder)
END
}

nccl_here() {
    local cuda=${CUDA_HOME:-/usr/local/cuda} dirs beside
    dirs=("$cuda/include" "$cuda/lib64" "$cuda/targets/$(uname -m)-linux/include")
    if [[ -n ${NCCL_HOME-} ]]; then
        nccl_take "$NCCL_HOME/include" "$NCCL_HOME/lib" "$NCCL_HOME/lib64" "${dirs[@]}" && return
    fi
    nccl_take "${dirs[@]}" && return
    nccl_take /usr/include "/usr/lib/$(uname -m)-linux-gnu" "${dirs[@]}" && return
    mapfile -t beside < <(nccl_beside_torch)
    nccl_take "${beside[@]}" && return
    nccl_take "${beside[@]}" "${dirs[@]}" && return
    nccl_kit NEWEST
}

nccl_cc() { # OUT SOURCE ARG...
    local out=$1 source=$2
    shift 2
    gcc -std=c17 -D_GNU_SOURCE -O2 -I "$ROOT/include" "$@" -o "$out" "$source" "${NCCL_INCLUDES[@]}" "${NCCL_SO[@]}" \
        -L "$PLAIN" -lhnlaunch -lm -ldl -Wl,--disable-new-dtags,-rpath,"$PLAIN:$NCCL_LIBS"
}
