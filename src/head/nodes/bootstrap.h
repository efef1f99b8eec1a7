/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bootstrap: gets the agent running at the far end of a link
 *
 * The remote command is one constant per installation: a shell line, understood by every login
 * shell, which looks for the machine's agent by its id and becomes that agent by exec. If
 * there is none, the line finds a writable and executable folder and asks for the agent:
 *
 *   HNLAUNCH-NEED x86_64     <- the head answers with exactly that agent's bytes
 *   HNLAUNCH-FAIL <reason>   <- no folder is suitable
 *   HNLAUNCH-CONTAINER <reason>  <- the agent cannot enter the ordered container
 *   HNLAUNCH-AGENT           <- MSG_MAGIC, the agent runs; frames follow
 *
 * The output of login scripts before any of these is noise, kept for the error message.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "head/nodes/agent_binary.h"

/* Returns the remote command line, malloc'ed. The variable parts are machines, ids and sizes,
 * and @container, the order as of container_order_encode(), or NULL. */
char *bootstrap_command(const struct agent_binaries *set, const char *container);

/* Begins zeroed; the owner frees @noise. */
struct bootstrap {
        struct buf noise;                /* the newest bytes before the greeting, at most 4 KiB */
        const struct agent_binary *sent; /* the requested agent, or NULL */
        bool greeted;                    /* for the owner: frames follow */
};

/* Adds the output of the login on standard error. */
void bootstrap_keep_noise(struct bootstrap *b, const void *text, size_t len);
/* Returns the last line of @noise with visible text, for a message; malloc'ed, "" = none. */
char *bootstrap_last_words(const struct bootstrap *b);

enum bootstrap_result {
        BOOTSTRAP_MORE,    /* wait for more bytes */
        BOOTSTRAP_UPLOAD,  /* send b->sent, then call again */
        BOOTSTRAP_GREETED, /* frames follow in @in */
        /* With the reason in @err: */
        BOOTSTRAP_NO_AGENT,     /* @set has no agent for the machine */
        BOOTSTRAP_NO_CONTAINER, /* the agent cannot enter the container */
        BOOTSTRAP_CANNOT_RUN,   /* the agent cannot run there */
};

/* Consumes noise and marks from @in. */
enum bootstrap_result bootstrap_feed(struct bootstrap *b, const struct agent_binaries *set,
                                     struct buf *in, struct error *err);
