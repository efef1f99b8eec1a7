/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/contain.h"
#include "agent/door_unix.h"
#include "agent/environment.h"
#include "agent/inventory.h"
#include "agent/jobdir.h"
#include "agent/port.h"
#include "agent/uplink.h"
#include "agent/worker.h"
#include "base/log.h"
#include "wire/msg.h"
#include "wire/names.h"
#include "wire/worker_env.h"

/*
 * An attempt goes IDLE -> RUNNING -> (TERMINATING -> KILLING) -> IDLE, only ever to the right.
 * It is over when no child is left (the subreaper has all of them), no process carries our mark,
 * and every stream has ended; then GONE is sent. Processes that outlive the last worker get LINGER
 * to end by themselves (a tee that still writes, Python's resource tracker), then they are
 * terminated like the rest. settle() is called in every turn of the loop and looks what is next.
 */
enum phase {
        IDLE,
        RUNNING,
        TERMINATING,
        KILLING,
};

enum {
        LINGER_MS = 500,
        SHORT_GRACE_MS = 2000, /* for leftovers, and when the head is lost */
        HEAD_SILENT_MS = 15000,
        RECHECK_MS = 20, /* a list of children may miss one; of strangers nobody tells us */
};

extern char **environ;

struct agent {
        uv_loop_t *loop;
        struct uplink up;
        uv_signal_t child_signal;
        uv_timer_t timer;
        uv_timer_t silence; /* runs from the head's first PING on */
        struct door *door;
        struct jobdir dir;
        struct port port;
        struct worker **workers;
        size_t n_workers, n_alive;
        uint32_t cores;
        enum phase phase;
        bool lingering; /* the last worker has ended, others are given time */
        bool swept;     /* no process of the attempt is left */
        bool bye;       /* leave when idle */
};

static void on_timer(uv_timer_t *timer);

/* --- finding workers -------------------------------------------------------------------------- */

static struct worker *worker_by_rank(struct agent *a, uint32_t rank)
{
        for (size_t i = 0; i < a->n_workers; i++)
                if (a->workers[i]->rank == rank)
                        return a->workers[i];
        return NULL;
}

static struct worker *worker_by_pid(struct agent *a, pid_t pid)
{
        for (size_t i = 0; i < a->n_workers; i++)
                if (!a->workers[i]->reaped && a->workers[i]->pid == pid)
                        return a->workers[i];
        return NULL;
}

/* --- stopping --------------------------------------------------------------------------------- */

/* Children by adoption; those in a worker's process group were reached through the group. */
static void signal_leftovers(struct agent *a, int signo)
{
        struct pids pids = PIDS_INIT;

        contain_children(&pids);
        for (size_t i = 0; i < pids.n; i++)
                if (!worker_by_pid(a, getpgid(pids.v[i])))
                        kill(pids.v[i], signo);
        pids_finish(&pids);
}

static void signal_all(struct agent *a, int signo)
{
        for (size_t i = 0; i < a->n_workers; i++)
                worker_signal(a->workers[i], signo);
        signal_leftovers(a, signo);
}

static void kill_all(struct agent *a)
{
        a->phase = KILLING;
        uv_timer_stop(&a->timer);
        signal_all(a, SIGKILL);
}

/* A stopped process can only follow TERM after CONT. A later call may shorten the grace. */
static void stop(struct agent *a, uint32_t grace_ms)
{
        if (a->phase == IDLE || a->phase == KILLING)
                return;
        if (!grace_ms) {
                kill_all(a);
                return;
        }
        if (a->phase == RUNNING) {
                a->phase = TERMINATING;
                signal_all(a, SIGTERM);
                signal_all(a, SIGCONT);
                uv_timer_start(&a->timer, on_timer, grace_ms, 0);
        } else if (uv_timer_get_due_in(&a->timer) > grace_ms) {
                uv_timer_start(&a->timer, on_timer, grace_ms, 0);
        }
}

static void on_timer(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->phase == RUNNING)
                stop(a, SHORT_GRACE_MS);
        else if (a->phase == TERMINATING)
                kill_all(a);
        else
                signal_all(a, SIGKILL);
}

/* --- the end of an attempt -------------------------------------------------------------------- */

/* Not our children, so they are asked to do nothing and waited for by looking again. */
static bool kill_marked(struct agent *a)
{
        char *store = jobdir_path(&a->dir, "store");
        struct pids pids = PIDS_INIT;
        bool found;

        contain_marked(&pids, HN_STORE, store);
        found = pids.n;
        for (size_t i = 0; i < pids.n; i++) {
                if (kill(pids.v[i], SIGKILL) < 0 && errno != ESRCH)
                        log_line(LOG_WARN, "process %d of the job cannot be killed: %s",
                                 (int)pids.v[i], strerror(errno));
        }
        pids_finish(&pids);
        free(store);
        return found;
}

/* True when no process of the attempt is left; else makes sure that something follows. */
static bool sweep(struct agent *a)
{
        if (a->n_alive)
                return false;
        if (contain_any()) {
                if (a->phase == RUNNING && !a->lingering) {
                        a->lingering = true;
                        uv_timer_start(&a->timer, on_timer, LINGER_MS, 0);
                } else if (a->phase == KILLING && !uv_is_active((uv_handle_t *)&a->timer)) {
                        uv_timer_start(&a->timer, on_timer, RECHECK_MS, 0);
                }
                return false;
        }
        if (uv_is_active((uv_handle_t *)&a->timer) && a->phase == KILLING)
                return false; /* not yet time to look again */
        if (kill_marked(a)) {
                a->phase = KILLING;
                uv_timer_start(&a->timer, on_timer, RECHECK_MS, 0);
                return false;
        }
        return true;
}

static bool all_quiet(const struct agent *a)
{
        for (size_t i = 0; i < a->n_workers; i++)
                if (!worker_quiet(a->workers[i]))
                        return false;
        return true;
}

static void forget_workers(struct agent *a)
{
        for (size_t i = 0; i < a->n_workers; i++)
                worker_destroy(a->workers[i]);
        free(a->workers);
        a->workers = NULL;
        a->n_workers = a->n_alive = 0;
}

static void finish_attempt(struct agent *a)
{
        forget_workers(a);
        jobdir_sweep(&a->dir, "error-");
        port_hold(&a->port); /* for the next attempt */
        a->phase = IDLE;
        uv_timer_stop(&a->silence); /* the head pings only while ranks run */
        empty_encode(uplink_out(&a->up), MSG_GONE);
}

/* Only when the last word has been written, too. */
static void leave(void *ctx)
{
        struct agent *a = ctx;

        if (a->phase == IDLE && a->bye && uplink_empty(&a->up))
                uv_stop(a->loop);
}

/* Called in every turn. */
static void settle(void *ctx)
{
        struct agent *a = ctx;

        if (a->phase != IDLE && !a->swept && sweep(a)) {
                a->swept = true;
                uv_timer_stop(&a->timer);
                for (size_t i = 0; i < a->n_workers; i++)
                        worker_drain(a->workers[i]);
        }
        if (a->phase != IDLE && a->swept && (all_quiet(a) || a->up.lost))
                finish_attempt(a);
        leave(a);
}

static void report_exit(struct agent *a, const struct worker *w, int status)
{
        struct exited m = {
                .rank = w->rank,
                .pid = (uint32_t)w->pid,
                .status = (uint32_t)status,
                .mono_ns = uv_hrtime(),
                .stopped = a->phase >= TERMINATING,
                .killed = a->phase == KILLING,
        };

        exited_encode(uplink_out(&a->up), &m);
}

/* Orphans of a dead child are ours by the time we hear of its death. */
static void on_child(uv_signal_t *handle, int signo UNUSED)
{
        struct agent *a = handle->data;
        struct worker *w;
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                w = worker_by_pid(a, pid);
                if (!w)
                        continue;
                w->reaped = true;
                a->n_alive--;
                report_exit(a, w, status);
        }
        if (a->phase == KILLING)
                signal_leftovers(a, SIGKILL);
        else if (a->phase == TERMINATING && !a->n_alive)
                signal_leftovers(a, SIGTERM);
}

/* --- orders ----------------------------------------------------------------------------------- */

static void refuse(struct agent *a, uint32_t rank, enum refusal why, int error, const char *text)
{
        struct refused m = { .rank = rank, .why = why, .error = (uint32_t)error };

        memcpy(m.text, text, strnlen(text, sizeof(m.text) - 1));
        refused_encode(uplink_out(&a->up), &m);
}

static void send_store(void *ctx, const void *body, size_t len)
{
        struct agent *a = ctx;

        store_encode(uplink_out(&a->up), body, len);
}

/* The folder and the door are made for the first attempt and stay. */
static int prepare(struct agent *a, struct error *err)
{
        struct door_ops ops = { .send = send_store };
        char *path;

        if (!a->dir.path && jobdir_create(&a->dir, err) < 0)
                return -err->code;
        if (a->door)
                return 0;
        path = jobdir_path(&a->dir, "store");
        a->door = door_create(a->loop, path, ops, a, err);
        free(path);
        return a->door ? 0 : -err->code;
}

/* The process is on its way; confirm_ranks() has the last word. */
static int start_rank(struct agent *a, const struct launch *l, const struct launch_rank *r,
                      const struct strv *base)
{
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        char *store = jobdir_path(&a->dir, "store");
        char *error_file = xasprintf("%s/error-%u.json", a->dir.path, r->rank);
        struct worker_setup setup = {
                .loop = a->loop,
                .up = &a->up,
                .rank = r->rank,
                .window = l->window,
                .argv = &l->argv,
                .env = &env,
                .cwd = l->cwd,
                .fed = r->rank == l->stdin_rank,
        };
        struct error err;
        struct worker *w;

        strv_copy(&env, base);
        worker_env_build(&env, l, r, store, error_file, a->cores);
        w = worker_start(&setup, &err);
        free(store);
        free(error_file);
        if (!w) {
                refuse(a, r->rank, REFUSED_FORK, err.code, err.text);
                return -err.code;
        }
        a->workers[a->n_workers++] = w;
        return 0;
}

/* Forgets ranks whose program could not be executed, tells of the first. False: there was one. */
static bool confirm_ranks(struct agent *a, bool refused)
{
        static const enum refusal why[] = {
                [SPAWN_FORK] = REFUSED_FORK, [SPAWN_CWD] = REFUSED_CWD, [SPAWN_EXEC] = REFUSED_EXEC
        };
        size_t n = a->n_workers;
        enum spawn_step step;
        struct error err;
        struct worker *w;

        a->n_workers = 0;
        for (size_t i = 0; i < n; i++) {
                w = a->workers[i];
                if (worker_confirm(w, &step, &err) < 0) {
                        if (!refused)
                                refuse(a, w->rank, why[step], err.code, err.text);
                        refused = true;
                        worker_destroy(w);
                        continue;
                }
                a->workers[a->n_workers++] = w;
                a->n_alive++;
                started_encode(uplink_out(&a->up),
                               &(struct started){ .rank = w->rank, .pid = (uint32_t)w->pid });
        }
        return !refused;
}

static void start_ranks(struct agent *a, const struct launch *l)
{
        CLEANUP(strv_finish) struct strv base = STRV_INIT;
        bool refused = false;

        environment_build(&base, environ, l);
        a->workers = xcalloc(l->n_ranks, sizeof(struct worker *));
        a->phase = RUNNING;
        a->lingering = a->swept = false;
        for (uint32_t i = 0; i < l->n_ranks && !refused; i++)
                refused = start_rank(a, l, &l->ranks[i], &base) < 0;
        if (!confirm_ranks(a, refused))
                kill_all(a);
}

static void on_launch(struct agent *a, const struct frame *f)
{
        struct error err = { 0 };
        struct launch l;

        if (launch_decode(&l, f, &err) < 0) {
                refuse(a, UINT32_MAX, REFUSED_ORDER, 0, err.text);
                return;
        }
        if (a->phase != IDLE)
                err_set(&err, EBUSY, "ranks are already running on this node");
        else if (!l.n_ranks || !l.argv.n)
                err_set(&err, EINVAL, "an order without ranks or without a program");
        else
                prepare(a, &err);
        if (err.code) {
                refuse(a, UINT32_MAX, REFUSED_ORDER, 0, err.text);
        } else {
                port_release(&a->port);
                start_ranks(a, &l);
        }
        launch_finish(&l);
}

static void on_signal_order(struct agent *a, const struct frame *f)
{
        struct error err;
        uint32_t signo;

        if (signal_decode(&signo, f, &err) < 0 || signo >= NSIG)
                return;
        for (size_t i = 0; i < a->n_workers; i++)
                worker_signal(a->workers[i], (int)signo);
}

static void on_stop(struct agent *a, const struct frame *f)
{
        struct error err;
        struct stop m;

        if (stop_decode(&m, f, &err) == 0)
                stop(a, m.grace_ms);
}

static void on_credit(struct agent *a, const struct frame *f)
{
        struct worker *w;
        struct error err;
        struct credit m;

        if (credit_decode(&m, f, &err) < 0)
                return;
        w = worker_by_rank(a, m.rank);
        if (w)
                worker_credit(w, m.stream, m.bytes);
}

static void on_stdin(struct agent *a, const struct frame *f)
{
        struct worker *w;
        struct error err;
        struct output m;

        if (stdin_decode(&m, f, &err) < 0)
                return;
        w = worker_by_rank(a, m.rank);
        if (w)
                worker_feed(w, m.data, m.len);
}

static void head_is_silent(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        uplink_lose(&a->up, "no sign of life from the head");
}

/* A head that pings while ranks run is lost when it stops to: a cut cable says nothing. */
static void on_ping(struct agent *a, const struct frame *f)
{
        struct error err;
        struct ping m;

        if (ping_decode(&m, f, &err) < 0)
                return;
        m.agent_ns = uv_hrtime();
        ping_encode(uplink_out(&a->up), MSG_PONG, &m);
        if (a->phase != IDLE)
                uv_timer_start(&a->silence, head_is_silent, HEAD_SILENT_MS, 0);
}

static void on_bye(struct agent *a, const struct frame *f UNUSED)
{
        a->bye = true;
}

static void on_store(struct agent *a, const struct frame *f)
{
        struct error err;

        if (a->door && door_deliver(a->door, f->body, f->len, &err) < 0)
                log_line(LOG_WARN, "%s", err.text);
}

static void on_frame(void *ctx, const struct frame *f)
{
        static void (*const on[])(struct agent *, const struct frame *) = {
                [MSG_LAUNCH] = on_launch, [MSG_SIGNAL] = on_signal_order, [MSG_STOP] = on_stop,
                [MSG_CREDIT] = on_credit, [MSG_STDIN] = on_stdin,         [MSG_PING] = on_ping,
                [MSG_BYE] = on_bye,       [MSG_STORE] = on_store,
        };

        if (f->type < ARRAY_SIZE(on) && on[f->type])
                on[f->type](ctx, f);
        else
                log_line(LOG_WARN, "a message of unknown type %d was ignored", f->type);
}

/* --- the head --------------------------------------------------------------------------------- */

static void on_drained(void *ctx)
{
        struct agent *a = ctx;

        if (a->door)
                door_pause(a->door, false);
        for (size_t i = 0; i < a->n_workers; i++)
                worker_resume(a->workers[i]);
}

/* Nobody listens any more: pipes are emptied into nothing, so that no worker hangs on its last
 * words. */
static void on_lost(void *ctx, const char *why)
{
        struct agent *a = ctx;

        log_set_sink(NULL, NULL);
        if (a->phase != IDLE)
                log_line(LOG_INFO, "stopping the job: %s", why);
        a->bye = true;
        stop(a, SHORT_GRACE_MS);
        on_drained(a);
}

static void on_turn(void *ctx)
{
        struct agent *a = ctx;

        settle(a);
        if (a->door && uplink_full(&a->up))
                door_pause(a->door, true);
}

static void log_to_head(void *ctx, enum log_level level, const char *line)
{
        struct agent *a = ctx;
        struct logline m = { .level = (uint8_t)level };

        memcpy(m.text, line, strnlen(line, sizeof(m.text) - 1));
        logline_encode(uplink_out(&a->up), &m);
}

static void greet(struct agent *a)
{
        struct hello h;

        inventory_take(&h);
        port_hold(&a->port);
        a->cores = h.cores;
        h.free_port = a->port.number;
        h.mono_ns = uv_hrtime();
        buf_appends(uplink_out(&a->up), MSG_MAGIC);
        hello_encode(uplink_out(&a->up), &h);
        hello_finish(&h);
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct agent *agent_create(uv_loop_t *loop, int in_fd, int out_fd, struct error *err)
{
        static const struct uplink_ops ops = { .frame = on_frame,
                                               .drained = on_drained,
                                               .sent = leave,
                                               .turn = on_turn,
                                               .lost = on_lost };
        struct agent *a = xcalloc(1, sizeof(*a));

        *a = (struct agent){ .loop = loop, .port = PORT_INIT };
        if (contain_begin(err) < 0 || uplink_open(&a->up, loop, in_fd, out_fd, ops, a, err) < 0) {
                free(a);
                return NULL;
        }
        uv_timer_init(loop, &a->timer);
        uv_timer_init(loop, &a->silence);
        uv_signal_init(loop, &a->child_signal);
        a->timer.data = a->silence.data = a->child_signal.data = a;
        uv_signal_start(&a->child_signal, on_child, SIGCHLD);
        log_set_sink(log_to_head, a);
        greet(a);
        return a;
}

void agent_destroy(struct agent *a)
{
        if (!a)
                return;
        log_set_sink(NULL, NULL);
        forget_workers(a);
        door_destroy(a->door);
        port_release(&a->port);
        uv_close((uv_handle_t *)&a->timer, NULL);
        uv_close((uv_handle_t *)&a->silence, NULL);
        uv_close((uv_handle_t *)&a->child_signal, NULL);
        uplink_close(&a->up);
        uv_run(a->loop, UV_RUN_NOWAIT);
        jobdir_remove(&a->dir);
        uplink_finish(&a->up);
        free(a);
}

void agent_quit(struct agent *a, const char *why)
{
        log_line(LOG_INFO, "leaving: %s", why);
        a->bye = true;
        stop(a, SHORT_GRACE_MS);
}
