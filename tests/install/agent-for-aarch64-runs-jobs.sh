#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The agent is cross-built for aarch64, installed beside this machine's, and runs jobs in qemu.
. "$(dirname "$0")/../lib/tap.sh"

[[ $(uname -m) != aarch64 ]] || skip_all 'this machine is an aarch64'
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static meson ninja; do
    type -P "$tool" >/dev/null || skip_all "no $tool here"
done
libs=$TMP/libs build=$TMP/build
timeout 100 sh "$ROOT/packaging/aarch64-libs.sh" "$libs" >"$ERR" 2>&1 ||
    skip_all "libraries for aarch64 are out of reach: $(tail -n 1 "$ERR")"

# shellcheck disable=SC2054
quiet=(-Dtests=disabled -Dman=disabled -Dgloo=disabled -Dcuda=disabled --prefix=/usr)
LIMIT=300 run meson setup "$build" "$ROOT" "${quiet[@]}" -Daarch64=enabled -Daarch64_libs="$TMP/nowhere"
is 'without those libraries there is no build' "$((RC != 0))" 1
has 'and the script that gets it is named' "$OUT" 'packaging/aarch64-libs.sh'
rm -rf "$build"
LIMIT=300 run meson setup "$build" "$ROOT" "${quiet[@]}" -Daarch64=enabled -Daarch64_libs="$libs"
exits 'configured' 0
LIMIT=300 run ninja -j2 -C "$build" hnlaunch-agent-aarch64
exits 'built' 0
agent=$build/hnlaunch-agent-aarch64
is 'the agent is a static aarch64 program' "$(od -An -tu2 -j18 -N2 "$agent" | tr -d ' ')" 183
lacks 'which wants no loader' <(readelf -lW "$agent") INTERP
run qemu-aarch64-static "$agent" </dev/null
has 'it starts in qemu, up to the system call that qemu does not know' "$ERR" 'cannot start: Invalid argument'

# shellcheck disable=SC2046
aarch64-linux-gnu-gcc -static -Wl,--wrap=prctl -o "$TMP/agent" "$ROOT/tests/lib/subreaper.c" \
    $(find "$build" -path '*hnlaunch-agent-aarch64.p/*' -name '*.o') "$libs/libuv_a.a" "$libs/libsodium.a" "$libs/libz.a" -lpthread -ldl 2>"$ERR" ||
    fail 'linked without that system call'
printf '#!/bin/sh\nexec qemu-aarch64-static %s\n' "$TMP/agent" >"$TMP/emulated"
chmod 755 "$TMP/emulated"

hn --agent "$TMP/emulated" --local 3 "$BUILD/examples/hello"
exits 'a job of three ranks with an aarch64 agent' 0
has 'its store served them' "$OUT" '2 | hello from rank 2 of 3 on localhost'
hn --agent "$TMP/emulated" --local 2 sh -c 'echo "rank $RANK"; sleep 0.2; exit $((RANK * 7))'
exits 'exit codes come through' 7
verdict_has 'with the rank' 'rank 1 on localhost exited with code 7'
head -c 300000 /dev/urandom >"$TMP/bytes"
hn --agent "$TMP/emulated" --local 1 --stdin 0 cat <"$TMP/bytes"
same 'as do bytes, in and out' "$OUT" "$TMP/bytes"

run meson introspect --installed "$build"
has 'it is installed beside that of this machine' "$OUT" '"/usr/libexec/hnlaunch/hnlaunch-agent-aarch64"'
has 'which has its machine in its name, too' "$OUT" "\"/usr/libexec/hnlaunch/hnlaunch-agent-$(uname -m)\""
nothing_left 'nothing is left'
done_testing
