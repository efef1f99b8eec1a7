#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --restart auto: a GPU that the kernel calls broken on one node is the reason of a failure, also of a rank on another
# node. Nodes are agents of this machine with kernel logs of their own: files of ours, in mount namespaces.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/driver_files.sh"

in_mount_namespace "$@"

driver_of 2
touch /dev/kmsg
printf 'a slots=1\nb slots=1\nc slots=1 spare\n' >hosts

# The log of a node is /dev/kmsg, or else a file of syslog; devices are in a folder of sysfs.
cat >node <<'END'
#!/bin/sh
export NODE="$1" dir="$2"
shift 2
[ -d "$dir/$NODE" ] || exec "$@"
exec unshare --mount sh -c '
    [ ! -e "$dir/$NODE/kmsg" ] || mount --bind "$dir/$NODE/kmsg" /dev/kmsg || exit
    [ ! -e "$dir/$NODE/log" ] || mount --bind "$dir/$NODE/log" /var/log || exit
    [ ! -e "$dir/$NODE/devices" ] || mount --bind "$dir/$NODE/devices" /sys/bus/pci/devices || exit
    exec "$@"' sh "$@"
END
chmod +x node
now_us() { python3 -c 'import time; print(int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6) + 3600 * 1000000)'; } # an hour from now
fell='NVRM: Xid (PCI:0000:10:00): 79, pid=4711, name=python3, GPU has fallen off the bus.'

# Rank 0 on a fails in each attempt before the last.
auto() { # ATTEMPT [ARG...]
    local last=$1
    shift
    hn -H hosts --oversubscribe --start-with "$PWD/node {host} $PWD" --label none --log-dir logs --grace 1s --bad-hosts none --restart auto "$@" \
        sh -c "[ \$HN_RESTART != $last ] || exit 0; [ \$RANK = 0 ] || exec sleep 60; echo \"NCCL error \$HN_RESTART\" >&2; exit 5"
}
decisions() { python3 -c '
import json
for a in json.load(open("logs/latest/summary.json", encoding="utf-8"))["attempts"]:
    print(a["attempt"], a.get("evidence", "-"), a.get("decision", "-"), a.get("host", "-"), sep=":")' | xargs; }

auto 1
is 'no log has a word: nothing points to a host' "$(decisions)" '1:exit:same hosts:a 2:-:-:-'

mkdir b
echo "3,812,$(now_us),-;$fell" >b/kmsg
auto 2
exits 'the host with the broken GPU goes, and the job ends well' 0
is 'the first time it stays' "$(decisions)" '1:gpu:same hosts:b 2:gpu:host out:b 3:-:-:-'
has 'the decision has the message' "$ERR" 'same hosts: Xid 79 (fallen off the bus) of GPU 0000:10:00: the first time on b'
has 'and another host comes' "$ERR" 'c takes the place of b'

auto 1 --ppn 1 -o run.gpu_visibility=own --gpus-per-rank 1
is 'the GPU of the rank counts' "$(decisions)" '1:gpu:same hosts:b 2:-:-:-'
sed -i 's/0000:10:00/0000:11:00/' b/kmsg
auto 1 -o run.gpu_visibility=own --gpus-per-rank 1
is 'a GPU that no rank has does not' "$(decisions)" '1:exit:same hosts:a 2:-:-:-'

echo "3,812,1000,-;$fell" >b/kmsg
auto 1
is 'a message from before the attempt does not count' "$(decisions)" '1:exit:same hosts:a 2:-:-:-'
echo "3,812,$(now_us),-;NVRM: Xid (PCI:0000:10:00): 31, pid=4711, name=python3, MMU Fault" >b/kmsg
auto 1
is 'nor one about an error of a program' "$(decisions)" '1:exit:same hosts:a 2:-:-:-'

echo "3,812,$(now_us),-;$fell" | tee b/kmsg >c
mkdir a && mv c a/kmsg
auto 1
is 'two broken GPUs: that of the host with the rank' "$(decisions)" '1:gpu:same hosts:a 2:-:-:-'

rm -r a b /dev/kmsg
mkdir -p b/log b/devices/0000:10:00.0
printf 'Nov  1 12:00:00 n1 kernel: [%d.000000] %s\n' "$(($(now_us) / 1000000))" "$fell" >b/log/messages
auto 1
is 'a file of syslog where /dev/kmsg cannot be read' "$(decisions)" '1:gpu:same hosts:b 2:-:-:-'
echo 'Nov  2 08:00:00 n1 kernel: [    0.000000] Linux version 6.1.0' >>b/log/messages
auto 1
is 'its lines of an earlier boot do not count' "$(decisions)" '1:exit:same hosts:a 2:-:-:-'
rm -r b/log
printf '\377\377\377\377' >b/devices/0000:10:00.0/config
auto 1
is 'a GPU that no longer answers on the bus' "$(decisions)" '1:gpu:same hosts:b 2:-:-:-'
has 'the decision says so' "$ERR" 'GPU 0000:10:00.0 has fallen off the bus: the first time on b'
nothing_left 'nothing is left of any attempt'
done_testing
