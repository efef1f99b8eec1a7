/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_texts HOW TEXT: the last rank hands TEXT to the launcher by one of the ways that a rank
 * has
 *
 *     abort     hn_abort()
 *     report    hn_report_error(), as kind and text; exits with 3
 *     step      hn_progress(), then sleeps
 *     wait      waits for a key of this name for ever
 */
#include <string.h>
#include <unistd.h>

#include "claim.h"

int main(int argc, char **argv)
{
        const char *how = argc > 2 ? argv[1] : "", *text = argc > 2 ? argv[2] : "";

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() < hn_world_size() - 1)
                sleep(1000);
        if (strcmp(how, "abort") == 0)
                CLAIM(hn_abort(3, "%s", text) == HN_OK);
        if (strcmp(how, "report") == 0)
                return hn_report_error(text, "%s", text) == HN_OK ? 3 : 1;
        if (strcmp(how, "step") == 0)
                CLAIM(hn_progress(1, 5, text) == HN_OK);
        puts("up");
        fflush(stdout);
        if (strcmp(how, "wait") == 0)
                hn_store_wait(hn_store_default(), &text, 1, HN_NO_TIMEOUT);
        sleep(1000);
        return 0;
}
