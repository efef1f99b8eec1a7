/* SPDX-License-Identifier: Apache-2.0 */
#include "head/core/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/strv.h"

struct work_list {
        struct thread_pool_work *first, **last;
};

struct pool {
        uv_async_t async;
        pthread_mutex_t mutex; /* of what is below, down to the blank line */
        pthread_cond_t wake;
        struct work_list todo, finished;
        int queued, idle; /* works in @todo, threads that wait for one */
        bool stop;

        pthread_t *threads;
        int n, max;
        size_t pending; /* works that are not done */
        bool closing;
        bool told; /* that threads cannot be started */
};

static void list_init(struct work_list *l)
{
        l->first = NULL;
        l->last = &l->first;
}

static void list_put(struct work_list *l, struct thread_pool_work *w)
{
        w->next = NULL;
        *l->last = w;
        l->last = &w->next;
}

/* The link that leads to @w, or to the end of the list. */
static struct thread_pool_work **list_find(struct work_list *l, const struct thread_pool_work *w)
{
        struct thread_pool_work **at = &l->first;

        while (*at && *at != w)
                at = &(*at)->next;
        return at;
}

static struct thread_pool_work *list_take(struct work_list *l, struct thread_pool_work **at)
{
        struct thread_pool_work *w = *at;

        *at = w->next;
        if (l->last == &w->next)
                l->last = at;
        return w;
}

/* ---- in a thread ---- */

static void finish_work(struct pool *p, struct thread_pool_work *w, int status)
{
        w->status = status;
        list_put(&p->finished, w);
        uv_async_send(&p->async);
}

static void *thread_main(void *arg)
{
        struct pool *p = arg;
        struct thread_pool_work *w;

        pthread_mutex_lock(&p->mutex);
        for (;;) {
                for (p->idle++; !p->todo.first && !p->stop;)
                        pthread_cond_wait(&p->wake, &p->mutex);
                p->idle--;
                if (!p->todo.first)
                        break;
                w = list_take(&p->todo, &p->todo.first);
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

/* Signals are the main thread's. 0, or an errno. */
static int thread_start(struct pool *p)
{
        sigset_t all, old;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&p->threads[p->n], NULL, thread_main, p);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        p->n += !r;
        return r;
}

static void thread_pool_closed(uv_handle_t *h)
{
        struct pool *p = h->data;

        pthread_cond_destroy(&p->wake);
        pthread_mutex_destroy(&p->mutex);
        free(p->threads);
        free(p);
}

static void end_threads(struct pool *p)
{
        pthread_mutex_lock(&p->mutex);
        p->stop = true;
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->mutex);
        for (int i = 0; i < p->n; i++)
                pthread_join(p->threads[i], NULL);
        uv_close((uv_handle_t *)&p->async, thread_pool_closed);
}

static void work_finished(uv_async_t *async)
{
        struct pool *p = async->data;
        struct thread_pool_work *w, *next;

        pthread_mutex_lock(&p->mutex);
        w = p->finished.first;
        list_init(&p->finished);
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
                end_threads(p);
}

struct pool *thread_pool_create(uv_loop_t *loop, int max, struct error *err)
{
        struct pool *p = xcalloc(1, sizeof(*p));
        int r = uv_async_init(loop, &p->async, work_finished);

        if (r < 0) {
                free(p);
                err_set(err, -r, "cannot start threads: %s", uv_strerror(r));
                return NULL;
        }
        p->async.data = p;
        uv_unref((uv_handle_t *)&p->async);
        pthread_mutex_init(&p->mutex, NULL);
        pthread_cond_init(&p->wake, NULL);
        list_init(&p->todo);
        list_init(&p->finished);
        p->max = max;
        p->threads = xcalloc((size_t)max, sizeof(*p->threads));
        return p;
}

/* Without any thread: slow work holds the loop up, but is done. */
static void run_here(struct pool *p, int error)
{
        struct thread_pool_work *w;

        if (!p->told)
                log_line(LOG_WARN, "cannot start a thread: %s; a reader that is slow holds all up",
                         strerror(error));
        p->told = true;
        while (p->todo.first) {
                w = list_take(&p->todo, &p->todo.first);
                p->queued--;
                w->run(w);
                finish_work(p, w, 0);
        }
}

void thread_pool_run(struct pool *p, struct thread_pool_work *w)
{
        bool grows;
        int error;

        pthread_mutex_lock(&p->mutex);
        list_put(&p->todo, w);
        grows = ++p->queued > p->idle && p->n < p->max;
        pthread_cond_signal(&p->wake);
        pthread_mutex_unlock(&p->mutex);
        p->pending++;
        uv_ref((uv_handle_t *)&p->async);
        error = grows ? thread_start(p) : 0;
        if (error && !p->n)
                run_here(p, error);
}

void thread_pool_cancel(struct pool *p, struct thread_pool_work *w)
{
        struct thread_pool_work **at;

        pthread_mutex_lock(&p->mutex);
        at = list_find(&p->todo, w);
        if (*at) {
                list_take(&p->todo, at);
                p->queued--;
                finish_work(p, w, UV_ECANCELED);
        }
        pthread_mutex_unlock(&p->mutex);
}

void thread_pool_close(struct pool *p)
{
        if (!p)
                return;
        p->closing = true;
        if (!p->pending)
                end_threads(p);
}
