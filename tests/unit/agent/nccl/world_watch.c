/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/world_watch.h"

#include <unistd.h>

#include "base/fd.h"
#include "lib/unit.h"

static bool is_unused(void *ctx UNUSED, uint32_t rank UNUSED)
{
        return true;
}

/* The test itself stands for the ranks: it has a file open as Open MPI has after MPI_Init(). */
TEST(ranks_that_start_again_are_watched)
{
        char path[] = "/dev/shm/open_mpi.hntest-XXXXXX";
        const pid_t first = getpid(), second = getppid();
        struct world_watch *w;
        uv_loop_t loop;
        int fd;

        assert_int_equal(uv_loop_init(&loop), 0);
        w = world_watch_create(&loop, is_unused, NULL);
        world_watch_add(w, first, 0);
        world_watch_add(w, second, 1);
        assert_int_equal(world_watch_end(w, first), RANK_MPI_UNUSED);
        assert_int_equal(world_watch_end(w, second), RANK_MPI_UNUSED);

        fd = mkstemp(path);
        if (fd >= 0) {
                unlink(path);
                world_watch_add(w, first, 0);
                uv_run(&loop, UV_RUN_ONCE);
                assert_int_equal(world_watch_end(w, first), RANK_MPI_ALONE_OPEN_MPI);
        }
        fd_close(fd);
        world_watch_destroy(w);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        if (fd < 0)
                skip();
}
