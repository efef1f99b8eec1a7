#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Agents for several machines are installed; a node takes the one that its `uname -m` names.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

machine=$(uname -m)
mkdir "$TMP/bin" "$TMP/cache" "$TMP/installed"
cp "$HNLAUNCH" "$BUILD/hnlaunch-ssh.so" "$TMP/installed"
cp "$BUILD/hnlaunch-agent" "$TMP/installed/hnlaunch-agent-$machine"
HNLAUNCH=$TMP/installed/hnlaunch

# The node's own uname, which says what this test wants.
cat >"$TMP/bin/uname" <<END
#!/bin/sh
echo x >>"$TMP/asked"
[ "\$1" = -m ] || exec /usr/bin/uname "\$@"
cat "$TMP/machine"
END
chmod 755 "$TMP/bin/uname"

sshd_start "SetEnv PATH=$TMP/bin:/usr/sbin:/usr/bin:/sbin:/bin XDG_CACHE_HOME=$TMP/cache"
trust "$PORT"
write_config 'Host n3' "    HostName 127.0.0.1" "    Port $PORT"
launch() { # MACHINE: what the node says it is
    echo "$1" >"$TMP/machine"
    : >"$TMP/asked"
    hn --ssh-config "$TMP/ssh_config" -w n3 --start-timeout 60s echo in
}
cached() { find "$TMP/cache" -name 'agent-*' | wc -l; }

exits 'a node of the same kind as this machine' 0 launch "$machine"
has 'runs the program' "$OUT" in
is 'its agent is kept there' "$(cached)" 1
exits 'and found again' 0 launch "$machine"
is 'at the price of one uname' "$(wc -l <"$TMP/asked")" 1

exits 'no agent for the node: nothing was started' 69 launch riscv64
has 'by its own code' "$ERR" 'error[HN216]: no agent is installed for the machine of n3'
has 'with what it is and what there is' "$ERR" "is a machine of type riscv64; agents installed: $machine"
has 'and the next step' "$ERR" 'put it beside the others as hnlaunch-agent-TYPE'
is 'nothing was uploaded' "$(cached)" 1
launch ''
has 'a node that does not say what it is' "$ERR" 'is a machine of type unknown; agents installed:'

# An agent for another machine: here only its first page is right, so the node can take but not run it.
other=aarch64 code='\267'
[[ $machine == aarch64 ]] && other=x86_64 code='\076'
agent=$TMP/installed/hnlaunch-agent-$other
if [[ $machine == x86_64 && -x $PLAIN/hnlaunch-agent-aarch64 ]]; then
    cp "$PLAIN/hnlaunch-agent-aarch64" "$agent"
else
    cp "$BUILD/hnlaunch-agent" "$agent"
    # shellcheck disable=SC2059
    printf "$code" | dd of="$agent" bs=1 seek=18 conv=notrunc status=none
fi
runs() { "$agent" </dev/null >/dev/null 2>&1; }
exits 'beside another agent: the right one still runs' 0 launch "$machine"
launch "$other"
is 'a node of the other kind takes the other agent' "$(cached)" 2
sent=$(find "$TMP/cache" -name 'agent-*' -newer "$agent" | head -n 1)
same 'byte for byte' "$sent" "$agent"
if runs; then
    exits 'and runs it (this kernel knows how)' 0
else
    exits 'which this kernel cannot execute' 69
    has 'and that is told' "$ERR" 'error[HN210]: the agent cannot run on n3'
fi

launch riscv64
has 'all agents are named' "$ERR" "agents installed: $machine, $other"

cp "$BUILD/hnlaunch-agent" "$TMP/installed/hnlaunch-agent-riscv64"
exits 'an agent under a wrong name' 69 launch "$machine"
has 'is refused' "$ERR" "installed/hnlaunch-agent-riscv64 is for $machine"
echo 'no program' >"$TMP/installed/hnlaunch-agent-riscv64"
launch "$machine"
has 'as is what is no program' "$ERR" 'hnlaunch-agent-riscv64 is not a program of a known machine'
rm "$TMP/installed/"hnlaunch-agent-*
exits 'no agent at all' 69 launch "$machine"
has 'is told with both places' "$ERR" "hnlaunch-agent is neither beside $TMP/installed/hnlaunch nor in /"
nothing_left 'nothing is left'
done_testing
