#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Parts of jobs are killed at random, and after each round hnlaunch has ended and nothing is left.
#
# usage: chaos.sh [SEED [ROUNDS]]          1 and 20; TEAM_COUNT (4) rounds at a time
#
# A round is a job of 2 nodes with 4 ranks each, which leave descendants in sessions of their own, and
# one to three kills (SIGKILL) at random moments of its life, or when what is to be hit is there:
# head, agents, guards, ranks, sshd's sessions. The choices of a round follow from SEED and its number
# alone; bad rounds are told with theirs.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/faults.sh" || exit 1

seed=${1:-1} rounds=${2:-20}
N=2000 G=1000 LIMIT=20000

# Sets KILLS ("MS PART NODE-INDEX PICK" each), DEAF, CONTAIN, COLD of a round.
choose() { # ROUND
    local i n parts=(head agent agent guard guard worker worker session) contain=(auto tree cgroup pidns)
    seed_round "$1"
    n=$((RANDOM % 3 + 1))
    DEAF=$((RANDOM % 2)) CONTAIN=${contain[RANDOM % 4]} COLD=$((RANDOM % 4 == 0))
    KILLS=()
    for ((i = 0; i < n; i++)); do
        KILLS+=("$((RANDOM % 900)) ${parts[RANDOM % 8]} $((RANDOM % 2)) $RANDOM")
    done
    mapfile -t KILLS < <(printf '%s\n' "${KILLS[@]}" | sort -n)
}

kill_part() { # PART NODE PICK: tells what it hit
    if [[ $1 == head ]]; then
        kill -KILL "$HEAD" 2>/dev/null && HIT+="head "
    else
        node_find "$2" "$1" && node_kill "$2" KILL "${PIDS[$3 % ${#PIDS[@]}]}" && HIT+="$1@$2 "
    fi
}

# Nobody is left to clean up where the agent and its guard were both killed: only a process namespace ends
# by itself, and ranks die with the agent, but not what they left (see -o run.contain).
beyond_us() {
    local n
    for n in "${NODES[@]}"; do
        [[ $CONTAIN != pidns && $HIT == *"agent@$n"* && $HIT == *"guard@$n"* ]] || continue
        node_find "$n" worker && continue
        SKIP=$n
        team_empty && BEYOND=yes
        SKIP=
    done
    [[ -n $BEYOND ]]
}

round() { # NUMBER
    local dir=$TMP/round.$1 begin ms part index pick why= code emptied args n cold=
    choose "$1"
    mkdir "$dir"
    : >"$dir/out"
    if ((COLD)); then
        cold=yes
        for n in "${NODES[@]}"; do
            node_files "$n"
            rm -rf "$FILES/run/cache"
        done
    fi
    args=(-H "$HOSTS" --label none -o run.contain="$CONTAIN" --connect-timeout 5s --start-timeout 10s
        --node-timeout ${N}ms --grace ${G}ms "$VICTIM" "$dir")
    ((DEAF)) && args+=(deaf)
    "$LAB" run env --default-signal "$LAB_HNLAUNCH" "${args[@]}" >"$dir/out" 2>"$dir/err" &
    HEAD=$! HIT= BEYOND=
    now_ms
    begin=$MS
    for kill in "${KILLS[@]}"; do
        read -r ms part index pick <<<"$kill"
        sleep_until $((begin + ms))
        UNLESS=head_ended within $LIMIT kill_part "$part" "${NODES[index]}" "$pick"
    done
    # A job whose kills hit nothing that matters ends by itself.
    : >"$dir/done"
    within $LIMIT head_ended || why+='hnlaunch did not end; '
    kill -KILL "$HEAD" 2>/dev/null
    code=0
    wait "$HEAD" 2>/dev/null || code=$?
    within $LIMIT team_empty || beyond_us || why+="$COUNT processes are left: $(lab ps "${NODES[@]}"); "
    emptied=$TOOK
    case $code in
        0 | 68 | 69 | 125) ;;
        137) [[ $HIT == *head* || $HIT == *worker* || $HIT == *guard* || $HIT == *agent* ]] || why+="exit code 137; " ;;
        *) why+="exit code $code; " ;;
    esac
    printf '%s|%s|%s|%s|%s|%s|%s|%s\n' "$1" "${why:+BAD}" "$code" "$emptied" "$CONTAIN${cold:+ cold}" "${KILLS[*]}" \
        "$HIT${BEYOND:+(both)}" "${why//$'\n'/ }$(tail -n 1 "$dir/err")" >>"$TMP/results.$TEAM"
    [[ -z $why$BEYOND ]] || lab clean "${NODES[@]}"
    rm -rf "$dir"
}

run_rounds 4 2 "$rounds"
hits=$(cut -d'|' -f7 "$TMP/results" | wc -w)
ok 'most kills hit something' test "$hits" -ge $((rounds / 2))
end_rounds 'after each one hnlaunch had ended and nothing was left'
