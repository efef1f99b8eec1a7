/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work moves from @todo (taken by threads, oldest first) to @finished (taken by the loop, which is
 * woken by a uv_async). A thread is started when more work is queued than threads are idle, up to
 * the maximum; threads never end before the pool does. The async handle keeps the loop alive only
 * while work is pending. Closing waits for pending work, then joins the threads.
 */
#include "head/core/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

/* A queue; @last is where the next pointer goes. */
struct work_list {
        struct thread_pool_work *first, **last;
};

struct thread_pool {
        uv_async_t async;
        pthread_mutex_t mutex; /* guards the fields down to the blank line */
        pthread_cond_t wake;
        struct work_list todo, finished;
        int queued, idle; /* works in @todo; threads waiting for work */
        bool stop;

        pthread_t *threads;
        int n, max;
        size_t pending; /* works without a call of done() yet */
        bool closing;
        bool warned;
};

static void init_work_list(struct work_list *l)
{
        l->first = NULL;
        l->last = &l->first;
}

static void add_work(struct work_list *l, struct thread_pool_work *w)
{
        w->next = NULL;
        *l->last = w;
        l->last = &w->next;
}

/* Takes the work out to which *@at points. */
static struct thread_pool_work *take_work(struct work_list *l, struct thread_pool_work **at)
{
        struct thread_pool_work *w = *at;

        *at = w->next;
        if (l->last == &w->next)
                l->last = at;
        return w;
}

/* ---- in a thread ---- */

/* Hands the work to the loop; with the mutex held where threads run. */
static void finish_work(struct thread_pool *p, struct thread_pool_work *w, int status)
{
        w->status = status;
        add_work(&p->finished, w);
        uv_async_send(&p->async);
}

/* Takes work until the pool stops; what is queued then is still done. */
static void *run_pool_thread(void *arg)
{
        struct thread_pool *p = arg;
        struct thread_pool_work *w;

        pthread_mutex_lock(&p->mutex);
        for (;;) {
                for (p->idle++; !p->todo.first && !p->stop;)
                        pthread_cond_wait(&p->wake, &p->mutex);
                p->idle--;
                if (!p->todo.first)
                        break;
                w = take_work(&p->todo, &p->todo.first);
                p->queued--;
                pthread_mutex_unlock(&p->mutex);
                w->run(w);
                pthread_mutex_lock(&p->mutex);
                finish_work(p, w, 0);
        }
        pthread_mutex_unlock(&p->mutex);
        return NULL;
}

/* ---- in the loop ---- */

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
        sigset_t all, old;
        int r;

        /* The new thread inherits the mask; there is no moment without it. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(ret, NULL, run, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        return r;
}

/* Starts one more thread. 0, or an errno: too many processes, or no memory. */
static int start_pool_thread(struct thread_pool *p)
{
        int r = thread_start(&p->threads[p->n], run_pool_thread, p);

        p->n += !r;
        return r;
}

/* Frees the pool; the threads have ended. */
static void on_pool_closed(uv_handle_t *h)
{
        struct thread_pool *p = h->data;

        pthread_cond_destroy(&p->wake);
        pthread_mutex_destroy(&p->mutex);
        free(p->threads);
        free(p);
}

/* Ends all threads, which are idle, and closes the handle. */
static void end_pool_threads(struct thread_pool *p)
{
        pthread_mutex_lock(&p->mutex);
        p->stop = true;
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->mutex);
        for (int i = 0; i < p->n; i++)
                pthread_join(p->threads[i], NULL);
        uv_close((uv_handle_t *)&p->async, on_pool_closed);
}

/* Calls done() of all finished work, without the mutex: done() may queue more. */
static void on_work_finished(uv_async_t *async)
{
        struct thread_pool *p = async->data;
        struct thread_pool_work *w, *next;

        pthread_mutex_lock(&p->mutex);
        w = p->finished.first;
        init_work_list(&p->finished);
        pthread_mutex_unlock(&p->mutex);
        for (; w; w = next) {
                next = w->next;
                w->done(w, w->status);
                p->pending--;
        }
        if (p->pending)
                return;
        uv_unref((uv_handle_t *)&p->async);
        if (p->closing && !uv_is_closing((uv_handle_t *)&p->async))
                end_pool_threads(p);
}

struct thread_pool *thread_pool_create(uv_loop_t *loop, int max, struct error *err)
{
        struct thread_pool *p = xcalloc(1, sizeof(*p));
        int r = uv_async_init(loop, &p->async, on_work_finished);

        if (r < 0) {
                free(p);
                err_set(err, -r, "cannot start threads: %s", uv_strerror(r));
                return NULL;
        }
        p->async.data = p;
        uv_unref((uv_handle_t *)&p->async);
        pthread_mutex_init(&p->mutex, NULL);
        pthread_cond_init(&p->wake, NULL);
        init_work_list(&p->todo);
        init_work_list(&p->finished);
        p->max = max;
        p->threads = xcalloc((size_t)max, sizeof(*p->threads));
        return p;
}

/* Runs queued work in the loop, because no thread can be started. */
static void run_work_in_loop(struct thread_pool *p, int error)
{
        struct thread_pool_work *w;

        if (!p->warned)
                log_line(LOG_WARN, "cannot start a thread: %s; a slow reader delays all others",
                         strerror(error));
        p->warned = true;
        while (p->todo.first) {
                w = take_work(&p->todo, &p->todo.first);
                p->queued--;
                w->run(w);
                finish_work(p, w, 0);
        }
}

void thread_pool_run(struct thread_pool *p, struct thread_pool_work *w)
{
        bool grows;
        int error;

        pthread_mutex_lock(&p->mutex);
        add_work(&p->todo, w);
        /* An idle thread that has been woken counts as idle until it takes the mutex: more work
         * than such threads needs another one. */
        grows = ++p->queued > p->idle && p->n < p->max;
        pthread_cond_signal(&p->wake);
        pthread_mutex_unlock(&p->mutex);
        p->pending++;
        uv_ref((uv_handle_t *)&p->async);
        error = grows ? start_pool_thread(p) : 0;
        if (error && !p->n)
                run_work_in_loop(p, error);
}

void thread_pool_cancel(struct thread_pool *p, struct thread_pool_work *w)
{
        struct thread_pool_work **at = &p->todo.first;

        pthread_mutex_lock(&p->mutex);
        while (*at && *at != w)
                at = &(*at)->next;
        if (*at) {
                take_work(&p->todo, at);
                p->queued--;
                finish_work(p, w, UV_ECANCELED);
        }
        pthread_mutex_unlock(&p->mutex);
}

void thread_pool_close(struct thread_pool *p)
{
        if (!p)
                return;
        p->closing = true;
        if (!p->pending)
                end_pool_threads(p);
}
