/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssh_auth_step() tries the methods in a fixed order; progress is noted in
 * struct ssh_auth and a method is skipped once done, so the step is simply repeated after
 * SSH_AUTH_AGAIN. Each refusal adds the methods named by the server. After the last method
 * ssh_auth_explain() lists keys (offered, not sent, unusable), methods and the next step for the
 * user.
 */
#include "head/ssh/ssh_auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/printable.h"
#include "head/ssh/ssh_agent_keys.h"
#include "head/ssh/ssh_misuse.h"

#define AGENT_KEYS_MAX 64 /* configured keys that the agent is asked for */

/* Whether another request makes sense: the connection is there, and libssh has not given up. */
static bool is_usable(ssh_session session)
{
        return ssh_is_connected(session) && !ssh_session_is_dead(session);
}

/* Notes the result of an attempt; returns SUCCESS, AGAIN or DENIED. */
static int note_result(struct ssh_auth *auth, ssh_session session, int r)
{
        if (r == SSH_AUTH_AGAIN && !is_usable(session))
                r = SSH_AUTH_ERROR; /* libssh would wait for ever */
        if (r == SSH_AUTH_SUCCESS || r == SSH_AUTH_AGAIN)
                return r;
        /* Also after a failure: a later answer adds methods. */
        auth->methods |= ssh_userauth_list(session, NULL);
        if (r == SSH_AUTH_PARTIAL)
                auth->partly = true;
        if (r != SSH_AUTH_ERROR)
                return SSH_AUTH_DENIED;
        snprintf(auth->error, sizeof(auth->error), "%s", ssh_get_error(session));
        printable_one_line(auth->error);
        return SSH_AUTH_DENIED;
}

/* With IdentitiesOnly the agent can only help with keys that are configured, but whose files cannot
 * be used: libssh gets no other keys of it. */
static bool prepare_agent(struct ssh_auth *auth, ssh_session session)
{
        const struct ssh_target *target = auth->target;
        struct key_blob keys[AGENT_KEYS_MAX];
        size_t n = 0;
        int fd;

        if (!target->agent || auth->agent_tried || !is_usable(session))
                return false;
        if (!target->host.identities_only || auth->agent_filtered)
                return true;
        for (size_t i = 0; i < target->unusable_n && n < ARRAY_SIZE(keys); i++)
                if (target->unusable[i]->blob.data)
                        keys[n++] = target->unusable[i]->blob;
        /* No key of the configuration can be in the agent. */
        fd = n ? ssh_agent_keys_filter(target->agent, keys, n) : -ENOENT;
        if (fd >= 0 && ssh_set_agent_socket(session, fd) != SSH_OK)
                fd = fd_close(fd);
        auth->agent_filtered = fd >= 0;
        return fd >= 0;
}

/* Offers the keys in files, then all keys of the ssh-agent. Called again until the answer is not
 * SSH_AUTH_AGAIN. */
static int try_keys(struct ssh_auth *auth, ssh_session session)
{
        const struct ssh_target *target = auth->target;
        int r;

        for (; auth->next < target->offers_n && is_usable(session); auth->next++) {
                ssh_key key = target->offers[auth->next]->key;

                r = note_result(auth, session, ssh_userauth_publickey(session, NULL, key));
                if (r != SSH_AUTH_DENIED)
                        return r;
        }
        if (prepare_agent(auth, session)) {
                r = note_result(auth, session, ssh_userauth_agent(session, NULL));
                if (r != SSH_AUTH_DENIED)
                        return r;
                auth->agent_tried = true;
        }
        return SSH_AUTH_DENIED;
}

/* As try_keys(), for one attempt with the user's ticket. */
static int try_gssapi(struct ssh_auth *auth, ssh_session session)
{
        int r;

        if (!auth->target->host.login.gssapi || auth->gssapi_tried || !is_usable(session))
                return SSH_AUTH_DENIED;
        r = note_result(auth, session, ssh_userauth_gssapi(session));
        auth->gssapi_tried = r == SSH_AUTH_DENIED;
        return r;
}

int ssh_auth_step(struct ssh_auth *auth, ssh_session session)
{
        bool gssapi_first = auth->target->host.login.gssapi_first;
        int r = gssapi_first ? try_gssapi(auth, session) : SSH_AUTH_DENIED;

        if (r == SSH_AUTH_DENIED)
                r = try_keys(auth, session);
        if (r == SSH_AUTH_DENIED && !gssapi_first)
                r = try_gssapi(auth, session);
        /* Without any key, "none" makes the server name the accepted methods. */
        if (r == SSH_AUTH_DENIED && !auth->methods && !auth->error[0] && is_usable(session))
                r = note_result(auth, session, ssh_userauth_none(session, NULL));
        /* "Packet filter" is libssh's word for a message that is not allowed in this state. */
        auth->broken = r == SSH_AUTH_DENIED && strstr(auth->error, "Packet filter");
        if (r == SSH_AUTH_DENIED)
                /* A message of disconnection is an answer: the server has refused. */
                auth->lost = !auth->methods && !is_usable(session) &&
                             !strstr(auth->error, "SSH_MSG_DISCONNECT");
        return r;
}

/* Tells whether a key of the agent, as a line, was offered to the server. */
static bool is_offered_by_agent(const struct ssh_auth *auth, const char *line)
{
        const struct ssh_target *target = auth->target;
        bool configured = !target->host.identities_only;

        for (size_t i = 0; i < target->unusable_n && !configured; i++)
                configured = *target->unusable[i]->name.print &&
                             strstr(line, target->unusable[i]->name.print);
        return auth->agent_tried && configured;
}

/* Lists keys: offered, not sent, and unusable. */
static void list_keys(const struct ssh_auth *auth, const struct strv *agent_keys, struct buf *out)
{
        static const char *const reasons[] = {
                [IDENTITY_GOOD] = "",
                [IDENTITY_MISSING] = "no such file",
                [IDENTITY_UNREADABLE] = "cannot be read as a private key",
                [IDENTITY_ENCRYPTED] = "needs its passphrase, and hnlaunch does not ask",
                [IDENTITY_EXPOSED] = "ignored, because its permissions are too open",
        };
        const struct ssh_target *target = auth->target;

        for (size_t i = 0; i < target->offers_n; i++) {
                const struct ssh_identity *id = target->offers[i];
                const char *print = id->name.print;
                bool in_agent = false;

                for (size_t k = 0; *print && k < agent_keys->n; k++)
                        in_agent = in_agent || strstr(agent_keys->v[k], print);
                /* Keys are offered in this order, so the others were not reached. */
                buf_printf(out, "%s   file       %s %s  %s%s\n",
                           i < auth->next ? "offered " : "not sent", id->name.type, print, id->path,
                           in_agent ? "  (also in the agent)" : "");
        }
        for (size_t i = 0; i < agent_keys->n; i++)
                buf_printf(out, "%s   ssh-agent  %s\n",
                           is_offered_by_agent(auth, agent_keys->v[i]) ? "offered " : "not sent",
                           agent_keys->v[i]);
        for (size_t i = 0; i < target->unusable_n; i++) {
                const struct ssh_identity *id = target->unusable[i];

                buf_printf(out, "not usable %s: %s", id->path, reasons[id->state]);
                if (id->state == IDENTITY_EXPOSED)
                        buf_printf(out, ": %04o", id->mode);
                buf_appends(out, "\n");
        }
        if (!target->offers_n && !agent_keys->n)
                buf_appends(out, "offered   nothing\n");
}

/* Appends the methods that the server accepts, as evidence of a refused login. */
static void list_methods(int methods, struct buf *out)
{
        static const struct {
                int method;
                const char *name;
        } names[] = { { SSH_AUTH_METHOD_PUBLICKEY, "publickey" },
                      { SSH_AUTH_METHOD_PASSWORD, "password" },
                      { SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive" },
                      { SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi-with-mic" },
                      { SSH_AUTH_METHOD_HOSTBASED, "hostbased" } };
        const char *comma = "";

        if (!methods)
                return;
        buf_appends(out, "accepted by server: ");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (methods & names[i].method) {
                        buf_printf(out, "%s%s", comma, names[i].name);
                        comma = ", ";
                }
        buf_appends(out, "\n");
}

/* Returns the most probable step that would let the login succeed. */
static const char *choose_advice(const struct ssh_auth *auth)
{
        const struct ssh_target *target = auth->target;
        bool encrypted = false, exposed = false;

        for (size_t i = 0; i < target->unusable_n; i++) {
                encrypted = encrypted || target->unusable[i]->state == IDENTITY_ENCRYPTED;
                exposed = exposed || target->unusable[i]->state == IDENTITY_EXPOSED;
        }
        /* The causes in the order in which a user can act on them. */
        if (exposed)
                return "a private key must not be accessible by others, as for ssh(1): chmod 600";
        if (encrypted)
                return "unlock the key first: ssh-add";
        if (!target->host.login.pubkey && !target->host.login.gssapi)
                return "the ssh config allows no keys (PubkeyAuthentication, "
                       "PreferredAuthentications), and hnlaunch never types passwords";
        if (auth->methods && !(auth->methods & SSH_AUTH_METHOD_PUBLICKEY))
                return "the server takes no keys; hnlaunch never types passwords";
        if (!target->offers_n && !target->agent)
                return "there is no key to offer: name one with --identity, or start an ssh-agent";
        return "is the public key in authorized_keys there, and is the user name right?";
}

void ssh_auth_explain(const struct ssh_auth *auth, struct link_failure *why)
{
        const struct ssh_target *target = auth->target;
        struct strv agent_keys = STRV_INIT;
        struct buf out = BUF_INIT;

        if (auth->lost) {
                /* Closed without a refusal. */
                why->cause = LINK_DROPPED;
                snprintf(why->fact, sizeof(why->fact), "the server %s during the login",
                         auth->broken ? "breaks the ssh protocol" : "closes the connection");
                if (*auth->error)
                        snprintf(why->evidence, sizeof(why->evidence), "libssh: %s\n", auth->error);
                snprintf(why->help, sizeof(why->help), "%s",
                         "see the log of sshd there: journalctl -u ssh");
                return;
        }
        if (target->agent)
                ssh_agent_keys_list(target->agent, &agent_keys);
        why->cause = LINK_DENIED;
        snprintf(why->fact, sizeof(why->fact), "ssh login refused%s",
                 auth->partly ? ": the server wants a second method" : "");
        list_keys(auth, &agent_keys, &out);
        list_methods(auth->methods, &out);
        if (auth->error[0])
                buf_printf(&out, "%s\n", auth->error);
        snprintf(why->evidence, sizeof(why->evidence), "%.*s", (int)buf_len(&out),
                 (const char *)buf_data(&out));
        snprintf(why->help, sizeof(why->help), "%s", choose_advice(auth));
        strv_finish(&agent_keys);
        buf_finish(&out);
}
