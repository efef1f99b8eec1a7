/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport: a way to reach a command on a host
 *
 * A transport opens links. A link starts ONE remote command (or local process) and hands back a
 * stream descriptor joined to stdin and stdout. All protocol, such as the upload of the agent, is
 * above, on that descriptor. All callbacks run on the main loop's thread, never from inside the
 * call that opens or closes, and from inside explain() only ended().
 *
 *   transport_process forks the agent, the site's own ssh (--ssh-command), or another program
 *                     (--start-with), over a socketpair
 *   transport_ssh     libssh, in a small pool of threads
 *   transport_tree    goes through another node's agent (--tree), without a descriptor
 *   transport_hold    has the agents of a hold (--hold), and one of the others for further hosts
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"

enum link_phase {
        LINK_RESOLVING,
        LINK_CONNECTING, /* TCP */
        LINK_KEX,        /* SSH banner and key exchange */
        LINK_HOSTKEY,
        LINK_AUTH,
        LINK_EXEC, /* channel and remote command */
        LINK_OPEN,
        LINK_PHASES,
};

enum link_cause {
        LINK_NO_NAME,     /* the name does not resolve */
        LINK_TIMED_OUT,   /* no answer within the phase's deadline */
        LINK_REFUSED,     /* connection refused */
        LINK_UNREACHABLE, /* no route, network down */
        LINK_DROPPED,     /* closed by the peer */
        LINK_KEY_UNKNOWN, /* host keys: before any authentication */
        LINK_KEY_CHANGED,
        LINK_KEY_REVOKED,
        LINK_KEY_UNCHECKED, /* the list of revoked keys cannot be used */
        LINK_DENIED,        /* every authentication method was refused */
        LINK_SPAWN,         /* the local process could not be started */
        LINK_ENDED,         /* after opening: the remote command or the session ended */
        LINK_PARENT,        /* the parent in the tree is not there, or was lost */
        LINK_ABSENT,        /* the node has not dialed in (--dial-in) */
        LINK_HOLD,          /* after opening: the hold of the node has ended */
        LINK_CONFIG,        /* a line of the ssh configuration cannot be obeyed */
        LINK_OTHER,
        LINK_CAUSES,
};

enum link_notice {
        NOTICE_NEW_KEY, /* a host key was accepted and stored: "HOST  TYPE PRINT  FILE:LINE" */
        NOTICE_CONFIG,  /* a line of the ssh configuration is not obeyed: "FILE: line N: ..." */
        NOTICE_CONFIG_ASIDE, /* ... which a launch misses only when a login fails */
        NOTICE_KEY_FILE,     /* a private key is not used: others have access. "FILE 0644" */
        LINK_NOTICES,
};

struct link_failure {
        enum link_phase phase;
        enum link_cause cause;
        char fact[256];      /* "no answer on port 22 in 10s"; equal facts are grouped */
        char detail[256];    /* differs per host: "10.0.1.9", or the offered key's print */
        char evidence[1024]; /* explanation: keys offered, methods, the remote's stderr */
        char help[256];      /* next step, "" = none */
        bool at_jump_host; /* of a jump host on the way, or told by it: .port and .user are those of
                              the host behind */
        bool one_sided;    /* the far end may not know: not closed there, but reset or timed out */
        int port;
        char user[64];
};

/* Fills in @why for an error of a host's ssh configuration; the error's next step is the help. */
static inline void link_failure_set_error(struct link_failure *why, const struct error *err)
{
        const char *text = err->text;
        size_t n = strcspn(text, "\n");

        *why = (struct link_failure){ .phase = LINK_RESOLVING,
                                      .cause = err->number == HN_SSH_CONFIG_LINE ? LINK_CONFIG
                                               : err->number == HN_HOST_KEY_UNCHECKED
                                                       ? LINK_KEY_UNCHECKED
                                                       : LINK_OTHER };
        snprintf(why->fact, sizeof(why->fact), "%.*s", (int)MIN(n, sizeof(why->fact) - 1), text);
        snprintf(why->help, sizeof(why->help), "%.*s", (int)sizeof(why->help) - 1,
                 text + n + (text[n] == '\n'));
}

struct node;

/* Where to go. Borrowed only during link_open(). */
struct link_target {
        const char *host;  /* as in the hostfile: also the alias for ssh_config */
        const char *user;  /* NULL = ssh_config, else login name */
        int port;          /* 0 = ssh_config, else 22 */
        struct node *via;  /* transport_tree: the parent; stays valid */
        size_t number;     /* transport_tree: of the host, at most a link each */
        bool has_children; /* further nodes will be reached through the host */
};

struct link_callbacks {
        /* The command is being executed. The callee owns the descriptor (non-blocking): EOF means
         * the end of the link, and closing the descriptor ends the link. -1: there is none, bytes
         * go by send() and come by received(). */
        void (*opened)(void *ctx, int fd);
        /* Instead of opened(). The last callback of this link. */
        void (*failed)(void *ctx, const struct link_failure *why);
        /* After opened(): the session ended, with the reason. The last callback. Comes before or
         * after the EOF on the descriptor. */
        void (*ended)(void *ctx, const struct link_failure *why);
        /* The remote command's stderr, for the log and for error messages; at any time. */
        void (*noise)(void *ctx, const char *text, size_t len);
        /* Of a login; a text about the configuration comes once per transport. May be NULL. */
        void (*notice)(void *ctx, enum link_notice kind, const char *text);
        /* For progress. May be NULL. */
        void (*phase)(void *ctx, enum link_phase phase);
        /* Without a descriptor: bytes from the far end; send() takes bytes again. */
        void (*received)(void *ctx, const void *data, size_t len);
        void (*writable)(void *ctx);
};

struct transport;
struct link;

struct transport_ops {
        /* Starts a link. The callbacks struct and ctx stay valid until the last callback or
         * link_close(). NULL with @err only when nothing can be started at all. */
        struct link *(*open)(struct transport *t, const struct link_target *to,
                             const struct link_callbacks *cb, void *ctx, struct error *err);
        /* Ends and frees a link in any state; no callback follows. Must be called once for every
         * link, also after failed() and ended(). */
        void (*close)(struct link *l);
        /* close() of a link without an answer of the agent: also ends a process of this machine
         * that may still be connecting. NULL: close() does all. */
        void (*abandon)(struct link *l);
        /* The descriptor has ended, without a reason so far: calls ended() within this call if the
         * reason is known, or comes at once. NULL: ended() comes by itself. */
        void (*explain)(struct link *l);
        void (*destroy)(struct transport *t);
        /* Links without a descriptor: consumes as many bytes of @out as there is credit for. */
        void (*send)(struct link *l, struct buf *out);
        /* ... sends the agent's binary, of which @via has a copy. */
        void (*upload)(struct link *l);
        /* ... sends a COMMON of @len bytes, a whole frame of which @via has a copy. */
        void (*common)(struct link *l, size_t len);
};

/* First field of every transport and link. */
struct transport {
        const struct transport_ops *ops;
};
struct link {
        struct transport *transport;
};

/* The maker of a transport. */
struct transport_maker {
        /* @other makes the transport in use without this maker. NULL with @err. */
        struct transport *(*create)(void *ctx, uv_loop_t *loop, const struct transport_maker *other,
                                    struct error *err);
        void *ctx;
};

static inline struct link *link_open(struct transport *t, const struct link_target *to,
                                     const struct link_callbacks *cb, void *ctx, struct error *err)
{
        return t->ops->open(t, to, cb, ctx, err);
}
static inline void link_close(struct link *l)
{
        if (l)
                l->transport->ops->close(l);
}
static inline void link_abandon(struct link *l)
{
        if (l && l->transport->ops->abandon)
                l->transport->ops->abandon(l);
        else
                link_close(l);
}
/* All links must be closed before. The handles are closed by the following turns of the loop. */
static inline void transport_destroy(struct transport *t)
{
        if (t)
                t->ops->destroy(t);
}

/* Settings of both ssh transports; strings are borrowed for the transport's life. */
struct ssh_options {
        /* Remote command line, a constant (head/nodes/bootstrap.h). NULL: a link only asks for the
         * host key, and ends with failed(): see head/nodes/host_key.h. */
        const char *command;
        const char *config_file;       /* NULL = ~/.ssh/config and /etc/ssh/ssh_config, "none" */
        const char *user;              /* NULL = from the config */
        int port;                      /* 0 = from the config */
        const struct strv *identities; /* --identity files, may be empty */
        const char *jump;              /* --jump, NULL = from the config */
        const char *ssh_command;       /* --ssh-command: "ssh -o ..." split by blanks and quotes */
        bool accept_new;               /* --host-key accept-new; a changed key stays an error */
        bool forward_agent;            /* forward the user's ssh-agent to nodes with children */
        int fanout;                    /* links in a handshake at once, 0 = automatic */
        size_t hosts;                  /* estimated number of hosts; 0 means 1 */
        int connect_timeout_ms;        /* per phase */
        int64_t silence_ms; /* the longest silence that the node's user may allow; a connection
                               endures more */
};

/* Creates a transport with local processes of @program, the agent, as links. */
struct transport *transport_local_create(uv_loop_t *loop, const char *program,
                                         const char *container);
/* In a module of its own, loaded by head/nodes/ssh_loader.h. */
PUBLIC struct transport *transport_ssh_create(uv_loop_t *loop, const struct ssh_options *o,
                                              struct error *err);
struct transport *transport_command_create(uv_loop_t *loop, const struct ssh_options *o,
                                           struct error *err);
