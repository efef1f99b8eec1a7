/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Burst: output of a rank without a pause, such as a traceback
 *
 * Of ranks that fail of one another, the first to begin the last words has usually failed first;
 * the order of the ends depends on the machine's load. Output without any pause is no burst of last
 * words: only the end of such output counts.
 */
#pragma once

#include <stdint.h>

/* Times of one clock, in nanoseconds; 0 = nothing was written. */
struct burst {
        int64_t began_ns, newest_ns;
};

/* Adds output of now. A program may write once more at the end, after the reason. */
static inline void burst_add(struct burst *b, int64_t now_ns)
{
        enum { PAUSE_MS = 500 };

        if (!b->newest_ns || now_ns - b->newest_ns > PAUSE_MS * INT64_C(1000000))
                b->began_ns = now_ns;
        b->newest_ns = now_ns;
}

/* Returns when the last words began. */
static inline int64_t burst_words_ns(const struct burst *b)
{
        enum { WORDS_MS = 2000 };

        return b->newest_ns - b->began_ns > WORDS_MS * INT64_C(1000000) ? b->newest_ns
                                                                        : b->began_ns;
}
