/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c adds faults while it surveys the nodes in turn; equal faults share an entry, to which the
 * node is added, so a message names all nodes, "gpu[001-064]  (hosts.txt:1-64)". The two messages
 * on too little capacity are not faults of single nodes: the rows explain the sum by kinds of
 * lines, for example "16 × slots=8     hosts.txt:1-16".
 */
#include "head/model/plan_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"

enum {
        MAX_GROUPS = 8, /* rows on the origin of slots */
};

/* ---- noting ---- */

void plan_faults_add(struct plan_faults *f, enum plan_fault_kind kind, int want, int have,
                     size_t host)
{
        size_t i = 0;

        while (i < f->n && (f->v[i].kind != kind || f->v[i].want != want || f->v[i].have != have))
                i++;
        if (i == f->n) {
                f->v = xrealloc(f->v, f->n + 1, sizeof(*f->v));
                f->v[f->n++] = (struct plan_fault){ .kind = kind, .want = want, .have = have };
        }
        host_group_add(&f->v[i].nodes, host);
        /* Counts nodes, not entries; the caller only asks whether there are any. */
        f->errors += kind != FAULT_GPUS_LEFT;
}

void plan_faults_finish(struct plan_faults *f)
{
        for (size_t i = 0; i < f->n; i++)
                host_group_finish(&f->v[i].nodes);
        free(f->v);
        *f = (struct plan_faults){ 0 };
}

/* ---- telling ---- */

static const char *plural_s(long n)
{
        return n == 1 ? "" : "s";
}

/* Adds the lines of the hostfile from which the nodes come. */
static void place_fault(struct diag *d, const struct plan_fault *f, const struct hosts *hosts)
{
        CLEANUP(free_textp) char *where = hosts_locate(hosts, f->nodes.hosts, f->nodes.n);

        diag_place(d, "%s", where);
}

/* HN601. The note tells how many nodes have as many GPUs as asked for: a node with fewer may have
 * lost one. @inv is known, else no node has the fault. */
static struct diag *report_slots_above_gpus(const struct plan_fault *f, const char *nodes,
                                            const struct hosts *hosts,
                                            const struct plan_inventory *inv, struct diags *diags)
{
        struct diag *d =
                diag_add(diags, HN_SLOTS_ABOVE_GPUS, EX_UNAVAILABLE,
                         "%s %d usable GPU%s, %s slots=%d", nodes, f->have, plural_s(f->have),
                         f->nodes.n == 1 ? "its line says" : "their lines say", f->want);
        CLEANUP(free_textp) char *names = hosts_fold(hosts, f->nodes.hosts, f->nodes.n);
        size_t like = 0;

        for (size_t i = 0; i < hosts->n; i++)
                like += inv[i].known && inv[i].gpus == f->want;
        place_fault(d, f, hosts);
        if (like)
                diag_note(d, "%zu of %zu nodes have %d GPU%s", like, hosts->n, f->want,
                          plural_s(f->want));
        diag_help(d, "--exclude %s, or set slots=%d", names, f->have);
        return d;
}

/* HN302. With several GPUs a rank, slots are no longer ranks, so the message counts ranks. */
static struct diag *report_ppn_too_large(const struct plan_fault *f, const struct hosts *hosts,
                                         int gpus_per_rank, struct diags *diags)
{
        CLEANUP(free_textp)
        char *nodes = f->nodes.n == 1 ? xasprintf("%s has", hosts->v[f->nodes.hosts[0]].name)
                                      : xasprintf("these %zu nodes have", f->nodes.n);
        const char *each = f->nodes.n == 1 ? "" : " each";
        struct diag *d;

        if (gpus_per_rank > 1)
                d = diag_add(diags, HN_PPN_TOO_LARGE, EX_UNAVAILABLE,
                             "--ppn %d, but %s room for %d rank%s%s (--gpus-per-rank %d)", f->want,
                             nodes, f->have, plural_s(f->have), each, gpus_per_rank);
        else
                d = diag_add(diags, HN_PPN_TOO_LARGE, EX_UNAVAILABLE,
                             "--ppn %d, but %s %d slot%s%s", f->want, nodes, f->have,
                             plural_s(f->have), each);
        place_fault(d, f, hosts);
        diag_help(d,
                  f->have ? "--ppn %d, or --oversubscribe" : "leave them out, or --oversubscribe",
                  f->have);
        return d;
}

/* Adds the message of a fault, for all its nodes. An own CUDA_VISIBLE_DEVICES of the user is named,
 * because GPUs outside of the list exist but do not count. */
static void report_fault(const struct plan_fault *f, const struct hosts *hosts,
                         const struct plan_inventory *inv, const struct plan_options *o,
                         struct diags *diags)
{
        CLEANUP(free_textp)
        char *nodes = f->nodes.n == 1 ? xasprintf("%s has", hosts->v[f->nodes.hosts[0]].name)
                                      : xasprintf("%zu nodes have", f->nodes.n);
        struct diag *d = NULL;

        switch (f->kind) {
        case FAULT_SLOTS_ABOVE_GPUS:
                d = report_slots_above_gpus(f, nodes, hosts, inv, diags);
                break;
        case FAULT_NO_SUCH_GPU:
                d = diag_add(diags, HN_NO_SUCH_GPU, EX_UNAVAILABLE,
                             "%s no GPU %d, which gpus= names", nodes, f->want);
                place_fault(d, f, hosts);
                diag_note(d, "%d GPU%s can be used there", f->have, plural_s(f->have));
                break;
        case FAULT_NO_SUCH_SLOT:
                d = diag_add(diags, HN_NO_SLOT_ON_NODE, EX_UNAVAILABLE,
                             "%s no slot %d, which --include or --exclude names", nodes, f->want);
                place_fault(d, f, hosts);
                diag_note(d, "%d slot%s there, counted from 0", f->have, plural_s(f->have));
                break;
        case FAULT_PPN:
                d = report_ppn_too_large(f, hosts, o->gpus_per_rank, diags);
                break;
        case FAULT_PPN_NO_GPU:
                d = diag_add(diags, HN_NO_GPU, EX_UNAVAILABLE, "--ppn gpu, but %s no GPU", nodes);
                place_fault(d, f, hosts);
                diag_help(d, "--ppn with a number, or --ppn cpu");
                break;
        case FAULT_GPUS_LEFT:
                d = diag_warn(diags, HN_GPUS_LEFT, "%s %d GPU%s that no rank uses", nodes, f->have,
                              plural_s(f->have));
                place_fault(d, f, hosts);
                diag_note(d, "--gpus-per-rank %d does not divide the number of GPUs", f->want);
                break;
        }
        if (inv && inv[f->nodes.hosts[0]].chosen)
                diag_note(d, "CUDA_VISIBLE_DEVICES names %d GPU%s there",
                          inv[f->nodes.hosts[0]].gpus, plural_s(inv[f->nodes.hosts[0]].gpus));
}

void plan_faults_report(const struct plan_faults *f, const struct hosts *hosts,
                        const struct plan_inventory *inv, const struct plan_options *o,
                        struct diags *d)
{
        for (size_t i = 0; i < f->n; i++)
                report_fault(&f->v[i], hosts, inv, o, d);
}

/* ---- more ranks than slots ---- */

/* The context of is_same_capacity(). */
struct capacity_view {
        const struct plan *plan;
        const struct hosts *hosts;
};

/* Whether two hosts have equal numbers of slots, both given or both found, in the same file. */
static bool is_same_capacity(const void *ctx, size_t a, size_t b)
{
        const struct capacity_view *v = ctx;
        const struct host *x = &v->hosts->v[a], *y = &v->hosts->v[b];

        return x->slots == y->slots && !strcmp(x->file, y->file) &&
               (x->slots || v->plan->nodes[a].slots == v->plan->nodes[b].slots);
}

/* Adds the row of -n, and a row for each kind of host: number of slots and places. */
static void add_capacity_rows(struct diag *d, const struct plan_options *o, const struct plan *p,
                              const struct hosts *hosts)
{
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };
        CLEANUP(strv_finish) struct strv labels = STRV_INIT;
        struct capacity_view view = { p, hosts };
        int width = snprintf(NULL, 0, "-n %d", o->np);

        for (size_t i = 0; i < p->n_nodes; i++)
                host_groups_add(&groups, i, is_same_capacity, &view);
        for (size_t i = 0; i < MIN(groups.n, (size_t)MAX_GROUPS); i++) {
                size_t first = groups.v[i].hosts[0];
                int given = hosts->v[first].slots;

                strv_pushf(&labels, given ? "%zu × slots=%d" : "%zu × %d", groups.v[i].n,
                           given ? given : p->nodes[first].slots);
                width = MAX(width, (int)strlen(labels.v[i]) - 1); /* × has two bytes */
        }
        if (o->np)
                diag_row(d, "-n %-*d     wanted", width - 3, o->np);
        for (size_t i = 0; i < labels.n; i++) {
                CLEANUP(free_textp)
                char *where = hosts_places(hosts, groups.v[i].hosts, groups.v[i].n);

                diag_row(d, "%-*s     %s", width + 1, labels.v[i], where);
        }
}

struct diag *plan_fault_too_many_ranks(const struct plan *p, const struct hosts *hosts,
                                       const struct plan_options *o, long capacity, size_t guessed,
                                       struct diags *diags)
{
        struct diag *d = diag_add(diags, HN_TOO_MANY_RANKS, EX_UNAVAILABLE,
                                  "%d rank%s wanted, %ld slot%s available", o->np, plural_s(o->np),
                                  capacity, plural_s(capacity));

        add_capacity_rows(d, o, p, hosts);
        if (o->ppn > 0)
                diag_note(d, "--ppn %d sets the ranks of a node", o->ppn);
        if (o->gpus_per_rank > 1)
                diag_note(d, "--gpus-per-rank %d: a rank takes %d GPUs", o->gpus_per_rank,
                          o->gpus_per_rank);
        if (guessed)
                diag_note(d, "%zu node%s without slots= count%s as one: add --probe to ask them",
                          guessed, plural_s((long)guessed), guessed == 1 ? "s" : "");
        if (o->local)
                diag_help(d, "-n %ld, --local %d, or --oversubscribe", capacity, o->np);
        else
                diag_help(d, "-n %ld, add a host, or --oversubscribe", capacity);
        return d;
}

void plan_fault_no_capacity(const struct plan *p, const struct hosts *hosts,
                            const struct plan_options *o, int slots, struct diags *diags)
{
        size_t spares = 0;
        struct diag *d;

        for (size_t i = 0; i < hosts->n; i++)
                spares += hosts->v[i].spare;
        if (spares && spares == hosts->n) {
                d = diag_add(diags, HN_ONLY_SPARES, EX_UNAVAILABLE,
                             spares == 1 ? "the only host is spare" : "all %zu hosts are spare",
                             spares);
                diag_help(d, "a spare host has no ranks until a node is lost: remove `spare` from "
                             "a line, or add a host");
                return;
        }
        if (o->gpus_per_rank > 1 && slots)
                d = diag_add(diags, HN_RANK_TOO_LARGE, EX_UNAVAILABLE,
                             "a rank needs %d GPUs; no node has more than %d slot%s",
                             o->gpus_per_rank, slots, plural_s(slots));
        else
                d = diag_add(diags, HN_TOO_MANY_RANKS, EX_UNAVAILABLE, "no slot is left");
        add_capacity_rows(d, o, p, hosts);
        if (o->gpus_per_rank > 1 && slots)
                diag_help(d, "--gpus-per-rank %d, or --oversubscribe", slots);
        else
                diag_help(d, "take fewer slots out with --include and --exclude, or add a host");
}
