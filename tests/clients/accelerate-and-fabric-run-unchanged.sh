#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Scripts for Accelerate and for Lightning Fabric with Debian's PyTorch; tests/clients/run.sh --frameworks has the newest
# of both, the lab, and others.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/torch.sh" || exit 1

[[ $TORCH_VERSION == 1.* ]] || skip_all "PyTorch $TORCH_VERSION: sh tests/clients/run.sh --frameworks"
kit=${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/small-frameworks
modules=$(timeout 100 bash "$ROOT/tests/lib/small_frameworks_kit.sh" "$kit" "$TORCH_PYTHON" 2>"$TMP/kit.log") ||
    skip_all "no Accelerate and Fabric: $(tail -n 1 "$TMP/kit.log" | cut -c1-160)"
# shellcheck disable=SC2034
HNLAUNCH=$PLAIN/hnlaunch LIMIT=120
export PYTHONPATH=$modules

torch_hn --local 2 accelerate_script.py "$TMP/accelerate"
torch_ok 'Accelerate on 2 ranks' 2
has 'it finds two processes' "$OUT" 'MULTI_CPU, local mains 1'
lacks 'PyTorch warns of no variable that hnlaunch sets' "$ERR" 'is deprecated; use'
torch_hn --local 2 fabric_loop.py 1 2 "$TMP"
torch_ok 'Fabric on 2 ranks' 2
done_testing
