/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines become switches with the names of their members (parse_topology_line()). When all lines are
 * read, resolve_members() tells hosts from switches, and number_switches() walks down from the
 * switches that are no members, in the order of the file: that is the order of the hosts, and finds
 * circles. Names are kept in struct hosts for its look-up: the switches' by number, and those of
 * the hosts with the switch of each beside them.
 *
 * Errors do not end the reading: a wrong line still becomes a switch, so other lines that name it
 * are not wrong as well. A tree with any error is destroyed.
 */
#include "head/hosts/topology_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "head/hosts/hostfile_text.h"
#include "head/hosts/range.h"

enum {
        TOPOLOGY_FILE_MAX = 16 << 20, /* bytes */
        SWITCH_LEVELS = 32,           /* limit of the recursion of number_switch() */
        NO_SWITCH = -1,
};

#define BLANKS " \t\v\f\r\n"

/* MEMBER_ANY: of a plain line, whose members may be of both kinds. Slurm's keys tell the kind. */
enum member_kind { MEMBER_ANY, MEMBER_NODE, MEMBER_SWITCH };

struct network_switch {
        int line;
        struct text_range at; /* of the name */
        bool is_block;
        enum member_kind kind; /* of the members */
        struct strv members;
        struct text_range *places; /* by member: the word that names it */
        struct intlist below;      /* switches */
        int above;                 /* the first switch with this one, or NO_SWITCH */
        int number;                /* in the order of the walk; NO_SWITCH = not reached yet */
        bool is_open;              /* the walk is below */
};

struct switch_tree {
        struct network_switch *v;
        struct hosts switches; /* names alone, by switch */
        struct hosts hosts;    /* names alone */
        int *leaf, *block;     /* by host: NO_SWITCH = none */
};

struct topology_reader {
        struct hostfile_text t;
        struct switch_tree *to;
};

void topology_destroy(struct switch_tree *t)
{
        for (size_t i = 0; t && i < t->switches.n; i++) {
                strv_finish(&t->v[i].members);
                free(t->v[i].places);
                intlist_finish(&t->v[i].below);
        }
        if (!t)
                return;
        free(t->v);
        free(t->leaf);
        free(t->block);
        hosts_finish(&t->switches);
        hosts_finish(&t->hosts);
        free(t);
}

/* Returns the number of a name, in any case of letters; NO_SWITCH = not found. Not const: the index
 * of struct hosts grows at a look-up. */
static int find_name(struct hosts *names, const char *name)
{
        const struct host *h = hosts_find(names, name);

        return h ? (int)(h - names->v) : NO_SWITCH;
}

/* ---- lines ---- */

/* Adds the members of the word, which may be a range. */
static void add_members(struct topology_reader *r, struct network_switch *s, struct text_range word)
{
        static const char letters[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
        size_t n = s->members.n;
        struct range_error e;

        if (range_expand(r->t.plain + word.at, word.len, &s->members, &e) < 0) {
                hostfile_text_range_error(&r->t, word.at, &e);
                return;
        }
        for (size_t i = n; i < s->members.n; i++)
                if (!*s->members.v[i] ||
                    s->members.v[i][strspn(s->members.v[i], letters)] != '\0') {
                        hostfile_text_error(&r->t, HN_TOPOLOGY_LINE, word, NULL,
                                            "expected the name of a host or switch");
                        break;
                }
        /* All members of a range share the place of its word. */
        s->places = xrealloc(s->places, s->members.n, sizeof(*s->places));
        for (size_t i = n; i < s->members.n; i++)
                s->places[i] = word;
}

/* Adds the members of text[at..end), between commas or blanks. */
static void add_list(struct topology_reader *r, struct network_switch *s, size_t at, size_t end)
{
        while (at < end) {
                size_t stop = range_find(r->t.plain, at, end, "," BLANKS);

                if (stop > at)
                        add_members(r, s, (struct text_range){ at, stop - at });
                at = stop + 1;
        }
}

/* Takes the switch of a line whose members are read: @s moves into the tree, also after an
 * error. */
static void add_switch(struct topology_reader *r, struct network_switch *s, struct text_range name)
{
        struct switch_tree *to = r->to;
        CLEANUP(free_textp) char *text = xasprintf("%.*s", (int)name.len, r->t.plain + name.at);
        int other = find_name(&to->switches, text);
        size_t n = to->switches.n;

        s->line = r->t.line;
        s->at = name;
        s->above = s->number = NO_SWITCH;
        if (!name.len || text[strcspn(text, "[]," BLANKS)])
                hostfile_text_error(&r->t, HN_TOPOLOGY_LINE, name, NULL,
                                    "expected the name of a switch");
        if (other != NO_SWITCH) {
                struct diag *d = hostfile_text_bare_error(&r->t, HN_TOPOLOGY_TWICE, name,
                                                          "the switch %s has two lines", text);

                hostfile_text_mark(&r->t, d, to->v[other].line, to->v[other].at, '-', "the first");
                hostfile_text_mark(&r->t, d, s->line, name, '^', NULL);
        }
        if (!(n & (n - 1))) /* full when the number is a power of two, or none */
                to->v = xrealloc(to->v, n ? n * 2 : 1, sizeof(*to->v));
        to->v[n] = *s;
        hosts_add(&to->switches)->name = xstrdup(text);
}

/* Parses "leaf1: gpu[001-016]". The kind of the members is found when all switches are known. */
static void parse_plain_line(struct topology_reader *r, size_t at, size_t end)
{
        size_t colon = range_find(r->t.plain, at, end, ":"), stop = colon;
        struct network_switch s = { 0 };

        if (colon == end) {
                diag_help(hostfile_text_error(&r->t, HN_TOPOLOGY_LINE,
                                              (struct text_range){ at, end - at }, NULL,
                                              "expected `switch: hosts`"),
                          "leaf1: gpu[001-016]; or a line of Slurm's topology.conf");
                return;
        }
        while (stop > at && strchr(BLANKS, r->t.plain[stop - 1]))
                stop--;
        add_list(r, &s, colon + 1, end);
        if (!s.members.n)
                hostfile_text_error(&r->t, HN_TOPOLOGY_LINE,
                                    (struct text_range){ at, colon + 1 - at }, NULL,
                                    "a switch without hosts");
        add_switch(r, &s, (struct text_range){ at, stop - at });
}

static bool is_key(const char *text, size_t len, const char *key)
{
        return len == strlen(key) && !strncasecmp(text, key, len);
}

/* "SwitchName=leaf1 Nodes=gpu[001-016] LinkSpeed=1". Other keys tell nothing of the place. Beside
 * Switches=, Nodes= of scontrol has all hosts below. */
static void parse_slurm_line(struct topology_reader *r, size_t at, size_t end)
{
        struct text_range name = { 0 }, nodes = { 0 }, switches = { 0 }, *to;
        const char *text = r->t.plain;
        struct network_switch s = { .kind = MEMBER_NODE };

        for (size_t stop; at < end; at = stop + strspn(text + stop, " \t\v\f")) {
                size_t len = strcspn(text + at, "=" BLANKS);
                bool is_block = is_key(text + at, len, "BlockName");

                stop = at + len + strcspn(text + at + len, BLANKS);
                s.is_block |= is_block;
                /* Keys may be written in any case, as Slurm reads them. */
                to = is_block                               ? &name
                     : is_key(text + at, len, "SwitchName") ? &name
                     : is_key(text + at, len, "Nodes")      ? &nodes
                     : is_key(text + at, len, "Switches")   ? &switches
                                                            : NULL;
                if (to && stop > at + len + 1) {
                        *to = (struct text_range){ at + len + 1, stop - at - len - 1 };
                } else if (to == &name) {
                        hostfile_text_error(&r->t, HN_TOPOLOGY_LINE,
                                            (struct text_range){ at, stop - at }, NULL,
                                            "expected the name of a switch");
                        return;
                }
        }
        if (!name.len) /* BlockSizes=, AggregatedBlock= */
                return;
        /* "(null)" of scontrol stands for nothing. */
        if (switches.len && text[switches.at] != '(') {
                s.kind = MEMBER_SWITCH;
                nodes = switches;
        }
        if (nodes.len && text[nodes.at] != '(') /* "(null)" of scontrol */
                add_list(r, &s, nodes.at, nodes.at + nodes.len);
        add_switch(r, &s, name);
}

static void parse_topology_line(struct topology_reader *r)
{
        size_t at = r->t.lines[r->t.line - 1], end = hostfile_text_line_end(&r->t, r->t.line);

        at += strspn(r->t.plain + at, " \t\v\f");
        while (end > at && strchr(BLANKS, r->t.plain[end - 1]))
                end--;
        if (at >= end)
                return;
        if (r->t.plain[at + strcspn(r->t.plain + at, "=:" BLANKS)] == '=')
                parse_slurm_line(r, at, end);
        else
                parse_plain_line(r, at, end);
}

/* ---- the tree ---- */

/* Adds an error at a member of a switch, in whose line it is shown. NULL: too many errors, as all
 * diag_* functions and hostfile_text_mark() take it. */
static struct diag *blame_member(struct topology_reader *r, const struct network_switch *s,
                                 size_t member, int id, const char *fact)
{
        r->t.line = s->line;
        return hostfile_text_bare_error(&r->t, id, s->places[member], "%s", fact);
}

/* Notes the switch or block of a host; a host has one of each. A second one is an error, shown with
 * the first place. */
static void put_host(struct topology_reader *r, int number, size_t member)
{
        struct switch_tree *to = r->to;
        const struct network_switch *s = &to->v[number], *other;
        const char *name = s->members.v[member];
        int host = find_name(&to->hosts, name), *place;
        struct diag *d;

        if (host == NO_SWITCH) {
                size_t n = to->hosts.n;

                /* Both arrays grow with the list of hosts: full when the number is a power of two,
                 * or none. */
                if (!(n & (n - 1))) {
                        to->leaf = xrealloc(to->leaf, n ? n * 2 : 1, sizeof(*to->leaf));
                        to->block = xrealloc(to->block, n ? n * 2 : 1, sizeof(*to->block));
                }
                to->leaf[n] = to->block[n] = NO_SWITCH;
                host = (int)n;
                hosts_add(&to->hosts)->name = xstrdup(name);
        }
        place = s->is_block ? &to->block[host] : &to->leaf[host];
        if (*place == NO_SWITCH || *place == number) {
                *place = number;
                return;
        }
        other = &to->v[*place];
        CLEANUP(free_textp)
        char *fact =
                xasprintf("%s is in two %s, %s and %s", name, s->is_block ? "blocks" : "switches",
                          to->switches.v[*place].name, to->switches.v[number].name);
        d = blame_member(r, s, member, HN_TOPOLOGY_TWICE, fact);
        for (size_t i = 0; i < other->members.n; i++)
                if (!strcasecmp(other->members.v[i], name)) {
                        hostfile_text_mark(&r->t, d, other->line, other->places[i], '-', NULL);
                        break;
                }
        hostfile_text_mark(&r->t, d, s->line, s->places[member], '^', NULL);
}

/* Links switches with those below, and puts the other names at their switch. A member of Switches=
 * without a line is an error. */
static void resolve_members(struct topology_reader *r)
{
        struct switch_tree *to = r->to;

        for (size_t i = 0; i < to->switches.n; i++) {
                struct network_switch *s = &to->v[i];

                for (size_t k = 0; k < s->members.n; k++) {
                        int below = s->kind == MEMBER_NODE
                                            ? NO_SWITCH
                                            : find_name(&to->switches, s->members.v[k]);

                        if (below != NO_SWITCH) {
                                intlist_add(&s->below, below);
                                /* A switch below several others, as in a fat tree, has its path
                                 * through the first of them. */
                                if (to->v[below].above == NO_SWITCH)
                                        to->v[below].above = (int)i;
                        } else if (s->kind != MEMBER_SWITCH) {
                                put_host(r, (int)i, k);
                        } else {
                                CLEANUP(free_textp)
                                char *fact = xasprintf("there is no switch %s", s->members.v[k]);
                                struct diag *d = blame_member(r, s, k, HN_TOPOLOGY_LINE, fact);

                                hostfile_text_mark(&r->t, d, s->line, s->places[k], '^', NULL);
                        }
                }
        }
}

/* Numbers a switch and those below, unless it has a number. is_open marks the switches on the way
 * down: to meet an open switch again is a circle. */
static void number_switch(struct topology_reader *r, int i, int *next, int level)
{
        struct network_switch *s = &r->to->v[i];

        if (s->is_open || level == SWITCH_LEVELS) {
                r->t.line = s->line;
                hostfile_text_error(&r->t, HN_TOPOLOGY_CIRCLE, s->at, NULL,
                                    s->is_open ? "the switch %s is below itself"
                                               : "the switch %s has too many switches above it",
                                    r->to->switches.v[i].name);
                return;
        }
        if (s->number != NO_SWITCH)
                return;
        s->number = (*next)++;
        s->is_open = true;
        for (size_t k = 0; k < s->below.n; k++)
                number_switch(r, s->below.v[k], next, level + 1);
        s->is_open = false;
}

static void number_switches(struct topology_reader *r)
{
        size_t n = r->to->switches.n;
        int next = 0;

        for (size_t i = 0; i < n; i++)
                if (r->to->v[i].above == NO_SWITCH)
                        number_switch(r, (int)i, &next, 0);
        for (size_t i = 0; i < n; i++) /* of a circle, each switch is below another */
                number_switch(r, (int)i, &next, 0);
}

/* ---- files ---- */

struct switch_tree *topology_parse(const char *file, const char *text, size_t len, struct diags *d)
{
        struct topology_reader r = { .to = xcalloc(1, sizeof(*r.to)) };
        size_t errors;

        hostfile_text_init(&r.t, file, text, len, d);
        if (hostfile_text_check(&r.t) == 0) {
                hostfile_text_blank_comments(&r.t);
                for (r.t.line = 1; (size_t)r.t.line <= r.t.n_lines; r.t.line++)
                        parse_topology_line(&r);
                resolve_members(&r);
                /* Errors in names leave links out, and a walk would blame more. */
                if (!r.t.errors)
                        number_switches(&r);
                hostfile_text_finish_errors(&r.t);
        }
        if (!r.t.errors && !r.to->hosts.n) {
                diag_help(diag_add(d, HN_TOPOLOGY_LINE, EX_DATAERR, "no switch with hosts in %s",
                                   file),
                          "a switch in each line: leaf1: gpu[001-016]");
                r.t.errors++;
        }
        errors = r.t.errors;
        hostfile_text_finish(&r.t);
        if (!errors)
                return r.to;
        topology_destroy(r.to);
        return NULL;
}

struct switch_tree *topology_load(const char *path, struct diags *d)
{
        CLEANUP(free_textp) char *text = NULL;
        size_t len = 0;
        int r = fd_read_file(path, TOPOLOGY_FILE_MAX, &text, &len);

        if (r == 0)
                return topology_parse(path, text, len, d);
        text = NULL;
        diag_help(diag_add(d, HN_TOPOLOGY_UNREADABLE, r == -EFBIG ? EX_DATAERR : EX_NOINPUT,
                           "cannot read the topology file %s: %s", path,
                           r == -ENOENT ? "there is no such file" : strerror(-r)),
                  "--topology names a file with lines `switch: hosts`");
        return NULL;
}

/* ---- hosts ---- */

/* Returns the switches from the top, "core/leaf1". malloc'ed. */
static char *write_switch_path(const struct switch_tree *t, int leaf)
{
        char *path = xstrdup(t->switches.v[leaf].name);

        /* number_switches() has refused circles; the limit is that of its walk. */
        for (int i = t->v[leaf].above, level = 0; i != NO_SWITCH && level < SWITCH_LEVELS;
             i = t->v[i].above, level++) {
                char *longer = xasprintf("%s/%s", t->switches.v[i].name, path);

                free(path);
                path = longer;
        }
        return path;
}

/* Finds a host by its name, else by the name without the domain: a host list may have
 * "gpu1.cluster" where Slurm has "gpu1". */
static int find_placed(struct switch_tree *t, const char *name)
{
        CLEANUP(free_textp) char *first = xasprintf("%.*s", (int)strcspn(name, "."), name);
        int i = find_name(&t->hosts, name);

        return i == NO_SWITCH ? find_name(&t->hosts, first) : i;
}

size_t topology_place(struct switch_tree *t, struct hosts *h)
{
        size_t found = 0;

        for (size_t i = 0; i < h->n; i++) {
                struct host_site *site = host_site_of(&h->v[i]);
                int at = find_placed(t, h->v[i].name), leaf, domain;

                if (at == NO_SWITCH)
                        continue;
                leaf = t->leaf[at];
                /* A block is one NVLink domain; without blocks a leaf switch is the next best. */
                domain = t->block[at] == NO_SWITCH ? leaf : t->block[at];
                free(site->group);
                free(site->path);
                site->group = xstrdup(t->switches.v[domain].name);
                site->path = leaf == NO_SWITCH ? NULL : write_switch_path(t, leaf);
                site->number = t->v[leaf == NO_SWITCH ? domain : leaf].number;
                found++;
        }
        return found;
}
