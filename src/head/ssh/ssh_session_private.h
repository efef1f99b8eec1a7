/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a hop, for ssh_session.c, ssh_connect.c, ssh_jump.c and ssh_agent_forward.c alone
 */
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "head/ssh/ssh_auth.h"
#include "head/ssh/ssh_dial.h"
#include "head/ssh/ssh_session.h"
#include "head/ssh/ssh_stream.h"

enum hop_state {
        HOP_TCP,     /* dialling, or waiting for the jump host or the proxy command */
        HOP_PAUSE,   /* dropped in the handshake, or not its turn: about to dial */
        HOP_BANNER,  /* the server has not said a word */
        HOP_CONNECT, /* key exchange */
        HOP_HOSTKEY,
        HOP_AUTH,
        HOP_EXEC, /* the target's command is being started */
        HOP_UP,
        HOP_CLOSED, /* failed or ended; waits for ssh_hop_close() */
        HOP_STATES,
};

/* A connection from a jump host onward. The jump host owns it; @inner is NULL once unwanted. */
struct forward {
        struct ssh_hop *jump, *inner;
        struct ssh_stream *stream;
        char refused[128];
        struct forward *next;
};

struct lent; /* a connection from the node to the user's ssh-agent */

struct ssh_hop {
        struct ssh_hops *hops;
        const struct ssh_hop_ops *ops;
        void *ctx;
        const struct ssh_target *route;
        enum hop_state state;
        enum link_phase phase; /* the last that was told */
        uv_timer_t timer;
        bool slow_told, running, opened;
        bool inside; /* counted by the route's server */
        uint64_t begun;
        unsigned attempts;
        char greeting[80]; /* what the server said instead of a banner, now or the last time */
        char dropped[160]; /* libssh's word for why the last handshake came to nothing */
        struct ssh_dial *dial;
        uv_process_t *proxy;
        int fd, lent; /* the connection: polled by us, and libssh's own name for it */
        bool tcp;
        uv_poll_t *poll;
        int armed;
        ssh_session session;
        ssh_event event;
        struct ssh_auth auth;
        struct ssh_stream *exec;
        /* The user's ssh-agent. */
        bool lends;
        struct ssh_callbacks_struct callbacks;
        struct lent *lent_out;
        size_t lent_count;
        char refused[200];
        enum link_cause refused_cause;
        /* The last of the remote's stderr. */
        char said[768];
        size_t said_len;
        /* How this hop is reached, when over another one. */
        struct ssh_hop *via;
        struct forward *forward;
        /* Jump hosts. */
        char *jump_name; /* NULL = a target */
        struct forward *forwards;
        size_t users;
        struct ssh_hop *next_jump;
};

/* The dial reports its own time-out, with the address: so much later than it. */
#define DIAL_GRACE_MS 1000

struct ssh_hop *hop_create(struct ssh_hops *hops, const struct ssh_target *route,
                           const struct ssh_hop_ops *ops, void *ctx);
void hop_begin(struct ssh_hop *h);
/* Runs the steps of the hop's state until it has to wait. */
void hop_run(struct ssh_hop *h);
/* The hop has a socket: the handshake begins. */
void hop_connected(struct ssh_hop *h, int fd, bool tcp);
/* Ends the hop with failed(), or ended() once it was opened. */
void hop_fail(struct ssh_hop *h, struct link_failure *why);
void hop_failf(struct ssh_hop *h, enum link_phase phase, enum link_cause cause, const char *detail,
               const char *fmt, ...) PRINTF(5, 6);

/* The most that one phase may take. */
int hop_timeout(const struct ssh_hop *h);
/* Tells the phase, and fires after @ms; 0 = never. */
void hop_enter(struct ssh_hop *h, enum hop_state state, enum link_phase phase, int ms);
/* Dials after @ms; others may use the time. */
void hop_pause(struct ssh_hop *h, int ms);
void hop_tell_slow(struct ssh_hop *h);
/* Back to before the dial. */
void hop_release(struct ssh_hop *h);
/* The route's server hears how it went. */
void hop_leave(struct ssh_hop *h, enum ssh_server_answer answer);
void hop_fail_socket(struct ssh_hop *h, int error, const char *address);

/* ssh_connect.c: at once or when the server can be asked. */
void hop_dial(struct ssh_hop *h);
/* Takes the server's first words, if they have come: HOP_BANNER is over then. */
void hop_read_greeting(struct ssh_hop *h);
/* libssh has given up: dials again later, or fails. */
void hop_handshake_failed(struct ssh_hop *h);

/* The session to the jump host that @h goes over, shared by all that do so in this thread. */
struct ssh_hop *jump_acquire(struct ssh_hop *h);
void jump_release(struct ssh_hop *h);
/* Asks the jump host for a connection: hop_connected(), or a failure. */
void jump_dial(struct ssh_hop *h);
/* The connection, or the wish for it, is not wanted any more. */
void jump_hang_up(struct ssh_hop *h);
/* On the jump host: fails those that wait; frees all; moves bytes, -1 when the session is lost. */
void jump_fail_waiting(struct ssh_hop *jump, const struct link_failure *why);
void jump_free_forwards(struct ssh_hop *jump);
int jump_pump(struct ssh_hop *jump, bool *ret_active);

/* The user's ssh-agent is offered to the command, which has not been started yet. */
void lend_begin(struct ssh_hop *h);
/* Moves bytes between node and agent, -1 when the session is lost. */
int lend_pump(struct ssh_hop *h, bool *ret_active);
void lend_end(struct ssh_hop *h);
