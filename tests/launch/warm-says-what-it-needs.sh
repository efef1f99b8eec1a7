#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --warm of a hold needs an interpreter and names of modules.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

refuses() { # REASON VALUE...
    local reason=$1 value
    shift
    for value; do
        hn hold -w nowhere.invalid --warm "$value"
        exits "--warm $value is refused" 64
        has "--warm $value: with the reason" "$ERR" "error[HN640]: --warm $reason: \`$value\`"
        has "--warm $value: with an example" "$ERR" 'as in --warm python3:torch,numpy'
    done
}
refuses 'has no interpreter and modules' python3 python3: :torch
refuses 'has an empty name of a module' 'python3:a,' 'python3:a,,b' 'python3:,a'
refuses 'has a name that no module can have' 'python3:a;b' "python3:$(printf 'a%.0s' {1..300})"
hn --warm python3:torch -w nowhere.invalid true
exits 'a run has no --warm' 64
mkdir "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nhold_warm = python3:torch\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn config run.hold_warm
has 'the key is shown' "$OUT" 'python3:torch'
done_testing
