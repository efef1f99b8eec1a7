/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: data-parallel training of a small network on real images of handwritten digits
 *
 *     hnlaunch --local 4 build/examples/train
 *     hnlaunch -H hosts.txt build/examples/train-nccl
 *
 * Every rank starts with the same parameters and sees its share of each global batch; gradients are
 * added up over all ranks, so one rank or many walk the same way. It ends with exit code 1 when the
 * ranks do not have identical parameters in the end, or the accuracy is below --accuracy.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "device.h"

enum {
        PIXELS = 64,
        HIDDEN = 64,
        DIGITS = 10,
        BATCH = 128, /* of all ranks together */
        TIMEOUT_MS = 60000,
};

struct image {
        float pixel[PIXELS]; /* 0 .. 1 */
        int digit;
};

/* The fields lie one behind the other, so that a model is an array of floats to the all-reduce. */
struct model {
        float w1[HIDDEN][PIXELS], b1[HIDDEN];
        float w2[DIGITS][HIDDEN], b2[DIGITS];
};

/* What is added up over the ranks in one step. */
struct gradient {
        struct model d;
        float loss;
};

struct training {
        struct image *images;
        int n_images, n_train; /* the first n_train are learned, the rest test */
        int *order;
        struct model model, velocity;
        struct gradient gradient;
        struct device device;
        void *shared; /* where the all-reduce works */
};

struct options {
        const char *data;
        int epochs;
        float rate, momentum;
        double accuracy; /* least test accuracy, per cent */
};

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

static int load(struct training *t, FILE *f)
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
static int split(struct training *t)
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

/* Fills the hidden layer and the probabilities; returns the most probable digit. */
static int forward(const struct model *m, const struct image *image, float *hidden, float *prob)
{
        float most = -INFINITY, sum = 0;
        int best = 0;

        for (int h = 0; h < HIDDEN; h++) {
                float v = m->b1[h];

                for (int p = 0; p < PIXELS; p++)
                        v += m->w1[h][p] * image->pixel[p];
                hidden[h] = v > 0 ? v : 0;
        }
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

/* Adds one image's gradient and loss, as its part of the batch. */
static void backward(const struct model *m, const struct image *image, float share,
                     struct gradient *g)
{
        float hidden[HIDDEN], prob[DIGITS], back[HIDDEN] = { 0 };

        forward(m, image, hidden, prob);
        g->loss -= share * logf(fmaxf(prob[image->digit], 1e-30f));
        for (int d = 0; d < DIGITS; d++) {
                float off = share * (prob[d] - (d == image->digit ? 1.0f : 0.0f));

                g->d.b2[d] += off;
                for (int h = 0; h < HIDDEN; h++) {
                        g->d.w2[d][h] += off * hidden[h];
                        back[h] += off * m->w2[d][h];
                }
        }
        for (int h = 0; h < HIDDEN; h++) {
                if (hidden[h] <= 0)
                        continue;
                g->d.b1[h] += back[h];
                for (int p = 0; p < PIXELS; p++)
                        g->d.w1[h][p] += back[h] * image->pixel[p];
        }
}

static void descend(struct training *t, const struct options *o)
{
        float *w = (float *)&t->model, *v = (float *)&t->velocity;
        const float *d = (const float *)&t->gradient.d;

        for (size_t i = 0; i < sizeof(t->model) / sizeof(float); i++) {
                v[i] = o->momentum * v[i] - o->rate * d[i];
                w[i] += v[i];
        }
}

/* --- training ----------------------------------------------------------------------------------
 */

/* From here on every rank has the gradient of the whole batch. */
static hn_status add_up(struct training *t)
{
        size_t n = sizeof(t->gradient) / sizeof(float);
        hn_status status = device_copy(t->shared, &t->gradient, sizeof(t->gradient));

        if (status == HN_OK)
                status = device_all_reduce(&t->device, t->shared, t->shared, n, DEVICE_SUM,
                                           TIMEOUT_MS);
        if (status == HN_OK)
                status = device_wait(&t->device, TIMEOUT_MS);
        if (status == HN_OK)
                status = device_copy(&t->gradient, t->shared, sizeof(t->gradient));
        return status;
}

static hn_status step(struct training *t, const struct options *o, int begin, int end, double *loss)
{
        float share = 1.0f / (float)(end - begin);
        hn_status status;

        memset(&t->gradient, 0, sizeof(t->gradient));
        for (int i = begin + hn_rank(); i < end; i += hn_world_size())
                backward(&t->model, &t->images[t->order[i]], share, &t->gradient);
        status = add_up(t);
        if (status != HN_OK)
                return status;
        *loss += (double)t->gradient.loss * (end - begin);
        descend(t, o);
        return HN_OK;
}

static double accuracy(const struct training *t)
{
        float hidden[HIDDEN], prob[DIGITS];
        int right = 0;

        for (int i = t->n_train; i < t->n_images; i++)
                right += forward(&t->model, &t->images[i], hidden, prob) == t->images[i].digit;
        return 100.0 * right / (t->n_images - t->n_train);
}

static hn_status train(struct training *t, const struct options *o)
{
        hn_status status = HN_OK;

        for (int epoch = 1; epoch <= o->epochs && status == HN_OK; epoch++) {
                double loss = 0;

                for (int i = 0; i < t->n_train; i++)
                        t->order[i] = i;
                shuffle(t->order, t->n_train, (uint64_t)epoch);
                for (int i = 0; i < t->n_train && status == HN_OK; i += BATCH)
                        status = step(t, o, i, i + BATCH < t->n_train ? i + BATCH : t->n_train,
                                      &loss);
                if (status == HN_OK && hn_rank() == 0) {
                        printf("epoch %2d  loss %.5f  test accuracy %.2f %%\n", epoch,
                               loss / t->n_train, accuracy(t));
                        fflush(stdout);
                        hn_progress(epoch, o->epochs, "epochs");
                }
        }
        return status;
}

/* Through the store, not the backend that is under suspicion. HN_ERR_MISMATCH: they differ. */
static hn_status compare_parameters(const struct training *t)
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

/* --- the program -------------------------------------------------------------------------------
 */

static int fail(const char *what)
{
        fprintf(stderr, "train: rank %d: %s: %s\n", hn_rank(), what, hn_last_error());
        hn_report_error("train", "%s: %s", what, hn_last_error());
        return 1;
}

static int parse(struct options *o, int argc, char **argv)
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
                        o->data = optarg;
                else if (c == 'e')
                        o->epochs = atoi(optarg);
                else if (c == 'r')
                        o->rate = strtof(optarg, NULL);
                else if (c == 'a')
                        o->accuracy = strtod(optarg, NULL);
                else
                        return -1;
        }
        return 0;
}

static int read_data(struct training *t, const char *path)
{
        FILE *f = open_data(path);
        int ret = f ? load(t, f) : -1;

        if (f)
                fclose(f);
        if (ret == 0)
                return split(t);
        fprintf(stderr, "train: %s: %s\n", path ? path : "digits.csv (try --data FILE)",
                strerror(errno));
        return -1;
}

static int run(struct training *t, const struct options *o)
{
        double reached;

        if (train(t, o) != HN_OK)
                return fail("training stopped");
        if (compare_parameters(t) != HN_OK)
                return fail("training went wrong");
        reached = accuracy(t);
        if (reached < o->accuracy) {
                hn_set_error(HN_ERR_INVALID, "%.2f %% is below %.2f %%", reached, o->accuracy);
                return fail("accuracy");
        }
        return 0;
}

int main(int argc, char **argv)
{
        static struct training t;
        struct options o = { .epochs = 20, .rate = 0.1f, .momentum = 0.9f };
        hn_init_opts init = { .size = sizeof(init), .flags = HN_INIT_ALLOW_SINGLETON };
        int code;

        if (parse(&o, argc, argv) < 0)
                return 64;
        if (hn_init(&init) != HN_OK)
                return fail("cannot start");
        if (read_data(&t, o.data) < 0)
                return 1;
        init_model(&t.model);
        if (device_open(&t.device, TIMEOUT_MS) != HN_OK ||
            device_alloc(&t.shared, sizeof(t.gradient)) != HN_OK)
                return fail("cannot start");
        code = run(&t, &o);
        device_free(t.shared);
        device_close(&t.device, code == 0);
        free(t.images);
        free(t.order);
        hn_finalize();
        return code;
}
