/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each run has a socket while it lasts. The socket must not harm the run: a failure to open is a
 * warning.
 */
#include "head/watch/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/job/job.h"
#include "head/job/job_spares.h"
#include "head/model/events.h"
#include "head/model/rank_board.h"
#include "head/model/role_list.h"
#include "head/output/run_dir.h"
#include "head/run/run_folders.h"
#include "head/run/run_socket.h"
#include "head/watch/look.h"
#include "head/watch/top_feed.h"

/* Adds the step of the slowest rank, if ranks report steps, and the time left at the mean pace,
 * unless the steps stand still. */
static void add_step(const struct run_view *r, json_t *j, bool still)
{
        const struct step_pace *p = r->ranks->pace;
        const struct rank_board_steps s = rank_board_steps(r->ranks);
        /* Steps since the first that was told: a run from a checkpoint begins above 0. */
        int64_t done = s.least - p->first;

        if (!s.told)
                return;
        if (s.role)
                json_object_set_new(j, "step_role", json_text(s.role));
        json_object_set_new(j, "step", json_integer((json_int_t)s.least));
        json_object_set_new(j, "total", s.total ? json_integer((json_int_t)s.total) : json_null());
        if (s.total > s.least && done > 0 && !still)
                json_object_set_new(
                        j, "left_ms",
                        json_integer((json_int_t)((double)(s.total - s.least) / (double)done *
                                                  (double)(events_now_us(r->events) - p->first_us) /
                                                  1000)));
}

/* Returns the present state of the run for ps, top and attach: run.json's description of the launch
 * and what changes. A new reference. */
static json_t *describe_by_request(void *ctx)
{
        const struct run_view *r = ctx;
        json_t *j = run_dir_describe(r->o, r->id, r->cwd, r->events->start_ns);
        int64_t hang_ms = job_hang_ms(r->job);
        int64_t stalled_ms =
                step_pace_stalled_ms(r->ranks->pace, events_now_us(r->events), hang_ms);
        json_t *waits = job_describe_waits(r->job);

        /* A world may hang while another makes steps. */
        if (hang_ms && r->plan->n_worlds > 1) {
                stalled_ms = hang_ms;
                json_object_set_new(j, "hangs", json_true());
        }
        if (waits)
                json_object_set_new(j, "waits", waits);
        json_object_set_new(j, "state", json_string(job_doing(r->job)));
        json_object_set_new(j, "us", json_integer((json_int_t)events_now_us(r->events)));
        json_object_set_new(
                j, "num_nodes",
                json_integer(r->plan->n_nodes ? r->plan->num_nodes : (json_int_t)r->hosts->n));
        json_object_set_new(j, "world_size", json_integer(r->plan->world_size));
        json_object_set_new(j, "attempt", json_integer((json_int_t)r->ranks->attempt + 1));
        json_object_set_new(j, "spares", json_integer((json_int_t)job_spares(r->job)));
        json_object_set_new(j, "silent_nodes", json_integer((json_int_t)job_silent_nodes(r->job)));
        json_object_set_new(j, "detached", json_boolean(r->detached));
        if (stalled_ms)
                json_object_set_new(j, "stalled_ms", json_integer((json_int_t)stalled_ms));
        add_step(r, j, stalled_ms);
        return j;
}

static void stop_by_request(void *ctx, int64_t grace_ms, int pid)
{
        struct run_view *r = ctx;

        job_order_stop(r->job, grace_ms, pid);
}

/* Sends a signal to all ranks, or to those of @role, as role_list_choose() reads it. 0, or -errno
 * with @err: there is no such role. */
static int order_signal(void *ctx, int signo, const char *role, int pid, struct error *err)
{
        struct run_view *r = ctx;
        struct role_list list = { 0 };
        struct role_span *spans = NULL;
        size_t n = 0;

        if (role) {
                role_list_from_plan(&list, r->plan);
                spans = role_list_choose(&list, role, &n, err);
                role_list_finish(&list);
        }
        if (role && !spans)
                return -err->code;
        job_order_signal(r->job, signo, role, spans, n, pid);
        free(spans);
        return 0;
}

static void show_status(void *ctx)
{
        struct run_view *r = ctx;

        job_show_status(r->job);
}

/* Whether the host is a spare that is not connected. The first @stood_in of the list have been used
 * up. */
static bool stands_by(const struct hosts *h, const char *name)
{
        for (size_t i = h->stood_in; h->aside && i < h->aside->n; i++)
                if (!strcmp(h->aside->v[i].name, name))
                        return true;
        return false;
}

static int order_drain(void *ctx, const char *host, int64_t in_ms, struct error *err)
{
        static const char by[] = "hnlaunch drain";
        struct run_view *r = ctx;
        size_t i = 0;

        while (i < r->hosts->n && strcmp(r->hosts->v[i].name, host))
                i++;
        if (i < r->hosts->n)
                return job_drain_host(r->job, i, in_ms, by, err);
        if (!stands_by(r->hosts, host))
                return err_set(err, ENOENT, "%s is not one of its hosts", host);
        /* The event alone takes the host out: the launch listens to it. */
        log_line(LOG_WARN, "%s is drained (%s): it is no spare host any more", host, by);
        events_emit(r->events, (struct event){ .kind = EVENT_NODE_DRAINED,
                                               .node = -1,
                                               .rank = -1,
                                               .host = host,
                                               .text = by });
        return 0;
}

static int lend_stdin(void *ctx, int fd, struct error *err)
{
        struct run_view *r = ctx;

        return job_lend_stdin(r->job, fd, err);
}

static void end_stdin(void *ctx)
{
        struct run_view *r = ctx;

        job_end_stdin(r->job);
}

static void look_by_request(void *ctx)
{
        look_begin(ctx);
}

static char *watch_by_request(void *ctx)
{
        return top_feed_watch(ctx);
}

static void end_watch(void *ctx)
{
        top_feed_rest(ctx);
}

void requests_open(struct run_view *r, struct diags *d)
{
        static const struct run_socket_ops ops = { describe_by_request, stop_by_request,
                                                   order_signal,        show_status,
                                                   order_drain,         lend_stdin,
                                                   end_stdin,           look_by_request,
                                                   watch_by_request,    end_watch };
        struct error err = { 0 };

        /* Another run that ends may remove the folder in between, which libuv calls EACCES. */
        for (int i = 0; i < 2 && !r->socket && (!i || err.code == EACCES); i++) {
                CLEANUP(free_textp) char *folder = run_folders_sockets(true, &err);
                CLEANUP(free_textp)
                char *path = folder ? run_folders_socket(folder, r->id) : NULL;

                if (path)
                        r->socket = run_socket_open(job_loop(r->job), path, ops, r, &err);
        }
        if (!r->socket)
                diag_warn(d, HN_NO_SOCKET, "hnlaunch ps and stop cannot see this run: %s",
                          err.text);
}

void requests_close(struct run_view *r)
{
        run_socket_close(r->socket);
        r->socket = NULL;
}
