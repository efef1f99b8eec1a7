/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel spreads connections over the processes listening at the address, by a hash of the
 * ports. A stopped process accepts none, so after a silent connection another is tried, with a
 * longer wait each time.
 *
 * NCCL 2.28.7 and newer answers in JSON. A long answer is asked for once more as text, with the
 * differing ranks only. Older releases answer in text alone, and releases before 2.27.3 are not
 * asked at all: a question may crash the process while a communicator is being made (release notes
 * of 2.27.3).
 */
#include "agent/inspect/ras_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/nccl/nccl_version.h"
#include "agent/rank/rank_status.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/printable.h"

enum {
        GAP_MS = 2000,    /* between the answers */
        GREETING_MS = 80, /* of the first connection; the k-th waits k times as long */
        ANSWER_MS = 5000,
        TRIES = 8,
        GREETING_MAX = 512,
        ENVIRON_MAX = 4 << 20,
        MAPS_MAX = 16 << 20,
        TEXT_IS_SAFE = 22703, /* first NCCL safe to ask at any time */
};

/* --- the ranks -------------------------------------------------------------------------------- */

/* Finds the value of a variable in a process; malloc'ed, NULL = not set. */
static char *find_rank_variable(pid_t pid, const char *name)
{
        size_t len = 0, n = strlen(name);
        char file[64], *text = NULL, *found = NULL;

        snprintf(file, sizeof(file), "/proc/%d/environ", (int)pid);
        if (fd_read_file(file, ENVIRON_MAX, &text, &len) < 0)
                return NULL;
        for (const char *p = text; p < text + len && !found; p += strlen(p) + 1)
                if (!strncmp(p, name, n) && p[n] == '=')
                        found = xstrdup(p + n + 1);
        free(text);
        return found;
}

/* The path is read as the agent sees it; the number usually stands in the name of the file. */
static uint32_t find_version_of(pid_t pid)
{
        char file[64], *maps = NULL, path[4096];
        uint32_t version = 0;

        snprintf(file, sizeof(file), "/proc/%d/maps", (int)pid);
        if (fd_read_file(file, MAPS_MAX, &maps, NULL) == 0 &&
            nccl_version_find_path(maps, path, sizeof(path)))
                version = nccl_version_of_file(path);
        free(maps);
        return version;
}

/* Returns the version of NCCL in the first rank with a known version; 0 = not known. */
static uint32_t find_version(const struct inspector_rank *ranks, size_t n)
{
        struct rank_status_scan scan;
        uint32_t version = 0;

        rank_status_scan(&scan);
        for (size_t i = 0; i < n && !version; i++) {
                size_t k = 0;
                const struct proc_stat *v =
                        ranks[i].pid ? rank_status_session(&scan, ranks[i].pid, &k) : NULL;

                for (size_t j = 0; j < k && !version; j++)
                        version = find_version_of(v[j].pid);
        }
        rank_status_scan_finish(&scan);
        return version;
}

/* --- the connection --------------------------------------------------------------------------- */

/* Waits until the socket is ready for @events. */
static bool wait_for_socket(int fd, short events, int64_t until)
{
        struct pollfd p = { .fd = fd, .events = events };
        int64_t left = until - clock_ms();

        return left > 0 && poll(&p, 1, (int)left) == 1;
}

/* Returns a socket, or -errno. */
static int connect_ras(uint16_t port, int64_t until)
{
        struct sockaddr_in addr = { .sin_family = AF_INET,
                                    .sin_port = htons(port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), code = 0;
        socklen_t len = sizeof(code);

        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
                code = errno;
                if (code == EINPROGRESS) {
                        code = ETIMEDOUT;
                        if (wait_for_socket(fd, POLLOUT, until))
                                getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len);
                }
        }
        if (!code)
                return fd;
        fd_close(fd);
        return -code;
}

/* Few bytes: the buffer of a new connection has room. */
static bool send_to_ras(int fd, const char *text)
{
        return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Reads until there are @lines (0 = to the end of the connection), more than @max bytes, or the
 * time is over. False: too late, or the connection ended early. */
static bool receive_ras(int fd, struct buf *to, size_t lines, size_t max, int64_t until)
{
        char data[4096];
        ssize_t n;

        for (size_t seen = 0;;) {
                if (!wait_for_socket(fd, POLLIN, until))
                        return false;
                n = recv(fd, data, sizeof(data), 0);
                if (n <= 0)
                        return n == 0 && !lines;
                buf_append(to, data, (size_t)n);
                for (ssize_t i = 0; i < n; i++)
                        seen += data[i] == '\n';
                if ((lines && seen >= lines) || buf_len(to) > max)
                        return true;
        }
}

/* --- a question ------------------------------------------------------------------------------- */

struct ras_question {
        uint16_t port;
        const struct inspector_rank *ranks;
        size_t n;
        bool is_text;    /* not in JSON */
        struct buf text; /* the answer */
        char problem[200];
};

/* Opens a connection and reads the answers of RAS to the first commands. Returns the connection; -1
 * with a problem, or without: nothing listens. */
static int greet_ras(struct ras_question *q, struct buf *ret)
{
        for (int i = 1; i <= TRIES; i++) {
                int64_t until = clock_ms() + (int64_t)i * GREETING_MS;
                int fd = connect_ras(q->port, until);

                if (fd < 0)
                        return -1;
                buf_clear(ret);
                if (send_to_ras(fd, "CLIENT PROTOCOL 2\nTIMEOUT 2\nSET FORMAT json\n") &&
                    receive_ras(fd, ret, 3, GREETING_MAX, until))
                        return fd;
                fd_close(fd);
        }
        snprintf(q->problem, sizeof(q->problem), "no answer, although a process listens");
        return -1;
}

/* Judges the greeting. False: there is a problem. */
static bool judge_greeting(struct ras_question *q, const struct buf *greeting)
{
        CLEANUP(free_textp)
        char *text = xstrndup((const char *)buf_data(greeting), buf_len(greeting));
        const char *last = strstr(text, "\nOK\n");
        bool is_old = !last || strncmp(last + 4, "OK\n", 3) != 0;
        uint32_t version;

        if (strncmp(text, "SERVER PROTOCOL ", 16) != 0 || !last) {
                snprintf(q->problem, sizeof(q->problem), "another program listens at its address");
                return false;
        }
        /* Older releases do not know SET FORMAT, and do not answer with OK. */
        q->is_text |= is_old;
        version = is_old ? find_version(q->ranks, q->n) : 0;
        if (!is_old || version >= TEXT_IS_SAFE)
                return true;
        snprintf(q->problem, sizeof(q->problem),
                 "not asked, because NCCL before 2.27.3 may crash then (here: %u.%u.%u)",
                 version / 10000, version / 100 % 100, version % 100);
        if (!version)
                snprintf(q->problem, sizeof(q->problem),
                         "not asked, because NCCL before 2.27.3 may crash then, and its version is "
                         "not known");
        return false;
}

/* Asks once. True: .text is the whole answer. */
static bool ask_ras(struct ras_question *q)
{
        CLEANUP(buf_finish) struct buf greeting = BUF_INIT;
        int64_t until = clock_ms() + ANSWER_MS;
        CLEANUP(fd_closep) int fd = greet_ras(q, &greeting);

        buf_clear(&q->text);
        if (fd < 0 || !judge_greeting(q, &greeting))
                return false;
        if (!send_to_ras(fd, q->is_text ? "SET FORMAT text\nSTATUS\n" : "STATUS\n") ||
            !receive_ras(fd, &q->text, 0, RAS_TEXT_MAX, until)) {
                snprintf(q->problem, sizeof(q->problem), "no complete answer within %d s",
                         ANSWER_MS / 1000);
                return false;
        }
        if (buf_len(&q->text) <= RAS_TEXT_MAX)
                return true;
        if (q->is_text)
                snprintf(q->problem, sizeof(q->problem), "the answer is longer than %d KiB",
                         RAS_TEXT_MAX >> 10);
        return false;
}

/* Fills the answer of a question; a long answer is asked for once more as text. */
static void answer_ras(struct ras_question *q, struct ras_reply *m)
{
        bool good = ask_ras(q);

        if (!good && !q->is_text && buf_len(&q->text) > RAS_TEXT_MAX) {
                q->is_text = true;
                good = ask_ras(q);
        }
        memcpy(m->problem, q->problem, sizeof(m->problem));
        /* A NUL would end the text early, and is no part of an answer. */
        m->text = good ? buf_steal(&q->text) : NULL;
}

/* Reads the port of 127.0.0.1 from the variable of the ranks. False: there is none. */
static bool find_ras_port(const struct inspector_rank *ranks, size_t n, struct ras_question *q)
{
        CLEANUP(free_textp) char *addr = NULL, *shown = NULL;
        const char *colon;
        long port;

        for (size_t i = 0; i < n && !addr; i++)
                addr = ranks[i].pid ? find_rank_variable(ranks[i].pid, "NCCL_RAS_ADDR") : NULL;
        if (!addr)
                return false;
        colon = strrchr(addr, ':');
        port = colon ? strtol(colon + 1, NULL, 10) : 0;
        q->port = (uint16_t)port;
        if (port > 0 && port <= UINT16_MAX &&
            (!strncmp(addr, "127.0.0.1:", 10) || !strncmp(addr, "localhost:", 10)))
                return true;
        shown = printable_text(addr, 80);
        snprintf(q->problem, sizeof(q->problem), "NCCL_RAS_ADDR is %s, not a port of 127.0.0.1",
                 shown);
        return false;
}

static void send_ras(int to, struct ras_reply *m)
{
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        ras_reply_encode(&b, m);
        fd_write_all(to, buf_data(&b), buf_len(&b));
        ras_reply_finish(m);
}

void ras_client_run(const struct inspect_order *o, const struct inspector_rank *ranks, size_t n,
                    int to)
{
        struct ras_question q = { .ranks = ranks, .n = n, .text = BUF_INIT };
        bool good = find_ras_port(ranks, n, &q);

        signal(SIGTERM, SIG_DFL); /* there is no tool to kill */
        for (uint8_t look = 0; look <= 1; look++) {
                struct ras_reply m = { .number = o->number, .look = look };
                int64_t next = clock_ms() + GAP_MS;

                if (good)
                        answer_ras(&q, &m);
                else
                        memcpy(m.problem, q.problem, sizeof(m.problem));
                /* Without a first answer there is no second question. */
                good = m.text;
                send_ras(to, &m);
                if (!good)
                        break;
                for (; !look && clock_ms() < next;)
                        poll(NULL, 0, (int)MAX(next - clock_ms(), INT64_C(1)));
        }
        buf_finish(&q.text);
}
