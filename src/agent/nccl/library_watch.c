/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child process inherits nothing but a pipe: another open end of the link to the head would
 * keep the link open. The child writes the whole answer at once and ends; no caller waits, and the
 * timer finds the answer. The end of the attempt kills the child as any other.
 */
#include "agent/nccl/library_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "agent/nccl/nccl_version.h"
#include "base/error_number.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "wire/msg.h"

enum {
        LOOKS = 10, /* the last after 17 minutes */
        FIRST_LOOK_MS = 2000,
        ANSWER_MS = 500, /* between looks at the pipe */
        PROCESSES_MAX = 16,
        MAPS_MAX = 16 << 20,
        PATH_SIZE = 256,
};

struct library_watch {
        uv_timer_t timer;
        struct uplink *up;
        pid_t pid;
        uint32_t rank;
        int fd;    /* answer of the child process, -1 = none runs */
        int looks; /* taken */
        bool told_nccl, told_two;
        enum mpi_family mpi; /* of the library seen last; MPI_FAMILY_NONE = none was seen */
};

/* The answer of the child, as bytes in a pipe: both sides are the same program. */
struct found_libraries {
        uint32_t nccl_version; /* 0 = none */
        char nccl[PATH_SIZE];
        char open_mpi[PATH_SIZE], mpich[PATH_SIZE]; /* of a process; "" = none */
};

/* The first library of each family counts. Paths that do not fit into @size are left out. */
void library_watch_find_mpi(const char *maps, char *open_mpi, char *mpich, size_t size)
{
        *open_mpi = *mpich = '\0';
        for (const char *at = maps; (at = strstr(at, "/libmp")); at++) {
                const char *line = at, *path;
                char *to, file[PATH_SIZE];
                size_t len = strcspn(at, "\n");
                enum mpi_family family;

                if (len >= sizeof(file) || memchr(at + 1, '/', len - 1))
                        continue; /* a folder */
                memcpy(file, at, len);
                file[len] = '\0';
                family = mpi_library_family(file);
                if (family <= MPI_FAMILY_ANY)
                        continue;
                /* The path in a line of maps begins with the first slash, and may have blanks. */
                while (line > maps && line[-1] != '\n')
                        line--;
                path = memchr(line, '/', (size_t)(at - line) + 1);
                len = strcspn(path, "\n");
                to = family == MPI_FAMILY_OPEN_MPI ? open_mpi : mpich;
                if (*to || len >= size)
                        continue;
                memcpy(to, path, len);
                to[len] = '\0';
        }
}

/* --- in the child process --------------------------------------------------------------------- */

/* A rank may see other files, in a container. */
static void find_loaded_nccl(pid_t pid, const char *maps, struct found_libraries *to)
{
        char *path;

        if (to->nccl_version || !nccl_version_find_path(maps, to->nccl, sizeof(to->nccl)))
                return;
        path = xasprintf("/proc/%d/root%s", (int)pid, to->nccl);
        to->nccl_version = nccl_version_of_file(path);
        free(path);
}

/* A process with both MPIs wins over a process with one. */
static void find_loaded_mpi(const char *maps, struct found_libraries *to)
{
        char open_mpi[PATH_SIZE], mpich[PATH_SIZE];

        library_watch_find_mpi(maps, open_mpi, mpich, PATH_SIZE);
        if ((*open_mpi && *mpich) || (!*to->open_mpi && !*to->mpich)) {
                memcpy(to->open_mpi, open_mpi, PATH_SIZE);
                memcpy(to->mpich, mpich, PATH_SIZE);
        }
}

/* A process of another user, or one that has ended, adds nothing. */
static void look_at_process(pid_t pid, struct found_libraries *to)
{
        char *file = xasprintf("/proc/%d/maps", (int)pid), *maps = NULL;

        if (fd_read_file(file, MAPS_MAX, &maps, NULL) == 0) {
                find_loaded_nccl(pid, maps, to);
                find_loaded_mpi(maps, to);
        }
        free(file);
        free(maps);
}

/* In the child, since a read below /proc may block: looks at the rank and all descendants, and
 * writes the found libraries. */
static void look_and_answer(pid_t pid, int to)
{
        struct found_libraries found;
        struct pids pids = PIDS_INIT;

        memset(&found, 0, sizeof(found));
        /* Numbers 0 to 2 may be the link. Before Linux 5.9 there is no answer. */
        if ((to != 3 && dup2(to, 3) < 0) || syscall(SYS_close_range, 4U, ~0U, 0U) < 0)
                return;
        for (int fd = 0; fd < 3; fd++)
                close(fd);
        look_at_process(pid, &found);
        proc_children_of_threads(pid, &pids);
        /* The list grows in the loop: children of children are appended, so the nearest come
         * first. */
        for (size_t i = 0; i < pids.n && i < PROCESSES_MAX; i++) {
                look_at_process(pids.v[i], &found);
                proc_children_of_threads(pids.v[i], &pids);
        }
        if (found.nccl_version || *found.open_mpi || *found.mpich)
                (void)!write(3, &found, sizeof(found));
}

/* --- the watch -------------------------------------------------------------------------------- */

static void on_library_watch(uv_timer_t *timer);

/* Forks the child that looks. A failure costs only this look. */
static void begin_look(struct library_watch *w)
{
        int fds[2];
        pid_t child;

        w->looks++;
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return;
        child = fork_without_signals();
        if (!child) {
                look_and_answer(w->pid, fds[1]);
                _exit(0);
        }
        fd_close(fds[1]);
        /* The number of the child is not kept: the pipe ends with the child, and the agent reaps
         * any child. */
        w->fd = child < 0 ? fd_close(fds[0]) : fds[0];
}

static void report_nccl(struct library_watch *w, const struct found_libraries *found)
{
        struct nccl_report m = { .version = found->nccl_version };

        if (w->told_nccl || !found->nccl_version)
                return;
        w->told_nccl = true;
        memcpy(m.path, found->nccl, sizeof(m.path) - 1);
        nccl_report_encode(&w->up->out, &m);
}

/* Notes which MPI the rank has loaded, and warns of two that exclude each other; of rank 0 only, as
 * all ranks run the same program. */
static void note_mpi(struct library_watch *w, const struct found_libraries *found)
{
        if (w->mpi == MPI_FAMILY_NONE && (*found->open_mpi || *found->mpich))
                log_line(LOG_INFO, "rank %u has loaded %s", w->rank,
                         *found->open_mpi ? found->open_mpi : found->mpich);
        if (*found->open_mpi)
                w->mpi = MPI_FAMILY_OPEN_MPI;
        else if (*found->mpich)
                w->mpi = MPI_FAMILY_MPICH;
        if (!*found->open_mpi || !*found->mpich || w->told_two)
                return;
        w->told_two = true;
        if (w->rank == 0)
                log_warning(
                        HN_TWO_MPIS,
                        "rank 0 has loaded two MPI libraries that exclude each other: %s and %s",
                        found->open_mpi, found->mpich);
}

/* True: there is no need to look again. */
static bool take_answer(struct library_watch *w)
{
        struct found_libraries found;
        ssize_t got = read(w->fd, &found, sizeof(found));

        if (got < 0)
                return false; /* not yet */
        w->fd = fd_close(w->fd);
        if (got == sizeof(found)) {
                report_nccl(w, &found);
                note_mpi(w, &found);
        }
        return w->looks == LOOKS || (w->told_nccl && w->told_two);
}

/* The timer has two uses: the pause until the next look, which doubles, and the pause until the
 * answer of a look is read. */
static void on_library_watch(uv_timer_t *timer)
{
        struct library_watch *w = timer->data;
        bool answer_was_due = w->fd >= 0;

        if (w->fd >= 0 ? take_answer(w) : w->looks == LOOKS)
                return;
        if (!answer_was_due)
                begin_look(w);
        uv_timer_start(timer, on_library_watch,
                       w->fd >= 0 ? ANSWER_MS : (uint64_t)FIRST_LOOK_MS << (w->looks - 1), 0);
}

struct library_watch *library_watch_create(uv_loop_t *loop, struct uplink *up)
{
        struct library_watch *w = xcalloc(1, sizeof(*w));

        w->up = up;
        w->fd = -1;
        uv_timer_init(loop, &w->timer);
        w->timer.data = w;
        return w;
}

static void free_library_watch(uv_handle_t *h)
{
        free(h->data);
}

void library_watch_destroy(struct library_watch *w)
{
        library_watch_stop(w);
        uv_close((uv_handle_t *)&w->timer, free_library_watch);
}

/* One rank is watched at a time: a new watch forgets what the one before has found. */
void library_watch_start(struct library_watch *w, pid_t pid, uint32_t rank)
{
        w->pid = pid;
        w->rank = rank;
        w->looks = 0;
        w->told_nccl = w->told_two = false;
        w->mpi = MPI_FAMILY_NONE;
        uv_timer_start(&w->timer, on_library_watch, FIRST_LOOK_MS, 0);
}

void library_watch_stop(struct library_watch *w)
{
        uv_timer_stop(&w->timer);
        w->fd = fd_close(w->fd);
}

enum mpi_family library_watch_mpi(const struct library_watch *w, pid_t pid)
{
        return w->pid == pid ? w->mpi : MPI_FAMILY_NONE;
}

/* The rank has ended: a process with the same number later must not be looked at. */
void library_watch_end(struct library_watch *w, pid_t pid)
{
        if (w->pid == pid)
                library_watch_stop(w);
}
