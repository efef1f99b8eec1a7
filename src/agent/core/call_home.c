/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls up to WELCOME block, with deadlines. Then carry_bytes() turns a loop of poll(): each
 * side is read no further while CARRY_MAX bytes wait for the other. The agent's end is told to the
 * head (EXIT); the head's end, or its loss, closes the agent's input, which ends the agent.
 */
#include "agent/core/call_home.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/container/container.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/memory.h"
#include "call/caller.h"
#include "wire/msg.h"

enum {
        ANSWER_MS = 30000, /* for bytes of the head's greeting */
        TRIES = 5,         /* of all addresses */
        RETRY_MS = 1000,
        END_MS = 10000,      /* for the head to answer EXIT */
        CARRY_MAX = 1 << 20, /* bytes that wait for a side, above which the other is not read */
        CARRY_READ = 64 << 10,
        ADDRESSES_MAX = 1024,
        STALE_S = 600, /* no copy of this program takes so long */
};

struct call {
        struct caller head;
        int pair, signals;            /* -1 = closed */
        struct buf to_agent, to_head; /* the latter sealed */
        pid_t agent;
        bool ended; /* the agent's process */
        int status; /* ... as of waitpid() */
        bool told;  /* ... and the head was told */
        int64_t told_ms;
        bool over; /* the head has said the end, or is lost */
};

static const char *const variables[] = { "HNLAUNCH_CALL", "HNLAUNCH_CALL_SECRET",
                                         "HNLAUNCH_CALL_NAME", "HNLAUNCH_CALL_REMOVE",
                                         "HNLAUNCH_CALL_KEEP" };

/* --- connecting ------------------------------------------------------------------------------- */

/* Reads a numeric address. Returns the length, 0: the text is no address. */
static socklen_t read_address(const char *text, int port, struct sockaddr_storage *to)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *)to;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

        memset(to, 0, sizeof(*to));
        if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
                v4->sin_family = AF_INET;
                v4->sin_port = htons((uint16_t)port);
                return sizeof(*v4);
        }
        if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
                return 0;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return sizeof(*v6);
}

/* Connects to the first of the head's addresses that answers. 0, or -errno with @err, which has
 * each address's reason. */
static int connect_head(struct caller *c, const char *place, struct error *err)
{
        char copy[ADDRESSES_MAX], why[ADDRESSES_MAX], *rest = copy, *word;
        struct sockaddr_storage to;
        size_t len = 0;
        int port, r = -1;

        snprintf(copy, sizeof(copy), "%s", place);
        word = strsep(&rest, " ");
        port = atoi(word);
        why[0] = '\0';
        while (r < 0 && (word = strsep(&rest, " "))) {
                socklen_t size = read_address(word, port, &to);

                r = size ? caller_connect(c, (struct sockaddr *)&to, size) : -EINVAL;
                if (r < 0 && len + 100 < sizeof(why))
                        len += (size_t)snprintf(why + len, sizeof(why) - len, "%s%.50s: %s",
                                                len ? "; " : "", word, strerror(-r));
        }
        return r < 0 ? err_set(err, ECONNREFUSED, "port %d: %s", port, why) : 0;
}

/* Sets @err for a call that failed with @r. Returns -errno. */
static int explain_call(int r, struct error *err)
{
        switch (r) {
        case -ENOMEM:
                return err_set(err, ENOMEM, "out of memory");
        case -ETIMEDOUT:
                return err_set(err, ETIMEDOUT, "the head does not answer");
        /* Another program at the port, or a wrong secret: the handshake of Noise fails in both
         * cases. */
        case -EPROTO:
        case -EBADMSG:
                return err_set(err, EACCES, "what answers there is not the head of this job");
        default:
                return err_set(err, ECONNRESET, "the head closed the connection");
        }
}

/* Sends the name by which the head knows this node. 0, or -errno with @err. */
static int join_head(struct caller *c, const char *name, struct error *err)
{
        struct dial_join m = { .version = MSG_VERSION };
        int r;

        if (name)
                snprintf(m.name, sizeof(m.name), "%s", name);
        else if (gethostname(m.name, sizeof(m.name) - 1) < 0 || !*m.name)
                snprintf(m.name, sizeof(m.name), "unnamed");
        r = caller_join(c, &m);
        return r < 0 ? explain_call(r, err) : 0;
}

/* Waits until the head takes the node in, after calls from all nodes. 0, or -errno with @err. */
static int await_head(struct caller *c, struct error *err)
{
        struct dial_record rec;
        struct dial_end end;
        int r = caller_take(c, &rec);

        if (r == -EBADMSG)
                return err_set(err, EBADMSG, "the head sent a damaged record");
        if (r < 0)
                return explain_call(r, err);
        if (rec.type == DIAL_WELCOME) {
                buf_consume(&c->in, rec.whole);
                return 0;
        }
        return dial_end_decode(&end, &rec) < 0
                       ? err_set(err, EPROTO, "the head sent another record")
                       : err_set(err, EACCES, "%s", end.text);
}

/* Connects, greets with several tries, and joins. 0, or negative with @err. */
static int call_head(struct caller *c, const char *place, const char *secret, const char *name,
                     struct error *err)
{
        uint8_t psk[NOISE_KEY];
        int r = -1;

        dial_psk(psk, secret);
        for (int i = 0; r < 0 && i < TRIES; i++) {
                if (i)
                        /* The head may not listen yet, or its backlog is full: thousands of nodes
                         * call at once. */
                        usleep(RETRY_MS * 1000);
                r = connect_head(c, place, err);
                if (r == 0 && (r = caller_greet(c, psk, ANSWER_MS)) < 0)
                        explain_call(r, err);
                if (r < 0)
                        caller_finish(c);
        }
        sodium_memzero(psk, sizeof(psk));
        if (r == 0)
                r = join_head(c, name, err);
        return r == 0 ? await_head(c, err) : -1;
}

/* --- carrying --------------------------------------------------------------------------------- */

/* Reads up to CARRY_READ bytes of @fd to the end of @to. 1, 0 at the end or after an error. */
static int read_some(int fd, struct buf *to)
{
        char *at = buf_reserve(to, CARRY_READ);
        ssize_t n = at ? read(fd, at, CARRY_READ) : 0;

        if (n > 0)
                buf_advance(to, (size_t)n);
        return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Writes as much as @fd takes. 0, or -1: @fd is closed. */
static int write_some(int fd, struct buf *from)
{
        ssize_t n = send(fd, buf_data(from), buf_len(from), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0)
                buf_consume(from, (size_t)n);
        return n >= 0 || errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void lose_head(struct call *c)
{
        c->over = true;
        c->head.fd = fd_close(c->head.fd);
}

/* Takes whole records of the head: bytes for the agent, or the end of the call. */
static void take_head_records(struct call *c)
{
        struct dial_record rec;
        struct dial_end end;
        int r;

        while (!c->over && (r = dial_take(&c->head.stream, &c->head.in, &rec)) != 0) {
                if (r < 0) {
                        lose_head(c);
                        return;
                }
                if (rec.type == DIAL_DATA && c->pair >= 0)
                        buf_append(&c->to_agent, rec.body, rec.len);
                /* Other records are passed over, and so are bytes for an agent that has ended. */
                else if (dial_end_decode(&end, &rec) == 0)
                        c->over = true;
                buf_consume(&c->head.in, rec.whole);
        }
        /* Bytes behind the end have no reader, and would add up until the agent has ended. */
        if (c->over)
                buf_clear(&c->head.in);
}

/* Seals what the agent has written. A closed stream is the end of the agent's output. */
static void take_agent_bytes(struct call *c)
{
        struct buf plain = BUF_INIT;

        if (!read_some(c->pair, &plain))
                c->pair = fd_close(c->pair);
        if (buf_len(&plain) && !c->over)
                dial_put(&c->head.stream, DIAL_DATA, buf_data(&plain), buf_len(&plain),
                         &c->to_head);
        buf_finish(&plain);
}

/* A signalfd merges signals of one kind, so waitpid() asks for this child by number. The number of
 * a reaped agent may belong to another process. */
static void take_call_signals(struct call *c)
{
        struct signalfd_siginfo s;

        while (read(c->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
                if (c->ended)
                        continue;
                if (s.ssi_signo != SIGCHLD)
                        kill(c->agent, (int)s.ssi_signo);
                else if (waitpid(c->agent, &c->status, WNOHANG) == c->agent)
                        c->ended = true;
        }
}

/* Tells the head of the agent's end, when no byte of the agent is left. */
static void tell_end(struct call *c)
{
        char text[160];

        if (c->told || !c->ended || c->pair >= 0 || c->over)
                return;
        if (WIFSIGNALED(c->status))
                snprintf(text, sizeof(text), "the agent was killed by signal %d (%s)",
                         WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
        else
                snprintf(text, sizeof(text), "the agent ended with exit code %d",
                         WEXITSTATUS(c->status));
        dial_put(&c->head.stream, DIAL_EXIT, text, strlen(text), &c->to_head);
        c->told = true;
        c->told_ms = clock_ms();
}

/* Carries bytes between head and agent until both have ended. */
static void carry_bytes(struct call *c)
{
        /* Ends when the agent has ended, and the head has answered EXIT, is lost, or is silent for
         * END_MS. */
        while (!c->ended || (!c->over && (!c->told || clock_ms() - c->told_ms < END_MS))) {
                struct pollfd p[] = {
                        { .fd = c->signals, .events = POLLIN },
                        { .fd = c->head.fd,
                          .events = (short)((buf_len(&c->to_agent) < CARRY_MAX ? POLLIN : 0) |
                                            (buf_len(&c->to_head) ? POLLOUT : 0)) },
                        { .fd = c->pair,
                          .events = (short)((buf_len(&c->to_head) < CARRY_MAX ? POLLIN : 0) |
                                            (buf_len(&c->to_agent) ? POLLOUT : 0)) },
                };

                if (poll(p, ARRAY_SIZE(p), c->told ? END_MS : -1) < 0 && errno != EINTR)
                        return;
                if (p[0].revents)
                        take_call_signals(c);
                if (p[1].revents & (POLLIN | POLLHUP | POLLERR)) {
                        if (!read_some(c->head.fd, &c->head.in))
                                lose_head(c);
                        else
                                take_head_records(c);
                }
                if (c->head.fd >= 0 && (p[1].revents & POLLOUT) &&
                    write_some(c->head.fd, &c->to_head) < 0)
                        lose_head(c);
                if (p[2].revents & (POLLIN | POLLHUP | POLLERR))
                        take_agent_bytes(c);
                if (c->pair >= 0 && (p[2].revents & POLLOUT))
                        write_some(c->pair, &c->to_agent);
                /* What the head has sent before its end still reaches the agent. */
                if (c->over && c->pair >= 0 && !buf_len(&c->to_agent))
                        c->pair = fd_close(c->pair); /* ends the agent */
                tell_end(c);
        }
}

/* --- the agent -------------------------------------------------------------------------------- */

/* SIGCHLD may be ignored by inheritance, and then waitpid() would have no status. The agent
 * unblocks the signals itself. */
static void block_call_signals(struct call *c)
{
        static const int taken[] = { SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2 };
        sigset_t set;

        sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
                sigaddset(&set, taken[i]);
        signal(SIGCHLD, SIG_DFL);
        sigprocmask(SIG_BLOCK, &set, NULL);
        c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Starts the agent in a new process group: a manager's signal to the group of this process would
 * reach the agent twice. 0, or -errno. */
static int start_agent(struct call *c, int (*agent)(void))
{
        int fds[2], r = fd_pair(fds);

        if (r < 0)
                return r;
        c->agent = fork();
        if (c->agent < 0) {
                r = -errno;
                fd_close(fds[0]);
                fd_close(fds[1]);
                return r;
        }
        if (c->agent == 0) {
                fd_close(c->head.fd);
                fd_close(c->signals);
                fd_close(fds[0]);
                setpgid(0, 0);
                if (dup2(fds[1], STDIN_FILENO) < 0 || dup2(fds[1], STDOUT_FILENO) < 0)
                        exit(EX_OSERR);
                fd_close(fds[1]);
                /* exit(), not _exit(): the child is the agent from here on, with its own buffers of
                 * stdio. */
                exit(agent());
        }
        fd_close(fds[1]);
        c->pair = fds[0];
        return fd_set_nonblock(c->pair);
}

/* Runs the agent until the job ends. Returns an exit code. */
static int run_called_agent(struct call *c, int (*agent)(void))
{
        int off = 0, r;

        block_call_signals(c);
        r = start_agent(c, agent);
        if (r == 0)
                r = fd_set_nonblock(c->head.fd);
        if (r < 0) {
                fprintf(stderr, "hnlaunch-agent: cannot start the agent: %s\n", strerror(-r));
                return EX_OSERR;
        }
        /* From now on the agent watches the head, for longer than keepalive would. */
        setsockopt(c->head.fd, SOL_SOCKET, SO_KEEPALIVE, &off, sizeof(off));
        /* Records may have come together with WELCOME. */
        take_head_records(c);
        carry_bytes(c);
        return 0;
}

/* Returns a copy of the value of a variable, and removes the variable from the environment and from
 * /proc/PID/environ. NULL: not set. */
static char *take_variable(const char *name)
{
        char *value = getenv(name), *copy = value ? strdup(value) : NULL;

        if (value)
                sodium_memzero(value, strlen(value));
        unsetenv(name);
        return copy;
}

/* Removes the copy of this program made for the manager. */
static void remove_copy(const char *path)
{
        char own[ADDRESSES_MAX];
        ssize_t n = path ? readlink("/proc/self/exe", own, sizeof(own) - 1) : -1;

        if (n > 0) {
                own[n] = '\0';
                /* Only the file that this process executes is removed, whatever the variable
                 * names. */
                if (!strcmp(own, path))
                        unlink(path);
        }
}

/* Copies this program into @path. 0 or -1. */
static int copy_own_program(const char *path)
{
        CLEANUP(fd_closep) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        CLEANUP(fd_closep)
        int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
        CLEANUP(free_textp) char *buffer = xcalloc(1, CARRY_READ);
        ssize_t n;

        if (to < 0)
                return -1;
        while ((n = read(from, buffer, CARRY_READ)) > 0)
                if (fd_write_all(to, buffer, (size_t)n) < 0)
                        break;
        if (n == 0 && fsync(to) == 0)
                return 0;
        unlink(path);
        return -1;
}

/* Leaves this program in the user's cache for the next start. Of nodes that share the cache the one
 * that makes the new file does it; one that was killed meanwhile has left an old file. */
static void keep_in_cache(const char *name)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        CLEANUP(free_textp) char *top = NULL, *folder = NULL, *path = NULL, *fresh = NULL;
        struct stat own, st;

        if (!name || ((!cache || !*cache) && (!home || access(home, F_OK) < 0)))
                return;
        top = cache && *cache ? xstrdup(cache) : xasprintf("%s/.cache", home);
        folder = xasprintf("%s/hnlaunch", top);
        path = xasprintf("%s/%s", folder, name);
        fresh = xasprintf("%s/.new-%s", folder, name);
        if (stat("/proc/self/exe", &own) < 0 || (stat(path, &st) == 0 && st.st_size == own.st_size))
                return;
        mkdir(top, 0700);
        mkdir(folder, 0700);
        if (stat(fresh, &st) == 0 && time(NULL) - st.st_mtime > STALE_S)
                unlink(fresh);
        if (copy_own_program(fresh) == 0 && rename(fresh, path) < 0)
                unlink(fresh);
}

int call_home(int (*agent)(void))
{
        struct call c = { .head = CALLER_INIT, .pair = -1, .signals = -1 };
        struct error err = { 0 };
        char *values[ARRAY_SIZE(variables)];
        int code = EX_UNAVAILABLE, r;
        const char *name;

        if (sodium_init() < 0)
                return EX_OSERR;
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
                values[i] = take_variable(variables[i]);
        name = values[2] ? values[2] : getenv("SLURMD_NODENAME");
        if (!values[0] || !values[1]) {
                fputs("hnlaunch-agent: --call is for hnlaunch, which says where to call\n", stderr);
                return EX_USAGE;
        }
        r = call_head(&c.head, values[0], values[1], name, &err);
        if (r < 0 || !container_is_ordered()) /* a container mounts or copies the file later */
                remove_copy(values[3]);
        if (r < 0)
                fprintf(stderr, "hnlaunch-agent: cannot call the head: %s\n", err.text);
        sodium_memzero(values[1], strlen(values[1]));
        if (r == 0)
                code = run_called_agent(&c, agent);
        keep_in_cache(values[4]);
        remove_copy(values[3]);
        for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
                free(values[i]);
        fd_close(c.signals);
        caller_finish(&c.head);
        buf_finish(&c.to_agent);
        buf_finish(&c.to_head);
        return code;
}
