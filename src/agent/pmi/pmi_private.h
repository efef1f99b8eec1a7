/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI_private: ranks and their states, shared by the files of the engine
 *
 *   pmi.c      life cycle, input, fences, fetches and published names
 *   pmi1.c     the commands of PMI-1
 *   pmi2.c     the commands of PMI-2
 *
 *   NEW -> READY1 -> FINALIZED      FINALIZED -> READY1, READY2: the next program of a script
 *   NEW -> OPENING2 -> READY2 -> FINALIZED
 *   any -> BROKEN
 *
 * A rank has at most one request without an answer. While it waits, only abort is taken.
 */
#pragma once

#include "agent/pmi/pmi.h"
#include "agent/pmi/pmi_keys.h"
#include "agent/pmi/pmi_text.h"
#include "base/error.h"

enum pmi_state {
        PMI_NEW,
        PMI_READY1,
        PMI_OPENING2, /* version 2 was agreed on, fullinit follows */
        PMI_READY2,
        PMI_FINALIZED,
        PMI_BROKEN,
        PMI_STATES
};

enum pmi_wait { PMI_WAIT_NONE, PMI_WAIT_BARRIER, PMI_WAIT_KEY, PMI_WAIT_NODE_KEY, PMI_WAIT_NAME };

struct pmi_rank {
        struct pmi *pmi;
        uint32_t index, rank, program;
        enum pmi_state state;
        enum pmi_wait wait;
        bool left, aborted;
        bool has_put;  /* a key since the last barrier */
        char *key;     /* awaited */
        char *thread;  /* "thrid" of the request, to be given back */
        uint8_t asked; /* about a name: enum store_op */
        struct buf in;
        struct relay_client *client; /* since init: the rank to the head */
        bool in_spawn;               /* lines of a spawn are coming */
        int n_spawns, n_spawned;     /* as the lines say */
};

struct pmi {
        struct pmi_ops ops;
        void *ctx;
        struct relay *relay;
        struct fence_world world;
        struct fence *fence;
        struct relay_client *names;
        struct pmi_rank *ranks;
        uint32_t n_ranks, n_in_barrier, n_left;
        bool in_fence, fetching, only_version1;
        struct pmi_keys keys, node_keys;
        char *job, *mapping;
};

/* A command; false: @r broke a rule. */
typedef bool pmi_handler(struct pmi_rank *r, const struct pmi_command *c);

/* pmi.c */

/* Reports to the head that the rank has joined. */
void pmi_join(struct pmi_rank *r);
/* Tells the head to end the job with the exit code of the command. */
bool pmi_abort(struct pmi_rank *r, const struct pmi_command *c);
/* Enters the barrier; the answer comes by pmi1_release() or pmi2_release(). */
void pmi_enter_barrier(struct pmi_rank *r);
/* Answers with the value of @key by pmi1_tell_value() or pmi2_tell_value(), now or after a
 * fetch. */
void pmi_ask_key(struct pmi_rank *r, const char *key);
/* Puts a key; 0 or a negative errno, as pmi_keys_put(). -EPERM: a reserved key. */
int pmi_put(struct pmi_rank *r, const char *key, const char *value);
void pmi_send(struct pmi_rank *r, const struct buf *bytes);

/* pmi1.c, pmi2.c: take a message; send an awaited answer. A NULL @value or @port: none. */
bool pmi1_take(struct pmi_rank *r, char *text, size_t len);
void pmi1_release(struct pmi_rank *r, const char *failure);
void pmi1_tell_value(struct pmi_rank *r, const char *value);
void pmi1_tell_name(struct pmi_rank *r, bool good, const char *port);
bool pmi2_take(struct pmi_rank *r, char *text, size_t len);
void pmi2_release(struct pmi_rank *r, const char *failure);
void pmi2_tell_value(struct pmi_rank *r, const char *value);
void pmi2_tell_name(struct pmi_rank *r, bool good, const char *port);

/* Publishes @port as @name, or with STORE_FETCH finds the port of @name, or with STORE_DELETE
 * removes @name. */
void pmi_ask_name(struct pmi_rank *r, uint8_t op, const char *name, const char *port);
