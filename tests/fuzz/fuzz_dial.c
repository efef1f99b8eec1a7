/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node that calls may send: the input is a greeting for the head, raw bytes for its stream
 * of records, and then, properly sealed, a record: such a node knows the secret. A greeting of the
 * fuzzer never passes, raw bytes never open, and what decodes is in its limits.
 */
#include "fuzz.h"

#include <sodium.h>
#include <string.h>

#include "wire/noise/dial.h"

static void judge_sealed(struct dial_stream *from, struct dial_stream *to, const uint8_t *data,
                         size_t size)
{
        CLEANUP(buf_finish) struct buf wire = BUF_INIT;
        struct dial_record r;
        struct dial_join join;
        struct dial_end end;
        size_t len = size - 1 < DIAL_DATA_MAX ? size - 1 : DIAL_DATA_MAX;

        dial_put(from, (enum dial_type)data[0], data + 1, len, &wire);
        require(dial_take(to, &wire, &r) == 1 && r.type == data[0] && r.len == len &&
                memcmp(r.body, data + 1, len) == 0);
        require(dial_join_decode(&join, &r) != 0 ||
                (*join.name && !strpbrk(join.name, "/ \033\n")));
        require(dial_end_decode(&end, &r) != 0 || strlen(end.text) < sizeof(end.text));
        buf_consume(&wire, r.whole);
        require(!buf_len(&wire));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const uint8_t psk[NOISE_KEY] = { 1 };
        uint8_t first[DIAL_GREETING] = { 0 }, second[DIAL_GREETING];
        struct dial_stream node, head;
        CLEANUP(buf_finish) struct buf raw = BUF_INIT;
        struct dial_record r;

        require(sodium_init() >= 0);
        memcpy(first, data, size < sizeof(first) ? size : sizeof(first));
        require(dial_answer(&head, psk, first, second) != 0);
        dial_greet(&node, psk, first);
        require(dial_answer(&head, psk, first, second) == 0 &&
                dial_take_answer(&node, second) == 0);
        if (size)
                judge_sealed(&node, &head, data, size);
        buf_append(&raw, data, size);
        require(dial_take(&head, &raw, &r) != 1);
        return 0;
}
