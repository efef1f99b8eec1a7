/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py-spy is searched for where users install programs: the virtual environment and PATH of the
 * process, the folder of the program, PATH of the agent. The first two are used only if the process
 * has the agent's user and no other, because the environment of a rank would choose a program
 * started with the rights of the agent. A tool writes into two pipes, which are read at each step
 * and never waited for; beyond a limit bytes are dropped. At the time limit the whole group is
 * killed, and the traced process gets SIGCONT unless it was stopped before. In a process namespace
 * a tool has a /proc of its own, as the ranks do.
 */
#include "agent/inspect/stack_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/contain/pidns.h"
#include "agent/core/proc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/printable.h"
#include "base/spawn.h"
#include "base/strv.h"
#include "wire/status_msg.h"

enum { ERRORS_MAX = 4096, ENVIRON_MAX = 4 << 20, MAPS_MAX = 16 << 20 };

/* In the order of enum stack_tool, which is the order of the attempts. */
static const char *const names[] = { "py-spy", "eu-stack", "gdb" };

const char *stack_tool_name(enum stack_tool tool)
{
        return names[tool];
}

/* --- finding ---------------------------------------------------------------------------------- */

bool stack_tool_is_python(pid_t pid)
{
        char path[64], target[512], *maps = NULL;
        ssize_t n;
        const char *base;
        bool is = false;

        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0)
                return false;
        target[n] = '\0';
        base = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
        if (!strncmp(base, "python", 6))
                return true;
        snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
        if (fd_read_file(path, MAPS_MAX, &maps, NULL) == 0)
                is = strstr(maps, "/libpython");
        free(maps);
        return is;
}

/* Returns DIR/name if there is a program; DIR ends at a colon. */
static char *try_tool_folder(const char *dir, size_t len, const char *below, const char *name)
{
        char *path = xasprintf("%.*s%s/%s", (int)len, dir, below, name);

        /* A relative folder would be one of the agent's, not of the process. */
        if (len && *path == '/' && access(path, X_OK) == 0)
                return path;
        free(path);
        return NULL;
}

/* Takes the first program of PATH; malloc'ed, NULL = there is none. */
static char *find_in_path(const char *path, const char *name)
{
        char *found = NULL;

        for (; path && *path && !found; path += *path == ':') {
                size_t len = strcspn(path, ":");

                found = try_tool_folder(path, len, "", name);
                path += len;
        }
        return found;
}

/* Looks where the process itself would find a program. */
static char *find_with_environ(pid_t pid, const char *name)
{
        char file[64], *text = NULL, *found = NULL;
        size_t len = 0;

        snprintf(file, sizeof(file), "/proc/%d/environ", (int)pid);
        if (fd_read_file(file, ENVIRON_MAX, &text, &len) < 0)
                return NULL;
        for (const char *p = text; p < text + len && !found; p += strlen(p) + 1) {
                if (!strncmp(p, "VIRTUAL_ENV=", 12) || !strncmp(p, "CONDA_PREFIX=", 13))
                        found = try_tool_folder(strchr(p, '=') + 1, strlen(strchr(p, '=') + 1),
                                                "/bin", name);
                else if (!strncmp(p, "PATH=", 5))
                        found = find_in_path(p + 5, name);
        }
        free(text);
        return found;
}

/* Looks beside the program at the start of the process: /venv/bin/python. */
static char *find_beside_program(pid_t pid, const char *name)
{
        char line[512];
        const char *slash;

        if (!proc_read(pid, "cmdline", line, sizeof(line)) || !(slash = strrchr(line, '/')))
                return NULL;
        return try_tool_folder(line, (size_t)(slash - line), "", name);
}

/* Whether the process has our user and no other: only then programs from its environment may run
 * with our rights. A rank of an agent of root may have given up root. */
static bool is_own_process(pid_t pid)
{
        char text[4096], *line;
        uint64_t uid;

        if (!proc_read(pid, "status", text, sizeof(text)) || !(line = strstr(text, "\nUid:")))
                return false;
        line += 5;
        line += strspn(line, "\t ");
        for (int i = 0; i < 4; i++) { /* real, effective, saved, of files */
                uid = strtoull(line, &line, 10);
                if (uid != geteuid())
                        return false;
        }
        return true;
}

char *stack_tool_find(enum stack_tool tool, pid_t pid)
{
        char *path = NULL;

        if (tool == STACK_TOOL_PY_SPY && is_own_process(pid)) {
                path = find_with_environ(pid, names[tool]);
                path = path ? path : find_beside_program(pid, names[tool]);
        }
        return path ? path : find_in_path(getenv("PATH"), names[tool]);
}

/* --- running ---------------------------------------------------------------------------------- */

/* The crashed thread is the first of a core file, and gdb's current thread. */
static void fill_core_argv(struct strv *argv, enum stack_tool tool, const struct stack_target *of)
{
        if (tool == STACK_TOOL_EU_STACK) {
                strv_push(argv, "-s");
                strv_push(argv, "-i");
                strv_push(argv, "-m");
                strv_push(argv, "-n");
                strv_push(argv, "48");
                strv_pushf(argv, "--core=%s", of->core);
                return;
        }
        strv_push(argv, "-nx");
        strv_push(argv, "-batch");
        strv_push(argv, "-iex");
        strv_push(argv, "set auto-load off");
        strv_push(argv, "-ex");
        strv_push(argv, "bt 48");
        strv_pushf(argv, "--core=%s", of->core);
        if (*of->program)
                strv_push(argv, of->program);
}

/* Appends the arguments of a tool for all threads, with at most 48 frames. */
static void fill_tool_argv(struct strv *argv, enum stack_tool tool, pid_t traced)
{
        switch (tool) {
        case STACK_TOOL_PY_SPY:
                strv_push(argv, "dump");
                strv_push(argv, "--nonblocking");
                strv_push(argv, "--pid");
                break;
        case STACK_TOOL_EU_STACK:
                strv_push(argv, "-s");
                strv_push(argv, "-i");
                strv_push(argv, "-m");
                strv_push(argv, "-n");
                strv_push(argv, "48");
                strv_push(argv, "-p");
                break;
        default:
                /* Files beside the traced program must not run commands with the rights of the
                 * agent: -nx keeps gdb from .gdbinit, the setting from scripts of libraries. */
                strv_push(argv, "-nx");
                strv_push(argv, "-batch");
                strv_push(argv, "-iex");
                strv_push(argv, "set auto-load off");
                strv_push(argv, "-ex");
                strv_push(argv, "thread apply all bt 48");
                strv_push(argv, "-p");
        }
        strv_pushf(argv, "%d", (int)traced);
}

/* Returns the tool's end, -1 on failure. SPAWN_NULL is -1 as well: the output is lost then. */
static int open_tool_pipe(int *ret_ours)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -1;
        fd_set_nonblock(fds[0]);
        *ret_ours = fds[0];
        return fds[1];
}

/* In the tool, before exec. */
static int enter_namespace(void *ctx UNUSED)
{
        return pidns_child();
}

bool stack_run_start(struct stack_run *r, enum stack_tool tool, const char *path,
                     const struct stack_target *of, int64_t until)
{
        CLEANUP(strv_finish) struct strv argv = STRV_INIT;
        struct spawn program = { .fds = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
        struct proc_stat before;
        /* The number of the process for the tool. */
        const pid_t number = of->pid ? proc_local(of->pid) : 0;
        struct error err;
        int out, errors, rc;

        *r = (struct stack_run){ .traced = of->pid, .out = -1, .err = -1, .until = until };
        if (of->pid && proc_read_stat(&before, of->pid))
                r->start_ticks = before.start_ticks;
        /* Without a process, as for a core file, no SIGCONT is sent. */
        r->was_stopped = !r->start_ticks || before.state == 'T';
        if (of->pid && !number) {
                buf_appends(&r->errors, "the number in the process namespace is not known");
                return false;
        }
        /* With another /proc the number would be that of another process. */
        if (of->pid && proc_is_outer())
                program.enter = enter_namespace;
        strv_push(&argv, path);
        if (of->core)
                fill_core_argv(&argv, tool, of);
        else
                fill_tool_argv(&argv, tool, number);
        out = open_tool_pipe(&r->out);
        errors = open_tool_pipe(&r->err);
        program.argv = argv.v;
        program.fds[1] = out;
        program.fds[2] = errors;
        rc = spawn_process(&r->pid, &program, NULL, &err);
        fd_close(out);
        fd_close(errors);
        if (rc < 0) {
                r->pid = 0;
                buf_appends(&r->errors, err.text);
                stack_run_finish(r);
        }
        return rc == 0;
}

/* Beyond the limit the bytes are read and dropped. */
static void read_tool_stream(int *fd, struct buf *to, size_t max)
{
        char data[4096];
        ssize_t n;

        while (*fd >= 0 && (n = read(*fd, data, sizeof(data))) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n < 0)
                        break;
                if (buf_len(to) < max)
                        buf_append(to, data, MIN((size_t)n, max - buf_len(to)));
        }
        *fd = fd_close(*fd);
}

/* A stop signal of the tool may be left over in the traced process. A process that was stopped
 * before stays so. */
static void kill_tool(struct stack_run *r)
{
        pid_t number;

        kill(-r->pid, SIGKILL);
        while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        r->pid = 0;
        number = r->was_stopped ? 0 : proc_local(r->traced);
        if (number)
                kill(number, SIGCONT);
}

/* True: the tool has ended, or was killed at its time limit. The caller takes .text and .errors. */
bool stack_run_step(struct stack_run *r)
{
        int status;

        read_tool_stream(&r->out, &r->text, INSPECT_STACK_MAX - 1);
        read_tool_stream(&r->err, &r->errors, ERRORS_MAX);
        if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
                r->pid = 0;
                read_tool_stream(&r->out, &r->text, INSPECT_STACK_MAX - 1);
                read_tool_stream(&r->err, &r->errors, ERRORS_MAX);
                return true;
        }
        if (clock_ms() < r->until)
                return false;
        kill_tool(r);
        buf_clear(&r->text);
        buf_clear(&r->errors);
        buf_appends(&r->errors, "timed out");
        return true;
}

void stack_run_finish(struct stack_run *r)
{
        if (r->pid)
                kill_tool(r);
        r->out = fd_close(r->out);
        r->err = fd_close(r->err);
        buf_finish(&r->text);
        /* .errors stays for stack_run_explain() */
}

/* The process has ended while the tool ran, or its number belongs to a new one. */
bool stack_run_is_late(const struct stack_run *r)
{
        struct proc_stat now;

        return r->traced && (!proc_read_stat(&now, r->traced) || now.state == 'Z' ||
                             now.state == 'X' || now.start_ticks != r->start_ticks);
}

void stack_run_explain(const struct stack_run *r, enum stack_tool tool, char *to, size_t size)
{
        CLEANUP(free_textp)
        char *text = xstrndup((const char *)buf_data(&r->errors), buf_len(&r->errors));
        CLEANUP(free_textp) char *line = NULL;

        for (size_t n = strlen(text); n && strchr(" \n", text[n - 1]);)
                text[--n] = '\0';
        if (strstr(text, "not permitted") || strstr(text, "ermission") || strstr(text, "ptrace")) {
                snprintf(to, size, "%s may not trace the process", names[tool]);
                return;
        }
        for (char *p = text; *p; p++) /* numbers of processes */
                if (*p >= '0' && *p <= '9')
                        *p = '#';
        line = printable_text(strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text, 100);
        snprintf(to, size, "%s failed%s%s", names[tool], *line ? ": " : "", line);
}
