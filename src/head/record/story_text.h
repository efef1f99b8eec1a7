/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Story text: the story of a run for a terminal, and as JSON (`hnlaunch report`)
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "head/record/story.h"

/* Appends the report for a terminal of @columns, which rows of tables do not pass; 0 = no terminal.
 * Text of others is made harmless. @no_verdict stands in the place of the verdict of a run without
 * one. */
void story_print(struct buf *to, const struct story *s, const char *no_verdict, size_t columns);
/* Returns the same as JSON, a new reference. The names are a promise (CHANGELOG.md). */
json_t *story_json(const struct story *s);

struct story_span {
        char text[32];
};
struct story_span story_span(int64_t us); /* "3.1ms", "2m10s" */

/* --- sentences, for the HTML form, too: malloc'ed --- */

/* The words of an array as a line for a shell. */
char *story_shell_line(const json_t *words);
/* "4 nodes, 32 ranks, 2026-11-25 08:13, on login1" */
char *story_headline(const struct story *s);
/* "3 roles: trainer 8 ranks on 2 nodes, infer 4 on 1"; NULL = the job has none */
char *story_roles_text(const struct story *s);
/* "ranks 0-1,3 wait in hn_barrier ..."; NULL = no hang was found */
char *story_hang_text(const struct story *s);
/* "ranks 0-1: each sleeps in nanosleep"; NULL = no look at the ranks, or a hang */
char *story_where_text(const struct story *s);
/* "connect gpu031 0.9s -> agent gpu031 0.4s -> join rank 207 2.2s" */
char *story_path_text(const struct story *s, const struct story_start *a, const char *arrow);
/* Of a later start: "after 4.3s of waiting, ranks ran 0.8s later: start rank 3 on gpu002 0.8s" */
char *story_again_text(const struct story *s, const struct story_start *a, const char *arrow);
/* Returns how many of the later starts are not worth showing: all but the last ones. */
size_t story_starts_hidden(const struct story *s);
/* "2m10s, 3.9s before the failure: rank 13 on gpu026 ..."; NULL = none has diverged
 * before the failure */
char *story_divergence_text(const struct story *s);
/* "the others wait for gpu031 for 11 % of each step (100 steps)"; NULL = no node is slow */
char *story_slow_text(const struct story *s);
/* Of which nodes there is no trace, and how exact the clocks are. */
char *story_traces_text(const struct story *s);
/* What happened, in a word or two, lent; where, then: rank 3 may have been elsewhere; and the text.
 */
const char *story_note_what(const struct story_note *n);
char *story_note_place(const struct story *s, const struct story_note *n);
char *story_note_text(const struct story_note *n);
/* Of an element of `attempts`: "host out: gpu001 or its agent was lost; 3 steps won, 4.1s lost" */
char *story_attempt_text(const json_t *attempt);
/* Returns how many of the attempts are not worth showing: all but the last ones, or all of a run
 * without a restart. */
size_t story_attempts_hidden(const struct story *s);
/* "exited with code 1 after 2.1s", since the start of hnlaunch as of all times */
char *story_end_text(const struct story_rank *r);
