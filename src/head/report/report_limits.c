/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error_number.h"
#include "base/format.h"
#include "head/hosts/host_groups.h"
#include "head/report/report.h"

/* Buffers, queues and rings of NCCL and MPI for one rank of a large job; the default limit of Linux
 * is 8 MiB, before 5.16 64 KiB. */
#define LOCKED_MEMORY_LOW (UINT64_C(1) << 30)

static uint64_t locked_limit(const struct job *j, size_t host)
{
        return job_node(j, host)->hello.locking.memlock;
}

static bool is_same_limit(const void *ctx, size_t a, size_t b)
{
        return locked_limit(ctx, a) == locked_limit(ctx, b);
}

void report_locked_memory(struct diags *d, const struct job *j, const struct hosts *hosts)
{
        struct host_groups groups = { 0 };

        for (size_t i = 0; i < hosts->n; i++)
                if (job_node(j, i)->hello.locking.infiniband &&
                    locked_limit(j, i) < LOCKED_MEMORY_LOW)
                        host_groups_add(&groups, i, is_same_limit, j);
        for (size_t i = 0; i < groups.n; i++) {
                const struct host_group *g = &groups.v[i];
                char *names = hosts_fold(hosts, g->hosts, g->n);
                struct diag *di =
                        diag_warn(d, HN_LOCKED_MEMORY,
                                  "ranks can lock only %" PRIu64
                                  " KiB of memory on %zu node%s with InfiniBand",
                                  locked_limit(j, g->hosts[0]) >> 10, g->n, g->n == 1 ? "" : "s");

                diag_place(di, "%s", names);
                diag_note(di, "RDMA locks its buffers: NCCL and MPI fail with \"Cannot allocate "
                              "memory\", or do without");
                diag_help(di, "raise the limit there: `* - memlock unlimited` in "
                              "/etc/security/limits.conf, LimitMEMLOCK=infinity for sshd or "
                              "containers");
                free(names);
        }
        host_groups_finish(&groups);
}
