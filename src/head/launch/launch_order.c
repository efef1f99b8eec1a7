/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_order_arrange() places the hosts by --topology, or Slurm's topology.conf, before any is
 * connected: the hosts that the job needs are the first of the list then, and the others are left
 * out, or stand by, as always. Without such a file nothing is known yet, all hosts are connected,
 * and launch_order_settle() chooses among them: it asks each agent once for its NVLink domain and
 * switches. Only the agents of an allocation that Slurm itself starts know switches. The plan then
 * follows host_site.turn.
 *
 * A host that takes a place later comes from the same domain if one is there. Else the job starts
 * nevertheless, with a warning: a job that runs slowly is worth more than none.
 */
#include "head/launch/launch_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/hosts/host_order.h"
#include "head/hosts/topology_file.h"
#include "head/launch/launch_private.h"
#include "wire/check_msg.h"

bool launch_order_is_wanted(const struct launch *l)
{
        return l->o->order == ORDER_TOPOLOGY && !l->config->dial_in &&
               (l->o->command == COMMAND_RUN || l->o->command == COMMAND_PLAN);
}

/* Whether agents will tell where they stand. */
static bool is_asked(const struct options *o)
{
        return o->command == COMMAND_RUN || o->probe;
}

static bool knows_domains(const struct hosts *h)
{
        for (size_t i = 0; i < h->n; i++)
                if (host_domain(&h->v[i]))
                        return true;
        return false;
}

bool launch_order_waits(const struct launch *l)
{
        return launch_order_is_wanted(l) && is_asked(l->o) && !knows_domains(&l->hosts);
}

/* Fewer nodes are allowed: takes as many as make whole segments. */
static size_t cut_to_segments(const struct options *o, size_t n)
{
        size_t segment = (size_t)o->segment, cut = segment ? n - n % segment : n;

        return options_min_nodes(o) && cut >= MAX((size_t)options_min_nodes(o), (size_t)1) ? cut
                                                                                           : n;
}

/* ---- before nodes are connected ---- */

/* Returns Slurm's topology.conf of this job, malloc'ed; NULL = there is none to read. */
static char *find_slurm_file(void)
{
        const char *conf = getenv("SLURM_CONF"), *slash = conf ? strrchr(conf, '/') : NULL;
        char *path;

        /* Outside of a job of Slurm the file in /etc may be about other hosts. */
        if (!conf && !getenv("SLURM_JOB_ID"))
                return NULL;
        path = slash ? xasprintf("%.*s/topology.conf", (int)(slash - conf), conf)
                     : xstrdup("/etc/slurm/topology.conf");
        if (access(path, R_OK) == 0)
                return path;
        free(path);
        return NULL;
}

/* Reads a file that the user has not named: errors are no errors of the launch. */
static struct switch_tree *load_slurm_tree(struct launch *l)
{
        CLEANUP(free_textp) char *path = find_slurm_file();
        struct diags d = DIAGS_INIT;
        struct switch_tree *t = path ? topology_load(path, &d) : NULL;

        if (path && !t)
                diag_help(diag_warn(&l->diags, HN_TOPOLOGY_UNREADABLE, "%s is not used: %s", path,
                                    diags_first_error(&d)->fact),
                          "--topology FILE names another one");
        diags_finish(&d);
        return t;
}

static void warn_unplaced(struct launch *l)
{
        const struct hosts *h = &l->hosts;
        CLEANUP(host_group_finish) struct host_group without = { 0 };
        CLEANUP(free_textp) char *names = NULL;
        size_t working = 0;
        struct diag *d;

        for (size_t i = 0; i < h->n; i++) {
                working += !h->v[i].spare;
                if (!h->v[i].spare && !host_domain(&h->v[i]))
                        host_group_add(&without, i);
        }
        if (!without.n || working == 1)
                return;
        if (without.n == working) {
                d = diag_warn(&l->diags, HN_NO_DOMAIN,
                              "no host has a known domain: the order is that of the names");
        } else {
                names = hosts_fold(h, without.hosts, without.n);
                d = diag_warn(&l->diags, HN_NO_DOMAIN,
                              "%zu of %zu hosts %s in no known domain, and come last", without.n,
                              working, without.n == 1 ? "is" : "are");
                diag_place(d, "%s", names);
        }
        diag_help(d, is_asked(l->o)
                             ? "--topology FILE tells the switches: `leaf1: gpu[001-016]`"
                             : "--topology FILE tells the switches, --probe asks the nodes for "
                               "their NVLink domains");
}

/* Arranges the hosts as chosen, of @needed as many as make whole segments. */
static int arrange_hosts(struct launch *l, size_t needed, size_t segment)
{
        struct hosts *h = &l->hosts;
        bool *usable = xcalloc(h->n, sizeof(*usable));
        size_t cut = segment ? cut_to_segments(l->o, needed) : needed, *order;

        for (size_t i = 0; i < h->n; i++)
                usable[i] = !h->v[i].spare;
        order = host_order_choose(h, usable, cut, segment, &l->diags);
        if (order)
                hosts_arrange(h, order);
        /* Hosts beyond the whole segments stand by. */
        for (size_t i = cut; order && i < needed; i++)
                h->v[i].spare = true;
        free(usable);
        free(order);
        return order ? 0 : -EINVAL;
}

size_t launch_order_count(const struct launch *l)
{
        struct diags unused = DIAGS_INIT;
        struct plan p = PLAN_INIT;
        size_t n = 0;

        if (l->o->plan.np && plan_build(&p, &l->hosts, NULL, &l->o->plan, &unused) == 0)
                for (size_t i = 0, working = 0; i < l->hosts.n; i++) {
                        working += !l->hosts.v[i].spare;
                        if (p.nodes[i].n_ranks)
                                n = working;
                }
        plan_finish(&p);
        diags_finish(&unused);
        return n;
}

int launch_order_arrange(struct launch *l, size_t needed)
{
        struct hosts *h = &l->hosts;
        struct switch_tree *t;
        size_t working = 0, segment = (size_t)l->o->segment;
        int r;

        if (!launch_order_is_wanted(l))
                return 0;
        t = l->o->topology ? topology_load(l->o->topology, &l->diags) : load_slurm_tree(l);
        if (!t && l->o->topology)
                return -EINVAL;
        for (size_t i = 0; i < h->n; i++) {
                /* All hosts have a site from here on, also those that stand by. */
                host_site_of(&h->v[i])->stands_by = h->v[i].spare;
                working += !h->v[i].spare;
        }
        if (t)
                topology_place(t, h);
        topology_destroy(t);
        needed = needed ? MIN(needed, working) : working;
        /* Segments are checked later where nodes are still to tell their domains. */
        segment = launch_order_waits(l) ? 0 : segment;
        r = arrange_hosts(l, needed, segment);
        /* The hosts chosen may have fewer slots than the first of the list. */
        for (size_t n; r == 0 && !l->o->nodes && (n = launch_order_count(l)) > needed;) {
                needed = n;
                r = arrange_hosts(l, needed, segment);
        }
        if (r == 0 && !is_asked(l->o))
                warn_unplaced(l);
        return r;
}

/* ---- when nodes are connected ---- */

static bool is_node_ready(const struct launch *l, size_t i)
{
        return job_node(l->run->job, i)->state == NODE_READY;
}

/* Takes a fact of a node. The file knows more of the switches than the node. */
static void take_fact(struct host *h, const struct check_fact *f)
{
        struct host_site *s = host_site_of(h);
        const char *leaf = strrchr(f->value, '/');

        if (*f->problem)
                log_line(LOG_INFO, "%s: %s is not known: %s", h->name, f->name, f->problem);
        if (*f->problem || !strcmp(f->value, "none"))
                return;
        if (!strcmp(f->name, "gpu.domain") && !s->domain)
                s->domain = xstrdup(f->value);
        if (strcmp(f->name, "switch.path") != 0 || s->group)
                return;
        s->path = xstrdup(f->value);
        s->group = xstrdup(leaf ? leaf + 1 : f->value);
}

/* Asks nodes that were not asked before. JOB_DONE or JOB_INTERRUPTED. */
static enum job_step ask_places(struct launch *l)
{
        const struct check_order o = { .what = CHECK_PLACE };
        struct hosts *h = &l->hosts;
        struct checked *facts;
        enum job_step step;
        bool any = false;

        for (size_t i = 0; i < h->n; i++)
                any |= is_node_ready(l, i) && !host_site_of(&h->v[i])->asked;
        if (!any)
                return JOB_DONE;
        facts = xcalloc(h->n, sizeof(*facts));
        /* Nodes with a fact are not asked. */
        for (size_t i = 0; i < h->n; i++)
                if (host_site_of(&h->v[i])->asked)
                        checked_add(&facts[i], "asked", "", "");
        step = job_check(l->run->job, &o, NULL, facts);
        for (size_t i = 0; i < h->n; i++) {
                struct host_site *s = h->v[i].site;

                for (uint32_t k = 0; k < facts[i].n_facts && !s->asked; k++)
                        take_fact(&h->v[i], &facts[i].facts[k]);
                /* A silent node costs each wait its whole time, and is asked once. */
                if (step == JOB_DONE && !s->asked && !facts[i].n_facts && is_node_ready(l, i))
                        log_line(LOG_INFO, "%s: does not tell its domain in time", h->v[i].name);
                s->asked |= facts[i].n_facts > 0 || (step == JOB_DONE && is_node_ready(l, i));
                checked_finish(&facts[i]);
        }
        free(facts);
        return step;
}

/* Returns how many nodes the job has; 0 = the plan finds an error. */
static size_t count_order_nodes(const struct launch *l)
{
        struct diags unused = DIAGS_INIT;
        struct plan p = PLAN_INIT;
        size_t n = 0;

        if (l->o->first)
                for (size_t i = 0; i < l->hosts.n; i++)
                        n += !l->hosts.v[i].spare;
        else if (plan_build(&p, &l->hosts, l->inventory, &l->o->plan, &unused) == 0)
                n = (size_t)p.num_nodes;
        plan_finish(&p);
        diags_finish(&unused);
        return n;
}

/* The first @chosen of the order have ranks, in turns. Where hosts stand by, the others do. */
static void take_turns(struct launch *l, const size_t *order, size_t chosen, const bool *usable,
                       bool others_stand_by)
{
        struct hosts *h = &l->hosts;

        for (size_t i = 0; i < h->n; i++) {
                struct host *host = &h->v[order[i]];

                host->site->turn = i + 1;
                host->place = 0;
                if (usable[order[i]] && (i < chosen || others_stand_by))
                        host->spare = i >= chosen;
        }
}

/* Chooses more hosts if the first @needed of @order have too few slots: they were counted in the
 * order of the list, where hosts with more slots may come first. Returns @order, or another one in
 * its place. */
static size_t *choose_enough(struct launch *l, size_t *order, size_t needed, const bool *usable)
{
        struct diags unused = DIAGS_INIT;
        size_t *more = NULL, n;

        while (!count_order_nodes(l)) {
                take_turns(l, order, l->hosts.n, usable, true);
                n = count_order_nodes(l);
                if (n > needed)
                        more = host_order_choose(&l->hosts, usable, n, (size_t)l->o->segment,
                                                 &unused);
                /* The plan tells what is missing. */
                if (n <= needed || !more) {
                        take_turns(l, order, needed, usable, true);
                        break;
                }
                free(order);
                order = STEAL(&more);
                needed = n;
                take_turns(l, order, needed, usable, true);
        }
        diags_finish(&unused);
        return order;
}

/* Chooses the nodes of the first plan. */
static int choose_nodes(struct launch *l)
{
        struct hosts *h = &l->hosts;
        size_t n = count_order_nodes(l), needed = cut_to_segments(l->o, n), *order;
        bool *usable = xcalloc(h->n, sizeof(*usable)), stand_by = needed < n;

        for (size_t i = 0; i < h->n; i++) {
                usable[i] = is_node_ready(l, i) && !h->v[i].site->stands_by;
                stand_by |= usable[i] && h->v[i].spare;
        }
        order = n ? host_order_choose(h, usable, needed, (size_t)l->o->segment, &l->diags) : NULL;
        if (order)
                take_turns(l, order, needed, usable, stand_by);
        if (order && stand_by && needed == n)
                order = choose_enough(l, order, needed, usable);
        free(usable);
        free(order);
        if (n && !order)
                return verdict_nothing_started(l, EX_UNAVAILABLE);
        if (n)
                warn_unplaced(l);
        return 0;
}

bool launch_order_is_settled(const struct launch *l)
{
        return l->hosts.n && l->hosts.v[0].site && l->hosts.v[0].site->turn;
}

int launch_order_settle(struct launch *l)
{
        if (!launch_order_is_wanted(l))
                return 0;
        /* Also before later plans: hosts that have taken a place tell theirs. */
        if (ask_places(l) == JOB_INTERRUPTED)
                return launch_end_early(l, JOB_INTERRUPTED);
        return launch_order_is_settled(l) ? 0 : choose_nodes(l);
}

/* ---- the plan ---- */

/* Returns the hosts of the plan in the order of the nodes, malloc'ed. */
static size_t *list_nodes(const struct plan *p)
{
        size_t *nodes = xcalloc((size_t)p->num_nodes + 1, sizeof(*nodes));

        for (size_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].node_rank >= 0 && p->nodes[i].n_ranks)
                        nodes[p->nodes[i].node_rank] = p->nodes[i].host;
        return nodes;
}

int launch_order_check(struct launch *l, bool again)
{
        size_t segment = (size_t)l->o->segment, n = (size_t)l->plan.num_nodes, at, end, *nodes;
        int rc = 0;

        if (!segment || !launch_order_is_wanted(l))
                return 0;
        if (again)
                ask_places(l);
        nodes = list_nodes(&l->plan);
        at = host_order_find_split(&l->hosts, nodes, n, segment);
        end = MIN(at + segment, n);
        if (at < n) {
                CLEANUP(free_textp)
                char *domains = host_order_describe(&l->hosts, nodes + at, end - at);

                if (!again) {
                        diag_help(diag_add(&l->diags, HN_SEGMENTS, EX_UNAVAILABLE,
                                           "segments of %zu nodes do not fit: nodes %zu to %zu: %s",
                                           segment, at, end - 1, domains),
                                  "--nodes N takes N of the hosts, and chooses those that fit");
                        rc = verdict_nothing_started(l, EX_UNAVAILABLE);
                } else {
                        log_line(LOG_WARN, "nodes %zu to %zu are a segment no longer: %s", at,
                                 end - 1, domains);
                }
        }
        free(nodes);
        return rc;
}
