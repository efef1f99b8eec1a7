/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are to start again, and must not. */
#include "head/job/role_again.h"

#include "head/job/cluster.h"
#include "lib/unit.h"

enum { TURN_MS = 50 };

struct world {
        uv_loop_t loop;
        uv_timer_t turn;
        struct cluster cluster;
        struct role_again *again;
        bool allows;
        int asked; /* how often */
};

static bool note_begin(void *ctx, const struct role_span *s)
{
        struct world *w = ctx;

        assert_int_equal(s->size, 3);
        w->asked++;
        return w->allows;
}

static void on_turn_over(uv_timer_t *t UNUSED)
{
}

static void turn(struct world *w)
{
        uv_timer_start(&w->turn, on_turn_over, TURN_MS, 0);
        uv_run(&w->loop, UV_RUN_DEFAULT);
}

TEST(ranks_that_must_not_begin_wait_to_the_end_of_the_attempt)
{
        struct world w = { .allows = false };

        uv_loop_init(&w.loop);
        uv_timer_init(&w.loop, &w.turn);
        w.cluster.loop = &w.loop;
        w.again = role_again_create(&w.cluster, 1000, note_begin, &w);
        assert_int_equal(role_again_start(w.again, 0, &(struct role_span){ 0, 3 }), 0);
        assert_int_equal(role_again_count_waiting(w.again), 3);
        turn(&w);
        turn(&w);
        assert_int_equal(w.asked, 1);
        assert_int_equal(role_again_count_waiting(w.again), 3);

        role_again_forget(w.again);
        assert_int_equal(role_again_count_waiting(w.again), 0);
        w.allows = true;
        assert_int_equal(role_again_start(w.again, 0, &(struct role_span){ 3, 3 }), 0);
        turn(&w);
        assert_int_equal(w.asked, 2);
        assert_int_equal(role_again_count_waiting(w.again), 0);

        role_again_close(w.again);
        uv_close((uv_handle_t *)&w.turn, NULL);
        uv_run(&w.loop, UV_RUN_DEFAULT);
        role_again_free(w.again);
        assert_int_equal(uv_loop_close(&w.loop), 0);
}
