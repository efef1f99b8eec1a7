/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of an ssh launch: bare libssh sessions, nothing else
 *
 *   ssh_probe [--threads T] [--identity FILE] [--port N] host...
 *
 * Connects to all hosts at once, logs in with one key, runs "exec /bin/true" and waits for its
 * end. T threads (default 1) share the hosts; every session is private, none checks a host key.
 * Prints the wall seconds; exit code 1 when a host failed.
 */
#include <fcntl.h>
#include <getopt.h>
#include <libssh/libssh.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum stage { CONNECT, AUTH, OPEN, EXEC, WAIT, GOOD, BAD };

struct probe {
        const char *host;
        ssh_session session;
        ssh_channel channel;
        enum stage stage;
        int fd;
};

struct share {
        pthread_t thread;
        struct probe *v;
        size_t n;
};

static ssh_key key;
static const char *port = "22";

static int dial(const char *host)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *a;
        int fd = -1, on = 1;

        if (getaddrinfo(host, port, &hints, &a) != 0)
                return -1;
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0) {
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                (void)!connect(fd, a->ai_addr, a->ai_addrlen);
        }
        freeaddrinfo(a);
        return fd;
}

static void begin(struct probe *p)
{
        bool no = false;

        p->fd = dial(p->host);
        p->session = ssh_new();
        if (p->fd < 0 || !p->session) {
                p->stage = BAD;
                return;
        }
        ssh_options_set(p->session, SSH_OPTIONS_PROCESS_CONFIG, &no);
        ssh_options_set(p->session, SSH_OPTIONS_HOST, p->host);
        ssh_options_set(p->session, SSH_OPTIONS_FD, &p->fd);
        ssh_options_set(p->session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
        ssh_options_set(p->session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
        ssh_options_set(p->session, SSH_OPTIONS_KEY_EXCHANGE, "curve25519-sha256");
        ssh_options_set(p->session, SSH_OPTIONS_CIPHERS_C_S, "aes128-gcm@openssh.com");
        ssh_options_set(p->session, SSH_OPTIONS_CIPHERS_S_C, "aes128-gcm@openssh.com");
        ssh_set_blocking(p->session, 0);
}

/* The next answer of the stage: SSH_OK, SSH_AGAIN or an error. */
static int advance(struct probe *p)
{
        int r;

        switch (p->stage) {
        case CONNECT:
                return ssh_connect(p->session);
        case AUTH:
                return ssh_userauth_publickey(p->session, NULL, key);
        case OPEN:
                if (!p->channel)
                        p->channel = ssh_channel_new(p->session);
                return ssh_channel_open_session(p->channel);
        case EXEC:
                return ssh_channel_request_exec(p->channel, "exec /bin/true");
        default:
                r = ssh_channel_poll(p->channel, 0);
                return r == SSH_EOF ? SSH_OK : r < 0 ? SSH_ERROR : SSH_AGAIN;
        }
}

static void step(struct probe *p)
{
        int on = 1;

        while (p->stage < GOOD) {
                int r = advance(p);

                if (r == SSH_AGAIN || r == SSH_AUTH_AGAIN)
                        break;
                p->stage = r == SSH_OK ? p->stage + 1 : BAD;
                fcntl(p->fd, F_SETFL, O_NONBLOCK);
        }
        setsockopt(p->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static void *run_share(void *arg)
{
        struct share *s = arg;
        struct pollfd *fds = calloc(s->n, sizeof(*fds));
        size_t left = s->n;

        for (size_t i = 0; i < s->n; i++) {
                begin(&s->v[i]);
                fds[i].fd = s->v[i].fd;
                fds[i].events = POLLIN | POLLOUT;
        }
        while (left) {
                left = 0;
                poll(fds, s->n, 1000);
                for (size_t i = 0; i < s->n; i++) {
                        struct probe *p = &s->v[i];

                        if (p->stage < GOOD && fds[i].revents)
                                step(p);
                        fds[i].events = POLLIN;
                        if (p->stage >= GOOD)
                                fds[i].fd = -1;
                        else if (ssh_get_poll_flags(p->session) & SSH_WRITE_PENDING)
                                fds[i].events |= POLLOUT;
                        left += p->stage < GOOD;
                }
        }
        free(fds);
        return NULL;
}

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int report(const struct probe *v, size_t n, double seconds)
{
        size_t bad = 0;

        for (size_t i = 0; i < n; i++)
                if (v[i].stage != GOOD) {
                        fprintf(stderr, "ssh_probe: %s: %s\n", v[i].host,
                                v[i].session ? ssh_get_error(v[i].session) : "no session");
                        bad++;
                }
        printf("%.4f\n", seconds);
        return bad > 0;
}

int main(int argc, char **argv)
{
        static const struct option options[] = { { "threads", required_argument, NULL, 't' },
                                                 { "identity", required_argument, NULL, 'i' },
                                                 { "port", required_argument, NULL, 'p' },
                                                 { NULL, 0, NULL, 0 } };
        size_t threads = 1, n;
        const char *identity = NULL;
        struct probe *v;
        struct share *shares;
        double start;
        int c, r;

        while ((c = getopt_long(argc, argv, "+t:i:p:", options, NULL)) != -1)
                if (c == 't')
                        threads = strtoul(optarg, NULL, 10);
                else if (c == 'i')
                        identity = optarg;
                else if (c == 'p')
                        port = optarg;
                else
                        return 2;
        n = (size_t)(argc - optind);
        if (!n || !threads || !identity) {
                fprintf(stderr,
                        "usage: ssh_probe --identity FILE [--threads T] [--port N] host...\n");
                return 2;
        }
        start = now();
        if (ssh_pki_import_privkey_file(identity, NULL, NULL, NULL, &key) != SSH_OK) {
                fprintf(stderr, "ssh_probe: cannot read %s\n", identity);
                return 2;
        }
        v = calloc(n, sizeof(*v));
        shares = calloc(threads, sizeof(*shares));
        for (size_t i = 0; i < n; i++)
                v[i].host = argv[optind + (int)i];
        for (size_t t = 0; t < threads; t++) {
                size_t from = n * t / threads, to = n * (t + 1) / threads;

                shares[t].v = v + from;
                shares[t].n = to - from;
                pthread_create(&shares[t].thread, NULL, run_share, &shares[t]);
        }
        for (size_t t = 0; t < threads; t++)
                pthread_join(shares[t].thread, NULL);
        r = report(v, n, now() - start);
        for (size_t i = 0; i < n; i++) {
                ssh_free(v[i].session);
                if (v[i].fd >= 0)
                        close(v[i].fd);
        }
        ssh_key_free(key);
        free(shares);
        free(v);
        return r;
}
