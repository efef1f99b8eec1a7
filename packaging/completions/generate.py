#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Writes the completions of a shell from `hnlaunch help table`, the one list of all options.

usage: generate.py bash|zsh|fish TEMPLATE < TABLE > COMPLETIONS

The template has what does not depend on the options, and a line of @NAME@ for each part that does.
"""
import re
import shlex
import sys

# What a word of an option's argument stands for. Other words in capitals have no list to choose from,
# and every other word is itself a value.
KINDS = {"FILE": "file", "PATH": "file", "DIR": "folder", "HOST": "host", "CMD": "command", "TOPIC": "topic",
         "SECTION.KEY=VALUE": "key", "NAME,...": "variable", "NAME[=VALUE]": "variable", "SPEC": "hosts"}
VALUES = {"ALL", "NONE"}
# Where the word alone does not say it.
BY_OPTION = {"hosts": "hosts", "iface": "interface", "unset": "variable", "user": "user"}


def values_of(arg):
    """A word such as tcp:PORT stands for its beginning."""
    return [re.sub(r":[A-Z]+$", ":", w) for w in arg.split("|") if w and (w in VALUES or not w[0].isupper())]


class Option:
    def __init__(self, name, letter, arg, optional, key, text, commands):
        self.name, self.letter, self.arg, self.key, self.help = name, letter, arg, key, text
        self.commands = commands.split(",")
        self.optional = optional == "optional"
        words = arg.split("|") if arg else []
        self.values = values_of(arg)
        kinds = {"role" if w.startswith("ROLE") else KINDS.get(w) for w in words} | {BY_OPTION.get(name)}
        self.kind = next((k for k in kinds if k), None)

    def spellings(self):
        return ([f"-{self.letter}"] if self.letter else []) + [f"--{self.name}"]


# Commands that start ranks, or show what would be started: their options stand before a program.
LAUNCH = ["run", "plan", "check", "config"]
# Commands of a run, and of one that goes on.
RUNS = ["stop", "signal", "drain", "wait", "attach", "logs", "why", "top", "report", "rerun"]
RUNNING = ["stop", "signal", "drain", "wait", "attach", "why", "top"]
STATES = "connecting|running|stopping|ending|silent|on [^ ]*"


class Table:
    def __init__(self, lines):
        rows = [line.rstrip("\n").split("\t") for line in lines]
        self.commands = [r[1:3] for r in rows if r[0] == "command"]
        self.topics = [r[1] for r in rows if r[0] == "topic"]
        self.errors = [r[1:3] for r in rows if r[0] in ("error", "exit") and r[1][-1].isdigit()]
        self.options = [Option(*r[1:8]) for r in rows if r[0] == "option"]
        self.names = [name for name, _ in self.commands if name not in ("help", "version")]
        # The words that a key takes; a switch has no argument.
        keys = [(o.key, o.arg) for o in self.options if o.key] + [(r[1], r[2]) for r in rows if r[0] == "key"]
        self.keys = {key: values_of(arg) if arg else ["yes", "no"] for key, arg in keys}
        unknown = set(BY_OPTION) - {o.name for o in self.options}
        if unknown or not self.commands or not self.errors:
            sys.exit(f"not in the table: {unknown or 'commands'}")

    def options_of(self, command):
        return [o for o in self.options if command in o.commands]


# --- bash ---------------------------------------------------------------------------------------

def bash(t):
    def branch(o):
        calls = [f"_hnlaunch_words {shlex.quote(' '.join(o.values))}"] if o.values else []
        calls += [f"_hnlaunch_{o.kind}"] if o.kind else []
        return f"        {' | '.join(o.spellings())}) {'; '.join(calls) or ':'} ;;"

    taking = [o for o in t.options if o.arg and not o.optional]
    return {
        "COMMANDS": "    local commands=" + shlex.quote(" ".join(name for name, _ in t.commands)),
        "TOPICS": "    local topics=" + shlex.quote(" ".join(t.topics)),
        "ERRORS": "    local errors=" + shlex.quote(" ".join(name for name, _ in t.errors)),
        "KEYS": "    local keys=" + shlex.quote(" ".join(f"{k}=" for k in t.keys)),
        "OPTIONS": "\n".join(
            f"        {name}) options=" + shlex.quote(" ".join(s for o in t.options_of(name) for s in o.spellings())) + " ;;"
            for name in t.names),
        "RUNS": "    local runs=" + shlex.quote(" ".join(RUNS)) + " running=" + shlex.quote(" ".join(RUNNING)),
        "STATES": "    local states=" + shlex.quote(STATES),
        "TAKING": "    local taking=" + shlex.quote(" ".join(s for o in taking for s in o.spellings())),
        "VALUES": "\n".join([branch(o) for o in t.options if o.arg] +
                            [f"        {key}) _hnlaunch_words {shlex.quote(' '.join(values))} ;;"
                             for key, values in t.keys.items() if values]),
    }


# --- zsh ----------------------------------------------------------------------------------------

def zsh(t):
    actions = {"file": "_files", "folder": "_files -/", "host": "_ssh_hosts", "hosts": "_sequence _ssh_hosts",
               "command": "_command_names -e", "topic": f"({' '.join(t.topics)})", "user": "_users",
               "key": "_hnlaunch_settings", "variable": "_parameters -g \\*export\\*",
               "interface": "_net_interfaces", "role": "_sequence _hnlaunch_roles"}

    def action(o):
        words = " ".join(o.values).replace(":", "\\:")
        both = [f"values:value:({words})"] if o.values else []
        both += [f"{o.kind}:{o.kind}:{actions[o.kind]}"] if o.kind else []
        if len(both) == 2:
            return " _alternative " + " ".join(shlex.quote(b) for b in both).replace(":", "\\:")
        return both[0].split(":", 2)[2] if both else " "

    def spec(o):
        text = re.sub(r"([\[\]:\\])", r"\\\1", o.help)
        names = [f"-{o.letter}" + ("+" if o.arg and not o.optional else "")] if o.letter else []
        names += [f"--{o.name}" + ("=" if o.arg else "")]
        arg = re.sub(r"([:\\])", r"\\\1", o.arg)
        rest = f"[{text}]" + (f"{'::' if o.optional else ':'}{arg}:{action(o)}" if o.arg else "")
        return "\n".join("        " + shlex.quote(f"*{name}{rest if not name == '-' + o.letter else f'[{text}]'}")
                         for name in names)

    return {
        "COMMANDS": "\n".join("        " + shlex.quote(f"{name}:{text}") for name, text in t.commands),
        "ERRORS": "\n".join("        " + shlex.quote(f"{name}:{text}") for name, text in t.errors),
        "TOPICS": "    topics=(" + " ".join(t.topics) + ")",
        "KEYS": "    keys=(" + " ".join(t.keys) + ")",
        "KEY_VALUES": "\n".join(f"        {key} {shlex.quote(' '.join(values))}" for key, values in t.keys.items() if values),
        "OPTIONS": "\n".join(f"        {name})\n            specs=(\n" + "\n".join(spec(o) for o in t.options_of(name)) +
                             "\n            )\n            ;;" for name in t.names),
        "RUNS": "    local -a of_runs=(" + " ".join(RUNS) + ") of_running=(" + " ".join(RUNNING) + ")",
        "STATES": "    local states=" + shlex.quote(STATES),
    }


# --- fish ---------------------------------------------------------------------------------------

def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(t):
    lists = {"file": "", "folder": "(__fish_complete_directories)", "host": "(__fish_print_hostnames)",
             "hosts": "(__hnlaunch_hosts)", "command": "(__fish_complete_command)",
             "topic": " ".join(t.topics), "user": "(__fish_complete_users)",
             "key": " ".join(f"{k}={v}" for k, values in t.keys.items() for v in values or [""]), "variable": "(set --names --export)",
             "interface": "(__fish_print_interfaces)", "role": "(__hnlaunch_roles)"}

    def line(o):
        words = [f"complete -c hnlaunch -n '__hnlaunch_has {' '.join(o.commands)}'"]
        words += [f"-s {o.letter}"] if o.letter else []
        words += [f"-l {o.name}"]
        if o.arg and not o.optional:
            words += ["-r -F" if o.kind == "file" else "-x"]
        values = " ".join(o.values + [lists[o.kind] if o.kind else ""]).strip()
        words += [f"-a {fish_quote(values)}"] if values and not o.optional else []
        return " ".join(words + [f"-d {fish_quote(o.help)}"])

    return {
        "COMMANDS": "\n".join(f"complete -c hnlaunch -n __hnlaunch_is_first -f -a {name} -d {fish_quote(text)}"
                              for name, text in t.commands),
        "ERRORS": "\n".join("complete -c hnlaunch -n '__hnlaunch_command_is explain' -f "
                            f"-a {name} -d {fish_quote(text)}" for name, text in t.errors),
        "NAMES": "set -g __hnlaunch_commands " + " ".join(name for name, _ in t.commands),
        "TOPICS": f"complete -c hnlaunch -n '__hnlaunch_command_is help' -f -a {fish_quote(' '.join(t.topics))}",
        "OPTIONS": "\n".join(line(o) for o in t.options),
        "KEYS": "set -g __hnlaunch_keys " + " ".join(t.keys),
        "LAUNCH": "set -g __hnlaunch_launch " + " ".join(LAUNCH),
        "RUNS": "set -g __hnlaunch_runs " + " ".join(RUNS) + "\nset -g __hnlaunch_running " + " ".join(RUNNING),
        "STATES": "set -g __hnlaunch_states " + fish_quote(STATES),
        "TAKING": "set -g __hnlaunch_taking " + " ".join(
            s for o in t.options if o.arg and not o.optional for s in o.spellings()),
    }


def main():
    shell, template = sys.argv[1:]
    parts = {"bash": bash, "zsh": zsh, "fish": fish}[shell](Table(sys.stdin))
    with open(template, encoding="utf-8") as f:
        text = f.read()
    for name, part in parts.items():
        if f"@{name}@" not in text:
            sys.exit(f"{template} has no place for {name}")
        text = text.replace(f"@{name}@", part)
    sys.stdout.write(text)


main()
