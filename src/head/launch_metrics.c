/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "head/launch_private.h"
#include "head/metrics/metrics.h"
#include "head/metrics/metrics_server.h"
#include "head/output/say.h"

enum { HN_NO_METRICS = 334 };

static struct metrics_node describe_node(void *ctx, size_t host)
{
        static const enum metrics_state states[NODE_STATES] = {
                [NODE_NEW] = METRICS_CONNECTING,      [NODE_CONNECTING] = METRICS_CONNECTING,
                [NODE_GREETING] = METRICS_CONNECTING, [NODE_READY] = METRICS_READY,
                [NODE_RUNNING] = METRICS_RUNNING,     [NODE_GONE] = METRICS_ENDED,
                [NODE_FAILED] = METRICS_LOST,
        };
        const struct launch *l = ctx;
        const struct node *n = job_node(l->run.job, host);

        return (struct metrics_node){
                states[n->state],
                n->heard_ns ? (n->heard_ns - l->events.start_ns) / 1000 : -1,
        };
}

static bool describe_failure(void *ctx, char *to, size_t size)
{
        const struct launch *l = ctx;
        const struct outcome *o = job_outcome(l->run.job);

        if (outcome_failed(o))
                job_sentence(l->run.job, &o->cause, to, size);
        return outcome_failed(o);
}

static void write_metrics(void *ctx, struct buf *to)
{
        const struct launch *l = ctx;

        metrics_text(l->listeners.metrics, to);
}

int launch_metrics_begin(struct launch *l)
{
        struct metrics_source source = { .run_id = l->config.run_id,
                                         .version = HNLAUNCH_VERSION,
                                         .events = &l->events,
                                         .ranks = &l->ranks,
                                         .hosts = &l->hosts,
                                         .node = describe_node,
                                         .reason = describe_failure,
                                         .ctx = l };
        struct metrics_address address;
        struct timespec now;
        struct error err;

        if (!l->o.metrics || l->o.command != COMMAND_RUN ||
            metrics_address_parse(&address, l->o.metrics, &err) < 0)
                return 0;
        clock_gettime(CLOCK_REALTIME, &now);
        source.start_us =
                (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - events_now_us(&l->events);
        l->listeners.metrics = metrics_create(&source);
        l->listeners.metrics_server =
                metrics_server_open(job_loop(l->run.job), &address, write_metrics, l, &err);
        if (!l->listeners.metrics_server) {
                diag_help(diag_add(&l->diags, HN_NO_METRICS, 69, "cannot serve --metrics %s: %s",
                                   l->o.metrics, err.text),
                          "take another port; port 0 is any free one");
                return verdict_nothing_started(l, 69);
        }
        if (!l->o.quiet)
                say("hnlaunch: metrics at %s\n", metrics_server_url(l->listeners.metrics_server));
        return 0;
}

void launch_metrics_close(struct launch *l)
{
        metrics_server_close(l->listeners.metrics_server);
        l->listeners.metrics_server = NULL;
}
