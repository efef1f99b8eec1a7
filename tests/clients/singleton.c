/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program to be started with hnlaunch or by hand: prints "rank N of M".
 */
#include "claim.h"

int main(void)
{
        hn_init_opts opts = { .size = sizeof(opts), .flags = HN_INIT_ALLOW_SINGLETON };
        char value[8];
        size_t len = sizeof(value);
        hn_store *left, *whole;

        CLAIM(hn_init(&opts) == HN_OK);
        if (hn_rank() == 0)
                CLAIM(hn_store_set(hn_store_default(), "k", "v", 1) == HN_OK);
        CLAIM(hn_store_get(hn_store_default(), "k", value, &len, PATIENCE_MS) == HN_OK && len == 1);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        printf("rank %d of %d\n", hn_rank(), hn_world_size());
        hn_store_close(hn_store_default());
        CLAIM(hn_store_prefix(hn_store_default(), "p", &left) == HN_OK);
        whole = hn_store_default();
        CLAIM(hn_finalize() == HN_OK);
        hn_store_close(left);
        hn_store_close(whole);
        return 0;
}
