#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every HN number and every exit code of the sources has an explanation and none is explained that they lack;
# `hnlaunch explain` prints each; tests name each number.
. "$(dirname "$0")/../lib/tap.sh"

"$HNLAUNCH" help table >all-numbers
awk -F'\t' '$1 == "error" { print $2 }' all-numbers | sort -u >listed
awk -F'\t' '$1 == "exit" { print $2 }' all-numbers | sort -u >exits

# The numbers of base/error_number.h, and those whose names the sources use outside of comments and strings.
find "$ROOT/src/head" "$ROOT/src/agent" -name '*.[ch]' ! -name error_ids.c -print0 | sort -z | xargs -0 cat >sources.c
sed -nE 's/^ +(HN_[A-Z0-9_]+) = ([0-9]{3}),$/\1 HN\2/p' "$ROOT/src/base/error_number.h" | sort >numbers
awk '{ print $2 }' numbers | sort -u >defined
python3 - sources.c numbers <<'END' | sort -u >used
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
text = re.sub(r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", " ", text, flags=re.S)
words = set(re.findall(r"\bHN_[A-Z0-9_]+", text))
print("\n".join(number for name, number in (line.split() for line in open(sys.argv[2])) if name in words))
END
is 'every number of base/error_number.h is explained' "$(comm -13 listed defined | xargs)" ''
is 'no number is explained that it lacks' "$(comm -23 listed defined | xargs)" ''
is 'no number is explained that the sources lack' "$(comm -23 listed used | xargs)" ''
ok 'these are all the numbers that there are' test "$(wc -l <listed)" -ge 100

grep -rhoE 'HN[1-9][0-9]{2}\b' "$ROOT/tests" --include='*.sh' --include='*.c' --include='*.py' \
    --exclude="${0##*/}" | sort -u >named
is 'a test names each number' "$(comm -23 listed named | xargs)" ''

# The exit codes whose names the head uses.
find "$ROOT/src/head" -name '*.[ch]' ! -name error_ids.c -print0 | sort -z | xargs -0 cat >sources.c
python3 - sources.c "$ROOT/src/base/exit_code.h" <<'END' | sort -u >codes
import os
import re
import sys

text, own = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
numbers = {name: int(n) for name, n in re.findall(r"\b(EX_[A-Z_]+) = (\d+)", own)}
numbers |= {name: getattr(os, name) for name in dir(os) if name.startswith("EX_")}
print("\n".join(str(numbers[name]) for name in set(re.findall(r"\bEX_[A-Z_]+\b", text))))
END
sed -i 's/^128$/128+N/' codes
printf '%s\n' 0 141 other >>codes
sort -o codes -u codes
is 'every exit code of the sources is explained' "$(comm -13 exits codes | xargs)" ''
is 'no exit code is explained that the sources lack' "$(comm -23 exits codes | xargs)" ''

# --- hnlaunch explain
mapfile -t numbers <listed
hn_exits 'all numbers are printed: 0' 0 explain "${numbers[@]}"
is 'each with its number' "$(grep -oE '^HN[0-9]+: .' "$OUT" | wc -l)" "${#numbers[@]}"
is 'each with a cause and a remedy' "$(grep -cE '^  (cause|remedy): +[^ ]' "$OUT")" $((2 * ${#numbers[@]}))
hn_exits 'all exit codes are printed: 0' 0 explain {0..255}
is 'one for each' "$(grep -c '^exit code [0-9]' "$OUT")" 256
ok 'no line is wider than the terminal' awk 'length > 80 { exit 1 }' "$OUT"
hn explain 137
has 'a code of a signal names it' "$OUT" 'exit code 137 (128 + SIGKILL): '
hn explain 124
has 'a number up to 255 is an exit code' "$OUT" 'exit code 124: --timeout passed'
has 'the error of the same number is named' "$OUT" 'hnlaunch explain HN124'
for word in HN502 hn502 502; do
    hn explain "$word"
    has "$word is an error number" "$OUT" 'HN502: a rank exited with a code other than 0'
done
hn_exits 'without a number: 0' 0 explain
is 'every number is listed with its meaning' "$(grep -oE '^  HN[0-9]+  [^ ]' "$OUT" | wc -l)" "${#numbers[@]}"
hn_exits 'an unknown number: 64' 64 explain HN520
has 'it is told with a number' "$ERR" 'error[HN718]: there is no error or exit code `HN520`'
has 'numbers near it are named' "$ERR" 'numbers near it: HN5'
for word in 256 300 HN HN124x 77x -1; do
    hn_exits "explain $word: 64" 64 explain -- "$word"
done
hn explain --json HN502 77 139
ok '--json prints one object' python3 - "$OUT" <<'END'
import json
import sys

said = json.load(open(sys.argv[1], encoding="utf-8"))
assert said["v"] == 1
assert [e["hn"] for e in said["errors"]] == ["HN502"] and [e["code"] for e in said["exits"]] == [77, 139]
assert all(e[name] for e in said["errors"] + said["exits"] for name in ("meaning", "cause", "remedy"))
END
mkdir -p "$XDG_CONFIG_HOME/hnlaunch"
printf '[run\n' >"$XDG_CONFIG_HOME/hnlaunch/config.ini"
hn_exits 'a wrong configuration does not keep an explanation back' 0 explain HN713
hn help exit
is 'help exit has every code' "$(grep -cE '^ *([0-9]+|128\+N|other)  ' "$OUT")" "$(wc -l <exits)"
done_testing
