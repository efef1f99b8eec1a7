/* SPDX-License-Identifier: Apache-2.0 */
#include "digits.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- numbers that are the same everywhere ------------------------------------------------------
 */

static uint64_t next_random(uint64_t *state)
{
        uint64_t z = (*state += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

static float uniform(uint64_t *state, float limit)
{
        return limit * (2 * (float)(next_random(state) >> 40) / (float)(1 << 24) - 1);
}

static void shuffle(int *order, int n, uint64_t seed)
{
        for (int i = n - 1; i > 0; i--) {
                int j = (int)(next_random(&seed) % (uint64_t)(i + 1)), t = order[i];

                order[i] = order[j];
                order[j] = t;
        }
}

/* --- data --------------------------------------------------------------------------------------
 */

static int parse_image(struct image *image, const char *line)
{
        for (int i = 0; i <= PIXELS; i++) {
                char *end;
                long v = strtol(line, &end, 10);

                if (end == line || (i < PIXELS && *end != ','))
                        return -1;
                if (i < PIXELS)
                        image->pixel[i] = (float)v / 16;
                else
                        image->digit = (int)v;
                line = end + 1;
        }
        return image->digit >= 0 && image->digit < DIGITS ? 0 : -1;
}

static int load(struct digits *t, FILE *f)
{
        char line[1024];
        int room = 0;

        while (fgets(line, sizeof(line), f)) {
                if (t->n_images == room) {
                        room = room ? 2 * room : 1024;
                        t->images = realloc(t->images, (size_t)room * sizeof(*t->images));
                        if (!t->images)
                                return -1;
                }
                if (parse_image(&t->images[t->n_images], line) < 0) {
                        errno = EINVAL;
                        return -1;
                }
                t->n_images++;
        }
        return t->n_images > 0 ? 0 : -1;
}

/* Beside the program, in the source tree it was built in, or where it is installed. */
static FILE *open_data(const char *given)
{
        static const char *const places[] = { "data", "../examples/data", "../../examples/data",
                                              "../share/hnlaunch" };
        char exe[PATH_MAX] = "", path[PATH_MAX + 64];
        FILE *f = NULL;
        char *slash;

        if (given)
                return fopen(given, "r");
        if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
                exe[0] = '\0';
        slash = strrchr(exe, '/');
        if (slash)
                *slash = '\0';
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !f; i++) {
                snprintf(path, sizeof(path), "%s/%s/digits.csv", exe, places[i]);
                f = fopen(path, "r");
        }
        return f ? f : fopen(DATA_FILE, "r");
}

/* Always the same 80 % are learned. */
static int split(struct digits *t)
{
        struct image *mixed = malloc((size_t)t->n_images * sizeof(*mixed));

        t->order = malloc((size_t)t->n_images * sizeof(*t->order));
        if (!mixed || !t->order)
                return -1;
        for (int i = 0; i < t->n_images; i++)
                t->order[i] = i;
        shuffle(t->order, t->n_images, 20231);
        for (int i = 0; i < t->n_images; i++)
                mixed[i] = t->images[t->order[i]];
        free(t->images);
        t->images = mixed;
        t->n_train = t->n_images * 8 / 10;
        return 0;
}

static int read_data(struct digits *d, const char *path)
{
        FILE *f = open_data(path);
        int ret = f ? load(d, f) : -1;

        if (f)
                fclose(f);
        if (ret == 0)
                return split(d);
        fprintf(stderr, "%s: %s: %s\n", d->program, path ? path : "digits.csv (try --data FILE)",
                strerror(errno));
        return -1;
}

/* --- the network -------------------------------------------------------------------------------
 */

static void init_model(struct model *m)
{
        uint64_t seed = 7;

        memset(m, 0, sizeof(*m));
        for (int h = 0; h < HIDDEN; h++)
                for (int p = 0; p < PIXELS; p++)
                        m->w1[h][p] = uniform(&seed, sqrtf(6.0f / PIXELS));
        for (int d = 0; d < DIGITS; d++)
                for (int h = 0; h < HIDDEN; h++)
                        m->w2[d][h] = uniform(&seed, sqrtf(6.0f / HIDDEN));
}

void digits_first(const struct model *m, const struct image *image, float hidden[HIDDEN])
{
        for (int h = 0; h < HIDDEN; h++) {
                float v = m->b1[h];

                for (int p = 0; p < PIXELS; p++)
                        v += m->w1[h][p] * image->pixel[p];
                hidden[h] = v > 0 ? v : 0;
        }
}

/* Fills the probabilities; returns the most probable digit. */
static int guess(const struct model *m, const float *hidden, float *prob)
{
        float most = -INFINITY, sum = 0;
        int best = 0;

        for (int d = 0; d < DIGITS; d++) {
                prob[d] = m->b2[d];
                for (int h = 0; h < HIDDEN; h++)
                        prob[d] += m->w2[d][h] * hidden[h];
                if (prob[d] > most) {
                        most = prob[d];
                        best = d;
                }
        }
        for (int d = 0; d < DIGITS; d++)
                sum += prob[d] = expf(prob[d] - most);
        for (int d = 0; d < DIGITS; d++)
                prob[d] /= sum;
        return best;
}

void digits_second(const struct model *m, const struct image *image, const float hidden[HIDDEN],
                   float share, struct gradient *g, float back[HIDDEN])
{
        float prob[DIGITS];

        guess(m, hidden, prob);
        memset(back, 0, HIDDEN * sizeof(*back));
        g->loss -= share * logf(fmaxf(prob[image->digit], 1e-30f));
        for (int d = 0; d < DIGITS; d++) {
                float off = share * (prob[d] - (d == image->digit ? 1.0f : 0.0f));

                g->d.b2[d] += off;
                for (int h = 0; h < HIDDEN; h++) {
                        g->d.w2[d][h] += off * hidden[h];
                        back[h] += off * m->w2[d][h];
                }
        }
}

void digits_first_back(const struct image *image, const float hidden[HIDDEN],
                       const float back[HIDDEN], struct gradient *g)
{
        for (int h = 0; h < HIDDEN; h++) {
                if (hidden[h] <= 0)
                        continue;
                g->d.b1[h] += back[h];
                for (int p = 0; p < PIXELS; p++)
                        g->d.w1[h][p] += back[h] * image->pixel[p];
        }
}

static void descend(struct digits *t)
{
        float *w = (float *)&t->model, *v = (float *)&t->velocity;
        const float *d = (const float *)&t->gradient.d;

        for (size_t i = 0; i < sizeof(t->model) / sizeof(float); i++) {
                v[i] = t->momentum * v[i] - t->rate * d[i];
                w[i] += v[i];
        }
}

/* --- training ----------------------------------------------------------------------------------
 */

static double accuracy(const struct digits *t)
{
        float hidden[HIDDEN], prob[DIGITS];
        int right = 0;

        for (int i = t->n_train; i < t->n_images; i++) {
                digits_first(&t->model, &t->images[i], hidden);
                right += guess(&t->model, hidden, prob) == t->images[i].digit;
        }
        return 100.0 * right / (t->n_images - t->n_train);
}

static hn_status epoch(struct digits *t, hn_status (*add_up)(struct digits *, int, int),
                       double *loss)
{
        hn_status status = HN_OK;

        for (int begin = 0; begin < t->n_train && status == HN_OK; begin += BATCH) {
                int end = begin + BATCH < t->n_train ? begin + BATCH : t->n_train;

                memset(&t->gradient, 0, sizeof(t->gradient));
                status = add_up(t, begin, end);
                *loss += (double)t->gradient.loss * (end - begin);
                if (status == HN_OK)
                        descend(t);
        }
        return status;
}

static hn_status train(struct digits *t, hn_status (*add_up)(struct digits *, int, int))
{
        hn_status status = HN_OK;

        for (int e = 1; e <= t->epochs && status == HN_OK; e++) {
                double loss = 0;

                for (int i = 0; i < t->n_train; i++)
                        t->order[i] = i;
                shuffle(t->order, t->n_train, (uint64_t)e);
                status = epoch(t, add_up, &loss);
                if (status == HN_OK && hn_rank() == 0) {
                        printf("epoch %2d  loss %.5f  test accuracy %.2f %%\n", e,
                               loss / t->n_train, accuracy(t));
                        fflush(stdout);
                        hn_progress(e, t->epochs, "epochs");
                }
        }
        return status;
}

/* Through the store, not the backend that is under suspicion. HN_ERR_MISMATCH: they differ. */
static hn_status compare_parameters(const struct digits *t)
{
        const unsigned char *p = (const unsigned char *)&t->model;
        uint64_t sum = 14695981039346656037u, *all;
        hn_status status;

        for (size_t i = 0; i < sizeof(t->model); i++)
                sum = (sum ^ p[i]) * 1099511628211u;
        all = calloc((size_t)hn_world_size(), sizeof(*all));
        if (!all)
                return hn_set_error(HN_ERR_NOMEM, "out of memory");
        status = hn_all_gather_bytes(NULL, &sum, sizeof(sum), all, TIMEOUT_MS);
        for (int i = 0; i < hn_world_size() && status == HN_OK; i++)
                if (all[i] != sum)
                        status = hn_set_error(HN_ERR_MISMATCH,
                                              "ranks %d and %d have different parameters",
                                              hn_rank(), i);
        if (status == HN_OK && hn_rank() == 0)
                printf("parameters of %d rank%s are identical: %016llx\n", hn_world_size(),
                       hn_world_size() == 1 ? "" : "s", (unsigned long long)sum);
        free(all);
        return status;
}

int digits_train(struct digits *d, hn_status (*add_up)(struct digits *, int, int))
{
        double reached;

        if (train(d, add_up) != HN_OK)
                return digits_fail(d, "training stopped");
        if (compare_parameters(d) != HN_OK)
                return digits_fail(d, "training went wrong");
        reached = accuracy(d);
        if (reached < d->accuracy) {
                hn_set_error(HN_ERR_INVALID, "%.2f %% is below %.2f %%", reached, d->accuracy);
                return digits_fail(d, "accuracy");
        }
        return 0;
}

/* --- its life ----------------------------------------------------------------------------------
 */

int digits_fail(const struct digits *d, const char *what)
{
        fprintf(stderr, "%s: rank %d: %s: %s\n", d->program, hn_rank(), what, hn_last_error());
        hn_report_error(d->program, "%s: %s", what, hn_last_error());
        return 1;
}

static int parse(struct digits *d, const char **data, int argc, char **argv)
{
        static const struct option table[] = {
                { "data", required_argument, NULL, 'd' },
                { "epochs", required_argument, NULL, 'e' },
                { "rate", required_argument, NULL, 'r' },
                { "accuracy", required_argument, NULL, 'a' },
                { 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "d:e:r:a:", table, NULL)) != -1) {
                if (c == 'd')
                        *data = optarg;
                else if (c == 'e')
                        d->epochs = atoi(optarg);
                else if (c == 'r')
                        d->rate = strtof(optarg, NULL);
                else if (c == 'a')
                        d->accuracy = strtod(optarg, NULL);
                else
                        return -1;
        }
        return 0;
}

static int usage(const char *program)
{
        fprintf(stderr, "usage: %s [--data FILE] [--epochs N] [--rate STEP] [--accuracy PERCENT]\n",
                program);
        return 64;
}

int digits_open(struct digits *d, const char *program, int argc, char **argv)
{
        hn_init_opts init = { .size = sizeof(init), .flags = HN_INIT_ALLOW_SINGLETON };
        const char *data = NULL;

        *d = (struct digits){ .program = program, .epochs = 20, .rate = 0.1f, .momentum = 0.9f };
        if (parse(d, &data, argc, argv) < 0)
                return usage(program);
        if (hn_init(&init) != HN_OK)
                return digits_fail(d, "cannot start");
        if (read_data(d, data) < 0)
                return 1;
        init_model(&d->model);
        return -1;
}

void digits_close(struct digits *d)
{
        free(d->images);
        free(d->order);
        hn_finalize();
}
