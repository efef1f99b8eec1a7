/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bootstrap: gets the agent running at the far end of a link
 *
 * The remote command is one constant per agent: a shell line, understood by every login shell, that
 * looks for the agent by its content hash and replaces itself with it. When it is not there, the
 * line finds a folder that is writable and executable and asks for the agent:
 *
 *   HNLAUNCH-NEED x86_64     <- then the head sends exactly the agent's bytes
 *   HNLAUNCH-FAIL <reason>   <- no folder can take it
 *   HNLAUNCH-AGENT           <- MSG_MAGIC, the agent runs; frames follow
 *
 * What login scripts print before any of these is noise: it is kept for the error message.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* The agent's file, mapped into memory. */
struct image {
        const unsigned char *data;
        size_t len;
        char hash[33];    /* hex of the first 128 bits of its BLAKE2b */
        const char *arch; /* as uname -m says it, from the ELF header */
};

/* 0, or -errno: cannot be read, or is not an ELF program. */
int image_load(struct image *im, const char *path, struct error *err);
void image_finish(struct image *im);

/* The remote command line; malloc'ed. Contains nothing but hash and size. */
char *bootstrap_command(const struct image *im);

struct bootstrap {
        struct buf noise; /* the newest bytes before the greeting, at most 4 KiB */
        bool sent;        /* the agent was asked for */
        bool greeted;     /* for the owner: frames follow */
};

#define BOOTSTRAP_INIT                                                                             \
        {                                                                                          \
                BUF_INIT, false, false                                                             \
        }

enum { BOOTSTRAP_MORE = 0, BOOTSTRAP_UPLOAD = 1, BOOTSTRAP_GREETED = 2 };

/* Consumes what it understands of @in. MORE: wait for more bytes. UPLOAD: now send the image, then
 * go on. GREETED: frames follow in @in. -EPROTO with the reason: the agent cannot run there. */
int bootstrap_feed(struct bootstrap *b, const struct image *im, struct buf *in, struct error *err);
void bootstrap_finish(struct bootstrap *b);
