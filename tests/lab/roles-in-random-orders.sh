#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Random jobs of roles on four nodes: their order, readiness, ends, failures and drains are as the rules of src/head/model/role_order.h say, and
# nothing is left after each.
#
# usage: roles-in-random-orders.sh [SEED [ROUNDS]]          1 and 20; TEAM_COUNT (2) rounds at a time
#        ONLY=17 roles-in-random-orders.sh 1                round 17 alone
#
# Ranks are steered by files, so that one outcome is right (tests/lib/role_jobs.py). 500 rounds: roles-in-random-orders.sh 2 500. Bad rounds are
# told with their command; KEEP=FOLDER keeps what they wrote.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/faults.sh" || exit 1

seed=${1:-1} rounds=${2:-20}
LIMIT=20000

# Files and locks of jobs on the team's nodes.
list_left() {
    local n
    for n in "${NODES[@]}"; do
        node_files "$n"
        compgen -G "$FILES/dev/shm/*"
        grep -o '@hnlaunch-port-.*' "/proc/$INIT/net/unix"
    done
}

nothing_on_nodes() { team_empty && [[ -z $(list_left) ]]; }

round() { # NUMBER
    local row why='' crashed='' dir=$TMP/round.$1
    mkdir "$dir"
    row=$(python3 "$ROOT/tests/lib/role_jobs.py" "$seed" "$1" "$dir" "$HOSTS" "$LAB" "$LAB_HNLAUNCH" "${NODES[@]}" 2>"$dir/trace")
    [[ -n $row ]] || row="$1|BAD|||$(tail -n 1 "$dir/trace")"
    if [[ -e $dir/crashed ]]; then
        crashed=$(<"$dir/crashed")
        mapfile -t GROUPS_OF < <(sed "s|^|$GROUPS_AT|" "$dir/groups")
        team_heal "$crashed"
    fi
    within $LIMIT nothing_on_nodes || why="$COUNT processes are left: $(lab ps "${NODES[@]}" | tr '\n|' '  '); files and locks: $(list_left | tr '\n|' '  ')"
    [[ -z $why ]] || row="$1|BAD|${row#*|*|}; $why"
    printf '%s\n' "$row" >>"$TMP/results.$TEAM"
    [[ -z ${VERBOSE-} ]] || printf '# %s\n' "$row"
    if [[ $row == *'|BAD|'* ]]; then
        { printf '%s: ' "$1" && cat "$dir/line"; } >>"$TMP/lines.$TEAM"
        [[ -z ${KEEP-} ]] || cp -r "$dir" "$KEEP/$seed.$1"
        lab clean "${NODES[@]}"
    fi
    rm -rf "$dir"
}

run_rounds 2 4 "${ONLY:-$rounds}"
{
    grep '|BAD|' "$TMP/results"
    sort -n "$TMP"/lines.* 2>/dev/null
} >"$OUT"
is 'each job went and ended by the rules, and nothing was left' "$(grep -c '|BAD|' "$TMP/results")" 0
lab_nothing_left 'no process is left anywhere'
printf '# %d rounds in %d s; ends:' "$(wc -l <"$TMP/results")" $((SECONDS - begun))
grep -o -- '-> [a-z]*' "$TMP/results" | sort | uniq -c | awk '{ printf " %s x %s", $1, $3 }'
echo
done_testing
