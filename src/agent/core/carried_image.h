/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carried_image: a file that is part of the agent, packed (src/embed.sh)
 */
#pragma once

#include <stddef.h>

struct carried_image {
        const unsigned char *deflated;
        size_t n_deflated;
        size_t size; /* of the file */
};

/* Writes the file to the descriptor. 0, or a negative errno. */
int carried_image_write(const struct carried_image *i, int fd);
