/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport hold: links to agents that a hold has prepared
 *
 * hold_take() asks a hold for the agents of a run. The transport then opens a link for each host as
 * the hold gives the stream. Other hosts, and further links to a host, go by another transport,
 * made when needed. Main loop's thread only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "head/hosts/hosts.h"
#include "head/nodes/transport.h"

/* The hold of a run. */
struct held;

/* Why hold_take() has found no usable hold. */
struct hold_refusal {
        enum {
                HOLD_NONE,    /* no hold listens */
                HOLD_USED,    /* a run has one of the hosts */
                HOLD_DIFFERS, /* the settings differ */
                HOLD_MISSING, /* the hold lacks a host */
                HOLD_SILENT,  /* no answer, or an error */
        } why;
        char hold[16];  /* "" = unknown */
        char text[512]; /* the run, the settings, the host, or the error */
        char host[256]; /* of HOLD_USED */
};

struct hold_run {
        const char *id;
        const char *program; /* a hold may have interpreters for this word; NULL = not known */
};

/* Prepares the other transport, before the first host without a grant. */
struct hold_prepare {
        int (*call)(void *ctx, struct error *err); /* 0, or -errno with @err */
        void *ctx;
};

/* Takes the agents of the hold at @path for the @run on all @hosts but this machine. NULL
 * with @ret. */
struct held *hold_take(const char *path, const struct hold_run *run, const json_t *settings,
                       const struct hosts *hosts, const struct hold_prepare *prepare,
                       struct hold_refusal *ret);
const char *held_id(const struct held *h);
/* Returns the maker of the transport, for one use; @h outlives the transport. */
const struct transport_maker *held_maker(const struct held *h);
/* Gives unused agents back. NULL is fine. */
void held_free(struct held *h);
