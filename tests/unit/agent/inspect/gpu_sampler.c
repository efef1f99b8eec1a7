/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inspect/gpu_sampler.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/fd.h"
#include "lib/unit.h"

enum { LONG_AGO_MS = 61000, STALE_MS = 11000 };

struct setup {
        struct gpu_sampler s;
        int to; /* the helper's end of the pipe */
        struct sample m;
};

static uint64_t now_ms(void)
{
        return uv_hrtime() / 1000000;
}

/* A sampler whose helper is the test. */
static void begin(struct setup *t)
{
        int fds[2];

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_int_equal(fd_set_nonblock(fds[0]), 0);
        *t = (struct setup){ .s = GPU_SAMPLER_INIT, .to = fds[1] };
        t->s.fd = fds[0];
        t->s.begin_ms = now_ms();
}

static void end(struct setup *t)
{
        gpu_sampler_stop(&t->s);
        fd_close(t->to);
        sample_finish(&t->m);
}

static uint32_t take(struct setup *t)
{
        sample_finish(&t->m);
        gpu_sampler_take(&t->s, &t->m);
        return t->m.n_gpus;
}

static struct gpu_record make_record(uint32_t n)
{
        struct gpu_record r = { .mark = GPU_RECORD_MARK, .n = n };

        for (uint32_t i = 0; i < MIN(n, (uint32_t)GPU_RECORD_GPUS); i++)
                r.gpus[i] = (struct gpu_figures){ i, 1000 + i, 81559, 40 + i, 300 + i };
        return r;
}

static void send_record(struct setup *t, const struct gpu_record *r)
{
        assert_int_equal(fd_write_all(t->to, r, sizeof(*r)), 0);
}

TEST(figures_are_those_of_the_newest_record)
{
        struct gpu_record r = make_record(2);
        struct setup t;

        begin(&t);
        assert_int_equal(take(&t), 0);
        send_record(&t, &r);
        r.gpus[1].use_percent = 100;
        send_record(&t, &r);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(take(&t), 2);
                assert_int_equal(t.m.gpus[0].use_percent, 0);
                assert_int_equal(t.m.gpus[1].use_percent, 100);
                assert_int_equal(t.m.gpus[1].memory_mib, 1001);
                assert_int_equal(t.m.gpus[1].memory_total_gib, 80);
                assert_int_equal(t.m.gpus[1].celsius, 41);
                assert_int_equal(t.m.gpus[1].watts, 301);
        }
        r = make_record(0);
        send_record(&t, &r);
        assert_int_equal(take(&t), 0);
        end(&t);
}

TEST(torn_records_are_put_together)
{
        struct gpu_record r = make_record(GPU_RECORD_GPUS);
        struct setup t;

        begin(&t);
        for (size_t at = 0; at < sizeof(r); at++) {
                assert_int_equal(take(&t), 0);
                assert_int_equal(fd_write_all(t.to, (char *)&r + at, 1), 0);
        }
        assert_int_equal(take(&t), GPU_RECORD_GPUS);
        assert_int_equal(t.m.gpus[GPU_RECORD_GPUS - 1].watts, 300 + GPU_RECORD_GPUS - 1);
        end(&t);
}

/* Such a helper is dropped, and none follows at once. */
static void check_nonsense(const struct gpu_record *bad)
{
        struct gpu_record good = make_record(1);
        struct setup t;

        begin(&t);
        send_record(&t, &good);
        assert_int_equal(take(&t), 1);
        send_record(&t, bad);
        send_record(&t, &good);
        assert_int_equal(take(&t), 0);
        assert_int_equal(t.s.fd, -1);
        assert_int_equal(take(&t), 0);
        assert_int_equal(t.s.pid, 0);
        assert_true(t.s.begin_ms > now_ms() + 30000);
        end(&t);
}

TEST(what_is_no_record_ends_the_helper)
{
        struct gpu_record r = make_record(1);

        r.mark++;
        check_nonsense(&r);
        r = make_record(GPU_RECORD_GPUS + 1);
        check_nonsense(&r);
        r.n = UINT32_MAX;
        check_nonsense(&r);
}

TEST(nonsense_of_a_gpu_is_not_known)
{
        struct gpu_record r = make_record(3);
        struct setup t;

        r.gpus[0] = (struct gpu_figures){ 101, 81560, 81559, 201, 100001 };
        r.gpus[1] =
                (struct gpu_figures){ GPU_RECORD_UNKNOWN, GPU_RECORD_UNKNOWN, GPU_RECORD_UNKNOWN,
                                      GPU_RECORD_UNKNOWN, GPU_RECORD_UNKNOWN };
        begin(&t);
        send_record(&t, &r);
        assert_int_equal(take(&t), 3);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(t.m.gpus[i].use_percent, SAMPLE_USE_UNKNOWN);
                assert_int_equal(t.m.gpus[i].memory_mib, 0);
                assert_int_equal(t.m.gpus[i].memory_total_gib, 0);
                assert_int_equal(t.m.gpus[i].celsius, 0);
                assert_int_equal(t.m.gpus[i].watts, 0);
        }
        assert_int_equal(t.m.gpus[2].use_percent, 2);
        end(&t);
}

TEST(old_figures_are_not_told)
{
        struct gpu_record r = make_record(1);
        struct setup t;

        begin(&t);
        send_record(&t, &r);
        assert_int_equal(take(&t), 1);
        t.s.heard_ms -= STALE_MS;
        assert_int_equal(take(&t), 0);
        assert_true(t.s.fd >= 0);
        send_record(&t, &r);
        assert_int_equal(take(&t), 1);
        end(&t);
}

static pid_t start_process(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid)
                for (;;)
                        pause();
        return pid;
}

TEST(a_driver_that_hangs_is_given_up)
{
        struct setup t;
        int status;
        pid_t pid;

        begin(&t);
        t.s.pid = pid = start_process();
        t.s.begin_ms -= LONG_AGO_MS;
        assert_int_equal(take(&t), 0);
        assert_int_equal(t.s.fd, -1);
        /* As long as it is there no other is started, whatever the time. */
        t.s.begin_ms = 0;
        assert_int_equal(take(&t), 0);
        assert_int_equal(t.s.pid, pid);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        gpu_sampler_reaped(&t.s, pid, status);
        assert_int_equal(t.s.pid, 0);
        end(&t);
}

TEST(the_end_of_the_helper_ends_the_figures)
{
        struct gpu_record r = make_record(1);
        struct setup t;

        begin(&t);
        t.s.pid = 1 << 30; /* no process */
        send_record(&t, &r);
        assert_int_equal(fd_write_all(t.to, &r, sizeof(r) - 1), 0);
        t.to = fd_close(t.to);
        assert_int_equal(take(&t), 1);
        gpu_sampler_reaped(&t.s, 1, 0); /* another child */
        assert_int_equal(take(&t), 1);
        gpu_sampler_reaped(&t.s, 1 << 30, GPU_RECORD_NO_DRIVER << 8);
        assert_int_equal(t.s.pid, 0);
        assert_int_equal(take(&t), 0);
        assert_true(t.s.begin_ms > now_ms() + 30000);
        end(&t);
}

TEST(a_flood_holds_nothing_up)
{
        struct gpu_record r = make_record(1);
        struct setup t;
        pid_t pid;

        begin(&t);
        pid = fork();
        assert_true(pid >= 0);
        while (!pid)
                if (write(t.to, &r, sizeof(r)) < 0)
                        _exit(0);
        alarm(60);
        for (int i = 0; i < 1000; i++)
                take(&t);
        alarm(0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        end(&t);
}

/* The real one; without a driver here it ends by itself. */
TEST(the_helper_is_started_and_ended)
{
        struct gpu_sampler s = GPU_SAMPLER_INIT;
        CLEANUP(sample_finish) struct sample m = { 0 };
        int status;
        pid_t pid;

        gpu_sampler_take(&s, &m);
        pid = s.pid;
        assert_true(pid > 0);
        assert_true(s.fd >= 0);
        gpu_sampler_stop(&s);
        assert_int_equal(s.fd, -1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                        : WEXITSTATUS(status) == GPU_RECORD_NO_LIBRARY);
        gpu_sampler_reaped(&s, pid, status);
        assert_int_equal(s.pid, 0);
}
