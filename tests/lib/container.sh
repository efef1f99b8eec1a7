# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Containers for tests, beside tap.sh: an image of the system's own programs, and engines of the tests' own.
#
#   make_image FOLDER [PROGRAM...]   a root of busybox, the agent, and the programs with their libraries
#   start_docker                     a daemon in this folder; DOCKER_HOST names it
#   choose_podman                    settings with which Podman starts here
#
# The last two return 1 with the reason in WHY. at_end of the test has to call stop_docker.

make_image() { # FOLDER [PROGRAM...]
    local image=$1 program library
    mkdir -p "$image"/{bin,dev,etc,home,mnt,opt,proc,root,run,srv,sys,tmp,usr/lib,var} || return
    cp /bin/busybox "$image/bin/" || return
    for program in $("$image/bin/busybox" --list); do
        [[ $program == busybox ]] || ln -s busybox "$image/bin/$program"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$image/etc/passwd"
    echo 'root:x:0:' >"$image/etc/group"
    touch "$image/etc/hosts" "$image/etc/resolv.conf"
    for program in "$AGENT" "${@:2}"; do
        [[ $program == "$AGENT" ]] || cp "$program" "$image/bin/"
        for library in $(ldd "$program" 2>/dev/null | grep -o '/[^ ]*'); do
            mkdir -p "$image${library%/*}" && cp -L "$library" "$image$library" && cp -L "$library" "$image/usr/lib/" || return
        done
    done
}

start_docker() {
    local root
    WHY='a daemon of its own needs root'
    ((EUID == 0)) || return 1
    root=$(timeout 150 bash "$ROOT/tests/lib/docker_kit.sh" \
        "${DOCKER_KIT:-${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch-tests/docker}" 2>"$TMP/docker.log")
    WHY="no Docker: $(tail -n 1 "$TMP/docker.log")"
    [[ -n $root ]] || return 1
    export PATH=$root/usr/bin:$root/usr/sbin:$PATH DOCKER_HOST=unix://$PWD/docker.sock
    DOCKER_FOLDER=$PWD/docker
    mkdir docker
    env -u TEST_MARK dockerd --data-root "$DOCKER_FOLDER/data" --exec-root "$DOCKER_FOLDER/exec" --pidfile "$DOCKER_FOLDER/pid" \
        -H "$DOCKER_HOST" --bridge none --iptables=false --storage-driver vfs >"$TMP/docker.log" 2>&1 &
    DOCKERD=$!
    docker_decided() { docker version || ! kill -0 "$DOCKERD"; }
    wait_for docker_decided
    WHY="no Docker: $(tail -n 1 "$TMP/docker.log" | cut -c1-200)"
    docker version >/dev/null 2>&1
}

stop_docker() {
    [[ -n ${DOCKERD-} ]] || return 0
    docker ps -q | xargs -r docker kill >/dev/null 2>&1
    kill "$DOCKERD" 2>/dev/null
    wait "$DOCKERD" 2>/dev/null
    DOCKERD=
    umount "$DOCKER_FOLDER"/exec/netns/* "$DOCKER_FOLDER/data" 2>/dev/null
}

# A Podman without the right to raise limits, or with control groups of both versions, starts with other settings.
choose_podman() {
    local runtime
    WHY='Podman is not installed'
    command -v podman >/dev/null || return 1
    export CONTAINERS_CONF=$PWD/containers.conf CONTAINERS_STORAGE_CONF=$PWD/storage.conf
    printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/podman"\nrunroot = "%s/podman-run"\n' "$PWD" "$PWD" >storage.conf
    : >containers.conf
    tar -C image -cf image.tar .
    WHY="Podman cannot import: $(podman import -q image.tar hn-image 2>&1 >/dev/null | tail -n 1)"
    podman image inspect hn-image >/dev/null 2>&1 || return 1
    for runtime in crun runc; do
        printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n[engine]\nruntime = "%s"\n' \
            "$runtime" >containers.conf
        WHY="Podman cannot start: $(podman run --rm --network host --ipc host hn-image /bin/true 2>&1 | tail -n 1)"
        [[ $WHY != 'Podman cannot start: ' ]] || return 0
    done
    return 1
}
