/* SPDX-License-Identifier: Apache-2.0 */
/* Works of a pool are run by its threads and done in the loop. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "head/core/thread_pool.h"
#include "lib/unit.h"

enum { WORKS = 50 };

static uv_loop_t loop;

/* As if the limit of processes were reached. */
static bool no_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
        int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
        return no_threads ? EAGAIN : real(thread, attr, fn, arg);
}

struct job {
        struct thread_pool_work work;
        struct thread_pool *pool;
        int fd;       /* what the work waits for, -1 = nothing */
        int again;    /* so often it is run once more when it is done */
        int runs;     /* counted in the thread */
        int done, ok; /* calls of done(), those that were no cancel */
};

static void run_job(struct thread_pool_work *w)
{
        struct job *j = container_of(w, struct job, work);
        char c;

        if (j->fd >= 0)
                assert_int_equal(read(j->fd, &c, 1), 1);
        j->runs++;
}

static void job_done(struct thread_pool_work *w, int status)
{
        struct job *j = container_of(w, struct job, work);

        j->done++;
        j->ok += !status;
        if (j->again-- > 0)
                thread_pool_run(j->pool, w);
}

static void begin(struct thread_pool *p, struct job *j, int fd, int again)
{
        *j = (struct job){ { .run = run_job, .done = job_done }, .pool = p, .fd = fd };
        j->again = again;
        thread_pool_run(p, &j->work);
}

static struct thread_pool *make(int max)
{
        struct error err;
        struct thread_pool *p;

        assert_int_equal(uv_loop_init(&loop), 0);
        p = thread_pool_create(&loop, max, &err);
        assert_non_null(p);
        return p;
}

/* The loop ends although the pool is still there, and then with it. */
static void finish(struct thread_pool *p)
{
        uv_run(&loop, UV_RUN_DEFAULT);
        thread_pool_close(p);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
}

/* Requires that each work is done as often as it is asked for. */
static void run_works(int max)
{
        struct job jobs[WORKS];
        struct thread_pool *p = make(max);

        for (int i = 0; i < WORKS; i++)
                begin(p, &jobs[i], -1, i % 3);
        finish(p);
        for (int i = 0; i < WORKS; i++) {
                assert_int_equal(jobs[i].runs, 1 + i % 3);
                assert_int_equal(jobs[i].done, 1 + i % 3);
        }
}

TEST(every_work_is_run_and_done)
{
        run_works(4);
}

TEST(a_work_that_blocks_leaves_the_other_threads)
{
        struct job stuck[2], other;
        struct thread_pool *p = make(3);
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        begin(p, &stuck[0], fds[0], 0);
        begin(p, &stuck[1], fds[0], 0);
        begin(p, &other, -1, 0);
        while (!other.done)
                uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(stuck[0].done + stuck[1].done, 0);
        assert_int_equal(write(fds[1], "xx", 2), 2);
        finish(p);
        assert_int_equal(stuck[0].ok + stuck[1].ok, 2);
        close(fds[0]);
        close(fds[1]);
}

TEST(what_waits_can_be_cancelled)
{
        struct job stuck, waiting[3];
        struct thread_pool *p = make(1);
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        begin(p, &stuck, fds[0], 0);
        for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
                begin(p, &waiting[i], fds[0], 0);
        thread_pool_cancel(p, &waiting[2].work);
        thread_pool_cancel(p, &waiting[0].work);
        assert_int_equal(write(fds[1], "xx", 2), 2);
        finish(p);
        thread_pool_close(NULL);
        assert_int_equal(stuck.ok, 1);
        assert_int_equal(waiting[1].ok, 1);
        for (size_t i = 0; i < ARRAY_SIZE(waiting); i += 2) {
                assert_int_equal(waiting[i].done, 1);
                assert_int_equal(waiting[i].ok + waiting[i].runs, 0);
        }
        close(fds[0]);
        close(fds[1]);
}

TEST(closing_waits_for_works)
{
        struct job jobs[WORKS];
        struct thread_pool *p = make(2);

        for (int i = 0; i < WORKS; i++)
                begin(p, &jobs[i], -1, 0);
        thread_pool_close(p);
        uv_run(&loop, UV_RUN_DEFAULT);
        for (int i = 0; i < WORKS; i++)
                assert_int_equal(jobs[i].ok, 1);
        assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(without_threads_work_is_run_in_the_loop)
{
        no_threads = true;
        run_works(2);
        no_threads = false;
}
