/* SPDX-License-Identifier: Apache-2.0 */
#include "head/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/strv.h"
#include "head/child.h"

/* ssh's own exit code for everything that went wrong before the remote command. */
#define SSH_FAILED 255

struct command {
        struct transport transport;
        uv_loop_t *loop;
        const struct ssh_options *options;
        struct strv words; /* of --ssh-command */
};

/* Words as a shell would see them: blanks, quotes and backslashes, nothing else. */
static int split(const char *text, struct strv *ret, struct error *err)
{
        for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
                struct buf word = BUF_INIT;
                char quote = 0;

                for (; *text && (quote || !strchr(" \t\n", *text)); text++) {
                        if (quote ? *text == quote : *text == '\'' || *text == '"') {
                                quote = quote ? 0 : *text;
                                continue;
                        }
                        if (*text == '\\' && quote != '\'' && text[1])
                                text++;
                        buf_append(&word, text, 1);
                }
                if (quote) {
                        buf_finish(&word);
                        return err_set(err, EINVAL, "ssh command: a %c is not closed", quote);
                }
                strv_push_mem(ret, buf_data(&word), buf_len(&word));
                buf_finish(&word);
        }
        return ret->n ? 0 : err_set(err, EINVAL, "the ssh command is empty");
}

static void build(const struct command *c, const struct link_target *to, struct strv *argv)
{
        const struct ssh_options *o = c->options;
        const char *user = to->user ? to->user : o->user;
        int port = to->port ? to->port : o->port;

        strv_copy(argv, &c->words);
        strv_push(argv, "-T");
        strv_push(argv, "-oBatchMode=yes");
        strv_pushf(argv, "-oStrictHostKeyChecking=%s", o->accept_new ? "accept-new" : "yes");
        if (o->connect_timeout_ms > 0)
                strv_pushf(argv, "-oConnectTimeout=%d", (o->connect_timeout_ms + 999) / 1000);
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

static const struct {
        const char *text;
        enum link_phase phase;
        enum link_cause cause;
        const char *fact;
} meanings[] = {
        { "HOST IDENTIFICATION HAS CHANGED", LINK_HOSTKEY, LINK_KEY_CHANGED,
          "the host key has CHANGED" },
        { "REVOKED HOST KEY", LINK_HOSTKEY, LINK_KEY_REVOKED, "the host key is revoked" },
        { "Host key verification failed", LINK_HOSTKEY, LINK_KEY_UNKNOWN,
          "the host key is not known" },
        { "Could not resolve hostname", LINK_RESOLVING, LINK_NO_NAME, "name does not resolve" },
        { "Permission denied (", LINK_AUTH, LINK_DENIED, "ssh login refused" },
        { "Too many authentication failures", LINK_AUTH, LINK_DENIED, "ssh login refused" },
        { "Connection refused", LINK_CONNECTING, LINK_REFUSED, "connection refused" },
        { "Connection timed out", LINK_CONNECTING, LINK_TIMED_OUT, "no answer" },
        { "Operation timed out", LINK_CONNECTING, LINK_TIMED_OUT, "no answer" },
        { "during banner exchange", LINK_KEX, LINK_DROPPED, "no ssh handshake" },
        { "No route to host", LINK_CONNECTING, LINK_UNREACHABLE, "no route to host" },
        { "Network is unreachable", LINK_CONNECTING, LINK_UNREACHABLE, "no route to host" },
        { "kex_exchange_identification", LINK_KEX, LINK_DROPPED,
          "the server closes the connection during the handshake" },
};

static void judge(struct link *l UNUSED, int status, int signal, struct link_failure *why)
{
        if (signal || status != SSH_FAILED) {
                if (!signal)
                        snprintf(why->fact, sizeof(why->fact),
                                 "the remote command ended with exit code %d", status);
                return;
        }
        why->cause = LINK_DROPPED;
        snprintf(why->fact, sizeof(why->fact), "ssh lost or refused the connection");
        for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
                if (!strstr(why->evidence, meanings[i].text))
                        continue;
                why->phase = meanings[i].phase;
                why->cause = meanings[i].cause;
                snprintf(why->fact, sizeof(why->fact), "%s", meanings[i].fact);
                return;
        }
}

static struct link *command_open(struct transport *t, const struct link_target *to,
                                 const struct link_callbacks *cb, void *ctx,
                                 struct error *err UNUSED)
{
        struct command *c = container_of(t, struct command, transport);
        struct strv argv = STRV_INIT;
        struct link *l;

        build(c, to, &argv);
        l = child_open(t, c->loop, argv.v, "the ssh command", judge, cb, ctx);
        strv_finish(&argv);
        return l;
}

static void command_destroy(struct transport *t)
{
        struct command *c = container_of(t, struct command, transport);

        strv_finish(&c->words);
        free(c);
}

static const struct transport_ops command_ops = {
        .open = command_open,
        .close = child_close,
        .destroy = command_destroy,
};

struct transport *transport_command_create(uv_loop_t *loop, const struct ssh_options *o,
                                           struct error *err)
{
        struct command *c = xcalloc(1, sizeof(*c));

        c->transport.ops = &command_ops;
        c->loop = loop;
        c->options = o;
        if (split(o->ssh_command ? o->ssh_command : "ssh", &c->words, err) < 0) {
                strv_finish(&c->words);
                free(c);
                return NULL;
        }
        return &c->transport;
}
