/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each host the ssh config of this machine is looked up, and the result is written out as
 * options of an ssh command line (host name, port, user), so that the config on the node does not
 * change them. The known host keys are sent along as the text of a known_hosts file with revoked
 * keys marked. Files are read again only if a host has other files than the host before.
 */
#include "head/nodes/tree_login.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "head/nodes/ssh_program.h"
#include "head/ssh/files/known_hosts.h"
#include "head/ssh/files/ssh_config.h"

struct tree_login {
        const struct ssh_options *options;
        struct strv words; /* of --ssh-command */
        struct ssh_config *config;
        struct strv files; /* of @known */
        struct known_hosts *known;
        struct strv revoked_files; /* of @revoked */
        struct revoked_keys *revoked;
};

static void free_tree_login(struct tree_login *login)
{
        if (!login)
                return;
        strv_finish(&login->words);
        strv_finish(&login->files);
        known_hosts_free(login->known);
        strv_finish(&login->revoked_files);
        revoked_keys_free(login->revoked);
        ssh_config_free(login->config);
        free(login);
}

static struct tree_login *create_tree_login(const struct ssh_options *o, struct error *err)
{
        struct tree_login *login = xcalloc(1, sizeof(*login));

        login->options = o;
        if (ssh_program_split(o->ssh_command, &login->words, err) == 0 &&
            ssh_config_load(&login->config, o->config_file, err) == 0)
                return login;
        free_tree_login(login);
        return NULL;
}

static bool strv_equal(const struct strv *a, const struct strv *b)
{
        bool equal = a->n == b->n;

        for (size_t i = 0; equal && i < a->n; i++)
                equal = !strcmp(a->v[i], b->v[i]);
        return equal;
}

/* Loads the files of @h unless the host before had the same, the usual case. */
static void load_key_files(struct tree_login *login, const struct ssh_host *h)
{
        if (!login->known || !strv_equal(&login->files, &h->known_hosts)) {
                known_hosts_free(login->known);
                strv_finish(&login->files);
                strv_copy(&login->files, &h->known_hosts);
                login->known = known_hosts_load(&h->known_hosts);
        }
        if (!strv_equal(&login->revoked_files, &h->revoked)) {
                revoked_keys_free(login->revoked);
                strv_finish(&login->revoked_files);
                strv_copy(&login->revoked_files, &h->revoked);
                login->revoked = revoked_keys_load(&h->revoked);
        }
}

/* Writes the known keys of a host, with a mark on revoked keys, because ssh on a node cannot read
 * RevokedHostKeys of this machine. With RevokedHostKeys, a host without known keys is an error. */
static int write_known_keys(struct tree_login *login, const struct ssh_host *h, const char *name,
                            char **ret, struct error *err)
{
        struct buf lines = BUF_INIT;
        struct known_set set;
        const char *trouble;

        load_key_files(login, h);
        trouble = revoked_keys_trouble(login->revoked);
        if (trouble)
                return err_set(err, EACCES, "RevokedHostKeys cannot be used: %s", trouble);
        known_hosts_find(login->known, h->host_key_alias ? h->host_key_alias : h->hostname,
                         h->host_key_alias ? 22 : h->port, &set);
        if (login->revoked && !set.n)
                return err_set(err, EACCES,
                               "RevokedHostKeys with --tree needs its key in known_hosts here");
        known_set_lines(&set, login->revoked, name, &lines);
        known_set_finish(&set);
        *ret = buf_steal(&lines);
        return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* Decides about the agent and its forwarding here, whatever the node's configuration. */
static void add_agent_options(const struct tree_login *login, bool has_children, struct strv *argv)
{
        bool forward = login->options->forward_agent;

        if (forward)
                strv_push(argv, "-oIdentityAgent=SSH_AUTH_SOCK");
        strv_pushf(argv, "-oForwardAgent=%s", forward && has_children ? "yes" : "no");
}

static void build_node_command(const struct tree_login *login, const struct ssh_host *h,
                               bool has_children, struct strv *argv)
{
        struct ssh_options careful = *login->options;

        careful.accept_new = careful.accept_new && !login->revoked;
        strv_copy(argv, &login->words);
        ssh_program_add_options(&careful, argv);
        strv_push(argv, "-oControlPath=none"); /* no shared connection */
        strv_push(argv, "-oForwardX11=no");
        add_agent_options(login, has_children, argv);
        strv_pushf(argv, "-oHostName=%s", h->hostname);
        strv_push(argv, "-p");
        strv_pushf(argv, "%d", h->port);
        strv_push(argv, "-l");
        strv_push(argv, h->user);
        strv_push(argv, "--");
        strv_push(argv, h->alias);
        strv_push(argv, login->options->command);
}

static int find_tree_login(struct tree_login *login, const struct link_target *to,
                           struct child_agent_order *ret, struct error *err)
{
        const struct ssh_options *o = login->options;
        struct ssh_host_request request = {
                .alias = to->host,
                .user = to->user ? to->user : o->user,
                .port = to->port ? to->port : o->port,
        };
        struct ssh_host h = { 0 };
        int r = ssh_config_lookup(login->config, &request, &h, err);

        if (r < 0)
                return r;
        *ret = (struct child_agent_order){ 0 };
        r = write_known_keys(login, &h, to->host, &ret->known_hosts, err);
        if (r == 0) {
                ret->number = (uint32_t)to->number;
                ret->options_at = (uint32_t)login->words.n;
                ret->lent_agent = o->forward_agent;
                ret->alias = xstrdup(to->host);
                build_node_command(login, &h, to->has_children, &ret->argv);
        }
        ssh_host_finish(&h);
        return r;
}

const struct tree_login_ops tree_login_ops = { .create = create_tree_login,
                                               .free = free_tree_login,
                                               .find = find_tree_login };
