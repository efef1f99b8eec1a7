/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child process inherits nothing but a pipe: another open end of the link to the head would
 * keep the link open. It writes the whole answer at once and ends; no caller waits for it, and the
 * timer finds the answer. The end of the attempt kills it as any other child.
 */
#include "agent/nccl/nccl_version.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/fd.h"
#include "base/memory.h"
#include "wire/msg.h"

enum {
        LOOKS = 10, /* the last after 17 minutes */
        FIRST_LOOK_MS = 2000,
        ANSWER_MS = 500, /* between looks at the pipe */
        PROCESSES_MAX = 16,
        MAPS_MAX = 16 << 20,
        SEARCHED = 8 << 20, /* bytes of a library */
        PIECE = 64 << 10,
};

static const char text_before[] = "NCCL version ";

uint32_t nccl_version_parse(const char *text)
{
        unsigned part[3];
        int n = 0;

        if (sscanf(text, "%2u.%3u.%3u%n", &part[0], &part[1], &part[2], &n) != 3 || !n ||
            part[1] > 99 || part[2] > 99)
                return 0;
        return part[0] * 10000 + part[1] * 100 + part[2];
}

bool nccl_version_find_path(const char *maps, char *to, size_t size)
{
        static const char name[] = "/libnccl.so";
        const char *at, *line, *path;
        size_t len;

        for (at = maps; (at = strstr(at, name)); at += sizeof(name) - 1) {
                if (at[sizeof(name) - 1] != '\n' && at[sizeof(name) - 1] != '.')
                        continue; /* libnccl.sock */
                for (line = at; line > maps && line[-1] != '\n';)
                        line--;
                path = memchr(line, '/', (size_t)(at - line) + 1);
                len = strcspn(path, "\n");
                if (len >= size)
                        return false;
                memcpy(to, path, len);
                to[len] = '\0';
                return true;
        }
        return false;
}

/* Pieces overlap by as much as a version may be long. */
static uint32_t search_file(int fd)
{
        enum { OVERLAP = 64 };
        char *piece = xcalloc(PIECE + 1, 1), *found;
        uint32_t version = 0;
        ssize_t got;

        for (off_t at = 0; at < SEARCHED && !version; at += PIECE - OVERLAP) {
                got = pread(fd, piece, PIECE, at);
                if (got <= OVERLAP)
                        break;
                piece[got] = '\0';
                found = piece;
                while (!version && (found = memmem(found, (size_t)(piece + got - found),
                                                   text_before, sizeof(text_before) - 1))) {
                        found += sizeof(text_before) - 1;
                        version = nccl_version_parse(found);
                }
        }
        free(piece);
        return version;
}

uint32_t nccl_version_of_file(const char *path)
{
        const char *name = strstr(path, "/libnccl.so.");
        uint32_t version = name ? nccl_version_parse(name + strlen("/libnccl.so.")) : 0;
        int fd;

        if (version)
                return version;
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
                version = search_file(fd);
        fd_close(fd);
        return version;
}

/* --- in the child process --------------------------------------------------------------------- */

struct found_library {
        uint32_t version;
        char path[256];
};

/* A rank may see other files, in a container. */
static bool look_at_process(pid_t pid, struct found_library *to)
{
        char *file = xasprintf("/proc/%d/maps", (int)pid), *maps = NULL, *path;
        bool found = fd_read_file(file, MAPS_MAX, &maps, NULL) == 0 &&
                     nccl_version_find_path(maps, to->path, sizeof(to->path));

        free(file);
        free(maps);
        if (!found)
                return false;
        path = xasprintf("/proc/%d/root%s", (int)pid, to->path);
        to->version = nccl_version_of_file(path);
        free(path);
        return true;
}

static void look_and_answer(pid_t pid, int to)
{
        struct found_library found = { 0 };
        struct pids pids = PIDS_INIT;

        /* Numbers 0 to 2 may be the link. Before Linux 5.9 there is no answer. */
        if ((to != 3 && dup2(to, 3) < 0) || syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
                return;
        for (int fd = 0; fd < 3; fd++)
                close(fd);
        if (!look_at_process(pid, &found)) {
                proc_children_of_threads(pid, &pids);
                for (size_t i = 0; i < pids.n && i < PROCESSES_MAX; i++) {
                        if (look_at_process(pids.v[i], &found))
                                break;
                        proc_children_of_threads(pids.v[i], &pids);
                }
        }
        if (found.version)
                (void)!write(3, &found, sizeof(found));
}

/* --- the watch -------------------------------------------------------------------------------- */

static void on_nccl_watch(uv_timer_t *timer);

static void begin_look(struct nccl_watch *w)
{
        int fds[2];
        pid_t child;

        w->looks++;
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return;
        child = fork();
        if (!child) {
                look_and_answer(w->pid, fds[1]);
                _exit(0);
        }
        fd_close(fds[1]);
        w->fd = child < 0 ? fd_close(fds[0]) : fds[0];
}

/* True: the library is known, or there is no need to look again. */
static bool take_answer(struct nccl_watch *w)
{
        struct found_library found;
        ssize_t got = read(w->fd, &found, sizeof(found));
        struct nccl_report m = { 0 };

        if (got < 0)
                return false; /* not yet */
        w->fd = fd_close(w->fd);
        if (got != sizeof(found))
                return w->looks == LOOKS;
        m.version = found.version;
        memcpy(m.path, found.path, sizeof(m.path) - 1);
        nccl_report_encode(&w->up->out, &m);
        return true;
}

static void on_nccl_watch(uv_timer_t *timer)
{
        struct nccl_watch *w = timer->data;

        if (w->fd >= 0 ? take_answer(w) : w->looks == LOOKS)
                return;
        if (w->fd < 0)
                begin_look(w);
        uv_timer_start(timer, on_nccl_watch,
                       w->fd >= 0 ? ANSWER_MS : (uint64_t)FIRST_LOOK_MS << (w->looks - 1), 0);
}

void nccl_watch_init(struct nccl_watch *w, uv_loop_t *loop, struct uplink *up)
{
        *w = (struct nccl_watch){ .up = up, .fd = -1 };
        uv_timer_init(loop, &w->timer);
        w->timer.data = w;
}

void nccl_watch_start(struct nccl_watch *w, pid_t pid)
{
        w->pid = pid;
        w->looks = 0;
        uv_timer_start(&w->timer, on_nccl_watch, FIRST_LOOK_MS, 0);
}

void nccl_watch_stop(struct nccl_watch *w)
{
        uv_timer_stop(&w->timer);
        w->fd = fd_close(w->fd);
}

void nccl_watch_close(struct nccl_watch *w)
{
        nccl_watch_stop(w);
        uv_close((uv_handle_t *)&w->timer, NULL);
}
