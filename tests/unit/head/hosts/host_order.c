/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/host_order.h"

#include <stdio.h>
#include <time.h>

#include "base/error_number.h"
#include "lib/diag_text.h"
#include "lib/unit.h"

/* Adds hosts "NAME[@DOMAIN][/NUMBER]" between blanks. */
static void add_hosts(struct hosts *h, const char *list)
{
        char *copy = strdup(list), *save = NULL;

        for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
                struct host *host = hosts_add(h);
                char *number = strchr(p, '/'), *domain = strchr(p, '@');

                if (number)
                        *number++ = '\0';
                if (domain)
                        *domain++ = '\0';
                host->name = strdup(p);
                host_site_of(host)->number = number ? atoi(number) : -1;
                host->site->group = domain ? strdup(domain) : NULL;
        }
        free(copy);
}

/* Returns the names in the order, "|" behind those chosen, or the error; malloc'ed. */
static char *ordered(const char *list, const char *unusable, size_t needed, size_t segment)
{
        struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        struct buf out = BUF_INIT;
        bool *usable;
        size_t *order;

        add_hosts(&h, list);
        usable = xcalloc(h.n, sizeof(*usable));
        for (size_t i = 0; i < h.n; i++)
                usable[i] = !strstr(unusable, h.v[i].name);
        order = host_order_choose(&h, usable, needed, segment, &d);
        for (size_t i = 0; order && i < h.n; i++)
                buf_printf(&out, "%s%s%s", i && i != needed ? " " : "",
                           needed && i == needed ? "|" : "", h.v[order[i]].name);
        if (!order) {
                assert_int_equal(diags_first_error(&d)->id, HN_SEGMENTS);
                assert_int_equal(diags_first_error(&d)->exit, 69);
                buf_appends(&out, diags_first_error(&d)->fact);
        }
        free(order);
        free(usable);
        hosts_finish(&h);
        diags_finish(&d);
        return buf_steal(&out);
}

TEST(hosts_stand_by_domain_switch_and_name)
{
        static const struct {
                const char *list, *unusable;
                size_t needed, segment;
                const char *want;
        } cases[] = {
                { "n10 n2 n1", "", 0, 0, "n1 n2 n10" },
                { "n3 n2@b/1 n10@a/0 n1@a/0", "", 0, 0, "n1 n10 n2 n3" },
                /* A domain over two switches stays together. */
                { "n1@a/0 n2@b/1 n3@a/2 n4@c/0", "", 0, 0, "n1 n3 n4 n2" },
                /* As few domains as possible, the smallest that is enough. */
                { "a1@a a2@a b1@b b2@b b3@b b4@b c1@c c2@c c3@c", "", 3, 0,
                  "c1 c2 c3|a1 a2 b1 b2 b3 b4" },
                { "a1@a a2@a b1@b b2@b b3@b b4@b", "", 4, 2, "b1 b2 b3 b4|a1 a2" },
                { "a1@a a2@a a3@a b1@b b2@b b3@b", "", 4, 2, "a1 a2 b1 b2|a3 b3" },
                { "a1@a a2@a a3@a b1@b b2@b b3@b", "a2", 4, 2, "a1 a3 b1 b2|b3 a2" },
                { "x1 a1@a x2 a2@a", "", 2, 2, "a1 a2|x1 x2" },
                { "x1 a1@a", "", 0, 1, "a1 x1" },
                { "a1@a a2@a a3@a b1@b", "", 0, 2,
                  "segments of 2 nodes do not fit: domain a has 3 nodes (a[1-3]), b has 1 node "
                  "(b1)" },
                { "a1@a a2@a a3@a", "", 0, 2,
                  "3 nodes are no multiple of --segment 2: domain a has 3 nodes (a[1-3])" },
                { "x1 x2 a1@a a2@a", "", 0, 2,
                  "segments of 2 nodes do not fit: domain a has 2 nodes (a[1-2]), 2 nodes are in "
                  "no "
                  "known domain (x[1-2])" },
                { "a1@aaaabbbbaaaabbbbaaaabbbbaaaabbbb.1 a2@a", "", 0, 2,
                  "segments of 2 nodes do not fit: domain aaaabbbb.1 has 1 node (a1), a has 1 node "
                  "(a2)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *got = ordered(cases[i].list, cases[i].unusable, cases[i].needed,
                                    cases[i].segment);

                assert_string_equal(got, cases[i].want);
                free(got);
        }
}

TEST(splits_of_segments_are_found)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        const size_t nodes[] = { 0, 1, 2, 3, 4 };

        add_hosts(&h, "a1@a a2@a b1@b x1 x2");
        assert_int_equal(host_order_find_split(&h, nodes, 2, 2), 2);
        assert_int_equal(host_order_find_split(&h, nodes, 3, 2), 2); /* incomplete */
        assert_int_equal(host_order_find_split(&h, nodes, 3, 1), 3);
        assert_int_equal(host_order_find_split(&h, nodes, 4, 2), 2);
        assert_int_equal(host_order_find_split(&h, nodes, 3, 3), 0);
        assert_int_equal(host_order_find_split(&h, nodes + 3, 2, 2), 0); /* unknown is not equal */
}

/* Whatever is chosen lies within domains; what is refused does not fit, counted here anew. */
TEST(random_segments_cross_no_domain)
{
        unsigned seed = 1;

        for (int round = 0; round < 2000; round++) {
                size_t n = 1 + (size_t)rand_r(&seed) % 60, domains = 1 + (size_t)rand_r(&seed) % 8;
                size_t segment = 1 + (size_t)rand_r(&seed) % 8, fit = 0, needed, *order;
                size_t count[9] = { 0 };
                CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
                CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
                bool *usable = xcalloc(n, sizeof(*usable)), *seen = xcalloc(n, sizeof(*seen));

                for (size_t i = 0; i < n; i++) {
                        size_t domain = (size_t)rand_r(&seed) % (domains + 1);
                        char text[64];

                        snprintf(text, sizeof(text), domain < domains ? "n%zu@d%zu/%d" : "n%zu", i,
                                 domain, rand_r(&seed) % 3);
                        add_hosts(&h, text);
                        usable[i] = rand_r(&seed) % 10 != 0;
                        count[domain < domains ? domain : 8] += usable[i];
                }
                for (size_t i = 0; i < 8; i++)
                        fit += count[i] / segment;
                needed = segment * ((size_t)rand_r(&seed) % (n / segment + 1));
                if (!needed)
                        needed = segment;
                order = host_order_choose(&h, usable, needed, segment, &d);
                if (segment == 1)
                        fit += count[8];
                if (order) {
                        size_t take = 0;

                        for (size_t i = 0; i < n; i++) {
                                assert_false(seen[order[i]]);
                                seen[order[i]] = true;
                                take += usable[i];
                        }
                        take = MIN(needed, take);
                        assert_int_equal(take % segment, 0);
                        assert_true(take / segment <= fit);
                        for (size_t i = 0; i < take; i++)
                                assert_true(usable[order[i]]);
                        if (segment > 1)
                                assert_int_equal(host_order_find_split(&h, order, take, segment),
                                                 take);
                } else {
                        size_t all = 0;

                        for (size_t i = 0; i < n; i++)
                                all += usable[i];
                        all = MIN(needed, all);
                        assert_true(all % segment != 0 || all / segment > fit);
                }
                free(order);
                free(usable);
                free(seen);
        }
}

TEST(five_thousand_hosts_take_little_time)
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;
        bool *usable = xcalloc(5000, sizeof(*usable));
        size_t *order;
        clock_t begin;

        for (int i = 0; i < 5000; i++) {
                char text[64];
                int at = i * 2503 % 5000; /* in no order */

                snprintf(text, sizeof(text), "gpu%04d@rack%d/%d", at, at / 18, at / 18);
                add_hosts(&h, text);
                usable[i] = true;
        }
        begin = clock();
        order = host_order_choose(&h, usable, 4096, 16, &d);
        assert_non_null(order);
        assert_true((clock() - begin) * 1000 / CLOCKS_PER_SEC <
                    500); /* 15 ms, more with sanitizers */
        assert_int_equal(host_order_find_split(&h, order, 4096, 16), 4096);
        free(order);
        free(usable);
}
