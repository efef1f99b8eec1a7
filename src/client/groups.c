/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: subsets of the world, and the collectives of their members over the store
 *
 * A group is a list of world ranks and a name; no server knows groups. A collective sends the name
 * and the members to the store, which completes the request when all members have arrived, so
 * members must use the same name for the same list. hn_group_split() gathers color and key of all
 * members of the parent, and each computes the same lists from them.
 *
 * Groups of a node or a role are lists, too, made from the topology or from HN_WORLD_ROLES.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "client/core/deadline.h"
#include "client/core/last_error.h"
#include "client/process.h"

enum { NAME_MAX_BYTES = 200 }; /* of 255 in struct hn_group: comm.c appends to the name */

/* The arguments of one member of hn_group_split(). */
struct split_request {
        int color, key;
        uint32_t splits; /* number of splits that the member has seen */
};

/* Splits seen by this process: the source of distinct names for groups of one color. */
static atomic_uint splits_seen;

struct split_member {
        int key, rank; /* world rank */
};

/* NULL stands for the world, and is returned before hn_init(). */
static const hn_group *resolve_group(const hn_group *group)
{
        return group ? group : hn_world();
}

const char *hn_get_name(const hn_group *group)
{
        group = resolve_group(group);
        return group ? group->name : NULL;
}

int hn_get_rank(const hn_group *group)
{
        group = resolve_group(group);
        return group ? group->my_rank : HN_ERR_NOT_LAUNCHED;
}

int hn_get_world_size(const hn_group *group)
{
        group = resolve_group(group);
        return group ? group->n : HN_ERR_NOT_LAUNCHED;
}

const char *hn_get_backend(const hn_group *group)
{
        group = resolve_group(group);
        return group ? group->backend : NULL;
}

int hn_get_global_rank(const hn_group *group, int group_rank)
{
        group = resolve_group(group);
        if (!group)
                return HN_ERR_NOT_LAUNCHED;
        if (group_rank < 0 || group_rank >= group->n)
                return set_error(HN_ERR_INVALID, "group `%s` has no rank %d", group->name,
                                 group_rank);
        return group->ranks ? group->ranks[group_rank] : group_rank;
}

int hn_get_group_rank(const hn_group *group, int world_rank)
{
        group = resolve_group(group);
        if (!group)
                return HN_ERR_NOT_LAUNCHED;
        for (int i = 0; i < group->n; i++)
                if ((group->ranks ? group->ranks[i] : i) == world_rank)
                        return i;
        return set_error(HN_ERR_NOT_MEMBER, "rank %d is not in group `%s`", world_rank,
                         group->name);
}

/* Writes at most @cap ranks, and returns the size of the whole group. */
int hn_get_group_ranks(const hn_group *group, int *out, int cap)
{
        group = resolve_group(group);
        if (!group)
                return HN_ERR_NOT_LAUNCHED;
        for (int i = 0; i < group->n && i < cap; i++)
                out[i] = group->ranks ? group->ranks[i] : i;
        return group->n;
}

void hn_group_free(hn_group *group)
{
        /* The world, the only group without a list, belongs to the library. */
        if (group && group->ranks)
                free(group);
}

/* Sends a collective request of @group, NULL = the world. */
static hn_status call_collective(const hn_group *group, struct store_request *req,
                                 int64_t timeout_ms, struct conn_answer *ret)
{
        struct process *process = process_get();

        if (!process)
                return HN_ERR_NOT_LAUNCHED;
        if (!group)
                group = &process->world;
        req->key = bytes_of(group->name);
        if (group->ranks) {
                req->n_members = (uint32_t)group->n;
                /* Ranks are not negative: both types hold the same bits. */
                req->members = (uint32_t *)group->ranks;
        }
        return conn_call(process->conn, req, timeout_ms, ret);
}

hn_status hn_barrier(hn_group *group, int64_t timeout_ms)
{
        struct store_request req = { .op = STORE_BARRIER };

        return call_collective(group, &req, timeout_ms, NULL);
}

hn_status hn_broadcast_bytes(hn_group *group, void *buf, size_t len, int root, int64_t timeout_ms)
{
        struct store_request req = { .op = STORE_BROADCAST, .root = (uint32_t)root };
        struct conn_answer a = CONN_ANSWER_INIT;
        const hn_group *g = resolve_group(group);
        hn_status status;

        if (!g)
                return HN_ERR_NOT_LAUNCHED;
        if (root < 0 || root >= g->n || len > HN_VALUE_MAX || (len && !buf))
                return set_error(HN_ERR_INVALID,
                                 "broadcast of %zu bytes from rank %d of %d: no buffer, too long, "
                                 "or no such rank",
                                 len, root, g->n);
        if (root == g->my_rank) /* the others send no value */
                req.value = (struct bytes){ buf, len };
        status = call_collective(g, &req, timeout_ms, &a);
        if (status != HN_OK)
                return status;
        /* The store passes on what the root has sent; the lengths were never compared. */
        if (a.len != len)
                status = set_error(HN_ERR_MISMATCH,
                                   "rank %d broadcast %zu bytes, this rank expected %zu", root,
                                   a.len, len);
        else if (len && root != g->my_rank)
                memcpy(buf, a.value, len);
        conn_answer_finish(&a);
        return status;
}

hn_status hn_all_gather_bytes(hn_group *group, const void *send, size_t len, void *recv,
                              int64_t timeout_ms)
{
        struct store_request req = { .op = STORE_GATHER, .value = { send, len } };
        struct conn_answer a = CONN_ANSWER_INIT;
        const hn_group *g = resolve_group(group);
        hn_status status;

        if (!g)
                return HN_ERR_NOT_LAUNCHED;
        /* The limit is for the answer, with the values of all members. */
        if (len > HN_VALUE_MAX / (size_t)g->n || (len && (!send || !recv)))
                return set_error(HN_ERR_INVALID,
                                 "all_gather of %d times %zu bytes: a buffer is NULL, or too long",
                                 g->n, len);
        status = call_collective(g, &req, timeout_ms, &a);
        if (status != HN_OK)
                return status;
        if (a.len != len * (size_t)g->n)
                status = set_error(HN_ERR_PROTOCOL, "all_gather returned %zu bytes instead of %zu",
                                   a.len, len * (size_t)g->n);
        else if (a.len)
                memcpy(recv, a.value, a.len);
        conn_answer_finish(&a);
        return status;
}

/* Checks that the list names existing ranks once each, this rank among them: other ranks would wait
 * for a wrong member. */
static hn_status check_member_ranks(const struct process *process, const int *ranks, int n)
{
        char *seen = calloc((size_t)process->world_size, 1);
        hn_status status = HN_OK;

        if (!seen)
                return set_error(HN_ERR_NOMEM, "out of memory");
        for (int i = 0; i < n && status == HN_OK; i++) {
                if (ranks[i] < 0 || ranks[i] >= process->world_size)
                        status = set_error(HN_ERR_INVALID, "there is no rank %d", ranks[i]);
                else if (seen[ranks[i]]++)
                        status = set_error(HN_ERR_INVALID, "rank %d is listed twice", ranks[i]);
        }
        if (status == HN_OK && !seen[process->rank])
                status = set_error(HN_ERR_NOT_MEMBER, "this rank, %d, is not in the list",
                                   process->rank);
        free(seen);
        return status;
}

hn_status hn_group_create(const char *name, const int *world_ranks, int n, const char *backend,
                          int64_t timeout_ms, hn_group **out)
{
        struct process *process = process_get();
        hn_status status;
        hn_group *g;

        if (!process)
                return HN_ERR_NOT_LAUNCHED;
        if (!name || !*name || strlen(name) > NAME_MAX_BYTES || !world_ranks || n < 1 || !out)
                return set_error(
                        HN_ERR_INVALID,
                        "a group needs a name of 1 to 200 bytes, at least one rank and `out`");
        /* A list under the name of the world would meet the collectives of the world. */
        if (strcmp(name, process->world.name) == 0)
                return set_error(HN_ERR_INVALID, "the name `%s` is reserved", name);
        status = check_member_ranks(process, world_ranks, n);
        if (status != HN_OK)
                return status;
        /* The list follows the struct, so hn_group_free() frees both at once. */
        g = calloc(1, sizeof(*g) + (size_t)n * sizeof(*g->ranks));
        if (!g)
                return set_error(HN_ERR_NOMEM, "out of memory");
        g->ranks = (int *)(g + 1);
        memcpy(g->ranks, world_ranks, (size_t)n * sizeof(*g->ranks));
        g->n = n;
        snprintf(g->name, sizeof(g->name), "%s", name);
        snprintf(g->backend, sizeof(g->backend), "%s", backend ? backend : "none");
        g->my_rank = hn_get_group_rank(g, process->rank);
        /* The store compares the lists of all members here, before any other collective. */
        status = hn_barrier(g, timeout_ms);
        if (status == HN_OK)
                *out = g;
        else
                hn_group_free(g);
        return status;
}

/* Equal keys keep the order of the world. */
static int by_key_and_rank(const void *a, const void *b)
{
        const struct split_member *x = a, *y = b;

        if (x->key != y->key)
                return x->key < y->key ? -1 : 1;
        return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Lists the world ranks with @color, by key and rank; returns how many, -1 without memory. */
static int choose_members(const hn_group *parent, const struct split_request *requests, int color,
                          int *ranks)
{
        struct split_member *members = malloc((size_t)parent->n * sizeof(*members));
        int n = 0;

        if (!members)
                return -1;
        for (int i = 0; i < parent->n; i++)
                if (requests[i].color == color)
                        members[n++] =
                                (struct split_member){ requests[i].key,
                                                       parent->ranks ? parent->ranks[i] : i };
        qsort(members, (size_t)n, sizeof(*members), by_key_and_rank);
        for (int i = 0; i < n; i++)
                ranks[i] = members[i].rank;
        free(members);
        return n;
}

/*
 * Two splits of one parent may exist side by side, and equal names would mix their collectives. The
 * highest count of the members, plus one, differs between any two splits with a common member;
 * without a common member equal names do no harm. The first split of a job has the plain name.
 */
static uint32_t number_split(const struct split_request *requests, int n)
{
        uint32_t most = 0, seen = atomic_load(&splits_seen);

        for (int i = 0; i < n; i++)
                most = MAX(most, requests[i].splits);
        most++;
        /* Raises the counter to @most, unless another thread has raised it further. */
        while (seen < most && !atomic_compare_exchange_weak(&splits_seen, &seen, most))
                ;
        return most;
}

/* Makes the group of @color from the requests of all members. @ranks has space for all of them. A
 * negative @color: *out is NULL. */
static hn_status make_split_group(const hn_group *parent, const struct split_request *requests,
                                  int *ranks, int color, int64_t timeout_ms, hn_group **out)
{
        /* Also for a rank without a group, whose count must keep up with the others. */
        uint32_t number = number_split(requests, parent->n);
        char name[NAME_MAX_BYTES + 1], suffix[16] = "";
        int n;

        if (color < 0) {
                *out = NULL;
                return HN_OK;
        }
        n = choose_members(parent, requests, color, ranks);
        if (n < 0)
                return set_error(HN_ERR_NOMEM, "out of memory");
        if (number > 1)
                snprintf(suffix, sizeof(suffix), "#%u", number);
        if (snprintf(name, sizeof(name), "%s/%d%s", parent->name, color, suffix) > NAME_MAX_BYTES)
                return set_error(HN_ERR_INVALID, "the name `%s...` is too long", name);
        return hn_group_create(name, ranks, n, parent->backend, timeout_ms, out);
}

hn_status hn_group_split(hn_group *parent, int color, int key, int64_t timeout_ms, hn_group **out)
{
        const hn_group *p = resolve_group(parent);
        struct split_request mine = { color, key, atomic_load(&splits_seen) }, *requests;
        int64_t deadline = deadline_in(timeout_ms);
        hn_status status;
        int *ranks;

        if (!p)
                return HN_ERR_NOT_LAUNCHED;
        if (!out)
                return set_error(HN_ERR_INVALID, "`out` must not be NULL");
        requests = calloc((size_t)p->n, sizeof(*requests));
        ranks = calloc((size_t)p->n, sizeof(*ranks));
        if (requests && ranks)
                status = hn_all_gather_bytes(parent, &mine, sizeof(mine), requests, timeout_ms);
        else
                status = set_error(HN_ERR_NOMEM, "out of memory");
        /* The new group's barrier has the rest of the time. */
        if (deadline != INT64_MAX)
                timeout_ms = MAX(deadline - clock_ms(), 0);
        if (status == HN_OK)
                status = make_split_group(p, requests, ranks, color, timeout_ms, out);
        free(requests);
        free(ranks);
        return status;
}

/* Creates a group of ranks on the nodes @from to @to - 1: of all, or of the lowest rank of each
 * node, in the order of the nodes; a node may have none. *out = NULL when this rank is not in it.
 */
static hn_status create_node_group(const char *name, int from, int to, bool lowest, hn_group **out)
{
        const struct process *process = process_get(); /* not NULL: the callers have looked */
        int *ranks = calloc((size_t)process->world_size, sizeof(*ranks)), n = 0;
        bool member = false;
        hn_status status = HN_OK;

        if (!ranks)
                return set_error(HN_ERR_NOMEM, "out of memory");
        for (int node = from; node < to; node++)
                for (int i = 0; i < process->world_size; i++) {
                        if (!process->singleton && (int)process->where.node_of_rank[i] != node)
                                continue;
                        ranks[n++] = i;
                        member |= i == process->rank;
                        if (lowest)
                                break;
                }
        /* The ranks of a node include this rank, so only a list of leaders may leave it out. */
        if (member || !lowest)
                status = hn_group_create(name, ranks, n, NULL, HN_DEFAULT_TIMEOUT, out);
        else
                *out = NULL;
        free(ranks);
        return status;
}

hn_status hn_group_local(hn_group **out)
{
        struct process *process = process_get();
        hn_status status = process ? process_locate(process) : HN_ERR_NOT_LAUNCHED;
        char name[32];

        if (status != HN_OK)
                return status;
        snprintf(name, sizeof(name), "node/%d", process->node_rank);
        return create_node_group(name, process->node_rank, process->node_rank + 1, false, out);
}

hn_status hn_group_leaders(hn_group **out)
{
        struct process *process = process_get();
        hn_status status = process ? process_locate(process) : HN_ERR_NOT_LAUNCHED;

        if (status != HN_OK)
                return status;
        if (!out)
                return set_error(HN_ERR_INVALID, "`out` must not be NULL");
        return create_node_group("leaders", 0, process->num_nodes, true, out);
}

/* Finds a role in @list, "trainer:0-7,router:8": its first rank and their number. False: it is not
 * there, or the list is malformed. */
static bool find_role_ranks(const char *list, const char *role, int *first, int *n)
{
        size_t len = strlen(role);

        for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
                int from, to, end = 0;

                if (strncmp(at, role, len) != 0 || at[len] != ':')
                        continue;
                /* "8" is a single rank: the second number is missing, and @end stands behind the
                 * first. */
                if (sscanf(at + len, ":%d%n-%d%n", &from, &end, &to, &end) < 2)
                        to = from;
                *first = from;
                *n = to - from + 1;
                return end && (!at[len + (size_t)end] || at[len + (size_t)end] == ',') &&
                       from >= 0 && to >= from;
        }
        return false;
}

static hn_status create_range_group(const char *name, int first, int n, int64_t timeout_ms,
                                    hn_group **out)
{
        int *ranks = calloc((size_t)n, sizeof(*ranks));
        hn_status status;

        if (!ranks)
                return set_error(HN_ERR_NOMEM, "out of memory");
        for (int i = 0; i < n; i++)
                ranks[i] = first + i;
        status = hn_group_create(name, ranks, n, NULL, timeout_ms, out);
        free(ranks);
        return status;
}

hn_status hn_role_group(const char *role, int64_t timeout_ms, hn_group **out)
{
        const struct process *process = process_get();
        char name[NAME_MAX_BYTES + 1];
        int first, n;

        if (!process)
                return HN_ERR_NOT_LAUNCHED;
        if (!out)
                return set_error(HN_ERR_INVALID, "`out` must not be NULL");
        if (!process->role.name)
                return set_error(HN_ERR_UNSUPPORTED,
                                 "the job has no roles: hnlaunch --role NAME PROGRAM");
        if (!role)
                role = process->role.name;
        if (!find_role_ranks(process->role.world, role, &first, &n) ||
            first + n > process->world_size)
                return set_error(HN_ERR_INVALID,
                                 "no role `%.64s` in this world, which has %s: hnlaunch --world "
                                 "NAME puts roles into one",
                                 role, process->role.world);
        if (process->rank < first || process->rank >= first + n) { /* this rank has another role */
                *out = NULL;
                return HN_OK;
        }
        snprintf(name, sizeof(name), "role/%s", role);
        return create_range_group(name, first, n, timeout_ms, out);
}
