/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tag_table: numbers of requests on their way, by which their answers find them
 *
 * A tag is taken until the answer has come, and may be used again at once. 0 is no tag.
 */
#pragma once

#include <stdint.h>

struct request;

struct tag_table {
        struct tag {
                struct request *of;
                uint32_t next_free;
        } * v; /* tag 1 is v[0] */
        uint32_t n, first_free;
};

uint32_t tag_table_take(struct tag_table *t, struct request *r);
struct request *tag_table_find(const struct tag_table *t, uint32_t tag); /* NULL = free */
void tag_table_give_back(struct tag_table *t, uint32_t tag);
void tag_table_finish(struct tag_table *t);
