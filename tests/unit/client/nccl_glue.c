/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hnlaunch/nccl.h on a programmable NCCL: a split whose child comes late, an abort that does not
 * end, an error reported before the launcher's message about the cause.
 */

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "client/backends/nccl_calls.h"
#include "lib/unit.h"
#include "lib/world.h"

static int64_t news_ms = 60000;
#define HN_NCCL_NEWS_MS news_ms
#include <hnlaunch/nccl.h>

enum { PATIENCE_MS = 60000, REMOTE_ERROR = 6 /* of nccl.h */ };

/* --- the NCCL --------------------------------------------------------------------------------- */

struct ncclComm {
        ncclResult_t state;
        int looks; /* looks at @state until the split ends; 0: never */
};

static struct ncclComm parent, child;
static ncclComm_t *slot; /* the place where a split or a start stores the communicator */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool abort_hangs, abort_begun, abort_ended;
static void (*at_error)(void);

static ncclResult_t get_version(int *version)
{
        *version = NCCL_VERSION(2, 22, 3);
        return ncclSuccess;
}

static ncclResult_t get_id(ncclUniqueId *id)
{
        memset(id, 1, sizeof(*id));
        return ncclSuccess;
}

static const char *get_error_string(ncclResult_t result UNUSED)
{
        return "remote process exited";
}

static const char *get_last_error(ncclComm_t comm UNUSED)
{
        return "";
}

static ncclResult_t start_comm(ncclComm_t *to, int ranks UNUSED, ncclUniqueId id UNUSED,
                               int rank UNUSED, ncclConfig_t *config UNUSED)
{
        slot = to;
        *to = &parent;
        return parent.state;
}

/* As in NCCL 2.18 to 2.29: ncclSuccess as soon as the work has begun. */
static ncclResult_t split_comm(ncclComm_t comm, int color UNUSED, int key UNUSED, ncclComm_t *to,
                               ncclConfig_t *config UNUSED)
{
        slot = to;
        *to = NULL;
        comm->state = ncclInProgress;
        return ncclSuccess;
}

static ncclResult_t get_async_error(ncclComm_t comm, ncclResult_t *state)
{
        if (comm->looks > 0 && --comm->looks == 0) {
                *slot = &child;
                comm->state = ncclSuccess;
        }
        *state = comm->state;
        if (comm->state == (ncclResult_t)REMOTE_ERROR && at_error)
                at_error();
        return ncclSuccess;
}

static ncclResult_t count_ranks(ncclComm_t comm UNUSED, int *ranks)
{
        *ranks = 1;
        return ncclSuccess;
}

static ncclResult_t abort_comm(ncclComm_t comm UNUSED)
{
        pthread_mutex_lock(&lock);
        abort_begun = true;
        while (abort_hangs)
                pthread_cond_wait(&changed, &lock);
        *slot = &parent; /* the real NCCL joins the connecting thread */
        abort_ended = true;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        return ncclSuccess;
}

struct nccl_calls nccl = { .GetVersion = get_version,
                           .GetUniqueId = get_id,
                           .GetErrorString = get_error_string,
                           .GetLastError = get_last_error,
                           .CommInitRankConfig = start_comm,
                           .CommSplit = split_comm,
                           .CommGetAsyncError = get_async_error,
                           .CommCount = count_ranks,
                           .CommAbort = abort_comm };

/* --- the tests: each in a separate process ---------------------------------------------------- */

static struct world_result result;

static void run(int n, int (*rank_main)(void))
{
        assert_int_equal(world_run(n, 1, rank_main, &result), 0);
        assert_int_equal(result.status[0], 0);
}

static int split_late(void)
{
        ncclComm_t part = NULL;

        CLAIM(hn_init(NULL) == HN_OK);
        parent.looks = 20;
        CLAIM(hn_nccl_comm_split(hn_world(), &parent, NULL, PATIENCE_MS, &part) == HN_OK);
        CLAIM(part == &child);
        CLAIM(hn_nccl_comm_split(NULL, &child, NULL, 0, &part) == HN_ERR_TIMEOUT);
        CLAIM(part == &child);
        return hn_finalize();
}

TEST(a_split_waits_for_the_child)
{
        run(1, split_late);
}

static bool on_stack(const void *at)
{
        uintptr_t here = (uintptr_t)__builtin_frame_address(0), there = (uintptr_t)at;

        return (here > there ? here - there : there - here) < 1 << 20;
}

/* Memory given to NCCL by address outlives the call. */
static int split_in_vain(void)
{
        ncclComm_t part = NULL;

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_nccl_comm_split(hn_world(), &parent, NULL, 0, &part) == HN_ERR_TIMEOUT);
        CLAIM(part == NULL && !abort_begun && !on_stack(slot));
        *slot = &child; /* with sanitizers: not freed */
        return hn_finalize();
}

TEST(a_split_that_failed_leaves_nccl_its_memory)
{
        run(1, split_in_vain);
}

/* A dead lock would end with the test's time limit. */
static int start_in_vain(void)
{
        ncclComm_t comm = NULL;

        CLAIM(hn_init(NULL) == HN_OK);
        parent.state = ncclInProgress;
        abort_hangs = true;
        CLAIM(hn_nccl_comm_init(NULL, NULL, 1000, &comm) == HN_ERR_TIMEOUT);
        CLAIM(comm == NULL && !on_stack(slot));
        pthread_mutex_lock(&lock);
        CLAIM(!abort_ended);
        abort_hangs = false;
        pthread_cond_broadcast(&changed);
        while (!abort_ended)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        return hn_finalize();
}

TEST(a_start_ends_before_an_abort_that_hangs)
{
        run(1, start_in_vain);
}

static int start_and_undo(void)
{
        ncclComm_t comm = NULL;

        CLAIM(hn_init(NULL) == HN_OK);
        parent.state = ncclInProgress;
        CLAIM(hn_nccl_comm_init(NULL, NULL, 1000, &comm) == HN_ERR_TIMEOUT);
        CLAIM(comm == NULL && abort_ended);
        return hn_finalize();
}

TEST(a_start_that_failed_is_undone)
{
        run(1, start_and_undo);
}

static void tell_the_other(void)
{
        hn_store_set(hn_store_default(), "seen", NULL, 0);
}

/* Rank 1 dies only after rank 0 has heard of the death from NCCL. */
static int hear_of_a_death(void)
{
        static const char *const seen[] = { "seen" };

        CLAIM(hn_init(NULL) == HN_OK);
        if (hn_rank() == 1) {
                CLAIM(hn_store_wait(hn_store_default(), seen, 1, PATIENCE_MS) == HN_OK);
                raise(SIGKILL);
        }
        at_error = tell_the_other;
        parent.state = (ncclResult_t)REMOTE_ERROR;
        CLAIM(hn_nccl_wait(&parent, PATIENCE_MS) == HN_ERR_PEER);
        CLAIM(hn_nccl_done("x", (ncclResult_t)REMOTE_ERROR, &parent, 0) == HN_ERR_PEER);
        return 0;
}

TEST(a_death_is_told_as_one)
{
        run(2, hear_of_a_death);
}

static int hear_of_an_error(void)
{
        CLAIM(hn_init(NULL) == HN_OK);
        news_ms = 10;
        parent.state = (ncclResult_t)REMOTE_ERROR;
        CLAIM(hn_nccl_wait(&parent, PATIENCE_MS) == HN_ERR_BACKEND);
        CLAIM(strcmp(hn_last_error(), "NCCL: remote process exited") == 0);
        return hn_finalize();
}

TEST(other_errors_have_the_words_of_nccl)
{
        run(1, hear_of_an_error);
}
