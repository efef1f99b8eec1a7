/* SPDX-License-Identifier: Apache-2.0 */
#include <hnlaunch/comm.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/backend.h"
#include "client/deadline.h"
#include "client/fail.h"
#include "client/self.h"

struct hn_comm {
        const struct backend *backend;
        void *plugin; /* from dlopen(), never closed: threads may still run its code */
        void *self;
        hn_store *store;
        int rank, size;
        bool broken;
};

size_t hn_dtype_size(hn_dtype type)
{
        switch (type) {
        case HN_FLOAT32:
        case HN_INT32:
                return 4;
        case HN_FLOAT64:
        case HN_INT64:
                return 8;
        case HN_UINT8:
                return 1;
        case HN_FLOAT16:
        case HN_BFLOAT16:
                return 2;
        }
        return 0;
}

int hn_comm_rank(const hn_comm *comm)
{
        return comm->rank;
}

int hn_comm_size(const hn_comm *comm)
{
        return comm->size;
}

/* The folder of the library this code is in. */
static bool own_folder(char *to, size_t size)
{
        Dl_info info;
        char *slash;

        if (!dladdr((void *)(uintptr_t)hn_comm_create, &info) || !info.dli_fname)
                return false;
        snprintf(to, size, "%s", info.dli_fname);
        slash = strrchr(to, '/');
        if (slash)
                *slash = '\0';
        return slash;
}

/* NULL: it is not in this folder. A plug-in that is there but does not load leaves its reason. */
static void *open_in(const char *folder, const char *name, char *why, size_t size)
{
        char path[PATH_MAX];
        void *plugin;

        if (!folder ||
            snprintf(path, sizeof(path), "%s/hn_backend_%s.so", folder, name) >=
                    (int)sizeof(path) ||
            access(path, R_OK) < 0)
                return NULL;
        plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
                snprintf(why, size, "%s", dlerror());
        return plugin;
}

static void *find_plugin(const char *name, char *why, size_t size)
{
        char here[PATH_MAX];
        void *plugin = open_in(getenv("HNLAUNCH_BACKENDS"), name, why, size);

        /* Beside the library in a build folder, installed in a folder there. */
        if (plugin || !own_folder(here, sizeof(here) - sizeof("/hnlaunch")))
                return plugin;
        plugin = open_in(here, name, why, size);
        return plugin ? plugin : open_in(strcat(here, "/hnlaunch"), name, why, size);
}

static hn_status load(hn_comm *comm, const char *name)
{
        char why[512] = "it was not found";

        if (strchr(name, '/'))
                return fail(HN_ERR_INVALID, "`%s` is no name of a backend", name);
        comm->plugin = find_plugin(name, why, sizeof(why));
        if (!comm->plugin)
                return fail(HN_ERR_UNSUPPORTED, "no backend `%s`: %s", name, why);
        comm->backend = dlsym(comm->plugin, "hn_backend");
        if (!comm->backend || comm->backend->abi != BACKEND_ABI)
                return fail(HN_ERR_UNSUPPORTED, "backend `%s` is of another version of hnlaunch",
                            name);
        return HN_OK;
}

/* A part of the store for this communicator: the first member takes a number, all learn it. */
static hn_status own_store(hn_comm *comm, hn_group *group, int64_t timeout_ms)
{
        hn_store *all = hn_store_default();
        int64_t id = 0;
        char prefix[64];
        hn_status status = HN_OK;

        if (comm->rank == 0)
                status = hn_store_add(all, "hn/comms", 1, &id);
        if (status == HN_OK)
                status = hn_broadcast_bytes(group, &id, sizeof(id), 0, timeout_ms);
        snprintf(prefix, sizeof(prefix), "hn/comm/%lld", (long long)id);
        return status == HN_OK ? hn_store_prefix(all, prefix, &comm->store) : status;
}

/* The launcher may know more than the backend, which only saw a closed connection. Its news come
 * through another channel, so give them a moment. */
static hn_status explain(hn_status status)
{
        char said[512];

        if (status != HN_ERR_BACKEND)
                return status;
        snprintf(said, sizeof(said), "%s", hn_last_error());
        return hn_health(500) == HN_ERR_PEER ? HN_ERR_PEER : fail(status, "%s", said);
}

static const char *own_backend(const hn_group *group)
{
        const char *name = hn_get_backend(group);

        return name && strcmp(name, "none") != 0 ? name : "gloo";
}

hn_status hn_comm_create(hn_group *group, const char *backend, int64_t timeout_ms, hn_comm **out)
{
        hn_comm *comm;
        hn_status status;

        if (!self_get())
                return HN_ERR_NOT_LAUNCHED;
        if (!out)
                return fail(HN_ERR_INVALID, "nowhere to put the communicator");
        comm = calloc(1, sizeof(*comm));
        if (!comm)
                return fail(HN_ERR_NOMEM, "out of memory");
        comm->rank = hn_get_rank(group);
        comm->size = hn_get_world_size(group);
        status = load(comm, backend ? backend : own_backend(group));
        if (status == HN_OK)
                status = own_store(comm, group, timeout_ms);
        if (status == HN_OK)
                status = comm->backend->create(group, comm->store, deadline_span(timeout_ms),
                                               &comm->self);
        if (status == HN_OK) {
                *out = comm;
                return HN_OK;
        }
        status = explain(status);
        hn_comm_free(comm);
        return status;
}

void hn_comm_free(hn_comm *comm)
{
        if (!comm)
                return;
        if (comm->self)
                comm->backend->destroy(comm->self);
        hn_store_close(comm->store);
        free(comm);
}

static hn_status check(const hn_comm *comm, hn_dtype type, int op)
{
        if (!comm || !hn_dtype_size(type) || op < HN_SUM || op > HN_AVG)
                return fail(HN_ERR_INVALID, "no such communicator, type or operation");
        if (comm->broken)
                return fail(HN_ERR_BACKEND, "an earlier call of this communicator failed");
        return HN_OK;
}

static hn_status conclude(hn_comm *comm, hn_status status)
{
        if (status == HN_OK || status == HN_ERR_INVALID)
                return status;
        comm->broken = true;
        return explain(status);
}

hn_status hn_all_reduce(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type, hn_op op)
{
        hn_status status = check(comm, type, (int)op);

        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm, comm->backend->all_reduce(comm->self, in, out, n, type, op));
}

static hn_status check_rank(const hn_comm *comm, int root)
{
        if (root < 0 || root >= comm->size)
                return fail(HN_ERR_INVALID, "there is no rank %d", root);
        return HN_OK;
}

hn_status hn_reduce(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type, hn_op op,
                    int root)
{
        hn_status status = check(comm, type, (int)op);

        if (status == HN_OK)
                status = check_rank(comm, root);
        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm, comm->backend->reduce(comm->self, in, out, n, type, op, root));
}

hn_status hn_broadcast(hn_comm *comm, void *buf, size_t n, hn_dtype type, int root)
{
        hn_status status = check(comm, type, HN_SUM);

        if (status == HN_OK)
                status = check_rank(comm, root);
        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm,
                        comm->backend->broadcast(comm->self, buf, n * hn_dtype_size(type), root));
}

hn_status hn_all_gather(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type)
{
        hn_status status = check(comm, type, HN_SUM);

        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm,
                        comm->backend->all_gather(comm->self, in, out, n * hn_dtype_size(type)));
}

hn_status hn_reduce_scatter(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type,
                            hn_op op)
{
        hn_status status = check(comm, type, (int)op);

        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm, comm->backend->reduce_scatter(comm->self, in, out, n, type, op));
}

hn_status hn_all_to_all(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type)
{
        hn_status status = check(comm, type, HN_SUM);

        if (status == HN_OK && in == out)
                status = fail(HN_ERR_INVALID, "all_to_all needs two arrays");
        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm,
                        comm->backend->all_to_all(comm->self, in, out, n * hn_dtype_size(type)));
}

static hn_status check_peer(const hn_comm *comm, int rank)
{
        hn_status status = check_rank(comm, rank);

        return status == HN_OK && rank == comm->rank
                       ? fail(HN_ERR_INVALID, "rank %d is this one", rank)
                       : status;
}

hn_status hn_send(hn_comm *comm, const void *in, size_t n, hn_dtype type, int to)
{
        hn_status status = check(comm, type, HN_SUM);

        if (status == HN_OK)
                status = check_peer(comm, to);
        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm, comm->backend->exchange(comm->self, in, to, NULL, -1,
                                                      n * hn_dtype_size(type)));
}

hn_status hn_recv(hn_comm *comm, void *out, size_t n, hn_dtype type, int from)
{
        hn_status status = check(comm, type, HN_SUM);

        if (status == HN_OK)
                status = check_peer(comm, from);
        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm, comm->backend->exchange(comm->self, NULL, -1, out, from,
                                                      n * hn_dtype_size(type)));
}

hn_status hn_send_recv(hn_comm *comm, const void *in, int to, void *out, int from, size_t n,
                       hn_dtype type)
{
        hn_status status = check(comm, type, HN_SUM);

        if (status == HN_OK)
                status = check_peer(comm, to);
        if (status == HN_OK)
                status = check_peer(comm, from);
        if (status != HN_OK || n == 0)
                return status;
        return conclude(comm, comm->backend->exchange(comm->self, in, to, out, from,
                                                      n * hn_dtype_size(type)));
}

hn_status hn_comm_barrier(hn_comm *comm)
{
        hn_status status = check(comm, HN_UINT8, HN_SUM);

        return status == HN_OK ? conclude(comm, comm->backend->barrier(comm->self)) : status;
}
