#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# --warm of a hold needs an interpreter and names of modules.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh" || exit 1

for value in python3 python3: :torch 'python3:a,' 'python3:a,,b' 'python3:a;b'; do
    hn hold -w nowhere.invalid --warm "$value"
    exits "--warm $value is refused" 64
    has "--warm $value: with its number" "$ERR" 'error[HN640]'
    has "--warm $value: with an example" "$ERR" 'name both, as in --warm python3:torch,numpy'
done
hn --warm python3:torch -w nowhere.invalid true
exits 'a run has no --warm' 64
mkdir "$XDG_CONFIG_HOME/hnlaunch"
printf '[run]\nhold_warm = python3:torch\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn config run.hold_warm
has 'the key is shown' "$OUT" 'python3:torch'
done_testing
