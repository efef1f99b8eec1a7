/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh server limits: the load borne by an sshd, learnt from the answers
 *
 * An sshd drops connections while too many logins are unfinished (MaxStartups), and since
 * OpenSSH 9.8 refuses an address for a while after failed logins from there (PerSourcePenalties).
 * An immediate retry makes both worse. So every hop asks here before it dials:
 *
 *   - After a drop, no more hops may be inside (in a handshake) than were not dropped; eight logins
 * in a row raise the limit by 1.
 *   - After a penalty all hops leave the server alone, for 2 s, then 4 s and so on up to 16 s; then
 * a single hop asks.
 *   - A refused login is not repeated: for 15 s other hops with the same user name get the same
 * answer. With a single login per hop this prevents two failures within 15 s.
 *
 * Thread-safe. Servers live as long as their set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "head/nodes/transport.h"

struct ssh_servers;
struct ssh_server;

enum ssh_server_answer {
        SERVER_DECIDED,   /* the login was accepted or refused */
        SERVER_DROPPED,   /* closed during the handshake */
        SERVER_PENALIZED, /* this address is refused for now */
        SERVER_SILENT,    /* any other end: no information about the load */
};

struct ssh_servers *ssh_servers_create(void);
void ssh_servers_free(struct ssh_servers *servers);

/* Returns the server, created on first use; never NULL. */
struct ssh_server *ssh_server_get(struct ssh_servers *servers, const char *host, int port);

/* Returns 0: dial now, and report the result with ssh_server_leave(); else the milliseconds to wait
 * before the next call. @now in milliseconds of any steady clock. */
int ssh_server_enter(struct ssh_server *s, uint64_t now);
void ssh_server_leave(struct ssh_server *s, enum ssh_server_answer answer, uint64_t now);

/* Returns the time of the last decided login, 0 = none: while logins succeed, waiting is
 * worthwhile. */
uint64_t ssh_server_last_good(struct ssh_server *s);

/* ssh_server_deny() stores the refusal of @user; ssh_server_denied() returns true with the refusal
 * for the next 15 s. */
void ssh_server_deny(struct ssh_server *s, const char *user, const struct link_failure *why,
                     uint64_t now);
bool ssh_server_denied(struct ssh_server *s, const char *user, uint64_t now,
                       struct link_failure *why);
