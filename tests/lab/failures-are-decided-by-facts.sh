#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Failures of 12 kinds on four nodes and two spare hosts, with --restart auto: the host that has failed goes out, no other
# does, a failure of the program has no attempt too many, and no rank lives twice.
#
# usage: failures-are-decided-by-facts.sh [SEED [FAILURES]]          31 and 12, each kind once; VERBOSE=1 prints all
#
# The choices of a failure (its host, the rank, whether the ranks of other hosts fail after it with an error of the
# network) follow from SEED and its number alone.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

command -v python3 >/dev/null || skip_all 'needs python3'
command -v flock >/dev/null || skip_all 'needs flock'
seed=${1:-31} rounds=${2:-12}
KINDS=(user-error gives-up host-dies agent-dies segv bus full oom hang random refuses drain)

# --- the choices ----------------------------------------------------------------------------------------

# Sets KIND, HOW (one of three variants), BAD (a host), its ranks FIRST and CULPRIT, PEERS of a failure.
choose() { # NUMBER
    RANDOM=$(((seed * 7919 + $1 * 104729) % 32749))
    : $RANDOM
    KIND=${KINDS[($1 - 1) % ${#KINDS[@]}]}
    HOW=$(((seed + ($1 - 1) / ${#KINDS[@]}) % 3)) FIRST=$((RANDOM % 4 * 2)) PEERS=$((RANDOM % 2))
    CULPRIT=$((FIRST + RANDOM % 2))
    BAD=$(printf 'node%03d' $((FIRST / 2 + 1)))
    # That is the way to rank 0's node.
    [[ $KIND$HOW$BAD != refuses2node001 ]] || HOW=0
}

# What has to come of it: CODE, ATTEMPTS, OUT_IS (the host that goes, or "") by EVENT; LAST: the attempt in which no
# program fails any more.
expect() {
    CODE=0 ATTEMPTS=2 OUT_IS=$BAD EVENT=node.retired LAST=1
    case $KIND in
        user-error)
            CODE=7 OUT_IS='' LAST=99
            ((HOW < 2)) || CODE=139
            ;;
        gives-up) CODE=93 ATTEMPTS=1 OUT_IS='' LAST=99 ;;
        segv | hang) ATTEMPTS=3 LAST=2 ;;
        bus) OUT_IS='' ;;
        full) ((HOW)) || CODE=1 OUT_IS='' LAST=99 ;;
        oom) CODE=137 OUT_IS='' LAST=99 ;;
        random) ATTEMPTS=3 OUT_IS='' LAST=2 ;;
        refuses) ATTEMPTS=1 EVENT=node.replaced LAST=0 ;;
        drain) EVENT=node.drained ;;
    esac
}

# --- the ranks ------------------------------------------------------------------------------------------

# What the culprit does. A host that fails does so in each attempt.
deed() {
    case $KIND in
        user-error)
            case $HOW in
                0) echo 'exit 7' ;;
                1) echo 'python3 -c "raise ValueError(\"bad sample $$ at /data/shard-$RANDOM\")" || exit 7' ;;
                2) echo 'kill -SEGV $$' ;;
            esac
            ;;
        gives-up) echo 'exit 93' ;;
        segv) echo 'kill -SEGV $$' ;;
        bus) echo 'kill -BUS $$' ;;
        full) echo "python3 -c 'open(\"$DISKS/$( ((HOW)) && echo own || echo shared)/step-7\", \"w\")' || exit 1" ;;
        oom) echo 'exec python3 -c "b = [b\"x\" * (1 << 20) for _ in range(1 << 12)]"' ;;
        random) echo "exit \$((3 + HN_RESTART))" ;;
        *) echo 'exec sleep 600' ;;
    esac
}

# A rank has a lock of its own while it, or what it has started, lives, and one for each attempt; the ranks of other
# hosts wait for the latter of the culprit, as they would at a connection.
write_program() { # FILE
    cat >"$1" <<END
exec 7>>alive.\$RANK 8>>tie.\$HN_RESTART.\$RANK
flock -n 7 || echo "rank \$RANK on \$(hostname), attempt \$HN_RESTART" >>twice
flock 8
culprit=$CULPRIT
case $KIND$HOW in user-error[12] | random*) culprit=\$(((culprit + 3 * HN_RESTART) % WORLD_SIZE)) ;; esac
: >up.\$HN_RESTART.\$RANK
own_host=\$([ \$(hostname) = $BAD ] && echo yes)
until [ \$(ls up.\$HN_RESTART.* | wc -l) = \$WORLD_SIZE ]; do sleep 0.05; done
case $KIND in
    hang)
        [ "\$own_host" ] || [ \$HN_RESTART -lt $LAST ] || exit 0
        exec "$PLAIN/tests/clients/hanging" sleep \$culprit
        ;;
    segv) [ ! "\$own_host" ] || [ \$RANK != \$culprit ] || { $(deed); } ;;
    full) [ $HOW = 0 ] || [ ! "\$own_host" ] || [ \$RANK != \$culprit ] || { $(deed); } ;;
esac
[ \$HN_RESTART -lt $LAST ] || exit 0
[ \$RANK != \$culprit ] || { $(deed); }
[ $PEERS = 1 ] || exec sleep 600
flock -s tie.\$HN_RESTART.\$culprit true
echo "ConnectionResetError: [Errno 104] Connection reset by peer" >&2
exit 1
END
}

# --- the failure ----------------------------------------------------------------------------------------

files_are() { # PREFIX N
    local list=("$1"*)
    [[ -e ${list[0]} ]] && ((${#list[@]} == $2))
}
run_id() { sed -n 's/^hnlaunch: run \([a-z0-9]*\):.*/\1/p' "$ERR"; }

# Memory control groups of either version, where this machine lets one make them; sets MEMORY and LIMIT_FILE.
find_memory() {
    local dir
    for dir in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        [[ -w $dir/cgroup.procs ]] || continue
        mkdir "$dir/hnlab-$$" 2>/dev/null || continue
        for LIMIT_FILE in memory.limit_in_bytes memory.max; do
            [[ -e $dir/hnlab-$$/$LIMIT_FILE ]] && MEMORY=$dir && return
        done
        rmdir "$dir/hnlab-$$"
    done
    return 1
}
move_sshd() { # GROUP: that of the bad node's sshd
    lab exec "$BAD" sh -c "cat $LAB_DIR/nodes/$BAD/sshd.pid >$1/cgroup.procs"
}

before() {
    case $KIND in
        full) lab exec "$BAD" mount -t tmpfs -o nr_inodes=1 lab "$DISKS/own" ;;
        oom)
            echo 400M >"$MEMORY/hnlab-$$/$LIMIT_FILE"
            move_sshd "$MEMORY/hnlab-$$"
            ;;
        refuses)
            case $HOW in
                0) lab sshd "$BAD" stop ;;
                1) lab cut "$BAD" ;;
                2) lab exec "$BAD" ip route add unreachable "$store" ;;
            esac
            ;;
    esac
}
during() {
    case $KIND in host-dies | agent-dies | drain) wait_for files_are up.0. 8 ;; esac
    case $KIND in
        host-dies) if ((HOW)); then lab cut "$BAD"; else lab crash "$BAD"; fi ;;
        agent-dies) lab exec "$BAD" pkill -KILL "$( ((HOW)) && echo agent- || echo 'agent-|hnlaunch-guard')" ;;
        drain)
            if ((HOW)); then
                "$LAB" run "$LAB_HNLAUNCH" drain "$(run_id)" "$BAD" --in 1s >drain.out 2>&1
            else
                lab exec "$BAD" pkill -TERM 'agent-|hnlaunch-guard'
            fi
            ;;
    esac
}
after() {
    case $KIND in
        full) lab exec "$BAD" umount "$DISKS/own" ;;
        oom) move_sshd "$MEMORY" ;;
        host-dies)
            if ((HOW)); then
                lab restore "$BAD"
            else
                lab boot "$BAD"
                mount_own "$BAD"
            fi
            ;;
        refuses)
            case $HOW in
                0) lab sshd "$BAD" start ;;
                1) lab restore "$BAD" ;;
                2) lab exec "$BAD" ip route del unreachable "$store" ;;
            esac
            ;;
    esac
}

# Prints "ATTEMPTS HOSTS-THAT-WENT", the latter by the event that is expected.
outcome() { # EVENT
    python3 -c '
import json, sys
attempts = json.load(open("logs/latest/summary.json", encoding="utf-8"))["attempts"]
events = [json.loads(line) for line in open("logs/latest/events.ndjson", encoding="utf-8")]
went = [e["host"] for e in events if e["ev"] in ("node.retired", "node.drained", "node.replaced")
        and (sys.argv[1] == "node.replaced" or e["ev"] != "node.replaced")]
print(len(attempts), *went)' "$1"
}
noted() { sed -n 's/.*"host": *"\([^"]*\)".*/\1/p' bad 2>/dev/null; }

# Fills the counters, and tells what was wrong.
failure() { # NUMBER
    local why='' args got went host begin=$SECONDS store=$LAB_NET.0.2
    choose "$1"
    expect
    [[ $KIND != oom || -n $MEMORY ]] || { left_out=$((left_out + 1)) && return; }
    rm -rf up.* tie.* alive.* twice bad logs
    write_program work.sh
    args=(-H "$TMP/hosts.txt" --spares 2 --restart auto --bad-hosts "$PWD/bad" --log-dir logs --label none
        --node-timeout 3s --connect-timeout 2s --grace 1s)
    [[ $KIND != hang ]] || args+=(--hang-after 1s)
    before
    lab_start "${args[@]}" sh work.sh
    during
    finish
    after
    [[ $RC == "$CODE" ]] || why+="exit code $RC, not $CODE; "
    read -r got went < <(outcome "$EVENT")
    [[ $got == "$ATTEMPTS" ]] || why+="${got:-no} attempts, not $ATTEMPTS; "
    ((${got:-0} <= ATTEMPTS)) || [[ $CODE == 0 ]] || too_many=$((too_many + 1))
    [[ -z $OUT_IS ]] || guilty=$((guilty + 1))
    [[ -z $OUT_IS || " $went " != *" $OUT_IS "* ]] || right=$((right + 1))
    for host in $went; do
        [[ $host == "$OUT_IS" ]] || innocent=$((innocent + 1))
    done
    [[ $went == "$OUT_IS" ]] || why+="out: ${went:-none}, not ${OUT_IS:-none}; "
    [[ $KIND == refuses || "$(noted)" == "$OUT_IS" ]] || why+="noted: $(noted); "
    [[ ! -e twice ]] || { twice=$((twice + 1)) && why+="alive twice: $(<twice); "; }
    wait_for lab_empty || why+="processes are left: $(lab ps); "
    [[ $why != *'are left'* ]] || lab clean
    printf '%s|%s|%s|%s|%s|%s|%s\n' "$1" "${why:+BAD}" "$KIND$HOW" "$BAD rank $CULPRIT peers $PEERS" "$RC ${got-} ${went-}" \
        "$((SECONDS - begin)) s" "${why//$'\n'/ }$(tail -n 1 "$ERR")" >>"$TMP/results"
    [[ -z $why || -z ${KEEP-} ]] || { mkdir -p "$KEEP/$1" && cp -r "$ERR" "$OUT" work.sh logs "$KEEP/$1/"; }
}

# --- all of them ----------------------------------------------------------------------------------------

mount_own() { lab exec "$1" mount -t tmpfs lab "$DISKS/own"; } # NODE: a file system of its own
at_end() {
    [[ ! -d $LAB_DIR ]] || lab down
    [[ -z $MEMORY ]] || rmdir "$MEMORY/hnlab-$$"
    umount "$DISKS/shared"
    rm -r "$DISKS"
}
MEMORY=
find_memory || true
# What is in /tmp would be the node's own by its name.
DISKS=$(mktemp -d /srv/hnlab.XXXXXX)
mkdir "$DISKS/own" "$DISKS/shared"
# All nodes see it, with one id, and it has room for no file.
mount -t tmpfs -o nr_inodes=1 lab "$DISKS/shared"
lab_up 6 2
for node in 1 2 3 4 5 6; do
    mount_own "node00$node"
done
guilty=0 right=0 innocent=0 too_many=0 twice=0 left_out=0
begin=$SECONDS
for ((i = 1; i <= rounds; i++)); do
    failure "$i"
done
grep '|BAD|' "$TMP/results" >"$OUT"
: >"$ERR"
is "the right host goes out in 99 % of $guilty failures of a host" $((right * 100 >= guilty * 99)) 1
is 'no innocent host goes out' "$innocent" 0
is 'no attempt follows a failure that is the program'\''s' "$too_many" 0
is 'no rank lives twice' "$twice" 0
is 'each failure ends as it should' "$(wc -l <"$OUT")" 0
((left_out == 0)) || skip "$left_out failures of the out-of-memory killer" 'needs a memory control group'
printf '# seed %d: %d failures in %d s; of %d hosts that failed %d went out, %d innocent ones; %d left out\n' "$seed" \
    "$rounds" $((SECONDS - begin)) "$guilty" "$right" "$innocent" "$left_out"
[[ -z ${VERBOSE-} ]] || sed 's/^/# /' "$TMP/results"
done_testing
