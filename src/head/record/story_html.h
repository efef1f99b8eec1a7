/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Story HTML: the story of a run as a page, complete in a single file (`hnlaunch report --html`)
 *
 * No scripts, no network: pictures are SVG inside the page. Shapes and letters repeat the
 * colours: the page can be printed. All text of others is escaped.
 */
#pragma once

#include "base/buf.h"
#include "head/record/story.h"

/* Appends the page; @no_verdict as in story_print(). */
void story_html(struct buf *to, const struct story *s, const char *no_verdict);

/* --- story_picture.c: the pictures, also of thousands of ranks a bounded size --- */

void picture_start(struct buf *to, const struct story *s); /* a bar for each node */
/* Returns whether lanes tell more than a common end with 0, or by a stop. */
bool picture_has_lanes(const struct story *s);
/* A lane for each of the most important ranks, between two times, which are counted from @zero_us.
 */
void picture_ranks(struct buf *to, const struct story *s, int64_t from_us, int64_t until_us,
                   int64_t zero_us);
/* A heat map of the steps; a sentence where none took longer, nothing where there are too few. */
void picture_steps(struct buf *to, const struct story *s);
void picture_series(struct buf *to, const struct story *s); /* processor, memory, network, GPUs */

/* --- for both --- */

void html_text(struct buf *to, const char *text); /* escaped */
