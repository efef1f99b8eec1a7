/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhnlaunch in real processes, through real endpoints to a real rendezvous.
 */
#include <stdio.h>

#include <hnlaunch/hnlaunch.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/unit.h"
#include "lib/world.h"

/* For a busy machine; less than the limit of world_run(). */
enum { PATIENCE_MS = 60000 };

static struct world_result result;

static void run(int n, int nodes, int (*rank_main)(void))
{
        assert_int_equal(world_run(n, nodes, rank_main, &result), 0);
}

static void run_all_good(int n, int nodes, int (*rank_main)(void))
{
        run(n, nodes, rank_main);
        for (int i = 0; i < n; i++)
                assert_int_equal(result.status[i], 0);
}

static double seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int share_keys(void)
{
        static const char *const keys[] = { "greeting", "counter" };
        hn_store *s, *p;
        char text[64];
        size_t len = sizeof(text), n;
        int64_t now;
        int yes;
        void *value;

        CLAIM(hn_init(NULL) == HN_OK);
        s = hn_store_default();
        if (hn_rank() == 0)
                CLAIM(hn_store_set(s, "greeting", "hello", 5) == HN_OK);
        CLAIM(hn_store_add(s, "counter", 1, NULL) == HN_OK);
        CLAIM(hn_store_wait(s, keys, 2, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_get(s, "greeting", text, &len, PATIENCE_MS) == HN_OK && len == 5);
        CLAIM(memcmp(text, "hello", 5) == 0);
        len = 4;
        CLAIM(hn_store_get(s, "greeting", text, &len, 0) == HN_ERR_TRUNCATED && len == 5);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_add(s, "counter", 0, &now) == HN_OK && now == hn_world_size());
        len = sizeof(text);
        CLAIM(hn_store_get(s, "nothing", text, &len, 0) == HN_ERR_NOT_FOUND);
        CLAIM(hn_store_check(s, keys, 2, &yes) == HN_OK && yes);
        CLAIM(hn_store_prefix(s, "mine", &p) == HN_OK);
        if (hn_rank() == 1) {
                CLAIM(hn_store_set(p, "a", NULL, 0) == HN_OK);
                CLAIM(hn_store_append(p, "b", "xy", 2) == HN_OK);
                CLAIM(hn_store_compare_set(p, "b", "xy", 2, "z", 1, &yes) == HN_OK && yes);
                CLAIM(hn_store_compare_set(p, "b", "xy", 2, "w", 1, &yes) == HN_OK && !yes);
        }
        CLAIM(hn_barrier(hn_world(), PATIENCE_MS) == HN_OK);
        CLAIM(hn_store_num_keys(p, &n) == HN_OK && n == 2);
        CLAIM(hn_store_get_alloc(s, "mine/b", &value, &len, 0) == HN_OK && len == 1);
        CLAIM(strcmp(value, "z") == 0);
        hn_free(value);
        CLAIM(hn_store_get_alloc(p, "a", &value, &len, 0) == HN_OK && len == 0);
        hn_free(value);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 2)
                CLAIM(hn_store_delete(p, "a", &yes) == HN_OK && yes);
        hn_store_close(p);
        CLAIM(hn_store_set(s, "", "x", 1) == HN_ERR_INVALID);
        return hn_finalize();
}

TEST(ranks_share_keys)
{
        run_all_good(4, 2, share_keys);
        for (int i = 0; i < 4; i++)
                assert_true(result.joined[i]);
}

static int check_identity(void)
{
        CLAIM(hn_rank() == HN_ERR_NOT_LAUNCHED && !hn_is_initialized());
        CLAIM(hn_init(NULL) == HN_OK && hn_init(NULL) == HN_OK);
        CLAIM(hn_world_size() == 6 && hn_num_nodes() == 3 && hn_local_world_size() == 2);
        CLAIM(hn_node_rank() == hn_rank() / 2 && hn_local_rank() == hn_rank() % 2);
        CLAIM(hn_node_of(5) == 2 && strcmp(hn_hostname_of(3), "node1") == 0);
        CLAIM(hn_node_of(6) == HN_ERR_INVALID && hn_hostname_of(-1) == NULL);
        CLAIM(hn_get_rank(NULL) == hn_rank() && hn_get_world_size(hn_world()) == 6);
        CLAIM(strcmp(hn_get_backend(NULL), "none") == 0);
        return hn_finalize();
}

TEST(ranks_know_their_identity_and_host)
{
        run_all_good(6, 3, check_identity);
}

static int gather_in_groups(void)
{
        int all[4], mine, ranks[4];
        hn_group *odd, *local, *none;
        char word[8] = "";

        CLAIM(hn_init(NULL) == HN_OK);
        mine = hn_rank() * 10;
        CLAIM(hn_all_gather_bytes(NULL, &mine, sizeof(mine), all, PATIENCE_MS) == HN_OK);
        for (int i = 0; i < 4; i++)
                CLAIM(all[i] == i * 10);
        if (hn_rank() == 2)
                strcpy(word, "from 2");
        CLAIM(hn_broadcast_bytes(NULL, word, sizeof(word), 2, PATIENCE_MS) == HN_OK);
        CLAIM(strcmp(word, "from 2") == 0);
        CLAIM(hn_group_split(NULL, hn_rank() % 2, -hn_rank(), 10000, &odd) == HN_OK);
        CLAIM(hn_get_world_size(odd) == 2 && hn_get_rank(odd) == (hn_rank() < 2));
        CLAIM(hn_get_group_ranks(odd, ranks, 4) == 2 && ranks[0] == 2 + hn_rank() % 2);
        CLAIM(hn_get_global_rank(odd, 1) == hn_rank() % 2);
        CLAIM(hn_get_group_rank(odd, 1 - hn_rank() % 2) == HN_ERR_NOT_MEMBER);
        CLAIM(hn_all_gather_bytes(odd, &mine, sizeof(mine), all, PATIENCE_MS) == HN_OK);
        CLAIM(all[0] == ranks[0] * 10 && all[1] == ranks[1] * 10);
        CLAIM(hn_group_local(&local) == HN_OK && hn_get_rank(local) == hn_local_rank());
        CLAIM(hn_barrier(local, PATIENCE_MS) == HN_OK);
        CLAIM(hn_group_split(NULL, -1, 0, 10000, &none) == HN_OK && !none);
        hn_group_free(local);
        hn_group_free(odd);
        hn_group_free(hn_world());
        return hn_finalize();
}

TEST(groups_gather_bytes)
{
        run_all_good(4, 2, gather_in_groups);
}

static int disagree(void)
{
        static const int both[] = { 0, 1 }, back[] = { 1, 0 };
        hn_group *g = NULL;
        int who = -1;

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_group_create("g", hn_rank() ? back : both, 2, "gloo", 10000, &g) ==
              HN_ERR_MISMATCH);
        CLAIM(hn_last_error_ranks(&who, 1) == 1 && who >= 0 && !g);
        CLAIM(strstr(hn_last_error(), " lists members "));
        return 0;
}

TEST(a_group_with_two_lists_is_a_mismatch)
{
        run_all_good(2, 1, disagree);
}

static int miss_a_barrier(void)
{
        int missing[4] = { 0 };
        int64_t gave_up = 0;
        double begun;

        CLAIM(hn_init(NULL) == HN_OK);
        if (hn_rank() >= 2) {
                /* Late ranks: they arrive when the others have given up. */
                CLAIM(hn_store_wait(hn_store_default(), (const char *const[]){ "over" }, 1,
                                    PATIENCE_MS) == HN_OK);
        } else {
                begun = seconds();
                CLAIM(hn_barrier(NULL, 300) == HN_ERR_TIMEOUT);
                CLAIM(seconds() - begun < 20);
                CLAIM(strstr(hn_last_error(), "barrier `world`: ranks "));
                CLAIM(strstr(hn_last_error(), "2,3 (node1) missing after 0.3 s"));
                CLAIM(hn_last_error_ranks(missing, 4) >= 2);
                CLAIM(hn_barrier(NULL, 0) == HN_ERR_TIMEOUT);
                /* The last rank to give up lets the late ones arrive; earlier they would complete
                 * the barrier. */
                CLAIM(hn_store_add(hn_store_default(), "gave up", 1, &gave_up) == HN_OK);
                if (gave_up == 2)
                        CLAIM(hn_store_set(hn_store_default(), "over", "", 0) == HN_OK);
                CLAIM(hn_store_wait(hn_store_default(), (const char *const[]){ "over" }, 1,
                                    PATIENCE_MS) == HN_OK);
        }
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        return hn_finalize();
}

TEST(a_barrier_names_who_is_missing_and_can_be_tried_again)
{
        run_all_good(4, 2, miss_a_barrier);
}

static int lose_a_peer(void)
{
        hn_event e = { .size = sizeof(e) };
        char text[8];
        size_t len = sizeof(text);
        int who = -1;

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_event_poll(&e, 0) == HN_ERR_TIMEOUT && e.kind == HN_EVENT_NONE);
        CLAIM(hn_health(0) == HN_OK && hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 3)
                _exit(7);
        if (hn_rank() == 0)
                CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_ERR_PEER);
        else
                CLAIM(hn_store_get(hn_store_default(), "never", text, &len, HN_NO_TIMEOUT) ==
                      HN_ERR_PEER);
        CLAIM(strstr(hn_last_error(), "rank 3 ended with 7"));
        CLAIM(hn_last_error_ranks(&who, 1) == 1 && who == 3);
        e.size = sizeof(e);
        CLAIM(hn_health(PATIENCE_MS) == HN_ERR_PEER && hn_health(0) == HN_ERR_PEER);
        CLAIM(strcmp(hn_last_error(), "rank 3 ended with 7") == 0);
        CLAIM(hn_event_poll(&e, PATIENCE_MS) == HN_OK && e.kind == HN_EVENT_RANK_FAILED);
        CLAIM(e.rank == 3 && e.node == 1 && strcmp(e.text, "rank 3 ended with 7") == 0);
        return hn_finalize();
}

TEST(a_dead_peer_ends_every_wait)
{
        run(4, 2, lose_a_peer);
        for (int i = 0; i < 4; i++)
                assert_int_equal(result.status[i], i == 3 ? 7 : 0);
}

static int leave_early(void)
{
        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        if (hn_rank() == 1)
                return 0;
        CLAIM(hn_barrier(NULL, HN_NO_TIMEOUT) == HN_ERR_PEER);
        /* A failed rank: another copy of this test may be faster. */
        CLAIM(strstr(hn_last_error(), ") has already exited"));
        return hn_finalize();
}

TEST(a_rank_that_left_does_not_hang_the_barrier)
{
        run_all_good(4, 2, leave_early);
}

static void *wait_for_big(void *arg)
{
        char key[32];
        void *value = NULL;
        size_t len = 0;

        snprintf(key, sizeof(key), "big/%d", *(int *)arg);
        if (hn_store_get_alloc(hn_store_default(), key, &value, &len, PATIENCE_MS) == HN_OK &&
            len == 1000000u * (unsigned)(*(int *)arg + 1) && *((char *)value + len - 1) == 'z')
                *(int *)arg = -1;
        hn_free(value);
        return NULL;
}

static int use_threads(void)
{
        enum { THREADS = 8 };
        static char value[HN_VALUE_MAX + 1];
        pthread_t threads[THREADS];
        int ids[THREADS];
        int64_t now = 0;
        char key[32];

        memset(value, 'z', sizeof(value));
        CLAIM(hn_init(NULL) == HN_OK);
        for (int i = 0; i < THREADS; i++) {
                ids[i] = i;
                CLAIM(pthread_create(&threads[i], NULL, wait_for_big, &ids[i]) == 0);
        }
        for (int i = 0; i < 200; i++)
                CLAIM(hn_store_add(hn_store_default(), "n", 1, &now) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        for (int i = hn_rank(); i < THREADS; i += hn_world_size()) {
                snprintf(key, sizeof(key), "big/%d", i);
                CLAIM(hn_store_set(hn_store_default(), key, value, 1000000u * (unsigned)(i + 1)) ==
                      HN_OK);
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], NULL);
                CLAIM(ids[i] == -1);
        }
        CLAIM(hn_store_add(hn_store_default(), "n", 0, &now) == HN_OK && now == 400);
        CLAIM(hn_store_set(hn_store_default(), "k", value, HN_VALUE_MAX + 1) == HN_ERR_INVALID);
        CLAIM(hn_store_set(hn_store_default(), "k", value, HN_VALUE_MAX) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        return hn_finalize();
}

TEST(threads_wait_at_once_on_one_store)
{
        run_all_good(2, 1, use_threads);
}

/* Connects without the library, sends @bytes and waits until the endpoint closes. */
static int send_bad_bytes(const void *bytes, size_t len)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char c;

        snprintf(at.sun_path, sizeof(at.sun_path), "%s", getenv("HN_STORE"));
        if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
            send(fd, bytes, len, MSG_NOSIGNAL) < 0)
                return -1;
        while (recv(fd, &c, 1, 0) > 0)
                ;
        close(fd);
        return 0;
}

static int survive_bad_clients(void)
{
        static const unsigned char too_long[] = { 255, 255, 255, 255, 64 };
        static const unsigned char wrong_type[] = { 10, 0, 0, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0 };
        static const unsigned char gone[] = { 10, 0, 0, 0, 64, 0, 0, 0, 0, 64, 0, 0, 0, 0 };

        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(send_bad_bytes("GET /metrics HTTP/1.1\r\n\r\n", 25) == 0);
        CLAIM(send_bad_bytes(too_long, sizeof(too_long)) == 0);
        CLAIM(send_bad_bytes(wrong_type, sizeof(wrong_type)) == 0);
        CLAIM(send_bad_bytes(gone, sizeof(gone)) == 0);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        return hn_finalize();
}

TEST(bad_clients_harm_only_themselves)
{
        run_all_good(2, 1, survive_bad_clients);
}

static int report_and_abort(void)
{
        CLAIM(hn_init(NULL) == HN_OK);
        CLAIM(hn_progress(5, 10, "half") == HN_OK);
        if (hn_rank() == 1)
                CLAIM(hn_report_error("data", "bad line %d", 12) == HN_OK);
        CLAIM(hn_barrier(NULL, PATIENCE_MS) == HN_OK);
        CLAIM(hn_abort(0, "x") == HN_ERR_INVALID);
        if (hn_rank() == 0)
                CLAIM(hn_abort(42, "loss is %s", "NaN") == HN_OK);
        return hn_finalize();
}

TEST(ranks_tell_the_launcher)
{
        run_all_good(2, 2, report_and_abort);
        assert_int_equal(result.n_reports, 1);
        assert_string_equal(result.report, "1 data: bad line 12");
        assert_int_equal(result.abort_code, 42);
        assert_string_equal(result.abort_text, "0: loss is NaN");
        assert_int_equal(result.progress, 10);
}

static int run_alone(void)
{
        hn_init_opts opts = { .size = sizeof(opts) };
        char text[8];
        size_t len = sizeof(text);
        int x = 3, y = 0;

        unsetenv("HN_RANK");
        CLAIM(hn_init(&opts) == HN_ERR_NOT_LAUNCHED);
        CLAIM(strstr(hn_last_error(), "hnlaunch --local 1"));
        opts.flags = HN_INIT_ALLOW_SINGLETON;
        CLAIM(hn_init(&opts) == HN_OK && hn_rank() == 0 && hn_world_size() == 1);
        CLAIM(hn_barrier(NULL, 1000) == HN_OK);
        CLAIM(hn_all_gather_bytes(NULL, &x, sizeof(x), &y, 1000) == HN_OK && y == 3);
        CLAIM(hn_store_set(hn_store_default(), "k", "v", 1) == HN_OK);
        CLAIM(hn_store_get(hn_store_default(), "k", text, &len, 1000) == HN_OK && len == 1);
        CLAIM(hn_store_get(hn_store_default(), "none", text, &len, 50) == HN_ERR_TIMEOUT);
        CLAIM(strstr(hn_last_error(), "key `none` is not there after 0.05 s"));
        CLAIM(strcmp(hn_hostname_of(0), "localhost") == 0);
        return hn_finalize();
}

TEST(a_program_may_run_alone)
{
        run_all_good(1, 1, run_alone);
}

static int init_in_bad_environment(void)
{
        setenv("HN_RANK", "9", 1);
        CLAIM(hn_init(NULL) == HN_ERR_INVALID);
        setenv("HN_RANK", "1", 1);
        setenv("HN_STORE", "/nonexistent/store", 1);
        CLAIM(hn_init(NULL) == HN_ERR_SYSTEM);
        CLAIM(strstr(hn_last_error(), "/nonexistent/store"));
        return 0;
}

TEST(a_wrong_environment_is_reported)
{
        run_all_good(2, 1, init_in_bad_environment);
}
