#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ENVIRONMENT OF A RANK in the manual, and `help env`, name each variable that a rank gets from hnlaunch, and no other.
. "$(dirname "$0")/../lib/tap.sh"
export XDG_CACHE_HOME=$TMP/cache # the user's lists of files stay
mkdir "$XDG_CACHE_HOME"

names() { grep -oE '^[A-Z][A-Z0-9_]*=' "$1" | tr -d =; }

# A plan of two nodes that use a part of their GPUs, and a real rank: both have more than this test gives them.
mkdir data
bare=(env -i "PATH=$PATH" "HOME=$HOME" "XDG_CONFIG_HOME=$XDG_CONFIG_HOME")
run "${bare[@]}" "$HNLAUNCH" plan --ranks 0 -w 'node[1-2]:2' --push data -o run.gpu_visibility=own --subst true {port:name}
exits 'a plan' 0
names "$OUT" >given
run "${bare[@]}" "$HNLAUNCH" plan --ranks 0 -w 'node[1-2]:2' --mpi pmix true
names "$OUT" >>given
run "${bare[@]}" "$HNLAUNCH" -q --local 1 --mpi pmi-port --label none env
names "$OUT" >>given
run "${bare[@]}" "$HNLAUNCH" -q --local 1 --mpi pmi1 --label none env
names "$OUT" >>given
run "${bare[@]}" "$HNLAUNCH" -q --local 2 --push data --label none env
exits 'a run' 0
names "$OUT" >>given
if python3 -m venv --without-pip env 2>/dev/null; then
    run "${bare[@]}" "$HNLAUNCH" -q --local 1 --stage data --venv env --label none env
    names "$OUT" >>given
else
    printf '%s\n' HN_STAGE_DIR HN_VENV VIRTUAL_ENV >>given
fi
run "${bare[@]}" TERM=xterm python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$HNLAUNCH" -q --local 1 --label none env
names "$OUT" >>given
# Two releases of PyTorch read names that others warn of.
for version in 1.13.1 2.6.0; do
    mkdir -p "$version/torch"
    echo "__version__ = '$version'" >"$version/torch/version.py"
    run "${bare[@]}" "PYTHONPATH=$PWD/$version" "$HNLAUNCH" -q --local 1 --label none env
    names "$OUT" >>given
done
printf '%s\n' NCCL_IB_HCA UCX_NET_DEVICES >>given # of ranks with GPUs beside InfiniBand: nics-are-near.sh
grep -vxE 'PATH|HOME|XDG_CONFIG_HOME|PWD|SHLVL|_|PYTHONPATH|TERM|LC_CTYPE' given | sort -u >set
ok 'a rank has many variables of hnlaunch' test "$(wc -l <set)" -gt 30

words() { grep -oE '\b([A-Z]+_[A-Z_]+|RANK|COLUMNS|PYTHONUNBUFFERED|PYTHONFAULTHANDLER)\b' | sort -u; }
awk '/^# / { on = /^# ENVIRONMENT OF A RANK/ } on' "$ROOT/docs/hnlaunch.1.scd" | words | grep -vxE 'PCI_BUS_ID|NO_COLOR|OMPI_MCA_.*' >manual
is 'the manual names each of them' "$(comm -13 manual set | xargs)" ''
is 'and no other' "$(comm -23 manual set | xargs)" ''
"$HNLAUNCH" help env | sed '1,/hnlaunch sets:/d' | words | grep -vx PCI_BUS_ID >topic
is 'help env names each of them' "$(comm -13 topic set | xargs)" ''
is 'nor does it name another' "$(comm -23 topic set | xargs)" ''
done_testing
