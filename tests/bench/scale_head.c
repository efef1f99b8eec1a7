/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/scale.h"

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/strv.h"
#include "bench/pair.h"
#include "bench/transport_sim.h"
#include "bench/usage.h"
#include "head/hosts/hostfile.h"
#include "head/job/job.h"
#include "head/job/job_endpoint.h"
#include "head/model/rank_board.h"
#include "head/options/export_env.h"
#include "head/options/options.h"
#include "head/output/progress.h"
#include "head/report/report.h"

enum { PINGS_PER_MS = 10, PULSES = 12 /* in one --node-timeout of at most 6 s, see heartbeat.c */ };

static struct {
        struct scale *scale;
        int *fds;
        char *hostfile;
        struct options o;
        struct hosts hosts;
        struct diags diags;
        struct events events;
        struct rank_board *ranks;
        struct progress *progress;
        struct strv env, unset;
        struct plan_inventory *inventory;
        struct plan plan;
        struct job_config config; /* of the job */
        struct job *job;
} head;

static struct transport *make_transport(void *ctx UNUSED, uv_loop_t *loop,
                                        const struct transport_maker *other UNUSED,
                                        struct error *err UNUSED)
{
        return transport_sim_create(loop, STEAL(&head.fds), head.scale->n_nodes);
}

static const struct transport_maker maker = { make_transport, NULL };

static void heard(void *ctx UNUSED, const struct event *e)
{
        head.scale->joined += e->kind == EVENT_RANK_JOINED;
}

static void told(void *ctx UNUSED, const struct diags *d)
{
        diags_print(d, stderr, false);
}

static void tick(void *ctx)
{
        progress_tick(ctx);
}

/* A file of one line per node, as a batch system writes it. */
static char *write_hostfile(const struct scale *s)
{
        struct buf b = BUF_INIT;
        int fd = memfd_create("hosts", 0);
        bool good;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                buf_printf(&b, "node%05u slots=%u\n", i, s->per_node);
        good = fd >= 0 && write(fd, buf_data(&b), buf_len(&b)) == (ssize_t)buf_len(&b);
        buf_finish(&b);
        return good ? xasprintf("/proc/self/fd/%d", fd) : NULL;
}

/* --- as main.c does it ------------------------------------------------------------------------ */

static bool load(void)
{
        const struct scale *s = head.scale;
        struct progress_options po = { .n_hosts = s->n_nodes, .remote = true, .run_id = "scale" };
        char timeout[32] = "30s";
        char *argv[] = {
                (char *)"hnlaunch", (char *)"-H", head.hostfile, (char *)"--node-timeout", timeout,
                (char *)"true",     NULL
        };

        if (s->idle_s)
                snprintf(timeout, sizeof(timeout), "%ums",
                         PULSES * MAX(s->n_nodes / PINGS_PER_MS, 1U));
        po.source = head.hostfile;
        events_init(&head.events);
        head.ranks = rank_board_create(&head.events, &head.plan);
        events_listen(&head.events, heard, NULL);
        if (options_load(&head.o, ARRAY_SIZE(argv) - 1, argv, &head.diags) < 0 ||
            hostfile_load(&head.hosts, head.hostfile, &head.diags) < 0 ||
            export_env_collect(&head.o, environ, &head.env, &head.unset, &head.diags) < 0)
                return false;
        head.progress = progress_create(&head.events, &po);
        return true;
}

static bool connect_all(void)
{
        static const struct agent_binaries none; /* never asked for: the agents run */
        struct error err;

        head.config = (struct job_config){ .options = &head.o,
                                           .hosts = &head.hosts,
                                           .agent_binaries = &none,
                                           .remote = &maker,
                                           .events = &head.events,
                                           .ranks = head.ranks,
                                           .run_id = "scale",
                                           .tick = { tick, head.progress },
                                           .say = told };
        head.job = job_create(&head.config, &err);
        return head.job && job_connect(head.job) == JOB_DONE;
}

static int make_plan(void)
{
        head.inventory = xcalloc(head.hosts.n, sizeof(*head.inventory));
        for (size_t i = 0; i < head.hosts.n; i++) {
                const struct hello *h = &job_node(head.job, i)->hello;

                head.inventory[i] = (struct plan_inventory){ .known = true,
                                                             .gpus = (int)h->n_gpus,
                                                             .cores = (int)h->cores };
        }
        return plan_build(&head.plan, &head.hosts, head.inventory, &head.o.plan, &head.diags);
}

static void run(void)
{
        struct job_launch l = {
                .plan = &head.plan,
                .env = &head.env,
                .unset = &head.unset,
                .cwd = "/home/alice",
                .output = { .label = "{host}:{rank} | " },
                .stdin_fd = -1,
        };

        events_emit(&head.events, (struct event){ .kind = EVENT_RUN_START,
                                                  .node = -1,
                                                  .rank = -1,
                                                  .value = head.plan.world_size,
                                                  .count = head.plan.num_nodes });
        job_launch(head.job, &l);
        job_wait(head.job);
        job_leave(head.job);
        head.scale->exit_code = outcome_exit_code(job_outcome(head.job));
        report_failure(&head.diags, head.job, &head.hosts, &head.plan, &head.o);
}

static bool all_steps(void)
{
        struct error err = { 0 };

        if (!load() || !connect_all())
                return false;
        scale_mark(head.scale, SCALE_READY);
        if (head.scale->end == SCALE_CHECK) {
                bool good = scale_check(head.scale, head.job, &head.hosts, &head.o);

                job_leave(head.job);
                return good;
        }
        if (make_plan() < 0 || job_open_endpoint(head.job, &head.plan, &err) != 0)
                return false;
        scale_mark(head.scale, SCALE_LAUNCH);
        run();
        return true;
}

static void forget(void)
{
        job_destroy(head.job);
        progress_destroy(head.progress);
        rank_board_destroy(head.ranks);
        free(head.inventory);
        plan_finish(&head.plan);
        hosts_finish(&head.hosts);
        strv_finish(&head.env);
        strv_finish(&head.unset);
        options_finish(&head.o);
}

bool scale_head(struct scale *s, int listener)
{
        struct usage u;
        bool good;

        head.scale = s;
        s->head = getpid();
        signal(SIGPIPE, SIG_IGN);
        head.diags = (struct diags)DIAGS_INIT;
        head.hostfile = write_hostfile(s);
        head.fds = xcalloc(s->n_nodes, sizeof(*head.fds));
        for (uint32_t i = 0; i < s->n_nodes; i++)
                head.fds[i] = pair_accept(listener);
        if (!head.hostfile || sodium_init() < 0)
                return false;
        s->start_kb = usage_of(s->head).peak_kb;
        scale_mark(s, SCALE_START);
        good = all_steps();
        u = usage_of(s->head);
        forget();
        scale_mark(s, SCALE_END);
        s->peak_kb = u.peak_kb;
        diags_print(&head.diags, stderr, false);
        diags_finish(&head.diags);
        free(head.hostfile);
        return good;
}
