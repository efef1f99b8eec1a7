#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --container: agent and ranks of a node live in one container. Each engine that starts here runs the same jobs, in an
# image of the system's own programs, and is killed in the same ways.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/container.sh"
AGENT=${HNLAUNCH%/*}/hnlaunch-agent
[[ -x /bin/busybox ]] || skip_all 'busybox-static is not installed'
export USER=${USER:-user}
make_image image "$BUILD/examples/hello" || skip_all 'the image cannot be made'
echo inside >image/etc/where
at_end() { stop_docker; }

# --- every engine ---------------------------------------------------------------------------------
ranks='echo "$RANK of $WORLD_SIZE"; cat /etc/where; echo "given=$GIVEN$NOT_GIVEN" >>seen.$RANK'
no_engine_process() { [[ -z $(containers) ]]; }

runs_jobs() { # ENGINE CONTAINER VARIABLES: in a folder that the container has at the same place
    local engine=$1 container=$2
    export NOT_GIVEN=x
    rm -f seen.*
    hn_exits "$engine: a job ends well" 0 --local 3 --container "$container" -x GIVEN=1 --label none sh -c "$ranks"
    is "$engine: three ranks ran inside" "$(sort "$OUT" | paste -sd,)" '0 of 3,1 of 3,2 of 3,inside,inside,inside'
    is "$engine: variables are those of -x, and the folder is that of this shell" "$(cat seen.* | paste -sd,)" "$3,$3,$3"
    hn_exits "$engine: the exit code of a rank arrives" 7 --local 2 --container "$container" sh -c 'exit $((RANK * 7))'
    : >hello # a program without a slash is the image's
    hn_exits "$engine: four ranks meet" 0 --local 4 --container "$container" hello
    rm hello
    head -c 3000000 /dev/urandom >given
    hn --local 1 --container "$container" --label none --stdin given cat
    same "$engine: three megabytes go in and out" given "$OUT"
    hn --local 1 --container "$container" --wrap 'env SELF={rank}/{host}' --label none sh -c 'echo $SELF'
    is "$engine: --wrap stands in front of the program there" "$(cat "$OUT")" 0/localhost
    hn_exits "$engine: a program that the image does not have" 127 --local 1 --container "$container" no-such-program
}

# The ranks ignore TERM, and each has a process that has left its session.
stubborn="trap '' TERM; setsid sh -c \"trap '' TERM; while :; do sleep 1; done; : stubborn-$$\" & echo up; while :; do sleep 1; done"
no_stubborn() { ! pgrep -f "stubborn-$$"; }
both_up() { [[ $(grep -c up "$OUT") == 2 ]]; }

is_ended_by() { # NAME CONTAINER COMMAND...
    start --local 2 --container "$2" --grace 1s sh -c "$stubborn"
    wait_for both_up
    ok "$1: it is done" "${@:3}"
    finish
    ok "$1: the job fails" test "$RC" -gt 0
    nothing_left "$1: no process of hnlaunch is left"
    ok "$1: nor one of the ranks" wait_for no_stubborn
    ok "$1: no container is left" wait_for no_engine_process
}
# Only processes of this script's job: other tests have agents and containers, too.
kill_client() { # PROGRAM
    local pid killed=1
    for pid in $(marked); do
        ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qE "^([^ ]*/)?$1 (run|exec) " || { kill -KILL "$pid" && killed=0; }
    done
    return $killed
}
kill_agent() { kill -KILL "$(ps -o ppid= -p "$(pgrep -o -f "^sh -c .*stubborn-$$")")"; } # the parent of the first rank
stop_head() { kill -INT "$PID"; }
kill_head() { kill -KILL "$PID"; }

# --- Charliecloud ---------------------------------------------------------------------------------
if command -v ch-run >/dev/null && ch-run image -- true 2>ch-run.log; then
    containers() { :; }
    runs_jobs charliecloud charliecloud:image given=1x # the variables of the node are there, too
    is_ended_by 'charliecloud, Ctrl-C' charliecloud:image stop_head
    is_ended_by 'charliecloud, the agent is killed' charliecloud:image kill_agent
    is_ended_by 'charliecloud, hnlaunch is killed' charliecloud:image kill_head
    mkdir away && cd away
    hn --local 1 --container charliecloud:../image --label none sh -c 'pwd'
    is 'an image is named by its path from here' "$(cat "$OUT")" "$PWD"
    cd ..
    hn_exits 'a folder of --chdir that the image does not have' 69 --local 1 --chdir "$TMP/nowhere" --container charliecloud:image pwd
    hn --local 1 --chdir / --container charliecloud:image --label none pwd
    is 'one that it has' "$(cat "$OUT")" /
    hn_exits 'an image that is not there' 69 --local 1 --container charliecloud:"$PWD/none" true
    has '... is named' "$ERR" "cannot use the image $PWD/none: No such file or directory"
    has '... with its number' "$ERR" 'error[HN249]'
    hn_exits 'an argument that ch-run does not know' 69 --local 1 --container charliecloud:image -o run.container_arg=--no-such-option true
    has '... is told with its words' "$ERR" 'no-such-option'
else
    skip 'Charliecloud holds the ranks' "$(tail -n 1 ch-run.log 2>/dev/null | grep . || echo 'charliecloud-runtime is not installed')"
fi

# An image for another machine: only the type in the first program matters.
cp -r image foreign
printf '\267\0' | dd of=foreign/bin/busybox bs=1 seek=18 conv=notrunc 2>/dev/null
[[ $(uname -m) != aarch64 ]] || printf '\076\0' | dd of=foreign/bin/busybox bs=1 seek=18 conv=notrunc 2>/dev/null
if command -v ch-run >/dev/null; then
    hn_exits 'an image for another machine' 69 --local 1 --container charliecloud:foreign true
    has '... is told' "$ERR" 'the image is for another machine'
fi

# --- Docker ---------------------------------------------------------------------------------------
PATH_WITHOUT=$PATH
if start_docker; then
    tar -C image -c . | docker import - hn-image >/dev/null
    containers() { docker ps -aq --filter name=hnlaunch-; }
    runs_jobs docker docker:hn-image given=1
    is_ended_by 'docker, Ctrl-C' docker:hn-image stop_head
    is_ended_by 'docker, the client is killed' docker:hn-image kill_client docker
    is_ended_by 'docker, the agent is killed' docker:hn-image kill_agent
    is_ended_by 'docker, hnlaunch is killed' docker:hn-image kill_head
    end_container() { docker kill "$(containers)" >/dev/null; }
    is_ended_by 'docker, the container is killed' docker:hn-image end_container
    hn --local 1 --container docker:hn-image --label none sh -c 'df -P /dev/shm | tail -n 1 | cut -d" " -f1; touch /dev/shm/hn-test-$HN_RUN_ID && echo $HN_RUN_ID'
    ok 'docker: shared memory is that of the node' test -e "/dev/shm/hn-test-$(tail -n 1 "$OUT")"
    rm -f "/dev/shm/hn-test-$(tail -n 1 "$OUT")"
    hn --local 1 --container docker:hn-image -o run.container_arg=--shm-size=5m --label none sh -c 'df -Pk /dev/shm | tail -n 1 | tr -s " " | cut -d" " -f2'
    is 'docker: or of the size that an argument says' "$(cat "$OUT")" 5120
    hn --local 1 --container docker:none true
    has 'docker: an image that is not there' "$ERR" 'cannot use the image none: docker exited with code 1: Error: No such image: none'

    docker run --detach --name hn-box --network host --ipc host --volume "$PWD:$PWD" hn-image sleep 3600 >/dev/null
    containers() { docker exec hn-box sh -c 'ls -A /tmp | grep hnlaunch; ps | grep "hnlaunch-[a]gent"'; }
    hn_exits 'exec: a job ends well' 0 --local 3 --container exec:hn-box -x GIVEN=1 --chdir "$PWD" --label none sh -c "$ranks"
    is 'exec: three ranks ran inside' "$(sort "$OUT" | paste -sd,)" '0 of 3,1 of 3,2 of 3,inside,inside,inside'
    mkdir "$TMP/apart" && cd "$TMP/apart"
    hn --local 1 --container exec:hn-box --label none pwd
    cd "$OLDPWD"
    is 'exec: the folder is the container'"'"'s own' "$(cat "$OUT")" /
    is 'exec: no file is left in it' "$(containers)" ''
    is_ended_by 'exec, Ctrl-C' exec:hn-box stop_head
    is_ended_by 'exec, the client is killed' exec:hn-box kill_client docker
    is_ended_by 'exec, the agent is killed' exec:hn-box kill_agent
    is_ended_by 'exec, hnlaunch is killed' exec:hn-box kill_head
    docker stop -t 0 hn-box >/dev/null
    hn --local 1 --container exec:hn-box true
    has 'exec: a container that does not run' "$ERR" 'cannot use the container hn-box: docker has it, but it is not running'
    hn --local 1 --container exec:hn-none true
    has 'exec: one that does not exist' "$ERR" 'cannot use the container hn-none: docker exited with code 1: Error: No such container: hn-none'

    user=nobody
    chmod 711 "$TMP" . && mkdir -m 777 theirs && cd theirs
    chmod 600 "${DOCKER_HOST#unix://}"
    as_user() { run setpriv --reuid "$user" --regid nogroup --clear-groups env HOME="$TMP/nowhere" "$HNLAUNCH" "$@"; }
    if setpriv --reuid "$user" --regid nogroup --clear-groups test -x "$HNLAUNCH"; then
        as_user --local 1 --container docker:hn-image true
        has 'docker: a user without the right' "$ERR" 'permission denied while trying to connect'
        chmod 666 "${DOCKER_HOST#unix://}"
        as_user --local 1 --container docker:hn-image --label none sh -c 'touch mine; id -u; echo $HOME'
        is 'docker: ranks have the number of their user, and a home' "$(paste -sd, "$OUT")" "$(id -u $user),/tmp"
        is 'docker: their files, too' "$(stat -c %U mine 2>/dev/null)" "$user"
    else
        skip 'docker: a user of no rights' 'the build folder is closed to others'
    fi
    cd ..
    kill -STOP "$DOCKERD"
    start --local 1 --start-timeout 2s --container docker:hn-image true
    finish
    kill -CONT "$DOCKERD"
    exits 'docker: a daemon that does not answer' 69
    DOCKER_HOST=unix://$PWD/nowhere hn --local 1 --container docker:hn-image true
    has 'docker: a daemon that is not there' "$ERR" 'Is the docker daemon running?'
else
    skip 'Docker holds the ranks' "$WHY"
fi

# --- Podman ---------------------------------------------------------------------------------------
if choose_podman; then
    containers() { podman ps -aq; }
    runs_jobs podman podman:hn-image given=1
    is_ended_by 'podman, Ctrl-C' podman:hn-image stop_head
    is_ended_by 'podman, the client is killed' podman:hn-image kill_client podman
    is_ended_by 'podman, hnlaunch is killed' podman:hn-image kill_head
    hn --local 1 --container podman:none true
    has 'podman: an image that is not there' "$ERR" 'cannot use the image none: podman exited with code 125'
else
    skip 'Podman holds the ranks' "$WHY"
fi
stop_docker

# --- options --------------------------------------------------------------------------------------
export PATH=$PATH_WITHOUT
for value in dcker:x docker: docker:-x x; do
    hn_exits "--container $value" 64 --local 1 --container "$value" true
done
hn plan -w a,b --container docker:img/x:1 true
has 'the plan shows it' "$OUT" 'container docker:img/x:1'
hn plan -w a,b --container docker:img/x:1 --json true
is 'also as JSON' "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["container"])' "$OUT")" docker:img/x:1
hn --local 1 --container apptainer:none.sif true
has 'a program that is not installed' "$ERR" 'apptainer is not installed there'
hn --local 1 -o run.container_arg=-v=/a:/b true
has 'run.container_arg alone' "$ERR" '-o run.container_arg without --container'
hn -w localhost --tree 2 --container docker:x true
has '--container with --tree' "$ERR" '--tree and --container exclude each other'
hn --local 1 --wrap "a 'b" true
has '--wrap with an open quote' "$ERR" "a ' is not closed"
hn_exits '--wrap with a program that is not there' 127 --local 1 --wrap no-such-wrapper true
HNLAUNCH_CONTAINER=dcker:x hn --local 1 --container none --label none echo here
is '--container none undoes a setting' "$(cat "$OUT")" here
done_testing
