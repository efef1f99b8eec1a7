/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm_msg: interpreters that have imported modules before the ranks start (--warm)
 *
 *   head -> agent   WARM     prepare interpreters for the next order
 *   agent -> head   WARMED   once: they are ready, or why there are none
 *
 * The next LAUNCH uses them, or starts its ranks without them; either ends the preparation.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/frame.h"

enum {
        WARM_SLOTS_MAX = 1024,
        WARM_MODULES_MAX = 64,
        WARM_NAME_MAX = 255, /* of a module */
};

/* What a LAUNCH would say of ranks that run such a script. */
struct warm_order {
        char *word;          /* the interpreter, looked up in PATH without a slash */
        struct strv modules; /* at least one */
        uint32_t slots;      /* ranks of the node */
        char *bind;          /* --bind; "" = none */
        char *cwd;           /* "" or a missing one = the login directory, or the container's */
        struct strv env;     /* NAME=VALUE laid over the node's login environment */
        struct strv unset;   /* names removed first; a trailing * is a prefix */
};

struct warmed {
        uint32_t slots; /* that are ready */
        uint32_t mib;   /* resident memory of one interpreter, which all share */
        uint32_t ms;    /* the preparation took */
        char text[512]; /* why none is ready */
};

void warm_order_encode(struct buf *b, const struct warm_order *m);
int warm_order_decode(struct warm_order *m, const struct frame *f, struct error *err);
void warm_order_finish(struct warm_order *m);
void warmed_encode(struct buf *b, const struct warmed *m);
int warmed_decode(struct warmed *m, const struct frame *f, struct error *err);
