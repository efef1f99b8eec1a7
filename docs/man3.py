# SPDX-License-Identifier: Apache-2.0
"""Manual pages of section 3, made from the public headers: what stands there is all that there is.

usage: man3.py --list HEADER...              names of the pages, one a line
       man3.py VERSION FOLDER HEADER...      writes them

A call is declared with HN_API or HN_INLINE. Calls below one comment, up to the next comment or empty line, share
a page; it has the name of the first, the others refer to it. Each header's own comment is a page, too.
"""
import re
import sys
from pathlib import Path

RULER = re.compile(r"^/\* --- (.*?) -+(?:\s*\*/)?$")
CALL = re.compile(r"^(HN_API|HN_INLINE) ")
NAME = re.compile(r"\b(hn_\w+)\(")

# What each page's calls are for, as man -k shows it. A page without an entry takes the first sentence of its comment.
PURPOSE = {
    "hn_abort": "end the whole job with an exit code and a text",
    "hn_all_gather": "gather an array of each rank at all ranks",
    "hn_all_gather_bytes": "exchange a few bytes among all ranks through the store",
    "hn_all_reduce": "combine the arrays of all ranks, result at all ranks",
    "hn_all_to_all": "exchange a part of an array between each two ranks",
    "hn_barrier": "wait until all ranks of a group have arrived",
    "hn_broadcast": "copy an array of one rank to all ranks",
    "hn_broadcast_bytes": "copy a few bytes of one rank to all ranks through the store",
    "hn_comm_barrier": "wait until all ranks of a communicator have arrived",
    "hn_comm_create": "make a communicator for collectives over arrays (Gloo, NCCL)",
    "hn_comm_free": "free a communicator, ask for its rank and size",
    "hn_drained": "tell the launcher that this rank has saved",
    "hn_draining": "ask whether a host of the job is to leave",
    "hn_dtype_size": "size of a data type of the collectives",
    "hn_event_poll": "read the next event of the job: failed ranks, lost nodes",
    "hn_finalize": "disconnect this rank from its job",
    "hn_free": "free memory returned by the library",
    "hn_get_group_ranks": "list the world ranks of a group",
    "hn_get_name": "name, rank, size, backend and rank translation of a group",
    "hn_group_create": "make a group of given ranks",
    "hn_group_free": "free a group",
    "hn_group_leaders": "make the group of the lowest rank of each node",
    "hn_group_local": "make the group of the ranks of this node",
    "hn_group_split": "split a group by colour and key",
    "hn_health": "ask whether a rank or node of the job has failed",
    "hn_hostname_of": "name of the host on which a rank runs",
    "hn_init": "connect this rank to its job",
    "hn_last_error": "sentence about the last failed call",
    "hn_last_error_ranks": "ranks that the last failed call missed",
    "hn_nccl_abort_on_failure": "abort an NCCL communicator when a rank has failed",
    "hn_nccl_check": "check that ranks have GPUs of their own and agree on NCCL",
    "hn_nccl_comm_init": "make an NCCL communicator for a group",
    "hn_nccl_comm_split": "split an NCCL communicator",
    "hn_nccl_done": "wait for a call on a non-blocking NCCL communicator",
    "hn_nccl_wait": "wait until an NCCL communicator is idle",
    "hn_nccl_wait_stream": "wait for a CUDA stream, and end when a rank fails",
    "hn_node_of": "number of the node on which a rank runs",
    "hn_progress": "report how far this rank is",
    "hn_rank": "rank, world size, local rank, node and attempt of this process",
    "hn_reduce": "combine the arrays of all ranks, result at one rank",
    "hn_reduce_scatter": "combine the arrays of all ranks, a part of the result at each",
    "hn_report_error": "report why this rank fails",
    "hn_role": "name of the role of this process",
    "hn_role_group": "make the group of the ranks of a role",
    "hn_role_index": "number of the replica of the role of this process",
    "hn_send": "send an array to a rank, receive one, or both",
    "hn_set_error": "set the sentence of hn_last_error() (for plug-ins)",
    "hn_store_add": "add to a counter in the store",
    "hn_store_append": "append bytes to a value in the store",
    "hn_store_check": "ask whether keys are in the store",
    "hn_store_compare_set": "write a value to the store if the present one is as expected",
    "hn_store_default": "get the store of the job",
    "hn_store_delete": "delete a key from the store",
    "hn_store_get": "read a value from the store, waiting for its key",
    "hn_store_get_alloc": "read a value from the store into fresh memory",
    "hn_store_num_keys": "count the keys of the store",
    "hn_store_prefix": "make a view of the store below a prefix, free it",
    "hn_store_set": "write a value to the store",
    "hn_store_wait": "wait for keys in the store",
    "hn_strerror": "text and name of a status",
    "hn_version": "version of the library",
    "hn_world": "get the group of all ranks",
}


def words_of(comment):
    """A comment without its stars, as lines."""
    text = re.sub(r"^/\*+|\*/$", "", comment.strip()).strip("\n")
    return [re.sub(r"^ ?\* ?", "", line).rstrip() for line in text.strip().splitlines()]


class Unit:
    """Some calls with one comment."""

    def __init__(self, section, comment):
        self.section, self.comment = section, comment
        self.calls = []  # (name, prototype, remark behind it)

    def name(self):
        return self.calls[0][0]


class Header:
    """One header, taken apart: self.title, self.about, self.units, self.types (name: declaration)."""

    def __init__(self, path):
        self.path, self.units, self.types, self.notes = path, [], {}, {}
        self.section, self.comment, self.unit = None, None, None
        self.lines = Path(path).read_text().splitlines()[1:]
        self.at = 0
        about = words_of(self.take_comment())
        self.title, self.about = about[0], about[1:]
        while self.at < len(self.lines):
            self.step()

    def take_comment(self):
        start = self.at
        while "*/" not in self.lines[self.at]:
            self.at += 1
        self.at += 1
        return "\n".join(self.lines[start:self.at])

    def take_until(self, ends):
        start = self.at
        while not ends(self.lines[self.at]):
            self.at += 1
        self.at += 1
        return "\n".join(self.lines[start:self.at])

    def step(self):
        line = self.lines[self.at]
        if line.startswith("/*"):
            whole = self.take_comment()
            ruler = RULER.match(whole.splitlines()[0])
            if ruler:
                self.section, self.comment = ruler.group(1), None
            else:
                self.comment = words_of(whole)
            self.unit = None
        elif CALL.match(line):
            self.take_call()
        elif line.startswith("typedef") or line.startswith("#define"):
            self.take_other(line)
        else:
            if not line.strip():
                self.unit = self.comment = None
            self.at += 1

    def take_call(self):
        inline = self.lines[self.at].startswith("HN_INLINE")
        text = self.take_until(lambda s: s.rstrip().endswith(")") if inline else ";" in s)
        prototype, _, remark = text.partition(";")
        while "/*" in remark and "*/" not in remark:
            remark += "\n" + self.lines[self.at]
            self.at += 1
        prototype = re.sub(r"\s+", " ", CALL.sub("", prototype)).strip()
        prototype = re.sub(r" HN_PRINTF\(.*?\)$", "", prototype)
        if not self.unit:
            self.unit = Unit(self.section, self.comment or [])
            self.units.append(self.unit)
        self.unit.calls.append((NAME.search(prototype).group(1), prototype + ";",
                                words_of(remark) if remark.strip() else []))

    def take_other(self, line):
        """What is said above a type or a limit concerns its section."""
        if self.comment:
            name = re.match(r"#define (\w+)", line)
            text = [f"{name.group(1)}: {self.comment[0]}"] + self.comment[1:] if name else self.comment
            self.notes.setdefault(self.section, []).append(text)
        self.unit = self.comment = None
        if line.startswith("#define"):
            self.at += 1
            return
        text = self.take_until(lambda s: ";" in s) if "{" not in line or ";" in line else \
            self.take_until(lambda s: s.startswith("}"))
        name = re.search(r"(\w+);\s*$", re.sub(r"/\*.*?\*/", "", text, flags=re.S)).group(1)
        if "{" in text:
            self.types[name] = text


# --- roff ------------------------------------------------------------------------------------------------------


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def prose(line, known):
    """Arguments in italics, calls as references."""
    line = escaped(line)
    line = re.sub(r"@(\w+)", r"\\fI\1\\fR", line)
    return re.sub(r"\b(hn_\w+)\(\)", lambda m: f"\\fB{m.group(1)}\\fR(3)" if m.group(1) in known
                  else f"\\fB{m.group(1)}\\fR()", line)


def paragraphs(lines, known):
    """Comment lines; what is indented stays as it is."""
    out, verbatim = [], False
    for line in lines:
        code = line.startswith("    ")
        if code != verbatim:
            out.append(".nf" if code else ".fi")
            verbatim = code
        out.append(escaped(line[4:]) if code else prose(line, known) if line else ".PP")
    return out + ([".fi"] if verbatim else [])


def verbatim(text):
    return [".nf"] + [escaped(line) for line in text.splitlines()] + [".fi"]


def folded(prototype):
    """A prototype in lines of at most 88 columns."""
    begin, _, arguments = prototype.partition("(")
    lines, pad = [begin + "("], " " * (len(begin) + 1)
    for argument in arguments.split(", "):
        if len(lines[-1]) + len(argument) > 86 and lines[-1].strip() != begin + "(":
            lines[-1] = lines[-1].rstrip()
            lines.append(pad)
        lines[-1] += argument + ("" if argument.endswith(");") else ", ")
    return "\n".join(lines)


def head(name, summary, version):
    return [f'.TH "{name}" 3 "" "hnlaunch {version}" "Library calls"', ".SH NAME", f"{name} \\- {escaped(summary)}"]


def include_of(header):
    return "hnlaunch/" + Path(header.path).name


def summary_of(unit, header):
    """What the call is for; else the first sentence, when it is short; else what the section is about."""
    if unit.name() in PURPOSE:
        return PURPOSE[unit.name()]
    sentence = re.split(r"[.:;] |\.$", " ".join(unit.comment))[0].replace("@", "")
    if len(unit.calls) > 2 or not 0 < len(sentence) <= 60:
        return unit.section or header.title.partition(": ")[2]
    return sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]


def unit_page(unit, header, known, version):
    names = [name for name, _, _ in unit.calls]
    out = head(", ".join(names), summary_of(unit, header), version)
    out[0] = head(unit.name(), "", version)[0]
    out += [".SH SYNOPSIS", ".nf", f"\\fB#include <{include_of(header)}>\\fR", ".PP"]
    for _, prototype, _ in unit.calls:
        out += ["\\fB" + escaped(line) + "\\fR" for line in folded(prototype).splitlines()]
    out += [".fi", ".SH DESCRIPTION"] + paragraphs(unit.comment, known)
    for name, _, remark in unit.calls:
        if remark:
            out += [".TP", f"\\fB{name}\\fR()"] + paragraphs(remark, known)
    used = [t for t in header.types if any(re.search(rf"\b{t}\b", p) for _, p, _ in unit.calls) and t != "hn_status"]
    for name in used:
        out += [".PP"] + verbatim(header.types[name])
    for note in header.notes.get(unit.section, []) if unit.section else []:
        out += [".PP"] + paragraphs(note, known)
    if any(p.startswith("hn_status") for _, p, _ in unit.calls):
        out += [".SH RETURN VALUE", "HN_OK (0), or an error below 0, of which \\fBhn_last_error\\fR(3) has a sentence;",
                "\\fBhnlaunch\\fR(3) lists them."]
    near = [u.name() for u in header.units if u.section == unit.section and u is not unit]
    return out + see_also(near)


def see_also(names):
    refs = ["\\fBhnlaunch\\fR(3)"] + [f"\\fB{n}\\fR(3)" for n in names[:12]]
    return [".SH SEE ALSO", ",\n".join(refs)]


def page_of(header):
    stem = Path(header.path).stem
    return stem if stem == "hnlaunch" else "hnlaunch-" + stem


def header_page(header, known, version):
    out = head(page_of(header), header.title.partition(": ")[2], version)
    out += [".SH SYNOPSIS", f"\\fB#include <{include_of(header)}>\\fR", ".SH DESCRIPTION"]
    out += paragraphs(header.about, known)
    if "hn_status" in header.types:
        out += [".SH ERRORS"] + verbatim(header.types["hn_status"])
    out += [".SH CALLS"]
    for unit in header.units:
        out += [", ".join(f"\\fB{n}\\fR(3)" for n, _, _ in unit.calls), ".br"]
    return out


def pages(headers, version):
    known = {name for h in headers for u in h.units for name, _, _ in u.calls}
    for h in headers:
        if h.units:
            yield page_of(h), header_page(h, known, version)
        for unit in h.units:
            yield unit.name(), unit_page(unit, h, known, version)
            for name, _, _ in unit.calls[1:]:
                yield name, [f".so man3/{unit.name()}.3"]


def main():
    if sys.argv[1] == "--list":
        return print("\n".join(f"{name}.3" for name, _ in pages([Header(p) for p in sys.argv[2:]], "")))
    for name, lines in pages([Header(p) for p in sys.argv[3:]], sys.argv[1]):
        text = '.\\" Made from the headers by docs/man3.py\n' if not lines[0].startswith(".so") else ""
        (Path(sys.argv[2]) / f"{name}.3").write_text(text + "\n".join(lines) + "\n")


main()
