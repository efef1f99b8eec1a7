/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call looks a function of the module up by name; dlopen() of a loaded module returns the
 * same handle. C has no conversion between pointers to objects and to functions, so symbols are
 * stored by way of void **, as POSIX shows.
 */
#include "head/nodes/ssh_loader.h"

#include <errno.h>

#include "head/nodes/install_paths.h"

#define MODULE "hnlaunch-ssh.so"

struct transport *ssh_loader_create(uv_loop_t *loop, const struct ssh_options *o, struct error *err)
{
        struct transport *(*create)(uv_loop_t *, const struct ssh_options *, struct error *) = NULL;

        *(void **)&create = install_path_load(MODULE, "the ssh part", "transport_ssh_create", err);
        if (create)
                return create(loop, o, err);
        err_help(err, "--ssh-command ssh goes without it");
        return NULL;
}

bool ssh_loader_leads_elsewhere(const struct ssh_options *o, const char *host, char **ret_name)
{
        bool (*leads)(const struct ssh_options *, const char *, char **) = NULL;
        struct error err;

        *ret_name = NULL;
        *(void **)&leads =
                install_path_load(MODULE, "the ssh part", "own_login_leads_elsewhere", &err);
        return leads && leads(o, host, ret_name);
}

int ssh_loader_store_key(const struct link_host_key *key, struct error *err)
{
        int (*store)(const struct link_host_key *, struct error *) = NULL;

        *(void **)&store = install_path_load(MODULE, "the ssh part", "host_key_store", err);
        return store ? store(key, err) : -ELIBACC;
}

const struct tree_login_ops *ssh_loader_tree_login(struct error *err)
{
        return install_path_load(MODULE, "the ssh part", "tree_login_ops", err);
}
