/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "wire/frame.h"

/* The first byte sets the size of the pieces in which the rest arrives. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t step = size ? (size_t)data[0] + 1 : 1;
        CLEANUP(buf_finish) struct buf in = BUF_INIT;
        struct frame f;
        struct error err;
        int r = 0;

        for (size_t at = 1; at < size && r >= 0; at += step) {
                buf_append(&in, data + at, MIN(step, size - at));
                while ((r = frame_peek(&in, &f, &err)) > 0) {
                        require(f.len + FRAME_HEADER <= buf_len(&in) && f.body >= buf_data(&in));
                        frame_consume(&in, &f);
                }
                require(r >= 0 || (err.code && err.text[0]));
        }
        return 0;
}
