#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules for names and sizes in src/ that tests/layers.sh checks: each prints its violations, a line each.

usage: names.py statics | exports | structs | fields | private | numbers | options | nested | opaque | openings | pronouns | prove

  statics   static functions have at least two words and exist once (exempt: on_* and tick)
  exports   a function of a header is used outside of its own file, if only by a test (exempt: PUBLIC, and those of macros)
  structs   struct names exist once
  fields    a struct has at most 20 fields (exempt: struct options, the mirror of the option table)
  private   a header *_private.h is included by its own room only, and by at most six files (exempt: launch_private.h, the
            state that the steps of a launch pass on, one file a step)
  numbers   errors, warnings and exit codes are named as in base/error_number.h and base/exit_code.h: calls have no
            number, and no file an enum of its own
  options   the table of options, which frees the texts and lists of struct options, has each of them
  nested    a struct has at most 60 fields with those of the structs in it (exempt: those of struct options)
  opaque    a struct with more than 8 fields is defined in no header that files of more than three rooms include (exempt: DATA)
  openings  a .c above 150 lines opens with a comment of how it works
  pronouns  comments of a room have at most 40 pronouns per 1,000 words
  prove     the last four find violations in a tree made for them
"""
import collections
import os
import pathlib
import re
import sys
import tempfile

FIELDS, INCLUDERS = 20, 6
FILES = sorted(p for p in pathlib.Path("src").rglob("*") if p.suffix in (".c", ".h", ".cc"))
FUNCTION = re.compile(r"^static (?!inline\b)[^=;{}()]*?\b(\w+)\((?:[^;{}]|\n)*?\)\s*\{", re.M)


def plain(path):
    """The text of @path without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
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


PROTOTYPE = re.compile(r"^(?!static|typedef|extern|PUBLIC)\w[\w *]*?\b(\w+)\([^;{}]*\)[^;{}()]*;", re.M)
DEFINITION = re.compile(r"^(?!static)\w[\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)


def exports():
    users, home = collections.defaultdict(set), {}
    for path in [*FILES, *(p for p in pathlib.Path("tests").rglob("*") if p.suffix in (".c", ".h"))]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for word in set(re.findall(r"\w+", text)):
            users[word].add(path)
        if path.suffix == ".c" and path in FILES:
            home.update((name, path) for name in DEFINITION.findall(text))
    for header in (p for p in FILES if p.suffix == ".h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for name in PROTOTYPE.findall(text):
            if name in home and users[name] <= {header, home[name]} and len(re.findall(rf"\b{name}\b", text)) == 1:
                yield f"{header}: {name}() is used by {home[name].name} alone"


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


NESTED_MOST = 60


def members(body):
    """Yields (name of the struct, how many) for each member; "" for other types, a tuple of members for one without a name."""
    i = 0
    while i < len(body):
        j, depth = i, 0
        while j < len(body) and (body[j] != ";" or depth):
            depth += (body[j] in "{(") - (body[j] in "})")
            j += 1
        member, i = body[i:j].strip(), j + 1
        inner = re.match(r"(?:const )?(?:struct|union)\s*\w*\s*\{(.*)\}", member, re.S)
        value = re.match(r"(?:const )?struct (\w+)\s+\w[^*(]*$", member, re.S)
        if inner:
            yield from members(inner[1])
        elif member:
            yield (value[1] if value else ""), 1 + re.sub(r"\(.*\)", "", member, flags=re.S).count(",")


def definitions():
    """Yields (name, file, body) of each struct."""
    for path in FILES:
        text = plain(path)
        for m in re.finditer(r"\bstruct (\w+) \{", text):
            depth, i = 1, m.end()
            while depth:
                depth += (text[i] == "{") - (text[i] == "}")
                i += 1
            yield m[1], path, text[m.end():i - 1]


def nested():
    known = {name: list(members(body)) for name, _, body in definitions()}

    def count(name):
        return sum(n * max(1, count(of) if of in known and of not in (name, "options") else 1) for of, n in known[name])

    for name in sorted(known):
        n = count(name)
        if name != "options" and n > NESTED_MOST:
            yield f"struct {name} has {n} fields with those of the structs in it"


# Read field by field in more than three rooms, with the reason.
DATA = set((
    "hello launch_order exited node_status_rank inspect_order inspected check_order sample store_request store_reply "  # messages, encoded field by field
    "options setting ssh_options "  # what the user wrote
    "host event cause outcome rank_board_row link_failure proc_stat "  # facts without rules of their own
    "uplink"  # attempts hold it by value, and read whether it is lost
).split())


def opaque():
    rooms = collections.defaultdict(set)
    for path in FILES:
        for header in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            rooms[f"src/{header}"].add(path.parent)
    for name, path, body in definitions():
        n = sum(k for _, k in members(body))
        readers = rooms[str(path)] - {path.parent}
        if path.suffix == ".h" and n > 8 and len(readers) > 3 and name not in DATA:
            yield f"struct {name} of {path} has {n} fields, and files of {len(readers)} other rooms include it"


def comments(path):
    return re.findall(r"/\*(?! SPDX)(.*?)\*/", path.read_text(), re.S)


def openings():
    for path in FILES:
        text = path.read_text()
        start = re.sub(r"^/\* SPDX[^\n]*\n", "", text).lstrip()
        if path.suffix == ".c" and text.count("\n") > 150 and not start.startswith("/*"):
            yield f"{path} does not say how it works"


PRONOUNS = set("who whom whoever whose those it its that what such one ones them they he his".split())


def pronouns():
    words = collections.defaultdict(list)
    for path in FILES:
        for comment in comments(path):
            words[path.parent.relative_to("src").as_posix()] += re.findall(r"[a-z']+", comment.lower())
    for room, said in sorted(words.items()):
        n = round(1000 * sum(w in PRONOUNS for w in said) / max(1, len(said)))
        if len(said) >= 200 and n > 40:
            yield f"src/{room} has {n} pronouns per 1,000 words of comments, 40 are allowed"


def prove():
    """Makes a tree with one violation of each rule, and yields the rules that miss it."""
    global FILES
    many = " ".join(f"int f{i};" for i in range(20))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for room in "abcde":
            pathlib.Path(f"src/{room}").mkdir(parents=True)
            pathlib.Path(f"src/{room}/{room}.c").write_text('#include "a/a.h"\n' + "int x;\n" * 160)
        pathlib.Path("src/a/a.h").write_text(
            f"struct small {{ {many} }};\nstruct big {{ struct small a, b, c, d; }};\n/* {'those of them ' * 80} */\n")
        FILES = sorted(p for p in pathlib.Path("src").rglob("*.[ch]"))
        for rule in nested, opaque, openings, pronouns:
            if not list(rule()):
                yield f"{rule.__name__} finds nothing"


RULES = {rule.__name__: rule for rule in (statics, exports, structs, fields, private, numbers, options, nested, opaque, openings, pronouns,
                                          prove)}
if __name__ == "__main__":
    for violation in RULES[sys.argv[1]]():
        print(violation)
