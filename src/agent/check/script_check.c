/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output is read in pieces, and only the first and the last line are kept. The process is a
 * subreaper while a command runs: all descendants of the command stay below this process, and are
 * killed in rounds until no child is left. SIGTERM, the agent's end of a check, does the same.
 */
#include "agent/check/script_check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/printable.h"
#include "base/spawn.h"

enum { LOOK_MS = 20, LEAVE_MS = 2000, NAME_MS = 1500, NAME_MAX_LEN = 255 };

static volatile sig_atomic_t is_ended; /* the agent wants no answer any more */

static void note_end(int signo UNUSED)
{
        is_ended = 1;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Splits the output into lines, and writes the first and the last line that are not empty to
 * @to. */
struct script_lines {
        char now[CHECK_VALUE / 2]; /* the incomplete line, cut */
        size_t len;
        struct script_end *to;
        void (*take)(void *ctx, const char *line); /* NULL = these two are enough */
        void *ctx;
};

/* The text is shown on a terminal and in JSON, so split_script_output() has dropped control
 * characters. */
static void end_script_line(struct script_lines *l)
{
        l->now[l->len] = '\0';
        if (l->len && !*l->to->first)
                memcpy(l->to->first, l->now, sizeof(l->now));
        if (l->len)
                memcpy(l->to->last, l->now, sizeof(l->now));
        if (l->len && l->take)
                l->take(l->ctx, l->now);
        l->len = 0;
}

static void split_script_output(struct script_lines *l, const char *data, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (data[i] == '\n')
                        end_script_line(l);
                else if (l->len + 1 < sizeof(l->now) && (unsigned char)data[i] >= ' ')
                        l->now[l->len++] = data[i];
}

/* Reads for @ms at most. False: the output has ended. */
static bool read_script_output(struct script_lines *l, int fd, int ms)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };
        char piece[4096];
        ssize_t n;

        if (poll(&p, 1, ms) <= 0)
                return true;
        n = read(fd, piece, sizeof(piece));
        if (n > 0)
                split_script_output(l, piece, (size_t)n);
        return n > 0;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Kills all descendants: children of a killed process become children of this process, for the next
 * round. A process hanging in a driver, or of another user, is left behind after some seconds. */
static void end_descendants(void)
{
        int64_t end_ns = clock_ns() + (int64_t)LEAVE_MS * 1000000;

        while (proc_any_child() && clock_ns() < end_ns) {
                struct pids children = PIDS_INIT;

                proc_children(proc_self(), &children);
                for (size_t i = 0; i < children.n; i++) {
                        pid_t child = proc_local(children.v[i]);

                        if (child)
                                kill(child, SIGKILL);
                }
                pids_finish(&children);
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
                poll(NULL, 0, 1);
        }
}

/* Waits for the end of the shell, not for the end of the output: a process in the background may
 * hold the pipe open. Returns also at the limit or after SIGTERM, with .late set. */
static void await_script(struct script_lines *l, pid_t pid, int fd, int64_t end_ns)
{
        struct script_end *to = l->to;
        bool has_output = true;

        while (!is_ended && clock_ns() < end_ns) {
                if (waitpid(pid, &to->status, WNOHANG) == pid) {
                        /* Output of processes in the background does not count. */
                        for (int i = 0; has_output && fd_unread(fd) > 0 && i < 1024; i++)
                                has_output = read_script_output(l, fd, 0);
                        end_script_line(l);
                        return;
                }
                if (has_output)
                        has_output = read_script_output(l, fd, LOOK_MS);
                else
                        poll(NULL, 0, LOOK_MS);
        }
        /* The rest of the output, without a newline, is a line too. */
        to->late = true;
        end_script_line(l);
}

/* As script_run(); @take gets each line of the output. */
static bool run_script_lines(struct script_end *ret, const char *command, const char *cwd,
                             int limit_ms, void (*take)(void *ctx, const char *line), void *ctx)
{
        char *const argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)command, NULL };
        struct sigaction on_end = { .sa_handler = note_end };
        struct spawn s = { .argv = argv, .cwd = access(cwd, X_OK) == 0 ? cwd : "/" };
        struct script_lines lines = { .to = ret, .take = take, .ctx = ctx };
        int fds[2];
        pid_t pid;

        *ret = (struct script_end){ 0 };
        if (pipe2(fds, O_CLOEXEC) < 0)
                return false;
        /* A process outside of the session of the shell, for example a daemon, still becomes a
         * child of this process. */
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        sigaction(SIGTERM, &on_end, NULL);
        s.fds[0] = SPAWN_NULL;
        s.fds[1] = s.fds[2] = fds[1];
        if (spawn_process(&pid, &s, NULL, NULL) < 0)
                pid = 0;
        fd_close(fds[1]);
        if (pid)
                await_script(&lines, pid, fds[0], clock_ns() + (int64_t)limit_ms * 1000000);
        fd_close(fds[0]);
        end_descendants();
        /* end_descendants() is done: no process of the command survives. The answer has no reader
         * any more. */
        if (is_ended)
                _exit(0);
        return pid;
}

bool script_run(struct script_end *ret, const char *command, const char *cwd, int limit_ms)
{
        return run_script_lines(ret, command, cwd, limit_ms, NULL, NULL);
}

/* --- facts ------------------------------------------------------------------------------------ */

void script_check(struct checked *m, const struct check_order *o)
{
        struct script_end end;
        char value[CHECK_VALUE];
        const char *sign;

        if (!*o->run)
                return;
        if (!script_run(&end, o->run, o->run_cwd, CHECK_RUN_MS)) {
                checked_add(m, "run", "", "no process can be started");
                return;
        }
        sign = *end.last ? ": " : "";
        if (end.late)
                snprintf(value, sizeof(value), "no end after %d s%s%s", CHECK_RUN_MS / 1000, sign,
                         end.last);
        else if (WIFSIGNALED(end.status))
                snprintf(value, sizeof(value), "signal %d%s%s", WTERMSIG(end.status), sign,
                         end.last);
        else if (WEXITSTATUS(end.status))
                snprintf(value, sizeof(value), "exit %d%s%s", WEXITSTATUS(end.status), sign,
                         end.last);
        else
                snprintf(value, sizeof(value), "exit 0");
        checked_add(m, "run", value, "");
}

/* getent(1) prints numeric addresses, so the text is enough. */
static bool is_loopback_text(const char *address)
{
        return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* The name goes into a command of the shell: only letters, digits, dots, dashes and underscores
 * pass. */
static bool is_plain_name(const char *name)
{
        return *name && *name != '-' &&
               !name[strspn(name, "0123456789"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.-_")];
}

/* The lookup runs in a process with a limit of time, because getaddrinfo(3) cannot be ended. */
void hostname_check(struct checked *m)
{
        char name[NAME_MAX_LEN + 1] = "", command[NAME_MAX_LEN + 32];
        struct script_end end;

        if (gethostname(name, sizeof(name) - 1) < 0 || !is_plain_name(name)) {
                checked_add(m, "hostname", "", "the node has no usable name");
                return;
        }
        snprintf(command, sizeof(command), "getent ahosts %s", name);
        if (!script_run(&end, command, "/", NAME_MS) || end.late)
                checked_add(m, "hostname", "", "the name could not be looked up in time");
        else if (!WIFEXITED(end.status) ||
                 (WEXITSTATUS(end.status) && WEXITSTATUS(end.status) != 2))
                checked_add(m, "hostname", "", "getent(1) cannot be used");
        else {
                end.first[strcspn(end.first, " \t")] = '\0';
                checked_add(m, "hostname",
                            WEXITSTATUS(end.status)       ? "none"
                            : is_loopback_text(end.first) ? end.first
                                                          : "a network address",
                            "");
        }
}

/* --- names of other nodes --------------------------------------------------------------------- */

static const char no_getent[] = "getent(1) cannot be used",
                  no_answer[] = "the name could not be looked up in time",
                  no_name[] = "the name has characters that are not looked up";

/* The answers of getent(1) to the names of an order, each name in turn. */
struct name_answers {
        struct checked *to;
        uint32_t first; /* of the facts of the names */
        uint32_t at;    /* the name of the next lines, NAMES_NONE = no name yet */
};

enum { NAMES_NONE = UINT32_MAX };

/* Appends an address to the addresses of a name, each once. An address without room does not
 * count. */
static void add_name_address(struct check_fact *k, const char *address)
{
        size_t len = strlen(k->value), own = strlen(address);

        for (const char *at = k->value; (at = strstr(at, address)); at += own)
                if (at[own] == ' ' || !at[own])
                        return;
        if (len + own + 1 < sizeof(k->value))
                snprintf(k->value + len, sizeof(k->value) - len, "%s%s", len ? " " : "", address);
}

/* Lines are "= 3" before the answers for the fourth name, "10.0.0.7 STREAM node007", and "! 2"
 * after a name without an address. */
static void parse_name_line(void *ctx, const char *line)
{
        struct name_answers *a = ctx;
        char address[64];
        struct check_fact *k;

        if (*line == '=')
                a->at = (uint32_t)strtoul(line + 1, NULL, 10);
        if (a->at >= a->to->n_facts - a->first)
                return;
        k = &a->to->facts[a->first + a->at];
        if (*line == '=') {
                /* The lookup has begun; the next line has the result. */
                snprintf(k->problem, sizeof(k->problem), "%s", no_answer);
                return;
        }
        *k->problem = '\0';
        if (*line == '!' && strcmp(line, "! 2") != 0)
                snprintf(k->problem, sizeof(k->problem), "%s", no_getent);
        else if (*line == '!')
                snprintf(k->value, sizeof(k->value), "none");
        else if (sscanf(line, "%63s", address) == 1)
                add_name_address(k, address);
}

/* A single shell looks up all names: a process for each name, and a limit of time for all. */
void names_check(struct checked *m, const struct check_order *o)
{
        struct name_answers a = { .to = m, .first = m->n_facts, .at = NAMES_NONE };
        struct buf command = BUF_INIT;
        struct script_end end;

        for (uint32_t i = 0; i < o->names.n; i++) {
                bool plain = is_plain_name(o->names.v[i].host);

                checked_add(m, o->names.v[i].fact, "", plain ? no_answer : no_name);
                if (plain)
                        buf_printf(&command,
                                   "echo = %u; getent ahosts %s 2>/dev/null || echo \"! $?\"\n", i,
                                   o->names.v[i].host);
        }
        buf_append(&command, "", 1);
        if (o->names.n)
                run_script_lines(&end, (const char *)buf_data(&command), "/", NAME_MS,
                                 parse_name_line, &a);
        buf_finish(&command);
}
