/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role book: addresses and ports of the roles of a job, and the references to them in texts
 *
 *   {ROLE.addr}        address of the first instance of ROLE
 *   {ROLE.hosts}       names of the hosts of all instances, each once, joined by commas
 *   {ROLE.port:NAME}   port NAME of the first instance
 *   {ROLE.urls:NAME}   http://addr:port of all instances, joined by commas
 *   {ROLE.each:TEXT}   TEXT for each instance, with {addr}, {host}, {index} and {port:NAME} of it
 *   {port:NAME}        port NAME of the instance that the text is for
 *
 * An instance has an address and ports of its own: each replica of a role with replicas, at the
 * node of its rank 0; else each rank. A reference reserves its port on all instances of the role.
 *
 * Every other brace stays, as does ${ROLE.addr}, which belongs to a shell or to OmegaConf. A
 * backslash in front of a reference is removed instead, as with --subst (wire/env/subst.h). An IPv6
 * address in front of a colon gets brackets.
 *
 * Texts are read twice: role_book_scan() finds errors, ports to reserve and roles referred to, as
 * soon as the names of all roles are known. role_book_expand() needs the instances, too. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intlist.h"
#include "base/strv.h"

struct diags;
struct role_book;

/* A text with references. */
struct role_text {
        const char *text;
        const char *place; /* for messages: "argument 3 of role infer", "rl.ini:12" */
        /* The line of a file with @text at the offset @at; NULL = messages show @text alone. */
        const char *source;
        size_t at;
        int line; /* number of @source; 0 = none */
        int role; /* whose text; -1 = of no role, which has no {port:NAME} */
};

struct role_book *role_book_create(void);
void role_book_destroy(struct role_book *b);

/* Adds a role. Returns its number, 0, 1, ... */
int role_book_add(struct role_book *b, const char *name);
/* An instance of the role is a replica, not a rank. */
void role_book_set_replicated(struct role_book *b, int role);
bool role_book_is_replicated(const struct role_book *b, int role);
/* Returns the number of a role, -1 = there is none. */
int role_book_find(const struct role_book *b, const char *name);

/* Reads a text: notes ports and roles. 0, or -EINVAL with all its errors in @d: HN411 for a port,
 * HN414 for any other reference. */
int role_book_scan(struct role_book *b, const struct role_text *t, struct diags *d);
/* Has each instance of a role reserve a port. 0; -EINVAL: no valid name (wire/port_name.h); -E2BIG:
 * more than PORT_NAMES_MAX. */
int role_book_need_port(struct role_book *b, int role, const char *name);
/* Returns the names of the ports that each instance of a role must reserve; lent. */
const struct strv *role_book_ports(const struct role_book *b, int role);
/* Returns the other roles that the texts of a role refer to; lent. */
const struct intlist *role_book_referred(const struct role_book *b, int role);

/* Adds an instance of a role. @addr NULL: as @host. Returns its index, 0, 1, ... */
int role_book_add_instance(struct role_book *b, int role, const char *host, const char *addr);
/* Returns the address of an instance; lent. */
const char *role_book_address(const struct role_book *b, int role, int instance);
/* Removes the instances of all roles. */
void role_book_clear_instances(struct role_book *b);
/* Sets or replaces a reserved port; 0 = not known yet, which becomes "(free port there)". */
void role_book_set_port(struct role_book *b, int role, int instance, const char *name,
                        uint32_t number);

/* Appends an argument as one word. Where {ROLE.each:TEXT} is the whole argument, each instance
 * gives the words of TEXT, split at blanks. @instance: of the role of the text; -1 leaves
 * {port:NAME} and \{port:NAME} unchanged, for the agent. 0, or -EINVAL with nothing appended and
 * the errors in @d: as of role_book_scan(), a role without instances, a port that was not set. */
int role_book_expand(const struct role_book *b, const struct role_text *t, int instance,
                     struct strv *argv, struct diags *d);
/* The same of a value or label: {ROLE.each:TEXT} is always joined with blanks. Returns the text,
 * malloc'ed; NULL: errors. */
char *role_book_expand_text(const struct role_book *b, const struct role_text *t, int instance,
                            struct diags *d);

/* Returns HN_ROLES: {"infer": {"instances": [{"index": 0, "host": "gpu001", "addr": "10.0.0.1",
 * "ports": {"http": 41000}}]}}; a new reference. */
json_t *role_book_json(const struct role_book *b);
