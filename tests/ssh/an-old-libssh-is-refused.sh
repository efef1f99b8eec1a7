#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hnlaunch does not log in with a libssh that has known holes, although it was built with a newer one.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

type -P gcc >/dev/null || skip_all 'no gcc here'
# A preloaded function and the sanitizers do not go together.
[[ -x $PLAIN/hnlaunch ]] || skip_all 'no plain build'
sshd_start 'LogLevel VERBOSE'
printf 'node1 %s\n' "$(sshd_key)" >>"$KNOWN"
write_config 'Host node1' '    HostName 127.0.0.1' "    Port $PORT" '    HostKeyAlias node1' 'Host *'

# The one place where libssh tells its version.
libssh() { # MAJOR MINOR MICRO
    printf 'const char *ssh_version(int least)\n{\n        return least > (%d << 16 | %d << 8 | %d) ? 0 : "%d.%d.%d/openssl/zlib";\n}\n' \
        "$@" "$@" >"$TMP/version.c"
    gcc -shared -fPIC -o "$TMP/version.so" "$TMP/version.c"
    export LD_PRELOAD=$TMP/version.so
    hn_plain --ssh-config "$TMP/ssh_config" -w node1 --label none "${more[@]}" echo up
    unset LD_PRELOAD
}
hn_plain() { run "$PLAIN/hnlaunch" "$@"; }
more=()

for version in '0 9 6' '0 10 5'; do
    # shellcheck disable=SC2086
    libssh $version
    exits "$version" 69
    has "$version: told" "$ERR" "error[HN248]: cannot use libssh ${version// /.} of this machine: it is older than 0.10.6"
    has "$version: the next step" "$ERR" '--ssh-command ssh'
    lacks "$version: no connection" "$SSHD/log" 'Connection from'
done
for version in '0 10 6' '0 11 0' '1 0 0'; do
    # shellcheck disable=SC2086
    libssh $version
    exits "$version" 0
done
if type -P ssh >/dev/null; then
    more=(--ssh-command "ssh -F $TMP/ssh_config")
    libssh 0 9 6
    exits 'another ssh goes without it' 0
fi
grep -q "version: '>= 0.10.6'" "$ROOT/meson.build"
is 'the build asks for the same' $? 0
done_testing
