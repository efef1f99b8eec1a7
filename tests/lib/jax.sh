# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# JAX programs: source after tap.sh. Skips the script when JAX is not there and cannot be fetched.
#
#   JAX_KIT        where JAX is kept (default ~/.cache/hnlaunch-tests/jax)
#   JAX_PATH       the folder of its modules, for PYTHONPATH
#   jax_words      sets "words": ARG... jax_NAME.py ARG... with Python and the path of tests/clients/jax/jax_NAME.py
#   jax_hn         hnlaunch with these words

JAX_KIT=${JAX_KIT:-${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/jax}
JAX_PATH=$(timeout 150 bash "$ROOT/tests/lib/jax_kit.sh" "$JAX_KIT" 2>"$TMP/jax.log") ||
    skip_all "no JAX: $(tail -n 1 "$TMP/jax.log" | cut -c1-160)"
# A library with sanitizers does not load into a Python without.
HNLAUNCH=$PLAIN/hnlaunch
export HNLAUNCH_LIBRARY=$PLAIN/libhnlaunch.so.0 OMP_NUM_THREADS=1
# Warnings of JAX about them are no part of what is tested.
unset http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY

jax_words() {
    local word
    words=()
    for word; do
        [[ $word != jax_*.py ]] || word=$ROOT/tests/clients/jax/$word
        [[ $word != *.py ]] || words+=(env "PYTHONPATH=$JAX_PATH:$ROOT/packaging/python" python3)
        words+=("$word")
    done
}

jax_hn() {
    local words
    jax_words "$@"
    hn -x HNLAUNCH_LIBRARY --label none "${words[@]}"
}
