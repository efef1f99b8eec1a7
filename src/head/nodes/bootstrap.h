/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bootstrap: gets the agent running at the far end of a link
 *
 * The remote command is one constant per installation: a shell line, understood by every login
 * shell, that looks for the agent of its machine by content hash and replaces itself with it. When
 * it is not there, the line finds a folder that is writable and executable and asks for the agent:
 *
 *   HNLAUNCH-NEED x86_64     <- then the head sends exactly that agent's bytes; or there is none
 *   HNLAUNCH-FAIL <reason>   <- no folder can take it
 *   HNLAUNCH-AGENT           <- MSG_MAGIC, the agent runs; frames follow
 *
 * What login scripts print before any of these is noise: it is kept for the error message.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "head/nodes/agent_binary.h"

/* The remote command line; malloc'ed. Contains nothing but machines, hashes and sizes. */
char *bootstrap_command(const struct agent_binaries *set);

struct bootstrap {
        struct buf noise;                /* the newest bytes before the greeting, at most 4 KiB */
        const struct agent_binary *sent; /* the agent that was asked for, or NULL */
        bool greeted;                    /* for the owner: frames follow */
};

#define BOOTSTRAP_INIT                                                                             \
        {                                                                                          \
                BUF_INIT, NULL, false                                                              \
        }

enum { BOOTSTRAP_MORE = 0, BOOTSTRAP_UPLOAD = 1, BOOTSTRAP_GREETED = 2 };

/* Consumes what it understands of @in. MORE: wait for more bytes. UPLOAD: now send b->sent, then
 * go on. GREETED: frames follow in @in. -ENOEXEC: @set has no agent for that machine. -EPROTO with
 * the reason: the agent cannot run there. */
int bootstrap_feed(struct bootstrap *b, const struct agent_binaries *set, struct buf *in,
                   struct error *err);
void bootstrap_finish(struct bootstrap *b);
