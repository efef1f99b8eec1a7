/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comm: the public calls of hnlaunch/comm.h over a plug-in
 *
 * hn_comm_create() loads the plug-in, takes a number from the store for keys and names of this
 * communicator, and lets the plug-in connect. Each later call is checked (begin_collective()), done
 * by the plug-in, and finished by conclude_collective(): a failure, except for HN_ERR_INVALID,
 * breaks the communicator for good and is explained by the launcher's knowledge of dead ranks. With
 * HN_CHECK=1 the members of a collective first compare their arguments over the store, because
 * otherwise Gloo ends the process when counts differ, and NCCL hangs.
 */
#include <hnlaunch/comm.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/backend.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "client/process.h"

enum {
        NEWS_MS = 500,  /* the launcher's news may come later than a closed connection */
        NONE = INT_MIN, /* no operation and no rank: hn_op and ranks are never negative */
};

struct hn_comm {
        const struct backend *backend;
        void *plugin;     /* from dlopen(), never closed: threads may still run its code */
        void *self;       /* of the plug-in; NULL = not created */
        hn_store *store;  /* with a prefix of this communicator alone */
        hn_group members; /* a copy, with a name not used by the program's collectives */
        int rank, size;
        int64_t timeout_ms; /* as passed by the program, so HN_DEFAULT_TIMEOUT is possible */
        bool compares;      /* HN_CHECK=1 */
        bool broken;
};

/* The arguments of a collective. Equal calls are equal byte by byte. */
struct collective_call {
        char name[16];
        uint64_t n;
        int32_t type;
        int32_t op;   /* or NONE */
        int64_t root; /* or NONE; of hn_send() and the like the other rank */
};

size_t hn_dtype_size(hn_dtype type)
{
        static const size_t sizes[] = {
                [HN_FLOAT32] = 4, [HN_FLOAT64] = 8, [HN_INT32] = 4,   [HN_INT64] = 8,
                [HN_UINT8] = 1,   [HN_FLOAT16] = 2, [HN_BFLOAT16] = 2
        };

        return (unsigned)type < ARRAY_SIZE(sizes) ? sizes[type] : 0;
}

int hn_comm_rank(const hn_comm *comm)
{
        return comm->rank;
}

int hn_comm_size(const hn_comm *comm)
{
        return comm->size;
}

/* NULL: not in this folder. A plug-in that does not load leaves the reason in @why. */
static void *open_plugin_in(const char *folder, const char *name, char *why, size_t size)
{
        char path[PATH_MAX];
        void *plugin;

        /* A path too long for a file cannot name a plug-in that exists. */
        if (!folder ||
            snprintf(path, sizeof(path), "%s/hn_backend_%s.so", folder, name) >=
                    (int)sizeof(path) ||
            access(path, R_OK) < 0)
                return NULL;
        /* RTLD_NOW finds missing libraries here, not inside of a collective. RTLD_LOCAL keeps the
         * symbols of Gloo away from those of the program. */
        plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
                snprintf(why, size, "%s", dlerror());
        return plugin;
}

/* Searches HNLAUNCH_BACKENDS, then the folder of the library with this code: there the plug-in is
 * in a build folder, and in its subfolder hnlaunch once installed. */
static void *find_plugin(const char *name, char *why, size_t size)
{
        void *plugin = open_plugin_in(getenv("HNLAUNCH_BACKENDS"), name, why, size);
        char here[PATH_MAX], *slash;
        Dl_info info;

        /* dladdr() names the library with this code, libhnlaunch or a program linked statically. */
        if (plugin || !dladdr((void *)(uintptr_t)hn_comm_create, &info) || !info.dli_fname)
                return plugin;
        /* Room for the strcat() below. */
        snprintf(here, sizeof(here) - strlen("/hnlaunch"), "%s", info.dli_fname);
        slash = strrchr(here, '/');
        if (!slash)
                return NULL;
        *slash = '\0';
        plugin = open_plugin_in(here, name, why, size);
        return plugin ? plugin : open_plugin_in(strcat(here, "/hnlaunch"), name, why, size);
}

/* Loads the plug-in and checks its ABI. A refused plug-in stays loaded like any other. */
static hn_status load_backend(hn_comm *comm, const char *name)
{
        char why[512] = "not found";

        if (strchr(name, '/')) /* a plug-in from another folder */
                return set_error(HN_ERR_INVALID, "invalid backend name `%s`", name);
        comm->plugin = find_plugin(name, why, sizeof(why));
        if (!comm->plugin)
                return set_error(HN_ERR_UNSUPPORTED, "cannot load backend `%s`: %s", name, why);
        comm->backend = dlsym(comm->plugin, "hn_backend");
        if (!comm->backend || comm->backend->abi != BACKEND_ABI)
                return set_error(HN_ERR_UNSUPPORTED,
                                 "backend `%s` belongs to another version of hnlaunch", name);
        return HN_OK;
}

/* Copies the group: the program may free the original before the communicator. */
static hn_status copy_members(hn_comm *comm, hn_group *group, int64_t id)
{
        const hn_group *of = group ? group : hn_world();
        hn_group *to = &comm->members;

        *to = *of;
        if (of->ranks) {
                to->ranks = malloc((size_t)of->n * sizeof(*to->ranks));
                if (!to->ranks)
                        return set_error(HN_ERR_NOMEM, "out of memory");
                memcpy(to->ranks, of->ranks, (size_t)of->n * sizeof(*to->ranks));
        }
        /* 200 bytes are the longest name of a group, and leave room for the number. */
        snprintf(to->name, sizeof(to->name), "%.200s, communicator %lld", of->name, (long long)id);
        return HN_OK;
}

/* Gives the communicator a part of the store, by a number that the first member takes. */
static hn_status make_own_store(hn_comm *comm, hn_group *group, int64_t timeout_ms)
{
        hn_store *all = hn_store_default();
        int64_t id = 0;
        char prefix[64];
        hn_status status = HN_OK;

        /* A failure of the first member leaves the others in the broadcast until their timeout. */
        if (comm->rank == 0)
                status = hn_store_add(all, "hn/comms", 1, &id);
        if (status == HN_OK)
                status = hn_broadcast_bytes(group, &id, sizeof(id), 0, timeout_ms);
        if (status == HN_OK)
                status = copy_members(comm, group, id);
        snprintf(prefix, sizeof(prefix), "hn/comm/%lld", (long long)id);
        return status == HN_OK ? hn_store_prefix(all, prefix, &comm->store) : status;
}

/* Replaces the backend's error, often just a closed connection, by the launcher's better reason: a
 * failed rank, or a member that ended too early for a barrier. The news come over another channel,
 * so they get a moment to arrive. */
static hn_status explain_failure(hn_comm *comm, hn_status status)
{
        char said[512];

        if (status != HN_ERR_BACKEND)
                return status;
        /* The calls below overwrite hn_last_error(). */
        snprintf(said, sizeof(said), "%s", hn_last_error());
        if (hn_health(NEWS_MS) == HN_ERR_PEER ||
            (comm->store && hn_barrier(&comm->members, NEWS_MS) == HN_ERR_PEER))
                return HN_ERR_PEER;
        return set_error(status, "%s", said);
}

hn_status hn_comm_create(hn_group *group, const char *backend, int64_t timeout_ms, hn_comm **out)
{
        const char *check = getenv("HN_CHECK"), *preferred = hn_get_backend(group);
        hn_comm *comm;
        hn_status status;

        if (!process_get())
                return HN_ERR_NOT_LAUNCHED;
        if (!out)
                return set_error(HN_ERR_INVALID, "`out` must not be NULL");
        comm = calloc(1, sizeof(*comm));
        if (!comm)
                return set_error(HN_ERR_NOMEM, "out of memory");
        comm->rank = hn_get_rank(group);
        comm->size = hn_get_world_size(group);
        comm->timeout_ms = timeout_ms;
        /* Read once: all calls of a communicator compare, or none. */
        comm->compares = check && strcmp(check, "1") == 0;
        if (!backend)
                backend = preferred && strcmp(preferred, "none") != 0 ? preferred : "gloo";
        status = load_backend(comm, backend);
        if (status == HN_OK)
                status = make_own_store(comm, group, timeout_ms);
        if (status == HN_OK)
                /* The plug-in gets milliseconds, or INT64_MAX for ever. */
                status = comm->backend->create(group, comm->store, deadline_span(timeout_ms),
                                               &comm->self);
        if (status == HN_OK) {
                *out = comm;
                return HN_OK;
        }
        /* Before hn_comm_free(), because the explanation needs the store and the members. */
        status = explain_failure(comm, status);
        hn_comm_free(comm);
        return status;
}

void hn_comm_free(hn_comm *comm)
{
        if (!comm)
                return;
        if (comm->self) /* else the plug-in never came to a communicator */
                comm->backend->destroy(comm->self);
        hn_store_close(comm->store);
        free(comm->members.ranks);
        free(comm);
}

/* Refuses arguments that the backend would not check, and calls after a failure: the ranks no
 * longer agree on the number of calls. */
static hn_status check_call(const hn_comm *comm, const struct collective_call *call)
{
        if (!comm)
                return set_error(HN_ERR_INVALID, "`comm` must not be NULL");
        if (!hn_dtype_size((hn_dtype)call->type))
                return set_error(HN_ERR_INVALID, "%s: there is no type %d", call->name, call->type);
        if (call->op != NONE && (call->op < HN_SUM || call->op > HN_AVG))
                return set_error(HN_ERR_INVALID, "%s: there is no operation %d", call->name,
                                 call->op);
        if (call->root != NONE && (call->root < 0 || call->root >= comm->size))
                return set_error(HN_ERR_INVALID, "%s: there is no rank %d", call->name,
                                 (int)call->root);
        if (comm->broken)
                return set_error(HN_ERR_BACKEND, "an earlier call of this communicator failed");
        return HN_OK;
}

/* "all_reduce (10 int32, sum)", "broadcast (5 uint8, root 2)". */
static void print_call(const struct collective_call *c, char *to, size_t size)
{
        static const char *const types[] = { "float32", "float64", "int32",   "int64",
                                             "uint8",   "float16", "bfloat16" };
        static const char *const ops[] = { ", sum", ", product", ", min", ", max", ", average" };
        char root[24] = "";

        if (c->root != NONE)
                snprintf(root, sizeof(root), ", root %d", (int)c->root);
        snprintf(to, size, "%.15s (%llu %s%s%s)", c->name, (unsigned long long)c->n, types[c->type],
                 c->op == NONE ? "" : ops[c->op], root);
}

/* Gathers the calls of all members. HN_ERR_MISMATCH in all of them unless the calls are equal. */
static hn_status compare_calls(hn_comm *comm, const struct collective_call *call)
{
        struct collective_call *calls = calloc((size_t)comm->size, sizeof(*calls));
        char first[96], other[96];
        uint32_t ranks[2];
        hn_status status;
        int i = 0;

        if (!calls)
                return set_error(HN_ERR_NOMEM, "out of memory");
        /* The calls have no padding bytes, so memcmp() compares fields only. */
        status = hn_all_gather_bytes(&comm->members, call, sizeof(*call), calls, comm->timeout_ms);
        while (status == HN_OK && i < comm->size &&
               memcmp(&calls[0], &calls[i], sizeof(*calls)) == 0)
                i++;
        if (status == HN_OK && i < comm->size) {
                ranks[0] = (uint32_t)hn_get_global_rank(&comm->members, 0);
                ranks[1] = (uint32_t)hn_get_global_rank(&comm->members, i);
                print_call(&calls[0], first, sizeof(first));
                print_call(&calls[i], other, sizeof(other));
                status = set_error(HN_ERR_MISMATCH, "rank %u called %s, rank %u called %s",
                                   ranks[1], other, ranks[0], first);
                set_error_ranks(ranks, 2);
        }
        free(calls);
        return status;
}

/* Checks a collective before the plug-in gets the call. @arrays: no required array is NULL. */
static hn_status begin_collective(hn_comm *comm, const struct collective_call *call, bool arrays)
{
        hn_status status = check_call(comm, call);

        /* An array of 0 elements may be NULL. */
        if (status == HN_OK && call->n && !arrays)
                status = set_error(HN_ERR_INVALID, "%s: an array is NULL", call->name);
        if (status == HN_OK && comm->compares)
                status = compare_calls(comm, call);
        return status;
}

/* HN_ERR_INVALID from a plug-in says that nothing was begun (backend.h), so the members still agree
 * on the number of calls. */
static hn_status conclude_collective(hn_comm *comm, hn_status status)
{
        if (status == HN_OK || status == HN_ERR_INVALID)
                return status;
        comm->broken = true;
        return explain_failure(comm, status);
}

hn_status hn_all_reduce(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type, hn_op op)
{
        struct collective_call call = { "all_reduce", n, (int)type, (int)op, NONE };
        hn_status status = begin_collective(comm, &call, in && out);

        /* All members pass the same count, so no member begins. */
        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(comm,
                                   comm->backend->all_reduce(comm->self, in, out, n, type, op));
}

hn_status hn_reduce(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type, hn_op op,
                    int root)
{
        struct collective_call call = { "reduce", n, (int)type, (int)op, root };
        /* Only the root receives. */
        hn_status status = begin_collective(comm, &call, in && (out || comm->rank != root));

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(comm,
                                   comm->backend->reduce(comm->self, in, out, n, type, op, root));
}

hn_status hn_broadcast(hn_comm *comm, void *buf, size_t n, hn_dtype type, int root)
{
        struct collective_call call = { "broadcast", n, (int)type, NONE, root };
        hn_status status = begin_collective(comm, &call, buf);

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(
                comm, comm->backend->broadcast(comm->self, buf, n * hn_dtype_size(type), root));
}

hn_status hn_all_gather(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type)
{
        struct collective_call call = { "all_gather", n, (int)type, NONE, NONE };
        hn_status status = begin_collective(comm, &call, in && out);

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(
                comm, comm->backend->all_gather(comm->self, in, out, n * hn_dtype_size(type)));
}

hn_status hn_reduce_scatter(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type,
                            hn_op op)
{
        struct collective_call call = { "reduce_scatter", n, (int)type, (int)op, NONE };
        hn_status status = begin_collective(comm, &call, in && out);

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(comm,
                                   comm->backend->reduce_scatter(comm->self, in, out, n, type, op));
}

hn_status hn_all_to_all(hn_comm *comm, const void *in, void *out, size_t n, hn_dtype type)
{
        struct collective_call call = { "all_to_all", n, (int)type, NONE, NONE };
        /* A NULL @comm is refused by begin_collective(). */
        hn_status status = comm && in && in == out
                                   ? set_error(HN_ERR_INVALID, "all_to_all needs two arrays")
                                   : begin_collective(comm, &call, in && out);

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(
                comm, comm->backend->all_to_all(comm->self, in, out, n * hn_dtype_size(type)));
}

hn_status hn_comm_barrier(hn_comm *comm)
{
        struct collective_call call = { "barrier", 0, HN_UINT8, NONE, NONE };
        hn_status status = begin_collective(comm, &call, true);

        return status == HN_OK ? conclude_collective(comm, comm->backend->barrier(comm->self))
                               : status;
}

/* --- between two ranks: the other members do not take part, so nothing is compared ------------ */

/* The part of begin_collective() for two ranks. */
static hn_status check_peer(const hn_comm *comm, const struct collective_call *call,
                            const void *array)
{
        hn_status status = check_call(comm, call);

        /* @root holds the other rank: see struct collective_call. */
        if (status == HN_OK && call->root == comm->rank)
                return set_error(HN_ERR_INVALID, "%s: rank %d is this rank", call->name,
                                 comm->rank);
        if (status == HN_OK && call->n && !array)
                return set_error(HN_ERR_INVALID, "%s: an array is NULL", call->name);
        return status;
}

hn_status hn_send(hn_comm *comm, const void *in, size_t n, hn_dtype type, int to)
{
        struct collective_call call = { "send", n, (int)type, NONE, to };
        hn_status status = check_peer(comm, &call, in);

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(comm, comm->backend->exchange(comm->self, in, to, NULL, -1,
                                                                 n * hn_dtype_size(type)));
}

hn_status hn_recv(hn_comm *comm, void *out, size_t n, hn_dtype type, int from)
{
        struct collective_call call = { "recv", n, (int)type, NONE, from };
        hn_status status = check_peer(comm, &call, out);

        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(comm, comm->backend->exchange(comm->self, NULL, -1, out, from,
                                                                 n * hn_dtype_size(type)));
}

hn_status hn_send_recv(hn_comm *comm, const void *in, int to, void *out, int from, size_t n,
                       hn_dtype type)
{
        struct collective_call sent = { "send_recv", n, (int)type, NONE, to },
                               got = { "send_recv", n, (int)type, NONE, from };
        hn_status status = check_peer(comm, &sent, in);

        if (status == HN_OK)
                status = check_peer(comm, &got, out);
        if (status != HN_OK || n == 0)
                return status;
        return conclude_collective(comm, comm->backend->exchange(comm->self, in, to, out, from,
                                                                 n * hn_dtype_size(type)));
}
