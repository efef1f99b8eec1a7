/* SPDX-License-Identifier: Apache-2.0 */
#include "head/output/live_line.h"
#include "base/memory.h"

#include "lib/unit.h"

static void expect_line(struct live_facts f, const char *want)
{
        CLEANUP(free_textp) char *text = live_line_text(&f);

        assert_string_equal(text, want);
}

TEST(without_steps_the_output_is_told)
{
        expect_line((struct live_facts){ .us = 90000000, .ranks = 8 }, "1m30s  8 ranks");
        expect_line(
                (struct live_facts){ .us = 90000000, .ranks = 8, .waits = "role b waits for a" },
                "1m30s  8 ranks  role b waits for a");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 1, .bytes = 12000 },
                    "1m30s  1 rank  output 12.0 kB/s");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 1, .silent_us = 42000000 },
                    "1m30s  1 rank  no output for 42.0s");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 1, .silent_us = 9000000 },
                    "1m30s  1 rank");
        expect_line(
                (struct live_facts){
                        .us = 90000000, .ranks = 8, .silent.nodes = 1, .silent.host = "gpu001" },
                "1m30s  8 ranks  gpu001 is silent");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 8, .spares = 2 },
                    "1m30s  8 ranks");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 8, .attempt = 1 },
                    "1m30s  attempt 2  8 ranks");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 8, .attempt = 2, .spares = 1 },
                    "1m30s  attempt 3, 1 spare left  8 ranks");
        expect_line((struct live_facts){ .us = 90000000, .ranks = 8, .silent.nodes = 2 },
                    "1m30s  8 ranks  2 nodes are silent");
}

TEST(steps_have_a_spread_and_a_last_rank)
{
        struct live_facts f = { .us = 90000000, .ranks = 8, .steps = 8, .least = 120, .most = 120 };

        expect_line(f, "1m30s  step 120");
        f.total = 5000;
        expect_line(f, "1m30s  step 120/5000");
        f.rate = 2.0;
        expect_line(f, "1m30s  step 120/5000  2.0/s  40m40s left");
        f.total = 121;
        expect_line(f, "1m30s  step 120/121  2.0/s  500ms left");
        f.total = 5000;
        f.silent_us = 42000000;
        expect_line(f, "1m30s  step 120/5000  2.0/s  40m40s left  no step for 42.0s");
        f.step_us = 4200001;
        expect_line(f, "1m30s  step 120/5000  2.0/s  40m40s left");
        f.silent_us = 0;
        f.most = 122;
        f.name = "rank 3";
        f.host = "gpu001";
        f.rate = 0;
        expect_line(f, "1m30s  step 120-122/5000, rank 3 on gpu001 is the last");
        f.slow = "rank 7 on gpu002 is slow: others wait 19 %";
        expect_line(f, "rank 7 on gpu002 is slow: others wait 19 %\n1m30s  step 120-122/5000");
        f.slow = NULL;
        f.ranks = 1;
        f.total = 0;
        f.rate = 20.4;
        expect_line(f, "1m30s  step 120-122  20/s");
}

static void expect_bar(const char *bar, const char *want)
{
        struct live_facts f = { .us = 90000000, .ranks = 8, .bar.rank = 3 };

        f.bar.text = bar;
        f.bar.len = strlen(bar);
        expect_line(f, want);
}

TEST(without_steps_a_bar_is_shown)
{
        struct live_facts f = { .us = 90000000, .steps = 1, .least = 7, .bar = { "x", 1, 0 } };

        expect_bar("Epoch 1:  12%|# | 12/100", "1m30s  8 ranks  rank 3: Epoch 1:  12%|# | 12/100");
        expect_bar(" \033[32m12%\033[0m\t\033[K\033]0;title\abar\b \033[3",
                   "1m30s  8 ranks  rank 3: 12% bar");
        expect_bar("\033[1m \033[0m", "1m30s  8 ranks");
        expect_line(f, "1m30s  step 7");
}

TEST(what_a_stop_waits_for_is_told)
{
        struct live_facts f = { .us = 90000000, .ranks = 60, .slow = "rank 7 is slow" };

        f.end = (struct live_end){ .stopping = true, .us = 2100000, .of = 64 };
        expect_line(f, "1m30s  stopping for 2.1s, 60 of 64 ranks still run");
        f.steps = f.bytes = 1;
        expect_line(f, "1m30s  stopping for 2.1s, 60 of 64 ranks still run  output 1 byte/s");
        f.bytes = 0;
        f.silent_us = 42000000;
        f.ranks = 3;
        f.end.running = "0,5-6";
        expect_line(f, "1m30s  stopping for 2.1s, ranks 0,5-6 still run");
        f.ranks = 1;
        f.end.running = "5";
        f.silent.nodes = 1;
        f.silent.host = "gpu001";
        expect_line(f, "1m30s  stopping for 2.1s, rank 5 still runs  gpu001 is silent");
        f.silent.nodes = 0;
        f.ranks = 0;
        f.end.running = NULL;
        f.end.over = true;
        expect_line(f, "1m30s  stopping for 2.1s, all ranks have ended, waiting for their output");
        f.end.stopping = false;
        expect_line(f, "1m30s  all ranks have ended, waiting for their output");
}

TEST(ranks_of_roles_are_named)
{
        struct live_facts f = { .us = 70000000, .ranks = 8, .steps = 8, .least = 3, .most = 7 };

        f.role = "infer";
        f.name = "infer:3";
        f.host = "gpu001";
        expect_line(f, "1m10s  infer step 3-7, infer:3 on gpu001 is the last");
        f = (struct live_facts){ .us = 70000000, .ranks = 8, .bytes = 1000 };
        f.bar = (struct live_bar){ "50%", 3, 11, "infer:3" };
        expect_line(f, "1m10s  8 ranks  output 1.0 kB/s  infer:3: 50%");
        f = (struct live_facts){ .us = 70000000, .ranks = 2 };
        f.end = (struct live_end){ true, false, 2000000, 8, "infer:3,router:0", true };
        expect_line(f, "1m10s  stopping for 2.0s, infer:3,router:0 still run");
}
