#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the messages of src/wire/msg_type.h with docs/protocol.md: numbers, names, direction, states, and the types
of all fields in their order; and with the tables of handlers of head and agent.

In a row of the table fields are separated by commas. A field without a type has that of the field before it; a list of
several fields has them in braces. Explanations stand in parentheses or behind the first semicolon.

usage: protocol.py            prints each difference
"""
import pathlib
import re

WIRE = pathlib.Path("src/wire")
# Their fields depend on a kind, or are written without a coder: the table tells them in sentences.
IN_SENTENCES = {"WORLD", "SIGNAL", "STOP", "STDIN", "PING", "PONG", "BYE", "STATUS_REQUEST", "PRUNE", "PORTS", "SAMPLE", "RECORD", "GONE",
                "LEAVING", "REPORT", "RANK_READY", "STATUS", "TAKEN", "PING_REQUEST", "RECORDED", "STORE", "TUNNEL"}
CALLS = {"u8": "u8", "bool": "u8", "u32": "u32", "u64": "u64", "varint": "number", "raw": "raw", "text": "string",
         "str": "string", "rest": "bytes"}


def read_coders():
    """Returns the coders by name: a list of types; a list is ("list", types)."""
    text = "".join(p.read_text() for p in sorted(WIRE.glob("*.c")))
    bodies = dict(re.findall(r"^static void code_(\w+)\(struct codec \*c, [^)]*\)\n\{\n(.*?)^\}", text, re.M | re.S))

    def types_of(name):
        found = []
        for line in bodies[name].splitlines():
            if m := re.search(r"CODEC_ARRAY\(.*code_(\w+)\)", line):
                found.append(("list", types_of(m[1])))
            elif re.search(r"codec_(strv|u32_array)\(c", line):
                found.append(("list", ["string" if "strv" in line else "u32"]))
            elif m := re.search(r"codec_(\w+)\(c, ", line):
                if m[1] in CALLS:
                    found.append(CALLS[m[1]])
            elif m := re.search(r"code_(\w+)\(c, ", line):
                found.extend(types_of(m[1]))
        return found

    messages = re.findall(r"^DEFINE_\w+\((?:\w+, )?(\w+), MSG_(\w+)\)", text, re.M)
    coders = {number: types_of(name) for name, number in messages}
    coders["COMMON"] = types_of("common")
    return coders


def split_fields(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += {"{": 1, "}": -1}.get(c, 0)
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in parts if p]


def read_fields(text):
    """Returns the types of a row's body."""
    while (cut := re.sub(r"\s*\([^()]*\)", "", text)) != text:
        text = cut
    types, last = [], None
    for field in split_fields(text.split(";")[0]):
        if m := re.search(r"\blist of \{(.*)\}", field):
            last = ("list", read_fields(m[1]))
        elif m := re.search(r"\blist(?: of (u32|string))?\b", field):
            last = ("list", [m[1] or "string"])
        elif re.search(r"\b\d+ bytes\b", field):
            last = "raw"
        elif m := re.search(r"\b(u8|u32|u64|string|bytes|number)\b", field):
            last = m[1]
        types.append(last)
    return types


def read_types():
    """Returns number, direction and states by name."""
    text = (WIRE / "msg_type.h").read_text()
    return {name: (int(n), sender.lower(), states.lower())
            for name, n, sender, states in re.findall(r"\bX\((\w+), (\d+), (\w+), (\w+)\)", text)}


def compare_turns(types, doc):
    """Compares the states in which an agent may send a message."""
    table = doc.split("\n## Turns\n")[1].split("\n## ")[0]
    said = {name: states for names, states in re.findall(r"^\| ([A-Z_, ]+) \| (\w+) \|", table, re.M)
            for name in names.split(", ")}
    for name, (_, sender, states) in types.items():
        if said.pop(name, "none") != states or (sender == "head" and states != "none"):
            print(f"{name}: comes in {states}, the turns of protocol.md say otherwise")
    for name in said:
        print(f"{name}: only in the turns of protocol.md")


def compare_handlers(types, path, table, sender, elsewhere=()):
    """Each message that @sender may send has a handler, and no other one."""
    rows = re.search(table + r".*? = \{\n(.*?)^\};", pathlib.Path(path).read_text(), re.M | re.S)[1]
    handled = re.findall(r"\[MSG_(\w+)\]", rows) + list(elsewhere)
    sent = {name for name, row in types.items() if row[1] in (sender, "both")}
    for name in sorted(sent.symmetric_difference(handled)):
        print(f"{name}: {'no handler' if name in sent else 'a handler for what is not sent'} in {path}")


def main():
    types = read_types()
    doc = pathlib.Path("docs/protocol.md").read_text()
    table = doc.split("\n## Messages\n")[1].split("\n\n**")[0]
    rows = {name: (int(n), sender, body)
            for n, name, sender, body in re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \| (.*) \|$", table, re.M)}
    coders = read_coders()
    for name in sorted(types.keys() | rows.keys()):
        if name not in rows or name not in types:
            print(f"{name}: only in {'msg_type.h' if name in types else 'protocol.md'}")
        elif rows[name][:2] != types[name][:2]:
            print(f"{name}: {types[name][:2]} in msg_type.h, {rows[name][:2]} in protocol.md")
        elif name not in IN_SENTENCES and name not in coders:
            print(f"{name}: no coder was found")
        elif name not in IN_SENTENCES and coders[name] != (said := read_fields(rows[name][2])):
            print(f"{name}: the coder has {coders[name]}, protocol.md {said}")
    compare_turns(types, doc)
    compare_handlers(types, "src/head/job/job_dispatch.c", r"\bdispatch\[256\]", "agent", ("HELLO", "PONG"))
    compare_handlers(types, "src/agent/agent.c", r"\borders\[256\]", "head")
    version = re.search(r"MSG_VERSION +(\d+)", (WIRE / "msg.h").read_text())
    if f"version {version[1]}." not in doc:
        print(f"protocol.md does not name version {version[1]}")


main()
