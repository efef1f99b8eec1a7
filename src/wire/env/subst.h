/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subst: the place-holders in the arguments of a rank (--subst)
 *
 * {rank} {local_rank} {node_rank} {num_nodes} {master_addr} {master_port} {host} and {port:NAME}
 * are replaced; every other brace stays, and a backslash in front of a place-holder is removed
 * instead: \{rank} becomes {rank}. An IPv6 address in front of a colon gets brackets. Pure: the
 * agent replaces them before a rank starts, the head looks for them, prints a plan, and takes the
 * same names for labels (head/model/label.h). Ports of the rank itself come before those of rank
 * 0's node, and where a rank has such, {port:NAME} is replaced without --subst, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "wire/msg.h"

enum subst_kind {
        SUBST_NONE, /* another character */
        SUBST_RANK,
        SUBST_LOCAL_RANK,
        SUBST_NODE_RANK,
        SUBST_NUM_NODES,
        SUBST_MASTER_ADDR,
        SUBST_MASTER_PORT,
        SUBST_HOST,
        SUBST_PORT, /* {port:NAME}; @name need not be valid (wire/port_name.h) */
        SUBST_KINDS,
};

struct subst_piece {
        enum subst_kind kind;
        bool escaped; /* with a backslash, which belongs to the piece */
        size_t len;   /* bytes of the text */
        const char *name;
        size_t name_len; /* of the port */
};

/* Reads the piece at the beginning of @text, which is not empty: a place-holder, or one byte. */
struct subst_piece subst_read(const char *text);
/* The same where a backslash means nothing: in a label. */
struct subst_piece subst_read_name(const char *text);
/* Returns the number of a SUBST_PORT; 0 = @first does not have it. */
uint32_t subst_port_number(const struct subst_piece *p, const struct launch_first_node *first);
/* Whether @text has a place-holder, escaped or not. */
bool subst_has_any(const char *text);

/* Appends the program and its arguments to @argv: the words of --wrap, the words of the program of
 * @r in @l, the arguments with place-holders replaced when @l says so, and the option for the local
 * rank. A number that is 0 because it is not known yet, for a plan, becomes "(free port there)". */
void subst_arguments(struct strv *argv, const struct launch_order *l, const struct launch_rank *r);
/* Lays the variables of the program of @r over @env, with {port:NAME} replaced in their values when
 * the rank has ports of its own. */
void subst_variables(struct strv *env, const struct launch_order *l, const struct launch_rank *r);
