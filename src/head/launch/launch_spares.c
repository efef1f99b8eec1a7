/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare hosts are connected with all others. When every node has answered or failed, and before
 * the plan is made, spare_hosts_replace() gives the places of failed nodes to spare hosts, or
 * leaves such nodes out. A failed node stays in the list, marked spare, and gets no ranks; a spare
 * host keeps its index and stands at another place of the plan, so that ranks keep their order.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "head/hosts/spare_hosts.h"
#include "head/launch/launch_bad_hosts.h"
#include "head/launch/launch_private.h"

bool launch_spares_wanted(const struct launch *l)
{
        return l->o.spares || l->o.min_nodes;
}

void launch_spares_choose(struct launch *l)
{
        const struct spare_rule rule = { .spares = l->o.spares,
                                         .nodes = l->o.nodes,
                                         .min = l->o.min_nodes };

        if (spare_hosts_choose(&l->hosts, &rule, &l->diags) == 0)
                launch_bad_hosts_apply(l);
}

static bool node_failed(const struct launch *l, size_t i)
{
        return job_node(l->run.job, i)->state == NODE_FAILED;
}

static void tell_replaced(struct launch *l, size_t lost, size_t by)
{
        const struct host *h = &l->hosts.v[lost];

        log_line(LOG_WARN, "%s takes the place of %s: %s", l->hosts.v[by].name, h->name,
                 job_node(l->run.job, lost)->failure->fact);
        events_emit(&l->events, (struct event){ .kind = EVENT_NODE_REPLACED,
                                                .node = (int)lost,
                                                .rank = -1,
                                                .host = h->name,
                                                .text = l->hosts.v[by].name });
}

/* Tells the fate of each failed node in one line. @was_spare: before the replacement. */
static void tell_changes(struct launch *l, const bool *was_spare)
{
        const struct hosts *h = &l->hosts;
        size_t *taken_by = xcalloc(h->n, sizeof(*taken_by));

        for (size_t i = 0; i < h->n; i++)
                if (h->v[i].place)
                        taken_by[h->v[i].place - 1] = i + 1;
        for (size_t i = 0; i < h->n; i++) {
                if (!node_failed(l, i))
                        continue;
                if (taken_by[i])
                        tell_replaced(l, i, taken_by[i] - 1);
                else
                        log_line(LOG_WARN, "starting without %s%s: %s",
                                 was_spare[i] ? "the spare host " : "", h->v[i].name,
                                 job_node(l->run.job, i)->failure->fact);
        }
        free(taken_by);
}

int launch_spares_replace(struct launch *l)
{
        struct hosts *h = &l->hosts;
        bool *failed, *was_spare;
        size_t missing;

        if (!launch_spares_wanted(l))
                return -EHOSTUNREACH;
        failed = xcalloc(h->n, sizeof(*failed));
        was_spare = xcalloc(h->n, sizeof(*was_spare));
        for (size_t i = 0; i < h->n; i++) {
                failed[i] = node_failed(l, i);
                was_spare[i] = h->v[i].spare;
        }
        missing = spare_hosts_replace(h, failed, l->o.min_nodes);
        if (!missing)
                tell_changes(l, was_spare);
        free(failed);
        free(was_spare);
        return missing ? -EHOSTUNREACH : 0;
}

void launch_spares_note(struct launch *l)
{
        const struct hosts *h = &l->hosts;
        CLEANUP(free_textp) char *names = NULL;
        size_t *failed, n = 0, spares = 0, lost = 0, working = 0;

        if (!launch_spares_wanted(l) || !l->diags.n || l->inventory)
                return;
        failed = xcalloc(h->n, sizeof(*failed));
        for (size_t i = 0; i < h->n; i++) {
                if (node_failed(l, i))
                        failed[n++] = i;
                working += !h->v[i].spare;
                lost += node_failed(l, i) && !h->v[i].spare;
                spares += !node_failed(l, i) && h->v[i].spare;
        }
        names = hosts_fold(h, failed, n);
        if (n) {
                struct diag *d = &l->diags.v[l->diags.n - 1];

                diag_note(d, "%zu of %zu nodes failed, and %zu spare host%s answered%s", lost,
                          working, spares, spares == 1 ? "" : "s",
                          spares >= lost ? ": it needs as many slots as the node" : "");
                if (n < h->n && diags_errors(&l->diags) > 1)
                        diag_help(d, "leave out all that failed: --exclude '%s'", names);
        }
        free(failed);
}
