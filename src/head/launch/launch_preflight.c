/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes are asked and judged as by `hnlaunch check` (launch_check.c), with the ranks of the
 * plan. launch_preflight() goes on until no node with ranks fails: after a replacement there is
 * another plan, and only hosts that are new have to be asked. Files of a program count on the nodes
 * where it runs; those of the only program are judged on hosts without ranks, too, which may take a
 * place.
 *
 * Facts stay for the whole launch, by place in the list of hosts; hosts[] tells whose they are. A
 * host that takes a place has another name there, and is asked. Names are compared as pointers: a
 * name lives as long as struct hosts, also of a host that has left the list. Connections are tested
 * anew in each round, as they are between nodes.
 */
#include "head/launch/launch_preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/check/check_judge.h"
#include "head/check/check_print.h"
#include "head/job/job_peers.h"
#include "head/job/job_spares.h"
#include "head/launch/launch_private.h"
#include "head/launch/launch_spares.h"

struct launch_preflight {
        struct checked *facts; /* by node */
        const char **hosts;    /* that have told them, lent; NULL = none */
        size_t n;
        bool *judged;           /* by node and program: the files of the program */
        struct job_peers peers; /* of the last round */
        bool told;              /* the warnings */
};

/* A judgement of all nodes, those without ranks included. @nodes borrows @facts, @report borrows
 * @nodes. */
struct judged {
        struct checked *facts;
        struct check_node *nodes;
        struct check_report report;
        char **why; /* by node: is not fit */
        size_t n;   /* so many */
};

static bool is_present(const struct launch *l, size_t node)
{
        return job_node(l->run->job, node)->state == NODE_READY;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Asks the READY hosts that were not asked before. A node that is silent, or lost meanwhile, counts
 * as asked. Makes l->end.preflight at the first call. JOB_DONE or JOB_INTERRUPTED. */
static enum job_step ask_joined(struct launch *l)
{
        struct launch_preflight *p = l->end.preflight;
        int64_t begun_ms = clock_ms();
        enum job_step r;
        size_t n = 0;

        if (!p) {
                p = l->end.preflight = xcalloc(1, sizeof(*p));
                p->n = l->hosts.n;
                p->facts = xcalloc(p->n, sizeof(*p->facts));
                p->hosts = xcalloc(p->n, sizeof(*p->hosts));
                p->judged = xcalloc(p->n * l->n_programs + 1, sizeof(*p->judged));
        }
        for (size_t i = 0; i < p->n; i++) {
                if (p->hosts[i] == l->hosts.v[i].name || !is_present(l, i))
                        continue;
                checked_finish(&p->facts[i]);
                p->hosts[i] = l->hosts.v[i].name;
                for (size_t k = 0; k < l->n_programs; k++)
                        p->judged[i * l->n_programs + k] = false;
                n++;
        }
        if (!n)
                return JOB_DONE;
        r = launch_check_ask(l, p->facts, l->o->preflight >= PREFLIGHT_FILES);
        log_line(LOG_INFO, "preflight: %zu node%s asked in %lld ms", n, n == 1 ? "" : "s",
                 (long long)(clock_ms() - begun_ms));
        return r;
}

/* Tests the connections between the READY nodes, from --preflight=1 on: also between spare hosts.
 * JOB_DONE or JOB_INTERRUPTED. */
static enum job_step test_peers(struct launch *l)
{
        struct launch_preflight *p = l->end.preflight;

        job_peers_finish(&p->peers);
        p->peers = (struct job_peers){ 0 };
        return l->o->preflight < PREFLIGHT_FILES
                       ? JOB_DONE
                       : launch_check_peers(l, p->facts, l->o->preflight == PREFLIGHT_PAIRS, NULL,
                                            &p->peers);
}

/* --- judging ---------------------------------------------------------------------------------- */

static bool runs_program(const struct launch *l, size_t node, int program)
{
        const struct plan_node *n = &l->plan.nodes[node];

        for (int i = 0; i < n->n_ranks; i++)
                if (l->plan.ranks[n->ranks.v[i]].program == program)
                        return true;
        return false;
}

/* Whether a program runs on a node whose files of it were not judged: of several programs, those of
 * a host without ranks are not. */
static bool has_new_program(const struct launch *l, size_t node)
{
        const bool *judged = l->end.preflight->judged + node * l->n_programs;

        for (size_t k = 0; k < l->n_programs && l->n_programs > 1; k++)
                if (!judged[k] && runs_program(l, node, (int)k))
                        return true;
        return false;
}

/* Returns a copy of the facts of a node, in which files of programs that run elsewhere are not
 * known. The facts themselves stay whole: another plan may put other programs there. */
static struct checked copy_facts(const struct launch *l, size_t node)
{
        const struct checked *from = &l->end.preflight->facts[node];
        struct checked to = { 0 };

        for (uint32_t i = 0; i < from->n_facts; i++) {
                const struct check_fact *k = &from->facts[i];
                int program = launch_check_program(k->name);

                if (program >= 0 && l->n_programs > 1 && !runs_program(l, node, program))
                        checked_add(&to, k->name, "", "the program does not run there");
                else
                        checked_add(&to, k->name, k->value, k->problem);
        }
        return to;
}

/* Judges all nodes. Sets why[] of nodes that are READY and fail; a node that is lost is no matter
 * of fitness. @joined, by node, are to blame for a broken connection to the others; NULL = all are
 * alike. judged_finish() frees. */
static void judge_nodes(const struct launch *l, struct judged *to, const bool *joined)
{
        size_t n = l->hosts.n;

        *to = (struct judged){ .facts = xcalloc(n, sizeof(*to->facts)),
                               .why = xcalloc(n, sizeof(*to->why)) };
        for (size_t i = 0; i < n; i++)
                to->facts[i] = copy_facts(l, i);
        to->nodes = launch_check_describe(l, to->facts);
        for (size_t i = 0; i < n; i++) {
                to->nodes[i].aside = !l->plan.nodes[i].n_ranks;
                for (size_t k = 0; k < l->n_programs; k++)
                        if (runs_program(l, i, (int)k))
                                l->end.preflight->judged[i * l->n_programs + k] = true;
        }
        /* Without a profile, and warnings never end a launch. */
        check_judge(&to->report, to->nodes, n, false);
        if (l->o->preflight >= PREFLIGHT_FILES)
                job_peers_judge(&l->end.preflight->peers, &to->report,
                                &(struct peer_blame){ joined });
        for (size_t i = 0; i < n; i++) {
                CLEANUP(free_textp) char *cause = check_print_cause(&to->report, i);

                if (!is_present(l, i) || check_node_level(&to->report, i) != CHECK_FAIL)
                        continue;
                to->why[i] = xasprintf("not fit: %s", cause);
                to->n++;
        }
}

static void judged_finish(struct judged *j, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                checked_finish(&j->facts[i]);
                free(j->why[i]);
        }
        check_report_finish(&j->report);
        free(j->nodes);
        free(j->facts);
        free(j->why);
}

/* --- telling ---------------------------------------------------------------------------------- */

/* Ends the launch: nodes are not fit, and nothing takes their places. Returns the exit code. The
 * links to these nodes may be closed already. */
static int refuse_unfit(struct launch *l, const struct judged *j)
{
        bool replaces = options_replace_nodes(l->o) && l->o->on_bad_node != BAD_NODE_STOP;
        size_t *bad = xcalloc(l->hosts.n, sizeof(*bad)), n = 0, others = 0;
        CLEANUP(free_textp) char *names = NULL;
        struct diag *d;

        for (size_t i = 0; i < l->hosts.n; i++) {
                if (j->why[i])
                        bad[n++] = i;
                others += !j->why[i] && is_present(l, i);
        }
        /* "of N nodes" leaves out nodes that were lost before the judgement. */
        d = diag_add(&l->diags, HN_UNFIT_NODES, EX_UNAVAILABLE, "%zu of %zu nodes %s not fit", n,
                     n + others, n == 1 ? "is" : "are");
        check_print_rows(d, &j->report, &l->hosts, CHECK_FAIL);
        names = hosts_fold(&l->hosts, bad, n);
        /* Without any fit node an advice to leave nodes out would leave none. */
        if (others && replaces)
                launch_spares_note(l);
        else if (others && !l->o->dial_in)
                diag_help(d, "leave out all that failed: --exclude '%s'%s", names,
                          options_replace_nodes(l->o) || l->o->local ||
                                          l->o->on_bad_node == BAD_NODE_STOP
                                  ? ""
                                  : "; --spares N keeps N hosts to replace them");
        free(bad);
        return verdict_nothing_started(l, EX_UNAVAILABLE);
}

/* Tells warnings once, and nodes that have not answered. Other messages, as those of another plan,
 * are told each time. */
static void tell_warnings(struct launch *l, const struct judged *j)
{
        size_t odd = 0;
        struct diag *d;

        for (size_t i = 0; i < l->hosts.n; i++)
                odd += is_present(l, i) && check_node_level(&j->report, i) == CHECK_WARN;
        if (odd && !l->end.preflight->told) {
                d = diag_warn(&l->diags, HN_ODD_NODES, "%zu of %zu nodes %s not as %s should be",
                              odd, l->hosts.n, odd == 1 ? "is" : "are", odd == 1 ? "it" : "they");
                check_print_rows(d, &j->report, &l->hosts, CHECK_WARN);
                diag_help(d, "hnlaunch check with the same options tells the next steps");
                l->end.preflight->told = true;
        }
        verdict_say(l);
}

/* --- the steps -------------------------------------------------------------------------------- */

/* Whether a node with ranks was lost while nodes were asked or tested. */
static bool is_any_lost(const struct launch *l)
{
        for (size_t i = 0; i < l->hosts.n; i++)
                if (l->plan.nodes[i].n_ranks && !is_present(l, i))
                        return true;
        return false;
}

/* One round: asks, judges and replaces. *ret_changed: there is another plan. Returns 0, or the exit
 * code. */
static int go_round(struct launch *l, bool *ret_changed)
{
        enum job_step r = ask_joined(l);
        struct judged j;
        int rc = 0;

        *ret_changed = false;
        if (r == JOB_DONE)
                r = test_peers(l);
        /* A lost node is replaced before the judgement, which then has the facts of the new
         * host. */
        if (r == JOB_DONE && is_any_lost(l)) {
                *ret_changed = true;
                r = launch_spares_settle(l);
        }
        if (r == JOB_DONE && !*ret_changed) {
                judge_nodes(l, &j, NULL);
                *ret_changed = j.n > 0;
                if (j.n)
                        r = launch_spares_put_out(l, j.why, l->o->on_bad_node == BAD_NODE_DROP,
                                                  l->o->on_bad_node == BAD_NODE_STOP);
                else
                        tell_warnings(l, &j);
                if (r == JOB_NODES_UNFIT)
                        rc = refuse_unfit(l, &j);
                judged_finish(&j, l->hosts.n);
        }
        if (!rc && r != JOB_DONE)
                rc = launch_end_early(l, r);
        if (rc || !*ret_changed)
                return rc;
        /* As after any replacement: another host may have other GPUs. */
        launch_take_inventory(l);
        return launch_plan_again(l);
}

int launch_preflight(struct launch *l)
{
        bool changed = l->o->preflight != PREFLIGHT_NONE;
        int rc = 0;

        while (!rc && changed)
                rc = go_round(l, &changed);
        return rc;
}

void launch_preflight_joined(struct launch *l)
{
        struct launch_preflight *p = l->end.preflight;
        bool *joined;
        struct judged j;
        size_t n = 0;

        if (!p)
                return;
        joined = xcalloc(p->n, sizeof(*joined));
        for (size_t i = 0; i < p->n; i++) {
                joined[i] = l->plan.nodes[i].n_ranks && is_present(l, i) &&
                            (p->hosts[i] != l->hosts.v[i].name || has_new_program(l, i));
                n += joined[i];
        }
        if (n && ask_joined(l) == JOB_DONE && test_peers(l) == JOB_DONE) {
                judge_nodes(l, &j, joined);
                for (size_t i = 0; i < p->n; i++)
                        /* Hosts that were fit once stay: only the new ones are to blame.
                         * prepare_again() meets the lost node next. */
                        if (joined[i] && j.why[i]) {
                                log_line(LOG_WARN, "%s is %s", l->hosts.v[i].name, j.why[i]);
                                job_give_up(l->run->job, i, j.why[i]);
                        }
                judged_finish(&j, p->n);
        }
        free(joined);
}

void launch_preflight_free(struct launch *l)
{
        struct launch_preflight *p = l->end.preflight;

        for (size_t i = 0; p && i < p->n; i++)
                checked_finish(&p->facts[i]);
        if (p) {
                job_peers_finish(&p->peers);
                free(p->facts);
                free(p->hosts);
                free(p->judged);
        }
        free(p);
        l->end.preflight = NULL;
}
