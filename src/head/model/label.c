/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_create() goes over all ranks once and keeps the width of the longest label. label_make()
 * fills in the fields and pads before the last bar. A field is either text or a number, and the
 * width of numbers is counted without a text.
 */
#include "head/model/label.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "wire/env/subst.h"

/* Fields of labels beside those of --subst, in one numbering. */
enum { LABEL_STREAM = SUBST_KINDS, LABEL_ROLE, LABEL_KINDS };

struct label {
        const char *label; /* template; NULL = none */
        const struct plan *plan;
        const struct hosts *hosts;
        struct label_network net;
        size_t width; /* of the longest label in bytes */
        char **roles; /* by world: "infer:1" of a role with several replicas; NULL = no roles */
        size_t n_roles;
};

/* Reads the field or the plain bytes at @at; kind 0 = plain text of .len bytes. Fields of labels
 * come before those of --subst: {local} is no field there. */
static struct subst_piece read_label_field(const char *at)
{
        static const struct {
                const char *name;
                int kind;
        } own[] = { { "{local}", SUBST_LOCAL_RANK },
                    { "{stream}", LABEL_STREAM },
                    { "{role}", LABEL_ROLE } };

        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (!strncmp(at, own[i].name, strlen(own[i].name)))
                        return (struct subst_piece){ .kind = own[i].kind,
                                                     .len = strlen(own[i].name) };
        return subst_read_name(at);
}

size_t label_bad_field(const char **at)
{
        for (const char *p = *at; (p = strchr(p, '{')); p++) {
                size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");

                /* Braces around anything but letters and _ are text of the user. */
                if (!n || p[n + 1] != '}' || read_label_field(p).kind)
                        continue;
                *at = p;
                return n + 2;
        }
        return 0;
}

const char *label_default(const struct plan *plan)
{
        if (plan->world_size == 1)
                return NULL;
        if (plan->ranks[0].role)
                return "{role}:{rank} | ";
        return plan->num_nodes > 1 ? "{host}:{rank} | " : "{rank} | ";
}

bool label_needs_network(const char *label)
{
        struct subst_piece f;

        for (; label && *label; label += f.len) {
                f = read_label_field(label);
                if (f.kind == SUBST_MASTER_ADDR || f.kind == SUBST_MASTER_PORT ||
                    f.kind == SUBST_PORT)
                        return true;
        }
        return false;
}

/* Returns the text of a field, NULL = it is a number. */
static const char *label_text(const struct label *p, const struct plan_rank *k, int kind,
                              uint8_t stream)
{
        switch (kind) {
        case SUBST_HOST:
                return p->hosts->v[p->plan->nodes[k->node].host].name;
        case SUBST_MASTER_ADDR:
                return p->net.master_addr;
        case LABEL_ROLE:
                if (p->roles && p->roles[k->world])
                        return p->roles[k->world];
                return k->role ? k->role : "";
        case LABEL_STREAM:
                return stream == MSG_STDOUT ? "out" : "err";
        default:
                return NULL;
        }
}

/* {port:NAME} is read elsewhere: the number is the same for all ranks. */
static uint32_t label_number(const struct label *p, const struct plan_rank *k, int kind)
{
        switch (kind) {
        case SUBST_RANK:
                return (uint32_t)(k->rank - p->plan->worlds[k->world].first);
        case SUBST_NODE_RANK:
                return (uint32_t)k->node_rank;
        case SUBST_NUM_NODES:
                return (uint32_t)p->plan->worlds[k->world].num_nodes;
        case SUBST_MASTER_PORT:
                return p->net.master_ports[k->node];
        default:
                return (uint32_t)k->local_rank;
        }
}

/* Returns the template with all fields of the rank filled in, not padded; malloc'ed. */
static char *fill_label(const struct label *p, const struct plan_rank *k, uint8_t stream)
{
        struct buf b = BUF_INIT;
        struct subst_piece f;

        for (const char *at = p->label; *at; at += f.len) {
                const char *text;

                f = read_label_field(at);
                text = label_text(p, k, f.kind, stream);
                if (!f.kind)
                        buf_append(&b, at, f.len);
                else if (text)
                        buf_appends(&b, text);
                else if (f.kind == SUBST_PORT)
                        buf_printf(&b, "%u", subst_port_number(&f, &p->net.first));
                else
                        buf_printf(&b, "%u", label_number(p, k, f.kind));
        }
        return buf_steal(&b);
}

/* Returns the label as text, with its bar at the common width. */
static char *pad_label(const struct label *p, int rank, uint8_t stream)
{
        char *text, *bar, *wide;
        size_t len;

        if (!p->label)
                return xstrdup("");
        text = fill_label(p, &p->plan->ranks[rank], stream);
        len = strlen(text);
        bar = strrchr(text, '|');
        /* Without a bar there is no place for blanks: the label is as wide as its text. */
        if (!bar || len >= p->width)
                return text;
        wide = xasprintf("%.*s%*s%s", (int)(bar - text), text, (int)(p->width - len), "", bar);
        free(text);
        return wide;
}

/* Takes @text over, and returns it as it shall look. @colour: of what stands before the bar. */
static char *finish_label(char *text, const char *colour, uint8_t stream, enum label_look look)
{
        char *bar = strrchr(text, '|'), *painted;
        bool err = bar && stream == MSG_STDERR;

        if (err && look == LABEL_MARKED)
                *bar = '!';
        if (!*text || look != LABEL_PAINTED)
                return text;
        painted = xasprintf("\033[2%sm%.*s\033[0m%s%s%s", colour,
                            bar ? (int)(bar - text) : (int)strlen(text), text,
                            err ? "\033[31m" : "", bar ? bar : "", err ? "\033[0m" : "");
        free(text);
        return painted;
}

char *label_make(const struct label *p, int rank, uint8_t stream, enum label_look look)
{
        /* Colours of SGR without red, which marks standard error. Neighbouring hosts differ. */
        static const char *const hosts[] = { ";36", ";33", ";35", ";34", ";32" };
        const char *host = hosts[(size_t)p->plan->ranks[rank].node % ARRAY_SIZE(hosts)];

        return finish_label(pad_label(p, rank, stream), p->plan->num_nodes > 1 ? host : "", stream,
                            look);
}

char *label_make_folded(const struct label *p, const struct intlist *ranks, uint8_t stream,
                        enum label_look look)
{
        static const char bar[] = " | ";
        size_t n = strlen(bar), len = p->label ? strlen(p->label) : 0;
        bool ends = len >= n && !strcmp(p->label + len - n, bar);
        CLEANUP(free_textp) char *text = intlist_fold(ranks);

        return finish_label(xasprintf("%-*s%s", ends ? (int)(p->width - n) : 0, text, bar), "",
                            stream, look);
}

/* Returns the width of a number in decimal. Called for each rank, so no text is made. */
static size_t count_digits(uint32_t n)
{
        size_t d = 1;

        for (; n >= 10; n /= 10)
                d++;
        return d;
}

/* Makes the names of replicas once, because all ranks of a world share one. */
static void name_label_roles(struct label *p)
{
        const struct plan *plan = p->plan;

        if (!plan->world_size || !plan->ranks[0].role)
                return;
        p->n_roles = plan->n_worlds;
        p->roles = xcalloc(p->n_roles, sizeof(*p->roles));
        for (size_t i = 0; i < p->n_roles; i++) {
                int replica = plan_find_replica(plan, i);

                if (replica >= 0)
                        p->roles[i] = xasprintf("%s:%d", plan->ranks[plan->worlds[i].first].role,
                                                replica);
        }
}

struct label *label_create(const char *label, const struct plan *plan, const struct hosts *hosts,
                           struct label_network net)
{
        struct label *p = xcalloc(1, sizeof(*p));
        size_t times[LABEL_KINDS] = { 0 }, fixed = 0;
        struct subst_piece f;

        *p = (struct label){ label, plan, hosts, net, 0, NULL, 0 };
        name_label_roles(p);
        for (const char *at = label; at && *at; at += f.len) {
                f = read_label_field(at);
                if (f.kind == SUBST_PORT)
                        fixed += count_digits(subst_port_number(&f, &net.first));
                else if (f.kind)
                        times[f.kind]++;
                else
                        fixed += f.len;
        }
        for (int r = 0; label && r < plan->world_size; r++) {
                const struct plan_rank *rank = &plan->ranks[r];
                size_t n = fixed;

                for (int k = SUBST_RANK; k < LABEL_KINDS; k++) {
                        const char *text = times[k] ? label_text(p, rank, k, MSG_STDOUT) : NULL;

                        if (times[k])
                                n += times[k] *
                                     (text ? strlen(text) : count_digits(label_number(p, rank, k)));
                }
                p->width = MAX(p->width, n);
        }
        return p;
}

void label_destroy(struct label *p)
{
        for (size_t i = 0; i < p->n_roles; i++)
                free(p->roles[i]);
        free(p->roles);
        free(p->net.master_ports);
        free(p->net.first.ports);
        free(p);
}
