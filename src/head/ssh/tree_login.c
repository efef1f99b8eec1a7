/* SPDX-License-Identifier: Apache-2.0 */
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
        struct strv files; /* those of @known */
        struct known_hosts *known;
        struct strv revoked_files; /* those of @revoked */
        struct revoked_keys *revoked;
};

static void discard(struct tree_login *d)
{
        if (!d)
                return;
        strv_finish(&d->words);
        strv_finish(&d->files);
        known_hosts_free(d->known);
        strv_finish(&d->revoked_files);
        revoked_keys_free(d->revoked);
        ssh_config_free(d->config);
        free(d);
}

static struct tree_login *create(const struct ssh_options *o, struct error *err)
{
        struct tree_login *d = xcalloc(1, sizeof(*d));

        d->options = o;
        if (ssh_program_split(o->ssh_command, &d->words, err) == 0 &&
            ssh_config_load(&d->config, o->config_file, err) == 0)
                return d;
        discard(d);
        return NULL;
}

static bool same(const struct strv *a, const struct strv *b)
{
        bool equal = a->n == b->n;

        for (size_t i = 0; equal && i < a->n; i++)
                equal = !strcmp(a->v[i], b->v[i]);
        return equal;
}

/* As a rule all hosts have the same files. */
static void load_files(struct tree_login *d, const struct ssh_host *h)
{
        if (!d->known || !same(&d->files, &h->known_hosts)) {
                known_hosts_free(d->known);
                strv_finish(&d->files);
                strv_copy(&d->files, &h->known_hosts);
                d->known = known_hosts_load(&h->known_hosts);
        }
        if (!same(&d->revoked_files, &h->revoked)) {
                revoked_keys_free(d->revoked);
                strv_finish(&d->revoked_files);
                strv_copy(&d->revoked_files, &h->revoked);
                d->revoked = revoked_keys_load(&h->revoked);
        }
}

/* A node's ssh cannot read RevokedHostKeys of this machine. It gets the known keys, with a mark on
 * those that are revoked, and may then take no others. */
static int keys_of(struct tree_login *d, const struct ssh_host *h, const char *name, char **ret,
                   struct error *err)
{
        struct buf lines = BUF_INIT;
        struct known_set set;
        const char *trouble;

        load_files(d, h);
        trouble = revoked_keys_trouble(d->revoked);
        if (trouble)
                return err_set(err, EACCES, "RevokedHostKeys cannot be used: %s", trouble);
        known_hosts_find(d->known, h->host_key_alias ? h->host_key_alias : h->hostname,
                         h->host_key_alias ? 22 : h->port, &set);
        if (d->revoked && !set.n)
                return err_set(err, EACCES,
                               "RevokedHostKeys with --tree needs its key in known_hosts here");
        known_set_lines(&set, d->revoked, name, &lines);
        known_set_finish(&set);
        *ret = buf_steal(&lines);
        return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* The node's own configuration has no say in whose agent is used, and who gets it. */
static void agent_options(const struct tree_login *d, bool has_children, struct strv *argv)
{
        bool forward = d->options->forward_agent;

        if (forward)
                strv_push(argv, "-oIdentityAgent=SSH_AUTH_SOCK");
        strv_pushf(argv, "-oForwardAgent=%s", forward && has_children ? "yes" : "no");
}

static void command_line(const struct tree_login *d, const struct ssh_host *h, bool has_children,
                         struct strv *argv)
{
        struct ssh_options careful = *d->options;

        careful.accept_new = careful.accept_new && !d->revoked;
        strv_copy(argv, &d->words);
        ssh_program_add_options(&careful, argv);
        strv_push(argv, "-oControlPath=none"); /* nobody else's connection */
        strv_push(argv, "-oForwardX11=no");
        agent_options(d, has_children, argv);
        strv_pushf(argv, "-oHostName=%s", h->hostname);
        strv_push(argv, "-p");
        strv_pushf(argv, "%d", h->port);
        strv_push(argv, "-l");
        strv_push(argv, h->user);
        strv_push(argv, "--");
        strv_push(argv, h->alias);
        strv_push(argv, d->options->command);
}

static int find(struct tree_login *d, const struct link_target *to, struct child_agent_order *ret,
                struct error *err)
{
        const struct ssh_options *o = d->options;
        struct ssh_host_request request = {
                .alias = to->host,
                .user = to->user ? to->user : o->user,
                .port = to->port ? to->port : o->port,
        };
        struct ssh_host h = { 0 };
        int r = ssh_config_lookup(d->config, &request, &h, err);

        if (r < 0)
                return r;
        *ret = (struct child_agent_order){ 0 };
        r = keys_of(d, &h, to->host, &ret->known_hosts, err);
        if (r == 0) {
                ret->number = (uint32_t)to->number;
                ret->options_at = (uint32_t)d->words.n;
                ret->lent_agent = o->forward_agent;
                ret->alias = xstrdup(to->host);
                command_line(d, &h, to->has_children, &ret->argv);
        }
        ssh_host_finish(&h);
        return r;
}

const struct tree_login_ops tree_login_ops = { .create = create, .free = discard, .find = find };
