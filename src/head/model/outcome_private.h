/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcome private: shared by outcome.c and outcome_untold.c
 */
#pragma once

#include "head/model/outcome.h"
#include "head/reason/echo.h"

#define NS_PER_MS INT64_C(1000000)

enum { SKEW_MS = 200 /* words come later than they were written */ };

bool cause_is_end_of_rank(const struct cause *c);
/* Whether the others failed without that rank. */
bool cause_is_missed(const struct cause *c);
/* Whether a rank has ended by choice, without a word. */
bool cause_left_silently(const struct cause *c);

/* Sets the reason of @c from the report and @words, and whether the words tell of another's
 * failure. Returns the kind of the words. */
enum echo outcome_judge_words(const struct outcome *o, struct cause *c, const char *words);

/* The cause is the end of a rank: replaces the cause by a rank that was stopped, or ended with 0,
 * and has told the reason. */
void outcome_find_untold(struct outcome *o, const struct plan *plan, outcome_words_fn *last_words,
                         void *ctx);
