#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The wheel is built, installed into a fresh environment, and runs jobs there, also where this system's copies of the
# libraries are out of sight; pip removes every file of it.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

for tool in patchelf meson readelf ldd; do
    type -P "$tool" >/dev/null || skip_all "no $tool here"
done
[[ -f $PLAIN/build.ninja ]] || skip_all 'no plain build'
python3 -c 'import tomllib, ensurepip' 2>"$ERR" || skip_all "no Python 3.11 with venv here: $(tail -n 1 "$ERR")"
exits 'the wheel is built' 0 run python3 "$ROOT/packaging/python/backend.py" "$PLAIN" "$TMP/dist"
[[ $RC == 0 ]] || done_testing
wheel=$(echo "$TMP"/dist/*)
version=$("$PLAIN/hnlaunch" version | cut -d' ' -f2)
ok 'its name has the version and a tag of manylinux' \
    grep -qxE "hnlaunch-${version//./\\.}-py3-none-manylinux_2_[0-9]+_$(uname -m).whl" <<<"${wheel##*/}"
ok 'it has less than 8 MB' test "$(stat -c %s "$wheel")" -lt 8000000
if [[ -f $BUILD/build.ninja ]] && meson introspect --buildoptions "$BUILD" | grep -q '"value": "address'; then
    run python3 "$ROOT/packaging/python/backend.py" "$BUILD" "$TMP/none"
    has 'a build with sanitizers gives none' "$ERR" 'it was built with sanitizers'
fi

run python3 -m venv "$TMP/venv"
pip() { run "$TMP/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
files() { (cd "$TMP/venv" && find . -type f ! -name '*.pyc' | sort); }
files >"$TMP/before"
exits 'pip installs it' 0 pip install --no-index --no-deps "$wheel"
HNLAUNCH=$TMP/venv/bin/hnlaunch
at=$(echo "$TMP"/venv/lib/python*/site-packages)
is 'pip finds nothing to complain of' "$(pip check && cat "$OUT")" 'No broken requirements found.'

# --- what it needs --------------------------------------------------------------------------------------

dynamic() {
    find "$TMP/venv/bin/hnlaunch" "$TMP/venv/libexec" "$at/hnlaunch" -type f -exec sh -c \
        'head -c 4 "$1" | grep -q ELF && ! readelf -d "$1" | grep -q "no dynamic section"' sh {} \; -print
}
dynamic >"$TMP/dynamic"
is 'programs, modules and libraries' "$(grep -cE '/(hnlaunch|hnlaunch-(ssh|top).so|libhnlaunch.so.0|hn_backend_nccl.so)$' "$TMP/dynamic")" 5
xargs ldd <"$TMP/dynamic" | grep -F ' => ' | grep -vF " => $TMP/venv/" | awk '{ print $1 }' | sort -u >"$OUT"
is 'nothing but glibc comes from this system' "$(grep -vxE 'lib(c|m|dl|pthread|rt|resolv|util)\.so\.[0-9]' "$OUT")" ''
newest=$(xargs readelf -VW <"$TMP/dynamic" | grep -oE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -n 1)
is 'the tag says which glibc' "GLIBC_2.$(sed -E 's/.*manylinux_2_([0-9]+)_.*/\1/' <<<"$wheel")" "$newest"
licences=$at/hnlaunch-$version.dist-info/licenses
for library in libssh openssl glibc LGPL-2.1; do
    ok "the licence of $library" test -s "$licences/$library.txt"
done

# --- jobs ---------------------------------------------------------------------------------------------------

cat >ring.py <<'END'
import hnlaunch as hn

hn.init()
hn.store.set(f"from/{hn.rank()}", "hello")
print(hn.rank(), hn.store.get(f"from/{(hn.rank() + 1) % hn.world_size()}").decode(), flush=True)
hn.barrier()
hn.finalize()
END
unset LD_LIBRARY_PATH PYTHONPATH
ring=("$TMP/venv/bin/python" "$TMP/work/ring.py")
hn_exits 'a job of this machine' 0 --local 2 --label none "${ring[@]}"
is 'says hello in a ring' "$(sort "$OUT")" $'0 hello\n1 hello'
run "$TMP/venv/bin/python" -m hnlaunch --local 1 --label none sh -c 'readlink "/proc/$PPID/exe"; exit 5'
exits 'python -m hnlaunch is hnlaunch' 5
has 'with the agent of the wheel' "$OUT" "$TMP/venv/libexec/hnlaunch/hnlaunch-agent-$(uname -m)"
mkdir "$TMP/elsewhere" && ln -s "$HNLAUNCH" "$TMP/elsewhere/hnlaunch"
run "$TMP/elsewhere/hnlaunch" --local 1 --label none echo up
is 'a link to the program is as good' "$(cat "$OUT")" up

sshd_start
trust "$PORT"
write_config 'Host node1' '    HostName 127.0.0.1' "    Port $PORT"
over_ssh=(--ssh-config "$TMP/ssh_config" -w node1:2 --label none "${ring[@]}")
hn_exits 'a job over ssh' 0 "${over_ssh[@]}"
is 'says hello in a ring, too' "$(sort "$OUT")" $'0 hello\n1 hello'

# A file of the system that is hidden behind /dev/null cannot be taken by mistake.
cat >hidden <<'END'
cd "$1" || exit 1
for library in *; do
    for place in /lib/*-linux-gnu /usr/lib/*-linux-gnu /lib64 /usr/lib64; do
        [ ! -e "$place/$library" ] || mount --bind /dev/null "$(readlink -f "$place/$library")" || exit 1
    done
done
shift
exec "$@"
END
if ((EUID == 0)) && unshare -m true 2>/dev/null; then
    run unshare -m --propagation private sh hidden "$TMP/venv/libexec/hnlaunch/lib" "$PLAIN/hnlaunch" version
    ok 'without the libraries of this system its own hnlaunch does not start' test "$RC" != 0
    run unshare -m --propagation private sh hidden "$TMP/venv/libexec/hnlaunch/lib" "$HNLAUNCH" "${over_ssh[@]}"
    is 'but that of the wheel does, over ssh' "$RC $(sort "$OUT" | tr '\n' ' ')" '0 0 hello 1 hello '
else
    skip 'without the libraries of this system its own hnlaunch does not start' 'needs root and the right to mount'
fi
if ((EUID == 0)) && type -P setpriv >/dev/null; then
    chmod 711 "$TMP"
    mkdir -m 777 "$TMP/nobody"
    # The Python of the environment may be in a folder of this user alone.
    run env HOME="$TMP/nobody" XDG_CONFIG_HOME="$TMP/nobody" XDG_STATE_HOME="$TMP/nobody" TMPDIR="$TMP/nobody" \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$HNLAUNCH" --local 2 --label none sh -c 'cat "$1"/*.py "$1/lib"/* >/dev/null && echo "$RANK"' sh "$at/hnlaunch"
    is 'another user may use it' "$RC $(sort "$OUT" | tr '\n' ' ')" '0 0 1 '
else
    skip 'another user may use it' 'needs root'
fi

# --- removal --------------------------------------------------------------------------------------------------

exits 'pip removes it' 0 pip uninstall -y hnlaunch
files >"$TMP/after"
same 'and every file of it' "$TMP/before" "$TMP/after"
nothing_left 'nothing is left'
done_testing
