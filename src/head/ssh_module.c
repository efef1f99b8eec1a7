/* SPDX-License-Identifier: Apache-2.0 */
#include "head/ssh_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "head/parts.h"

#define MODULE "hnlaunch-ssh.so"

struct transport *ssh_module_create(uv_loop_t *loop, const struct ssh_options *o, struct error *err)
{
        struct transport *(*create)(uv_loop_t *, const struct ssh_options *, struct error *) = NULL;
        char *path = part_find(MODULE, NULL, err);
        void *module;

        if (!path)
                return NULL;
        module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (module)
                *(void **)&create = dlsym(module, "transport_ssh_create");
        if (!create)
                err_set(err, ELIBACC, "cannot load the ssh part: %s", dlerror());
        free(path);
        return create ? create(loop, o, err) : NULL;
}
