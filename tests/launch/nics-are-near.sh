#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --nic near: the variables of NCCL and UCX of each rank, on made machines. The driver's files and those of sysfs are
# ours, in a mount namespace.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"
unset NCCL_IB_HCA UCX_NET_DEVICES

for n in {0..7}; do
    printf '%d GPU-%d 0000:%x:00.0\n' "$n" "$n" $((0x1b + n * 0x10))
done >"$TMP/gpus"
driver_files "$TMP/gpus"
mount -t tmpfs none /sys/bus/pci && mount -t tmpfs none /sys/class || skip_all 'sysfs cannot be covered here'
mkdir /sys/bus/pci/devices /sys/class/infiniband

machine() { # NAME: sysfs is that of this machine
    umount -q /sys/devices/system/node /sys/bus/pci/devices /sys/class/infiniband
    rm -rf "$TMP/tree"
    python3 "$ROOT/tests/lib/sysfs_tree.py" make "$1" "$TMP/tree" >/dev/null
    mount --bind "$TMP/tree/sys/devices/system/node" /sys/devices/system/node
    mount --bind "$TMP/tree/sys/bus/pci/devices" /sys/bus/pci/devices
    if [[ -e $TMP/tree/sys/class/infiniband ]]; then
        mount --bind "$TMP/tree/sys/class/infiniband" /sys/class/infiniband
    fi
}
rank='echo "$RANK ${NCCL_IB_HCA-} ${UCX_NET_DEVICES-}"'
nics() { # ARG...: "NCCL_IB_HCA UCX_NET_DEVICES" of each rank in a line
    hn "$@" --label none sh -c "$rank"
    sort -n "$OUT" | cut -d' ' -f2- | tr -d ' ' | paste -sd' '
}

machine dgx-h100-nics
is 'DGX H100: each rank has the port behind its switch' "$(nics --local 8 --nic near)" \
    "$(for n in {3..10}; do echo "=mlx5_$n:1mlx5_$n:1"; done | paste -sd' ')"
is 'nothing is set by itself' "$(nics --local 2)" ' '
is 'ranks without GPUs have none' "$(nics --local 2 --gpus-per-rank 0 --nic near)" ' '
lacks '... which is no fault' "$ERR" 'HN319'
is 'the key run.nic' "$(printf '[run]\nnic = near\n' >"$TMP/job.toml"; nics --job "$TMP/job.toml" --local 1)" '=mlx5_3:1mlx5_3:1'
is 'a rank with two GPUs has both ports' "$(nics --local 1 --gpus-per-rank 2 --nic near)" '=mlx5_3:1,mlx5_4:1mlx5_3:1,mlx5_4:1'
is 'NCCL_IB_HCA of the user stays' "$(NCCL_IB_HCA=^mlx5_0 nics --local 1 --nic near -x NCCL_IB_HCA)" '^mlx5_0mlx5_3:1'
is '... and UCX_NET_DEVICES' "$(nics --local 1 --nic near -x UCX_NET_DEVICES=all)" '=mlx5_3:1all'
hn --local 2 -v --nic near true
has '-v shows them' "$ERR" 'rank 1: NICs mlx5_4:1'
hn plan --probe --local 2 --nic near --bind none true
is 'plan --probe shows them before' "$(grep '^binding' "$OUT" | tr -s ' ')" $'binding rank 0: NICs mlx5_3:1\nbinding rank 1: NICs mlx5_4:1'
hn plan --probe --local 2 --nic near --json true
is '... and JSON' "$(jq -c '[.nodes[0].ranks[].nics]' "$OUT")" '["mlx5_3:1","mlx5_4:1"]'
hn plan --probe --local 1 --json true
is '... which has none otherwise' "$(jq -c '[.nodes[0].ranks[].nics]' "$OUT")" '[null]'
is 'the program of a node chooses itself' "$(nics --local --per-node --nic near)" ''

machine dgx-a100-nics
is 'DGX A100: two GPUs and two ports behind a switch: ranks begin with different ones' "$(nics --local 4 --nic near)" \
    '=mlx5_0:1,mlx5_1:1mlx5_0:1,mlx5_1:1 =mlx5_1:1,mlx5_0:1mlx5_1:1,mlx5_0:1 =mlx5_2:1,mlx5_3:1mlx5_2:1,mlx5_3:1 =mlx5_3:1,mlx5_2:1mlx5_3:1,mlx5_2:1'
machine ports
is 'ports with a link only, if need be behind another switch' "$(nics --local 2 --nic near)" \
    '=mlx5_0:2mlx5_0:2 =mlx5_1:1,mlx5_1:2mlx5_1:1,mlx5_1:2'
machine virtual-nics
is 'without bridges the NUMA node counts' "$(nics --local 2 --nic near)" \
    '=mlx5_0:1,mlx5_1:1mlx5_0:1,mlx5_1:1 =mlx5_1:1,mlx5_0:1mlx5_1:1,mlx5_0:1'
is 'of which nothing is known: no port is near' "$(nics --local 5 --nic near | cut -d' ' -f5)" ''
lacks '... which is told with -v' "$ERR" HN319

machine dgx-h100
is 'no InfiniBand: nothing is set' "$(nics --local 2 --nic near)" ' '
has '... and told' "$ERR" 'warning[HN319]: localhost: --nic near sets no NICs: no port of InfiniBand or RoCE is active here'
hn -w localhost:2 --nic near --role a -n 1 true : --role b -n 1 --on a true
is '... once for all roles' "$(grep -c HN319 "$ERR")" 1
hn_exits 'another word is refused' 64 --local 1 --nic far true
nothing_left 'nothing is left'
done_testing
