/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hold: agents that wait for runs, in the process of `hnlaunch hold`
 *
 * Listens for runs of the same user (head/hold/hold_socket.h), and gives each run prepared agents
 * (head/hold/prepared.h). A node serves one run at a time. Loop's thread only.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <uv.h>

#include "head/hold/prepared.h"
#include "head/hosts/hosts.h"
#include "head/nodes/transport.h"
#include "wire/warm_msg.h"

struct hold;

struct hold_config {
        const char *id;
        const struct hosts *hosts;
        json_t *settings; /* hold_match_settings(); lent */
        int64_t idle_ms;  /* the hold ends after this time without a run; DURATION_NEVER */
        int64_t start_ns; /* clock_ns() of the start */
        /* Prepared on each node before a run, apart from the slots; lent. NULL = nothing. */
        const struct warm_order *warm;
        const uint32_t *slots; /* by host, of @warm; lent */
        const char **venvs;    /* by host: the copy of --venv, NULL = the path of @warm; lent */
        /* The hold was released, or has had no run for idle_ms, and is to end. */
        void (*ended)(void *ctx, const char *why);
        void *ctx;
};

/* Listens for runs, and prepares agents on the @nodes, one for each host but hosts of this machine.
 * All is borrowed. NULL with @err: HN_HOLD_EXISTS, a hold with the same settings and hosts exists,
 * or HN_HOLD_SILENT, that hold does not answer. */
struct hold *hold_open(uv_loop_t *loop, const struct hold_nodes *nodes, const struct hold_config *c,
                       struct error *err);
/* Whether each node, unless lost or silent, has a prepared agent, with interpreters or with the
 * reason of their absence, and there is such a node. Not to be asked again once true. */
bool hold_is_ready(struct hold *h);
/* After hold_is_ready(): whether it is not, as all nodes are lost, or given up because agents
 * cannot be prepared there. */
bool hold_is_useless(const struct hold *h);
/* Takes a TUNNEL of node @i. Negative with @err: malformed. */
int hold_receive(struct hold *h, size_t i, const struct frame *f, struct error *err);
/* Node @i is lost. @why may be NULL. */
void hold_lose_node(struct hold *h, size_t i, const struct link_failure *why);
/* Removes the socket and ends all prepared agents. Their runs lose their nodes. */
void hold_close(struct hold *h);
/* Frees the memory when the loop has turned. */
void hold_free(struct hold *h);
