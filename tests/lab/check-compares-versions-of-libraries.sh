#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `hnlaunch check PROGRAM` over ssh names the node with another Python, torch or NCCL, as its loader finds them, and `--run`
# the node on which a command of the site fails.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

type -P cc >/dev/null || skip_all 'no compiler here'
export LAB_PRIVATE='/dev/shm /run /mnt'
lab_up 4 1

# An environment with a torch whose library asks for NCCL.
library() { printf 'static const char v[] = "NCCL version %s+cuda12.4"; const char *nccl(void) { return v; }\n' "$2" | cc -xc - -shared -fPIC -Wl,-soname,libnccl.so.2 -o "$1/libnccl.so.2"; }
env=$TMP/env packages=$TMP/env/lib/python3.11/site-packages
mkdir -p "$env/bin" "$packages/torch/lib" "$packages/nvidia/nccl/lib" "$TMP/other"
printf '\177ELF\0003.11.2\000' >"$env/bin/python3.11"
chmod +x "$env/bin/python3.11"
ln -s python3.11 "$env/bin/python3"
printf "__version__ = '2.5.1+cu124'\ncuda: Optional[str] = '12.4'\n" >"$packages/torch/version.py"
library "$packages/nvidia/nccl/lib" 2.27.5
library "$TMP/other" 2.21.5
echo 'const char *nccl(void); const char *torch(void) { return nccl(); }' | cc -xc - -shared -fPIC -L"$packages/nvidia/nccl/lib" -l:libnccl.so.2 \
    -Wl,-rpath,'$ORIGIN/../../nvidia/nccl/lib' -o "$packages/torch/lib/libtorch_cuda.so" || skip_all 'the compiler makes no libraries'
: >"$env/train.py"
for i in 1 2 3 4; do lab exec "node00$i" cp -r "$env" /mnt/env; done

check() { lab_hn check -H "$TMP/hosts.txt" --chdir /mnt/env --env PATH=/mnt/env/bin:/usr/bin:/bin "$@" python3 train.py; }
exits 'nodes with the same libraries are fit' 0 check
has_row 'Python is the same' 'python +pass +4 +3\.11\.2'
has_row 'torch' 'torch +pass +4 +2\.5\.1\+cu124'
has_row 'CUDA' 'cuda +pass +4 +12\.4'
has_row 'NCCL' 'nccl +pass +4 +2\.27\.5'

lab exec node002 cp "$TMP/other/libnccl.so.2" /mnt/env/lib/python3.11/site-packages/nvidia/nccl/lib/
exits 'another NCCL fails' 69 check
has_row '... and is named' 'nccl +fail +1 +node002: 2\.21\.5, 3 others have 2\.27\.5'
has 'the next step is told' "$OUT" 'help: nccl: install the same NCCL on all nodes'
exits 'LD_LIBRARY_PATH comes before the RUNPATH of torch' 0 check --env LD_LIBRARY_PATH="$TMP/other"
has_row '... on each node' 'nccl +pass +4 +2\.21\.5'

echo 'int plugin;' | cc -xc - -shared -fPIC -o "$TMP/libnccl-net-ofi.so"
for i in 1 2 3 4; do lab exec "node00$i" sh -c "mkdir /mnt/plugin; cp $TMP/libnccl-net-ofi.so /mnt/plugin"; done
check --env LD_LIBRARY_PATH="$TMP/other:/mnt/plugin" --env NCCL_NET_PLUGIN=ofi
has_row 'the net plug-in is found by its name' 'nccl\.plugin +pass +4 +libnccl-net-ofi\.so, [0-9]+ bytes, [0-9a-f]{12}'
lab exec node001 rm /mnt/plugin/libnccl-net-ofi.so
exits 'a node without the plug-in warns' 0 check --env LD_LIBRARY_PATH="$TMP/other:/mnt/plugin" --env NCCL_NET_PLUGIN=ofi
has_row '... and is named' 'nccl\.plugin +warn +1 +node001: none, 3 others have libnccl-net-ofi\.so, .*'

lab exec node003 sh -c "printf \"__version__ = '2.4.0'\\n\" >/mnt/env/lib/python3.11/site-packages/torch/version.py"
lab exec node004 sh -c "printf '\\177ELF\\0003.11.9\\000' >/mnt/env/bin/python3.11"
check
has_row 'another torch is named' 'torch +warn +1 +node003: 2\.4\.0, 3 others have 2\.5\.1\+cu124'
has_row 'another Python is named' 'python +warn +1 +node004: 3\.11\.9, 3 others have 3\.11\.2'

lab_hn check -H "$TMP/hosts.txt" --exclude node002 --run '[ "$(cat /mnt/env/bin/python3.11 | tail -c 2 | head -c 1)" = 2 ] || { echo checking; echo wrong Python; exit 3; }' --chdir /tmp
exits 'a command that fails: 69' 69
has_row '... with the node and the last line' 'run +fail +1 +node004: exit 3: wrong Python, expected exit 0'
has_row '... and passes on the others' ' +pass +2 +exit 0'
lab_hn check -H "$TMP/hosts.txt" --tree 2 --run 'sleep 86397 & exit 0' --chdir /tmp
exits 'a command in the background does not hold the check up' 0
has_row '... in a tree, too' 'run +pass +4 +exit 0'
ok '... and is ended' not pgrep -xf 'sleep 86397'
lab_nothing_left 'nothing is left'
done_testing
