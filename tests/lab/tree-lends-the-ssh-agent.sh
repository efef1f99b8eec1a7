#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# -o ssh.tree_auth: nodes without keys of their own log in to nodes with the user's ssh-agent, three deep, or are told
# why not; ranks never see it.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

lab_up 5 2
eval "$(ssh-agent -s -a "$TMP/agent.sock")" >/dev/null
AGENT_PID=$SSH_AGENT_PID
at_end() {
    [[ ! -d $LAB_DIR ]] || lab down
    kill "$AGENT_PID" 2>/dev/null
}
# The only key is the agent's: there is no file of it on any machine.
ssh-add -q "$LAB_DIR/etc/id"
rm "$LAB_DIR/etc/id"
chain=(--tree 1 --connect-timeout 15s --start-timeout 60s -w 'node[001-004]:1')

exits 'own keys, the default: nodes have none' 77 lab_hn "${chain[@]}" true
has 'the child that refuses is named' "$ERR" 'error[HN223]: node002 rejects the login from its parent in the tree'
has 'and both ways out' "$ERR" 'or -o ssh.tree_auth=forward'
lab_nothing_left 'nothing is left of it'

for way in 'the built-in ssh' 'the ssh program'; do
    command=()
    [[ $way == *built* ]] || command=(--ssh-command ssh)
    lab_hn "${command[@]}" -o ssh.tree_auth=forward "${chain[@]}" --label none sh -c 'echo "$RANK ${SSH_AUTH_SOCK-none}"'
    exits "forward, $way: three levels" 0
    is "ranks do not see the agent, $way" "$(sort "$OUT" | tr '\n' ' ')" '0 none 1 none 2 none 3 none '
    lab_nothing_left "nothing is left, $way"
done
exits 'two branches at once' 0 lab_hn -o ssh.tree_auth=forward --tree 2 -w 'node[001-005]:1' --label none hostname
is 'all are there' "$(sort "$OUT" | tr '\n' ' ')" 'node001 node002 node003 node004 node005 '

# A program that goes and finds the socket on the first of three nodes: 3 + 16 at once, and it goes on afterwards.
cat >flood.py <<'END'
import os, socket, struct, time
def ask(s):
    try:
        s.sendall(struct.pack('>IB', 1, 11))
        return len(s.recv(4096)) > 5
    except OSError:
        return False
def dial(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.settimeout(20)
    return s
if os.environ['HN_RANK'] == '0':
    agent = open(f'/proc/{os.getppid()}/environ', 'rb').read().split(b'\0')
    path = [v[14:] for v in agent if v.startswith(b'SSH_AUTH_SOCK=')][0]
    many = [dial(path) for _ in range(60)]
    print('at once', sum([ask(s) for s in many]))
    [s.close() for s in many]
    tries = 100
    while tries and not ask(s := dial(path)):
        tries -= 1
        time.sleep(0.1)
    print('afterwards', sum([ask(s) for _ in range(1000)]))
END
lab_hn -o ssh.tree_auth=forward --tree 1 -w 'node[001-003]:1' --label none python3 "$PWD/flood.py"
is 'nobody gets more of the agent than logins need' "$(tr '\n' ' ' <"$OUT")" 'at once 19 afterwards 1000 '

# A node without children gets no forwarded agent: its sshd made no socket. Nor is one there from before.
ok 'those of the flood are gone' wait_for lab_empty
cat >has-agent <<'END'
for p in /proc/[0-9]*; do
    tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -q ^SSH_AUTH_SOCK= && [ "$(cat "$p/comm")" != sshd ] && echo "$HN_RANK"
done | sort -u
END
lab_hn -o ssh.tree_auth=forward --tree 1 -w 'node[001-003]:1' --label none sh "$PWD/has-agent"
is 'the last of a chain is lent nothing' "$(sort -u "$OUT" | tr '\n' ' ')" '0 1 '

exits 'a key that is not authorized' 77 lab_hn -o ssh.tree_auth=forward --tree 1 -w 'node001:1,node002:1,nobody@node003:1' true
has 'both ends are told' "$ERR" '(from node002)'
has 'and where to look' "$ERR" 'no key of the ssh-agent here is accepted (ssh-add -l)'

# The middle node's server forbids it; the first line of a setting counts.
forbid() { # NODE
    sed -i '1i AllowAgentForwarding no' "$LAB_DIR/nodes/$1/sshd_config"
    lab sshd "$1" stop
    lab sshd "$1" start
}
for node in node003 node001; do
    forbid $node
    exits "forbidden by $node: 77" 77 lab_hn -o ssh.tree_auth=forward "${chain[@]}" true
    has "forbidden by $node: it is told" "$ERR" "sshd on $node forwards no ssh-agent: AllowAgentForwarding yes there"
    has "forbidden by $node: by the child" "$ERR" "(from $node)"
    lab_nothing_left "forbidden by $node: nothing is left"
done

ssh-add -qD
exits 'an agent without keys: the first login fails already' 77 lab_hn -o ssh.tree_auth=forward --tree 1 -w node002:1,node004:1 true
env -u SSH_AUTH_SOCK "$LAB" run "$LAB_HNLAUNCH" -o ssh.tree_auth=forward "${chain[@]}" touch "$PWD/started" >"$OUT" 2>"$ERR"
is 'no ssh-agent: 77' $? 77
has 'it has a number' "$ERR" 'error[HN224]: -o ssh.tree_auth=forward without an ssh-agent: SSH_AUTH_SOCK is not set'
has 'and a next step' "$ERR" 'ssh-add; or -o ssh.tree_auth=own'
SSH_AUTH_SOCK=$TMP/nobody "$LAB" run "$LAB_HNLAUNCH" --tree-auth forward "${chain[@]}" true >"$OUT" 2>"$ERR"
is 'an ssh-agent that is gone: 77' $? 77
has 'its socket is named' "$ERR" "cannot connect to the ssh-agent at $TMP/nobody"
ok 'nothing was started' test ! -e started
lab_nothing_left 'nothing is left at the end'
done_testing
