/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store load: a closed loop of many clients against one server
 *
 * usage: store_load DIALECT ADDRESS OP CLIENTS SECONDS
 *                   [--idle N] [--shared] [--watch NAME=PID]... [--out FILE]
 *
 * DIALECT is hn, a, c, resp, echo:hn or echo:c (load_dialect.h). ADDRESS is HOST:PORT or the path
 * of a Unix socket; "-" takes it from the environment of a worker: HN_STORE for hn, MASTER_ADDR and
 * MASTER_PORT for a and c. Every client has one operation under way and a key of its own, or with
 * --shared one key for all. --idle opens that many more connections, greets and leaves them alone.
 * PID may be the name of an ancestor: of a worker, hnlaunch-agent and (with --local) hnlaunch.
 *
 * Prints one JSON object: the time until every client has its first answer, from before the first
 * connection; operations per second, percentiles of the latency, and the CPU time per
 * operation and peak memory of each watched process.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/load_dialect.h"
#include "bench/usage.h"

enum {
        ANSWER_MAX = 512,
        EVENTS = 256,
        WATCHED_MAX = 8,
        STEPS = 32, /* of the histogram, per doubling */
        BUCKETS = 48 * STEPS,
        WARM_UP_MS = 250,
        WARM_UP_MAX_MS = 30000,
};

struct client {
        int fd;
        struct buf request, fill;
        unsigned char answer[ANSWER_MAX];
        size_t got;
        int64_t since;
        bool warm; /* has had its first answer */
};

struct watched {
        const char *name;
        pid_t pid;
        struct usage before, after;
};

static struct {
        const struct load_dialect *dialect;
        const char *address;
        enum load_op op;
        unsigned n, n_idle, n_watched, n_warm;
        double seconds;
        bool shared;
        struct watched watched[WATCHED_MAX];
        FILE *out;
        int epoll;
        struct client *clients;
        int *idle;
        bool counting;
        uint64_t ops, histogram[BUCKETS];
        int64_t connect, ready, begin, end, own_cpu;
} load;

static void die(const char *what)
{
        fprintf(stderr, "store_load: %s: %s\n", what, strerror(errno));
        exit(1);
}

/* --- latencies -------------------------------------------------------------------------------- */

/* Buckets are 1/STEPS of a power of two wide: three percent. */
static size_t bucket_of(uint64_t ns)
{
        unsigned log = 63 - (unsigned)__builtin_clzll(ns | STEPS);
        size_t i = (log - 5) * (size_t)STEPS + (ns >> (log - 5));

        return MIN(i, (size_t)BUCKETS - 1);
}

static double bucket_us(size_t i)
{
        size_t log = i < 2 * STEPS ? 0 : i / STEPS - 1;

        return (double)((i - log * STEPS) << log) / 1000;
}

static double percentile(double part)
{
        uint64_t want = (uint64_t)(part * (double)load.ops), seen = 0;

        for (size_t i = 0; i < BUCKETS; i++) {
                seen += load.histogram[i];
                if (seen > want)
                        return bucket_us(i);
        }
        return 0;
}

/* --- connections ------------------------------------------------------------------------------ */

static int connect_unix(const char *path)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
                die(path);
        return fd;
}

static const struct addrinfo *resolved(const char *address)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
        static struct addrinfo *found;
        const char *colon = strrchr(address, ':');
        char host[128];

        if (found)
                return found;
        if (!colon) {
                fprintf(stderr, "store_load: %s: no HOST:PORT\n", address);
                exit(64);
        }
        snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
        if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
                fprintf(stderr, "store_load: %s: no such address\n", address);
                exit(1);
        }
        return found;
}

static int connect_tcp(const char *address)
{
        const struct addrinfo *to = resolved(address);
        int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

        if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) < 0)
                die(address);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        return fd;
}

static void greet(int fd)
{
        struct buf b = BUF_INIT;
        char answer[ANSWER_MAX];
        size_t want = load.dialect->greeting_answer;

        if (!load.dialect->greet)
                return;
        load.dialect->greet(&b);
        if (send(fd, buf_data(&b), buf_len(&b), MSG_NOSIGNAL) < 0)
                die("greeting");
        if (recv(fd, answer, want, MSG_WAITALL) != (ssize_t)want)
                die("the greeting's answer");
        buf_finish(&b);
}

static int open_connection(void)
{
        int fd = *load.address == '/' ? connect_unix(load.address) : connect_tcp(load.address);

        greet(fd);
        return fd;
}

static void open_all(void)
{
        load.epoll = epoll_create1(EPOLL_CLOEXEC);
        load.clients = calloc(load.n, sizeof(*load.clients));
        load.idle = calloc(load.n_idle + 1, sizeof(*load.idle));
        if (load.epoll < 0 || !load.clients || !load.idle)
                die("memory");
        for (unsigned i = 0; i < load.n_idle; i++)
                load.idle[i] = open_connection();
        for (unsigned i = 0; i < load.n; i++) {
                struct client *c = &load.clients[i];
                struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
                char key[64];

                snprintf(key, sizeof(key), "/bench/%s/%u", load_op_name(load.op),
                         load.shared ? 0 : i);
                load.dialect->request(&c->request, load.op, key);
                if (load.op == LOAD_GET || load.op == LOAD_WAIT)
                        load.dialect->request(&c->fill, LOAD_SET, key);
                c->fd = open_connection();
                if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
                        die("epoll_ctl");
        }
}

/* --- the loop --------------------------------------------------------------------------------- */

static void submit(struct client *c, int64_t now)
{
        const struct buf *b = buf_len(&c->fill) && !c->warm ? &c->fill : &c->request;

        c->since = now;
        c->got = 0;
        if (send(c->fd, buf_data(b), buf_len(b), MSG_NOSIGNAL) != (ssize_t)buf_len(b))
                die("send");
}

static void finished(struct client *c, int64_t now)
{
        if (load.counting && c->warm) {
                load.ops++;
                load.histogram[bucket_of((uint64_t)(now - c->since))]++;
        }
        if (!c->warm && ++load.n_warm == load.n)
                load.ready = now;
        c->warm = true;
        submit(c, now);
}

static void readable(struct client *c)
{
        ssize_t n = recv(c->fd, c->answer + c->got, sizeof(c->answer) - c->got, MSG_DONTWAIT);
        bool filling = buf_len(&c->fill) && !c->warm;

        if (n == 0 || (n < 0 && errno != EAGAIN))
                die("the server closed a connection");
        if (n < 0)
                return;
        c->got += (size_t)n;
        n = load.dialect->answer(filling ? LOAD_SET : load.op, c->answer, c->got);
        if (n < 0 || (n > 0 && (size_t)n != c->got)) {
                fprintf(stderr, "store_load: not the answer to %s\n", load_op_name(load.op));
                exit(1);
        }
        if (n > 0)
                finished(c, usage_now_ns());
}

static void turn_until(int64_t deadline)
{
        struct epoll_event events[EVENTS];
        int64_t now = usage_now_ns();

        for (; now < deadline; now = usage_now_ns()) {
                int n = epoll_wait(load.epoll, events, EVENTS,
                                   (int)((deadline - now) / 1000000) + 1);

                for (int i = 0; i < n; i++)
                        readable(events[i].data.ptr);
        }
}

/* A server that still accepts connections is not measured yet. */
static bool all_warm(void)
{
        for (unsigned i = 0; i < load.n; i++)
                if (!load.clients[i].warm)
                        return false;
        return true;
}

static void look(bool after)
{
        for (unsigned i = 0; i < load.n_watched; i++) {
                struct watched *w = &load.watched[i];

                *(after ? &w->after : &w->before) = usage_of(w->pid);
        }
        load.own_cpu = usage_of(getpid()).cpu_ns - (after ? load.own_cpu : 0);
}

static void run(void)
{
        int64_t now = usage_now_ns();

        for (unsigned i = 0; i < load.n; i++)
                submit(&load.clients[i], now);
        do
                turn_until(usage_now_ns() + WARM_UP_MS * INT64_C(1000000));
        while (!all_warm() && usage_now_ns() < now + WARM_UP_MAX_MS * INT64_C(1000000));
        if (!all_warm()) {
                fputs("store_load: not every client had an answer to its first request\n", stderr);
                exit(1);
        }
        look(false);
        load.counting = true;
        load.begin = usage_now_ns();
        turn_until(load.begin + (int64_t)(load.seconds * 1e9));
        load.end = usage_now_ns();
        look(true);
}

/* ---------------------------------------------------------------------------------------------- */

static void report(void)
{
        double seconds = (double)(load.end - load.begin) / 1e9;
        double ops = (double)MAX(load.ops, (uint64_t)1);

        fprintf(load.out,
                "{\"dialect\": \"%s\", \"op\": \"%s\", \"clients\": %u, \"idle\": %u, "
                "\"shared\": %s, \"ops\": %" PRIu64 ", \"seconds\": %.4f, "
                "\"ops_per_s\": %.1f, \"p50_us\": %.2f, \"p99_us\": %.2f, "
                "\"load_cpu_us\": %.3f, \"ready_ms\": %.2f, \"servers\": {",
                load.dialect->name, load_op_name(load.op), load.n, load.n_idle,
                load.shared ? "true" : "false", load.ops, seconds, (double)load.ops / seconds,
                percentile(0.5), percentile(0.99), (double)load.own_cpu / ops / 1000,
                (double)(load.ready - load.connect) / 1e6);
        for (unsigned i = 0; i < load.n_watched; i++) {
                const struct watched *w = &load.watched[i];

                fprintf(load.out, "%s\"%s\": {\"cpu_us\": %.3f, \"peak_kb\": %" PRId64 "}",
                        i ? ", " : "", w->name,
                        (double)(w->after.cpu_ns - w->before.cpu_ns) / ops / 1000,
                        w->after.peak_kb);
        }
        fprintf(load.out, "}}\n");
}

static _Noreturn void usage(void)
{
        fputs("usage: store_load DIALECT ADDRESS OP CLIENTS SECONDS\n"
              "                  [--idle N] [--shared] [--watch NAME=PID]... [--out FILE]\n",
              stderr);
        exit(64);
}

static void watch(char *text)
{
        char *equals = strchr(text, '=');
        struct watched *w = &load.watched[load.n_watched];

        if (!equals || load.n_watched == WATCHED_MAX)
                usage();
        *equals = '\0';
        w->name = text;
        w->pid = isdigit((unsigned char)equals[1]) ? atoi(equals + 1) : usage_ancestor(equals + 1);
        load.n_watched++;
}

static const char *own_address(void)
{
        const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
        const char *path = getenv("HN_STORE");
        static char text[256];

        if (strcmp(load.dialect->name, "hn") == 0)
                return path ? path : "";
        snprintf(text, sizeof(text), "%s:%s", host ? host : "", port ? port : "");
        return text;
}

static void take_options(char **arg)
{
        for (; *arg; arg++) {
                if (strcmp(*arg, "--shared") == 0)
                        load.shared = true;
                else if (!arg[1])
                        usage();
                else if (strcmp(*arg, "--idle") == 0)
                        load.n_idle = (unsigned)atoi(*++arg);
                else if (strcmp(*arg, "--watch") == 0)
                        watch(*++arg);
                else if (strcmp(*arg, "--out") == 0)
                        load.out = fopen(*++arg, "we");
                else
                        usage();
        }
        if (!load.out)
                die("--out");
}

int main(int argc, char **argv)
{
        struct rlimit files;

        load.out = stdout;
        if (argc < 6)
                usage();
        load.dialect = load_dialect_find(argv[1]);
        load.op = load_op_find(argv[3]);
        load.n = (unsigned)atoi(argv[4]);
        load.seconds = atof(argv[5]);
        if (!load.dialect || load.op == LOAD_OPS || !load.n || load.seconds <= 0)
                usage();
        take_options(argv + 6);
        load.address = strcmp(argv[2], "-") == 0 ? own_address() : argv[2];
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        load.connect = usage_now_ns();
        open_all();
        run();
        report();
        return fclose(load.out) == 0 ? 0 : 1;
}
