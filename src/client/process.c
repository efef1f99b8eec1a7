/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hn_init() fills the one struct process of this program. The environment decides between three
 * ways: HN_RANK (started by hnlaunch: socket of the node's agent), TORCHELASTIC_RUN_ID and RANK
 * (started by torchrun: the TCPStore of torchrun's agent), or, only with HN_INIT_ALLOW_SINGLETON, a
 * world of one with an engine in this process. Both launchers set the same seven numbers under
 * different names (struct env_names). The struct is built aside and copied once all has succeeded,
 * so `conn` is set exactly while the library is initialized. The topology is fetched on first use.
 */
#include "client/process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/core/last_error.h"
#include "client/torchrun/torch_store.h"
#include "wire/env_names.h"

static struct process the_process; /* all zero before hn_init() and after hn_finalize() */
static pthread_mutex_t locate_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the_process.where */

struct process *process_get(void)
{
        if (the_process.conn)
                return &the_process;
        set_error(HN_ERR_NOT_LAUNCHED, "hn_init() was not called");
        return NULL;
}

/* The variables of a launcher. */
struct env_names {
        const char *launcher;
        const char *world_size, *rank, *local_world_size, *local_rank, *num_nodes, *node_rank;
        const char *restart;
};

static const struct env_names hnlaunch = { "hnlaunch",          HN_WORLD_SIZE, HN_RANK,
                                           HN_LOCAL_WORLD_SIZE, HN_LOCAL_RANK, HN_NUM_NODES,
                                           HN_NODE_RANK,        HN_RESTART };
static const struct env_names torchrun = { "torchrun",   "WORLD_SIZE",
                                           "RANK",       "LOCAL_WORLD_SIZE",
                                           "LOCAL_RANK", "GROUP_WORLD_SIZE",
                                           "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT" };

/* Reads a variable of the launcher. HN_ERR_NOT_LAUNCHED: not set. */
static hn_status read_env_number(const char *launcher, const char *name, int least, int most,
                                 int *ret)
{
        const char *text = getenv(name);
        char *end;
        long v;

        if (!text)
                return set_error(HN_ERR_NOT_LAUNCHED, "%s is not set: start the program with %s",
                                 name, launcher);
        errno = 0;
        v = strtol(text, &end, 10);
        if (errno || end == text || *end || v < least || v > most)
                return set_error(HN_ERR_INVALID, "%s=%s is not a number from %d to %d", name, text,
                                 least, most);
        *ret = (int)v;
        return HN_OK;
}

/* Fills in ranks and sizes from the variables of hnlaunch or of torchrun, checked against each
 * other. */
static hn_status read_environment(struct process *s, const struct env_names *n)
{
        hn_status st = read_env_number(n->launcher, n->world_size, 1, INT_MAX, &s->world_size);

        if (st == HN_OK)
                st = read_env_number(n->launcher, n->rank, 0, s->world_size - 1, &s->rank);
        if (st == HN_OK)
                st = read_env_number(n->launcher, n->local_world_size, 1, s->world_size,
                                     &s->local_world_size);
        if (st == HN_OK)
                st = read_env_number(n->launcher, n->local_rank, 0, s->local_world_size - 1,
                                     &s->local_rank);
        if (st == HN_OK)
                st = read_env_number(n->launcher, n->num_nodes, 1, s->world_size, &s->num_nodes);
        if (st == HN_OK)
                st = read_env_number(n->launcher, n->node_rank, 0, s->num_nodes - 1, &s->node_rank);
        if (st == HN_OK && getenv(n->restart))
                st = read_env_number(n->launcher, n->restart, 0, INT_MAX, &s->restart);
        return st;
}

static void role_finish(struct process_role *r)
{
        free(r->name);
        free(r->world);
        *r = (struct process_role){ .name = NULL };
}

/* Copies the texts, because the program may change the environment later. */
static hn_status read_role(struct process_role *r)
{
        const char *name = getenv(HN_ROLE), *world = getenv(HN_WORLD_ROLES);

        if (!name) /* a job without roles */
                return HN_OK;
        r->name = strdup(name);
        r->world = strdup(world ? world : "");
        if (!r->name || !r->world)
                return set_error(HN_ERR_NOMEM, "out of memory");
        return read_env_number(hnlaunch.launcher, HN_ROLE_INDEX, 0, INT_MAX, &r->index);
}

/* Started by hnlaunch: HN_STORE is the path of the agent's socket on this node. */
static hn_status join_job(struct process *s, int64_t timeout_ms)
{
        const char *path = getenv(HN_STORE);
        hn_status status = read_environment(s, &hnlaunch);

        if (status == HN_OK)
                status = read_role(&s->role);
        if (status != HN_OK)
                return status;
        if (!path)
                return set_error(HN_ERR_NOT_LAUNCHED,
                                 "HN_STORE is not set: start the program with hnlaunch");
        return conn_open(path, timeout_ms, &s->conn);
}

/* torchrun's agent listens at MASTER_ADDR:MASTER_PORT if TORCHELASTIC_USE_AGENT_STORE says so; else
 * rank 0's PyTorch would listen there, and this program has no PyTorch. */
static hn_status join_torchrun(struct process *s, int64_t timeout_ms)
{
        const char *addr = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
        const char *serves = getenv("TORCHELASTIC_USE_AGENT_STORE");
        hn_status status = read_environment(s, &torchrun);
        struct torch_job job;

        if (status != HN_OK)
                return status;
        /* PyTorch writes Python's str(bool), so the value is "True". */
        if (!serves || strcmp(serves, "True") != 0)
                return set_error(
                        HN_ERR_UNSUPPORTED,
                        "torchrun's agent serves no store with this rendezvous "
                        "(TORCHELASTIC_USE_AGENT_STORE=%s): start it without --standalone and with "
                        "--rdzv_backend=static, or with hnlaunch",
                        serves ? serves : "");
        if (!addr || !port)
                return set_error(HN_ERR_NOT_LAUNCHED,
                                 "MASTER_ADDR or MASTER_PORT is not set: start the "
                                 "program with torchrun");
        job = (struct torch_job){ .addr = addr,
                                  .port = port,
                                  .run_id = getenv("TORCHELASTIC_RUN_ID"),
                                  .error_file = getenv("TORCHELASTIC_ERROR_FILE"),
                                  .restart = s->restart,
                                  .rank = (uint32_t)s->rank,
                                  .world_size = (uint32_t)s->world_size,
                                  .first_rank = (uint32_t)(s->rank - s->local_rank),
                                  .local_world_size = (uint32_t)s->local_world_size,
                                  .node_rank = (uint32_t)s->node_rank,
                                  .num_nodes = (uint32_t)s->num_nodes };
        return torch_store_open(&job, timeout_ms, &s->conn);
}

/* A world of one: ranks and sizes need no environment, and the store lives in this process. */
static hn_status init_singleton(struct process *s)
{
        s->singleton = true;
        s->world_size = s->local_world_size = s->num_nodes = 1;
        return conn_open_local(&s->conn);
}

hn_status hn_init(const hn_init_opts *opts)
{
        struct process s = { .world = { .name = "world", .backend = "none" } };
        struct store_request hello = { .op = STORE_HELLO };
        int64_t timeout_ms = HN_DEFAULT_TIMEOUT;
        uint32_t flags = 0;
        hn_status status;

        if (the_process.conn) /* a second call changes nothing */
                return HN_OK;
        if (opts && opts->size < sizeof(*opts))
                return set_error(HN_ERR_INVALID, "hn_init_opts.size is not set");
        if (opts) {
                flags = opts->flags;
                /* 0, as in a struct cleared by the program, is the default here and not "now". */
                timeout_ms = opts->timeout_ms ? opts->timeout_ms : HN_DEFAULT_TIMEOUT;
        }
        /* Unknown bits come from a program for a newer library. */
        if (flags & ~(uint32_t)HN_INIT_ALLOW_SINGLETON)
                return set_error(HN_ERR_INVALID, "hn_init_opts.flags has unknown bits: 0x%x",
                                 flags);
        if (getenv(HN_RANK))
                status = join_job(&s, timeout_ms);
        else if (getenv("TORCHELASTIC_RUN_ID") && getenv("RANK"))
                status = join_torchrun(&s, timeout_ms);
        else if (flags & HN_INIT_ALLOW_SINGLETON)
                status = init_singleton(&s);
        else
                status = set_error(HN_ERR_NOT_LAUNCHED, "not started by hnlaunch: start it with "
                                                        "`hnlaunch --local 1 PROGRAM`");
        /* The first message names the rank. A world of one has no other rank to tell. */
        hello.number = s.rank;
        if (status == HN_OK && !s.singleton)
                status = conn_call(s.conn, &hello, timeout_ms, NULL);
        if (status != HN_OK) {
                conn_close(s.conn); /* NULL is fine: the connection may never have been opened */
                role_finish(&s.role);
                return status;
        }
        s.world.n = s.world_size;
        s.world.my_rank = s.rank;
        the_process = s; /* from here on process_get() finds the connection */
        return HN_OK;
}

int hn_is_initialized(void)
{
        return the_process.conn != NULL;
}

/* Handles of the program (stores, groups) stay, to be closed by the program. */
hn_status hn_finalize(void)
{
        if (!process_get())
                return HN_ERR_NOT_LAUNCHED;
        conn_close(the_process.conn);
        topology_finish(&the_process.where);
        role_finish(&the_process.role);
        the_process = (struct process){ 0 };
        return HN_OK;
}

hn_status process_locate(struct process *s)
{
        struct store_request req = { .op = STORE_TOPOLOGY };
        struct conn_answer a = CONN_ANSWER_INIT;
        struct error err;
        hn_status status = HN_OK;

        /* Threads may ask for a place at the same time; one of them fetches the topology. */
        pthread_mutex_lock(&locate_mutex);
        if (!s->where.hosts && !s->singleton) {
                status = conn_call(s->conn, &req, HN_DEFAULT_TIMEOUT, &a);
                if (status == HN_OK && topology_decode(&s->where, a.value, a.len, &err) < 0)
                        status = set_error(HN_ERR_PROTOCOL, "%s", err.text);
                conn_answer_finish(&a);
                /* node_of_rank is read by rank without a further check. */
                if (status == HN_OK && s->where.world_size != (uint32_t)s->world_size) {
                        status = set_error(HN_ERR_PROTOCOL,
                                           "the agent lists the nodes of %u ranks, " HN_WORLD_SIZE
                                           " is %d",
                                           s->where.world_size, s->world_size);
                        topology_finish(&s->where);
                }
        }
        pthread_mutex_unlock(&locate_mutex);
        return status;
}

/* Unlike process_get(), these leave no sentence for hn_last_error(). */
#define PROCESS_NUMBER(function, field)                                                            \
        int function(void)                                                                         \
        {                                                                                          \
                return the_process.conn ? the_process.field : HN_ERR_NOT_LAUNCHED;                 \
        }

PROCESS_NUMBER(hn_rank, rank)
PROCESS_NUMBER(hn_world_size, world_size)
PROCESS_NUMBER(hn_local_rank, local_rank)
PROCESS_NUMBER(hn_local_world_size, local_world_size)
PROCESS_NUMBER(hn_node_rank, node_rank)
PROCESS_NUMBER(hn_num_nodes, num_nodes)
PROCESS_NUMBER(hn_restart_count, restart)
PROCESS_NUMBER(hn_role_index, role.index)

/* NULL before hn_init(), and in a job without roles. */
const char *hn_role(void)
{
        return the_process.role.name;
}

int hn_node_of(int world_rank)
{
        struct process *s = process_get();
        hn_status status = s ? process_locate(s) : HN_ERR_NOT_LAUNCHED;

        if (status != HN_OK)
                return status;
        if (world_rank < 0 || world_rank >= s->world_size)
                return set_error(HN_ERR_INVALID, "there is no rank %d", world_rank);
        return s->singleton ? 0 : (int)s->where.node_of_rank[world_rank];
}

/* The name is lent until hn_finalize(). */
const char *hn_hostname_of(int world_rank)
{
        int node = hn_node_of(world_rank);

        if (node < 0)
                return NULL;
        return the_process.singleton ? "localhost" : the_process.where.hosts[node];
}

hn_group *hn_world(void)
{
        return process_get() ? &the_process.world : NULL;
}

hn_store *hn_store_default(void)
{
        return process_get() ? &the_process.store : NULL;
}

/* Also after hn_finalize(). */
void hn_store_close(hn_store *store)
{
        if (store != &the_process.store) /* the default store is part of the process */
                free(store);
}
