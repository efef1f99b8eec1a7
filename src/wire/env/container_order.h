/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Container_order: the container of a node's ranks (--container), from the head to the agent
 *
 * The agent reads the order from the environment (CONTAINER_ORDER) before anything else, because
 * the container must be entered first. As text the order survives every shell on the way: words
 * with a blank between; all bytes but letters, digits and a few marks are %XX.
 *
 *   docker:IMAGE DIR ARG ARG...        exec:NAME - ARG...
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"

#define CONTAINER_ORDER "HNLAUNCH_ENTER"
/* The agent's answer when it cannot enter: this, the reason, and the end of a line. */
#define CONTAINER_MARK "HNLAUNCH-CONTAINER "

enum container_kind {
        CONTAINER_NONE,
        CONTAINER_DOCKER,
        CONTAINER_PODMAN,
        CONTAINER_APPTAINER,
        CONTAINER_CHARLIECLOUD,
        CONTAINER_EXEC, /* one that runs already, of docker or podman */
};

struct container_order {
        enum container_kind kind;
        char *name;       /* of the image, or of the container */
        char *dir;        /* folder of the node to mount at the same place, "" = none */
        struct strv args; /* further arguments for the container's program */
};

/* Reads the value of --container, KIND:NAME, into @o->kind and @o->name. -EINVAL with the reason:
 * an unknown kind, or no name. */
int container_order_parse(struct container_order *o, const char *value, struct error *err);

/* Returns the order as text, malloc'ed; container_order_decode() reads it into a zeroed @o. -EINVAL
 * with the reason; @o needs container_order_finish() in every case. */
char *container_order_encode(const struct container_order *o);
int container_order_decode(struct container_order *o, const char *text, struct error *err);

void container_order_finish(struct container_order *o);

/* Returns "docker". */
const char *container_kind_name(enum container_kind kind);
