/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attempt/rank_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/bind/order_binding.h"
#include "agent/pmi/pmi_link.h"
#include "agent/pmix/pmix_service.h"
#include "agent/ready/ready_probes.h"
#include "base/error_number.h"
#include "base/memory.h"

struct rank_world *rank_world_create(struct node_attempt *t, struct store_access *store,
                                     const char *dir, const char *store_path,
                                     const struct launch_order *l, struct error *err)
{
        struct rank_world *w = xcalloc(1, sizeof(*w));
        uint32_t number = l->world.number;

        *w = (struct rank_world){
                .attempt = t, .store = store, .first = l->world.first, .size = l->world_size
        };
        /* World 0 has the names of a job without roles. */
        w->folder = number ? xasprintf("%s/world-%u", dir, number) : xstrdup(dir);
        w->socket = number ? xasprintf("%s-%u", store_path, number) : xstrdup(store_path);
        /* The folder is there already if ranks of the world start again. */
        if (!number || mkdir(w->folder, 0700) == 0 || errno == EEXIST)
                return w;
        err_set(err, errno, "cannot make the folder %s: %s", w->folder, strerror(errno));
        rank_world_destroy(w);
        return NULL;
}

/* The helper of PMIx is killed here, and reaped by the agent. */
void rank_world_destroy(struct rank_world *w)
{
        if (!w)
                return;
        pmi_link_destroy(w->pmi);
        ready_probes_destroy(w->ready);
        pmix_service_end(w->pmix.service);
        free(w->again.owed);
        order_binding_destroy(w->binding);
        free(w->folder);
        free(w->socket);
        free(w);
}

bool rank_world_has(const struct rank_world *w, uint32_t rank)
{
        return rank >= w->first && rank - w->first < w->size;
}

bool rank_world_overlaps(const struct rank_world *w, uint32_t first, uint32_t n)
{
        return first < w->first + w->size && w->first < first + n;
}

static struct owed_output *find_owed(const struct rank_world *w, uint32_t rank)
{
        for (size_t i = 0; w && i < w->again.n_owed; i++)
                if (w->again.owed[i].rank == rank)
                        return &w->again.owed[i];
        return NULL;
}

/* A second end replaces the earlier note: the stream had begun with the bytes owed. */
void rank_world_owe(struct rank_world *w, uint32_t rank, const uint32_t bytes[2])
{
        struct owed_output *o = find_owed(w, rank);

        if (!o) {
                w->again.owed = xrealloc(w->again.owed, w->again.n_owed + 1, sizeof(*o));
                o = &w->again.owed[w->again.n_owed++];
        }
        *o = (struct owed_output){ rank, { bytes[0], bytes[1] } };
}

const struct owed_output *rank_world_owed(const struct rank_world *w, uint32_t rank)
{
        return find_owed(w, rank);
}

void rank_world_credit(struct rank_world *w, const struct credit *m)
{
        struct owed_output *o = find_owed(w, m->rank);
        uint32_t *bytes = o ? &o->bytes[m->stream == MSG_STDERR] : NULL;

        if (bytes)
                *bytes -= MIN(m->bytes, *bytes);
}

/* A world has PMI or PMIx, or neither. Both count ranks within the world. */
enum rank_mpi rank_world_end_mpi(struct rank_world *w, uint32_t rank)
{
        if (w->pmi)
                return pmi_link_end(w->pmi, rank - w->first);
        return w->pmix.service ? pmix_service_state(w->pmix.service, rank - w->first)
                               : RANK_MPI_UNUSED;
}

bool rank_world_is_mpi_unused(const struct rank_world *w, uint32_t rank)
{
        if (w->pmi)
                return pmi_link_is_unused(w->pmi, rank - w->first);
        return !w->pmix.service ||
               pmix_service_state(w->pmix.service, rank - w->first) == RANK_MPI_UNUSED;
}
