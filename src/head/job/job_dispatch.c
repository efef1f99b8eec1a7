/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and changes of nodes enter the job here: on_node_message() finds the part concerned in
 * the table dispatch[]; on_node_changed() keeps the counts of the cluster.
 *
 * An agent is trusted with the ranks of the node only. A message which is malformed, out of turn
 * (docs/protocol.md has the rules; turns.c follows the ranks), or about a rank of another node
 * makes the handler return a negative number, and the node is lost.
 *
 * A rank's end is recorded before the store tells the peers: the cause of the job is known when the
 * failures of the peers arrive.
 */
#include "head/hold/hold.h"
#include "head/job/job_private.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/job/job_owners.h"
#include "head/model/known_bad.h"
#include "head/model/lone_rank.h"
#include "head/model/rank_board.h"
#include "head/nodes/transport_tree.h"
#include "head/options/program_options.h"
#include "head/pull/pull.h"
#include "head/pull/trace_fetch.h"
#include "wire/status_msg.h"

/* --- ranks --- */

/* Tells the store, and so the peers, about the end of a rank. */
static void tell_peers(struct job *j, const struct cause *rank, const char *host, int status)
{
        struct cause c = *rank;
        char end[80], text[640], who[PLAN_RANK_NAME_MAX];

        if ((!status && c.kind != CAUSE_UNFINALIZED) ||
            j->config->options->on_failure == FAILURE_CONTINUE) {
                world_servers_rank_exited(j->attempt->stores, c.rank);
                return;
        }
        outcome_read_status(&c, status);
        outcome_describe(&c, end, sizeof(end));
        snprintf(text, sizeof(text), "%s (%.400s) %s",
                 plan_rank_name(j->attempt->plan, c.rank, who), host, end);
        world_servers_rank_failed(j->attempt->stores, c.rank, text);
}

/* Fails the job when a second rank was a world of one: one may have run a program of its own. */
static void count_lone_world(struct job *j, const struct lone_rank *r)
{
        const struct plan *plan = j->attempt->plan;
        struct cause c = attempt_cause(j->attempt, CAUSE_WORLDS);
        int rank = (int)r->end->rank, other;
        char both[2 * PLAN_RANK_NAME_MAX], names[2][PLAN_RANK_NAME_MAX];

        /* Ranks of different worlds do not look for each other. */
        if (!j->told.alone || plan->ranks[j->told.alone - 1].world != plan->ranks[rank].world)
                j->told.alone = rank + 1;
        other = j->told.alone - 1;
        if (other == rank)
                return;
        if (plan->ranks[rank].role)
                snprintf(both, sizeof(both), "%s and %s",
                         plan_rank_name(plan, MIN(rank, other), names[0]),
                         plan_rank_name(plan, MAX(rank, other), names[1]));
        else
                snprintf(both, sizeof(both), "ranks %d and %d", MIN(rank, other), MAX(rank, other));
        lone_rank_sentence(r, both, c.text, sizeof(c.text));
        attempt_fail(j->attempt, &c);
}

/* Warns of the first rank that used MPI alone. */
static void tell_lone_rank(struct job *j, const struct exited *e, const char *host)
{
        const struct plan_rank *rank = &j->attempt->plan->ranks[e->rank];
        size_t program = (size_t)rank->program;
        const struct lone_rank r = { .end = e,
                                     .plan = j->attempt->plan,
                                     .host = host,
                                     .mpi = j->mpi,
                                     .kind = options_mpi(j->config->options, program),
                                     .joined = world_servers_has_joined(j->attempt->stores,
                                                                        (int)e->rank) };
        struct diags d = DIAGS_INIT;

        if (rank->role && j->attempt->plan->worlds[rank->world].size == 1)
                return; /* it has no others */
        if (!j->told.lone_rank && lone_rank_warn(&r, &d)) {
                j->told.lone_rank = true;
                if (j->config->say)
                        j->config->say(j->config->say_ctx, &d);
        }
        diags_finish(&d);
        if (lone_rank_is_alone(&r))
                count_lone_world(j, &r);
}

/* The end of a rank. The order of the calls counts: views learn of the end by the event first, then
 * the outcome decides whether the end is the cause, then clients of the store learn of the failed
 * rank, and only then the ranks are stopped. */
static int on_exited(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct cause c = { .node = n->index };
        struct exited e;
        int64_t now = clock_ns();
        int status, code, ended;
        bool is_cause = false, goes_on = j->config->options->on_failure == FAILURE_CONTINUE;
        char *words;

        if (exited_decode(&e, f, err) < 0 ||
            turns_take(j->attempt->turns, n->index, f->type, e.rank, err) < 0)
                return -EPROTO;
        status = (int)e.status;
        if (e.status > UINT16_MAX || (!WIFEXITED(status) && !WIFSIGNALED(status)))
                return err_set(err, EPROTO, "malformed EXITED message: wait status %#x", e.status);
        code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
        if (!status && e.mpi == RANK_MPI_UNFINALIZED)
                c.kind = CAUSE_UNFINALIZED;
        words = code || c.kind ? attempt_newest_stderr(j->attempt, (int)e.rank, &c.told) : NULL;
        c.rank = (int)e.rank;
        c.pid = e.pid;
        c.at_ns = (int64_t)(e.mono_ns - (uint64_t)n->clock.offset_ns);
        /* The clock offset has an error: no rank ends before the launch, or in the future. */
        c.at_ns = MAX(MIN(c.at_ns, now), j->attempt->launched_ns);
        c.error_ns = clock_offset_error(&n->clock, now);
        c.after_ms = (uint64_t)MAX(c.at_ns - j->attempt->launched_ns, 0) / 1000000;
        c.step = MAX(j->config->ranks->rows[c.rank].step, INT64_C(0));
        c.oom.before = e.oom_before;
        c.oom.after = e.oom_after;
        memcpy(c.oom.file, e.oom, sizeof(c.oom.file));
        /* A rank without interest must not hold back the input of the others. */
        stdin_pump_left(j->stdin_pump, c.rank);
        job_status_ended(j->status, c.rank);
        cluster_emit(j->cluster, EVENT_RANK_EXITED, n->index, c.rank, code, NULL);
        ended = c.kind ? EXIT_FAILURE : code < 0 ? EX_SIGNAL - code : code;
        if (job_starts_again(j, &c, status, ended, e.stopped)) {
                free(words);
                return 0;
        }
        if (!e.stopped && job_roles_allow(j->roles, c.rank, ended))
                outcome_allowed(&j->attempt->outcome);
        else
                is_cause = outcome_exited(&j->attempt->outcome, &c, status, e.stopped, e.killed,
                                          words);
        free(words);
        tell_lone_rank(j, &e, n->host->name);
        tell_peers(j, &c, n->host->name, status);
        /* Behind tell_peers(): clients learn of the failed rank before the order to stop. */
        job_failed(j, is_cause);
        if (!status && c.kind != CAUSE_UNFINALIZED)
                job_rank_succeeded(j, c.rank);
        job_drain_rank_ended(j->orders.drain, c.rank, !status && c.kind != CAUSE_UNFINALIZED);
        job_roles_ended(j->roles, c.rank, goes_on ? 0 : ended, code < 0 ? -code : 0);
        return 0;
}

/* A rank could not be started, or, without a rank, the order to a node. */
static int on_refused(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct refused m;
        struct cause c = attempt_cause(j->attempt, CAUSE_REFUSED);
        const struct intlist *ranks = &j->attempt->plan->nodes[n->index].ranks;
        int r = refused_decode(&m, f, err);

        if (r == 0)
                r = turns_refused(j->attempt->turns, n->index, m.rank, err);
        if (r < 0)
                return -EPROTO;
        /* The orders that were under way are refused, too: the first refusal has the reason. */
        if (r > 0)
                return 0;
        if (m.rank != MSG_NO_RANK)
                c.rank = (int)m.rank;
        c.node = n->index;
        c.why = m.why;
        c.error = (int)m.error;
        snprintf(c.text, sizeof(c.text), "%s", m.text);
        attempt_fail(j->attempt, &c);
        for (size_t i = 0; i < ranks->n; i++)
                if (turns_is_refused(j->attempt->turns, ranks->v[i]))
                        stdin_pump_left(j->stdin_pump, ranks->v[i]);
        job_roles_refused(j->roles, n, &m);
        return 0;
}

/* Output within the granted window: more than the window would be memory that the head never
 * promised. */
static int on_output(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct output m;
        size_t granted;

        if (output_decode(&m, f, err) < 0 ||
            turns_output(j->attempt->turns, n->index, m.rank, m.stream, m.len, err) < 0)
                return -EPROTO;
        granted = printer_granted(j->attempt->printer, (int)m.rank, m.stream);
        if (m.len > granted)
                return err_set(err, EPROTO,
                               "message with %zu bytes of output of rank %u, of which %zu were "
                               "granted",
                               m.len, m.rank, granted);
        printer_put(j->attempt->printer, (int)m.rank, m.stream, m.data, m.len);
        if (m.len)
                job_status_output(j->status, (int)m.rank);
        readiness_output(j->readiness, (int)m.rank, m.stream, m.data, m.len);
        return 0;
}

static int on_started(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct started m;

        if (started_decode(&m, f, err) < 0 ||
            turns_take(j->attempt->turns, n->index, f->type, m.rank, err) < 0)
                return -EPROTO;
        cluster_emit(j->cluster, EVENT_RANK_STARTED, n->index, (int)m.rank, m.pid, NULL);
        stdin_pump_started(j->stdin_pump, (int)m.rank);
        readiness_started(j->readiness, (int)m.rank);
        job_rank_started(j);
        job_roles_started(j->roles, (int)m.rank);
        return 0;
}

/* The agent of a rank has asked it, and had an answer. */
static int on_ready(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        uint32_t rank;

        if (number_decode(&rank, f, err) < 0 ||
            turns_take(j->attempt->turns, n->index, f->type, rank, err) < 0)
                return -EPROTO;
        if (!readiness_is_asked(j->readiness, (int)rank))
                return err_set(err, EPROTO,
                               "message out of turn: RANK_READY of rank %u, which is not asked",
                               rank);
        job_rank_ready(j, (int)rank);
        return 0;
}

/* A rank has read standard input. */
static int on_credit(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct credit m;

        if (credit_decode(&m, f, err) < 0 ||
            turns_take(j->attempt->turns, n->index, f->type, m.rank, err) < 0)
                return -EPROTO;
        if (stdin_pump_credit(j->stdin_pump, (int)m.rank, m.bytes) < 0)
                return err_set(err, EPROTO,
                               "message out of turn: CREDIT for more input than rank %u was sent",
                               m.rank);
        return 0;
}

/* The error file of a rank, written by torch.distributed.elastic's @record when a Python exception
 * ends main(): {"message": {"message": "ValueError: ...", "extraInfo": {"py_callstack": ...}}}.
 * Older releases put a plain string under "message". A text of another form is ignored. */
static int on_report(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        json_t *root, *message;
        const char *said, *trace;
        struct output m;

        if (rank_bytes_decode(&m, f, err) < 0 ||
            turns_take(j->attempt->turns, n->index, f->type, m.rank, err) < 0)
                return -EPROTO;
        root = json_loadb((const char *)m.data, m.len, 0, NULL);
        message = json_object_get(root, "message");
        said = json_string_value(message);
        if (!said)
                said = json_string_value(json_object_get(message, "message"));
        trace = json_string_value(
                json_object_get(json_object_get(message, "extraInfo"), "py_callstack"));
        if (said) {
                outcome_add_report(&j->attempt->outcome, (int)m.rank, "python", said, trace);
                cluster_emit(j->cluster, EVENT_RANK_REPORT, n->index, (int)m.rank, 0, said);
        }
        json_decref(root);
        return 0;
}

/* A part of a dump: with a number the answer to a look of `why`; without, that of the end. */
static int on_dump(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct dump m;

        if (dump_decode(&m, f, err) < 0)
                return -EPROTO;
        if (m.number > j->orders.inspections)
                return err_set(err, EPROTO, "message out of turn: DUMP without a request");
        if (m.number)
                return j->config->why.dump
                               ? j->config->why.dump(j->config->why.ctx, n->index, &m, err)
                               : 0;
        if (n->state != NODE_RUNNING)
                return err_set(err, EPROTO, "message out of turn: DUMP, while no ranks run there");
        if (turns_dump(j->attempt->turns, n->index, err) < 0)
                return -EPROTO;
        return dump_files_take(j->attempt->dumps, n->index, &m, err);
}

/* Warns of the first NCCL of the job with a known fault. */
static void warn_known_bad(struct job *j, const struct node *n, const struct nccl_report *m)
{
        const struct known_bad *bad =
                known_bad_find(m->version, n->hello.arch, j->attempt->plan->num_nodes);
        struct diags d = DIAGS_INIT;
        struct diag *di;

        if (!bad || j->told.known_bad || !j->config->say)
                return;
        j->told.known_bad = true;
        di = diag_warn(&d, HN_KNOWN_BAD, "NCCL %u.%u.%u on %s %s", m->version / 10000,
                       m->version / 100 % 100, m->version % 100, n->hello.arch, bad->fact);
        diag_place(di, "%s: %s", n->host->name, m->path);
        diag_note(di, "%s", bad->cause);
        diag_help(di, "%s", bad->help);
        j->config->say(j->config->say_ctx, &d);
        diags_finish(&d);
}

static void tell_nccl(struct job *j, const struct node *n, uint32_t version)
{
        char text[48];

        if (version == j->told.nccl)
                return;
        j->told.nccl = version;
        snprintf(text, sizeof(text), "NCCL %u.%u.%u", version / 10000, version / 100 % 100,
                 version % 100);
        cluster_emit(j->cluster, EVENT_LIBRARY, n->index, -1, 0, text);
}

static int on_nccl(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct nccl_report m;

        if (nccl_report_decode(&m, f, err) < 0 || turns_nccl(j->attempt->turns, n->index, err) < 0)
                return -EPROTO;
        warn_known_bad(j, n, &m);
        tell_nccl(j, n, m.version);
        return 0;
}

/* --- nodes --- */

static int on_log(struct job *j UNUSED, struct node *n, const struct frame *f, struct error *err)
{
        struct logline m;

        if (logline_decode(&m, f, err) < 0)
                return -EPROTO;
        if (m.id)
                log_warning((int)m.id, "%s: %s", n->host->name, m.text);
        else
                log_line((enum log_level)MIN(m.level, LOG_DEBUG), "%s: %s", n->host->name, m.text);
        return 0;
}

static int on_leaving(struct job *j UNUSED, struct node *n, const struct frame *f,
                      struct error *err)
{
        char why[128];

        if (leaving_decode(why, f, err) < 0)
                return -EPROTO;
        node_break(n, LINK_ENDED, "its agent was ended (%s)", why);
        return 0;
}

static int on_status(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct node_status m;
        bool asked;

        if (node_status_decode(&m, f, err) < 0)
                return -EPROTO;
        asked = job_status_take(j->status, n->index, &m);
        node_status_finish(&m);
        return asked ? 0 : err_set(err, EPROTO, "message out of turn: STATUS without a request");
}

static int on_recorded(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        return trace_fetch_take(j->config->traces, n, f, err);
}

static int on_push_answer(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        return job_push_take(j->push, n, f, err);
}

static int on_pulled(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        return pull_take(j->config->pull, n, f, err);
}

static int on_ping_request(struct job *j, struct node *n, const struct frame *f UNUSED,
                           struct error *err UNUSED)
{
        heartbeat_requested(j->heartbeat, n);
        return 0;
}

static int on_tunnel(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        if (j->asked && j->asked->hold)
                return hold_receive(j->asked->hold, (size_t)n->index, f, err);
        if (!j->cluster->tree)
                return err_set(err, EPROTO, "message out of turn: TUNNEL, without --tree");
        return transport_tree_receive(j->cluster->tree, n, f, err);
}

static int on_gone(struct job *j, struct node *n, const struct frame *f UNUSED, struct error *err)
{
        dump_files_end(j->attempt->dumps, n->index);
        return turns_gone(j->attempt->turns, n->index, err);
}

/* --- the store and the endpoint of a world --- */

/* Between two attempts there is no store: late messages of the last one are dropped. A READY node
 * has no part in the attempt, unless it relays for its descendants. */
static int take_store(struct job *j, struct node *n, uint32_t world, const struct frame *f,
                      struct error *err)
{
        int r;

        if (!j->attempt->stores)
                return 0;
        if (n->state == NODE_READY && !n->has_children)
                return err_set(err, EPROTO, "message out of turn: STORE, without ranks there");
        r = world_servers_receive(j->attempt->stores, world, n->index, f->body, f->len, err);
        if (r == 0)
                readiness_store(j->readiness, world);
        return r;
}

static int take_of_world(struct job *j, struct node *n, uint32_t world, const struct frame *f,
                         struct error *err)
{
        struct endpoint_setup *s = world_endpoints_get(j->endpoints, world);

        if (!s)
                return err_set(err, EPROTO, "a message about world %u, which does not exist",
                               world);
        switch (f->type) {
        case MSG_STORE:
                return take_store(j, n, world, f, err);
        case MSG_ENDPOINT_OPENED:
                return job_endpoint_opened(s, (size_t)n->index, f, err);
        case MSG_PROBED:
                return job_endpoint_probed(s, (size_t)n->index, f, err);
        case MSG_PORTS_HELD:
                return job_endpoint_ports(s, n, f, err);
        case MSG_OWNERS_REQUEST:
                return job_owners_ask(job_endpoint_owners(s), (size_t)n->index, f, err);
        case MSG_OWNERS:
                return job_owners_answer(job_endpoint_owners(s), (size_t)n->index, f, err);
        default:
                return err_set(err, EPROTO, "a WORLD message with %s", msg_name(f->type));
        }
}

static int on_first_world(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        return take_of_world(j, n, 0, f, err);
}

static int on_world(struct job *j, struct node *n, const struct frame *f, struct error *err)
{
        struct frame inner;
        uint32_t world;

        if (world_decode(&world, &inner, f, err) < 0)
                return -EPROTO;
        return take_of_world(j, n, world, &inner, err);
}

/* wire/msg_type.h has the states in which each of them may come. */
static int (*const dispatch[256])(struct job *j, struct node *n, const struct frame *f,
                                  struct error *err) = {
        [MSG_STARTED] = on_started,
        [MSG_RANK_READY] = on_ready,
        [MSG_REFUSED] = on_refused,
        [MSG_OUTPUT] = on_output,
        [MSG_EXITED] = on_exited,
        [MSG_REPORT] = on_report,
        [MSG_DUMP] = on_dump,
        [MSG_NCCL] = on_nccl,
        [MSG_CREDIT] = on_credit,
        [MSG_GONE] = on_gone,
        [MSG_STORE] = on_first_world,
        [MSG_TUNNEL] = on_tunnel,
        [MSG_LOG] = on_log,
        [MSG_LEAVING] = on_leaving,
        [MSG_SIGNAL] = job_agent_signal,
        [MSG_STATUS] = on_status,
        [MSG_INSPECTED] = job_take_inspected,
        [MSG_RAS] = job_take_ras,
        [MSG_FACTS] = job_take_facts,
        [MSG_BOUND] = job_take_bound,
        [MSG_CHECKED] = job_take_checked,
        [MSG_MEASURED] = job_take_measured,
        [MSG_WARMED] = job_take_warmed,
        [MSG_STAGED] = job_take_staged,
        [MSG_SAMPLED] = job_take_sample,
        [MSG_RECORDED] = on_recorded,
        [MSG_ENDPOINT_OPENED] = on_first_world,
        [MSG_PROBED] = on_first_world,
        [MSG_PORTS_HELD] = on_first_world,
        [MSG_OWNERS_REQUEST] = on_first_world,
        [MSG_OWNERS] = on_first_world,
        [MSG_WORLD] = on_world,
        [MSG_WANT] = on_push_answer,
        [MSG_TAKEN] = on_push_answer,
        [MSG_CHAINED] = on_push_answer,
        [MSG_PUSHED] = on_push_answer,
        [MSG_PULLED] = on_pulled,
        [MSG_PING_REQUEST] = on_ping_request,
};

/* Checks direction and state of the node by the table of messages (wire/msg_type.h), then calls the
 * function of the message. A negative result fails the node. */
static int on_node_message(void *ctx, struct node *n, const struct frame *f, struct error *err)
{
        static const struct {
                enum msg_states in;
                const char *when;
        } states[NODE_STATES] = {
                [NODE_READY] = { MSG_IN_READY, "before its launch" },
                [NODE_RUNNING] = { MSG_IN_RUNNING, "while ranks run there" },
                [NODE_GONE] = { MSG_IN_GONE, "after the end of its ranks" },
        };
        int r;

        *err = (struct error){ 0 };
        if (!msg_comes_from(f->type, MSG_FROM_AGENT) || !dispatch[f->type])
                r = err_set(err, EPROTO, "message out of turn: %s (type %u)", msg_name(f->type),
                            f->type);
        else if (!msg_comes_in(f->type, states[n->state].in))
                r = err_set(err, EPROTO, "message out of turn: %s %s", msg_name(f->type),
                            states[n->state].when);
        else
                r = dispatch[f->type](ctx, n, f, err);
        if (r < 0 && n->state == NODE_GONE) /* the attempt loses nothing */
                log_line(LOG_WARN, "%s is not used again: its agent sent a %s", n->host->name,
                         err->text);
        return r;
}

/* --- changes of nodes --- */

/* Ranks of a lost node must not live when the next attempt begins. */
static void note_dead(struct job *j, const struct node *n, const struct node *lost)
{
        const struct link_failure *why = lost->failure;
        bool may_live = why && (why->cause == LINK_TIMED_OUT || why->one_sided);

        if (n->state != NODE_GONE)
                j->history.dead_ns =
                        MAX(j->history.dead_ns, heartbeat_dead_ns(j->heartbeat, lost, may_live));
}

/* Records the loss of a node, RUNNING or with the endpoint of the store. The cause of the job is
 * the ancestor lost first: a node lost with the parent is not to blame, nor is a node heard after
 * the order to stop. */
static void lose_node(struct job *j, struct node *n)
{
        const struct intlist *ranks = &j->attempt->plan->nodes[n->index].ranks;
        struct outcome *o = &j->attempt->outcome;
        const struct node *lost = n;
        struct cause c = { .kind = CAUSE_NODE, .rank = -1 };
        bool is_told, is_gone = n->state == NODE_GONE;

        while (lost->failure && lost->failure->cause == LINK_PARENT && lost->parent)
                lost = lost->parent;
        is_told = lost->failure && (lost->state == NODE_FAILED || lost == n ||
                                    lost->failure->cause == LINK_TIMED_OUT);
        /* With a hold all nodes are lost, and none is to blame. */
        c.node = lost->failure && lost->failure->cause == LINK_HOLD ? -1 : lost->index;
        c.after_ms = attempt_age_ms(j->attempt);
        c.at_ns = lost->heard_ns;
        snprintf(c.text, sizeof(c.text), "%s%s",
                 is_told ? lost->failure->fact : "its agent has left",
                 is_gone ? ", and with it the TCP endpoint of the store" : "");
        cluster_emit(j->cluster, EVENT_NODE_LOST, n->index, -1, 0,
                     n->failure ? n->failure->fact : c.text);
        if (j->attempt->stores)
                world_servers_node_lost(j->attempt->stores, n->index);
        for (size_t i = 0; i < ranks->n; i++)
                stdin_pump_left(j->stdin_pump, ranks->v[i]);
        note_dead(j, n, lost);
        o->behind += lost != n;
        if ((lost != n && outcome_failed(o)) || o->cause.kind == CAUSE_NETWORK ||
            (heartbeat_explains(j->heartbeat, lost, &c) && o->cause.kind == CAUSE_PAUSE) ||
            (c.node < 0 && o->cause.kind == CAUSE_NODE && o->cause.node < 0))
                return;
        if (job_state_stops(j->attempt->state) && lost->heard_ns > j->attempt->outcome.stopped_ns)
                log_line(LOG_WARN,
                         "lost %s while its ranks were being stopped: %s; their last output may be "
                         "missing",
                         n->host->name, n->failure->fact);
        else
                attempt_fail(j->attempt, &c);
}

/* Counts the nodes by state (unresolved, running, failed), and tells everything that waits for a
 * node when the node is lost. The waits of the job end when a count reaches zero. */
static void on_node_changed(void *ctx, struct node *n, enum node_state was)
{
        struct job *j = ctx;
        struct cluster *c = j->cluster;
        size_t i = (size_t)n->index;

        switch (n->state) {
        case NODE_GREETING:
                cluster_emit(c, EVENT_NODE_CONNECTED, n->index, -1, 0,
                             j->config->remote && !j->attempt->number ? "hold" : NULL);
                break;
        case NODE_READY:
                if (was == NODE_GONE)
                        break; /* for another attempt */
                c->unresolved--;
                cluster_emit(c, EVENT_NODE_READY, n->index, -1, n->uploaded, NULL);
                break;
        case NODE_GONE:
                c->running--;
                break;
        case NODE_FAILED:
                /* The node stays unresolved, and the wait for nodes goes on. */
                if (j->attempt->state == JOB_CONNECTING && cluster_try_again(c, n))
                        return;
                c->failed++;
                if (pull_waits(j->config->pull))
                        pull_lost(j->config->pull, n, "the node was lost");
                trace_fetch_lost(j->config->traces, n);
                world_endpoints_lost(j->endpoints, i);
                if (was == NODE_RUNNING || (was == NODE_READY && job_roles_await(j->roles, i))) {
                        c->running -= was == NODE_RUNNING;
                        lose_node(j, n);
                        job_roles_lost(j->roles);
                } else if (was != NODE_READY || j->attempt->state < JOB_RUNNING) {
                        c->unresolved -= was != NODE_READY;
                        cluster_emit(c, EVENT_NODE_FAILED, n->index, -1, 0, n->failure->fact);
                } /* else an idle node was lost while ranks run: the attempt does not need it */
                break;
        default:
                break;
        }
        if (j->asked && j->asked->hold && n->state == NODE_FAILED)
                hold_lose_node(j->asked->hold, i, n->failure);
        if (c->tree && n->state == NODE_READY)
                transport_tree_ready(c->tree, n);
        else if (c->tree && n->state == NODE_FAILED)
                transport_tree_cut(c->tree, n);
}

/* Whether ranks of other nodes may have needed the store at a GONE node that is lost. They may have
 * failed for that already. */
static bool was_store_needed(const struct job *j, const struct node *n)
{
        const struct attempt *a = j->attempt;

        return world_endpoints_serve(j->endpoints, (size_t)n->index) && job_state_runs(a->state) &&
               (j->cluster->running || outcome_failed(&a->outcome)) &&
               !(job_state_stops(a->state) && n->heard_ns > a->outcome.stopped_ns);
}

/* The agent of a GONE node has left. */
static void on_node_left(void *ctx, struct node *n)
{
        struct job *j = ctx;

        world_endpoints_lost(j->endpoints, (size_t)n->index);
        trace_fetch_lost(j->config->traces, n);
        if (pull_waits(j->config->pull))
                pull_lost(j->config->pull, n, "the node was lost");
        if (was_store_needed(j, n))
                lose_node(j, n);
        if (j->cluster->tree)
                transport_tree_cut(j->cluster->tree, n);
}

static void on_node_uploading(void *ctx, struct node *n)
{
        cluster_emit(((struct job *)ctx)->cluster, EVENT_NODE_UPLOAD, n->index, -1, 0, NULL);
}

static void on_node_phase(void *ctx, struct node *n, enum link_phase phase)
{
        cluster_emit(((struct job *)ctx)->cluster, EVENT_NODE_PHASE, n->index, -1, phase, NULL);
}

static void on_node_login(void *ctx, struct node *n, const char *words)
{
        struct job *j = ctx;

        cluster_emit(j->cluster, EVENT_NODE_PHASE, n->index, -1, LINK_OPEN, words);
}

static void on_login_notice(void *ctx, enum link_notice kind, const char *text)
{
        struct job *j = ctx;

        strv_push(&j->cluster->notices[kind], text);
}

const struct node_ops job_node_ops = {
        .changed = on_node_changed,
        .uploading = on_node_uploading,
        .phase = on_node_phase,
        .message = on_node_message,
        .noise = cluster_log_noise,
        .login = on_node_login,
        .notice = on_login_notice,
        .left = on_node_left,
};
