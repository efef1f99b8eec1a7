/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host word: "alice@gpu[01-04]:8", the form in which every list of hosts names machines
 *
 *   word = [ user "@" ] ( names | "[" IPv6 "]" ) [ ":" ( slots | "auto" | "*" ) ]
 *
 * Names and users come from an allow-list: letters, digits, `.`, `_` and `-`, the first one a
 * letter, a digit or `_`. So nothing that reaches a command line or a resolver from here can be an
 * option or hold a shell's characters. Pure and reentrant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "head/hosts/range.h"

struct host_spec {
        struct strv names; /* without user, brackets and slots */
        char *user;        /* NULL = not given */
        int slots;         /* 0 = not given, or "auto" */
        bool slots_given;
        size_t user_len;            /* the user is text[0..user_len) */
        size_t slots_at, slots_len; /* where the slots are, when given */
};

/* Fills an empty @w; host_spec_finish() in both cases. 0, or -EINVAL with @e filled in. */
int host_spec_parse(struct host_spec *w, const char *text, size_t len, struct range_error *e);
void host_spec_finish(struct host_spec *w);

/* Single values. 0, or -EINVAL with @e filled in. */
int host_spec_check_user(const char *text, size_t len, struct range_error *e);
/* A name without ranges, or a numeric address; an IPv6 address with or without brackets. */
int host_spec_check_address(const char *text, size_t len, struct range_error *e);
/* A decimal number in [@low, @high]. @what is the key's name. */
int host_spec_number(const char *text, size_t len, const char *what, int low, int high, int *ret,
                     struct range_error *e);
/* A slot count, or "auto" (0). */
int host_spec_slots(const char *text, size_t len, const char *what, int *ret,
                    struct range_error *e);
