/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole job of the head, from job_create() to job_destroy(), with agents that say valid
 * messages in any order. The input is a program for order_agents.c: an idle handle of the job's own
 * loop takes one step in each turn. At the end of the program all agents hang up, so the job ends.
 *
 * Whatever comes: the job ends, an agent that kept to its turns is not lost, and a job that counts
 * as a success has had the end of every rank from the rank's own node.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "head/hosts/hostfile.h"
#include "head/job/job_private.h"
#include "head/model/rank_board.h"
#include "head/nodes/transport_tree.h"
#include "head/options/options.h"
#include "order_agents.h"

/* The first byte of the input. */
enum { WITH_TREE = 1, WITH_PUSH = 2, WITH_RESTART = 4, GO_ON = 8, LISTEN = 16, WITH_STDIN = 128 };

/* The same for all inputs. */
static struct {
        struct options options;
        struct hosts hosts;
        struct manifest manifest;
        struct strv none;
        bool shown[ORDER_RANKS];
} made;

static struct {
        struct options options;
        struct job *job;
        struct plan plan;
        struct events events;
        struct rank_board *ranks;
        int fds[2]; /* standard input of the ranks */
} run;

/* --- made once -------------------------------------------------------------------------------- */

static void must(bool good, const char *what)
{
        if (good)
                return;
        fprintf(stderr, "fuzz_order_head: %s\n", what);
        abort();
}

static void write_nothing(void *ctx UNUSED, enum log_level level UNUSED, int id UNUSED,
                          const char *line UNUSED)
{
}

static char pushed_file[] = "/tmp/fuzz-order.XXXXXX";

static void remove_pushed_file(void)
{
        unlink(pushed_file);
}

static void note_hashed(void *ctx UNUSED, uint64_t bytes UNUSED)
{
}

static void make_manifest(struct diags *d)
{
        static const struct manifest_watch watch = { .tick = note_hashed };
        CLEANUP(strv_finish) struct strv paths = STRV_INIT;
        int fd = mkstemp(pushed_file);

        must(fd >= 0 && ftruncate(fd, 600000) == 0, "cannot make a file to push");
        atexit(remove_pushed_file);
        close(fd);
        strv_push(&paths, pushed_file);
        made.manifest = (struct manifest)MANIFEST_INIT;
        must(manifest_pack(&made.manifest, &paths, "/", &watch, d) == 0, "cannot pack a file");
}

static void make_all(void)
{
        static const char hostfile[] = "n0 slots=2\nn1 slots=2\nn2 slots=2\n";
        char *argv[] = { (char *)"hnlaunch", (char *)"-w",   (char *)"n0", (char *)"--node-timeout",
                         (char *)"1h",       (char *)"true", NULL };
        struct diags d = DIAGS_INIT;
        char *path;
        int fd;

        if (made.hosts.n)
                return;
        fd = memfd_create("hosts", MFD_CLOEXEC);
        path = xasprintf("/proc/self/fd/%d", fd);
        must(sodium_init() >= 0, "sodium");
        must(fd_write_all(fd, hostfile, strlen(hostfile)) == 0, "cannot write the hosts");
        must(options_load(&made.options, ARRAY_SIZE(argv) - 1, argv, &d) == 0, "options");
        must(hostfile_load(&made.hosts, path, &d) == 0, "hosts");
        make_manifest(&d);
        made.shown[0] = true;
        signal(SIGPIPE, SIG_IGN);
        if (getenv("TELL")) /* what a find does */
                log_set_level(LOG_DEBUG);
        else
                log_set_sink(write_nothing, NULL);
        free(path);
        close(fd);
        diags_finish(&d);
}

/* --- the tree: node 2 behind node 1 ----------------------------------------------------------- */

static struct tree_login *create_login(const struct ssh_options *o UNUSED, struct error *err UNUSED)
{
        return (struct tree_login *)&made;
}

static void free_login(struct tree_login *d UNUSED)
{
}

static int find_login(struct tree_login *d UNUSED, const struct link_target *to,
                      struct child_agent_order *ret, struct error *err UNUSED)
{
        *ret = (struct child_agent_order){ .number = (uint32_t)to->number, .argv = STRV_INIT };
        strv_push(&ret->argv, "ssh");
        ret->alias = xstrdup("");
        ret->known_hosts = xstrdup("");
        return 0;
}

static void on_heard(void *ctx UNUSED, size_t number, uint32_t silent_ms)
{
        heartbeat_heard(run.job->heartbeat, &run.job->cluster->nodes[number], silent_ms);
}

static void on_clock(void *ctx UNUSED, size_t number, int64_t offset_ns, int64_t error_ns)
{
        clock_offset_hear(&run.job->cluster->nodes[number].clock, offset_ns, error_ns, clock_ns());
}

static void plant_tree(void)
{
        static const struct tree_login_ops logins = { create_login, free_login, find_login };
        static const struct tree_ops ops = { .heard = on_heard, .clock = on_clock };
        struct cluster *c = run.job->cluster;
        struct error err;

        c->tree = transport_tree_create(c->loop, &c->ssh, &logins, c->n_nodes, &c->send_queue, &ops,
                                        NULL, &err);
        c->nodes[2].parent = &c->nodes[1];
        c->nodes[1].has_children = true;
        c->n_carried++;
}

/* --- events of this machine ------------------------------------------------------------------- */

static void happen(uint8_t what)
{
        static const int signals[] = { SIGUSR1, SIGQUIT, SIGTERM, SIGQUIT };

        switch (what & 7) {
        case 7:
                job_time_is_over(&run.job->timers.limit);
                break;
        case 6:
                if (run.fds[1] >= 0)
                        must(write(run.fds[1], "input\n", 6) == 6, "standard input");
                break;
        case 5:
                run.fds[1] = fd_close(run.fds[1]);
                break;
        default:
                job_signal_caught(&run.job->signals[0], signals[what & 3]);
        }
}

/* At the end of the program: what the agents that kept to their turns have become. */
static void check_nodes(void)
{
        for (int i = 0; i < ORDER_NODES; i++) {
                const struct node *n = &run.job->cluster->nodes[i];

                /* A restart waits for lost nodes, and these agents greet only once. */
                if (n->state == NODE_FAILED && order_agent_is_clean(i) &&
                    strcmp(n->failure->fact, "it did not come back in time") != 0) {
                        fprintf(stderr, "node %d is lost: %s\n", i, n->failure->fact);
                        abort();
                }
        }
}

/* --- the job, as launch.c runs it ------------------------------------------------------------- */

static void check_outcome(void)
{
        const struct outcome *o = job_outcome(run.job);

        must(o->exited <= (size_t)run.plan.world_size, "more ranks have ended than there are");
        for (int r = 0; !outcome_failed(o) && r < run.plan.world_size; r++)
                must(order_rank_ended_well(r), "a success without the end of each rank");
}

static void run_attempt(const struct job_launch *l)
{
        order_agents_forget_ends();
        job_launch(run.job, l);
        job_wait(run.job);
        check_outcome();
}

static enum job_step prepare(bool push)
{
        struct error err = { 0 };
        enum job_step r = push ? job_push(run.job, &run.plan, &made.manifest, &err) : JOB_DONE;

        return r != JOB_DONE ? r : job_open_endpoint(run.job, &run.plan, &err);
}

static void run_attempts(const struct job_launch *l, bool push)
{
        enum job_step r = prepare(push);

        if (r != JOB_DONE)
                return;
        run_attempt(l);
        while (job_restart(run.job, &run.plan)) {
                r = prepare(push);
                if (r == JOB_DONE)
                        run_attempt(l);
                else if (r != JOB_INTERRUPTED)
                        job_unreachable(run.job, "it cannot be prepared");
        }
        job_leave(run.job);
}

static int plan_ranks(void)
{
        struct plan_inventory inventory[ORDER_NODES];
        struct diags d = DIAGS_INIT;
        int r;

        for (int i = 0; i < ORDER_NODES; i++) {
                const struct hello *h = &job_node(run.job, (size_t)i)->hello;

                inventory[i] = (struct plan_inventory){ .known = true, .cores = (int)h->cores };
        }
        r = plan_build(&run.plan, &made.hosts, inventory, &run.options.plan, &d);
        diags_finish(&d);
        if (r == 0)
                events_emit(&run.events, (struct event){ .kind = EVENT_RUN_START,
                                                         .node = -1,
                                                         .rank = -1,
                                                         .value = run.plan.world_size,
                                                         .count = run.plan.num_nodes });
        return r;
}

static void run_job(uint8_t flags)
{
        static const struct agent_binaries none;
        char *port = (char *)"jax";
        struct job_config c = { .options = &run.options,
                                .hosts = &made.hosts,
                                .agent_binaries = &none,
                                .remote = &order_agents_transport,
                                .events = &run.events,
                                .ranks = run.ranks,
                                .run_id = "fuzz",
                                .ports = { .v = &port, .n = 1 },
                                .tell_joins = true };
        struct job_launch l = { .plan = &run.plan,
                                .env = &made.none,
                                .unset = &made.none,
                                .cwd = "/",
                                .output = { .label = "{rank} | ", .shown = made.shown },
                                .stdin_fd = flags & WITH_STDIN ? run.fds[0] : -1 };
        struct error err;

        run.job = job_create(&c, &err);
        must(run.job, "job_create");
        if (flags & WITH_TREE)
                plant_tree();
        if (job_connect(run.job) == 0 && plan_ranks() == 0)
                run_attempts(&l, flags & WITH_PUSH);
        while (job_hurried(run.job)) /* there hnlaunch ends without job_destroy() */
                uv_run(&run.job->loop, UV_RUN_ONCE);
        job_destroy(run.job);
        rank_board_destroy(run.ranks);
        plan_finish(&run.plan);
        run.plan = (struct plan){ 0 };
}

/* The output of ranks must not mix with the words of the fuzzer. */
static int silence_stdout(int to)
{
        int was = dup(STDOUT_FILENO);

        dup2(to, STDOUT_FILENO);
        close(to);
        return was;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint8_t flags = size ? *data : 0;
        int out;

        make_all();
        fflush(stdout);
        out = silence_stdout(open("/dev/null", O_WRONLY | O_CLOEXEC));
        must(pipe2(run.fds, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
        run.options = made.options;
        run.options.max_restarts = flags & WITH_RESTART ? 1 : 0;
        run.options.node_timeout_ms = 100; /* a lost node is waited for */
        run.options.on_failure = flags & GO_ON ? FAILURE_CONTINUE : run.options.on_failure;
        run.options.store_listen = (enum store_listen)(flags / LISTEN % 3);
        events_init(&run.events);
        run.ranks = rank_board_create(&run.events, &run.plan);
        order_agents_begin(data + (size > 0), size - (size > 0),
                           (struct order_hooks){ happen, check_nodes });
        run_job(flags);
        order_agents_end();
        close(run.fds[0]);
        fd_close(run.fds[1]);
        close(silence_stdout(out));
        return 0;
}
