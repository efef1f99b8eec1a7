/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell_words: a command in one text, as the value of an option
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"

/* Appends the words of @text to @ret, split by a shell's rules for blanks, quotes and backslashes;
 * nothing is expanded. -EINVAL: an open quote, or no word at all. */
int shell_words_split(const char *text, struct strv *ret, struct error *err);
/* Joins the words with blanks, quoted for a shell where needed. malloc'ed. */
char *shell_words_join(const struct strv *words);
