/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/generation.h"

#include <stdio.h>

#include "lib/unit.h"

enum { RANKS = 4 };

static const char host[] = "10.0.0.1";

static int set_up(void **state)
{
        *state = generations_create();
        generations_expect(*state, RANKS);
        return 0;
}

static int tear_down(void **state)
{
        generations_destroy(*state);
        return 0;
}

static void command(struct generations *g, struct generation_client *c, enum tcpstore_op op,
                    const char *key, int64_t number)
{
        struct tcpstore_command cmd = { .op = op, .key = bytes_of(key), .number = number };

        generation_command(g, c, host, &cmd);
}

/* What a new TCPStore says first. @pid 0 = a client before 2.5. */
static struct generation_client connect_member(struct generations *g, uint32_t pid)
{
        struct generation_client c = { 0 };

        if (pid)
                command(g, &c, TCPSTORE_PING, "", pid);
        command(g, &c, TCPSTORE_ADD, "init/", 1);
        return c;
}

static struct generation_client connect_clone(struct generations *g, uint32_t pid)
{
        struct generation_client c = { 0 };

        if (pid)
                command(g, &c, TCPSTORE_PING, "", pid);
        return c;
}

/* Sends a command with this key of a group; returns the generation that the store's name tells. */
static unsigned group_command(struct generations *g, struct generation_client *c,
                              enum tcpstore_op op, const char *key)
{
        char text[128];
        unsigned n = 0;
        char *part;

        snprintf(text, sizeof(text), "%s", key);
        command(g, c, op, text, 0);
        assert_int_equal(strlen(text), strlen(key));
        if (strcmp(text, key) == 0)
                return 0;
        part = strstr(text, "/pg");
        assert_non_null(part);
        assert_int_equal(sscanf(part, "/pg%8x/", &n), 1);
        assert_true(n > 0);
        memcpy(part, "/default_pg", 11);
        assert_string_equal(text, key);
        return n;
}

/* Gloo: each rank sets a key of its own first. */
static unsigned set_address(struct generations *g, struct generation_client *c, unsigned rank)
{
        char key[64];

        snprintf(key, sizeof(key), "/default_pg/0//cpu//0/%u", rank);
        return group_command(g, c, TCPSTORE_SET, key);
}

static unsigned count_leftovers(struct generations *g)
{
        struct bytes name;
        unsigned n = 0;

        while (generations_take_leftover(g, &name))
                n++;
        return n;
}

/* --- one group: nothing changes --------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, one_group_keeps_its_names)
{
        struct generation_client c[RANKS];

        for (unsigned r = 0; r < RANKS; r++) {
                c[r] = connect_member(*state, 100 + r);
                assert_int_equal(set_address(*state, &c[r], r), 0);
        }
        assert_int_equal(group_command(*state, &c[0], TCPSTORE_ADD, "/default_pg/0/bar"), 0);
        for (unsigned r = 0; r < RANKS; r++) {
                assert_false(generation_renames(&c[r]));
                generation_leave(*state, &c[r]);
        }
        assert_int_equal(count_leftovers(*state), 0);
}

/* A rank that came before another one ended, and names its first key later, is of the same group.
 */
TEST_WITH(set_up, tear_down, rank_that_ends_early_begins_no_generation)
{
        struct generation_client c[RANKS];

        for (unsigned r = 0; r < RANKS; r++)
                c[r] = connect_member(*state, 0);
        set_address(*state, &c[0], 0);
        generation_leave(*state, &c[0]);
        for (unsigned r = 1; r < RANKS; r++)
                assert_int_equal(set_address(*state, &c[r], r), 0);
        for (unsigned r = 1; r < RANKS; r++)
                generation_leave(*state, &c[r]);
}

/* Ranks that a rank has started are more clients than there are ranks. */
TEST_WITH(set_up, tear_down, more_processes_than_ranks_are_one_group)
{
        struct generation_client c[3 * RANKS];

        for (unsigned r = 0; r < 3 * RANKS; r++) {
                c[r] = connect_member(*state, r % 2 ? 100 + r : 0);
                assert_int_equal(set_address(*state, &c[r], r), 0);
        }
        for (unsigned r = 0; r < 3 * RANKS; r++)
                generation_leave(*state, &c[r]);
}

/* Containers: each rank is process 1 of its own. */
TEST_WITH(set_up, tear_down, equal_process_numbers_are_no_second_group)
{
        struct generation_client c[RANKS];

        for (unsigned r = 0; r < RANKS; r++) {
                c[r] = connect_member(*state, 1);
                assert_int_equal(group_command(*state, &c[r], r ? TCPSTORE_WAIT : TCPSTORE_SET,
                                               "/default_pg/0//cuda//0"),
                                 0);
        }
        for (unsigned r = 0; r < RANKS; r++)
                generation_leave(*state, &c[r]);
}

TEST_WITH(set_up, tear_down, other_keys_are_of_all)
{
        static const char *const keys[] = { "init/",         "/",
                                            "/default_pg",   "/default_pgx/0",
                                            "default_pg/0",  "/x/default_pg/0",
                                            "//default_pg/", "//worker/attempt_x/default_pg/0" };
        struct generation_client c = connect_member(*state, 1), again;

        set_address(*state, &c, 0);
        generation_leave(*state, &c);
        again = connect_member(*state, 1);
        assert_int_equal(set_address(*state, &again, 0), 1);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                assert_int_equal(group_command(*state, &again, TCPSTORE_SET, keys[i]), 0);
        assert_int_equal(group_command(*state, &again, TCPSTORE_SET,
                                       "//worker/attempt_12/default_pg/0/0/rank_3"),
                         1);
        generation_leave(*state, &again);
}

/* --- several groups --------------------------------------------------------------------------- */

/* The first rank is back before any other one has left. */
TEST_WITH(set_up, tear_down, fast_rank_begins_the_next_generation)
{
        struct generation_client c[RANKS];

        for (unsigned r = 0; r < RANKS; r++) {
                c[r] = connect_member(*state, 0);
                set_address(*state, &c[r], r);
        }
        for (unsigned round = 1; round < 1000; round++) {
                for (unsigned i = 0; i < RANKS; i++) {
                        unsigned r = (round + i) % RANKS;

                        generation_leave(*state, &c[r]);
                        c[r] = connect_member(*state, 0);
                        assert_int_equal(set_address(*state, &c[r], r), round);
                }
                /* Of generation N, begun here, the names go when N + 2 begins. */
                assert_int_equal(count_leftovers(*state), round > 2 ? RANKS : 0);
        }
        for (unsigned r = 0; r < RANKS; r++)
                generation_leave(*state, &c[r]);
}

/* No connection is ever closed; the next group begins when a rank comes again. */
TEST_WITH(set_up, tear_down, open_connections_keep_no_rank_in_its_group)
{
        struct generation_client c[20][RANKS];
        char key[64];

        for (unsigned round = 0; round < 20; round++) {
                for (unsigned r = 0; r < RANKS; r++) {
                        c[round][r] = connect_member(*state, 0);
                        snprintf(key, sizeof(key), "//worker/attempt_0/default_pg/0/0/rank_%u", r);
                        assert_int_equal(group_command(*state, &c[round][r], TCPSTORE_SET, key),
                                         round);
                }
        }
        assert_int_equal(count_leftovers(*state), 0);
        for (unsigned round = 0; round < 20; round++) {
                for (unsigned r = 0; r < RANKS; r++)
                        generation_leave(*state, &c[round][r]);
        }
        assert_int_equal(count_leftovers(*state), 17 * RANKS); /* not of 0, 18, 19 */
}

/* Ranks of NCCL begin with a wait; the process tells that they come again. */
TEST_WITH(set_up, tear_down, process_that_comes_again_waits_for_the_next_id)
{
        static const char id[] = "/default_pg/0//cuda//0";
        struct generation_client c[20][RANKS];

        for (unsigned round = 0; round < 20; round++) {
                for (unsigned r = RANKS; r-- > 0;) {
                        c[round][r] = connect_member(*state, 100 + r);
                        assert_int_equal(group_command(*state, &c[round][r],
                                                       r ? TCPSTORE_WAIT : TCPSTORE_SET, id),
                                         round);
                }
        }
        for (unsigned round = 0; round < 20; round++) {
                for (unsigned r = 0; r < RANKS; r++)
                        generation_leave(*state, &c[round][r]);
        }
}

/* Groups of fewer ranks, and then one of all. */
TEST_WITH(set_up, tear_down, ranks_that_were_not_there_join_the_newest)
{
        struct generation_client c[RANKS];

        for (unsigned round = 0; round < 10; round++) {
                unsigned n = round % 2 ? RANKS : 2;

                for (unsigned r = n; r-- > 0;) {
                        c[r] = connect_member(*state, 0);
                        assert_int_equal(set_address(*state, &c[r], r), round);
                }
                for (unsigned r = 0; r < n; r++)
                        generation_leave(*state, &c[r]);
        }
}

TEST_WITH(set_up, tear_down, clone_is_of_its_process)
{
        static const char key[] = "/default_pg/0//1//x";
        struct generation_client a, a_clone, b, old, other, unknown;

        a = connect_member(*state, 7);
        b = connect_member(*state, 8);
        set_address(*state, &a, 0);
        set_address(*state, &b, 1);
        generation_leave(*state, &a);
        a = connect_member(*state, 7);
        assert_int_equal(set_address(*state, &a, 0), 1);

        a_clone = connect_clone(*state, 7);
        assert_int_equal(group_command(*state, &a_clone, TCPSTORE_SET, key), 1);
        old = connect_clone(*state, 8); /* of a rank that is still in generation 0 */
        assert_int_equal(group_command(*state, &old, TCPSTORE_SET, key), 0);
        other = connect_clone(*state, 9);
        assert_int_equal(group_command(*state, &other, TCPSTORE_SET, key), 1);
        unknown = connect_clone(*state, 0);
        assert_int_equal(group_command(*state, &unknown, TCPSTORE_SET, key), 1);

        generation_leave(*state, &a_clone); /* begins no generation */
        generation_leave(*state, &unknown);
        generation_leave(*state, &other);
        generation_leave(*state, &old);
        generation_leave(*state, &b);
        b = connect_member(*state, 8);
        assert_int_equal(set_address(*state, &b, 1), 1);
        generation_leave(*state, &a);
        generation_leave(*state, &b);
}

/* --- commands with several keys, lists, memory ------------------------------------------------ */

TEST_WITH(set_up, tear_down, all_keys_of_a_command_are_renamed)
{
        char first[] = "/mine", second[] = "/default_pg/0//a", third[] = "/default_pg/0//b";
        struct bytes keys[] = { bytes_of(first), bytes_of(second), bytes_of(third) };
        struct tcpstore_command cmd = { .op = TCPSTORE_MULTI_SET, .keys = keys, .n_keys = 3 };
        struct generation_client c = connect_member(*state, 0);

        set_address(*state, &c, 0);
        generation_leave(*state, &c);
        c = connect_member(*state, 0);
        generation_command(*state, &c, host, &cmd);
        assert_string_equal(first, "/mine");
        assert_string_equal(second, "/pg00000001/0//a");
        assert_string_equal(third, "/pg00000001/0//b");
        generation_leave(*state, &c);
}

static void put_key(struct buf *b, const char *key)
{
        unsigned char len[8] = { (unsigned char)strlen(key) };

        buf_append(b, len, sizeof(len));
        buf_appends(b, key);
}

TEST_WITH(set_up, tear_down, list_has_the_names_that_the_client_knows)
{
        struct buf all = BUF_INIT, want = BUF_INIT, got = BUF_INIT;
        struct generation_client c = connect_member(*state, 0);

        set_address(*state, &c, 0);
        generation_leave(*state, &c);
        c = connect_member(*state, 0);
        set_address(*state, &c, 0);
        put_key(&all, "init/");
        put_key(&all, "/default_pg/0//cpu//0/0");
        put_key(&all, "/pg00000001/0//cpu//0/0");
        put_key(&all, "/pg00000002/0//cpu//0/0");
        put_key(&want, "init/");
        put_key(&want, "/default_pg/0//cpu//0/0");
        put_key(&want, "/pg00000002/0//cpu//0/0");
        assert_true(generation_renames(&c));
        assert_int_equal(generation_list(&c, (struct bytes){ buf_data(&all), buf_len(&all) }, &got),
                         3);
        assert_int_equal(buf_len(&got), buf_len(&want));
        assert_memory_equal(buf_data(&got), buf_data(&want), buf_len(&want));
        /* A list that ends within a key has the keys before. */
        buf_clear(&got);
        assert_int_equal(
                generation_list(&c, (struct bytes){ buf_data(&all), buf_len(&all) - 1 }, &got), 2);
        buf_finish(&all);
        buf_finish(&want);
        buf_finish(&got);
        generation_leave(*state, &c);
}

TEST_WITH(set_up, tear_down, remembered_names_are_bounded)
{
        struct generation_client c = connect_member(*state, 0);
        static char key[8000];
        unsigned n;

        for (unsigned round = 0; round < 4; round++) {
                set_address(*state, &c, 0);
                for (unsigned i = 0; round == 1 && i < 10000; i++) {
                        memset(key, 'x', sizeof(key) - 1);
                        memcpy(key, "/default_pg/", 12);
                        snprintf(key + 7900, 90, "%u", i);
                        memset(key + strlen(key), 'x', sizeof(key) - 1 - strlen(key));
                        command(*state, &c, TCPSTORE_SET, key, 0);
                }
                generation_leave(*state, &c);
                c = connect_member(*state, 0);
        }
        n = count_leftovers(*state);
        assert_in_range(n, 1000, GENERATION_NAMES_MAX / 8000 + 1);
        /* They make room for others. */
        for (unsigned round = 0; round < 3; round++) {
                set_address(*state, &c, 0);
                generation_leave(*state, &c);
                c = connect_member(*state, 0);
        }
        assert_true(count_leftovers(*state) >= 2);
}
