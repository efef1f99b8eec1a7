/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every step of a job runs the loop until a condition holds; between two steps nothing happens.
 * Conditions are checked in every turn of the loop: cheap comparisons of counts, or of the position
 * so far, never a visit to ten thousand nodes.
 *
 * Timers of the job do not keep the loop alive, but for those with which a wait can end, referenced
 * during the wait (job_wait(), job_leave()).
 *
 * job_destroy() closes in three phases: all links, while the loop turns; then all handles of the
 * parts, until the loop is empty; then the memory.
 */
#include "head/job/job.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/strv.h"
#include "head/job/attempt.h"
#include "head/job/job_hold.h"
#include "head/job/job_private.h"
#include "head/job/job_role_ports.h"
#include "head/job/job_spares.h"
#include "head/model/events.h"
#include "head/output/say.h"
#include "head/pull/pull.h"
#include "head/pull/trace_fetch.h"
#include "head/why/stack_text.h"
#include "wire/msg.h"
#include "wire/status_msg.h"

enum {
        /* The first is for the progress lines, the second for pull_look(), which finds silent
         * senders. */
        TICK_MS = 100,
        PULL_LOOK_MS = 1000,
        LEAVE_MS = 2000,       /* for agents to leave after the end */
        LEAVE_PUSH_MS = 15000, /* the same with files to remove */
        LOOP_FDS = 8,          /* for libuv */
        WRITERS = 4,           /* threads for the output of ranks */
};

static const int caught_signals[JOB_SIGNALS] = { SIGINT,  SIGTERM, SIGHUP, SIGUSR1,
                                                 SIGUSR2, SIGQUIT, SIGTSTP };

/* --- life cycle --- */

/* Whether a signal stays ignored, as left by nohup and by shells without job control. SIGTERM is
 * always obeyed. */
static bool stays_ignored(int signo)
{
        struct sigaction was;

        if ((signo != SIGHUP && signo != SIGINT && signo != SIGQUIT) ||
            sigaction(signo, NULL, &was) < 0 || was.sa_handler != SIG_IGN)
                return false;
        log_line(LOG_INFO, "%s was ignored when hnlaunch started, and stays ignored",
                 outcome_signal_name(signo));
        return true;
}

/* Whether a READY or GONE node is to answer, so silence means a loss. */
static bool node_owes(void *ctx, const struct node *n)
{
        const struct job *j = ctx;
        size_t i = (size_t)n->index;

        if (n->state == NODE_GONE)
                return world_endpoints_serve(j->endpoints, i);
        return world_endpoints_owe(j->endpoints, i) || job_roles_await(j->roles, i) ||
               (heartbeat_pushes(j->heartbeat) && job_push_takes_part(j->push, i));
}

/* The parts are made in the order of their needs: timers and parts take the loop and the options
 * from the cluster, endpoints and push take the heartbeat. A failure behind the signals ends by
 * job_destroy(), which needs all handles to be initialized. */
struct job *job_create(const struct job_config *config, struct error *err)
{
        struct job *j = xcalloc(1, sizeof(*j));
        int r = fd_check_room(LOOP_FDS);

        j->config = config;
        j->timers.late_looks = xcalloc(config->hosts->n + 1, 1);
        cluster_raise_limit(config->hosts->n, 0);
        if (!r)
                r = uv_loop_init(&j->loop);
        for (size_t i = 0; !r && i < ARRAY_SIZE(caught_signals); i++)
                r = uv_signal_init(&j->loop, &j->signals[i]);
        if (r < 0) {
                err_set(err, -r, "cannot start the event loop: %s", strerror(-r));
                /* job_destroy() needs the handles that are made below. */
                free(j->timers.late_looks);
                free(j);
                return NULL;
        }
        for (size_t i = 0; i < ARRAY_SIZE(caught_signals); i++) {
                j->signals[i].data = j;
                if (!stays_ignored(caught_signals[i]))
                        uv_signal_start(&j->signals[i], job_signal_caught, caught_signals[i]);
                uv_unref((uv_handle_t *)&j->signals[i]);
        }
        j->attempt = xcalloc(1, sizeof(*j->attempt));
        *j->attempt = (struct attempt){ .outcome = OUTCOME_INIT, .failed = job_failed, .ctx = j };
        j->cluster = cluster_create(&j->loop, config, &job_node_ops, j);
        cluster_init_timer(j->cluster, &j->timers.limit, j);
        cluster_init_timer(j->cluster, &j->timers.stop, j);
        cluster_init_timer(j->cluster, &j->timers.answer, j);
        cluster_init_timer(j->cluster, &j->timers.leave, j);
        cluster_init_timer(j->cluster, &j->timers.ticker, j);
        cluster_init_timer(j->cluster, &j->history.backoff, j);
        j->heartbeat = heartbeat_create(j->cluster, j->attempt, node_owes, j);
        j->endpoints =
                world_endpoints_create(j->cluster, j->attempt, j->heartbeat,
                                       (struct port_names){ &j->config->ports, j->config->book });
        j->push = job_push_create(j->cluster, j->attempt, j->heartbeat, j->config->run_id);
        j->status = job_status_create(j->cluster, j->attempt, j->config);
        j->roles = job_roles_create(j->cluster, j->attempt, j->config, &job_roles_ops, j);
        j->orders.drain = job_drain_create(j->cluster, j->attempt, j->roles, job_stop_for, j);
        j->pool = thread_pool_create(&j->loop, WRITERS, err);
        if (!j->pool || cluster_open(j->cluster, err) < 0 ||
            cluster_tree_open(j->cluster, err) < 0) {
                job_destroy(j);
                return NULL;
        }
        return j;
}

/* --- hosts that stand by --- */

void job_use_spares(struct job *j, job_stand_in *stand_in)
{
        j->stand_in = stand_in;
}

void job_give_up(struct job *j, size_t node, const char *why)
{
        node_break(&j->cluster->nodes[node], LINK_OTHER, "%s", why);
}

/* Drops first the promises and debts of the agent before: files, ports and answers to orders. */
void job_connect_anew(struct job *j, size_t node)
{
        job_push_forget(j->push, node);
        world_endpoints_forget(j->endpoints, node);
        cluster_reconnect_node(j->cluster, &j->cluster->nodes[node]);
}

size_t job_adopt_orphans(struct job *j)
{
        size_t n = 0;

        for (size_t i = 0; j->cluster->tree && i < j->cluster->n_nodes; i++)
                if (cluster_is_orphan(&j->cluster->nodes[i])) {
                        job_connect_anew(j, i);
                        n++;
                }
        return n;
}

/* A drained host is no spare. Without restarts and replacement no spare host is ever used. */
size_t job_spares(const struct job *j)
{
        const struct plan *plan = j->attempt->plan; /* NULL before the first attempt */
        size_t n = hosts_aside(j->config->hosts);

        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                const struct node *node = &j->cluster->nodes[i];

                n += node->state == NODE_READY && !node->signals.leaves &&
                     (plan ? !plan->nodes[i].n_ranks : node->host->spare);
        }
        return j->config->options->max_restarts || options_replace_nodes(j->config->options) ? n
                                                                                             : 0;
}

/* Leaves orphans to job_adopt_orphans(), and other tries to the cluster's timer. */
static void replace_failed_nodes(struct job *j)
{
        struct cluster *c = j->cluster;

        for (size_t i = 0; i < c->n_nodes; i++) {
                const struct node *n = &c->nodes[i];

                if (n->state == NODE_FAILED && !n->again && !cluster_is_orphan(n) &&
                    j->stand_in(j->config->say_ctx, i))
                        job_connect_anew(j, i);
        }
}

/* Nodes are looked at only after a new failure. Replacements lower the count of failures, so the
 * count to compare with is taken behind them. */
enum job_step job_await_nodes(struct job *j)
{
        size_t failed = 0; /* at the last look at each node */

        while (j->cluster->unresolved && !outcome_failed(&j->attempt->outcome)) {
                uv_run(&j->loop, UV_RUN_ONCE);
                if (!j->stand_in || j->cluster->failed == failed)
                        continue;
                replace_failed_nodes(j);
                failed = j->cluster->failed;
        }
        return outcome_failed(&j->attempt->outcome) ? JOB_INTERRUPTED : JOB_DONE;
}

/* --- the steps before the launch --- */

/* Runs while the nodes are connected, for the progress lines. */
static void tick(uv_timer_t *t)
{
        struct job *j = t->data;

        j->config->tick.call(j->config->tick.ctx);
}

/* Adds one message for all notices of a kind: a thousand hosts with a new key are a thousand rows
 * of a single warning. */
static void tell_notices(struct diags *d, enum link_notice kind, const struct strv *rows)
{
        bool one = rows->n == 1;
        struct diag *di;

        if (kind == NOTICE_NEW_KEY)
                di = diag_warn(d, HN_HOST_KEYS_ACCEPTED, "%zu new host key%s accepted and stored",
                               rows->n, one ? " was" : "s were");
        else if (kind == NOTICE_CONFIG)
                di = diag_warn(d, HN_SSH_CONFIG_IGNORED,
                               "%zu line%s of the ssh configuration %s not obeyed", rows->n,
                               one ? "" : "s", one ? "is" : "are");
        else
                di = diag_warn(d, HN_KEY_OPEN_TO_OTHERS,
                               "%zu private key%s ignored: other users may access the file",
                               rows->n, one ? " is" : "s are");
        for (size_t i = 0; i < rows->n; i++)
                diag_row(di, "%s", rows->v[i]);
        if (kind == NOTICE_NEW_KEY)
                diag_note(di, "--host-key accept-new trusts a host on first sight");
        else
                diag_help(di, kind == NOTICE_CONFIG ? "--ssh-command ssh obeys all of it"
                                                    : "chmod 600; ssh(1) ignores it, too");
}

/* Notices about harmless settings are held aside, and told only if a node has failed or with -v:
 * the reason may be among the settings. */
void job_tell_logins(struct job *j)
{
        const struct cluster *c = j->cluster;
        struct strv *aside = &j->cluster->notices[NOTICE_CONFIG_ASIDE];
        struct diags d = DIAGS_INIT;

        if (c->failed || c->options->verbose)
                strv_copy(&j->cluster->notices[NOTICE_CONFIG], aside);
        strv_finish(aside);
        for (enum link_notice kind = 0; kind < LINK_NOTICES; kind++) {
                struct strv *rows = &j->cluster->notices[kind];

                if (rows->n)
                        tell_notices(&d, kind, rows);
                strv_finish(rows);
        }
        if (d.n && j->config->say)
                j->config->say(j->config->say_ctx, &d);
        diags_finish(&d);
}

/* A failed node is no error here: the caller may have spares, or only list the hosts. */
enum job_step job_connect(struct job *j)
{
        struct cluster *c = j->cluster;
        enum job_step r;

        if (j->config->tick.call)
                uv_timer_start(&j->timers.ticker, tick, TICK_MS, TICK_MS);
        attempt_step(j->attempt, JOB_EV_CONNECT);
        cluster_connect(c);
        r = job_await_nodes(j);
        uv_timer_stop(&j->timers.ticker);
        attempt_step(j->attempt, JOB_EV_ANSWERED);
        job_tell_logins(j);
        if (r)
                return r;
        return c->failed ? JOB_NODES_LOST : JOB_DONE;
}

enum job_step job_push(struct job *j, const struct plan *plan, struct manifest *m,
                       struct error *err)
{
        j->push = job_push_of_use(j->push, m->label.use);
        return job_push_run(j->push, plan, m, err);
}

enum job_step job_open_endpoint(struct job *j, const struct plan *plan, struct error *err)
{
        enum job_step r = world_endpoints_open(j->endpoints, plan, err);

        const struct job_role_ports roles = { j->cluster, j->endpoints, j->config->book, plan };

        if (r == JOB_DONE && job_role_ports_describe(&roles, err) < 0)
                return JOB_IMPOSSIBLE;
        return r;
}

/* --- the end --- */

/* Ranks end first, then the wait of a drain in doubt (job_settle_drain()), then the choice of the
 * cause, which needs all output, and last the wait for readers. The heartbeat stops behind all of
 * these, the ranks' part of the attempt. */
void job_wait(struct job *j)
{
        /* Keeps the loop alive when the last link has ended; a stopped timer does not. */
        heartbeat_keep_loop(j->heartbeat);
        while (j->cluster->running || job_roles_wait(j->roles))
                uv_run(&j->loop, UV_RUN_ONCE);
        job_settle_drain(j);
        stdin_pump_destroy(j->stdin_pump);
        j->stdin_pump = NULL;
        outcome_merge_refusals(&j->attempt->outcome, (size_t)j->attempt->plan->num_nodes);
        /* All output has come, so the last lines of each rank are final. */
        outcome_finalize(&j->attempt->outcome, j->attempt->plan, attempt_newest_stderr, j->attempt);
        printer_flush(j->attempt->printer);
        while (printer_pending(j->attempt->printer) && !j->orders.hurried)
                uv_run(&j->loop, UV_RUN_ONCE);
        say_through(NULL);
        attempt_step(j->attempt, JOB_EV_EMPTY);
        heartbeat_stop(j->heartbeat);
}

/* Looks for nodes with no more bytes of files for long. */
static void on_pull_look(uv_timer_t *t)
{
        struct job *j = t->data;

        pull_look(j->config->pull);
}

/* Asks all nodes at once; a node without an agent is entered as lost, so the report names the files
 * there. After a second order to end (JOB_ENDED) nothing is asked. */
void job_pull(struct job *j)
{
        struct pull *p = j->config->pull;

        job_stop_limits(j);
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (!j->attempt->plan->nodes[i].n_ranks)
                        continue;
                if (j->attempt->state == JOB_ENDED) {
                        pull_lost(p, n, "hnlaunch was told to end at once");
                } else if ((n->state == NODE_GONE || n->state == NODE_READY) && !n->ended) {
                        pull_ask(p, n);
                        node_flush(n);
                } else {
                        pull_lost(p, n, "the node was lost");
                }
        }
        uv_timer_start(&j->timers.leave, on_pull_look, PULL_LOOK_MS, PULL_LOOK_MS);
        uv_ref((uv_handle_t *)&j->timers.leave);
        while (pull_waits(p))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->timers.leave);
}

/* The agents have had their time: the wait of job_leave() ends, and the links are closed anyway. */
static void on_leave_over(uv_timer_t *t)
{
        struct job *j = t->data;

        attempt_step(j->attempt, JOB_EV_GONE);
}

/* Waits until all agents have left: no trace of an agent is seen after the return. */
void job_leave(struct job *j)
{
        size_t left = 0; /* all nodes before have left */

        job_stop_limits(j);
        for (size_t i = 0; i < j->cluster->n_nodes; i++) {
                struct node *n = &j->cluster->nodes[i];

                if (n->state == NODE_GONE || n->state == NODE_READY)
                        node_dismiss(n);
        }
        attempt_step(j->attempt, JOB_EV_LEAVE);
        uv_timer_start(&j->timers.leave, on_leave_over,
                       job_push_began(j->push) ? LEAVE_PUSH_MS : LEAVE_MS, 0);
        uv_ref((uv_handle_t *)&j->timers.leave);
        while (j->attempt->state == JOB_LEAVING && left < j->cluster->n_nodes) {
                const struct node *n = &j->cluster->nodes[left];

                if (n->state == NODE_FAILED || n->ended)
                        left++;
                else
                        uv_run(&j->loop, UV_RUN_ONCE);
        }
        attempt_step(j->attempt, JOB_EV_GONE);
        uv_unref((uv_handle_t *)&j->timers.leave);
        uv_timer_stop(&j->timers.leave);
}

enum job_step job_hold_serve(struct job *j, const struct job_hold *h, struct error *err)
{
        struct job_holding *s = job_hold_begin(j->cluster, h, err);
        struct job_asked asked = { 0 };
        enum job_step r = JOB_INTERRUPTED;

        if (!s)
                return JOB_IMPOSSIBLE;
        asked.hold = job_hold_of(s);
        j->asked = &asked;
        while (!outcome_failed(&j->attempt->outcome) && job_hold_goes_on(s, &r))
                uv_run(&j->loop, UV_RUN_ONCE);
        if (outcome_failed(&j->attempt->outcome))
                r = JOB_INTERRUPTED;
        job_hold_close(s);
        /* Late messages about prepared agents still come. */
        job_leave(j);
        j->asked = NULL;
        job_hold_free(s);
        return r;
}

void job_destroy(struct job *j)
{
        if (!j)
                return;
        stdin_pump_destroy(j->stdin_pump);
        cluster_close(j->cluster);
        attempt_drop_parts(j->attempt);
        readiness_destroy(j->readiness);
        for (size_t i = 0; i < ARRAY_SIZE(caught_signals); i++)
                uv_close((uv_handle_t *)&j->signals[i], NULL);
        uv_close((uv_handle_t *)&j->timers.limit, NULL);
        uv_close((uv_handle_t *)&j->timers.stop, NULL);
        uv_close((uv_handle_t *)&j->timers.answer, NULL);
        uv_close((uv_handle_t *)&j->timers.leave, NULL);
        uv_close((uv_handle_t *)&j->timers.ticker, NULL);
        uv_close((uv_handle_t *)&j->history.backoff, NULL);
        heartbeat_close(j->heartbeat);
        world_endpoints_close(j->endpoints);
        job_push_close(j->push);
        job_status_close(j->status);
        job_roles_close(j->roles);
        job_drain_close(j->orders.drain);
        thread_pool_close(j->pool);
        uv_run(&j->loop, UV_RUN_DEFAULT);
        uv_loop_close(&j->loop);
        world_endpoints_free(j->endpoints);
        job_push_free(j->push);
        heartbeat_free(j->heartbeat);
        job_status_free(j->status);
        job_roles_free(j->roles);
        job_drain_free(j->orders.drain);
        cluster_free(j->cluster);
        outcome_finish(&j->attempt->outcome);
        free(j->attempt);
        strv_finish(&j->history.ends);
        job_drop_culprit(j);
        free(j->timers.late_looks);
        free(j);
}

/* --- questions --- */

const struct node *job_node(const struct job *j, size_t host)
{
        return &j->cluster->nodes[host];
}

/* A FAILED node keeps the mark of its silence, and counts as lost, not as silent. */
size_t job_silent_nodes(const struct job *j)
{
        size_t n = 0;

        for (size_t i = 0; i < j->cluster->n_nodes; i++)
                n += j->cluster->nodes[i].silent_ns && j->cluster->nodes[i].state != NODE_FAILED;
        return n;
}

/* JOB_OVER, between two attempts, is "ending", too: nothing runs, and whether another attempt
 * follows is not decided yet. */
const char *job_doing(const struct job *j)
{
        enum job_state state = j->attempt->state;

        return job_state_stops(state)  ? "stopping"
               : job_state_runs(state) ? "running"
               : state < JOB_RUNNING   ? "connecting"
                                       : "ending";
}

int job_lend_stdin(struct job *j, int fd, struct error *err)
{
        return stdin_pump_lend(j->stdin_pump, fd, err);
}

void job_end_stdin(struct job *j)
{
        stdin_pump_end(j->stdin_pump);
}

/* Without a printer nothing was held back. */
void job_release_output(struct job *j)
{
        if (j->attempt->printer)
                printer_release(j->attempt->printer);
}

uv_loop_t *job_loop(struct job *j)
{
        return &j->loop;
}

const struct pushed *job_pushed(const struct job *j, size_t node)
{
        return job_push_result(j->push, node);
}

const struct pushed *job_pushed_as(const struct job *j, enum push_use use, size_t node)
{
        return job_push_result(job_push_of_use(j->push, use), node);
}

enum push_use job_push_use(const struct job *j)
{
        return job_push_last_use(j->push);
}

const struct job_endpoint *job_endpoint(const struct job *j)
{
        return job_endpoint_result(world_endpoints_last(j->endpoints));
}

const char *job_port_refusal(const struct job *j, size_t *ret_node)
{
        return job_ports_refusal(job_endpoint_reserved(world_endpoints_last(j->endpoints)),
                                 ret_node);
}

const struct outcome *job_outcome(const struct job *j)
{
        return &j->attempt->outcome;
}

const struct core_found *job_core(const struct job *j)
{
        return &j->attempt->core;
}

const struct strv *job_earlier(const struct job *j)
{
        return &j->history.ends;
}

void job_last_diags(struct job *j, struct diags *to)
{
        job_status_move_last(j->status, to);
}

int job_drain_host(struct job *j, size_t node, int64_t in_ms, const char *by, struct error *err)
{
        return job_drain_order(j->orders.drain, node, in_ms, by, err);
}

/* SIGTERM, as managers and clouds send it, is a notice to save. Ctrl-C and `hnlaunch stop` are
 * not. */
bool job_saved(const struct job *j)
{
        const struct cause *c = &j->attempt->outcome.cause;
        bool ordered = c->kind == CAUSE_ORDER && c->signal == SIGTERM && !j->orders.command_pid;
        bool drained =
                c->kind == CAUSE_DRAIN && (!j->orders.ended_by || j->orders.ended_by == SIGTERM);

        return (ordered || drained) && job_drain_all_saved(j->orders.drain);
}

/* Acts as the signal does: two requests within 3 s ask for a closer look, too. */
void job_show_status(struct job *j)
{
        job_signal(j, SIGQUIT);
}

const char *job_drained_by(const struct job *j, size_t node)
{
        return job_drain_by(j->orders.drain, node);
}

/* A `hnlaunch stop` acts as SIGTERM to this process, so @c has a signal in either case. */
void job_order_name(const struct job *j, const struct cause *c, char *to, size_t size)
{
        if (!j->orders.command_pid)
                snprintf(to, size, "%s", outcome_signal_name(c->signal));
        else if (j->orders.command_pid > 0)
                snprintf(to, size, "hnlaunch stop (pid %d)", j->orders.command_pid);
        else
                snprintf(to, size, "hnlaunch stop");
}

/* The result lies on the clock of the events, which begins with hnlaunch, not with the attempt. */
int64_t job_cause_us(const struct job *j, const struct cause *c)
{
        /* The last byte of a lost node came long before the loss was noticed: the notice counts. */
        bool silence = c->kind == CAUSE_NODE || c->kind == CAUSE_NETWORK || c->kind == CAUSE_PAUSE;
        int64_t at_ns =
                silence ? j->attempt->launched_ns + (int64_t)c->after_ms * 1000000 : c->at_ns;

        if (!c->at_ns)
                return events_now_us(j->config->events);
        return MAX((at_ns - j->config->events->start_ns) / 1000, INT64_C(0));
}

/* Returns the signal of which the rank has ended, or with the code that a shell makes of it. */
static int find_signal(const struct cause *c)
{
        return c->kind == CAUSE_SIGNAL ? c->signal
               : c->kind == CAUSE_EXIT ? c->code - EX_SIGNAL
                                       : 0;
}

/* The end of the rank may seem earlier than the signal by the error of the node's clock. */
bool job_has_sent(const struct job *j, const struct cause *c)
{
        int signo = find_signal(c);
        int64_t sent_ns = signo > 0 && signo < NSIG ? j->orders.sent_ns[signo] : 0;

        return sent_ns && sent_ns <= c->at_ns + c->error_ns;
}

/* Adds the `hnlaunch signal` of which the rank has ended. */
static void add_sent_signal(const struct job *j, const struct cause *c, char *to, size_t size)
{
        int signo = find_signal(c);
        int64_t sent_ns;
        size_t n = strlen(to);
        char span[32];

        if (!job_has_sent(j, c))
                return;
        sent_ns = j->orders.sent_ns[signo];
        format_duration(span, sizeof(span), MAX(c->at_ns - sent_ns, INT64_C(0)) / 1000);
        snprintf(to + n, size - n, "; hnlaunch signal sent %s %s before",
                 outcome_signal_name(signo), span);
}

/* Adds where the rank has crashed, if it has left a core file that tells. */
static void add_crash_place(const struct job *j, const struct cause *c, char *to, size_t size)
{
        CLEANUP(free_textp)
        char *where = printable_text(j->attempt->core.where, PRINTABLE_ROW);
        size_t n = strlen(to);

        if (c == &j->attempt->outcome.cause && *where)
                snprintf(to + n, size - n, "%s at %s", *c->text ? "," : "", where);
}

void job_sentence(const struct job *j, const struct cause *c, char *to, size_t size)
{
        char *name, who[PLAN_RANK_NAME_MAX];

        plan_rank_name(j->attempt->plan, c->rank, who);
        outcome_sentence(c, who, c->node >= 0 ? j->config->hosts->v[c->node].name : "", to, size);
        add_crash_place(j, c, to, size);
        add_sent_signal(j, c, to, size);
        /* The sentence of an order ends with the name of a signal, which stands for the command
         * here. */
        if (c->kind != CAUSE_ORDER || !j->orders.command_pid)
                return;
        name = strrchr(to, ' ') ? strrchr(to, ' ') + 1 : to; /* of the signal, the last word */
        job_order_name(j, c, name, size - (size_t)(name - to));
}

char *job_last_words(const struct job *j, int rank, uint8_t stream)
{
        return attempt_last_words(j->attempt, rank, stream);
}

bool job_shows(const struct job *j, int rank, uint8_t stream, size_t lines)
{
        return j->attempt->printer && printer_shows(j->attempt->printer, rank, stream, lines);
}

const struct dump_files *job_dump_files(const struct job *j)
{
        return j->attempt->dumps;
}

/* The printer of an attempt counts losses of this attempt; forget_attempt() adds them to the
 * history. */
size_t job_lost_bytes(const struct job *j)
{
        return j->history.lost_bytes +
               (j->attempt->printer ? printer_lost(j->attempt->printer) : 0);
}

size_t job_unwritten_bytes(const struct job *j, struct intlist *ranks)
{
        return j->attempt->printer ? printer_unwritten(j->attempt->printer, ranks) : 0;
}

bool job_logs_failed(const struct job *j)
{
        return j->told.logs_failed;
}

size_t job_allowed_ranks(const struct job *j)
{
        return job_roles_allowed(j->roles);
}

int job_stream_error(const struct job *j, uint8_t stream)
{
        return j->told.stream_error[stream];
}

int job_hurry_signal(const struct job *j)
{
        return j->orders.hurry_signal;
}

/* Bytes are pending after job_wait() only if a second order has ended the wait for their
 * readers. */
bool job_hurried(const struct job *j)
{
        return j->attempt->printer && printer_pending(j->attempt->printer);
}
