/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/wait_looks.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/unit.h"

enum { LOOKS = 40 };

static enum wait_look parse_call(long number, unsigned first, unsigned second)
{
        char line[96];

        snprintf(line, sizeof(line), "%ld 0x%x 0x%x 0x0 0x0 0x0 0x0 0x7ffe 0x7f00\n", number, first,
                 second);
        return wait_looks_parse('S', line, "");
}

TEST(who_lets_a_time_pass_does_not_wait)
{
        assert_int_equal(wait_looks_parse('R', "running", ""), LOOK_BUSY);
        assert_int_equal(wait_looks_parse('D', "", "folio_wait_bit"), LOOK_BUSY);
        assert_int_equal(parse_call(SYS_clock_nanosleep, 0, 0), LOOK_BUSY);
        assert_int_equal(parse_call(SYS_ppoll, 0, 0), LOOK_BUSY);
        assert_int_equal(parse_call(SYS_ppoll, 1, 2), LOOK_WAITS);
        assert_int_equal(parse_call(SYS_pselect6, 0, 0), LOOK_BUSY);
        assert_int_equal(parse_call(SYS_futex, 1, 1), LOOK_WAITS);
        assert_int_equal(parse_call(SYS_wait4, 1, 1), LOOK_UNKNOWN);
}

TEST(without_a_call_the_kernels_function_tells)
{
        assert_int_equal(wait_looks_parse('S', "", "hrtimer_nanosleep"), LOOK_BUSY);
        assert_int_equal(wait_looks_parse('S', "", "do_wait"), LOOK_UNKNOWN);
        assert_int_equal(wait_looks_parse('S', "", "futex_do_wait"), LOOK_WAITS);
        assert_int_equal(wait_looks_parse('S', "", "0"), LOOK_WAITS);
}

TEST(shares_are_counted)
{
        struct wait_count c = { .looks = 20, .waits = 5, .in_store = 5 };

        assert_int_equal(wait_looks_take(&c), 75);
        assert_int_equal(c.looks, 0);
        c = (struct wait_count){ .looks = 20, .waits = 10, .in_store = 8 };
        assert_int_equal(wait_looks_take(&c), 50 | SAMPLE_GUESSED);
        assert_int_equal(wait_looks_take(&c), SAMPLE_USE_UNKNOWN);
}

/* A child that reads from a pipe, or sleeps. */
static pid_t start_child(bool sleeps)
{
        int fds[2];
        pid_t pid;
        char c;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        if (!pid) {
                if (!sleeps)
                        c = (char)read(fds[0], &c, 1);
                sleep(1000);
                _exit(0);
        }
        return pid;
}

TEST(processes_are_looked_at)
{
        const struct timespec pause = { 0, 5000000 };
        pid_t waits = start_child(false), sleeps = start_child(true);
        struct wait_count of_waits = { 0 }, of_sleeps = { 0 };

        for (int i = 0; i < LOOKS; i++) {
                nanosleep(&pause, NULL);
                wait_looks_count(&of_waits, waits, false);
                wait_looks_count(&of_sleeps, sleeps, false);
        }
        assert_in_range(of_waits.waits, LOOKS / 2, LOOKS);
        assert_in_range(of_sleeps.waits, 0, LOOKS / 2);
        wait_looks_count(&of_sleeps, 0, true);
        assert_int_equal(of_sleeps.in_store, 1);
        kill(waits, SIGKILL);
        kill(sleeps, SIGKILL);
        while (wait(NULL) > 0)
                ;
        of_waits.looks = 0;
        wait_looks_count(&of_waits, waits, false);
        assert_int_equal(of_waits.looks, 0);
}
