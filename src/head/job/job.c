/* SPDX-License-Identifier: Apache-2.0 */
#include "head/job/job.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strv.h"
#include "head/job/job_private.h"
#include "head/nodes/ssh_loader.h"
#include "head/output/say.h"

enum {
        TICK_MS = 100,
        LEAVE_MS = 2000,       /* for agents to leave after the end */
        LEAVE_PUSH_MS = 15000, /* the same when they have files to remove */
        LOOP_FDS = 8,          /* for libuv */
        WRITERS = 4,           /* threads for what ranks say */
};

static const int caught[JOB_SIGNALS] = {
        SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGTSTP
};

void job_emit(struct job *j, enum event_kind kind, int node, int rank, int64_t value,
              const char *text)
{
        events_emit(j->c.events,
                    (struct event){ .kind = kind,
                                    .node = node,
                                    .rank = rank,
                                    .value = value,
                                    .host = node >= 0 ? j->c.hosts->v[node].name : NULL,
                                    .text = text });
}

bool job_step(struct job *j, enum job_event e)
{
        enum job_state was = j->job_state;

        if (!job_state_step(&j->job_state, e))
                return false;
        log_line(LOG_DEBUG, "job: %s -> %s", job_state_name(was), job_state_name(j->job_state));
        return true;
}

uint64_t job_since_launch_ms(const struct job *j)
{
        return (uint64_t)(clock_ns() - j->launched_ns) / 1000000;
}

void job_raise_limit(size_t n_nodes, int world_size)
{
        rlim_t want = 256 + n_nodes * 5 + (rlim_t)world_size * 2;
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < want) {
                l.rlim_cur = MIN(MAX(want, l.rlim_cur), l.rlim_max);
                setrlimit(RLIMIT_NOFILE, &l);
        }
}

/* --- life cycle ------------------------------------------------------------------------------- */

static struct transport *make_ssh(struct job *j, struct error *err)
{
        const struct options *o = j->c.options;

        j->command = bootstrap_command(j->c.agent_binaries);
        j->ssh = (struct ssh_options){
                .command = j->command,
                .config_file = o->ssh_config,
                .user = o->user,
                .port = o->port,
                .identities = &o->identities,
                .jump = o->jump,
                .ssh_command = o->ssh_command,
                .accept_new = o->accept_new,
                .forward_agent = o->tree && o->tree_forward,
                .fanout = o->fanout,
                .hosts = j->c.hosts->n,
                .connect_timeout_ms = (int)o->connect_timeout_ms,
        };
        return o->ssh_command ? transport_command_create(&j->loop, &j->ssh, err)
                              : ssh_loader_create(&j->loop, &j->ssh, err);
}

static int make_transports(struct job *j, struct error *err)
{
        bool any_local = false, any_remote = false;

        for (size_t i = 0; i < j->c.hosts->n; i++) {
                any_local |= j->c.hosts->v[i].local;
                any_remote |= !j->c.hosts->v[i].local;
        }
        if (any_local && !(j->local = transport_local_create(&j->loop, j->c.agent_path, err)))
                return -err->code;
        if (!any_remote)
                return 0;
        j->remote = j->c.remote ? j->c.remote(j->c.remote_ctx, &j->loop, err) : make_ssh(j, err);
        return j->remote ? job_tree_create(j, err) : -err->code;
}

static void timer_init(struct job *j, uv_timer_t *t)
{
        uv_timer_init(&j->loop, t);
        t->data = j;
        uv_unref((uv_handle_t *)t);
}

/* As nohup leaves them, and shells without job control in the background. SIGTERM is obeyed. */
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

static int loop_open(struct job *j, struct error *err)
{
        int r = fd_check_room(LOOP_FDS);

        if (!r)
                r = uv_loop_init(&j->loop);
        for (size_t i = 0; !r && i < ARRAY_SIZE(caught); i++)
                r = uv_signal_init(&j->loop, &j->signals[i]);
        return r < 0 ? err_set(err, -r, "cannot start the event loop: %s", strerror(-r)) : 0;
}

struct job *job_create(const struct job_config *c, struct error *err)
{
        struct job *j = xcalloc(1, sizeof(*j));

        j->c = *c;
        j->outcome = (struct outcome)OUTCOME_INIT;
        job_raise_limit(c->hosts->n, 0);
        if (loop_open(j, err) < 0) {
                free(j);
                return NULL;
        }
        send_queue_init(&j->send_queue, &j->loop);
        timer_init(j, &j->limit);
        timer_init(j, &j->late);
        timer_init(j, &j->heartbeat);
        timer_init(j, &j->sleepy);
        timer_init(j, &j->ticker);
        j->status = job_status_create(j);
        timer_init(j, &j->patience);
        for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
                j->signals[i].data = j;
                if (!stays_ignored(caught[i]))
                        uv_signal_start(&j->signals[i], job_signal_caught, caught[i]);
                uv_unref((uv_handle_t *)&j->signals[i]);
        }
        j->n_nodes = c->hosts->n;
        j->nodes = xcalloc(j->n_nodes, sizeof(*j->nodes));
        for (size_t i = 0; i < j->n_nodes; i++)
                node_init(&j->nodes[i], &j->loop, (int)i, &c->hosts->v[i], c->agent_binaries,
                          &job_node_ops, j);
        j->pool = thread_pool_create(&j->loop, WRITERS, err);
        if (!j->pool || make_transports(j, err) < 0) {
                job_destroy(j);
                return NULL;
        }
        return j;
}

static void tick(uv_timer_t *t)
{
        struct job *j = t->data;

        j->c.tick(j->c.tick_ctx);
}

static struct transport *way_to(const struct job *j, const struct node *n)
{
        if (n->host->local)
                return j->local;
        return n->parent ? j->tree : j->remote;
}

void job_tell_keys(struct job *j)
{
        struct diags d = DIAGS_INIT;
        struct diag *di;

        if (!j->new_keys.n)
                return;
        di = diag_warn(&d, 215, "%zu new host key%s accepted and stored", j->new_keys.n,
                       j->new_keys.n == 1 ? " was" : "s were");
        for (size_t i = 0; i < j->new_keys.n; i++)
                diag_row(di, "%s", j->new_keys.v[i]);
        diag_note(di, "--host-key accept-new trusts a host on first sight");
        if (j->c.say)
                j->c.say(j->c.say_ctx, &d);
        diags_finish(&d);
        strv_finish(&j->new_keys);
}

int job_connect(struct job *j)
{
        if (j->c.tick)
                uv_timer_start(&j->ticker, tick, TICK_MS, TICK_MS);
        job_step(j, JOB_EV_CONNECT);
        j->unresolved = j->n_nodes;
        for (size_t i = 0; i < j->n_nodes; i++)
                node_connect(&j->nodes[i], way_to(j, &j->nodes[i]), j->c.options->user,
                             j->c.options->start_timeout_ms);
        while (j->unresolved && !outcome_failed(&j->outcome))
                uv_run(&j->loop, UV_RUN_ONCE);
        uv_timer_stop(&j->ticker);
        job_step(j, JOB_EV_ANSWERED);
        job_tell_keys(j);
        if (outcome_failed(&j->outcome))
                return JOB_INTERRUPTED;
        return j->failed ? -EHOSTUNREACH : 0;
}

const struct node *job_node(const struct job *j, size_t host)
{
        return &j->nodes[host];
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Asked in every turn of the loop: @left says that the nodes before it have. */
static bool all_left(const struct job *j, size_t *left)
{
        while (*left < j->n_nodes &&
               (j->nodes[*left].state == NODE_FAILED || j->nodes[*left].ended))
                ++*left;
        return *left == j->n_nodes;
}

static void waited_enough(uv_timer_t *t)
{
        struct job *j = t->data;

        job_step(j, JOB_EV_GONE);
}

/* Says goodbye to every agent and waits until they have left, so that nothing of them is seen
 * after we returned. */
void job_leave(struct job *j)
{
        size_t left = 0;

        uv_timer_stop(&j->limit);
        for (size_t i = 0; i < j->n_nodes; i++)
                if (j->nodes[i].state == NODE_GONE || j->nodes[i].state == NODE_READY)
                        job_dismiss(&j->nodes[i]);
        job_step(j, JOB_EV_LEAVE);
        uv_timer_start(&j->late, waited_enough, j->push ? LEAVE_PUSH_MS : LEAVE_MS, 0);
        uv_ref((uv_handle_t *)&j->late);
        while (j->job_state == JOB_LEAVING && !all_left(j, &left))
                uv_run(&j->loop, UV_RUN_ONCE);
        job_step(j, JOB_EV_GONE);
        uv_unref((uv_handle_t *)&j->late);
        uv_timer_stop(&j->late);
}

static char *words_of(void *ctx, int rank)
{
        return job_last_words(ctx, rank, MSG_STDERR);
}

void job_wait(struct job *j)
{
        /* The timers that can end a wait must keep the loop turning. */
        uv_ref((uv_handle_t *)&j->heartbeat);
        while (j->running)
                uv_run(&j->loop, UV_RUN_ONCE);
        job_stdin_stop(j);
        outcome_finalize(&j->outcome, words_of, j);
        printer_flush(j->printer);
        while (printer_pending(j->printer) && j->job_state != JOB_KILLING)
                uv_run(&j->loop, UV_RUN_ONCE);
        say_through(NULL);
        job_step(j, JOB_EV_EMPTY);
        uv_timer_stop(&j->heartbeat);
}

const struct outcome *job_outcome(const struct job *j)
{
        return &j->outcome;
}

char *job_last_words(const struct job *j, int rank, uint8_t stream)
{
        return j->printer ? printer_last_words(j->printer, rank, stream) : xstrdup("");
}

void job_sentence(const struct job *j, const struct cause *c, char *to, size_t size)
{
        outcome_sentence(c, c->node >= 0 ? j->c.hosts->v[c->node].name : "", to, size);
}

const struct strv *job_earlier(const struct job *j)
{
        return &j->earlier;
}

size_t job_lost_bytes(const struct job *j)
{
        return j->lost_before + (j->printer ? printer_lost(j->printer) : 0);
}

bool job_logs_failed(const struct job *j)
{
        return j->log_told;
}

bool job_hurried(const struct job *j)
{
        return j->printer && printer_pending(j->printer);
}

static bool all_closed(const struct job *j, size_t *closed)
{
        while (*closed < j->n_nodes && node_closed(&j->nodes[*closed]))
                ++*closed;
        return *closed == j->n_nodes;
}

static void close_handle(uv_handle_t *h)
{
        if (!uv_is_closing(h))
                uv_close(h, NULL);
}

void job_destroy(struct job *j)
{
        size_t closed = 0;

        if (!j)
                return;
        job_stdin_stop(j);
        for (size_t i = 0; i < j->n_nodes; i++)
                node_close(&j->nodes[i]);
        while (!all_closed(j, &closed))
                uv_run(&j->loop, UV_RUN_ONCE);
        transport_destroy(j->local);
        transport_destroy(j->remote);
        transport_destroy(j->tree);
        printer_destroy(j->printer);
        store_server_destroy(j->store);
        for (size_t i = 0; i < ARRAY_SIZE(caught); i++)
                close_handle((uv_handle_t *)&j->signals[i]);
        send_queue_close(&j->send_queue);
        close_handle((uv_handle_t *)&j->limit);
        close_handle((uv_handle_t *)&j->late);
        close_handle((uv_handle_t *)&j->heartbeat);
        close_handle((uv_handle_t *)&j->sleepy);
        close_handle((uv_handle_t *)&j->ticker);
        job_status_close(j->status);
        close_handle((uv_handle_t *)&j->patience);
        thread_pool_close(j->pool);
        uv_run(&j->loop, UV_RUN_DEFAULT);
        uv_loop_close(&j->loop);
        job_status_free(j->status);
        for (size_t i = 0; i < j->n_nodes; i++)
                node_finish(&j->nodes[i]);
        outcome_finish(&j->outcome);
        strv_finish(&j->earlier);
        job_endpoint_finish(j);
        job_push_finish(j);
        free(j->nodes);
        strv_finish(&j->new_keys);
        free(j->command);
        free(j);
}
