/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct metrics listens to events from open() on and makes the text when a client asks; the server
 * answers in the loop of the job. States of nodes and the failure are asked for at that moment,
 * through the callbacks below. The server closes before the job, the metrics after it, since events
 * may come up to the end.
 */
#include "head/watch/metrics_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/job/job.h"
#include "head/metrics/metrics.h"
#include "head/metrics/metrics_server.h"
#include "head/output/say.h"

struct metrics_feed {
        const struct run_view *r;
        struct metrics_address address;
        struct metrics *metrics; /* NULL before open */
        struct metrics_server *server;
};

static struct metrics_node describe_node(void *ctx, size_t host)
{
        static const enum metrics_state states[NODE_STATES] = {
                [NODE_NEW] = METRICS_CONNECTING,      [NODE_CONNECTING] = METRICS_CONNECTING,
                [NODE_GREETING] = METRICS_CONNECTING, [NODE_READY] = METRICS_READY,
                [NODE_RUNNING] = METRICS_RUNNING,     [NODE_GONE] = METRICS_ENDED,
                [NODE_FAILED] = METRICS_LOST,
        };
        const struct run_view *r = ((const struct metrics_feed *)ctx)->r;
        const struct node *n = job_node(r->job, host);

        return (struct metrics_node){
                states[n->state],
                /* -1: nothing was heard from the node yet. */
                n->heard_ns ? (n->heard_ns - r->events->start_ns) / 1000 : -1,
        };
}

/* Writes the sentence of the cause. False: nothing has failed, and @to is unchanged. */
static bool describe_failure(void *ctx, char *to, size_t size)
{
        struct job *j = ((const struct metrics_feed *)ctx)->r->job;
        const struct outcome *o = job_outcome(j);

        if (outcome_failed(o))
                job_sentence(j, &o->cause, to, size);
        return outcome_failed(o);
}

static void write_metrics(void *ctx, struct buf *to)
{
        const struct metrics_feed *f = ctx;

        metrics_text(f->metrics, to);
}

static void *create_metrics_feed(const struct run_view *r, struct job_config *c UNUSED)
{
        struct metrics_address address;
        struct metrics_feed *f;
        struct error err;

        if (!r->o->metrics || r->o->command != COMMAND_RUN ||
            metrics_address_parse(&address, r->o->metrics, &err) < 0)
                return NULL;
        f = xcalloc(1, sizeof(*f));
        f->r = r;
        f->address = address;
        return f;
}

static int open_metrics_feed(void *self, struct diags *d)
{
        struct metrics_feed *f = self;
        const struct run_view *r = f->r;
        struct metrics_source source = { .run_id = r->id,
                                         .version = HNLAUNCH_VERSION,
                                         .events = r->events,
                                         .ranks = r->ranks,
                                         .hosts = r->hosts,
                                         .node = describe_node,
                                         .reason = describe_failure,
                                         .ctx = f };
        struct timespec now;
        struct error err;

        clock_gettime(CLOCK_REALTIME, &now);
        /* Metrics have the start in wall-clock time, while events count from the start. */
        source.start_us =
                (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - events_now_us(r->events);
        f->metrics = metrics_create(&source);
        f->server = metrics_server_open(job_loop(r->job), &f->address, write_metrics, f, &err);
        if (!f->server) {
                diag_help(diag_add(d, HN_NO_METRICS, EX_UNAVAILABLE,
                                   "cannot serve --metrics %s: %s", r->o->metrics, err.text),
                          err.code == EADDRNOTAVAIL
                                  ? "take an address of this machine; 0.0.0.0 is all of them"
                                  : "take another port; port 0 is any free one");
                return EX_UNAVAILABLE;
        }
        if (!r->o->quiet)
                say("hnlaunch: metrics at %s\n", metrics_server_url(f->server));
        return 0;
}

static void close_metrics_feed(void *self)
{
        struct metrics_feed *f = self;

        metrics_server_close(f->server);
        f->server = NULL;
}

static void destroy_metrics_feed(void *self)
{
        struct metrics_feed *f = self;

        metrics_destroy(f->metrics);
        free(f);
}

const struct watcher metrics_feed_watcher = {
        .create = create_metrics_feed,
        .open = open_metrics_feed,
        .close = close_metrics_feed,
        .destroy = destroy_metrics_feed,
};
