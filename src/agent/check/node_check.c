/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/check/node_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/check/gpu_check.h"
#include "agent/check/leftovers.h"
#include "agent/check/machine_check.h"
#include "agent/check/path_check.h"
#include "agent/check/place_check.h"
#include "agent/check/script_check.h"
#include "agent/check/version_check.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

/* Sends the facts and forgets the facts. A lost agent is no error here: the process ends at
 * once. */
static void send_checked(struct checked *m, int to)
{
        struct buf b = BUF_INIT;

        checked_encode(&b, m);
        fd_write_all(to, buf_data(&b), buf_len(&b));
        buf_finish(&b);
        checked_finish(m);
}

/* Adds the wall clock less the monotonic clock; the head compares the latter. */
static void add_clock(struct checked *m)
{
        struct timespec wall;
        char text[32];
        /* The monotonic clock is read on both sides: a pause between the calls costs half the pause
         * at most. */
        int64_t before = clock_ns(), after;

        clock_gettime(CLOCK_REALTIME, &wall);
        after = clock_ns();
        snprintf(text, sizeof(text), "%" PRId64,
                 (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec -
                         (before + (after - before) / 2));
        checked_add(m, "clock", text, "");
}

/* Checks that may hang come last: the head has all facts sent before, when a file system or a
 * command hangs. */
void node_check_run(const void *order, int to)
{
        const struct check_order *o = order;
        struct checked m = { .number = o->number, .more = o->what == CHECK_ALL };

        if (o->what == CHECK_PLACE) {
                place_check(&m);
                send_checked(&m, to);
                return;
        }
        add_clock(&m);
        machine_check(&m, "");
        leftovers_check(&m);
        send_checked(&m, to);
        m = (struct checked){ .number = o->number, .more = true };
        gpu_check(&m, "");
        send_checked(&m, to);
        m = (struct checked){ .number = o->number, .more = true };
        path_check(&m, o);
        version_check(&m, o);
        send_checked(&m, to);
        m = (struct checked){ .number = o->number };
        hostname_check(&m);
        names_check(&m, o);
        script_check(&m, o);
        send_checked(&m, to);
}
