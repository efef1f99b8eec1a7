/* SPDX-License-Identifier: Apache-2.0 */

#include "head/top/top_view.h"
#include "base/buf.h"
#include "lib/unit.h"

/* What is told of a rank. */
struct told {
        const char *life, *more;
};

/* Builds a frame with a rank on each of @n hosts, host0, host1, ... */
static struct top_frame make_frame(const struct told *v, size_t n, int alive, int spread)
{
        struct buf b = BUF_INIT;
        struct top_frame f;
        json_t *j;

        buf_printf(&b, "{\"state\":\"running\",\"alive\":%d,\"spread\":%d,\"hosts\":[", alive,
                   spread);
        for (size_t i = 0; i < n; i++)
                buf_printf(&b,
                           "%s{\"node\":%zu,\"host\":\"host%zu\",\"state\":\"running\",\"ranks\":"
                           "[{\"rank\":%zu,\"life\":\"%s\"%s}]}",
                           i ? "," : "", i, i, i, v[i].life, v[i].more);
        buf_appends(&b, "]}");
        j = json_loadb((const char *)buf_data(&b), buf_len(&b), 0, NULL);
        assert_non_null(j);
        assert_true(top_frame_read(&f, j));
        buf_finish(&b);
        return f;
}

static void note_is(const struct top_frame *f, size_t host, const char *want)
{
        char note[160];

        top_frame_host_note(f, &f->hosts[host], note, sizeof(note));
        assert_string_equal(note, want);
}

TEST(what_is_odd_is_noted)
{
        static const struct told v[] = {
                { "alive", ",\"state\":\"R\",\"lag\":0" },
                { "alive", ",\"state\":\"T\"" },
                { "ended", ",\"exit\":7" },
                { "ended", ",\"exit\":-9" },
                { "ended", ",\"exit\":0" },
                { "silent", "" },
                { "not started", "" },
                { "alive", ",\"state\":\"S\",\"wait\":\"barrier\",\"wait_ms\":185000" },
                { "alive", ",\"state\":\"S\",\"wait\":\"key\",\"wait_ms\":9000" },
                { "alive", ",\"state\":\"S\",\"step\":1,\"lag\":6" },
                { "alive", ",\"state\":\"S\",\"step\":5,\"lag\":2" },
        };
        CLEANUP(top_frame_finish) struct top_frame f = make_frame(v, 11, 6, 6);
        size_t order[11];

        note_is(&f, 0, "");
        note_is(&f, 1, "rank 1 stopped (T)");
        note_is(&f, 2, "rank 2 exited with 7");
        note_is(&f, 3, "rank 3 killed by SIGKILL");
        note_is(&f, 4, "");
        note_is(&f, 5, "rank 5 silent");
        note_is(&f, 6, "rank 6 not started");
        note_is(&f, 7, "rank 7 waits in barrier for 3m");
        note_is(&f, 8, "");
        note_is(&f, 9, "rank 9 behind");
        note_is(&f, 10, "");
        top_view_order(&f, TOP_BY_ODDITY, order);
        static const size_t want[] = { 5, 2, 3, 1, 9, 7, 6, 0, 4, 8, 10 };
        assert_memory_equal(order, want, sizeof(want));
}

/* In a hang the rank that does not wait is odd, not the many that do. */
TEST(the_rank_that_does_not_wait_comes_first)
{
        static const struct told v[] = {
                { "alive", ",\"state\":\"S\",\"wait\":\"barrier\",\"wait_ms\":185000" },
                { "alive", ",\"state\":\"S\",\"wait\":\"barrier\",\"wait_ms\":185000" },
                { "alive", ",\"state\":\"S\"" },
                { "alive", ",\"state\":\"S\",\"wait\":\"barrier\",\"wait_ms\":185000" },
        };
        CLEANUP(top_frame_finish) struct top_frame f = make_frame(v, 4, 4, 0);
        size_t order[4];

        note_is(&f, 2, "rank 2 does not wait, 3 do");
        top_view_order(&f, TOP_BY_ODDITY, order);
        assert_int_equal(order[0], 2);
        note_is(&f, 0, "");
}

TEST(hosts_with_nothing_odd_are_folded)
{
        enum { N = 9, PAGE = 20 };
        struct told v[N];
        CLEANUP(top_frame_finish) struct top_frame f;
        CLEANUP(top_view_finish) struct top_view view;

        for (size_t i = 0; i < N; i++)
                v[i] = (struct told){ "alive", i == 4 ? ",\"state\":\"T\"" : ",\"state\":\"R\"" };
        f = make_frame(v, N, N, 0);
        top_view_init(&view);
        top_view_update(&view, &f, PAGE);
        /* The odd one, one as an example, and the others. */
        assert_int_equal(view.n_rows, 3);
        assert_int_equal(view.rows[0].host, 4);
        assert_int_equal(view.rows[1].host, 0);
        assert_int_equal(view.rows[2].rank, TOP_ROW_ALIKE);
        assert_int_equal(view.rows[2].alike, 7);
        top_view_key(&view, &f, TOP_KEY_LAST, PAGE);
        top_view_update(&view, &f, PAGE);
        assert_int_equal(view.selected, 2);
        top_view_key(&view, &f, TOP_KEY_TOGGLE, PAGE);
        assert_int_equal(view.n_rows, N);
        assert_int_equal(view.rows[view.selected].host, 1);
        top_view_key(&view, &f, TOP_KEY_CLOSE, PAGE);
        assert_int_equal(view.n_rows, 3);
        /* In any other order each host has its row. */
        top_view_key(&view, &f, TOP_KEY_SORT, PAGE);
        assert_int_equal(view.n_rows, N);
}

TEST(a_line_of_other_kind_is_no_frame)
{
        CLEANUP(top_frame_finish) struct top_frame f;

        assert_false(top_frame_read(&f, json_pack("{s:i}", "code", 1)));
        assert_false(top_frame_read(&f, json_pack("{s:s}", "hosts", "x")));
        /* What a host or rank does not say is unknown, and a wild number of a node is not used. */
        assert_true(top_frame_read(&f, json_pack("{s:[{s:I, s:[{}, i]}, i]}", "hosts", "node",
                                                 (json_int_t)1 << 60, "ranks", 3, 4)));
        assert_int_equal(f.n_hosts, 2);
        assert_int_equal(f.hosts[0].node, 0);
        assert_int_equal(f.hosts[0].ranks[0].step, -1);
}

/* --- rows ------------------------------------------------------------------------------------- */

static const struct told quiet[] = { { "alive", "" }, { "alive", "" }, { "alive", "" } };

TEST(the_host_of_a_small_run_is_open)
{
        struct top_frame one = make_frame(quiet, 1, 1, 0), three = make_frame(quiet, 3, 3, 0);
        CLEANUP(top_view_finish) struct top_view v;

        top_view_init(&v);
        top_view_update(&v, &one, 10);
        assert_int_equal(v.n_rows, 2);
        top_view_key(&v, &one, TOP_KEY_TOGGLE, 10);
        assert_int_equal(v.n_rows, 1);
        top_view_update(&v, &one, 10);
        assert_int_equal(v.n_rows, 1); /* it stays closed */
        top_view_finish(&v);
        top_view_update(&v, &three, 10);
        assert_int_equal(v.n_rows, 3);
        top_view_key(&v, &three, TOP_KEY_ALL, 10);
        assert_int_equal(v.n_rows, 6);
        top_view_key(&v, &three, TOP_KEY_ALL, 10);
        assert_int_equal(v.n_rows, 3);
        top_frame_finish(&one);
        top_frame_finish(&three);
}

TEST(odd_ranks_come_first_below_their_host)
{
        CLEANUP(top_frame_finish) struct top_frame f;
        CLEANUP(top_view_finish) struct top_view v;
        json_t *j = json_loads(
                "{\"alive\":2,\"hosts\":[{\"host\":\"a\",\"state\":\"running\",\"ranks\":["
                "{\"rank\":0,\"life\":\"alive\"},{\"rank\":1,\"life\":\"ended\",\"exit\":0},"
                "{\"rank\":2,\"life\":\"alive\",\"state\":\"T\"},"
                "{\"rank\":3,\"life\":\"ended\",\"exit\":1}]}]}",
                0, NULL);
        static const int odd[] = { -1, 3, 2, 0, 1 }, plain[] = { -1, 0, 1, 2, 3 };

        assert_true(top_frame_read(&f, j));
        top_view_init(&v);
        top_view_update(&v, &f, 10);
        assert_int_equal(v.n_rows, 5);
        for (int i = 0; i < 5; i++)
                assert_int_equal(v.rows[i].rank, odd[i]);
        top_view_key(&v, &f, TOP_KEY_DOWN, 10); /* rank 3 */
        top_view_key(&v, &f, TOP_KEY_SORT, 10);
        for (int i = 0; i < 5; i++)
                assert_int_equal(v.rows[i].rank, plain[i]);
        assert_int_equal(v.selected, 4);
        top_view_key(&v, &f, TOP_KEY_CLOSE, 10);
        assert_int_equal(v.n_rows, 1);
        assert_int_equal(v.selected, 0);
}

TEST(the_cursor_stays_with_its_host)
{
        static const struct told odd[] = { { "alive", "" },
                                           { "ended", ",\"exit\":1" },
                                           { "alive", "" } };
        struct top_frame f = make_frame(quiet, 3, 3, 0), g = make_frame(odd, 3, 2, 0);
        CLEANUP(top_view_finish) struct top_view v;

        top_view_init(&v);
        top_view_update(&v, &f, 2);
        top_view_update(&v, &g, 2);
        assert_int_equal(v.selected, 0); /* the first, not host0, while it was not moved */
        assert_int_equal(v.rows[0].host, 1);
        top_view_update(&v, &f, 2);
        top_view_key(&v, &f, TOP_KEY_DOWN, 2);
        assert_int_equal(v.rows[v.selected].host, 1);
        top_view_update(&v, &g, 2);
        assert_int_equal(v.selected, 0);
        top_view_key(&v, &g, TOP_KEY_LAST, 2);
        assert_int_equal(v.first, 1);
        top_view_key(&v, &g, TOP_KEY_OPEN, 2);
        top_view_key(&v, &g, TOP_KEY_DOWN, 2);
        assert_int_equal(v.selected, 3);
        assert_int_equal(v.rows[3].rank, 0);
        top_view_key(&v, &g, TOP_KEY_CLOSE, 2);
        assert_int_equal(v.selected, 2);
        top_view_key(&v, &g, TOP_KEY_FIRST, 2);
        assert_int_equal(v.selected, 0);
        assert_int_equal(v.first, 0);
        top_frame_finish(&f);
        top_frame_finish(&g);
}

TEST(a_filter_leaves_hosts)
{
        CLEANUP(top_frame_finish) struct top_frame f = make_frame(quiet, 3, 3, 0);
        CLEANUP(top_view_finish) struct top_view v;

        top_view_init(&v);
        top_view_update(&v, &f, 5);
        top_view_key(&v, &f, TOP_KEY_LAST, 5);
        strcpy(v.filter, "OST1");
        top_view_update(&v, &f, 5);
        assert_int_equal(v.n_rows, 1);
        assert_int_equal(v.rows[0].host, 1);
        assert_int_equal(v.selected, 0);
        strcpy(v.filter, "none");
        top_view_update(&v, &f, 5);
        assert_int_equal(v.n_rows, 0);
        for (int key = TOP_KEY_UP; key <= TOP_KEY_SORT; key++)
                top_view_key(&v, &f, key, 5);
        *v.filter = '\0';
        top_view_update(&v, &f, 5);
        assert_int_equal(v.n_rows, 3);
}

TEST(sorting_goes_through_all_orders)
{
        static const struct told v[] = {
                { "alive", ",\"lag\":1,\"wait\":\"key\",\"wait_ms\":5,\"quiet_ms\":9" },
                { "alive", ",\"lag\":3,\"wait\":\"key\",\"wait_ms\":7,\"quiet_ms\":8" },
                { "alive", ",\"lag\":2" },
        };
        CLEANUP(top_frame_finish) struct top_frame f = make_frame(v, 3, 3, 3);
        size_t order[3];
        CLEANUP(top_view_finish) struct top_view view;

        top_view_order(&f, TOP_BY_LAG, order);
        assert_int_equal(order[0], 1);
        assert_int_equal(order[2], 0);
        top_view_order(&f, TOP_BY_WAIT, order);
        assert_int_equal(order[0], 1);
        assert_int_equal(order[2], 2);
        top_view_order(&f, TOP_BY_OUT, order);
        assert_int_equal(order[0], 0);
        top_view_init(&view);
        top_view_update(&view, &f, 5);
        for (int i = 0; i < TOP_SORTS; i++) {
                assert_true(strlen(top_view_sort_name(view.sort)) > 0);
                top_view_key(&view, &f, TOP_KEY_SORT, 5);
                assert_int_equal(view.n_rows, 3);
        }
        assert_int_equal(view.sort, TOP_BY_ODDITY);
}

/* A server that has told no step, or fewer, is not behind the trainers. */
TEST(ranks_of_several_roles_are_not_compared)
{
        static const struct told same[] = {
                { "alive", ",\"role\":\"a\",\"role_rank\":0,\"step\":9,\"lag\":0" },
                { "alive", ",\"role\":\"a\",\"role_rank\":1,\"step\":1,\"lag\":8" },
        };
        static const struct told other[] = {
                { "alive", ",\"role\":\"a\",\"role_rank\":0,\"step\":9,\"lag\":0" },
                { "alive", ",\"role\":\"b\",\"role_rank\":0,\"step\":1,\"lag\":8" },
        };
        CLEANUP(top_frame_finish) struct top_frame f = make_frame(same, 2, 2, 8);

        note_is(&f, 1, "a:1 behind");
        top_frame_finish(&f);
        f = make_frame(other, 2, 2, 8);
        note_is(&f, 1, "");
}

/* Of each role one host is the example, and the others share a row. */
TEST(hosts_alike_are_folded_by_role)
{
        struct told v[12];
        CLEANUP(top_frame_finish) struct top_frame f;
        CLEANUP(top_view_finish) struct top_view view;

        for (size_t i = 0; i < 12; i++)
                v[i] = (struct told){ "alive", i < 5 ? ",\"role\":\"a\",\"role_rank\":0"
                                                     : ",\"role\":\"b\",\"role_rank\":0" };
        f = make_frame(v, 12, 12, 0);
        top_view_init(&view);
        top_view_update(&view, &f, 20);
        assert_int_equal(view.n_rows, 4);
        assert_int_equal(view.rows[0].host, 0);
        assert_int_equal(view.rows[1].alike, 4);
        assert_int_equal(view.rows[2].host, 5);
        assert_int_equal(view.rows[3].alike, 6);
}
