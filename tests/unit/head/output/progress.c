/* SPDX-License-Identifier: Apache-2.0 */
#include "head/output/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "head/model/events.h"
#include "lib/unit.h"

/* Expects on standard error what a launch prints that has waited for four nodes for six seconds
 * without an event. */
static void expect_wait(bool on_hold, const char *want)
{
        const struct progress_options o = { .n_hosts = 4, .remote = true };
        struct events es;
        struct progress *p;
        FILE *to = tmpfile();
        int was = dup(STDERR_FILENO);
        char got[200] = "";

        assert_non_null(to);
        assert_true(was >= 0 && dup2(fileno(to), STDERR_FILENO) >= 0);
        events_init(&es);
        es.start_ns -= 6000000000;
        p = progress_create(&es, &o);
        if (on_hold)
                progress_on_hold(p);
        progress_tick(p);
        progress_destroy(p);
        assert_true(dup2(was, STDERR_FILENO) >= 0);
        close(was);
        rewind(to);
        assert_non_null(fgets(got, sizeof(got), to));
        fclose(to);
        assert_string_equal(got, want);
}

TEST(a_node_of_which_nothing_is_known_is_not_named)
{
        expect_wait(false, "hnlaunch: 0/4 nodes ready, 6.0s\n");
        expect_wait(true, "hnlaunch: 0/4 nodes ready, waiting for the hold, 6.0s\n");
}
