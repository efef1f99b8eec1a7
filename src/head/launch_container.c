/* SPDX-License-Identifier: Apache-2.0 */
#include "head/launch.h"

#include <stdlib.h>
#include <unistd.h>

#include "wire/env/container_order.h"

/* An image that is a file of this folder is meant, wherever the agents are started. */
static void find_image_file(struct launch *l, struct container_order *o)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/%s", l->cwd, o->name);
        bool is_file = o->kind == CONTAINER_APPTAINER || o->kind == CONTAINER_CHARLIECLOUD;

        if (!is_file || *o->name == '/' || access(path, F_OK) < 0)
                return;
        free(o->name);
        o->name = xstrdup(path);
}

void launch_container_order(struct launch *l)
{
        struct container_order *o = &l->o.container;

        if (!o->kind)
                return;
        find_image_file(l, o);
        free(o->dir);
        o->dir = xstrdup(o->kind == CONTAINER_EXEC ? "" : l->cwd);
        l->config.container = container_order_encode(o);
}
