/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "head/record/story_html.h"

#include "lib/unit.h"

/* Returns the captions of the series of a node with two samples, malloc'ed. */
static char *draw_two_samples(struct sample a, struct sample b)
{
        struct node_sample samples[] = { { .us = 0, .s = a }, { .us = 1000000, .s = b } };
        char host[] = "gpu001";
        struct story_node node = { .host = host };
        struct story s = { .nodes = &node,
                           .n_nodes = 1,
                           .log = { .samples = samples, .n_samples = ARRAY_SIZE(samples) } };
        struct buf page = BUF_INIT;

        samples[0].s.interval_ms = samples[1].s.interval_ms = 1000;
        picture_series(&page, &s);
        return buf_steal(&page);
}

TEST(little_is_told_in_a_smaller_unit)
{
        static const struct {
                uint32_t kib[2];
                const char *caption; /* NULL = none */
        } cases[] = {
                { { 2, 5 }, ">network, in and out 2.0 to 5.0 KiB/s<" },
                { { 0, 1023 }, ">network, in and out 0.0 to 1023.0 KiB/s<" },
                { { 2, 3 * 1024 }, ">network, in and out 0.0 to 3.0 MiB/s<" },
                { { 0, 0 }, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp)
                char *page = draw_two_samples((struct sample){ .in_kib = cases[i].kib[0] },
                                              (struct sample){ .out_kib = cases[i].kib[1] });

                assert_non_null(strstr(page, ">processors 0.0 %<"));
                if (cases[i].caption)
                        assert_non_null(strstr(page, cases[i].caption));
                else
                        assert_null(strstr(page, "network"));
        }
}
