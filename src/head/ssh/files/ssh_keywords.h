/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ssh keywords: each keyword of ssh_config(5), and what hnlaunch does with it
 *
 * The table has the keywords of OpenSSH 10.5, those that distributions add (GSSAPI of Debian and
 * Red Hat), and those that ssh(1) still accepts and ignores. tests/ssh/keywords-of-ssh-are-in-the-
 * manual.sh compares it with the manual pages. Constant, so safe for all threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"

enum ssh_keyword_use {
        KEYWORD_OBEYED,
        KEYWORD_HARMLESS, /* without a meaning for a launch: see why */
        KEYWORD_ASIDE,    /* not obeyed: a warning with -v, or when a login fails */
        KEYWORD_TOLD,     /* not obeyed: a warning, since the login stays the same */
        KEYWORD_REFUSED,  /* not obeyed: an error, since ssh(1) would refuse or go elsewhere */
};

/* How values are checked when a file is read; as in ssh(1), bad values are errors in each block. */
enum ssh_keyword_value {
        VALUE_ANY, /* at least one word */
        VALUE_WORD,
        VALUE_FLAG,   /* yes, no, true, false */
        VALUE_CHOICE, /* a word of choices */
        VALUE_NUMBER,
        VALUE_PORT,
        VALUE_FILES, /* words; "none" stands alone */
        VALUE_LINE,  /* the rest of the line, with quotes */
};

struct ssh_keyword {
        const char *name;
        enum ssh_keyword_use use;
        enum ssh_keyword_value value;
        const char *choices; /* VALUE_CHOICE: words in lower case, separated by | */
        const char *fine; /* aside, told and refused: values that change nothing, separated by | */
        const char *why;  /* harmless: the reason; others: what is not done */
        const char *only_if; /* aside, told and refused: "Keyword value" that has to be set, too;
                              * "!" in front: that must not be set */
};

/* Finds a keyword by its name or by an older name of it, in any case. NULL = unknown. */
const struct ssh_keyword *ssh_keyword_find(const char *name);

/* The keywords in the order of the table. NULL = behind the end. */
const struct ssh_keyword *ssh_keyword_at(size_t i);

/* Checks the words behind a keyword. -EINVAL with the reason in @err. */
int ssh_keyword_check(const struct ssh_keyword *k, const struct strv *args, struct error *err);

/* Returns the port of the value of VALUE_PORT, or -1. */
int ssh_keyword_port(const char *word);

/* Tells whether @word is one of @list, "a|b|c", in any case. NULL is an empty list. */
bool ssh_keyword_list_has(const char *list, const char *word);
