#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Writes the manual page of all error numbers from `hnlaunch help table`, the one list of them.

usage: errors.py TEMPLATE < TABLE > hnlaunch-errors.7.scd

The template has what does not depend on the numbers, and a line of @ERRORS@ and one of @EXITS@.
"""
import re
import sys


def prose(text):
    """Text as scdoc prints it: letters that would be markup are escaped."""
    return re.sub(r"^-|[\\*_#`~<>\[\]]", lambda mark: "\\" + mark.group(0), text)


def entry(name, meaning, cause, remedy):
    return f"*{prose(name)}*\n\t{prose(meaning)}\n\n\tCause: {prose(cause)}\n\n\tRemedy: {prose(remedy)}\n"


def main():
    rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
    parts = {"ERRORS": [], "EXITS": []}
    title = None
    for kind, *fields in rows:
        if kind == "error":
            if fields[4] != title:
                title = fields[4]
                parts["ERRORS"].append(f"## {prose(title)}\n")
            parts["ERRORS"].append(entry(*fields[:4]))
        elif kind == "exit":
            parts["EXITS"].append(entry(*fields[:4]))
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    for name, part in parts.items():
        if f"@{name}@\n" not in text or not part:
            sys.exit(f"{sys.argv[1]}: no place for {name}, or none in the table")
        text = text.replace(f"@{name}@\n", "\n".join(part))
    sys.stdout.write(text)


main()
