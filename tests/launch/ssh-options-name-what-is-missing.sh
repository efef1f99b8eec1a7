#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A file or program that an ssh option names and that is not there is told with the option's name.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

hn_exits 'no such config: 66' 66 --ssh-config nope -w node1 true
has 'the option is named' "$ERR" 'error[HN212]: cannot read the --ssh-config file nope: No such file or directory'
verdict_has 'nothing was started' 'nothing was started'
hn_exits "the same for the site's ssh" 66 --ssh-command ssh --ssh-config nope -w node1 true
hn_exits 'a launch without ssh does not need it' 0 --ssh-config nope --local 1 true

hn_exits 'no such ssh program: 127' 127 --ssh-command sssh -w 'node[1-4]' true
has 'it is named' "$ERR" "error[HN213]: cannot start the ssh program \`sssh\`: not found in PATH"
has 'and the option' "$ERR" '--ssh-command'
hn_exits 'not there by its path' 127 --ssh-command './sssh -v' -w node1 true
has 'the reason is told' "$ERR" "cannot start the ssh program \`./sssh\`: No such file or directory"
: >sssh
((EUID == 0)) || chmod 000 sssh
hn_exits 'one that cannot be executed: 126' 126 --ssh-command './sssh -v' -w node1 true

way=(--ssh-command "sh -c 'exec $HNLAUNCH-agent' --" -w node1)
hn_exits 'a key that is not there ends nothing' 0 --identity nope "${way[@]}" true
has 'it is warned of' "$ERR" 'warning[HN214]: cannot read the --identity file nope: No such file or directory'
: >half.pub
: >whole
hn --identity half --identity whole "${way[@]}" true
lacks 'a key that is there, or in an ssh-agent, is not' "$ERR" HN214
nothing_left 'nothing is left'
done_testing
