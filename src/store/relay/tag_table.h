/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags: numbers for requests that are on their way, to be found again by their answers
 *
 * A tag is taken until its answer has come, and may be used again at once. 0 is no tag.
 */
#pragma once

#include <stdint.h>

struct flight;

struct tags {
        struct tag {
                struct flight *of;
                uint32_t next_free;
        } * v; /* tag 1 is v[0] */
        uint32_t n, first_free;
};

uint32_t tags_take(struct tags *t, struct flight *f);
struct flight *tags_find(const struct tags *t, uint32_t tag); /* NULL = nobody's */
void tags_give_back(struct tags *t, uint32_t tag);
void tags_finish(struct tags *t);
