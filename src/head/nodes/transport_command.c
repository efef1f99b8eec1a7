/* SPDX-License-Identifier: Apache-2.0 */
#include "head/nodes/transport.h"

#include <stdlib.h>

#include "base/strv.h"
#include "head/nodes/process_link.h"
#include "head/nodes/ssh_program.h"

struct command_transport {
        struct transport transport;
        uv_loop_t *loop;
        const struct ssh_options *options;
        struct strv words; /* of --ssh-command */
};

static void build_ssh_command(const struct command_transport *c, const struct link_target *to,
                              struct strv *argv)
{
        const struct ssh_options *o = c->options;
        const char *user = to->user ? to->user : o->user;
        int port = to->port ? to->port : o->port;

        strv_copy(argv, &c->words);
        ssh_program_add_options(o, argv);
        if (o->forward_agent && to->has_children)
                strv_push(argv, "-A");
        if (o->config_file) {
                strv_push(argv, "-F");
                strv_push(argv, o->config_file);
        }
        if (port) {
                strv_push(argv, "-p");
                strv_pushf(argv, "%d", port);
        }
        if (user) {
                strv_push(argv, "-l");
                strv_push(argv, user);
        }
        for (size_t i = 0; o->identities && i < o->identities->n; i++) {
                strv_push(argv, "-i");
                strv_push(argv, o->identities->v[i]);
        }
        if (o->jump) {
                strv_push(argv, "-J");
                strv_push(argv, o->jump);
        }
        strv_push(argv, "--");
        strv_push(argv, to->host);
        strv_push(argv, o->command);
}

static void classify_ssh_exit(struct link *l UNUSED, int status, int signal,
                              struct link_failure *why)
{
        ssh_program_classify(status, signal, why);
}

static struct link *open_command_link(struct transport *t, const struct link_target *to,
                                      const struct link_callbacks *cb, void *ctx,
                                      struct error *err UNUSED)
{
        struct command_transport *c = container_of(t, struct command_transport, transport);
        struct strv argv = STRV_INIT;
        struct link *l;

        build_ssh_command(c, to, &argv);
        l = process_link_open(t, c->loop, argv.v, "the ssh command", classify_ssh_exit, cb, ctx);
        strv_finish(&argv);
        return l;
}

static void destroy_command_transport(struct transport *t)
{
        struct command_transport *c = container_of(t, struct command_transport, transport);

        strv_finish(&c->words);
        free(c);
}

static const struct transport_ops command_ops = {
        .open = open_command_link,
        .close = process_link_close,
        .destroy = destroy_command_transport,
};

struct transport *transport_command_create(uv_loop_t *loop, const struct ssh_options *o,
                                           struct error *err)
{
        struct command_transport *c = xcalloc(1, sizeof(*c));

        c->transport.ops = &command_ops;
        c->loop = loop;
        c->options = o;
        if (ssh_program_split(o->ssh_command, &c->words, err) < 0) {
                strv_finish(&c->words);
                free(c);
                return NULL;
        }
        return &c->transport;
}
