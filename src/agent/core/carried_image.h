/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carried_image: a file that is part of the agent, packed (src/embed.sh)
 *
 * A program among them is executed from memory: nothing is installed on the node, and no folder
 * must allow execution.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/spawn.h"

struct carried_image {
        const unsigned char *deflated;
        size_t n_deflated;
        size_t size; /* of the file */
};

/* Writes the file to the descriptor. 0, or a negative errno. */
int carried_image_write(const struct carried_image *i, int fd);
/* Starts the program as spawn_process() does. @s.argv is one argument, or NULL. @name is shown by
 * the kernel as the file of the process. Fails also where memory may not be executed. */
int carried_image_spawn(pid_t *ret_pid, const char *name, const struct carried_image *image,
                        struct spawn s, struct error *err);
