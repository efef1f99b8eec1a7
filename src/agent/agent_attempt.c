/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/agent_private.h"
#include "agent/rank/base_env.h"
#include "base/fd.h"
#include "base/log.h"
#include "wire/env_names.h"
#include "wire/worker_env.h"

enum {
        LINGER_MS = 500,
        ERROR_FILE_MAX = 1 << 20,
        REAP_MAX = 256, /* in one turn of the loop */
        RECHECK_MS = 20,
        HELD_MS = 200, /* a process that was killed is reaped long before */
        /* For programs to be executed before we turn to other things, and between looks then. */
        START_MS = 50,
        START_LOOK_MS = 20,
};

extern char **environ;

/* --- finding workers -------------------------------------------------------------------------- */

struct worker *agent_worker(struct agent *a, uint32_t rank)
{
        for (size_t i = 0; i < a->n_workers; i++)
                if (a->workers[i]->rank == rank)
                        return a->workers[i];
        return NULL;
}

static struct worker *find_worker(struct agent *a, pid_t pid)
{
        for (size_t i = 0; i < a->n_workers; i++)
                if (!a->workers[i]->reaped && a->workers[i]->pid == pid)
                        return a->workers[i];
        return NULL;
}

/* --- stopping --------------------------------------------------------------------------------- */

/* Those in a worker's process group are reached through the group. */
static bool is_worker(void *ctx, pid_t group)
{
        return find_worker(ctx, group);
}

static void signal_leftovers(struct agent *a, int signo)
{
        contain_signal(&a->contain, signo, is_worker, a);
}

static void signal_all(struct agent *a, int signo)
{
        for (size_t i = 0; i < a->n_workers; i++)
                worker_signal(a->workers[i], signo);
        signal_leftovers(a, signo);
}

static void on_grace_over(uv_timer_t *timer);

static void kill_all(struct agent *a)
{
        a->phase = KILLING;
        uv_timer_start(&a->timer, on_grace_over, HELD_MS, HELD_MS);
        signal_all(a, SIGKILL);
}

static void reap_children(struct agent *a);

/* A stopped process can only follow TERM after CONT. A later call may shorten the grace. */
void agent_stop(struct agent *a, uint32_t grace_ms)
{
        if (a->phase == IDLE || a->phase == KILLING)
                return;
        if (!grace_ms) {
                kill_all(a);
                return;
        }
        if (a->phase == RUNNING)
                reap_children(a); /* a rank that has ended by now was not stopped by us */
        if (a->phase == RUNNING) {
                a->phase = TERMINATING;
                signal_all(a, SIGTERM);
                signal_all(a, SIGCONT);
                uv_timer_start(&a->timer, on_grace_over, grace_ms, 0);
        } else if (uv_timer_get_due_in(&a->timer) > grace_ms) {
                uv_timer_start(&a->timer, on_grace_over, grace_ms, 0);
        }
}

static void report_exit(struct agent *a, struct worker *w, int status);

/* Ranks that were killed and whose tracer does not let us hear of it. */
static void drop_held_workers(struct agent *a)
{
        for (size_t i = 0; i < a->n_workers; i++) {
                if (a->workers[i]->reaped || !a->workers[i]->started ||
                    !proc_is_held(a->workers[i]->pid))
                        continue;
                log_line(LOG_WARN,
                         "rank %u (pid %d) is dead, but the debugger that traces it "
                         "keeps its remains",
                         a->workers[i]->rank, (int)a->workers[i]->pid);
                a->workers[i]->reaped = true;
                a->n_alive--;
                report_exit(a, a->workers[i], SIGKILL);
        }
}

static void on_grace_over(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->phase == RUNNING)
                agent_stop(a, SHORT_GRACE_MS);
        else if (a->phase == TERMINATING)
                kill_all(a);
        else
                drop_held_workers(a);
}

/* --- the end of an attempt -------------------------------------------------------------------- */

/* Turns the loop, and so calls settle(). */
static void on_recheck(uv_timer_t *timer)
{
        struct agent *a = timer->data;

        if (a->phase == KILLING)
                signal_leftovers(a, SIGKILL);
}

/* True when no process of the attempt is left; else makes sure that something follows. */
static bool sweep_attempt(struct agent *a)
{
        if (a->n_alive || uv_is_active((uv_handle_t *)&a->recheck))
                return false;
        if (contain_any(&a->contain)) {
                if (a->phase == RUNNING && !a->lingering) {
                        a->lingering = true;
                        uv_timer_start(&a->timer, on_grace_over, LINGER_MS, 0);
                }
        } else if (contain_sweep(&a->contain)) {
                a->phase = KILLING;
        } else {
                return true;
        }
        uv_timer_start(&a->recheck, on_recheck, RECHECK_MS, 0);
        return false;
}

static bool all_outputs_ended(const struct agent *a)
{
        for (size_t i = 0; i < a->n_workers; i++)
                if (!worker_quiet(a->workers[i]))
                        return false;
        return true;
}

void agent_drop_workers(struct agent *a)
{
        for (size_t i = 0; i < a->n_workers; i++)
                worker_destroy(a->workers[i]);
        free(a->workers);
        a->workers = NULL;
        a->n_workers = a->n_alive = a->n_starting = 0;
        uv_timer_stop(&a->starting);
}

static void finish_attempt(struct agent *a)
{
        agent_drop_workers(a);
        agent_store_hang_up(a);
        contain_close(&a->contain);
        job_dir_sweep(&a->dir, "error-");
        if (!a->tcp)
                port_hold(&a->port); /* for the next attempt */
        a->phase = IDLE;
        agent_rearm_silence(a); /* the head pings only while ranks run */
        empty_encode(uplink_out(&a->up), MSG_GONE);
}

/* Only when the last word has been written, too, and those whom we carry have left. */
void agent_leave(void *ctx)
{
        struct agent *a = ctx;

        if (a->phase == IDLE && a->bye && !a->n_carried && uplink_empty(&a->up))
                uv_stop(a->loop);
}

/* Called in every turn. */
void agent_advance(struct agent *a)
{
        if (a->phase != IDLE && !a->swept && sweep_attempt(a)) {
                a->swept = true;
                uv_timer_stop(&a->timer);
                for (size_t i = 0; i < a->n_workers; i++)
                        worker_drain(a->workers[i]);
        }
        if (a->phase != IDLE && a->swept && (all_outputs_ended(a) || a->up.lost))
                finish_attempt(a);
}

/* The killer's count is up to date before its victim can be waited for. */
static void note_oom_kill(const struct agent *a, struct exited *m)
{
        struct oom now;

        oom_read(&now, a->contain.cgroup.path);
        if (now.kills <= a->oom.kills || strcmp(now.where, a->oom.where) != 0)
                return;
        memcpy(m->oom, now.where, sizeof(m->oom));
        m->oom_before = a->oom.kills;
        m->oom_after = now.kills;
}

/* The error file of torch.distributed.elastic, when the rank left one. */
static void send_error_file(struct agent *a, uint32_t rank)
{
        char *name = xasprintf("error-%u.json", rank), *path = job_dir_path(&a->dir, name), *text;
        size_t len;
        int r = fd_read_regular(path, ERROR_FILE_MAX, &text, &len);

        if (r == 0) {
                if (len)
                        report_encode(uplink_out(&a->up), rank, text, len);
                free(text);
        } else if (r != -ENOENT) {
                log_line(LOG_WARN, "ignoring the error file of rank %u: %s", rank,
                         r == -EFBIG    ? "larger than 1 MiB"
                         : r == -EINVAL ? "not a regular file"
                                        : strerror(-r));
        }
        free(path);
        free(name);
}

/* After what the rank wrote: the head looks there for the reason. */
static void report_exit(struct agent *a, struct worker *w, int status)
{
        struct exited m = {
                .rank = w->rank,
                .pid = (uint32_t)w->pid,
                .status = (uint32_t)status,
                .mono_ns = uv_hrtime(),
                .stopped = a->phase >= TERMINATING,
                .killed = a->phase == KILLING,
        };

        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !m.killed)
                note_oom_kill(a, &m);
        if (status)
                worker_catch_up(w);
        if (status && !m.stopped)
                send_error_file(a, w->rank);
        exited_encode(uplink_out(&a->up), &m);
}

/* --- programs that are executed, or not ------------------------------------------------------- */

void agent_refuse(struct agent *a, uint32_t rank, enum refusal why, int error, const char *text)
{
        struct refused m = { .rank = rank, .why = why, .error = (uint32_t)error };

        memcpy(m.text, text, strnlen(text, sizeof(m.text) - 1));
        refused_encode(uplink_out(&a->up), &m);
}

/* False: the worker is gone, for its program could not be executed. Tells of the first such one. */
static bool confirm_start(struct agent *a, struct worker *w, int ms)
{
        static const enum refusal why[] = {
                [SPAWN_FORK] = REFUSED_FORK, [SPAWN_CWD] = REFUSED_CWD, [SPAWN_EXEC] = REFUSED_EXEC
        };
        enum spawn_step step;
        struct error err;
        int r = w->started ? 0 : worker_confirm(w, ms, &step, &err);

        if (!r)
                return true;
        a->n_starting--;
        if (r > 0) {
                started_encode(uplink_out(&a->up),
                               &(struct started){ .rank = w->rank, .pid = (uint32_t)w->pid });
                return true;
        }
        a->n_alive--;
        if (!a->refused)
                agent_refuse(a, w->rank, why[step], err.code, err.text);
        a->refused = true;
        worker_destroy(w);
        return false;
}

/* A file system may take its time over a program or its folder. Waits for at most @ms in all. */
static void confirm_starts(struct agent *a, uint64_t ms)
{
        uint64_t end = uv_hrtime() / 1000000 + ms, now;
        size_t n = 0;

        for (size_t i = 0; i < a->n_workers; i++) {
                now = uv_hrtime() / 1000000;
                if (confirm_start(a, a->workers[i], now < end ? (int)(end - now) : 0))
                        a->workers[n++] = a->workers[i];
        }
        a->n_workers = n;
        if (a->n_starting)
                return;
        uv_timer_stop(&a->starting);
        if (a->refused && a->phase != KILLING)
                kill_all(a);
}

static void on_starting(uv_timer_t *timer)
{
        confirm_starts(timer->data, 0);
}

/* --- the end of a rank ------------------------------------------------------------------------ */

static void on_reaping(uv_timer_t *timer);

/* Orphans of a dead child are ours by the time we hear of its death. Not all at once: processes
 * that fork in a loop can die as fast as we reap them, and our deadlines must come through. */
static void reap_children(struct agent *a)
{
        int status, left = REAP_MAX;
        struct worker *w;
        pid_t pid;

        while (left > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                left--;
                w = find_worker(a, pid);
                if (w && !w->started) {
                        confirm_starts(a, 0);
                        w = find_worker(a, pid);
                }
                if (!w) {
                        agent_child_reaped(a, pid, status);
                        continue;
                }
                w->reaped = true;
                a->n_alive--;
                report_exit(a, w, status);
        }
        if (!left) /* with 0 some versions of libuv come back before they turn */
                uv_timer_start(&a->reaping, on_reaping, 1, 0);
        if (a->phase == KILLING)
                signal_leftovers(a, SIGKILL);
        else if (a->phase == TERMINATING && !a->n_alive)
                signal_leftovers(a, SIGTERM);
}

static void on_reaping(uv_timer_t *timer)
{
        reap_children(timer->data);
}

void agent_on_sigchld(uv_signal_t *handle, int signo UNUSED)
{
        reap_children(handle->data);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* The process is on its way; confirm_starts() has the last word. */
static int start_rank(struct agent *a, const struct launch_order *l, const struct launch_rank *r,
                      const struct strv *base)
{
        CLEANUP(strv_finish) struct strv env = STRV_INIT;
        char *store = job_dir_path(&a->dir, "store");
        char *error_file = xasprintf("%s/error-%u.json", a->dir.path, r->rank);
        struct worker_setup setup = {
                .loop = a->loop,
                .up = &a->up,
                .rank = r->rank,
                .window = l->window,
                .argv = &l->argv,
                .env = &env,
                .cwd = l->cwd,
                .fed = r->rank == l->stdin_rank || l->stdin_rank == MSG_EVERY_RANK,
                .contain = &a->contain,
        };
        struct error err;
        struct worker *w;

        strv_copy(&env, base);
        worker_env_build(&env, l, r, store, error_file, a->cores);
        if (agent_push_dir(a))
                strv_env_set(&env, HN_PUSH_DIR, agent_push_dir(a));
        w = worker_start(&setup, &err);
        free(store);
        free(error_file);
        if (!w) {
                agent_refuse(a, r->rank, REFUSED_FORK, err.code, err.text);
                return -err.code;
        }
        a->workers[a->n_workers++] = w;
        a->n_alive++;
        a->n_starting++;
        return 0;
}

static int contain_attempt(struct agent *a, enum contain_level wanted, struct error *err)
{
        char *store = job_dir_path(&a->dir, "store");
        int r = contain_open(&a->contain, wanted, store, err);

        free(store);
        if (r < 0)
                return r;
        log_line(LOG_INFO, "processes are kept together by: %s",
                 contain_level_name(a->contain.level));
        if (a->notes && a->contain.cgroup.path)
                snprintf(a->notes->cgroup, sizeof(a->notes->cgroup), "%s", a->contain.cgroup.path);
        oom_read(&a->oom, a->contain.cgroup.path);
        return 0;
}

void agent_start_ranks(struct agent *a, const struct launch_order *l)
{
        CLEANUP(strv_finish) struct strv base = STRV_INIT;
        struct error err;

        if (contain_attempt(a, l->contain, &err) < 0) {
                agent_refuse(a, UINT32_MAX, REFUSED_ORDER, err.code, err.text);
                empty_encode(uplink_out(&a->up), MSG_GONE);
                return;
        }
        a->silence_ms = l->silence_ms;
        base_env_build(&base, environ, l);
        agent_note_master(a, l);
        a->workers = xcalloc(l->n_ranks, sizeof(struct worker *));
        a->phase = RUNNING;
        a->lingering = a->swept = a->refused = false;
        for (uint32_t i = 0; i < l->n_ranks && !a->refused; i++)
                a->refused = start_rank(a, l, &l->ranks[i], &base) < 0;
        confirm_starts(a, START_MS);
        if (!a->n_starting)
                return;
        log_line(LOG_INFO, "waiting for '%s' to be executed", l->argv.v[0]);
        uv_timer_start(&a->starting, on_starting, START_LOOK_MS, START_LOOK_MS);
}
