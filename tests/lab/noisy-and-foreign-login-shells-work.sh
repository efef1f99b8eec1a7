#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Users whose shell is bash, tcsh or fish, and whose start-up files print things, can be launched for.
. "$(dirname "$0")/../lib/tap.sh" || exit 1
. "$ROOT/tests/lib/lab.sh" || exit 1

[[ $(id -u) == 0 ]] || skip_all 'needs root (makes users)'

# The users exist on the nodes only: a passwd of the machine that is replaced loses what other tests mount over it.
uid=$((20000 + $$ % 10000 * 4))
cp /etc/passwd "$TMP/passwd"
at_end() {
    local u
    [[ ! -d $LAB_DIR ]] || lab down
    for u in 0 1 2 3; do
        pkill -KILL -u $((20000 + $$ % 10000 * 4 + u))
    done
}

make_user() { # NAME SHELL FILE
    echo "$1:*:$uid:$uid::$TMP/home-$1:$2" >>"$TMP/passwd"
    mkdir -p "$(dirname "$TMP/home-$1/$3")"
    printf 'echo "WELCOME to the cluster"\necho HNLAUNCH\n' >"$TMP/home-$1/$3"
    chown -R "$uid:$uid" "$TMP/home-$1"
    uid=$((uid + 1))
}

chmod 755 "$TMP" "$TMP/work"
lab_up 2 2
for node in node001 node002; do
    lab exec $node mount --bind "$TMP/passwd" /etc/passwd
done
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
    user=hn$shell
    ok "a user with $shell" make_user "$user" "$path" "$file"
    for time in first second; do
        lab_hn -w "$user@node[001-002]:2" --label none sh -c 'echo "$RANK $(id -un) $0 $*"' 'a b' '$x' "it's"
        exits "$shell, $time launch: 0" 0
        is "$shell, $time launch: only the ranks' output" "$(sort "$OUT")" \
            "$(for r in 0 1 2 3; do echo "$r $user a b \$x it's"; done)"
    done
done

# --- logins that do not run the command -----------------------------------------------------------------------------
if grep -q ^hnbash: "$TMP/passwd"; then
    rc=$TMP/home-hnbash/.bashrc
    stuck() { # WHAT WORDS LINES: such a .bashrc is told with the words that it printed
        printf '%b\n' "$3" >"$rc"
        exits "$1: 69" 69 lab_hn -w hnbash@node001:1 --progress plain --start-timeout 6s true
        has "$1: it did not answer" "$ERR" 'the agent did not answer within 6s (--start-timeout)'
        has "$1: the help names login files" "$ERR" 'help: does a login file there (~/.bashrc) ask'
        has "$1: the guard is given" "$ERR" '[[ $- == *i* ]] || return'
        [[ -z $2 ]] || has "$1: the words are shown" <(sed -n '/HN210/,$p' "$ERR") "$2"
        has "$1: it is told before" <(sed '/HN210/,$d' "$ERR") "${2:+: its login printed \`$2\`}"
    }
    stuck 'a question' 'Accept the terms of use? [y/N]' 'echo "Accept the terms of use? [y/N]"; read x'
    stuck 'a question without a newline on stderr' 'Choose project:' 'printf "Choose project: " >&2; cat >/dev/null'
    stuck 'another shell' '' 'exec sh'
    has 'another shell: nothing was printed' <(sed '/HN210/,$d' "$ERR") 'waiting for node001: its login runs no command'
    # On a terminal the words keep the place, and end where it does.
    echo 'echo "Accept the terms of use of this cluster, which forbid mining? [y/N]"; read x' >"$rc"
    printf '#!/bin/sh\nstty cols 80\nexec "%s" run "%s" -w hnbash@node001:1 --start-timeout 7s true\n' "$LAB" "$LAB_HNLAUNCH" >job.sh
    TERM=xterm script -qefc 'sh job.sh' /dev/null >tty 2>&1
    ok 'on a narrow terminal the words are shown' \
        grep -aqE 'waiting for node001: its login printed `Accept the terms[^`]*.`, [5-7][.0-9]*s' tty
    echo 'exit 3' >"$rc"
    exits 'a login file that exits: 69' 69 lab_hn -w hnbash@node001:1 true
    has 'is told' "$ERR" 'the remote command ended with exit code 3'
    has 'with the same help' "$ERR" 'help: does a login file there (~/.bashrc) ask, exit'
fi

user=hnnologin
if [[ -x /usr/sbin/nologin ]] && make_user "$user" /usr/sbin/nologin .profile; then
    exits 'a user whose shell is nologin: 69' 69 lab_hn -w "$user@node001:1" true
    has 'its words are shown' "$ERR" '| This account is currently not available.'
    has 'the help names the user, and no login file' "$ERR" 'help: the shell of this user there is nologin: name another user'
    lacks 'alone' "$ERR" '.bashrc'
else
    skip 'a user whose shell is nologin' 'there is no /usr/sbin/nologin'
fi
user=hnfalse
ok 'a user who may not log in' make_user "$user" /bin/false .profile
lab_hn -w "$user@node001:1" true
ok 'a login shell that does nothing is an error' test "$RC" != 0
has 'the error names the node' "$ERR" node001
done_testing
