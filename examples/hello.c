/* SPDX-License-Identifier: Apache-2.0 */
#include <hnlaunch/hnlaunch.h>
#include <stdio.h>

int main(void)
{
        if (hn_init(NULL) != HN_OK)
                return fprintf(stderr, "hello: %s\n", hn_last_error()), 1;
        printf("hello from rank %d of %d on %s\n", hn_rank(), hn_world_size(),
               hn_hostname_of(hn_rank()));
        return hn_barrier(hn_world(), HN_DEFAULT_TIMEOUT) || hn_finalize();
}
