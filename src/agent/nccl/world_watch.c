/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look reads the links in /proc/PID/fd of the rank and of all descendants, and no other file
 * system. Processes below a launcher, for example mpirun, belong to the launcher. Memory maps would
 * tell more, but a reader of the maps holds up a process at mapping memory.
 */
#include "agent/nccl/world_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/proc.h"
#include "base/error_number.h"
#include "base/log.h"
#include "base/memory.h"

enum {
        OFTEN_MS = 25, /* between looks in the first OFTEN_FOR_MS, and so on */
        OFTEN_FOR_MS = 5000,
        SOMETIMES_MS = 250,
        SOMETIMES_FOR_MS = 60000,
        SELDOM_MS = 2500,
        LONG_MS = 20000, /* a rank alone for as long will not use PMI any more */
        FILES_MAX = 1024,
        PROCESSES_MAX = 16,
        WORLD_RANKS = 2,
};

/* A rank under watch. @pid 0 = the place is free. */
struct watched_world {
        pid_t pid;
        uint32_t rank;
        enum mpi_family family; /* of the seen trace; MPI_FAMILY_NONE = none */
        uint64_t seen_ms;       /* of the first sight, by the clock of the loop */
};

struct world_watch {
        uv_timer_t timer;
        struct watched_world ranks[WORLD_RANKS];
        uint64_t start_ms;
        bool told;
        bool (*is_unused)(void *ctx, uint32_t rank);
        void *ctx;
};

/* Returns the MPI with this file open since MPI_Init(), by the path of the file. */
static enum mpi_family find_family_of_file(const char *file)
{
        /* Open MPI 3 to 5: shmem/posix; MPICH 4 and 5. */
        if (!strncmp(file, "/dev/shm/open_mpi.", 18))
                return MPI_FAMILY_OPEN_MPI;
        return strncmp(file, "/dev/shm/mpich_", 15) != 0 ? MPI_FAMILY_NONE : MPI_FAMILY_MPICH;
}

/* Returns the family of an MPI whose MPI_Init() has left an open file in the process. */
static enum mpi_family find_trace_of_init(pid_t pid)
{
        enum mpi_family family = MPI_FAMILY_NONE;
        struct dirent *entry;
        char path[64], file[64];
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        dir = opendir(path);
        /* A process with many thousands of descriptors must not hold up the loop of the agent. */
        for (int i = 0; dir && i < FILES_MAX && !family && (entry = readdir(dir)); i++) {
                ssize_t n = readlinkat(dirfd(dir), entry->d_name, file, sizeof(file) - 1);

                if (n > 0) {
                        file[n] = '\0';
                        family = find_family_of_file(file);
                }
        }
        if (dir)
                closedir(dir);
        return family;
}

/* The kernel cuts names at 15 characters. */
static bool is_mpi_launcher(pid_t pid)
{
        char name[32];

        if (!proc_read(pid, "comm", name, sizeof(name)))
                return false;
        name[strcspn(name, "\n")] = '\0';
        return mpi_is_launcher(name);
}

/* The same for the rank and all descendants, but not below a launcher of MPI: ranks there have a
 * world from the launcher. */
static enum mpi_family find_world(pid_t rank)
{
        enum mpi_family family = MPI_FAMILY_NONE;
        struct pids pids = PIDS_INIT;

        if (!is_mpi_launcher(rank)) {
                family = find_trace_of_init(rank);
                proc_children_of_threads(rank, &pids);
        }
        for (size_t i = 0; i < pids.n && i < PROCESSES_MAX && !family; i++) {
                if (is_mpi_launcher(pids.v[i]))
                        continue;
                family = find_trace_of_init(pids.v[i]);
                proc_children_of_threads(pids.v[i], &pids);
        }
        pids_finish(&pids);
        return family;
}

/* Warns once of a rank alone for long. */
static void tell_world(struct world_watch *w, const struct watched_world *r, uint64_t now)
{
        if (w->told || !r->family || now - r->seen_ms < LONG_MS || !w->is_unused(w->ctx, r->rank))
                return;
        w->told = true;
        log_warning(
                HN_WORLD_OF_ONE,
                "rank %u has called MPI_Init() of %s, and is a world of one: name the way of its "
                "MPI with --mpi",
                r->rank, mpi_family_name(r->family));
}

/* Looks at the ranks without a connection to hnlaunch, often at the start and seldom later:
 * MPI_Init() comes early in most programs. */
static void on_world_watch(uv_timer_t *timer)
{
        struct world_watch *w = timer->data;
        uint64_t now = uv_now(timer->loop), age = now - w->start_ms;

        for (size_t i = 0; i < WORLD_RANKS; i++) {
                struct watched_world *r = &w->ranks[i];

                if (!r->pid || !w->is_unused(w->ctx, r->rank))
                        continue;
                if (!r->family) {
                        r->family = find_world(r->pid);
                        r->seen_ms = now;
                }
                tell_world(w, r, now);
        }
        uv_timer_start(timer, on_world_watch,
                       age < OFTEN_FOR_MS       ? OFTEN_MS
                       : age < SOMETIMES_FOR_MS ? SOMETIMES_MS
                                                : SELDOM_MS,
                       0);
}

struct world_watch *world_watch_create(uv_loop_t *loop, bool (*is_unused)(void *ctx, uint32_t rank),
                                       void *ctx)
{
        struct world_watch *w = xcalloc(1, sizeof(*w));

        w->is_unused = is_unused;
        w->ctx = ctx;
        uv_timer_init(loop, &w->timer);
        w->timer.data = w;
        return w;
}

/* Two ranks are enough to see the mistake, and looks at all ranks of a node would cost too much. */
void world_watch_add(struct world_watch *w, pid_t pid, uint32_t rank)
{
        size_t i = 0;

        while (i < WORLD_RANKS && w->ranks[i].pid)
                i++;
        if (i == WORLD_RANKS)
                return;
        w->ranks[i] = (struct watched_world){ .pid = pid, .rank = rank };
        w->start_ms = uv_now(w->timer.loop);
        uv_timer_start(&w->timer, on_world_watch, OFTEN_MS, 0);
}

/* Returns what the rank did with MPI by the last look. The timer stops with the last watched
 * rank. */
enum rank_mpi world_watch_end(struct world_watch *w, pid_t pid)
{
        enum mpi_family family = MPI_FAMILY_NONE;
        bool any = false;

        for (size_t i = 0; i < WORLD_RANKS; i++) {
                if (w->ranks[i].pid == pid) {
                        family = w->ranks[i].family;
                        w->ranks[i].pid = 0;
                }
                any |= w->ranks[i].pid != 0;
        }
        if (!any)
                uv_timer_stop(&w->timer);
        return family == MPI_FAMILY_OPEN_MPI ? RANK_MPI_ALONE_OPEN_MPI
               : family == MPI_FAMILY_MPICH  ? RANK_MPI_ALONE_MPICH
                                             : RANK_MPI_UNUSED;
}

void world_watch_stop(struct world_watch *w)
{
        uv_timer_stop(&w->timer);
        memset(w->ranks, 0, sizeof(w->ranks));
        w->told = false;
}

static void free_world_watch(uv_handle_t *h)
{
        free(h->data);
}

void world_watch_destroy(struct world_watch *w)
{
        world_watch_stop(w);
        uv_close((uv_handle_t *)&w->timer, free_world_watch);
}
