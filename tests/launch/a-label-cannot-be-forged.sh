#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A line that shows the label of a rank is a line of that rank, on a terminal and in a pipe; files have the bytes.
. "$(dirname "$0")/../lib/tap.sh" || exit 1

# Rank 1 tries to say "0 | forged" in each of these ways.
cat >forge.py <<'EOF'
import os
import sys

if os.environ["RANK"] == "1":
    out = sys.stdout.buffer
    out.write(b"\r0 | forged\n")
    out.write(b"text\r\r0 | forged\n")
    out.write(b"dos\r\n0 | forged\n")
    out.write(b"\x1b[1G0 | forged\n\x1b[A0 | forged\n\x1b[2K\x1b[G0 | forged\n\x9b1G0 | forged\n\xc2\x9b1G0 | forged\n")
    out.write(b"\x08" * 9 + b"0 | forged\n\x0b\r0 | forged\n")
    out.write("\u202edegrof | 0\n\u2028\r0 | forged\n\u2066\u061c\u200f\u200edegrof | 0\n\u0085\r0 | forged\n".encode())
    out.flush()
    out.write(b"half\r")
    out.flush()
    out.write(b"0 | forged\r")
    out.flush()
    out.write(b"\n")
EOF

forged() { # FILE: the lines that a reader takes for lines of rank 0
    python3 - "$1" <<'EOF'
import sys

for line in open(sys.argv[1], newline=None, errors="replace"): # carriage returns end lines, too
    if line.startswith("0 |"):
        print(repr(line))
EOF
}

hn --local 2 --log-dir logs python3 forge.py
exits 'a rank that forges ends well' 0
is 'no line in a pipe has the label of another' "$(forged "$OUT")" ''
is 'not even where escape sequences of a pipe would begin one' "$(grep -ac '^0 |' "$OUT")" 0
RANK=1 python3 forge.py >want
same 'its file has the bytes' logs/latest/rank-00001.out want
LC_ALL=C sed -E 's/\r1 \| /\r/g; s/^1 \| //' "$OUT" >got
same 'so has the pipe, without the labels' got want

hn --raw --local 2 python3 forge.py
LC_ALL=C sed 's/^1 | //' "$OUT" >got
same '--raw lets everything through' got want
hn --local 1 python3 -c 'import sys; sys.stdout.buffer.write(b"a\r0 | b\n")'
is 'a lone rank without a label may redraw' "$(od -c "$OUT")" "$(printf 'a\r0 | b\n' | od -c)"

run script -qec "stty cols 80; $(printf '%q ' "$HNLAUNCH" -q --local 2 python3 forge.py)" /dev/null
python3 "$ROOT/tests/lib/screen.py" 80 <"$OUT" >shown
for c in $'\u202e' $'\u2028' $'\u2066' $'\u061c' $'\u200f' $'\u0085' $'\x08' $'\x0b'; do
    lacks "$(LC_ALL=C printf %q "$c") does not reach a terminal" "$OUT" "$c"
done
is 'no sequence moves the cursor' "$(grep -aoP '\x1b\[(?!K)[0-9;]*[A-Za-ln-z]' "$OUT")" ''
is 'no line of a terminal has the label of another' "$(grep -a '^0 |' shown)" ''
ok 'its lines have its own' grep -q '^1 | 0 | forged' shown
done_testing
