#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An ssh config can start programs. When others may write to ~/.ssh/config, or to a file that any config includes,
# nothing is started, as with ssh(1), which is asked the same each time.
. "$(dirname "$0")/../lib/tap.sh"
. "$ROOT/tests/lib/sshd.sh"

# shellcheck disable=SC2119
sshd_beside_ssh
uid=$(id -u)
more=$TMP/more

refused() { # NAME FILE: as launch, with what is in "${how[@]}"
    exits "$1: refused" 78 run "${how[@]}" "$HNLAUNCH" "${named[@]}" -p "$PORT" -w node1 true
    has "$1: its number" "$ERR" "error[HN209]: "
    has "$1: the file" "$ERR" "$2 can be written by others (mode 0$(stat -c %a "$2"))"
    has "$1: the next step" "$ERR" "= help: chmod go-w $2"
    told_once "$1: once" "$2 can be written"
    ok "$1: for ssh, too" not asks_ssh
}

allowed() { # NAME
    exits "$1" 0 run "${how[@]}" "$HNLAUNCH" "${named[@]}" -p "$PORT" -w node1 true
    ok "$1: for ssh, too" asks_ssh
}

asks_ssh() { "${how[@]}" ssh "${named[@]/--ssh-config/-F}" -p "$PORT" -oBatchMode=yes node1 true; }

how=()
named=(--ssh-config "$TMP/ssh_config")
printf 'Host node1\n    HostName 127.0.0.1\n' >"$more"
write_config "Include $more"
chmod 666 "$TMP/ssh_config"
allowed 'a file that --ssh-config names is not looked at'
chmod 622 "$more"
refused 'one that it includes is' "$more"
has 'the line that includes it is told' "$ERR" "$TMP/ssh_config: line 1: $more"
write_config 'Host never' "    Include $more" 'Host node1' '    HostName 127.0.0.1' 'Host *'
refused 'also where the block does not count' "$more"
chmod 644 "$more"
allowed 'one that others may read'

if ((uid != 0)) || ! unshare -m true 2>/dev/null; then
    skip 'the file of the user' 'needs root, for a home of its own'
    done_testing
fi

# A home of our own, and a group: 12345 has this user and 23456 has another one, too.
mkdir -p "$TMP/home/.ssh"
mine=$TMP/home/.ssh/config
awk -F: -v OFS=: -v uid="$uid" -v home="$TMP/home" '$3 == uid { $6 = home } 1' /etc/passwd >"$TMP/passwd"
{
    cat /etc/group
    echo "only:x:12345:$ME"
    echo "team:x:23456:$ME,nobody"
} >"$TMP/group"
how=(unshare -m sh -c 'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group && HOME=$0/home exec "$@"' "$TMP")
named=()
cp "$TMP/ssh_config" "$mine"
allowed 'the own file'
chmod 646 "$mine"
refused 'the own file, written by all' "$mine"
chmod 664 "$mine"
chgrp 23456 "$mine"
refused 'by a group' "$mine"
chgrp 12345 "$mine"
exits 'by a group of this user alone' 0 run "${how[@]}" "$HNLAUNCH" -p "$PORT" -w node1 true
chmod 644 "$mine"
chown 1234 "$mine"
exits "somebody else's file" 78 run "${how[@]}" "$HNLAUNCH" -p "$PORT" -w node1 true
has 'says whose it is' "$ERR" "error[HN209]: $mine belongs to user 1234"
ok 'for ssh, too' not asks_ssh
exits 'a launch that does not read it' 0 run "${how[@]}" "$HNLAUNCH" --ssh-config none -p "$PORT" -w 127.0.0.1 true
exits 'nor does one without ssh' 0 run "${how[@]}" "$HNLAUNCH" --local 2 true

chown "$uid" "$mine"
echo 'Include more' >>"$mine"
cp "$more" "$TMP/home/.ssh/more"
allowed 'an included file beside it'
chmod 666 "$TMP/home/.ssh/more"
refused 'which is looked at, too' "$TMP/home/.ssh/more"
done_testing
