# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Open MPI 4, 4.1 and 5 for tests: source after tap.sh, then openmpi_kit, and for each version openmpi VERSION.
#
#   openmpi_kit         unpacks them into the tests' cache, or skips the whole script; openmpi_kit programs
#                       unpacks Debian's programs instead
#   openmpi 4|4.1|5     sets the environment and compiles tests/lib/mpi_hello.c into ./hello
#   hello_is N LOCAL    what N ranks of ./hello print, LOCAL on each node, is right ($OUT, for ok)

KIT=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/mpi

openmpi_kit() {
    command -v gcc >/dev/null || skip_all 'no compiler'
    bash "$ROOT/tests/lib/openmpi_kit.sh" "$KIT" "$@" 2>"$TMP/kit" || skip_all "no Open MPI: $(tail -n 1 "$TMP/kit")"
}

clear_openmpi() {
    unset "${!OPAL_@}" "${!PMIX_@}" LD_LIBRARY_PATH
}

openmpi() {
    clear_openmpi
    . "$KIT/openmpi$1/env.sh"
    gcc -O1 -o hello "$ROOT/tests/lib/mpi_hello.c" "${BUILD_ARGS[@]}"
    # This machine may have fewer processors than ranks, and no fast network.
    OPENMPI=(-x 'OPAL_*' --oversubscribe)
}

hello_is() {
    seq 0 $(($1 - 1)) | awk -v n="$1" -v l="$2" '{ print $1, n, n * (n - 1) / 2, l }' | diff - <(sort -n "$OUT")
}
