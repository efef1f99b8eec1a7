/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/sampler.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"

enum { BLOCK = 64 << 20, SAMPLES = 200 };

TEST(waiting_for_disks_is_no_use_of_a_processor)
{
        struct sampler_counters c;

        sampler_read_stat("cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n", &c);
        assert_int_equal(c.all, 531);
        assert_int_equal(c.busy, 81);
        sampler_read_stat("intr 5\n", &c);
        assert_int_equal(c.all, 0);
}

TEST(all_interfaces_but_loopback_count)
{
        struct sampler_counters c;

        sampler_read_net("Inter-|   Receive                            |  Transmit\n"
                         " face |bytes    packets errs drop fifo frame compressed multicast|bytes\n"
                         "    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
                         "  eth0: 1000 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
                         "lo0:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0",
                         &c);
        assert_int_equal(c.in, 1005);
        assert_int_equal(c.out, 26);
}

TEST(used_memory_is_what_is_not_available)
{
        assert_int_equal(sampler_read_memory("MemTotal: 4194304 kB\nMemFree: 1 kB\n"
                                             "MemAvailable: 1048576 kB\n"),
                         3072);
        assert_int_equal(sampler_read_memory(""), 0);
}

/* A session whose child burns a processor and holds memory, as a shell script with Python does. */
static pid_t start_session(void)
{
        char *block;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid)
                return pid;
        setsid();
        if (fork()) {
                pause();
                _exit(0);
        }
        block = xcalloc(BLOCK, 1);
        for (;;)
                for (size_t i = 0; i < BLOCK; i += 512)
                        block[i]++;
}

TEST(a_rank_is_its_whole_session)
{
        struct sampler s = { 0 };
        pid_t pids[2] = { start_session(), 0 };
        struct sample_rank ranks[2] = { 0 };
        struct sample m = { .ranks = ranks, .n_ranks = 2 };

        sampler_take(&s, pids, 2, &m);
        assert_int_equal(m.interval_ms, 0);
        assert_int_equal(ranks[0].cpu_percent, 0);
        /* A loaded machine gives the child less, but some. */
        for (int i = 0; i < SAMPLES && (!ranks[0].cpu_percent || ranks[0].memory_mib < 64); i++) {
                usleep(100000);
                s.search_ns = 0;
                sampler_take(&s, pids, 2, &m);
                assert_true(m.interval_ms >= 100);
        }
        assert_true(ranks[0].cpu_percent > 0);
        assert_true(ranks[0].memory_mib >= 64);
        assert_int_equal(ranks[0].state, 'S');
        assert_int_equal(ranks[1].state, 0);
        assert_int_equal(ranks[1].cpu_percent, 0);
        assert_true(m.memory_mib > 64);
        assert_true(m.cpu_permille > 0 && m.cpu_permille <= 1000);
        kill(-pids[0], SIGKILL);
        waitpid(pids[0], NULL, 0);
        /* Its child, which is not ours, gives its memory back in its own time. */
        for (int i = 0; i < SAMPLES && (!i || ranks[0].memory_mib); i++) {
                usleep(i ? 100000 : 0);
                ranks[0] = (struct sample_rank){ 0 };
                s.search_ns = 0;
                sampler_take(&s, pids, 2, &m);
        }
        assert_int_equal(ranks[0].memory_mib, 0);
        sampler_reset(&s);
}
