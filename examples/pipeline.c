/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: one process drives two devices, and all processes together train one network
 *
 *     hnlaunch --local 2 build/examples/pipeline
 *     hnlaunch -H hosts.txt --gpus-per-rank 2 build/examples/pipeline-nccl
 *
 * The network of train.c, cut in two: the first layer is at home on a rank's first device, the
 * second on its second. A rank's share of a batch goes through in micro-batches, so that the second
 * stage works on one while the first has the next under way; then each stage adds up its gradients
 * with the same stage of all ranks. With one rank or two the result is train.c's to the last bit.
 * The arithmetic is the host's, as there: what the devices do is to keep, pass and add up. Where a
 * rank has one GPU only, both stages are on it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "device.h"
#include "digits.h"

enum {
        FIRST,
        SECOND,
        STAGES,
        MICRO = 16,            /* images of a micro-batch */
        SLOTS = BATCH / MICRO, /* micro-batches under way */
};

typedef float rows[MICRO][HIDDEN];

/* What passes between the stages. The counters only grow: slot number n % SLOTS is the second
 * stage's between forwarded = n + 1 and returned = n + 1, else the first one's. */
struct belt {
        pthread_mutex_t lock;
        pthread_cond_t moved;
        long forwarded, returned;
        bool stopped;
        char why[256]; /* the second stage failed: its last error */
        struct micro {
                int n;
                const struct image *images[MICRO];
                float share;
        } micros[SLOTS];
};

struct stage {
        struct device device;
        rows *hidden, *back; /* on the device, one for each slot */
        void *gradient;      /* on the device, where the all-reduce works */
        size_t n;            /* floats of it */
};

static struct stage stages[STAGES];
static struct belt belt = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };

/* --- the belt ----------------------------------------------------------------------------------
 */

static void advance(long *counter)
{
        pthread_mutex_lock(&belt.lock);
        ++*counter;
        pthread_cond_broadcast(&belt.moved);
        pthread_mutex_unlock(&belt.lock);
}

static void stop(const char *why)
{
        pthread_mutex_lock(&belt.lock);
        belt.stopped = true;
        snprintf(belt.why, sizeof(belt.why), "%s", why);
        pthread_cond_broadcast(&belt.moved);
        pthread_mutex_unlock(&belt.lock);
}

/* Until @counter is above @n; false: the belt was stopped. */
static bool wait_for(const long *counter, long n)
{
        bool there;

        pthread_mutex_lock(&belt.lock);
        while (*counter <= n && !belt.stopped)
                pthread_cond_wait(&belt.moved, &belt.lock);
        there = *counter > n;
        pthread_mutex_unlock(&belt.lock);
        return there;
}

/* From @host on one device to the same place on the other. */
static hn_status pass(const struct stage *from, rows *here, const struct stage *to, rows *there,
                      const rows *host)
{
        hn_status status = device_copy(here, host, sizeof(*host));

        return status == HN_OK
                       ? device_copy_across(&to->device, there, &from->device, here, sizeof(*host))
                       : status;
}

/* --- the second stage: a thread ----------------------------------------------------------------
 */

static hn_status second(struct digits *d, long n)
{
        static rows hidden, back;
        const struct micro *m = &belt.micros[n % SLOTS];
        rows *here = &stages[SECOND].hidden[n % SLOTS];
        hn_status status = device_copy(hidden, here, sizeof(hidden));

        if (status != HN_OK)
                return status;
        for (int i = 0; i < m->n; i++)
                digits_second(&d->model, m->images[i], hidden[i], m->share, &d->gradient, back[i]);
        return pass(&stages[SECOND], &stages[SECOND].back[n % SLOTS], &stages[FIRST],
                    &stages[FIRST].back[n % SLOTS], &back);
}

static void *second_stage(void *digits)
{
        hn_status status = device_use(&stages[SECOND].device);

        for (long n = 0; status == HN_OK && wait_for(&belt.forwarded, n); n++) {
                status = second(digits, n);
                if (status == HN_OK)
                        advance(&belt.returned);
        }
        if (status != HN_OK)
                stop(hn_last_error());
        return NULL;
}

/* --- the first stage: the main thread ----------------------------------------------------------
 */

static hn_status forward(struct digits *d, const struct micro *m, long n, rows *hidden)
{
        belt.micros[n % SLOTS] = *m;
        for (int i = 0; i < m->n; i++)
                digits_first(&d->model, m->images[i], (*hidden)[i]);
        return pass(&stages[FIRST], &stages[FIRST].hidden[n % SLOTS], &stages[SECOND],
                    &stages[SECOND].hidden[n % SLOTS], hidden);
}

static hn_status backward(struct digits *d, long n, const rows *hidden)
{
        static rows back;
        const struct micro *m = &belt.micros[n % SLOTS];
        hn_status status;

        if (!wait_for(&belt.returned, n))
                return hn_set_error(HN_ERR_BACKEND, "the second stage: %s", belt.why);
        status = device_copy(back, &stages[FIRST].back[n % SLOTS], sizeof(back));
        for (int i = 0; i < m->n && status == HN_OK; i++)
                digits_first_back(m->images[i], (*hidden)[i], back[i], &d->gradient);
        return status;
}

/* A rank's own images of the batch, in its order. */
static hn_status go_through(struct digits *d, int begin, int end)
{
        static rows hidden[SLOTS];
        long first = belt.returned, n = first;
        hn_status status = HN_OK;

        for (int i = begin + hn_rank(); i < end && status == HN_OK; n++) {
                struct micro m = { .share = 1.0f / (float)(end - begin) };

                for (; m.n < MICRO && i < end; i += hn_world_size())
                        m.images[m.n++] = &d->images[d->order[i]];
                status = forward(d, &m, n, &hidden[n - first]);
                if (status == HN_OK)
                        advance(&belt.forwarded);
        }
        for (long k = first; k < n && status == HN_OK; k++)
                status = backward(d, k, &hidden[k - first]);
        return status;
}

/* @mine: a stage's part of the gradient. */
static hn_status sum(struct stage *s, float *mine)
{
        hn_status status = device_use(&s->device);

        if (status == HN_OK)
                status = device_copy(s->gradient, mine, s->n * sizeof(*mine));
        if (status == HN_OK)
                status = device_all_reduce(&s->device, s->gradient, s->gradient, s->n, DEVICE_SUM,
                                           TIMEOUT_MS);
        if (status == HN_OK)
                status = device_wait(&s->device, TIMEOUT_MS);
        return status == HN_OK ? device_copy(mine, s->gradient, s->n * sizeof(*mine)) : status;
}

/* All is quiet on the belt when the stages add up, one after the other in every rank. */
static hn_status add_up(struct digits *d, int begin, int end)
{
        float *gradient = (float *)&d->gradient;
        hn_status status = device_use(&stages[FIRST].device);

        if (status == HN_OK)
                status = go_through(d, begin, end);
        if (status == HN_OK)
                status = sum(&stages[FIRST], gradient);
        return status == HN_OK ? sum(&stages[SECOND], gradient + stages[FIRST].n) : status;
}

/* --- the program -------------------------------------------------------------------------------
 */

static hn_status open_stage(int which)
{
        struct stage *s = &stages[which];
        size_t first = offsetof(struct model, w2) / sizeof(float);
        hn_status status = device_open(&s->device, which, STAGES, TIMEOUT_MS);

        s->n = which == FIRST ? first : sizeof(struct gradient) / sizeof(float) - first;
        if (status == HN_OK)
                status = device_alloc((void **)&s->hidden, SLOTS * sizeof(rows));
        if (status == HN_OK)
                status = device_alloc((void **)&s->back, SLOTS * sizeof(rows));
        return status == HN_OK ? device_alloc(&s->gradient, s->n * sizeof(float)) : status;
}

static void close_stage(struct stage *s, bool good)
{
        device_use(&s->device);
        device_free(s->hidden);
        device_free(s->back);
        device_free(s->gradient);
        device_close(&s->device, good);
}

int main(int argc, char **argv)
{
        static struct digits d;
        int code = digits_open(&d, "pipeline", argc, argv);
        pthread_t thread;

        if (code >= 0)
                return code;
        if (open_stage(FIRST) != HN_OK || open_stage(SECOND) != HN_OK)
                return digits_fail(&d, "cannot start");
        if (pthread_create(&thread, NULL, second_stage, &d) != 0) {
                hn_set_error(HN_ERR_SYSTEM, "no thread for the second stage");
                return digits_fail(&d, "cannot start");
        }
        code = digits_train(&d, add_up);
        stop("the end");
        pthread_join(thread, NULL);
        for (int i = 0; i < STAGES; i++)
                close_stage(&stages[i], code == 0);
        digits_close(&d);
        return code;
}
