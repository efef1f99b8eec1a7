/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: data-parallel training of a small network on real images of handwritten digits
 *
 *     hnlaunch --local 4 build/examples/train
 *     hnlaunch -H hosts.txt build/examples/train-nccl
 *
 * Every rank sees its share of each batch; the gradients are added up over all ranks. The same
 * source for CPUs and GPUs: device.h is what differs. Exits with 1 when the ranks do not have
 * identical parameters in the end, or the accuracy is below --accuracy.
 */
#include "device.h"
#include "digits.h"

static struct device device;
static void *shared; /* where the all-reduce works */

/* A rank's own images, in the order of the batch. */
static void go_through(struct digits *d, int begin, int end)
{
        float share = 1.0f / (float)(end - begin), hidden[HIDDEN], back[HIDDEN];

        for (int i = begin + hn_rank(); i < end; i += hn_world_size()) {
                const struct image *image = &d->images[d->order[i]];

                digits_first(&d->model, image, hidden);
                digits_second(&d->model, image, hidden, share, &d->gradient, back);
                digits_first_back(image, hidden, back, &d->gradient);
        }
}

static hn_status add_up(struct digits *d, int begin, int end)
{
        size_t n = sizeof(d->gradient) / sizeof(float);
        hn_status status;

        go_through(d, begin, end);
        status = device_copy(shared, &d->gradient, sizeof(d->gradient));
        if (status == HN_OK)
                status = device_all_reduce(&device, shared, shared, n, DEVICE_SUM, TIMEOUT_MS);
        if (status == HN_OK)
                status = device_wait(&device, TIMEOUT_MS);
        if (status == HN_OK)
                status = device_copy(&d->gradient, shared, sizeof(d->gradient));
        return status;
}

int main(int argc, char **argv)
{
        static struct digits d;
        int code = digits_open(&d, "train", argc, argv);

        if (code >= 0)
                return code;
        if (device_open(&device, 0, 1, TIMEOUT_MS) != HN_OK ||
            device_alloc(&shared, sizeof(d.gradient)) != HN_OK)
                return digits_fail(&d, "cannot start");
        code = digits_train(&d, add_up);
        device_free(shared);
        device_close(&device, code == 0);
        digits_close(&d);
        return code;
}
