#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# With every kind of container: fugitives are gone at the end, and when the agent, its guard or both
# are killed.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

name=fugitive-$RANDOM$RANDOM
cp "$(command -v sleep)" "$TMP/$name"

# Deaf, in other sessions, without the job's variables, orphaned twice, stopped.
cat >"$TMP/flee" <<EOF
#!/bin/bash
trap "" TERM HUP INT
cat /proc/self/cgroup >>$TMP/groups
setsid env -i $TMP/$name 300 >/dev/null 2>&1 &
(setsid bash -c '(setsid env -i bash -c "trap \"\" TERM; exec $TMP/$name 301" &)' >/dev/null 2>&1 &)
bash -c 'kill -STOP \$\$; exec $TMP/$name 302' >/dev/null 2>&1 &
until pgrep -fx "$TMP/$name 300" && pgrep -fx "$TMP/$name 301" && pgrep -r T -f "$TMP/$name 302"; do :; done >/dev/null
echo up
[[ \$1 == stay ]] && $TMP/$name 303
exit 0
EOF
chmod +x "$TMP/flee"

fugitives() { pgrep -f "$TMP/$name" >/dev/null; }
gone() { ! fugitives; }
mkdir -m 700 "$TMP/run"
export XDG_RUNTIME_DIR=$TMP/run
folders() { ls "$XDG_RUNTIME_DIR"; }

groups_left() { # of those that ranks were in
    local group mount mounts
    mapfile -t mounts < <(awk '$3 == "cgroup2" { print $2 }' /proc/mounts)
    sed -n 's/^0:://p' "$TMP/groups" | grep '/hnlaunch-' | sort -u | while read -r group; do
        for mount in "${mounts[@]}"; do
            [[ ! -d $mount$group ]] || echo "$mount$group"
        done
    done
}

by_comm() { # COMM: processes of this test with that name
    local pid
    for pid in $(processes); do
        [[ $(cat "/proc/$pid/comm") == "$1" ]] && echo "$pid"
    done
}

# The guard takes its name when it runs for the first time after its agent was born.
one_of_each() {
    [[ $(by_comm hnlaunch-agent | wc -l) == 1 && $(by_comm hnlaunch-guard | wc -l) == 1 ]]
}

kill_case() { # LEVEL WHAT COMM...
    local level=$1 what=$2 comm pids=
    shift 2
    comes_up "$level: fugitives are up" 2 start -o run.contain="$level" --local 2 --label none "$TMP/flee" stay
    ok "$level: so are an agent and its guard" wait_for one_of_each
    for comm; do
        pids+=" $(by_comm "$comm")"
    done
    # None does anything between the death of the first and its own.
    # shellcheck disable=SC2086
    kill -STOP $pids
    # shellcheck disable=SC2086
    kill -KILL $pids
    exits "$level: with $what killed the node is lost" 125 finish
    ok "$level: and no fugitive is left" wait_for gone
    nothing_left "$level: nor anything else"
}

both=0
for level in tree cgroup pidns; do
    hn -v -o run.contain="$level" --local 1 true
    if [[ $RC != 0 ]]; then
        skip "$level" "this machine does not give it: $(verdict)"
        continue
    fi
    has "$level: the level in force is told" "$ERR" "contained by: $level"

    hn_exits "$level: ranks that leave fugitives behind end well" 0 -o run.contain="$level" --local 2 "$TMP/flee"
    ok "$level: and none of those is left" gone

    kill_case "$level" 'the agent' hnlaunch-agent
    kill_case "$level" 'the guard' hnlaunch-guard
    if [[ $level == pidns ]]; then
        kill_case pidns 'the agent and its guard' hnlaunch-agent hnlaunch-guard
        both=1
    fi
done

is 'no control group is left' "$(groups_left)" ''
# Only killing both leaves a folder: two small files in memory.
is 'no folder is left but that of the agent whose guard was killed with it' "$(folders | wc -l)" "$both"

# Twenty processes at a time, each the child of one that has just ended, and 20000 ends at most: hard to
# catch, but no flood.
cat >"$TMP/runner" <<'EOF'
#!/bin/bash
run() { (($1 > 0)) && { run $(($1 - 1)) & }; }
trap "" TERM
for ((i = 0; i < 20; i++)); do
    run 1000 &
done
EOF
chmod +x "$TMP/runner"
for level in tree auto; do
    hn_exits "$level: a rank whose children go on forking ends well" 0 -o run.contain="$level" --local 1 --grace 1s "$TMP/runner"
    nothing_left "$level: so do they"
done

hn -o run.contain=cgroup --local 1 true
if [[ $RC != 0 ]]; then
    has 'a container that cannot be had is an error' "$ERR" 'no control group'
fi

if [[ $EUID == 0 ]]; then
    chmod 755 "$TMP" "$TMP/work"
    mkdir "$TMP/home" && chown nobody "$TMP/home"
    run setpriv --reuid nobody --clear-groups env -u XDG_STATE_HOME -u XDG_CONFIG_HOME -u XDG_RUNTIME_DIR HOME="$TMP/home" \
        "$HNLAUNCH" -v -o run.contain=pidns --local 2 id -un
    if [[ $RC == 0 ]]; then
        has 'without privileges a namespace can be had, too' "$OUT" nobody
    else
        skip 'a namespace without privileges' "$(verdict)"
    fi
fi
done_testing
