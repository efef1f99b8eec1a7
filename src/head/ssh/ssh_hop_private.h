/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh hop, private: for ssh_hop.c, ssh_connect.c, ssh_jump.c and ssh_agent_forward.c only
 */
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "head/ssh/ssh_auth.h"
#include "head/ssh/ssh_dial.h"
#include "head/ssh/ssh_hop.h"
#include "head/ssh/ssh_misuse.h"
#include "head/ssh/ssh_stream.h"

enum ssh_hop_state {
        HOP_TCP,     /* dialling, or waiting for the jump host or the proxy command */
        HOP_PAUSE,   /* waits before the next dial: dropped in the handshake, or others are first */
        HOP_BANNER,  /* no byte from the server yet */
        HOP_CONNECT, /* key exchange */
        HOP_HOSTKEY,
        HOP_AUTH,
        HOP_EXEC, /* the remote command is being started */
        HOP_UP,
        HOP_CLOSED, /* failed or ended; waits for ssh_hop_close() */
        HOP_STATES,
};

/* Owned by ssh_connect.c: the way to a connected socket. */
struct ssh_hop_connect {
        bool slow_told;
        bool counted; /* by the target's server, see ssh_server_enter() */
        uint64_t begun;
        unsigned attempts;
        char greeting[80]; /* the server's text in place of a banner, of this attempt or the last */
        char error[160];   /* libssh's reason for the end of the last handshake */
        struct ssh_dial *dial;
        uv_process_t *proxy; /* ProxyCommand */
};

/* Owned by ssh_hop.c: the libssh session on the socket. */
struct ssh_hop_session {
        int fd;        /* polled here */
        int libssh_fd; /* a duplicate, given to libssh */
        bool tcp;
        uv_poll_t *poll;
        int armed;       /* events of @poll */
        bool unfinished; /* streams could go on at once */
        ssh_session ssh;
        ssh_event event;
        struct ssh_misuse misuse;
        struct ssh_auth auth;
        struct ssh_stream *exec; /* the remote command; NULL on a jump host */
        char stderr_tail[768];   /* the last of the command's stderr */
};

/* A connection from a jump host onward. The jump host owns it; @inner is NULL once unwanted. */
struct jump_forward {
        struct ssh_hop *jump, *inner;
        struct ssh_stream *stream;
        struct jump_forward *next;
};

/* Owned by ssh_jump.c. */
struct ssh_hop_jump {
        /* Of a hop over a jump host. */
        struct ssh_hop *via;
        struct jump_forward *forward;
        /* Of a jump host. */
        char *name; /* NULL = not a jump host */
        struct jump_forward *forwards;
        size_t users;
        struct ssh_hop *next;
};

struct agent_channel;

/* Owned by ssh_agent_forward.c. */
struct ssh_hop_agent_forward {
        bool wanted;
        struct ssh_callbacks_struct callbacks;
        struct agent_channel *channels;
        size_t count;
};

struct ssh_hop {
        struct ssh_hops *hops;
        ssh_hop_report report; /* NULL on a jump host */
        void *ctx;
        const struct ssh_target *target;
        enum ssh_hop_state state;
        enum link_phase phase; /* last reported */
        uv_timer_t timer;
        bool running, opened;
        char refused[200]; /* a jump host's failure and cause */
        enum link_cause refused_cause;
        struct ssh_hop_connect connect;
        struct ssh_hop_session session;
        struct ssh_hop_jump jump;
        struct ssh_hop_agent_forward agent_forward;
};

/* The dial reports a timeout, with the address: the hop's timer is later by this time. */
#define DIAL_GRACE_MS 1000

extern const struct ssh_stream_ops ssh_hop_stream_ops; /* for streams with the hop as @ctx */

/* Reports an event, unless the hop is a jump host. */
void ssh_hop_tell(struct ssh_hop *h, struct ssh_hop_event event);
/* Runs the steps of the hop's state until a step has to wait. */
void ssh_hop_run(struct ssh_hop *h);
/* Begins the handshake on a connected socket. */
void ssh_hop_connected(struct ssh_hop *h, int fd, bool tcp);
/* Ends the hop with failed(), or ended() if opened. */
void ssh_hop_fail(struct ssh_hop *h, struct link_failure *why);
void ssh_hop_failf(struct ssh_hop *h, enum link_phase phase, enum link_cause cause,
                   const char *detail, const char *fmt, ...) PRINTF(5, 6);

/* Returns the time limit of a phase. */
int ssh_hop_timeout(const struct ssh_hop *h);
/* Reports the phase and sets the timer; @ms 0 = none. */
void ssh_hop_enter(struct ssh_hop *h, enum ssh_hop_state state, enum link_phase phase, int ms);
/* Dials after @ms, and lets other hops use the time. */
void ssh_hop_pause(struct ssh_hop *h, int ms);
/* Frees everything of the attempt: socket, session, streams. */
void ssh_hop_release(struct ssh_hop *h);
/* Reports the result of the attempt to the target's server. */
void ssh_hop_leave(struct ssh_hop *h, enum ssh_server_answer answer);
void ssh_hop_fail_socket(struct ssh_hop *h, int error, const char *address);

/* ssh_connect.c: dials at once, or as soon as the server's limits allow. */
void ssh_connect_dial(struct ssh_hop *h);
/* Reads the server's first bytes, if there are any, which ends HOP_BANNER. */
void ssh_connect_read_greeting(struct ssh_hop *h);
/* Dials again later, or fails, after libssh has given up. */
void ssh_connect_handshake_failed(struct ssh_hop *h);

/* Returns the session to the jump host of @h, shared by all hops of this thread over this host. */
struct ssh_hop *ssh_jump_acquire(struct ssh_hop *h);
void ssh_jump_release(struct ssh_hop *h);
/* Asks the jump host for a connection: leads to ssh_hop_connected() or a failure. */
void ssh_jump_dial(struct ssh_hop *h);
/* Drops the connection, or the request. */
void ssh_jump_hang_up(struct ssh_hop *h);
/* For the jump host: frees all forwards and fails the waiting hops, if there is a reason; moves
 * bytes, and returns as ssh_stream_pump(). */
void ssh_jump_end_forwards(struct ssh_hop *jump, const struct link_failure *why);
int ssh_jump_pump(struct ssh_hop *jump, bool *ret_active);

/* Offers the user's ssh-agent to the command, before the start. */
void ssh_agent_forward_begin(struct ssh_hop *h);
/* Moves bytes between node and agent. Returns as ssh_stream_pump(). */
int ssh_agent_forward_pump(struct ssh_hop *h, bool *ret_active);
void ssh_agent_forward_end(struct ssh_hop *h);
