#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bash, zsh and fish complete commands, options, values, hosts, files, and then the program's own words.
. "$(dirname "$0")/../lib/tap.sh"

made=$BUILD/packaging/completions
[[ -f $made/hnlaunch ]] || skip_all 'the completions were not built'
mkdir "$TMP/zsh" "$TMP/home" "$TMP/home/.ssh" folder
cp "$made/_hnlaunch" "$TMP/zsh/_hnlaunch"
touch hosts.txt folder/inside
printf '[role trainer]\n  [role  orch] ; last\n[env orch]\n' >roles.ini
export HOME=$TMP/home ALONE_IN_TEST=1
printf 'Host gpu-alpha gpu-beta\n' >"$HOME/.ssh/config"
options_of() { # COMMAND
    "$HNLAUNCH" help table | awk -F'\t' -v command=",$1," '
        $1 == "option" && index("," $8 ",", command) { print "--" $2; if ($3 != "") print "-" $3 }' | sort
}
# Two runs, of which one goes on.
ln -s "$HNLAUNCH" hnlaunch
export PATH=$PWD:$PATH XDG_RUNTIME_DIR=$TMP/runtime XDG_STATE_HOME=$TMP/state
mkdir -m 700 "$XDG_RUNTIME_DIR"
hn_exits 'a run that ends' 0 --local 1 true
ended=$(hnlaunch ps | awk 'NR == 2 { print $1 }')
comes_up 'a run that goes on' 1 start --local 1 --label none sh -c 'echo runs; exec sleep 1000'
running=$(hnlaunch ps | awk '/ running / { print $1 }')
started=$PID
python3 "$ROOT/tests/lib/fake_hold.py" "$XDG_RUNTIME_DIR/hnlaunch/holds/a.sock" '{}' &
fake=$!
ok 'a hold is there' wait_for test -S "$XDG_RUNTIME_DIR/hnlaunch/holds/a.sock"

# Prints what a shell offers behind a line.
bash_offers() { # LINE [SCRIPT]
    bash --norc -c '
        [[ -z ${3-} ]] || . "$3"
        . "$1"
        words=$2
        # As readline splits it: = is a word of its own.
        words=${words//=/ = }
        read -ra COMP_WORDS <<<"$words"
        [[ $words == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$2 COMP_POINT=${#2}
        function=$(complete -p hnlaunch)
        [[ $function == *"-F _hnlaunch "* ]] || exit 1
        _hnlaunch hnlaunch
        printf "%s\n" "${COMPREPLY[@]}"' bash "$made/hnlaunch" "$1" ${2+"$2"} 2>"$ERR" | sort -u
}
fish_offers() { # LINE
    fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$made/hnlaunch.fish" "$1" 2>"$ERR" |
        cut -f1 | sort -u
}
# Without the leak check, whose process sometimes waits for ever below this zsh, while hnlaunch spins.
zsh_offers() { ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 timeout 100 zsh "$ROOT/tests/lib/zsh_complete" "$TMP/zsh" "$1" 2>"$ERR"; } # LINE

offers() { # SHELL NAME LINE WORD...: all these
    local shell=$1 name="$1: $2" line=$3 word
    shift 3
    "${shell}_offers" "$line" >"$OUT"
    for word; do
        if ! grep -qxF -- "$word" "$OUT"; then
            fail "$name" "not offered behind \`$line\`: $word"
            return
        fi
    done
    pass "$name"
}
only() { # SHELL NAME LINE WORD...: these and nothing else
    local shell=$1 name="$1: $2" line=$3
    shift 3
    is "$name" "$("${shell}_offers" "$line" | tr '\n' ' ')" "$(printf '%s\n' "$@" | sort | tr '\n' ' ')"
}

for shell in bash fish zsh; do
    if ! type -P "$shell" >/dev/null; then
        skip "$shell" "no $shell here"
        continue
    fi
    only "$shell" 'commands alone come first' 'hnlaunch ' $("$HNLAUNCH" help table | awk -F'\t' '$1 == "command" { print $2 }')
    offers "$shell" 'programs when no command fits' 'hnlaunch mkfif' mkfifo
    only "$shell" 'runs that go on' 'hnlaunch stop ' "$running"
    only "$shell" 'all runs' 'hnlaunch logs ' "$ended" "$running"
    only "$shell" 'holds' 'hnlaunch release ' fake1
    only "$shell" 'an option of a command' 'hnlaunch logs --fo' --fold --follow
    only "$shell" 'also behind the run' "hnlaunch logs $ended --fo" --fold --follow
    only "$shell" 'one option' 'hnlaunch --max' --max-restarts
    offers "$shell" 'values of an option' 'hnlaunch --map ' slot node
    only "$shell" 'only those that fit' 'hnlaunch --local 2 --map n' node
    offers "$shell" 'values beside variables' 'hnlaunch --export A' ALL ALONE_IN_TEST
    offers "$shell" 'values beside files' 'hnlaunch --stdin ' none hosts.txt
    offers "$shell" 'after a command, too' 'hnlaunch plan --host' --hostfile --hosts --host-key
    offers "$shell" 'topics' 'hnlaunch help ' hostfile env exit config
    only "$shell" 'error numbers' 'hnlaunch explain HN50' HN501 HN502 HN503 HN504
    offers "$shell" 'exit codes' 'hnlaunch explain HN502 7' 73 77
    offers "$shell" 'files' 'hnlaunch -H ' hosts.txt
    offers "$shell" 'job files' 'hnlaunch plan --job ' hosts.txt
    only "$shell" 'roles of the line' 'hnlaunch --role trainer ./train : --role=infer ./serve : --role router --on ' infer router trainer
    only "$shell" 'and of the job file' 'hnlaunch plan --job roles.ini --on t' trainer
    only "$shell" 'options of another role' 'hnlaunch --role trainer ./train : --share' --share-gpus
    only "$shell" 'behind ROLE:INDEX, too' 'hnlaunch --role a ./train : --role b --on a:0 ./x : --role c --on ' a b c
    "${shell}_offers" 'hnlaunch --role trainer ./train --sha' >"$OUT"
    lacks "$shell: not behind the program of a role" "$OUT" --share-gpus
    only "$shell" 'folders' 'hnlaunch --chdir f' "folder$([[ $shell == fish ]] && echo /)"
    only "$shell" 'variables' 'hnlaunch -x ALONE_IN_T' ALONE_IN_TEST
    only "$shell" 'configuration keys' 'hnlaunch -o run.max' "run.max_restarts$([[ $shell == zsh ]] || echo '=')"
    only "$shell" 'values of a key' 'hnlaunch -o run.map=' $([[ $shell == fish ]] && echo run.map=slot run.map=node || echo slot node)
    only "$shell" 'of a key that has no option' 'hnlaunch plan -o net.store_peers=n' "$([[ $shell == fish ]] && echo net.store_peers=)node"
    only "$shell" 'of a switch' 'hnlaunch -o run.subst=' $([[ $shell == fish ]] && echo run.subst=yes run.subst=no || echo yes no)
    only "$shell" 'keys for config' 'hnlaunch config run.max' run.max_restarts
    only "$shell" 'every key' 'hnlaunch config ' $("$HNLAUNCH" help table | awk -F'\t' '$1 == "option" && $6 { print $6 } $1 == "key" { print $2 }')
    only "$shell" 'more of them, and behind options' 'hnlaunch config -q run.np net.store_s' net.store_size
    offers "$shell" 'or a program' 'hnlaunch config mkfif' mkfifo
    offers "$shell" 'programs' 'hnlaunch --local 2 mkfif' mkfifo
    offers "$shell" 'files for the program behind a key' 'hnlaunch -o run.np=2 cat ho' hosts.txt
    offers "$shell" 'files for the program' 'hnlaunch -H hosts.txt cat ho' hosts.txt
    "${shell}_offers" 'hnlaunch -H hosts.txt cat --loc' >"$OUT"
    lacks "$shell: no option of hnlaunch behind the program" "$OUT" --local
    for command in $("$HNLAUNCH" help table | awk -F'\t' '$1 == "command" { print $2 }'); do
        # Two dashes first: a dash alone means letters to some shells.
        line="hnlaunch $([[ $command == run ]] || echo "$command ")"
        { "${shell}_offers" "$line--" && "${shell}_offers" "$line-"; } |
            sed 's/=$//' | grep -xE -- '-[a-zA-Z]|--[a-z-]+' | sort -u >"$OUT"
        is "$shell: every option of $command" "$(comm -23 <(options_of $command) "$OUT" | tr '\n' ' ')" ''
        is "$shell: and none besides" "$(comm -13 <(options_of $command) "$OUT" | tr '\n' ' ')" ''
    done
    only "$shell" 'a value behind =' 'hnlaunch --color=al' "$([[ $shell == fish ]] && echo --color=)always"
done

hosts=/usr/share/bash-completion/bash_completion
if [[ -f $hosts ]]; then
    is 'bash: hosts of ~/.ssh/config' "$(bash_offers 'hnlaunch -w gpu-' "$hosts" | tr '\n' ' ')" 'gpu-alpha gpu-beta '
    is 'bash: more of them' "$(bash_offers 'hnlaunch -w gpu-alpha,gpu-b' "$hosts")" gpu-alpha,gpu-beta
    is 'bash: the completion of the program itself' "$(bash_offers 'hnlaunch -w gpu-alpha dd sta' "$hosts")" 'status='
else
    skip 'bash: hosts of ~/.ssh/config' 'no bash-completion here'
fi
type -P fish >/dev/null && offers fish 'hosts of ~/.ssh/config' 'hnlaunch -w gpu-alpha,gpu-' gpu-alpha,gpu-beta
type -P zsh >/dev/null && offers zsh 'hosts of ~/.ssh/config' 'hnlaunch -w gpu-alpha,gpu-' gpu-beta
kill -TERM "$started" "$fake"
done_testing
