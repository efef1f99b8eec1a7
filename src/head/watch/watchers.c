/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of each watcher is an opaque pointer at the index of its row. watchers_find() serves
 * requests from outside of the table, such as a client of `hnlaunch why`.
 */
#include "head/watch/watchers.h"

#include <stdlib.h>

#include "base/memory.h"
#include "head/watch/look.h"
#include "head/watch/metrics_feed.h"
#include "head/watch/step_feed.h"
#include "head/watch/top_feed.h"
#include "head/watch/trace_keep.h"

static const struct watcher *const table[] = {
        &look_watcher,     &trace_keep_watcher,   &step_feed_watcher,
        &top_feed_watcher, &metrics_feed_watcher,
};

struct watchers {
        void *selves[ARRAY_SIZE(table)]; /* by row; NULL = not made */
};

struct watchers *watchers_create(const struct run_view *r, struct job_config *c)
{
        struct watchers *w = xcalloc(1, sizeof(*w));

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                w->selves[i] = table[i]->create(r, c);
        return w;
}

int watchers_open(struct watchers *w, struct diags *d)
{
        int rc = 0;

        for (size_t i = 0; w && !rc && i < ARRAY_SIZE(table); i++)
                if (w->selves[i] && table[i]->open)
                        /* The first error ends the launch; watchers behind are closed without
                         * having been opened. */
                        rc = table[i]->open(w->selves[i], d);
        return rc;
}

void watchers_output(struct watchers *w, int rank, uint8_t stream, const void *data, size_t len)
{
        for (size_t i = 0; w && i < ARRAY_SIZE(table); i++)
                if (w->selves[i] && table[i]->output)
                        table[i]->output(w->selves[i], rank, stream, data, len);
}

void watchers_ending(struct watchers *w)
{
        for (size_t i = 0; w && i < ARRAY_SIZE(table); i++)
                if (w->selves[i] && table[i]->ending)
                        table[i]->ending(w->selves[i]);
}

void watchers_close(struct watchers *w)
{
        for (size_t i = ARRAY_SIZE(table); w && i-- > 0;)
                if (w->selves[i] && table[i]->close)
                        table[i]->close(w->selves[i]);
}

void watchers_destroy(struct watchers *w)
{
        for (size_t i = ARRAY_SIZE(table); w && i-- > 0;)
                if (w->selves[i] && table[i]->destroy)
                        table[i]->destroy(w->selves[i]);
        free(w);
}

void *watchers_find(const struct watchers *w, const struct watcher *row)
{
        for (size_t i = 0; w && i < ARRAY_SIZE(table); i++)
                if (table[i] == row)
                        return w->selves[i];
        return NULL;
}
