#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Users whose shell is bash, tcsh or fish, and whose start-up files print things, can be launched for.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1
# shellcheck source=tests/lib/lab.sh
. "$ROOT/tests/lib/lab.sh" || exit 1

[[ $(id -u) == 0 ]] || skip_all 'needs root (makes users)'
command -v useradd >/dev/null || skip_all 'needs useradd'
users=()
at_end() {
    local u
    [[ ! -d $LAB_DIR ]] || lab down
    for u in "${users[@]}"; do
        pkill -KILL -u "$u"
        userdel -rf "$u" >/dev/null 2>&1 # even if they are not quite dead
    done
}

make_user() { # NAME SHELL FILE
    useradd -m -d "$TMP/home-$1" -s "$2" "$1" || return 1
    users+=("$1")
    # An account with a locked password may be refused by sshd; with an impossible one it is not.
    usermod -p '*' "$1"
    mkdir -p "$(dirname "$TMP/home-$1/$3")"
    printf 'echo "WELCOME to the cluster"\necho HNLAUNCH\n' >"$TMP/home-$1/$3"
    chown -R "$1" "$TMP/home-$1"
}

chmod 755 "$TMP" "$TMP/work"
suffix=$BASHPID # another copy may run
lab_up 2 2
for shell in bash tcsh fish; do
    case $shell in
        bash) file=.bashrc ;;
        tcsh) file=.cshrc ;;
        fish) file=.config/fish/config.fish ;;
    esac
    if ! path=$(command -v "$shell"); then
        skip "$shell as login shell" "$shell is not installed"
        continue
    fi
    user=hn$shell$suffix
    ok "a user with $shell" make_user "$user" "$path" "$file"
    for time in first second; do
        lab_hn -w "$user@node[001-002]:2" --label none sh -c 'echo "$RANK $(id -un) $0 $*"' 'a b' '$x' "it's"
        exits "$shell, $time launch: 0" 0
        is "$shell, $time launch: only the ranks' output" "$(sort "$OUT")" \
            "$(for r in 0 1 2 3; do echo "$r $user a b \$x it's"; done)"
    done
    chsh -s /bin/sh "$user" 2>/dev/null || usermod -s /bin/sh "$user"
done

user=hnfalse$suffix
ok 'a user who may not log in' make_user "$user" /bin/false .profile
lab_hn -w "$user@node001:1" true
ok 'a login shell that does nothing is an error' test "$RC" != 0
has 'the error names the node' "$ERR" node001
done_testing
