/* SPDX-License-Identifier: Apache-2.0 */
#include "head/check/peer_names.h"

#include <stdio.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/msg.h"

enum { NODES = 6 };

static struct hosts hosts;
static struct hello hello[NODES];
static struct msg_addr addrs[NODES][2];
static const struct hello *hellos[NODES];
static struct checked facts[NODES];
static bool answered[NODES];
static struct check_names *names;

/* Nodes gpu1 ... with addresses 10.0.0.1 ... and fd00::1 ..., of which each knows all names. */
static int make_nodes(void **state UNUSED)
{
        size_t all[NODES];

        for (size_t i = 0; i < NODES; i++) {
                struct host *h = hosts_add(&hosts);

                h->name = xasprintf("gpu%zu", i + 1);
                snprintf(addrs[i][0].addr, sizeof(addrs[i][0].addr), "10.0.0.%zu", i + 1);
                snprintf(addrs[i][1].addr, sizeof(addrs[i][1].addr), "fd00::%zu", i + 1);
                hello[i] = (struct hello){ .addrs = addrs[i], .n_addrs = 2 };
                hellos[i] = &hello[i];
                answered[i] = true;
                all[i] = i;
        }
        names = peer_names_choose(&hosts, all, NODES, 7);
        return 0;
}

static void answer_all(void)
{
        for (size_t i = 0; i < NODES; i++) {
                checked_add(&facts[i], "kernel", "6.1.0", "");
                for (uint32_t k = 0; k < names[i].n; k++)
                        checked_add(&facts[i], names[i].v[k].fact,
                                    addrs[strtoul(names[i].v[k].fact + 5, NULL, 10)][0].addr, "");
                checked_add(&facts[i], "thp", "always", "");
        }
}

static int drop_nodes(void **state UNUSED)
{
        for (size_t i = 0; i < NODES; i++)
                checked_finish(&facts[i]);
        peer_names_free(names, NODES);
        hosts_finish(&hosts);
        return 0;
}

/* The answer of @node to its @k-th name. */
static struct check_fact *answer(size_t node, uint32_t k)
{
        return &facts[node].facts[1 + k];
}

static const char *peer_of(size_t node, uint32_t k)
{
        return names[node].v[k].host;
}

static const struct check_fact *settle(size_t node)
{
        peer_names_settle(facts, answered, hellos, &hosts);
        assert_int_equal(facts[node].n_facts, 3);
        assert_string_equal(facts[node].facts[1].name, "thp");
        assert_string_equal(facts[node].facts[2].name, "name.peers");
        return &facts[node].facts[2];
}

TEST_WITH(make_nodes, drop_nodes, each_node_looks_up_some_others)
{
        for (size_t i = 0; i < NODES; i++) {
                assert_int_equal(names[i].n, 4);
                for (uint32_t k = 0; k < names[i].n; k++) {
                        assert_string_not_equal(peer_of(i, k), hosts.v[i].name);
                        for (uint32_t other = 0; other < k; other++)
                                assert_string_not_equal(peer_of(i, k), peer_of(i, other));
                }
        }
        answer_all();
        assert_string_equal(settle(0)->value, "4 names");
}

TEST_WITH(make_nodes, drop_nodes, addresses_and_this_machine_are_not_looked_up)
{
        peer_names_free(names, NODES);
        for (size_t i = 1; i < NODES; i++) {
                free(hosts.v[i].name);
                hosts.v[i].name = xstrdup(i % 2 ? "10.0.0.9" : "fd00::9");
        }
        hosts.v[0].local = true;
        names = peer_names_choose(&hosts, (size_t[]){ 0, 1, 2, 3, 4, 5 }, NODES, 7);
        for (size_t i = 0; i < NODES; i++)
                assert_int_equal(names[i].n, 0);
        answer_all();
        assert_string_equal(settle(3)->problem, "there is no other node with a name");
}

TEST(a_name_without_an_address_and_a_wrong_one_are_told)
{
        CLEANUP(free_textp) char *want = NULL;

        make_nodes(NULL);
        answer_all();
        want = xasprintf("no address of %s", peer_of(2, 1));
        snprintf(answer(2, 1)->value, CHECK_VALUE, "none");
        assert_string_equal(settle(2)->value, want);
        assert_string_equal(facts[3].facts[2].value, "4 names");
        drop_nodes(NULL);

        make_nodes(NULL);
        answer_all();
        free(want);
        want = xasprintf("a wrong address of %s: 127.0.1.1, and 1 more", peer_of(2, 0));
        snprintf(answer(2, 0)->value, CHECK_VALUE, "127.0.1.1 10.7.7.7");
        snprintf(answer(2, 3)->value, CHECK_VALUE, "none");
        assert_string_equal(settle(2)->value, want);
        drop_nodes(NULL);
}

TEST_WITH(make_nodes, drop_nodes, one_right_address_of_several_is_enough)
{
        answer_all();
        for (uint32_t k = 0; k < names[2].n; k++) {
                size_t peer = strtoul(names[2].v[k].fact + 5, NULL, 10);

                snprintf(answer(2, k)->value, CHECK_VALUE, "10.7.7.7 %s", addrs[peer][1].addr);
                if (k == 0) {
                        snprintf(hello[peer].ssh_addr, sizeof(hello[peer].ssh_addr), "192.0.2.7");
                        snprintf(answer(2, k)->value, CHECK_VALUE, "192.0.2.7");
                }
        }
        assert_string_equal(settle(2)->value, "4 names");
}

TEST_WITH(make_nodes, drop_nodes, names_that_no_node_finds_are_aliases)
{
        answer_all();
        for (size_t i = 0; i < NODES; i++)
                for (uint32_t k = 0; k < names[i].n; k++)
                        snprintf(answer(i, k)->value, CHECK_VALUE, "none");
        assert_string_equal(settle(0)->value, "");
        assert_string_equal(facts[0].facts[2].problem, "no node knows another one by its name");
}

TEST_WITH(make_nodes, drop_nodes, a_node_asked_later_is_judged_by_the_answers_before)
{
        answer_all();
        answered[5] = false;
        for (uint32_t k = 0; k < names[5].n; k++)
                snprintf(answer(5, k)->value, CHECK_VALUE, "none");
        settle(0);
        for (size_t i = 0; i < NODES; i++)
                answered[i] = i == 5;
        assert_non_null(strstr(settle(5)->value, "and 3 more"));
        assert_int_equal(facts[0].n_facts, 3);
}

TEST_WITH(make_nodes, drop_nodes, what_was_not_found_in_time_does_not_count)
{
        answer_all();
        for (uint32_t k = 0; k < names[1].n; k++) {
                *answer(1, k)->value = '\0';
                snprintf(answer(1, k)->problem, CHECK_PROBLEM, "late");
        }
        *answer(4, 0)->value = '\0';
        snprintf(answer(4, 0)->problem, CHECK_PROBLEM, "late");
        assert_string_equal(settle(1)->problem, "late");
        assert_string_equal(facts[4].facts[2].value, "3 names");
}

/* Sets all answers to the name of @peer. */
static void tell_all(size_t peer, const char *addresses)
{
        for (size_t i = 0; i < NODES; i++)
                for (uint32_t k = 0; k < names[i].n; k++)
                        if (strtoul(names[i].v[k].fact + 5, NULL, 10) == peer)
                                snprintf(answer(i, k)->value, CHECK_VALUE, "%s", addresses);
}

static size_t count_wrong(void)
{
        size_t n = 0;

        settle(0);
        for (size_t i = 0; i < NODES; i++)
                n += !strncmp(facts[i].facts[2].value, "a wrong ", 8);
        return n;
}

TEST_WITH(make_nodes, drop_nodes, an_address_that_all_nodes_tell_is_translated)
{
        answer_all();
        tell_all(3, "203.0.113.7");
        assert_int_equal(count_wrong(), 0);
}

TEST(an_address_of_this_machine_or_of_another_node_is_not)
{
        static const char *const wrong[] = { "127.0.1.1", "::1", "10.0.0.2", "10.7.7.7 fd00::1" };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                make_nodes(NULL);
                answer_all();
                tell_all(3, wrong[i]);
                assert_int_equal(count_wrong(), 4);
                drop_nodes(NULL);
        }
}
