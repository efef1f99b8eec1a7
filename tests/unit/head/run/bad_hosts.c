/* SPDX-License-Identifier: Apache-2.0 */
#include "head/run/bad_hosts.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/files.h"
#include "lib/unit.h"

enum { NOW = 1000000, RUNS = 8, EACH = 12 };

static char path[64];

static int make_folder(void **state)
{
        int r = make_scratch(state);

        snprintf(path, sizeof(path), "%s/state/hosts.bad", scratch);
        return r;
}

#define TEST_FILE(name) TEST_WITH(make_folder, remove_scratch, name)

static int add(const char *host, const char *run, int64_t until)
{
        struct bad_host h = { .host = (char *)host,
                              .reason = (char *)"it was lost",
                              .evidence = (char *)"lost",
                              .run = (char *)run,
                              .since = NOW,
                              .until = until };
        struct error err;

        return bad_hosts_add(path, &h, NOW, &err);
}

static size_t count(int64_t now)
{
        struct bad_hosts b;
        struct error err;
        size_t n;

        assert_int_equal(bad_hosts_load(&b, path, now, &err), 0);
        n = b.n;
        bad_hosts_finish(&b);
        return n;
}

TEST_FILE(an_entry_comes_back_as_it_was)
{
        const struct bad_host *h;
        CLEANUP(bad_hosts_finish) struct bad_hosts b;
        struct error err;

        assert_int_equal(count(NOW), 0); /* there is no file yet */
        assert_int_equal(add("gpu001", "k3f9q", NOW + 10), 0);
        assert_int_equal(bad_hosts_load(&b, path, NOW, &err), 0);
        h = bad_hosts_find(&b, "GPU001");
        assert_non_null(h);
        assert_string_equal(h->host, "gpu001");
        assert_string_equal(h->reason, "it was lost");
        assert_string_equal(h->evidence, "lost");
        assert_string_equal(h->run, "k3f9q");
        assert_int_equal(h->since, NOW);
        assert_int_equal(h->until, NOW + 10);
        assert_null(bad_hosts_find(&b, "gpu00"));
}

TEST_FILE(an_entry_ends_and_is_replaced)
{
        add("a", "1", NOW + 10);
        add("a", "2", NOW + 20);
        assert_int_equal(count(NOW), 1);
        assert_int_equal(count(NOW + 20), 0);
        add("b", "1", NOW - 1);
        assert_int_equal(count(NOW), 1);
}

TEST_FILE(removal_can_be_limited_to_a_run)
{
        struct error err;

        add("a", "1", NOW + 10);
        assert_int_equal(bad_hosts_remove(path, "a", "2", NOW, &err), 0);
        assert_int_equal(bad_hosts_remove(path, "b", NULL, NOW, &err), 0);
        assert_int_equal(count(NOW), 1);
        assert_int_equal(bad_hosts_remove(path, "A", "1", NOW, &err), 1);
        assert_int_equal(count(NOW), 0);
}

TEST_FILE(broken_lines_are_counted_and_stay)
{
        CLEANUP(bad_hosts_finish) struct bad_hosts b;
        struct error err;

        add("a", "1", NOW + 10);
        append_to_file(
                path, "# by hand\n{\"host\":7,\"until\":1}\n\n{\"host\":\"x\"}\n[\"no object\"]\n");
        add("b", "1", NOW + 10);
        assert_int_equal(bad_hosts_load(&b, path, NOW, &err), 0);
        assert_int_equal(b.n, 2);
        assert_int_equal(b.broken, 4);
}

TEST_FILE(a_file_that_is_none_is_an_error)
{
        struct bad_hosts b;
        struct error err;

        add("a", "1", NOW + 10);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_true(bad_hosts_load(&b, path, NOW, &err) < 0);
        assert_int_equal(b.n, 0);
        assert_true(add("b", "1", NOW + 10) < 0);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(bad_hosts_load(&b, path, NOW, &err), -EINVAL);
}

TEST_FILE(runs_at_the_same_time_lose_nothing)
{
        for (int run = 0; run < RUNS; run++) {
                pid_t pid = fork();

                assert_true(pid >= 0);
                for (int i = 0; !pid && i < EACH; i++) {
                        char host[32];

                        snprintf(host, sizeof(host), "gpu%d-%d", run, i);
                        if (add(host, "r", NOW + 10) < 0)
                                _exit(1);
                }
                if (!pid)
                        _exit(0);
        }
        for (int run = 0, status; run < RUNS; run++) {
                assert_true(wait(&status) > 0);
                assert_int_equal(status, 0);
        }
        assert_int_equal(count(NOW), RUNS * EACH);
}
