#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The order of rooms, and what every source keeps to. A room includes itself and rooms above it in this list that
# are of its own part (head, agent, client) or of what all parts share (base, wire, call, store); never head <-> agent.
set -u
cd "$(dirname "$0")/.." || exit 1
n=0 failed=0

result() { # NAME BAD-LINES
    n=$((n + 1))
    if [ -z "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "$2" | sed 's/^/# /'
        failed=1
    fi
}

ROOMS="
base base/elf base/loader
wire wire/helper wire/trace wire/env wire/noise
call
carried/pmix carried/nvml carried/nccl
store/engine store/relay
head/core head/term head/hosts head/alloc head/reason head/model head/metrics head/options head/push head/nodes head/pull head/ssh/files head/ssh
head/run head/hold head/record head/output head/status head/why head/top head/top/screen head/check head/dial_in head/commands head/job head/report head/watch head/launch head
agent/container agent/core agent/files agent/contain agent/record agent/bind agent/warm agent/rank agent/nccl agent/inspect agent/endpoint agent/ready agent/tree agent/pmi agent/pmix agent/check agent/attempt agent
client/core client/torchrun client client/backends
"

sources() {
    find src -name '*.[ch]' -o -name '*.cc'
}

# Prints each include of another room that is not below the source's own.
upward_includes() {
    sources | xargs grep -E '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' | awk -v rooms="$ROOMS" '
        BEGIN { n = split(rooms, room, " "); for (i = 1; i <= n; i++) place[room[i]] = i }
        function room_of(path) { sub("/[^/]*$", "", path); return path }
        function part_of(room) { sub("/.*", "", room); return room }
        {
            source = $0; sub(":.*", "", source); from = source; sub("^src/", "", from); from = room_of(from)
            to = $0; sub("^[^\"]*\"", "", to); sub("\".*", "", to)
            if (to ~ "^hnlaunch/") next
            to = room_of(to); part = part_of(to)
            if (!(from in place)) print source ": its room is missing in the table of rooms"
            else if (!(to in place) || place[to] > place[from] || (part !~ "^(base|wire|call|store)$" && part != part_of(from)))
                print $0
        }'
}

result "includes point only downward in the table of rooms" "$(upward_includes)"
result "names of sources are unique but for main" "$(
    sources | sed 's,.*/,,' | grep -v '^main\.c$' | sort | uniq -d)"

# The map of the sources: rooms, files and functions that docs/architecture.md names exist, and no room is missing.
stale_places() {
    grep -oE '[a-z_/]+\.c:[a-z_]+' docs/architecture.md | while IFS=: read -r file function; do
        grep -qsE "^([a-z].*[ *])?$function\\(" "src/$file" || echo "docs/architecture.md: src/$file has no $function()"
    done
    grep -oE '`[a-z_]+/[a-z_/.0-9]+`' docs/architecture.md | tr -d '`' | while read -r path; do
        [ -e "$path" ] || echo "docs/architecture.md: there is no $path"
    done
}

# The rooms of the map in its order. src/head, src/agent and src/client stand above those that they include.
unknown_rooms() {
    awk '
        /^src\// { top = $1; sub("^src/", "", top); sub("/$", "", top); part = top; sub("/.*", "", part); print top; next }
        /^  [a-z_\/]+\/ / && part { room = $1; sub("/$", "", room); print part "/" room }
        /^## Five/ { exit }' docs/architecture.md >"$scratch.map"
    printf '%s\n' $ROOMS | sort >"$scratch"
    sort "$scratch.map" | diff "$scratch" - | grep '^[<>]'
    printf '%s\n' $ROOMS | grep -vxE 'head|agent|client' >"$scratch"
    grep -vxE 'head|agent|client' "$scratch.map" | diff "$scratch" - | grep '^[<>]'
}
scratch=$(mktemp)
trap 'rm -f "$scratch" "$scratch.map"' EXIT

result "the map names files and functions that exist" "$(stale_places)"
result "the map has the rooms of this table, in its order" "$(unknown_rooms)"
result "docs/protocol.md has all messages, their direction, states and fields" "$(python3 tests/lib/protocol.py)"
result "static functions are verb_noun and exist once" "$(python3 tests/lib/names.py statics)"
result "functions of headers are used by other files" "$(python3 tests/lib/names.py exports)"
result "struct names exist once" "$(python3 tests/lib/names.py structs)"
result "a struct has 20 fields at most" "$(python3 tests/lib/names.py fields)"
result "a private header is included by six files of its room at most" "$(python3 tests/lib/names.py private)"
result "errors and exit codes have names in calls" "$(python3 tests/lib/names.py numbers)"
result "the top of a part holds three sources at most" "$(
    for part in head agent; do
        [ "$(find "src/$part" -maxdepth 1 -name '*.c' | wc -l)" -le 3 ] || echo "src/$part"
    done)"
result "each text and list of the options is freed by their table" "$(python3 tests/lib/names.py options)"
result "a struct has 60 fields at most with those of the structs in it" "$(python3 tests/lib/names.py nested)"
result "a large struct is read in three rooms at most, or is data" "$(python3 tests/lib/names.py opaque)"
result "long sources open with how they work" "$(python3 tests/lib/names.py openings)"
result "comments of a room have few pronouns" "$(python3 tests/lib/names.py pronouns)"
result "these four rules find a violation" "$(python3 tests/lib/names.py prove)"
result "public headers include nothing of src" "$(grep -rnE '^#[[:space:]]*include[[:space:]]+"(base|wire|store|head|agent|client)/' include)"
result "store and wire open no descriptors" "$(grep -rnE '#include <(uv\.h|sys/socket\.h|sys/epoll\.h|unistd\.h|fcntl\.h)>' src/store src/wire)"
result "every source names its licence in the first line" "$(
    find src include tests examples -name '*.[ch]' -o -name '*.cc' |
        xargs awk 'FNR == 1 && !/SPDX-License-Identifier: Apache-2\.0/ { print FILENAME }')"
result "no source file but the table of errors is longer than 800 lines" "$(
    find src include tests examples -name '*.[ch]' -o -name '*.cc' | grep -v '/error_ids\.c$' |
        xargs awk 'FNR == 801 { print FILENAME }')"
result "every header is included once" "$(
    find src include tests -name '*.h' | xargs grep -L '^#pragma once')"
result "docs/howto/README.md names every page" "$(
    for page in docs/howto/*.md; do
        grep -qF "](${page##*/})" docs/howto/README.md || [ "$page" = docs/howto/README.md ] || echo "$page"
    done)"
result "docs/index.md names every page of docs" "$(
    for page in docs/*.md; do
        grep -qF "](${page##*/})" docs/index.md || [ "$page" = docs/index.md ] || echo "$page"
    done)"
if command -v clang-format >/dev/null; then
    result "clang-format would change nothing" "$(
        find src include tests examples -name '*.[ch]' -o -name '*.cc' |
            xargs clang-format --dry-run 2>&1 | grep -o '^[^ ]*: warning' | sort -u)"
fi
echo "1..$n"
exit "$failed"
