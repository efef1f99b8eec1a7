/* SPDX-License-Identifier: Apache-2.0 */
#include "head/commands/run_holds.h"
#include "base/memory.h"
#include "lib/unit.h"

TEST(times_below_a_second_are_not_zero)
{
        json_t *holds = json_pack("[{s:s, s:i, s:i, s:i, s:[s]}]", "hold", "abcde", "us", 340000,
                                  "idle_left_ms", 700, "nodes_ready", 1, "hosts", "a");
        CLEANUP(free_textp) char *text = run_holds_table(holds);

        assert_non_null(strstr(text, "abcde  340ms "));
        assert_non_null(strstr(text, "ends in 700ms"));
        json_decref(holds);
}
