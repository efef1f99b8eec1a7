/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Container_words: the command lines of container programs
 *
 * Pure, so that the lines of programs that cannot be run everywhere are recorded in a test.
 * Options as documented in docker-run(1), docker-exec(1), podman-run(1), "apptainer exec" of the
 * Apptainer user guide, and ch-run(1).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/strv.h"
#include "wire/env/container_order.h"

/* What the agent has found on its node. Borrowed. */
struct container_site {
        const char *program; /* docker, podman, apptainer or singularity, ch-run */
        const char *agent;   /* path of this program: on the node; of CONTAINER_EXEC: inside */
        const char *name;    /* for a new container of docker or podman */
        bool is_root;        /* the engine is root's, and may raise limits */
        bool is_user;        /* run as @uid, @gid and @groups, not as the image's user */
        uid_t uid;
        gid_t gid;
        const gid_t *groups;
        size_t n_groups;
        bool bind_dir, bind_home,
                image_env;            /* charliecloud; @bind_dir: of all but CONTAINER_EXEC */
        bool nvidia, amd, infiniband; /* devices of the node */
        const struct strv *variables; /* names of variables to pass on */
};

/* Appends the command that starts @s->agent in the container, with standard input and output of
 * this process. */
void container_words(const struct container_order *o, const struct container_site *s,
                     struct strv *argv);

/* Where the agent is found inside. */
#define CONTAINER_AGENT "/.hnlaunch-agent"

/* Descriptor of the agent's file for ch-run, which passes descriptors on. */
enum { CONTAINER_AGENT_FD = 9 };
