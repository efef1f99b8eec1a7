/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digits: a small network that learns real images of handwritten digits
 *
 * Everything but the question of who computes what: train.c divides a batch among the ranks,
 * pipeline.c the network, too. Every rank starts with the same parameters and takes the same steps,
 * so one rank or many walk the same way.
 */
#pragma once

#include <hnlaunch/hnlaunch.h>

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

/* The fields lie one behind the other, so that a model, or a layer of it, is an array of floats to
 * the all-reduce. */
struct model {
        float w1[HIDDEN][PIXELS], b1[HIDDEN];
        float w2[DIGITS][HIDDEN], b2[DIGITS];
};

/* What is added up over the ranks in one step. */
struct gradient {
        struct model d;
        float loss;
};

struct digits {
        const char *program; /* for messages */
        struct image *images;
        int n_images, n_train; /* the first n_train are learned, the rest test */
        int *order;
        struct model model, velocity;
        struct gradient gradient;
        int epochs;
        float rate, momentum;
        double accuracy; /* least test accuracy, per cent */
};

/* Reads the options, joins the job, reads the data. -1 = go on, else the exit code: it has been
 * said what is wrong. */
int digits_open(struct digits *d, const char *program, int argc, char **argv);
void digits_close(struct digits *d);

/* The first layer: fills @hidden. */
void digits_first(const struct model *m, const struct image *image, float hidden[HIDDEN]);
/* The second layer, forward and backward: adds one image's loss and gradient, as its @share of the
 * batch, and fills @back, what the first layer needs to go backward. */
void digits_second(const struct model *m, const struct image *image, const float hidden[HIDDEN],
                   float share, struct gradient *g, float back[HIDDEN]);
void digits_first_back(const struct image *image, const float hidden[HIDDEN],
                       const float back[HIDDEN], struct gradient *g);

/*
 * Trains, and checks that all ranks have the same parameters and the network has learned.
 * @add_up makes d->gradient that of the whole batch: images d->order[begin] to [end - 1]. Returns
 * the exit code.
 */
int digits_train(struct digits *d, hn_status (*add_up)(struct digits *d, int begin, int end));

/* Tells the user and the launcher what failed; returns the exit code. */
int digits_fail(const struct digits *d, const char *what);
