/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/spare_hosts.h"

#include <errno.h>

#include "head/hosts/hostfile.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* "a (b) c=b": b is spare, c runs in the place of b; malloc'ed. */
static char *described(const struct hosts *h)
{
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < h->n; i++) {
                const struct host *x = &h->v[i];

                buf_printf(&out, x->spare ? "%s(%s)" : "%s%s", i ? " " : "", x->name);
                if (x->place)
                        buf_printf(&out, "=%s", h->v[x->place - 1].name);
        }
        return buf_steal(&out);
}

static void parse_list(struct hosts *h, const char *list, const char *spare)
{
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        assert_int_equal(hostlist_parse(h, list, &d), 0);
        for (size_t i = 0; i < h->n; i++)
                h->v[i].spare = strchr(spare, *h->v[i].name) != NULL;
}

TEST(hosts_are_chosen_to_stand_by)
{
        static const struct {
                const char *list, *spare;
                struct spare_rule rule;
                const char *want; /* hosts, or a part of the error */
        } cases[] = {
                { "a,b,c", "", { .spares = 1 }, "a b (c)" },
                { "a,b,c", "", { .min = 3 }, "a b c" },
                { "a,b,c", "b", { .spares = 1 }, "a (b) (c)" },
                { "a,b,c", "c", { .spares = 1 }, "a (b) (c)" },
                { "a,b,c,d", "", { .spares = 1, .nodes = 2 }, "a b (d)" },
                { "a,b,c,d", "b", { .nodes = 2, .min = 1 }, "a (b) c" },
                { "a,b", "", { .spares = 2 }, "--spares 2, but there are only 2" },
                { "a", "", { .spares = 1 }, "--spares 1, but there is only 1" },
                { "a,b,c",
                  "",
                  { .spares = 1, .nodes = 3 },
                  "--nodes 3, but there are only 2 beside the spare hosts" },
                { "a,b,c",
                  "",
                  { .spares = 1, .min = 3 },
                  "--min-nodes 3, but there are only 2 beside the spare hosts" },
                { "a,b", "", { .min = 3 }, "--min-nodes 3, but there are only 2" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                int r;

                parse_list(&h, cases[i].list, cases[i].spare);
                r = spare_hosts_choose(&h, &cases[i].rule, &d);
                if (strstr(cases[i].want, "--")) {
                        CLEANUP(free_textp) char *text = diags_text(&d, false);

                        assert_int_equal(r, -EINVAL);
                        assert_non_null(strstr(text, cases[i].want));
                } else {
                        CLEANUP(free_textp) char *got = described(&h);

                        assert_int_equal(r, 0);
                        assert_string_equal(got, cases[i].want);
                }
        }
}

TEST(spare_hosts_take_places)
{
        static const struct {
                const char *list, *spare, *failed;
                int min;
                size_t missing;
                const char *want;
        } cases[] = {
                { "a,b,c", "c", "a", 0, 0, "(a) b c=a" },
                { "a,b,c,d", "cd", "ab", 0, 0, "(a) (b) c=a d=b" },
                { "a,b,c,d", "cd", "bc", 0, 0, "a (b) (c) d=b" },
                { "a,b,c", "c", "c", 0, 0, "a b (c)" },
                /* too few: nothing is changed */
                { "a,b,c", "c", "ab", 0, 1, "a b (c)" },
                { "a,b,c", "c", "ab", 2, 1, "a b (c)" },
                { "a,b", "", "a", 0, 1, "a b" },
                { "a,b", "", "ab", 1, 2, "a b" },
                /* fewer are enough */
                { "a,b,c", "c", "ab", 1, 0, "(a) (b) c=a" },
                { "a,b,c", "", "b", 2, 0, "a (b) c" },
                /* a spare host needs as many slots */
                { "a:2,b,c,d:2", "cd", "a", 0, 0, "(a) b (c) d=a" },
                { "a:2,b,c", "c", "a", 0, 1, "a b (c)" },
                { "a,b,c:2", "c", "a", 0, 0, "(a) b c=a" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp) char *got = NULL;
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                bool failed[8] = { 0 };
                size_t by[8];

                parse_list(&h, cases[i].list, cases[i].spare);
                for (size_t k = 0; k < h.n; k++)
                        failed[k] = strchr(cases[i].failed, *h.v[k].name) != NULL;
                assert_int_equal(spare_hosts_replace(&h, failed, cases[i].min, by),
                                 cases[i].missing);
                got = described(&h);
                assert_string_equal(got, cases[i].want);
        }
}

TEST(hosts_beyond_the_needed_stand_by_unconnected)
{
        static const struct {
                const char *list, *spare;
                struct spare_rule rule;
                const char *want, *aside;
        } cases[] = {
                { "a,b,c,d", "", { .spares = SPARES_AUTO }, "a b c d", "" },
                { "a,b,c,d", "", { .spares = SPARES_AUTO, .nodes = 2 }, "a b", "cd" },
                { "a,b,c,d", "b", { .spares = SPARES_AUTO, .nodes = 2 }, "a (b) c", "d" },
                { "a,b,c", "", { .spares = SPARES_AUTO, .needed = 2 }, "a b", "c" },
                { "a,b,c", "", { .spares = SPARES_AUTO, .needed = 9 }, "a b c", "" },
                { "a,b,c", "", { .spares = SPARES_AUTO, .nodes = 1, .needed = 2 }, "a", "bc" },
                { "a,b,c",
                  "",
                  { .spares = SPARES_AUTO, .nodes = 1, .connect = true },
                  "a (b) (c)",
                  "" },
                { "a,b,c", "", { .nodes = 8, .min = 3 }, "a b c", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(free_textp) char *got = NULL;
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

                parse_list(&h, cases[i].list, cases[i].spare);
                assert_int_equal(spare_hosts_choose(&h, &cases[i].rule, &d), 0);
                got = described(&h);
                assert_string_equal(got, cases[i].want);
                assert_int_equal(hosts_aside(&h), strlen(cases[i].aside));
                for (size_t k = 0; k < hosts_aside(&h); k++)
                        assert_int_equal(*h.aside->v[k].name, cases[i].aside[k]);
        }
}

TEST(hosts_stand_in_behind_those_of_the_list)
{
        const struct spare_rule rule = { .spares = SPARES_AUTO, .nodes = 3 };
        const bool failed[4] = { true, true, true, false };
        CLEANUP(free_textp) char *got = NULL;
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        size_t by[4];

        parse_list(&h, "a,b:2,c,s,x,y:2", "s");
        assert_int_equal(spare_hosts_choose(&h, &rule, &d), 0);
        assert_ptr_equal(hosts_find(&h, "b"), &h.v[1]);
        assert_int_equal(spare_hosts_replace(&h, failed, 0, by), 0);
        got = described(&h);
        assert_string_equal(got, "(a) y x s=a");
        assert_int_equal(by[0], SPARE_FIRST + 3);
        assert_int_equal(by[1], SPARE_STOOD_IN);
        assert_int_equal(by[2], SPARE_STOOD_IN);
        assert_int_equal(hosts_aside(&h), 0);
        assert_null(hosts_find(&h, "b"));
        assert_ptr_equal(hosts_find(&h, "y"), &h.v[1]);
        assert_string_equal(h.aside->v[0].name, "b");
        assert_null(hosts_stand_in(&h, 1));
}

TEST(a_place_is_taken_again)
{
        const bool first[3] = { true, false, false }, second[3] = { true, true, false };
        CLEANUP(free_textp) char *got = NULL;
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        size_t by[3];

        parse_list(&h, "a,b,c", "bc");
        assert_int_equal(spare_hosts_replace(&h, first, 0, by), 0);
        assert_int_equal(spare_hosts_replace(&h, second, 0, by), 0);
        got = described(&h);
        assert_string_equal(got, "(a) (b)=a c=a");
}

TEST(a_host_that_stands_by_can_be_dropped)
{
        const struct spare_rule rule = { .spares = SPARES_AUTO, .nodes = 2 };
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        parse_list(&h, "a,b,x,y", "");
        assert_int_equal(spare_hosts_choose(&h, &rule, &d), 0);
        assert_int_equal(hosts_aside(&h), 2);
        assert_false(hosts_drop_aside(&h, "a"));
        assert_true(hosts_drop_aside(&h, "x"));
        assert_false(hosts_drop_aside(&h, "x"));
        assert_int_equal(hosts_aside(&h), 1);
        assert_string_equal(hosts_stand_in(&h, 0)->name, "a");
        assert_string_equal(h.v[0].name, "y");
        assert_false(hosts_drop_aside(&h, "a")); /* it has left the list */
}

TEST(spare_of_the_same_domain_comes_first)
{
        static const char *const groups[] = { "x", "y", "y", "x", "y", "x" };
        const bool failed[6] = { true, true };
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        size_t by[6];
        char *got;

        parse_list(&h, "a,b,c,d,e,f", "cd");
        for (size_t i = 0; i < h.n; i++)
                host_site_of(&h.v[i])->group = strdup(groups[i]);
        assert_int_equal(spare_hosts_replace(&h, failed, 0, by), 0);
        got = described(&h);
        assert_string_equal(got, "(a) (b) c=b d=a e f");
        free(got);
        hosts_finish(&h);

        /* Of those that stand by unconnected, too. */
        parse_list(&h, "a,b,c,d,e,f", "");
        for (size_t i = 0; i < h.n; i++)
                host_site_of(&h.v[i])->group = strdup(groups[i]);
        hosts_put_aside(&h, (const bool[6]){ false, false, true, true, true, true });
        assert_int_equal(spare_hosts_replace(&h, failed, 0, by), 0);
        got = described(&h);
        assert_string_equal(got, "d c");
        free(got);
        assert_string_equal(hosts_stand_in(&h, 0)->name, "d");
        assert_string_equal(h.v[0].name, "f");
        assert_string_equal(hosts_stand_in(&h, 0)->name, "f"); /* no other one is of its domain */
        assert_string_equal(h.v[0].name, "e");
}
