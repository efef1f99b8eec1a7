#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --order topology, --segment and --topology: nodes of a switch side by side, segments within one, mistakes of the file with their
# place; random networks are judged by Python, which counts for itself what fits.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

nodes() { # of plan --json: HOST[:DOMAIN:SWITCH] in the order of the nodes that have ranks
    python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
print(*(":".join(str(n[k]) for k in ("host", "domain", "switch")) for n in p["nodes"] if n["node"] is not None))' "$OUT"
}
hosts() { nodes | sed 's/:[^ ]*//g'; }

cat >net.txt <<'E2'
# as it is wired
leaf2: n[2,10,3]
leaf1: n1 n[4-5],m[001-999]
core: leaf[1-2]
E2
hn_exits 'a plan by topology' 0 plan --json -w 'n[1-5],n10' --order topology --topology net.txt true
is 'nodes stand by switch and name' "$(nodes)" \
    'n1:leaf1:core/leaf1 n4:leaf1:core/leaf1 n5:leaf1:core/leaf1 n2:leaf2:core/leaf2 n3:leaf2:core/leaf2 n10:leaf2:core/leaf2'
hn plan -w 'n[1-5],n10' --segment 3 --topology net.txt true
ok 'the table has the domains' grep -qE '^ +3 +n2 +leaf2 +3 ' "$OUT"
ok '... and the segments' grep -qxF 'order     topology, in segments of 3 nodes' "$OUT"
hn plan --json -w 'n[1-5],n10' true
lacks 'without the option nothing of it is told' "$OUT" domain
is '... and the order is that of the list' "$(python3 -c 'import json, sys; print(*(n["host"] for n in json.load(open(sys.argv[1]))["nodes"]))' "$OUT")" \
    'n1 n2 n3 n4 n5 n10'
printf '[run]\nsegment = 3\ntopology = net.txt\n' >job.ini
hn plan --json -w 'n[1-5],n10' --job job.ini true
is 'keys of a job file' "$(hosts)" 'n1 n4 n5 n2 n3 n10'

hn plan --json -w 'n[1-4],n10' --segment 2 --topology net.txt --nodes 4 true
is '--nodes takes hosts that fit' "$(hosts)" 'n1 n4 n2 n3'
hn plan --json -w 'n[1-4],n10' --segment 3 --topology net.txt --nodes 3 true
is '... in as few domains as possible' "$(hosts)" 'n2 n3 n10'
hn plan --json -w 'n[1-4]:2,n10:2' --segment 3 --topology net.txt -n 6 true
is '... as does -n' "$(hosts)" 'n2 n3 n10'
hn plan --json -w 'n[1-4],n10' --segment 2 --topology net.txt --nodes 2 --spares auto true
is 'the others stand by' "$(hosts) $(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["spares"])' "$OUT")" \
    "n1 n4 ['n2', 'n3', 'n10']"
hn plan --json -w 'n[1-4],n10' --segment 2 --topology net.txt --spares 1 true
is '... also with a number' "$(hosts) $(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["spares"])' "$OUT")" \
    "n1 n4 n2 n3 ['n10']"
for list in 'n2:4,n1:1' 'n1:1,n2:4'; do
    hn plan --json -w "$list,n4:1,n10:1" --order topology --topology net.txt -n 4 --spares auto true
    is "hosts with fewer slots are chosen in greater number ($list)" "$(python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))
print(sum(len(n["ranks"]) for n in p["nodes"]))' "$OUT")" 4
done
hn plan --json -w 'n[1-4],n10' --segment 2 --topology net.txt --min-nodes 2 true
is '--min-nodes takes whole segments' "$(hosts)" 'n1 n4 n2 n3'

hn_exits 'a number that is no multiple' 69 plan -w 'n[1-4],n10' --segment 2 --topology net.txt true
has '... is refused' "$ERR" 'error[HN360]: 5 nodes are no multiple of --segment 2: domain leaf1 has 2 nodes (n[1,4]), leaf2 has 3 nodes (n[2-3,10])'
hn_exits 'segments that do not fit' 69 plan -w 'n[1-4],n[10,5]' --segment 2 --topology net.txt true
has '... are refused with the domains' "$ERR" 'segments of 2 nodes do not fit: domain leaf1 has 3 nodes (n[1,4-5]), leaf2 has 3 nodes (n[2-3,10])'
hn_exits 'segments without known domains are refused' 69 plan -w 'n[1-2]' --segment 2 true
has '... with the next step' "$ERR" '2 nodes are in no known domain (n[1-2])'
hn plan --json -w 'x2,n1,x1' --order topology --topology net.txt true
is 'hosts without a domain come last' "$(nodes)" 'n1:leaf1:core/leaf1 x1:None:None x2:None:None'
has '... and are told' "$ERR" 'warning[HN361]: 2 of 3 hosts are in no known domain, and come last'
hn plan --json -w 'x10,x9' --order topology true
is 'without a file the order is that of the names' "$(hosts)" 'x9 x10'
has '... and told' "$ERR" 'no host has a known domain'

mkdir slurm
printf 'SwitchName=s1 Nodes=n[1,3]\nSwitchName=s2 Nodes=n[2,4]\n' >slurm/topology.conf
SLURM_CONF=$PWD/slurm/slurm.conf hn plan --json -w 'n[1-4]' --segment 2 true
is 'topology.conf of Slurm is found' "$(hosts)" 'n1 n3 n2 n4'
SLURM_CONF=$PWD/slurm/slurm.conf hn plan --json -w 'n[1-4]' --segment 1 --topology net.txt true
is '... --topology comes first' "$(hosts)" 'n1 n4 n2 n3'
echo 'SwitchName=s2 Nodes=n1' >>slurm/topology.conf
SLURM_CONF=$PWD/slurm/slurm.conf hn plan --json -w 'n[2,1]' --order topology true
exits '... with mistakes it is not used' 0
has '... and that is told' "$ERR" 'warning[HN170]'

wrong() { # NAME TEXT CODE MESSAGE...
    printf '%s' "$2" >wrong.txt
    hn plan -w n1 --order topology --topology wrong.txt true
    exits "$1" "$3"
    for m in "${@:4}"; do has "... $m" "$ERR" "$m"; done
}
wrong 'a line without a colon' $'s1: n1\nn2\n' 65 'error[HN171]: expected `switch: hosts`' 'wrong.txt:2:1' '2 | n2'
wrong 'a host at two switches' $'s1: n[1-3]\ns2: n3\n' 65 'error[HN172]: n3 is in two switches, s1 and s2' 'wrong.txt:2:5' '1 | s1: n[1-3]'
wrong 'a circle' $'a: b n1\nb: a\n' 65 'error[HN173]' 'is below itself' 'wrong.txt:1:1'
wrong 'an empty file' '' 65 'error[HN171]: no switch with hosts in wrong.txt'
hn_exits 'a missing file' 66 plan -w n1 --order topology --topology none.txt true
has '... is told' "$ERR" 'error[HN170]: cannot read the topology file none.txt: there is no such file'
hn_exits '--topology alone is refused' 64 plan -w n1 --topology net.txt true
hn_exits '--segment and --map node' 64 plan -w n1:2 --segment 1 --map node true
hn_exits '--segment and roles' 64 plan -w n1 --segment 1 --role a true : --role b true

# Agents that a step of Slurm starts know their switches.
cat >leaf <<'E2'
#!/bin/sh
export NODE=$1 SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
case $NODE in
*[13]) export SLURM_TOPOLOGY_ADDR=core.leaf1.$NODE ;;
n9) exit 1 ;;
*) export SLURM_TOPOLOGY_ADDR=core.leaf2.$NODE ;;
esac
shift
exec "$@"
E2
chmod +x leaf
base=(--oversubscribe --start-with "$PWD/leaf {host}" --label none)
echo_node=(sh -c 'echo $RANK $NODE')
ranks() { sort -n "$OUT" | cut -d' ' -f2 | tr '\n' ' '; }
hn "${base[@]}" -w 'n[1-4]' "${echo_node[@]}"
is 'a plain run' "$(ranks)" 'n1 n2 n3 n4 '
hn "${base[@]}" -w 'n[1-4]' --segment 2 "${echo_node[@]}"
is 'a run in segments, by the switches of the agents' "$(ranks)" 'n1 n3 n2 n4 '
hn "${base[@]}" -w 'n[2-4],n9,n1' --segment 2 --nodes 2 "${echo_node[@]}"
exits 'a host that is not reached is not chosen' 0
is '... others are' "$(ranks)" 'n1 n3 '
hn_exits 'a run whose segments do not fit' 69 "${base[@]}" -w 'n[1-4]' --segment 4 "${echo_node[@]}"
has '... names the switches' "$ERR" 'segments of 4 nodes do not fit: domain leaf1 has 2 nodes (n[1,3]), leaf2 has 2 nodes (n[2,4])'
hn "${base[@]}" -w 'n[1-4]' --order topology --role a --nodes 2 "${echo_node[@]}" : --role b --nodes 2 sh -c 'echo 1$RANK $NODE'
is 'roles have neighbouring nodes' "$(ranks)" 'n1 n3 n2 n4 '

# With a file the hosts that are not chosen stand by unconnected. The agent of rank 1 is lost in the first attempt.
lose_one='echo $HN_RESTART $RANK $NODE; [ "$HN_RESTART$RANK" != 01 ] || kill -9 $PPID'
again=(--nodes 2 --segment 2 --spares auto --max-restarts 1 --grace 1s)
printf 'leaf1: n1 n3 n5\nleaf2: n2 n4 n6\n' >two.txt
hn "${base[@]}" -w 'n[1-5]' --topology two.txt "${again[@]}" sh -c "$lose_one"
is 'a spare of the same domain takes the place' "$RC $(grep '^1' "$OUT" | sort | tr '\n' ' ')" '0 1 0 n1 1 1 n5 '
hn "${base[@]}" -w 'n[1-4]' --topology two.txt "${again[@]}" sh -c "$lose_one"
is '... another one where there is none' "$RC $(grep '^1' "$OUT" | sort | tr '\n' ' ')" '0 1 0 n1 1 1 n2 '
has '... with a warning' "$ERR" 'nodes 0 to 1 are a segment no longer: domain leaf1 has 1 node (n1), leaf2 has 1 node (n2)'
sed -i 's/^n9)/n4 | n9)/' leaf
hn "${base[@]}" -w 'n[1-6]' --topology two.txt --segment 2 --nodes 4 --spares auto "${echo_node[@]}"
is 'so it is with a node that fails before the start' "$RC $(ranks)" '0 n1 n3 n2 n6 '
hn "${base[@]}" -w 'n[1-4]' --topology two.txt --segment 2 --nodes 2:4 "${echo_node[@]}"
is '... which leaves out its segment with MIN:MAX' "$RC $(ranks)" '0 n1 n3 '
nothing_left 'nothing is left'

cat >judge.py <<'E2'
"""usage: judge.py HNLAUNCH SEED ROUNDS: random networks; what hnlaunch chooses and refuses is judged here."""
import json, random, subprocess, sys
hnlaunch, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
bad = 0
for r in range(rounds):
    g = random.Random(f"{seed}-{r}")
    names = g.sample([f"n{i}" for i in range(200)], g.randint(1, 40))
    leaves, at = [f"leaf{i}" for i in range(g.randint(1, 6))], {}
    for n in names:
        if g.random() < 0.95:
            at[n] = g.choice(leaves)
    lines = [f"{l}: " + " ".join([n for n in names if at.get(n) == l] + [f"other-{l}"]) for l in leaves]
    if g.random() < 0.5:
        lines.append("core: " + ",".join(leaves))
    g.shuffle(lines)
    open("random.txt", "w").write("\n".join(lines) + "\n")
    segment, nodes = g.randint(2, 6), 0
    argv = [hnlaunch, "plan", "--json", "-w", ",".join(names), "--topology", "random.txt", "--segment", str(segment)]
    if g.random() < 0.7:
        nodes = g.randint(1, len(names))
        argv += ["--nodes", str(nodes)] + (["--spares", "auto"] if g.random() < 0.5 else [])
    p = subprocess.run(argv + ["true"], capture_output=True, text=True)
    need = nodes or len(names)
    room = sum(sum(at.get(n) == l for n in names) // segment for l in leaves)
    fits = need % segment == 0 and need // segment <= room
    say = ""
    if p.returncode not in (0, 69) or (p.returncode == 0) != fits:
        say = f"exit {p.returncode}, fits {fits}: {p.stderr}"
    elif fits:
        used = [n["host"] for n in sorted((n for n in json.loads(p.stdout)["nodes"] if n["node"] is not None), key=lambda n: n["node"])]
        if len(used) != need or len(set(used)) != need or set(used) - set(names):
            say = f"nodes {used}"
        for i in range(0, need, segment):
            if len({at.get(n, n) for n in used[i : i + segment]}) > 1:
                say = f"segment {used[i:i + segment]} crosses"
    if say:
        bad += 1
        print(seed, r, argv, say)
print("bad:", bad)
E2
is 'random networks: no segment crosses, nothing that fits is refused' "$(python3 judge.py "$HNLAUNCH" "${SEED:-1}" 150 2>&1)" 'bad: 0'
done_testing
