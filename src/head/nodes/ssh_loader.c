/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/ssh_loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "head/nodes/install_paths.h"

#define MODULE "hnlaunch-ssh.so"

/* Loads the module, which stays loaded, and returns a symbol. NULL with @err. */
static void *find_module_symbol(const char *symbol, struct error *err)
{
        char *path = install_path_find(MODULE, NULL, err);
        void *module, *found;

        if (!path) {
                err->code = ELIBACC;
                return NULL;
        }
        module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        found = module ? dlsym(module, symbol) : NULL;
        if (!found)
                err_set(err, ELIBACC, "cannot load the ssh part: %s", dlerror());
        free(path);
        return found;
}

struct transport *ssh_loader_create(uv_loop_t *loop, const struct ssh_options *o, struct error *err)
{
        struct transport *(*create)(uv_loop_t *, const struct ssh_options *, struct error *) = NULL;

        *(void **)&create = find_module_symbol("transport_ssh_create", err);
        return create ? create(loop, o, err) : NULL;
}

const struct tree_login_ops *ssh_loader_tree_login(struct error *err)
{
        return find_module_symbol("tree_login_ops", err);
}
