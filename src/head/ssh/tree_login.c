/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each host the ssh config of this machine is looked up, and the result is written out as
 * options of an ssh command line (host name, port, user, algorithms), so that the config on the
 * node does not change them. The known host keys are sent along as the text of a known_hosts file
 * with revoked keys marked. A site (ssh_target.h) reads the files.
 */
#include "head/nodes/tree_login.h"
#include "head/core/shell_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "head/nodes/ssh_program.h"
#include "head/ssh/ssh_target.h"

struct tree_login {
        struct ssh_site *site;
        struct strv words; /* of --ssh-command */
};

static void free_tree_login(struct tree_login *login)
{
        if (!login)
                return;
        strv_finish(&login->words);
        ssh_site_free(login->site);
        free(login);
}

static struct tree_login *create_tree_login(const struct ssh_options *o, struct error *err)
{
        struct tree_login *login = xcalloc(1, sizeof(*login));

        if (shell_words_split(o->ssh_command ? o->ssh_command : "ssh", &login->words, err) == 0 &&
            ssh_site_create(&login->site, o, err) == 0)
                return login;
        free_tree_login(login);
        return NULL;
}

/* Writes the known keys of a host, with a mark on revoked keys, because ssh on a node cannot read
 * RevokedHostKeys of this machine. With RevokedHostKeys, a host without known keys is an error. */
static int write_known_keys(struct tree_login *login, const struct ssh_host *h, const char *name,
                            char **ret, bool *ret_revoked, struct error *err)
{
        const struct revoked_keys *revoked;
        struct buf lines = BUF_INIT;
        struct known_set set;
        int r = 0;

        ssh_site_host_keys(login->site, h, &set, &revoked);
        *ret_revoked = revoked != NULL;
        if (revoked_keys_trouble(revoked)) {
                r = err_set(err, EINVAL, "RevokedHostKeys cannot be used: %s",
                            revoked_keys_trouble(revoked));
                err->number = HN_HOST_KEY_UNCHECKED;
        } else if (revoked && !set.n) {
                r = err_set(err, EINVAL,
                            "RevokedHostKeys with --tree needs its key in known_hosts here");
                err->number = HN_HOST_KEY_UNCHECKED;
        } else {
                known_set_lines(&set, revoked, name, &lines);
                *ret = buf_steal(&lines);
                r = *ret ? 0 : err_set(err, ENOMEM, "out of memory");
        }
        known_set_finish(&set);
        return r;
}

/* What the user's ssh_config limits holds for a login from a node, too; an ssh there that does not
 * know a name refuses. What the file for all users limits is a matter of this machine: nodes have a
 * file of their own, and another version of ssh may lack a name. */
static void limit_algorithms(const struct ssh_host_algorithms *a, struct strv *argv)
{
        /* The keys of users on the node are not those here, so the last list does not count. */
        for (enum algorithm_kind kind = ALGORITHM_KEX; kind <= ALGORITHM_HOST_KEY; kind++)
                if (a->lists[kind] && !a->system_lists[kind])
                        strv_pushf(argv, "-o%s=%s", algorithms_keyword(kind), a->lists[kind]);
        if (a->rsa_bits && !a->system_rsa_bits)
                strv_pushf(argv, "-oRequiredRSASize=%d", a->rsa_bits);
}

/* Builds the ssh command for a parent node: everything that the head's configuration decides is an
 * option, because the node's configuration may differ. */
static void build_node_command(const struct tree_login *login, const struct ssh_host *h,
                               bool accept_new, bool has_children, struct strv *argv)
{
        struct ssh_options careful = *ssh_site_options(login->site);

        careful.accept_new = accept_new;
        strv_copy(argv, &login->words);
        ssh_program_add_options(&careful, argv);
        strv_push(argv, "-oControlPath=none"); /* no shared connection */
        strv_push(argv, "-oForwardX11=no");
        /* The agent and its forwarding are decided here, whatever the node's configuration. */
        if (careful.forward_agent)
                strv_push(argv, "-oIdentityAgent=SSH_AUTH_SOCK");
        strv_pushf(argv, "-oForwardAgent=%s", careful.forward_agent && has_children ? "yes" : "no");
        limit_algorithms(&h->algorithms, argv);
        strv_pushf(argv, "-oHostName=%s", h->hostname);
        strv_push(argv, "-p");
        strv_pushf(argv, "%d", h->port);
        strv_push(argv, "-l");
        strv_push(argv, h->user);
        strv_push(argv, "--");
        strv_push(argv, h->alias);
        strv_push(argv, careful.command);
}

/* Fills in the order for a parent: the command, and the known keys of the host, so that the parent
 * trusts no key that the head would not. 0, or negative with @err. */
static int find_tree_login(struct tree_login *login, const struct link_target *to,
                           struct child_agent_order *ret, struct error *err)
{
        const struct ssh_options *o = ssh_site_options(login->site);
        struct ssh_host_request request = {
                .alias = to->host,
                .user = to->user ? to->user : o->user,
                .port = to->port ? to->port : o->port,
        };
        struct ssh_host h = { 0 };
        bool revoked;
        int r = ssh_config_lookup(ssh_site_config(login->site), &request, &h, NULL, err);

        if (r < 0)
                return r;
        *ret = (struct child_agent_order){ 0 };
        r = write_known_keys(login, &h, to->host, &ret->known_hosts, &revoked, err);
        if (r == 0) {
                ret->number = (uint32_t)to->number;
                /* The parent puts its options behind the words of --ssh-command. */
                ret->options_at = (uint32_t)login->words.n;
                ret->lent_agent = o->forward_agent;
                ret->alias = xstrdup(to->host);
                /* A node cannot compare a new key with RevokedHostKeys of this machine. */
                build_node_command(login, &h, o->accept_new && !revoked, to->has_children,
                                   &ret->argv);
        }
        ssh_host_finish(&h);
        return r;
}

const struct tree_login_ops tree_login_ops = { .create = create_tree_login,
                                               .free = free_tree_login,
                                               .find = find_tree_login };
