/* SPDX-License-Identifier: Apache-2.0 */
#include "head/model/plan_faults.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
        HN_TOO_MANY_RANKS = 301,
        HN_PPN = 302,
        HN_NO_SUCH_SLOT = 303,
        HN_NO_GPU = 304,
        HN_GPUS_LEFT = 305,
        HN_ONLY_SPARES = 307,
        HN_RANK_TOO_LARGE = 308,
        HN_SLOTS_ABOVE_GPUS = 601,
        HN_NO_SUCH_GPU = 602,
        MAX_PLACES = 200, /* letters of a list of places */
        MAX_GROUPS = 8,   /* rows that explain where slots come from */
};

/* ---- noting ---- */

void plan_faults_add(struct plan_faults *f, enum plan_fault_kind kind, int want, int have,
                     size_t host)
{
        struct plan_fault *same = NULL;

        for (size_t i = 0; i < f->n && !same; i++)
                if (f->v[i].kind == kind && f->v[i].want == want && f->v[i].have == have)
                        same = &f->v[i];
        if (!same) {
                f->v = xrealloc(f->v, f->n + 1, sizeof(*f->v));
                same = &f->v[f->n++];
                *same = (struct plan_fault){ .kind = kind, .want = want, .have = have };
        }
        if (!(same->n & (same->n - 1)))
                same->hosts =
                        xrealloc(same->hosts, same->n ? same->n * 2 : 1, sizeof(*same->hosts));
        same->hosts[same->n++] = host;
        f->errors += kind != FAULT_GPUS_LEFT;
}

void plan_faults_finish(struct plan_faults *f)
{
        for (size_t i = 0; i < f->n; i++)
                free(f->v[i].hosts);
        free(f->v);
        *f = (struct plan_faults){ 0 };
}

/* ---- telling ---- */

static const char *plural(long n)
{
        return n == 1 ? "" : "s";
}

/* "hosts.txt:1-4,7, more.txt:2": where the hosts come from, in their order. Lists have no lines. */
static char *places(const struct hosts *hosts, const size_t *index, size_t n)
{
        const struct host *last = NULL;
        struct buf out = BUF_INIT;

        for (size_t i = 0, end; i < n; i = end) {
                const struct host *first = &hosts->v[index[i]];
                bool list = !strcmp(first->file, "-w"),
                     same = last && !strcmp(last->file, first->file);

                for (end = i + 1, last = first; end < n; last = &hosts->v[index[end++]])
                        if (strcmp(hosts->v[index[end]].file, first->file) ||
                            (!list && hosts->v[index[end]].line > last->line + 1))
                                break;
                if (buf_len(&out) > MAX_PLACES) {
                        buf_appends(&out, ", ...");
                        break;
                }
                if (!same)
                        buf_printf(&out, "%s%s%s", i ? ", " : "", first->file, list ? "" : ":");
                if (!list)
                        buf_printf(&out, "%s%d", same ? "," : "", first->line);
                if (!list && last->line > first->line)
                        buf_printf(&out, "-%d", last->line);
        }
        return buf_steal(&out);
}

static void add_place(struct diag *d, const struct plan_fault *f, const struct hosts *hosts)
{
        char *names = hosts_fold(hosts, f->hosts, f->n), *where = places(hosts, f->hosts, f->n);

        diag_place(d, "%s  (%s)", names, where);
        free(names);
        free(where);
}

/* "gpu044 has", "3 nodes have" */
static char *subject(const struct plan_fault *f, const struct hosts *hosts)
{
        if (f->n == 1)
                return xasprintf("%s has", hosts->v[f->hosts[0]].name);
        return xasprintf("%zu nodes have", f->n);
}

static void slots_above_gpus(const struct plan_fault *f, const char *who, const struct hosts *hosts,
                             const struct plan_inventory *inv, struct diags *diags)
{
        struct diag *d = diag_add(diags, HN_SLOTS_ABOVE_GPUS, EX_UNAVAILABLE,
                                  "%s %d usable GPU%s, %s slots=%d", who, f->have, plural(f->have),
                                  f->n == 1 ? "its line says" : "their lines say", f->want);
        char *names = hosts_fold(hosts, f->hosts, f->n);
        size_t like = 0;

        for (size_t i = 0; i < hosts->n; i++)
                like += inv[i].known && inv[i].gpus == f->want;
        add_place(d, f, hosts);
        if (like)
                diag_note(d, "%zu of %zu nodes have %d GPU%s", like, hosts->n, f->want,
                          plural(f->want));
        diag_help(d, "--exclude %s    or    slots=%d if that is what you want", names, f->have);
        free(names);
}

static void ppn_too_large(const struct plan_fault *f, const struct hosts *hosts, int gpus_per_rank,
                          struct diags *diags)
{
        char *nodes = f->n == 1 ? xasprintf("%s has", hosts->v[f->hosts[0]].name)
                                : xasprintf("these %zu nodes have", f->n);
        const char *each = f->n == 1 ? "" : " each";
        struct diag *d;

        if (gpus_per_rank > 1)
                d = diag_add(diags, HN_PPN, EX_UNAVAILABLE,
                             "--ppn %d, but %s room for %d rank%s%s (--gpus-per-rank %d)", f->want,
                             nodes, f->have, plural(f->have), each, gpus_per_rank);
        else
                d = diag_add(diags, HN_PPN, EX_UNAVAILABLE, "--ppn %d, but %s %d slot%s%s", f->want,
                             nodes, f->have, plural(f->have), each);
        add_place(d, f, hosts);
        diag_help(d,
                  f->have ? "--ppn %d, or --oversubscribe" : "leave them out, or --oversubscribe",
                  f->have);
        free(nodes);
}

static void report(const struct plan_fault *f, const struct hosts *hosts,
                   const struct plan_inventory *inv, const struct plan_options *o,
                   struct diags *diags)
{
        char *who = subject(f, hosts);
        struct diag *d = NULL;

        switch (f->kind) {
        case FAULT_SLOTS_ABOVE_GPUS:
                slots_above_gpus(f, who, hosts, inv, diags);
                break;
        case FAULT_NO_SUCH_GPU:
                d = diag_add(diags, HN_NO_SUCH_GPU, EX_UNAVAILABLE,
                             "%s no GPU %d, which gpus= names", who, f->want);
                add_place(d, f, hosts);
                diag_note(d, "%d GPU%s can be used there", f->have, plural(f->have));
                break;
        case FAULT_NO_SUCH_SLOT:
                d = diag_add(diags, HN_NO_SUCH_SLOT, EX_UNAVAILABLE,
                             "%s no slot %d, which --include or --exclude names", who, f->want);
                add_place(d, f, hosts);
                diag_note(d, "%d slot%s there, counted from 0", f->have, plural(f->have));
                break;
        case FAULT_PPN:
                ppn_too_large(f, hosts, o->gpus_per_rank, diags);
                break;
        case FAULT_PPN_NO_GPU:
                d = diag_add(diags, HN_NO_GPU, EX_UNAVAILABLE, "--ppn gpu, but %s no GPU", who);
                add_place(d, f, hosts);
                diag_help(d, "--ppn with a number, or --ppn cpu");
                break;
        case FAULT_GPUS_LEFT:
                d = diag_warn(diags, HN_GPUS_LEFT, "%s %d GPU%s that no rank uses", who, f->have,
                              plural(f->have));
                add_place(d, f, hosts);
                diag_note(d, "--gpus-per-rank %d does not divide what is there", f->want);
                break;
        }
        free(who);
}

void plan_faults_report(const struct plan_faults *f, const struct hosts *hosts,
                        const struct plan_inventory *inv, const struct plan_options *o,
                        struct diags *d)
{
        for (size_t i = 0; i < f->n; i++)
                report(&f->v[i], hosts, inv, o, d);
}

/* ---- more ranks than slots ---- */

/* Hosts that give the same room for the same reason. */
struct group {
        int slots; /* slots= as given, or room */
        bool given;
        const char *file;
        size_t *hosts, n;
        char *label;
};

static struct group group_of(const struct plan_node *node, const struct host *host)
{
        bool given = host->slots > 0;

        return (struct group){ .slots = given ? host->slots : node->slots,
                               .given = given,
                               .file = host->file };
}

/* Returns the number of groups; hosts beyond MAX_GROUPS kinds are left out. */
static size_t find_groups(const struct plan *p, const struct hosts *hosts, struct group *groups)
{
        size_t n = 0, g;

        for (size_t i = 0; i < p->n_nodes; i++) {
                struct group new = group_of(&p->nodes[i], &hosts->v[i]);

                for (g = 0; g < n; g++)
                        if (groups[g].slots == new.slots && groups[g].given == new.given &&
                            !strcmp(groups[g].file, new.file))
                                break;
                if (g == MAX_GROUPS)
                        continue;
                if (g == n) {
                        groups[n++] = new;
                        groups[g].hosts = xcalloc(p->n_nodes, sizeof(size_t));
                }
                groups[g].hosts[groups[g].n++] = i;
        }
        return n;
}

static void add_rows(struct diag *d, const struct plan_options *o, struct group *groups, size_t n,
                     const struct hosts *hosts)
{
        char *wanted = xasprintf("-n %d", o->np);
        int width = (int)strlen(wanted);

        for (size_t i = 0; i < n; i++) {
                groups[i].label = xasprintf(groups[i].given ? "%zu × slots=%d" : "%zu × %d",
                                            groups[i].n, groups[i].slots);
                width = MAX(width, (int)strlen(groups[i].label) - 1); /* × has two bytes */
        }
        if (o->np)
                diag_row(d, "%-*s     command line", width, wanted);
        for (size_t i = 0; i < n; i++) {
                char *where = places(hosts, groups[i].hosts, groups[i].n);

                diag_row(d, "%-*s     %s", width + 1, groups[i].label, where);
                free(where);
                free(groups[i].label);
                free(groups[i].hosts);
        }
        free(wanted);
}

void plan_fault_too_many_ranks(const struct plan *p, const struct hosts *hosts,
                               const struct plan_options *o, long room, size_t guessed,
                               struct diags *diags)
{
        struct diag *d = diag_add(diags, HN_TOO_MANY_RANKS, EX_UNAVAILABLE,
                                  "%d rank%s wanted, %ld slot%s available", o->np, plural(o->np),
                                  room, plural(room));
        struct group groups[MAX_GROUPS];
        size_t n = find_groups(p, hosts, groups);

        add_rows(d, o, groups, n, hosts);
        if (o->ppn > 0)
                diag_note(d, "--ppn %d sets the ranks of a node", o->ppn);
        if (o->gpus_per_rank > 1)
                diag_note(d, "--gpus-per-rank %d: a rank takes %d GPUs", o->gpus_per_rank,
                          o->gpus_per_rank);
        if (guessed)
                diag_note(d, "%zu node%s without slots= count%s as one: add --probe to ask them",
                          guessed, plural((long)guessed), guessed == 1 ? "s" : "");
        diag_help(d, "-n %ld, add a host, or --oversubscribe", room);
}

void plan_fault_no_room(const struct plan *p, const struct hosts *hosts,
                        const struct plan_options *o, int slots, struct diags *diags)
{
        struct group groups[MAX_GROUPS];
        size_t spares = 0;
        struct diag *d;

        for (size_t i = 0; i < hosts->n; i++)
                spares += hosts->v[i].spare;
        if (spares && spares == hosts->n) {
                d = diag_add(diags, HN_ONLY_SPARES, EX_UNAVAILABLE,
                             spares == 1 ? "the only host is a spare one"
                                         : "all %zu hosts are spare ones",
                             spares);
                diag_help(d, "a spare host waits for another to fail: leave `spare` out of a "
                             "line, or add a host");
                return;
        }
        if (o->gpus_per_rank > 1 && slots)
                d = diag_add(diags, HN_RANK_TOO_LARGE, EX_UNAVAILABLE,
                             "a rank needs %d GPUs; no node has more than %d slot%s",
                             o->gpus_per_rank, slots, plural(slots));
        else
                d = diag_add(diags, HN_TOO_MANY_RANKS, EX_UNAVAILABLE, "no slot is left");
        add_rows(d, o, groups, find_groups(p, hosts, groups), hosts);
        if (o->gpus_per_rank > 1 && slots)
                diag_help(d, "--gpus-per-rank %d, or --oversubscribe", slots);
        else
                diag_help(d, "take fewer slots out with --include and --exclude, or add a host");
}
