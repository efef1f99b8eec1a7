/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup_faults: communicators of hnlaunch/nccl.h when something goes wrong. Each rank prints a line
 * "rank N: STATUS, (a communicator|nothing), N ms: ERROR".
 *
 *     setup_faults join MS [RANK FAULT]    a communicator of the world, within MS milliseconds. In
 *                                          that rank the Nth call of a function of CUDA,
 *                                          "die:FUNCTION:N" or "hang:FUNCTION:N", does that; with
 *                                          "log:FILE" the calls until there is a communicator are
 *                                          written (simulated GPUs only)
 *     setup_faults split MS [RANK]         halves of it; that rank is killed instead
 *     setup_faults hold MS FILE            a communicator of the world, until there is that file;
 *                                          rank 0 prints NCCL_RAS_ADDR
 *     setup_faults skew MS                 the last rank says it has another NCCL
 */
#include <hnlaunch/nccl.h>
#include <signal.h>
#include <unistd.h>

#include "../lib/wait_for.h"

enum { LONG_MS = 60000 };

static void tell(hn_status status, const void *comm, int64_t begun)
{
        printf("rank %d: %s, %s, %lld ms: %s\n", hn_rank(), hn_status_name(status),
               comm ? "a communicator" : "nothing", (long long)(hn_nccl_now() - begun),
               status == HN_OK ? "" : hn_last_error());
        fflush(stdout);
}

static hn_status end_comm(ncclComm_t comm, int64_t ms)
{
        hn_status status = hn_nccl_done("ncclCommFinalize", ncclCommFinalize(comm), comm, ms);

        if (status == HN_OK)
                ncclCommDestroy(comm);
        else
                hn_nccl_undo(comm);
        return status;
}

/* The simulated GPUs read the environment at the first call of CUDA. */
static void set_fault(const char *fault)
{
        if (strncmp(fault, "die:", 4) == 0)
                setenv("FAKEGPU_DIE", fault + 4, 1);
        else if (strncmp(fault, "hang:", 5) == 0)
                setenv("FAKEGPU_HANG", fault + 5, 1);
        else
                setenv("FAKEGPU_LOG", fault + 4, 1);
}

static void end_log(void)
{
        const char *path = getenv("FAKEGPU_LOG");
        FILE *f = path ? fopen(path, "a") : NULL;

        if (f) {
                fputs("joined\n", f);
                fclose(f);
        }
}

static int join(int64_t ms)
{
        int64_t begun = hn_nccl_now();
        ncclComm_t comm = NULL;
        hn_status status;

        alarm((unsigned)(ms / 500 + 20)); /* NCCL's calls on a communicator have no time limit */
        status = hn_nccl_comm_init(NULL, NULL, ms, &comm);
        end_log();
        tell(status, comm, begun);
        if (status != HN_OK)
                return 3;
        begun = hn_nccl_now();
        status = end_comm(comm, ms);
        if (status != HN_OK) /* a rank that is lost this late is still told */
                tell(status, NULL, begun);
        return status == HN_OK ? hn_finalize() : 3;
}

/* Its frame is where that of watch_stack() will be. */
static __attribute__((noinline)) hn_status split(hn_group *group, ncclComm_t whole, int64_t ms,
                                                 ncclComm_t *to)
{
        char depth[512];

        memset(depth, 1, sizeof(depth));
        return depth[9] ? hn_nccl_comm_split(group, whole, NULL, ms, to) : HN_OK;
}

/* Looks at the stack that split() had while NCCL ends what it has begun; the abort of @comm makes
 * it. Returns how many bytes have changed. */
static __attribute__((noinline)) int watch_stack(ncclComm_t comm)
{
        volatile unsigned char sand[4096];
        int changed = 0;

        for (size_t i = 0; i < sizeof(sand); i++)
                sand[i] = 0xa5;
        if (comm)
                ncclCommAbort(comm);
        else
                usleep(500000);
        for (size_t i = 0; i < sizeof(sand); i++)
                changed += sand[i] != 0xa5;
        return changed;
}

static int halve(int64_t ms, int victim)
{
        ncclComm_t whole = NULL, part = NULL;
        hn_group *group = NULL;
        int64_t begun = hn_nccl_now();
        hn_status status = hn_nccl_comm_init(NULL, NULL, LONG_MS, &whole);
        int changed;

        if (status == HN_OK)
                status = hn_group_split(NULL, hn_rank() % 2, 0, LONG_MS, &group);
        if (status != HN_OK) {
                tell(status, whole, begun);
                return 3;
        }
        if (hn_rank() == victim) {
                sleep(1); /* the others are in it */
                raise(SIGKILL);
        }
        begun = hn_nccl_now();
        status = split(group, whole, ms, &part);
        tell(status, part, begun);
        changed = watch_stack(status == HN_OK ? NULL : whole);
        if (changed)
                printf("rank %d: %d bytes of the stack have changed\n", hn_rank(), changed);
        if (status != HN_OK || !part)
                return 3;
        end_comm(part, ms);
        end_comm(whole, ms);
        return hn_finalize();
}

static int hold(int64_t ms, const char *file)
{
        ncclComm_t comm = NULL;
        const char *address = getenv("NCCL_RAS_ADDR");

        if (hn_nccl_comm_init(NULL, NULL, ms, &comm) != HN_OK || hn_barrier(NULL, ms) != HN_OK)
                return 3;
        if (hn_rank() == 0)
                puts(address ? address : "none");
        fflush(stdout);
        wait_for(access(file, F_OK) == 0);
        return end_comm(comm, ms) == HN_OK ? hn_finalize() : 3;
}

static int skew(int64_t ms)
{
        int64_t begun = hn_nccl_now();
        ncclComm_t comm = NULL;
        hn_nccl_card card;
        hn_status status;

        hn_nccl_fill_card(&card);
        card.version += hn_rank() == hn_world_size() - 1;
        status = hn_nccl_comm_init_card(NULL, &card, NULL, ms, &comm);
        tell(status, comm, begun);
        return 3;
}

int main(int argc, char **argv)
{
        int64_t ms = argc > 2 ? atoll(argv[2]) : LONG_MS;
        int victim = argc > 3 ? atoi(argv[3]) : -1, n = 0;

        if (argc < 2 || hn_init(NULL) != HN_OK || hn_barrier(NULL, LONG_MS) != HN_OK)
                return 2; /* all are up before anything fails */
        if (argc > 4 && hn_rank() == victim)
                set_fault(argv[4]);
        if (cudaGetDeviceCount(&n) != cudaSuccess || cudaSetDevice(hn_local_rank() % n) != 0)
                return 2;
        if (strcmp(argv[1], "hold") == 0 && argc > 3)
                return hold(ms, argv[3]);
        if (strcmp(argv[1], "split") == 0)
                return halve(ms, victim);
        return strcmp(argv[1], "skew") == 0 ? skew(ms) : join(ms);
}
