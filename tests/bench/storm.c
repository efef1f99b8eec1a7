/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: storm nccl|poll|last|count RANKS [RANKS PER NODE]
 *
 * Runs the pattern through hnlaunch's own parts and then its traffic through a bare loop (storm.h).
 * Prints one JSON object.
 */
#include "bench/storm.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"

enum { SECONDS_MAX = 300, RANKS_MAX = 1 << 17, SPARE_FDS = 64 };

static const char *const names[STORM_PATTERNS] = { "nccl", "poll", "last", "count" };

static _Noreturn void die(const char *what)
{
        perror(what);
        exit(1);
}

int storm_accept(int listener)
{
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
                die("storm: accept");
        return fd;
}

static int listen_at(const char *name, int backlog)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "%s", name);
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, backlog) < 0)
                die("storm: listen");
        return fd;
}

/* In the new process: it ends with the first one, and in any case. */
static pid_t fork_bounded(void)
{
        pid_t pid = fork();

        if (pid < 0)
                die("storm: fork");
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                alarm(SECONDS_MAX);
        }
        return pid;
}

static void run_pair(struct storm *s, bool (*head)(struct storm *, int),
                     bool (*agents)(struct storm *, const char *))
{
        char name[64];
        int listener, status, failed = 0;
        pid_t pids[2];

        snprintf(name, sizeof(name), "hnlaunch-storm-%d-%s", (int)getpid(),
                 head == storm_head ? "real" : "floor");
        listener = listen_at(name, (int)s->n_nodes);
        pids[0] = fork_bounded();
        if (pids[0] == 0)
                _exit(head(s, listener) ? 0 : 1);
        pids[1] = fork_bounded();
        if (pids[1] == 0)
                _exit(agents(s, name) ? 0 : 1);
        close(listener);
        for (int i = 0; i < 2; i++) {
                pid_t ended = wait(&status);

                if (status == 0)
                        continue;
                failed++;
                kill(ended == pids[0] ? pids[1] : pids[0], SIGKILL);
        }
        if (failed) {
                fputs("storm: it did not come to an end\n", stderr);
                exit(1);
        }
}

static void report(const char *name, const struct storm_result *r, uint64_t up, uint64_t down,
                   const char *end)
{
        printf(" \"%s\": {\"wall_ms\": %.3f, \"head_ms\": %.3f, \"agents_ms\": %.3f, "
               "\"head_kb\": %" PRId64 ", \"agents_kb\": %" PRId64 ", \"messages_up\": %" PRIu64
               ", \"messages_down\": %" PRIu64 ", \"bytes_up\": %" PRIu64
               ", \"bytes_down\": %" PRIu64 "}%s\n",
               name, (double)r->wall_ns / 1e6, (double)r->head_ns / 1e6, (double)r->agents_ns / 1e6,
               r->head_kb, r->agents_kb, r->up, r->down, up, down, end);
}

static void report_all(const struct storm *s)
{
        uint64_t up = 0, down = 0, writes = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++) {
                up += s->traffic[i].written;
                down += s->traffic[i].read;
                writes += s->traffic[i].writes;
        }
        printf("{\"pattern\": \"%s\", \"ranks\": %u, \"nodes\": %u, \"writes_up\": %" PRIu64 ",\n",
               names[s->pattern], s->n_ranks, s->n_nodes, writes);
        report("real", &s->real, up, down, ",");
        report("floor", &s->floor, up, down, "}");
}

static struct storm *shared(enum storm_pattern pattern, uint32_t n_ranks, uint32_t per_node)
{
        uint32_t n_nodes = (n_ranks + per_node - 1) / per_node;
        struct storm *s = mmap(NULL, sizeof(*s) + n_nodes * sizeof(s->traffic[0]),
                               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (s == MAP_FAILED)
                die("storm: memory");
        s->pattern = pattern;
        s->n_ranks = n_ranks;
        s->per_node = per_node;
        s->n_nodes = n_nodes;
        return s;
}

static void need_files(uint32_t n)
{
        struct rlimit files;

        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_max >= n + SPARE_FDS)
                return;
        fprintf(stderr, "storm: %u nodes need more descriptors than %ju\n", n,
                (uintmax_t)files.rlim_max);
        exit(1);
}

int main(int argc, char **argv)
{
        int pattern = 0, n_ranks = argc > 2 ? atoi(argv[2]) : 0;
        int per_node = argc > 3 ? atoi(argv[3]) : 8;
        struct storm *s;

        while (argc > 1 && pattern < STORM_PATTERNS && strcmp(names[pattern], argv[1]) != 0)
                pattern++;
        if (argc < 3 || pattern == STORM_PATTERNS || n_ranks < 1 || n_ranks > RANKS_MAX ||
            per_node < 1) {
                fputs("usage: storm nccl|poll|last|count RANKS [RANKS PER NODE]\n", stderr);
                return 64;
        }
        s = shared((enum storm_pattern)pattern, (uint32_t)n_ranks, (uint32_t)per_node);
        need_files(s->n_nodes);
        run_pair(s, storm_head, storm_agents);
        run_pair(s, floor_head, floor_agents);
        report_all(s);
        return 0;
}
