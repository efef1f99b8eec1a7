#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two jobs of four roles each run on the same two nodes, and parts of them are killed at random. After each round both have ended, the one that
# nothing hit with 0, and nothing is left.
#
# usage: chaos-of-roles.sh [SEED [ROUNDS]]          1 and 12; TEAM_COUNT (4) rounds at a time
#
# A round hits one job or both, one to three times, at random moments: head, agent or rank by SIGKILL, or Ctrl-C once or twice. Ranks leave
# descendants in sessions of their own. The choices of a round follow from SEED and its number alone; bad rounds are told with theirs.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/faults.sh" || exit 1

seed=${1:-1} rounds=${2:-12}
N=2000 G=1000 LIMIT=20000

# Sets KILLS ("MS PART JOB NODE-INDEX PICK" each) and DEAF of a round.
choose() { # ROUND
    local i n parts=(head agent agent rank rank interrupt interrupts)
    seed_round "$1"
    n=$((RANDOM % 3 + 1))
    DEAF=$((RANDOM % 2))
    KILLS=()
    for ((i = 0; i < n; i++)); do
        KILLS+=("$((RANDOM % 900)) ${parts[RANDOM % 7]} $((RANDOM % 2)) $((RANDOM % 2)) $RANDOM")
    done
    mapfile -t KILLS < <(printf '%s\n' "${KILLS[@]}" | sort -n)
}

# Sets PIDS, the ranks of a job on a node, and AGENT, their parent. Ranks have the job's folder as argument.
find_ranks() { # NODE JOB
    local all=() pid words stat comm
    node_find "$1" worker || return 1
    all=("${PIDS[@]}") PIDS=()
    for pid in "${all[@]}"; do
        words=() comm=
        { mapfile -d '' words <"$FILES/proc/$pid/cmdline" && read -r stat <"$FILES/proc/$pid/stat"; } 2>/dev/null
        [[ ${words[1]-} == "$DIR.$2" ]] || continue
        read -r _ stat _ <<<"${stat##*) }"
        { read -r comm <"$FILES/proc/$stat/comm"; } 2>/dev/null
        [[ $comm == agent-* ]] || continue
        PIDS+=("$pid") AGENT=$stat
    done
    ((${#PIDS[@]}))
}

hit_part() { # PART JOB NODE PICK: tells which job it hit
    local pid comm=
    case $1 in
        head) kill -KILL "${HEADS[$2]}" 2>/dev/null || return 1 ;;
        interrupt*)
            { read -r comm <"/proc/${HEADS[$2]}/comm"; } 2>/dev/null
            [[ $comm == hnlaunch ]] || return 1 # a shell in the background ignores the signal
            kill -INT "${HEADS[$2]}" 2>/dev/null || return 1
            [[ $1 == interrupt ]] || { sleep 0.1 && kill -INT "${HEADS[$2]}" 2>/dev/null; }
            ;;
        *)
            find_ranks "$3" "$2" || return 1
            pid=${PIDS[$4 % ${#PIDS[@]}]}
            sleep 0.02
            node_is_rank "$FILES/proc/$pid" || return 1 # a descendant that has just been forked
            [[ $1 != agent ]] || pid=$AGENT
            node_kill "$3" KILL "$pid" || return 1
            ;;
    esac
    HIT[$2]+="$1@$3 "
}

round() { # NUMBER
    local begin ms part job index pick why= codes=() code deaf=() at=()
    DIR=$TMP/round.$1
    choose "$1"
    ((DEAF)) && deaf=(deaf)
    HEADS=() HIT=('' '')
    for job in 0 1; do
        mkdir "$DIR.$job"
        : >"$DIR.$job/out"
        at=("$VICTIM" "$DIR.$job" "${deaf[@]}")
        "$LAB" run env --default-signal "$LAB_HNLAUNCH" -H "$HOSTS" --gpus-per-rank 0 --label none --connect-timeout 5s --start-timeout 10s \
            --node-timeout ${N}ms --grace ${G}ms --role t --nodes 1 -n 2 "${at[@]}" : --role i --nodes 1 -n 2 "${at[@]}" : \
            --role r --on t "${at[@]}" : --role w --on i:last "${at[@]}" >"$DIR.$job/out" 2>"$DIR.$job/err" &
        HEADS[job]=$!
    done
    now_ms
    begin=$MS
    for kill in "${KILLS[@]}"; do
        read -r ms part job index pick <<<"$kill"
        HEAD=${HEADS[job]}
        sleep_until $((begin + ms))
        UNLESS=head_ended within $LIMIT hit_part "$part" "$job" "${NODES[index]}" "$pick"
    done
    for job in 0 1; do
        HEAD=${HEADS[job]} code=0
        if [[ -z ${HIT[job]} ]]; then # it has all its ranks
            within $LIMIT lines_are "$DIR.$job/out" 6 || why+="job $job has not all its ranks; "
        fi
        : >"$DIR.$job/done"
        within $LIMIT head_ended || why+="job $job did not end; "
        kill -KILL "$HEAD" 2>/dev/null
        wait "$HEAD" 2>/dev/null || code=$?
        codes+=("$code")
        case ${HIT[job]:-none}/$code in
            none/0 | *@*/6[89] | *@*/125 | *interrupt*/130) ;;
            *head*/137 | *rank*/137 | *agent*/137) ;;
            *) why+="job $job (${HIT[job]:-not hit}) has code $code; " ;;
        esac
    done
    within $LIMIT team_empty || why+="$COUNT processes are left: $(lab ps "${NODES[@]}"); "
    printf '%s|%s|%s|%s|%s|%s\n' "$1" "${why:+BAD}" "${codes[*]}" "${KILLS[*]}" "${HIT[0]:--}, ${HIT[1]:--}" \
        "${why//$'\n'/ }$(tail -qn 1 "$DIR".[01]/err | tr '\n' ' ')" >>"$TMP/results.$TEAM"
    [[ -z $why ]] || lab clean "${NODES[@]}"
    rm -rf "$DIR".[01]
}

run_rounds 4 2 "$rounds"
ok 'most rounds hit something' test "$(cut -d'|' -f5 "$TMP/results" | grep -c @)" -gt $((rounds / 2))
ok 'jobs that nothing hit ran beside them' grep -qE '\|-, .*@|@.*, -\|' "$TMP/results"
end_rounds 'after each one both jobs had ended as they should, and nothing was left'
