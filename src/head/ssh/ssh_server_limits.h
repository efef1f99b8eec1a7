/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh server: what one sshd bears, learnt from how it answers
 *
 * An sshd drops connections when too many have not logged in yet (MaxStartups), and since OpenSSH
 * 9.8 turns an address away for a while after failed logins from there (PerSourcePenalties). A
 * client that comes back at once makes both worse. So every hop asks here before it dials:
 *
 *   - After a drop no more hops are inside at once than those that were not dropped; eight logins
 * in a row make that one more.
 *   - A server that turns us away is left alone for 2 s, then 4 s and so on, by all hops, and then
 *     asked by one.
 *   - A login that was refused is not tried again: for 15 s others with the same name get the same
 *     answer. Together with one login per hop that keeps two failures within 15 s from happening.
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
        SERVER_LET_IN,      /* the login was decided */
        SERVER_DROPPED,     /* closed during the handshake */
        SERVER_TURNED_AWAY, /* said that this address may not come now */
        SERVER_SILENT,      /* anything else: says nothing about how much it bears */
};

struct ssh_servers *ssh_servers_create(void);
void ssh_servers_free(struct ssh_servers *servers);

/* Never NULL. */
struct ssh_server *ssh_server_get(struct ssh_servers *servers, const char *host, int port);

/* 0 = dial now, and tell ssh_server_leave() how it went; else so many milliseconds must pass before
 * the next question. @now in milliseconds of any steady clock. */
int ssh_server_enter(struct ssh_server *s, uint64_t now);
void ssh_server_leave(struct ssh_server *s, enum ssh_server_answer answer, uint64_t now);

/* When somebody was last let in, 0 = never: as long as that moves on, waiting is worth it. */
uint64_t ssh_server_last_good(struct ssh_server *s);

/* Remembers that @user was refused; asks for it: true with @why within the next 15 s. */
void ssh_server_deny(struct ssh_server *s, const char *user, const struct link_failure *why,
                     uint64_t now);
bool ssh_server_denied(struct ssh_server *s, const char *user, uint64_t now,
                       struct link_failure *why);
