/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSH has one exit code for all failures of ssh itself, so the messages on stderr decide about
 * the cause. The first match of the table counts: the warning of a changed key, for example, is
 * followed by "Host key verification failed".
 */
#include "head/nodes/ssh_program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Exit code of ssh for every failure before the remote command. */
#define SSH_FAILED 255

void ssh_program_add_options(const struct ssh_options *o, struct strv *argv)
{
        /* No terminal, which would change bytes, and no questions, as no user can answer. */
        strv_push(argv, "-T");
        strv_push(argv, "-oBatchMode=yes");
        strv_pushf(argv, "-oStrictHostKeyChecking=%s", o->accept_new ? "accept-new" : "yes");
        if (o->connect_timeout_ms > 0)
                /* In seconds, rounded up: 0 would be no limit. */
                strv_pushf(argv, "-oConnectTimeout=%d", (o->connect_timeout_ms + 999) / 1000);
}

static const struct {
        const char *text;
        enum link_phase phase;
        enum link_cause cause;
        const char *fact;
} ssh_messages[] = {
        { "HOST IDENTIFICATION HAS CHANGED", LINK_HOSTKEY, LINK_KEY_CHANGED,
          "the host key has CHANGED" },
        { " revoked by file ", LINK_HOSTKEY, LINK_KEY_REVOKED, "the host key is revoked" },
        { " in revoked keys file ", LINK_HOSTKEY, LINK_KEY_UNCHECKED,
          "RevokedHostKeys cannot be used" },
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

void ssh_program_classify(int status, int signal, struct link_failure *why)
{
        if (signal || status != SSH_FAILED) {
                if (!signal)
                        snprintf(why->fact, sizeof(why->fact),
                                 "the remote command ended with exit code %d", status);
                return;
        }
        why->cause = LINK_DROPPED;
        /* Only after an orderly close the far end certainly knows. */
        why->one_sided = !strstr(why->evidence, "closed by remote host");
        snprintf(why->fact, sizeof(why->fact), "ssh lost or refused the connection");
        for (size_t i = 0; i < ARRAY_SIZE(ssh_messages); i++) {
                if (!strstr(why->evidence, ssh_messages[i].text))
                        continue;
                why->phase = ssh_messages[i].phase;
                why->cause = ssh_messages[i].cause;
                snprintf(why->fact, sizeof(why->fact), "%s", ssh_messages[i].fact);
                return;
        }
}
