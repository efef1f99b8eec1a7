#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The table of ssh_config's keywords has every keyword that the ssh of this machine knows, and hnlaunch-ssh(5) lists the
# table: each keyword in the list of what happens with it, with the same reason.
. "$(dirname "$0")/../lib/tap.sh"

cd "$ROOT" || exit
python3 - >"$TMP/lists" <<'END'
import re
source = open('src/head/ssh/files/ssh_keywords.c').read()
table = source[source.index('keywords[] = {'):source.index('} aliases[]')]
manual = open('docs/hnlaunch-ssh.5.scd').read()
manual = manual[manual.index('\n# DESCRIPTION\n') + 1:manual.index('\n# SEE ALSO\n')]
parts = dict(zip(('intro', 'obeyed', 'refused', 'told', 'aside', 'harmless'), re.split(r'\n# .*\n', manual)))

def compare(name, table_side, manual_side):
    for what, left, right in (('not in the manual', table_side, manual_side), ('not in the table', manual_side, table_side)):
        for keyword in sorted(set(left) - set(right)):
            print(name, what + ':', keyword)

def bullets(text):
    """{keyword: reason} of "- *A*, *B*: reason" """
    found = {}
    for item in re.findall(r'^- (.*(?:\n  .*)*)', text, re.M):
        names, reason = ' '.join(item.split()).split(': ', 1)
        for keyword in re.findall(r'\*(\w+)\*', names):
            found[keyword] = reason
    return found

obeyed = re.findall(r'\b(?:OBEYED|CHOSEN)\("(\w+)"', table)
compare('obeyed', obeyed, re.findall(r'\*(\w+)\*', parts['obeyed']))
for name in ('refused', 'told', 'aside', 'harmless'):
    rows = re.findall(r'\b%s\("(\w+)", [^;]*?"([^"]*)"(?:, (?:NULL|"[^"]*"))?\),\n' % name.upper(), table)
    rows = dict(rows)
    if name == 'harmless':
        rows['StrictHostKeyChecking'] = re.search(r'"StrictHostKeyChecking".*\n? .*?"(host keys[^"]*)"', table).group(1)
    listed = bullets(parts[name])
    compare(name, rows, listed)
    for keyword in set(rows) & set(listed):
        if not listed[keyword].startswith(rows[keyword]):
            print(name, keyword + ':', listed[keyword], '<>', rows[keyword])
    if len(rows) < 4:
        print(name, 'has only', len(rows))
END
is 'hnlaunch-ssh(5) lists the table of keywords' "$(cat "$TMP/lists")" ''

grep -oE '"[A-Za-z0-9]+"' src/head/ssh/files/ssh_keywords.c | tr -d '"' | tr '[:upper:]' '[:lower:]' | sort -u >"$TMP/table"

missing() { tr '[:upper:]' '[:lower:]' | sort -u | comm -23 - "$TMP/table"; }

if type -P ssh >/dev/null; then
    ssh -G -F none somewhere >"$TMP/known" 2>/dev/null </dev/null
    ok 'ssh -G prints its keywords' test "$(wc -l <"$TMP/known")" -gt 50
    is 'every keyword of ssh -G is in the table' "$(cut -d' ' -f1 "$TMP/known" | missing)" ''
else
    skip 'every keyword of ssh -G is in the table' 'no ssh here'
fi

page=$(man -w 5 ssh_config 2>/dev/null)
if [[ -f $page ]]; then
    zcat -f "$page" | sed '/^\.Sh PATTERNS/,$d' | sed -n '/^\.Sh DESCRIPTION/,$s/^\.It Cm \([A-Za-z0-9]*\).*/\1/p' >"$TMP/page"
    ok 'ssh_config(5) has keywords' test "$(wc -l <"$TMP/page")" -gt 50
    # Kinds of channels and criteria are items there, too.
    is 'every keyword of ssh_config(5) is in the table' "$(grep -vxE 'agent|direct|forwarded|session|tun|x11' "$TMP/page" | missing)" ''
else
    skip 'every keyword of ssh_config(5) is in the table' 'no such page here'
fi
done_testing
