#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules for names and sizes in src/ that tests/layers.sh checks: each prints its violations, a line each.

usage: names.py statics | structs | fields | private | numbers | options

  statics   static functions have at least two words and exist once (exempt: on_* and tick)
  structs   struct names exist once
  fields    a struct has at most 20 fields (exempt: struct options, the mirror of the option table)
  private   a header *_private.h is included by its own room only, and by at most six files (exempt: launch_private.h, the
            state that the steps of a launch pass on, one file a step)
  numbers   errors, warnings and exit codes are named as in base/error_number.h and base/exit_code.h: calls have no
            number, and no file an enum of its own
  options   the table of options, which frees the texts and lists of struct options, has each of them
"""
import collections
import pathlib
import re
import sys

FIELDS, INCLUDERS = 20, 6
FILES = sorted(p for p in pathlib.Path("src").rglob("*") if p.suffix in (".c", ".h", ".cc"))
FUNCTION = re.compile(r"^static (?!inline\b)[^=;{}()]*?\b(\w+)\((?:[^;{}]|\n)*?\)\s*\{", re.M)


def plain(path):
    """The text of @path without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    text = re.sub(r"\\bPRINTF\\([^)]*\\)", "", text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"\bPRINTF\([^)]*\)", "", text)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)


def statics():
    places = collections.defaultdict(set)
    for path in FILES:
        for name in FUNCTION.findall(plain(path)):
            places[name].add(str(path))
    for name, files in sorted(places.items()):
        if name.startswith("on_") or name == "tick":
            continue
        if "_" not in name:
            yield f"{name} says not enough: {' '.join(sorted(files))}"
        if len(files) > 1:
            yield f"{name} exists in {' '.join(sorted(files))}"


def bodies():
    """Yields (name, file, number of fields) of each struct."""
    for path in FILES:
        text = plain(path)
        for m in re.finditer(r"\bstruct (\w+) \{", text):
            depth, paren, fields, i = 1, 0, 0, m.end()
            while depth:
                c = text[i]
                depth += (c == "{") - (c == "}")
                if depth == 1:
                    paren += (c == "(") - (c == ")")
                    fields += c in ";," and not paren
                i += 1
            yield m[1], str(path), fields


def structs():
    places = collections.defaultdict(list)
    for name, path, _ in bodies():
        places[name].append(path)
    return (f"struct {name} exists in {' '.join(paths)}" for name, paths in sorted(places.items()) if len(paths) > 1)


def fields():
    return (f"struct {name} has {n} fields: {path}" for name, path, n in bodies() if n > FIELDS and name != "options")


def private():
    for header in FILES:
        if header.name.endswith("_private.h"):
            line = f'#include "{header.relative_to("src")}"'
            users = [p for p in FILES if line in p.read_text()]
            yield from (f"{p} includes {header} of another room" for p in users if p.parent != header.parent)
            if len(users) > INCLUDERS and header.name != "launch_private.h":
                yield f"{header} is included by {len(users)} files"


CALLS = r"\b(?:diag_add|diag_warn|range_error_set|verdict_nothing_because)\([^,()]+,"
EXITS = r"(?:6[4-9]|7[0-8]|12[4-7])"
NUMBER = re.compile(rf"\blog_warning\(\s*[1-9]|{CALLS}\s*[1-9]|{CALLS}[^,()]+,\s*{EXITS}\b|\bHN_[A-Z0-9_]+ = \d{{3}}\b"
                    rf"|\b(?:verdict_nothing_started\(l, |_exit\(|return |code = |rc = |EX_[A-Z]+ = ){EXITS}\s*[;,)]")


def numbers():
    for path in FILES:
        if path.name not in ("error_number.h", "exit_code.h"):
            for m in NUMBER.finditer(plain(path)):
                yield f"{path}: {' '.join(m[0].split())}"


def options():
    text = plain(pathlib.Path("src/head/options/options.h"))
    table = pathlib.Path("src/head/options/option_table.c").read_text()
    freed = {name.split(".")[-1] for name in re.findall(r"\b(?:FIELD|SECOND)\(([\w.]+)\)", table)} | {"line"}
    for names in re.findall(r"^ +(?:char|struct (?:strv|intlist)) ([^;()]+);", text, re.M):
        for name in names.replace("*", "").split(","):
            if name.strip() not in freed:
                yield f"src/head/options/option_table.c: no row has the field {name.strip()}"


for violation in {"statics": statics, "structs": structs, "fields": fields, "private": private,
                  "numbers": numbers, "options": options}[sys.argv[1]]():
    print(violation)
