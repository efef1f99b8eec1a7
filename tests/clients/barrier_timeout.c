/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last rank comes late to a barrier; the others print the missing rank, then all complete one.
 */
#include "claim.h"

int main(void)
{
        static const char *const over[] = { "over" };
        int64_t gave_up = 0;
        int last, missing = -1;

        CLAIM(hn_init(NULL) == HN_OK);
        last = hn_world_size() - 1;
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == last) {
                CLAIM(hn_store_wait(hn_store_default(), over, 1, PATIENCE_MS) == HN_OK);
        } else {
                CLAIM(hn_barrier(NULL, 500) == HN_ERR_TIMEOUT);
                if (hn_rank() == 0) {
                        puts(hn_last_error());
                        CLAIM(hn_last_error_ranks(&missing, 1) >= 1);
                }
                /* The last rank to give up lets the late one arrive; earlier the barrier would be
                 * completed. */
                CLAIM(hn_store_add(hn_store_default(), "gave up", 1, &gave_up) == HN_OK);
                if (gave_up == last)
                        CLAIM(hn_store_set(hn_store_default(), "over", "", 0) == HN_OK);
                CLAIM(hn_store_wait(hn_store_default(), over, 1, PATIENCE_MS) == HN_OK);
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        return hn_finalize();
}
