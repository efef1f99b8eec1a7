/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node has failed when its link has, or by the plan, the push or the proof of the store's
 * endpoint (struct unfit); then the agent is let go. replace_nodes() gives each failed node another
 * host:
 *
 * - a host that is connected already: both stay in the list, and the plan puts ranks of the new one
 *   where ranks of the old one would be (host.place)
 * - a host that stands by unconnected: the list has the new one in place of the old one, and the
 *   node is connected anew; at once while nodes are being connected (on_node_failed())
 *
 * With too few hosts nothing is changed, and the caller reports the failures as without spares.
 * With --min-nodes the failed nodes become spare hosts, which have no ranks. A fault of all nodes
 * is the user's and replaces none.
 */
#include "head/launch/launch_spares.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/log.h"
#include "head/hosts/filter.h"
#include "head/hosts/spare_hosts.h"
#include "head/job/job_endpoint.h"
#include "head/job/job_push.h"
#include "head/job/job_spares.h"
#include "head/launch/launch_bad_hosts.h"
#include "head/launch/launch_order.h"
#include "head/launch/launch_private.h"
#include "head/nodes/program_link.h"
#include "head/options/config.h"
#include "head/report/report.h"

/* Connected nodes with a fault. */
struct unfit {
        char **why; /* by host, NULL = none */
        size_t n;
        bool apart;         /* all other nodes are known to be without it */
        bool all;           /* as many nodes are needed as now, whatever --min-nodes says */
        const bool *unused; /* with @apart, by host: spare only because of the fault */
};

static void unfit_finish(struct unfit *u, size_t n_hosts)
{
        for (size_t i = 0; u->why && i < n_hosts; i++)
                free(u->why[i]);
        free(u->why);
}

/* Adds a fault of a node, and takes over @why. Each node at most once: u->n counts nodes. */
static void add_unfit(struct unfit *u, size_t node, char *why)
{
        free(u->why[node]);
        u->why[node] = why;
        u->n++;
}

/* ---- the hosts ---- */

/* Warns of --spares auto on the line when the run needs all hosts. */
static void warn_no_spares(struct launch *l)
{
        const struct options *o = l->o;

        /* A configuration file may ask for spares of runs that need fewer hosts: no warning
         * then. */
        if (o->spares != SPARES_AUTO || o->nodes || o->plan.np ||
            settings_level(o->settings, option_by_name("spares")) != LEVEL_LINE)
                return;
        for (size_t i = 0; i < l->hosts.n; i++)
                if (l->hosts.v[i].spare)
                        return;
        diag_help(diag_warn(&l->diags, HN_OPTION_CONFLICT,
                            "--spares auto takes the hosts behind --nodes N or -n N, and neither "
                            "is given"),
                  "--spares N takes the last N hosts");
}

/* Orders the hosts as --order says, before the last ones are left out. Where the domains are not
 * known yet, these are connected as well, for the choice that follows. */
static int order_hosts(struct launch *l, struct spare_rule *rule)
{
        size_t n = rule->nodes ? (size_t)rule->nodes : rule->needed, working = 0;

        for (size_t i = 0; i < l->hosts.n; i++)
                working += !l->hosts.v[i].spare;
        if (!n && rule->spares > 0 && working > (size_t)rule->spares)
                n = working - (size_t)rule->spares;
        if (launch_order_arrange(l, n) < 0)
                return -EINVAL;
        /* Other hosts may be the first now, with other slots. */
        n = rule->needed && launch_order_is_wanted(l) ? launch_order_count(l) : 0;
        rule->needed = n ? n : rule->needed;
        if (launch_order_waits(l)) {
                /* All hosts are connected; launch_order_settle() chooses. */
                rule->connect = true;
                rule->spares = rule->spares ? rule->spares : SPARES_AUTO;
        }
        return 0;
}

void launch_spares_order(struct launch *l)
{
        const struct strv none = STRV_INIT;
        struct spare_rule rule = { .nodes = l->o->nodes, .needed = launch_order_count(l) };

        if (order_hosts(l, &rule) < 0)
                return;
        /* Without spares only --nodes leaves hosts out. */
        rule.needed = 0;
        if (rule.connect)
                spare_hosts_choose(&l->hosts, &rule, &l->diags);
        else
                filter_apply(&l->hosts, &none, &none, l->o->nodes, &l->diags);
}

void launch_spares_choose(struct launch *l)
{
        const struct options *o = l->o;
        /* Before the first hosts are chosen: a host of a list that is longer than needed is not
         * missed. */
        bool first = o->spares == SPARES_AUTO || (options_min_nodes(o) && !o->spares);
        struct spare_rule rule = { .spares = o->spares,
                                   .nodes = o->nodes,
                                   .min = options_min_nodes(o),
                                   /* agents that call are counted when the launch begins */
                                   .connect = program_link_calls(o->via) };

        if (first)
                launch_bad_hosts_apply(l);
        warn_no_spares(l);
        rule.needed = launch_order_count(l);
        if (order_hosts(l, &rule) < 0)
                return;
        if (spare_hosts_choose(&l->hosts, &rule, &l->diags) == 0 && !first)
                launch_bad_hosts_apply(l);
}

static bool is_ready(const struct launch *l, size_t node)
{
        return job_node(l->run->job, node)->state == NODE_READY;
}

static bool has_failed(const struct launch *l, size_t node)
{
        return job_node(l->run->job, node)->state == NODE_FAILED;
}

/* Returns the message of a failed node, lent. Each node that is NODE_FAILED has one. */
static const char *name_failure(const struct launch *l, size_t node)
{
        return job_node(l->run->job, node)->failure->fact;
}

/* ---- replacing ---- */

static void tell_replaced(struct launch *l, size_t node, const char *old, const char *new)
{
        log_line(LOG_WARN, "%s takes the place of %s: %s", new, old, name_failure(l, node));
        events_emit(&l->events, (struct event){ .kind = EVENT_NODE_REPLACED,
                                                .node = (int)node,
                                                .rank = -1,
                                                /* 1: the host was exchanged in the list, 0: ranks
                                                 * move to another place. */
                                                .value = old != l->hosts.v[node].name,
                                                .host = old,
                                                .text = new });
}

/* Puts the next host that stands by in place of a failed node. False: there is none. */
static bool stand_in_for(struct launch *l, size_t node)
{
        const struct host *old = hosts_stand_in(&l->hosts, node);

        if (old)
                tell_replaced(l, node, old->name, l->hosts.v[node].name);
        return old;
}

/* Follows a failure while nodes are connected: spares that are connected come first. */
static bool on_node_failed(void *ctx, size_t node)
{
        struct launch *l = ctx;
        size_t failed = 0, spares = 0;

        if (l->end.started) /* a restart */
                return l->plan.nodes[node].n_ranks && stand_in_for(l, node);
        if (l->hosts.v[node].spare)
                return false;
        for (size_t i = 0; i < l->hosts.n; i++) {
                failed += !l->hosts.v[i].spare && has_failed(l, i);
                spares += l->hosts.v[i].spare && !has_failed(l, i);
        }
        return failed > spares && stand_in_for(l, node);
}

void launch_spares_watch(struct launch *l)
{
        if (options_replace_nodes(l->o))
                job_use_spares(l->run->job, on_node_failed);
}

/* Whether a node with ranks has failed or has a fault. Spare hosts are never bad: they are just not
 * used. */
static bool is_bad(const struct launch *l, const struct unfit *u, size_t node)
{
        return !l->hosts.v[node].spare && (has_failed(l, node) || (u->why && u->why[node]));
}

/* Whether all running nodes have a fault: other nodes would then have the same fault. */
static bool is_fault_of_all(const struct launch *l, const struct unfit *u)
{
        size_t running = 0;

        for (size_t i = 0; i < l->hosts.n; i++)
                running += !l->hosts.v[i].spare;
        return u->n > 0 && !u->apart && u->n == running && running > 1;
}

/* Lets the agents of irreplaceable nodes go, for launch_spares_note(). */
static void give_up_unfit(struct launch *l, const struct unfit *u)
{
        for (size_t i = 0; i < l->hosts.n && u->n && !is_fault_of_all(l, u); i++)
                if (u->why[i] && is_ready(l, i))
                        job_give_up(l->run->job, i, u->why[i]);
}

/* Follows the decision about a failed node. @old: the name of the host. Returns whether the node is
 * being connected. */
static bool follow_decision(struct launch *l, size_t node, const char *old, size_t by)
{
        struct host *h = l->hosts.v;

        if (by == SPARE_NONE) {
                log_line(LOG_WARN, "starting without %s: %s", old, name_failure(l, node));
                return false;
        }
        tell_replaced(l, node, old, by == SPARE_STOOD_IN ? h[node].name : h[by - SPARE_FIRST].name);
        if (by == SPARE_STOOD_IN)
                job_connect_anew(l->run->job, node);
        return by == SPARE_STOOD_IN;
}

/* Whether a host has a fault, and no ranks: no node of the plan has to be replaced. */
static bool is_unfit_spare(const struct launch *l, const struct unfit *u, size_t node)
{
        return u->apart && u->why[node] && l->hosts.v[node].spare;
}

/* Leaves out the hosts with a fault that have no ranks, and will get none. */
static void put_out_spares(struct launch *l, const struct unfit *u)
{
        for (size_t i = 0; i < l->hosts.n; i++) {
                if (!is_unfit_spare(l, u, i) || has_failed(l, i))
                        continue;
                log_line(LOG_WARN, "starting without the %s %s: %s",
                         u->unused[i] ? "unused host" : "spare host", l->hosts.v[i].name,
                         u->why[i]);
                job_give_up(l->run->job, i, u->why[i]);
        }
}

/* One round for the @bad nodes. Returns the number of nodes being connected, or -1: too few hosts
 * are left, and nothing was changed. */
static int replace_bad_nodes(struct launch *l, const struct unfit *u, const bool *bad)
{
        int least = u->all ? 0 : options_min_nodes(l->o);
        size_t n = l->hosts.n, *by = xcalloc(n, sizeof(*by));
        const char **names = xcalloc(n, sizeof(*names));
        bool *failed = xcalloc(n, sizeof(*failed));
        int r = -1;

        for (size_t i = 0; i < n; i++) {
                failed[i] = bad[i] || !is_ready(l, i) || is_unfit_spare(l, u, i);
                names[i] = l->hosts.v[i].name;
        }
        if (!is_fault_of_all(l, u) && spare_hosts_suffice(&l->hosts, failed, least)) {
                r = 0;
                put_out_spares(l, u);
                for (size_t i = 0; i < n; i++) /* under the names of before */
                        if (bad[i] && !has_failed(l, i))
                                job_give_up(l->run->job, i, u->why[i]);
                spare_hosts_replace(&l->hosts, failed, least, by);
                for (size_t i = 0; i < n; i++)
                        r += bad[i] && follow_decision(l, i, names[i], by[i]);
        }
        free(names);
        free(failed);
        free(by);
        return r;
}

/* Replaces nodes that failed, or are in @unfit, or leaves them out. JOB_DONE, JOB_INTERRUPTED.
 * JOB_NODES_UNFIT: too few hosts, nothing is changed. JOB_NODES_LOST: replacements failed as well,
 * and too few hosts are left. */
static enum job_step replace_nodes(struct launch *l, const struct unfit *unfit)
{
        bool *bad = xcalloc(l->hosts.n, sizeof(*bad));
        struct unfit u = *unfit;
        bool changed = false;
        enum job_step r = JOB_DONE;
        size_t n = 1;

        while (n && r == JOB_DONE) {
                int begun;

                n = 0;
                if (job_adopt_orphans(l->run->job))
                        r = job_await_nodes(l->run->job);
                for (size_t i = 0; i < l->hosts.n; i++) {
                        bad[i] = is_bad(l, &u, i);
                        n += bad[i];
                }
                if (!n || r != JOB_DONE)
                        break;
                begun = replace_bad_nodes(l, &u, bad);
                if (begun < 0)
                        r = changed ? JOB_NODES_LOST : JOB_NODES_UNFIT;
                else if (begun > 0)
                        r = job_await_nodes(l->run->job);
                changed = true;
                /* The faults are settled; a further round replaces only nodes that failed
                 * meanwhile. The caller owns the texts. */
                u = (struct unfit){ 0 };
        }
        free(bad);
        return r;
}

enum job_step launch_spares_settle(struct launch *l)
{
        struct hosts *h = &l->hosts;
        enum job_step r;
        bool *spare;

        /* With --order topology hosts are chosen among those that answer. */
        if (!options_replace_nodes(l->o) && !launch_order_is_wanted(l))
                return JOB_NODES_LOST;
        spare = xcalloc(h->n, sizeof(*spare));
        for (size_t i = 0; i < h->n; i++)
                spare[i] = h->v[i].spare;
        r = replace_nodes(l, &(struct unfit){ 0 });
        for (size_t i = 0; i < h->n && r == JOB_DONE; i++)
                if (spare[i] && has_failed(l, i))
                        log_line(LOG_WARN, "starting without the spare host %s: %s", h->v[i].name,
                                 name_failure(l, i));
        free(spare);
        return r == JOB_NODES_UNFIT ? JOB_NODES_LOST : r;
}

/* ---- faults of nodes that are connected ---- */

enum job_step launch_spares_put_out(struct launch *l, char **why, bool drop, bool none_replaced)
{
        struct unfit u = { .why = why, .apart = true, .all = !drop };
        bool any_fit = false, *unused;
        enum job_step r = JOB_DONE;

        for (size_t i = 0; i < l->hosts.n; i++) {
                u.n += why[i] && l->plan.nodes[i].n_ranks;
                any_fit |= is_ready(l, i) && !why[i];
        }
        /* A fault of all is the user's, as in is_fault_of_all(). A single host may still be
         * exchanged. */
        if (!any_fit && l->hosts.n > 1)
                return JOB_NODES_UNFIT;
        u.unused = unused = xcalloc(l->hosts.n, sizeof(*unused));
        for (size_t i = 0; i < l->hosts.n; i++)
                if (why[i] && !l->plan.nodes[i].n_ranks) {
                        unused[i] = !l->hosts.v[i].spare;
                        l->hosts.v[i].spare = true;
                }
        if (u.n) {
                r = none_replaced || !options_replace_nodes(l->o) ? JOB_NODES_UNFIT
                                                                  : replace_nodes(l, &u);
        } else {
                put_out_spares(l, &u);
                if (job_adopt_orphans(l->run->job))
                        r = job_await_nodes(l->run->job);
        }
        if (r == JOB_NODES_UNFIT)
                give_up_unfit(l, &u);
        free(unused);
        return r;
}

/* Returns the fault that the planner finds in a node alone, malloc'ed; NULL = none. */
static char *find_plan_fault(const struct launch *l, size_t node)
{
        /* Alone, the number of ranks of the job would be too much for a node. */
        struct hosts one = { .v = &l->hosts.v[node], .n = 1 };
        struct plan_options o = l->o->plan;
        struct diags d = DIAGS_INIT;
        struct plan p = PLAN_INIT;
        char *fault = NULL;

        o.np = 0;
        if (plan_build(&p, &one, &l->inventory[node], &o, &d) < 0 && diags_first_error(&d))
                fault = xstrdup(diags_first_error(&d)->fact);
        plan_finish(&p);
        diags_finish(&d);
        return fault;
}

int launch_spares_fit(struct launch *l)
{
        bool again = options_replace_nodes(l->o);
        enum job_step r = JOB_DONE;

        while (again) {
                struct unfit u = { xcalloc(l->hosts.n, sizeof(*u.why)), 0 };

                for (size_t i = 0; i < l->hosts.n; i++) {
                        char *why = is_ready(l, i) && !l->hosts.v[i].spare ? find_plan_fault(l, i)
                                                                           : NULL;

                        if (why)
                                add_unfit(&u, i, why);
                }
                r = u.n ? replace_nodes(l, &u) : JOB_DONE;
                again = u.n && r == JOB_DONE;
                if (again)
                        launch_take_inventory(l);
                else if (u.n)
                        give_up_unfit(l, &u);
                unfit_finish(&u, l->hosts.n);
        }
        return r == JOB_DONE || r == JOB_NODES_UNFIT ? 0 : launch_end_early(l, r);
}

static void find_push_faults(const struct launch *l, struct unfit *u)
{
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct pushed *m = job_pushed(l->run->job, i);

                if (m && m->error && is_ready(l, i) && l->plan.nodes[i].n_ranks)
                        add_unfit(
                                u, i,
                                m->error == ETIME
                                        ? xstrdup(m->what)
                                        : xasprintf("cannot store the pushed files: %s",
                                                    *m->what ? m->what : strerror((int)m->error)));
        }
}

/* Adds the nodes that cannot reach the store at the address reached by most nodes; or, if more than
 * half of the nodes cannot, the node of the store instead. */
static void find_probe_faults(const struct launch *l, struct unfit *u)
{
        const struct job_endpoint *e = job_endpoint(l->run->job);
        const char *first = l->hosts.v[e->first].name;
        const struct probed **v = xcalloc(l->hosts.n, sizeof(*v));
        size_t *of = xcalloc(l->hosts.n, sizeof(*of)), n = 0, failed = 0;
        int best;

        for (size_t i = 0; i < l->hosts.n; i++)
                if (e->nodes[i].has_probed) {
                        of[n] = i;
                        v[n++] = &e->nodes[i].probed;
                }
        best = master_addr_nearest(v, n, e->candidates.n);
        for (size_t k = 0; k < n; k++)
                failed += v[k]->results[best].error != 0;
        for (size_t k = 0; k < n && failed * 2 <= n; k++)
                if (v[k]->results[best].error)
                        add_unfit(u, of[k],
                                  xasprintf("cannot reach the store on %s: %s", first,
                                            report_probe_error(v[k]->results[best].error)));
        if (failed * 2 > n)
                add_unfit(u, e->first,
                          xasprintf("%zu of %zu nodes cannot reach the store on it", failed, n));
        free(v);
        free(of);
}

/* Adds the nodes that fail the store's endpoint, by the first step that failed: ports of the ranks,
 * the port of the store, then the probes of all other nodes. */
static void find_endpoint_faults(const struct launch *l, struct unfit *u)
{
        const struct job_endpoint *e = job_endpoint(l->run->job);
        size_t node;
        const char *why = job_port_refusal(l->run->job, &node);

        if (why) {
                add_unfit(u, node, xasprintf("cannot reserve the ports for the ranks: %s", why));
                return;
        }
        for (size_t i = 0; i < l->hosts.n; i++) {
                const struct endpoint_opened *m = e->nodes[i].endpoint_opened;

                if (m && !m->port)
                        add_unfit(u, i, xasprintf("cannot open a port for the store: %s", m->text));
        }
        if (!u->n)
                find_probe_faults(l, u);
}

bool launch_spares_prepare(struct launch *l, enum job_step *step, bool pushed)
{
        struct unfit u = { 0 };
        enum job_step r;

        if (!options_replace_nodes(l->o) || (*step != JOB_NODES_LOST && *step != JOB_NODES_UNFIT))
                return false;
        u.why = xcalloc(l->hosts.n, sizeof(*u.why));
        if (*step == JOB_NODES_UNFIT && pushed)
                find_endpoint_faults(l, &u);
        else if (*step == JOB_NODES_UNFIT)
                find_push_faults(l, &u);
        r = replace_nodes(l, &u);
        if (r == JOB_NODES_UNFIT)
                give_up_unfit(l, &u);
        unfit_finish(&u, l->hosts.n);
        if (r != JOB_DONE) {
                /* Without a change the first reason stays: it names the nodes. */
                if (r != JOB_NODES_UNFIT)
                        *step = r;
                return false;
        }
        launch_take_inventory(l);
        return true;
}

/* ---- after the first attempt ---- */

/* Collects the nodes that refused to start the program. */
static void find_refusing_nodes(const struct launch *l, struct intlist *nodes)
{
        const struct outcome *o = job_outcome(l->run->job);

        for (size_t i = 0; i < o->n_seen; i++)
                if (o->seen[i].kind == CAUSE_REFUSED && o->seen[i].node >= 0 &&
                    o->seen[i].why != REFUSED_ORDER && !intlist_has(nodes, o->seen[i].node))
                        intlist_add(nodes, o->seen[i].node);
}

bool launch_spares_refused(struct launch *l)
{
        const struct outcome *o = job_outcome(l->run->job);
        CLEANUP(intlist_finish) struct intlist nodes = { 0 };
        struct job_next next = { .retired = &nodes, .verb = "replaced", .extra = true };
        size_t spares = hosts_aside(&l->hosts), least = (size_t)options_min_nodes(l->o);

        if (!options_replace_nodes(l->o) || l->o->restart.automatic ||
            o->cause.kind != CAUSE_REFUSED || job_earlier(l->run->job)->n)
                return false;
        for (size_t i = 0; i < l->hosts.n; i++)
                /* Also a connected host without ranks can stand in. */
                spares += is_ready(l, i) && !l->plan.nodes[i].n_ranks;
        find_refusing_nodes(l, &nodes);
        /* Where all nodes refuse the program, another host would, too. */
        if (!nodes.n || nodes.n == (size_t)l->plan.num_nodes)
                return false;
        /* The refusing nodes are neither all replaced nor all left out: keep the failure. */
        if (nodes.n > spares && (!least || l->plan.num_nodes + spares < nodes.n + least))
                return false;
        if (nodes.n > spares)
                next.verb = "left out";
        next.reason = "the program runs on the other nodes";
        return job_restart_as(l->run->job, &l->plan, &next) == JOB_AGAIN;
}

/* ---- no spare is left ---- */

/* Names the options of the command with which it starts although nodes cannot be reached. */
static void help_with_replacing(const struct launch *l, struct diag *d)
{
        bool spares = option_belongs(option_by_name("spares"), l->o->command);
        size_t working = 0, failed = 0;

        for (size_t i = 0; i < l->hosts.n; i++) {
                working += !l->hosts.v[i].spare;
                failed += !l->hosts.v[i].spare && has_failed(l, i);
        }
        if (d->id != HN_UNREACHABLE || l->o->dial_in || !failed || failed == working)
                return;
        if (!option_belongs(option_by_name("nodes"), l->o->command))
                return;
        if (spares && (l->o->plan.np || l->o->first)) /* a job of roles needs all its nodes */
                diag_help(d, "--spares N keeps N hosts to replace nodes that fail");
        else
                diag_help(d, "--nodes %zu:%zu starts without nodes that fail%s", working - failed,
                          working, spares ? ", --spares N keeps N hosts to replace them" : "");
}

void launch_spares_note(struct launch *l)
{
        const struct hosts *h = &l->hosts;
        CLEANUP(free_textp) char *names = NULL;
        struct hosts failed = HOSTS_INIT; /* the names are lent */
        size_t *index, working = 0, lost = h->stood_in, spares = 0;
        struct diag *d = l->diags.n ? &l->diags.v[l->diags.n - 1] : NULL;

        if (!d)
                return;
        if (!options_replace_nodes(l->o)) {
                help_with_replacing(l, d);
                return;
        }
        for (size_t i = 0; i < h->stood_in; i++)
                hosts_add(&failed)->name = h->aside->v[i].name;
        for (size_t i = 0; i < h->n; i++) {
                if (has_failed(l, i))
                        hosts_add(&failed)->name = h->v[i].name;
                working += !h->v[i].spare;
                lost += has_failed(l, i) && !h->v[i].spare;
                spares += !has_failed(l, i) && h->v[i].spare;
        }
        working += h->stood_in;
        index = xcalloc(failed.n, sizeof(*index));
        for (size_t i = 0; i < failed.n; i++)
                index[i] = i;
        names = hosts_fold(&failed, index, failed.n);
        if (failed.n)
                diag_note(d, "%zu of %zu nodes failed, and %zu spare host%s answered%s", lost,
                          working, spares, spares == 1 ? "" : "s",
                          spares >= lost ? ": it needs as many slots as the node" : "");
        /* The only error of unreachable nodes has such a line. */
        if (failed.n && failed.n < h->n + h->stood_in &&
            (diags_errors(&l->diags) > 1 || h->stood_in || l->inventory))
                diag_help(d, "leave out all that failed: --exclude '%s'", names);
        free(index);
        free(failed.v);
}
