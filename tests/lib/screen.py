# SPDX-License-Identifier: Apache-2.0
#
# What a person sees of the bytes on stdin, on a terminal of so many columns that is very long:
# carriage returns, newlines, lines up, erased lines, and lines that wrap. Colours are left out.
#
#   python3 screen.py COLUMNS <bytes
import re
import sys
import unicodedata

columns = int(sys.argv[1])
lines, at, row = [[]], 0, 0


def newline():
    global row
    row += 1
    if row == len(lines):
        lines.append([])


def put(c):
    global at, row
    wide = 2 if unicodedata.east_asian_width(c) in "WF" else 1
    if at + wide > columns:
        newline()
        at = 0
    line = lines[row]
    line.extend(" " * (at - len(line)))
    line[at : at + wide] = [c] + [""] * (wide - 1)
    at += wide


text = sys.stdin.buffer.read().decode("utf-8", "replace")
for c in re.findall(r"\033\[[0-9;]*[A-Za-z]|.", text, re.DOTALL):
    if c == "\r":
        at = 0
    elif c == "\n":
        newline()
    elif c == "\033[K":
        del lines[row][at:]
    elif c == "\033[A":
        row -= 1
    elif not c.startswith("\033"):
        put(c)
for line in lines[:-1] if not lines[-1] else lines:
    print("".join(line).rstrip())
