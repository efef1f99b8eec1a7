/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of top at the widths of terminals, what it calls odd, and what its keys do.
 */
#include <locale.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/term/columns.h"
#include "head/top/top_frame.h"
#include "head/top/top_layout.h"
#include "head/top/top_lines.h"
#include "head/top/top_view.h"
#include "lib/unit.h"

#define GPU(use, mib)                                                                              \
        "{\"use_percent\":" #use ",\"memory_mib\":" #mib                                           \
        ",\"memory_total_mib\":81920,\"celsius\":66,\"watts\":640}"

static const char mock_up[] =
        "{\"v\":1,\"run\":\"k3f9\",\"state\":\"running\",\"us\":724000000,\"attempt\":0,"
        "\"num_nodes\":3,\"world_size\":6,\"alive\":6,\"step\":1838,\"spread\":2,\"total\":5000,"
        "\"hosts\":["
        "{\"node\":0,\"host\":\"gpu001\",\"state\":\"running\",\"age_ms\":200,\"cpu_percent\":97.4,"
        "\"in_kib\":38000000,\"out_kib\":900,\"memory_mib\":72704,\"memory_total_mib\":1031000,"
        "\"gpus\":[" GPU(100, 70000) "," GPU(
                95, 72000) "],\"ranks\":["
                           "{\"rank\":0,\"life\":\"alive\",\"state\":\"R\",\"step\":1840,\"lag\":0,"
                           "\"cpu_percent\":100,\"memory_mib\":900,\"quiet_ms\":2100},"
                           "{\"rank\":1,\"life\":\"alive\",\"state\":\"S\",\"step\":1840,\"lag\":0,"
                           "\"cpu_percent\":3,\"memory_mib\":900,\"quiet_ms\":95000,\"wait\":"
                           "\"barrier\","
                           "\"wait_ms\":1200}]},"
                           "{\"node\":1,\"host\":\"gpu002\",\"state\":\"running\",\"age_ms\":200,"
                           "\"cpu_percent\":5.0,"
                           "\"memory_mib\":1000,\"gpus\":[" GPU(
                                   0, 500) "],\"ranks\":["
                                           "{\"rank\":2,\"life\":\"alive\",\"state\":\"S\","
                                           "\"step\":1838,\"lag\":2},"
                                           "{\"rank\":3,\"life\":\"alive\",\"state\":\"S\","
                                           "\"step\":1840,\"lag\":0}]},"
                                           "{\"node\":2,\"host\":\"gpu003\",\"state\":\"lost\","
                                           "\"gpus\":[],\"ranks\":["
                                           "{\"rank\":4,\"life\":\"silent\"},{\"rank\":5,\"life\":"
                                           "\"silent\"}]}]}\n";

static struct top_frame read_text(const char *text)
{
        struct top_lines l = { 0 };
        struct top_frame f;
        json_t *j;

        buf_appends(&l.bytes, "{\"v\":1,\"hosts\":[]}\n");
        buf_appends(&l.bytes, text);
        buf_appends(&l.bytes, "{\"v\":");
        j = top_lines_take(&l); /* the newest whole line */
        assert_non_null(j);
        assert_true(top_frame_read(&f, j));
        top_lines_finish(&l);
        return f;
}

static char *table_of(const struct top_frame *f, size_t width)
{
        size_t *order = xcalloc(f->n_hosts, sizeof(*order));
        struct buf b = BUF_INIT;

        top_view_order(f, TOP_BY_ODDITY, order);
        top_layout_table(f, order, width, &b);
        free(order);
        return buf_steal(&b);
}

static void table_is(const struct top_frame *f, size_t width, const char *want)
{
        CLEANUP(free_textp) char *got = table_of(f, width);

        assert_string_equal(got, want);
}

TEST(tables_at_widths)
{
        CLEANUP(top_frame_finish) struct top_frame f = read_text(mock_up);

        table_is(&f, 40,
                 "run k3f9  12m04s  step 1838-1840 of 5000\n"
                 "HOST        STEP   LAG NOTE\n"
                 "gpu003         -     - lost\n"
                 "gpu002      1838    -2 rank 2 behind\n"
                 "gpu001      1840     0\n");
        table_is(&f, 80,
                 "run k3f9  12m04s  6 ranks on 3 nodes  step 1838-1840 of 5000  running\n"
                 "HOST         UP     STEP    LAG  WAIT              CPU  GPU%  NOTE\n"
                 "gpu003      0/2        -      -  -                   -     -  lost\n"
                 "gpu002        2     1838     -2                     5%    0%  rank 2 behind\n"
                 "gpu001        2     1840      0  barrier 1s        97%   97%\n");
        table_is(&f, 120,
                 "run k3f9  12m04s  6 ranks on 3 nodes  step 1838-1840 of 5000  running\n"
                 "HOST      RANKS       UP     STEP    LAG  WAIT              CPU     MEM  GPU%    "
                 "    GMEM     OUT  NOTE\n"
                 "gpu003    4-5        0/2        -      -  -                   -       -     -    "
                 "       -       -  lost\n"
                 "gpu002    2-3          2     1838     -2                     5%    1.0G    0%    "
                 "500M/80G          rank 2 behind\n"
                 "gpu001    0-1          2     1840      0  barrier 1s        97%   71.0G   97%   "
                 "138G/160G      2s\n");
        table_is(&f, 300,
                 "run k3f9  12m04s  6 ranks on 3 nodes  step 1838-1840 of 5000  running\n"
                 "HOST      RANKS       UP     STEP    LAG  WAIT              CPU     MEM  GPU%    "
                 "    GMEM  TEMP   POWER     NET RX/TX     OUT  NOTE\n"
                 "gpu003    4-5        0/2        -      -  -                   -       -     -    "
                 "       -     -       -             -       -  lost\n"
                 "gpu002    2-3          2     1838     -2                     5%    1.0G    0%    "
                 "500M/80G   66C    640W                        rank 2 behind\n"
                 "gpu001    0-1          2     1840      0  barrier 1s        97%   71.0G   97%   "
                 "138G/160G   66C   1.3kW    36.2G/900k      2s\n");
}

/* Whatever the width, no line is wider, and the host stays. */
TEST(no_line_is_wider)
{
        CLEANUP(top_frame_finish) struct top_frame f = read_text(mock_up);

        for (size_t width = 8; width <= 320; width++) {
                CLEANUP(free_textp) char *table = table_of(&f, width);
                size_t n = 0;

                for (char *line = strtok(table, "\n"); line; line = strtok(NULL, "\n"), n++) {
                        assert_true(columns_count(line, strlen(line)) <= width);
                        if (n == 1)
                                assert_memory_equal(line, "HOST", 4);
                }
                assert_int_equal(n, 5);
        }
}

TEST(wide_lines_have_all_columns)
{
        CLEANUP(top_frame_finish) struct top_frame f = read_text(mock_up);
        struct top_layout l;

        f.knows_busy = true;
        top_layout_choose(&l, &f, 300);
        for (int c = 0; c < TOP_COLUMNS; c++)
                assert_true(l.columns[c] > 0);
        f.has_gpus = false;
        f.step = -1;
        top_layout_choose(&l, &f, 300);
        for (int c = 0; c < TOP_COLUMNS; c++)
                assert_int_equal(l.columns[c] > 0,
                                 c != TOP_STEP && c != TOP_LAG && (c < TOP_GPU || c > TOP_POWER));
}

/* A divided GPU has no use that the driver tells. */
TEST(figures_of_gpus_may_be_unknown)
{
        struct top_frame f =
                read_text("{\"run\":\"k3f9\",\"us\":5000000,\"num_nodes\":2,\"world_size\":2,"
                          "\"hosts\":[{\"node\":0,\"host\":\"a\",\"state\":\"running\",\"ranks\":["
                          "],\"gpus\":["
                          "{\"memory_mib\":100},{\"memory_mib\":200,\"use_percent\":30}]},"
                          "{\"node\":1,\"host\":\"b\",\"state\":\"running\",\"ranks\":[],\"gpus\":["
                          "{\"memory_mib\":0}]}]}\n");

        assert_int_equal(f.hosts[0].gpus.percent, 30);
        assert_int_equal(f.hosts[0].gpus.memory_mib, 300);
        assert_int_equal(f.hosts[0].gpus.watts, -1);
        assert_int_equal(f.hosts[1].gpus.percent, -1);
        table_is(&f, 100,
                 "run k3f9  5.0s  2 ranks on 2 nodes\n"
                 "HOST      RANKS       UP  WAIT              CPU     MEM  GPU%        GMEM     "
                 "OUT  NOTE\n"
                 "a                      0                                  30%        300M\n"
                 "b                      0                                               0M\n");
        top_frame_finish(&f);
}

static void head_is(int64_t cpu_percent, int64_t quiet_ms, const char *want)
{
        CLEANUP(free_textp)
        char *text =
                xasprintf("{\"v\":1,\"run\":\"k3f9\",\"state\":\"running\",\"us\":724000000,"
                          "\"num_nodes\":1,\"world_size\":2,\"alive\":2,\"hosts\":[{\"node\":0,"
                          "\"host\":\"a\",\"state\":\"running\",\"gpus\":[],\"ranks\":["
                          "{\"rank\":0,\"life\":\"alive\",\"cpu_percent\":0,\"quiet_ms\":95000},"
                          "{\"rank\":1,\"life\":\"alive\",\"cpu_percent\":%lld,"
                          "\"quiet_ms\":%lld}]}]}\n",
                          (long long)cpu_percent, (long long)quiet_ms);
        CLEANUP(buf_finish) struct buf b = BUF_INIT;
        CLEANUP(free_textp) char *got = NULL;
        CLEANUP(top_frame_finish) struct top_frame f = read_text(text);

        top_layout_head(&f, NULL, 120, &b);
        got = buf_steal(&b);
        assert_string_equal(got, want);
}

TEST(a_run_that_stands_still_is_told)
{
        head_is(1, 14000, "run k3f9  12m04s  2 ranks on 1 node  no output for 14s, no rank works");
        head_is(90, 14000, "run k3f9  12m04s  2 ranks on 1 node  running");
        head_is(1, 3000, "run k3f9  12m04s  2 ranks on 1 node  running");
}

/* Four ranks on two hosts, busy for these percents of the time. */
static struct top_frame read_busy(int a, int b, int c, int d, const char *by)
{
        CLEANUP(free_textp)
        char *text = xasprintf(
                "{\"run\":\"k3f9\",\"state\":\"running\",\"us\":1000000,\"num_nodes\":2,"
                "\"world_size\":4,\"alive\":4,\"hosts\":["
                "{\"node\":0,\"host\":\"a\",\"state\":\"running\",\"ranks\":["
                "{\"rank\":0,\"life\":\"alive\",\"busy_percent\":%d,\"busy_by\":\"%s\"},"
                "{\"rank\":1,\"life\":\"alive\",\"busy_percent\":%d,\"busy_by\":\"store\"}]},"
                "{\"node\":1,\"host\":\"b\",\"state\":\"running\",\"ranks\":["
                "{\"rank\":2,\"life\":\"alive\",\"busy_percent\":%d,\"busy_by\":\"store\"},"
                "{\"rank\":3,\"life\":\"alive\",\"busy_percent\":%d,\"busy_by\":\"store\"}]}]}\n",
                a, by, b, c, d);

        return read_text(text);
}

TEST(the_rank_that_others_wait_for_is_slow)
{
        CLEANUP(top_frame_finish) struct top_frame f = read_busy(71, 70, 99, 72, "looks");

        table_is(&f, 100,
                 "run k3f9  1.0s  4 ranks on 2 nodes  running\n"
                 "HOST      RANKS       UP  WAIT             BUSY    CPU     MEM  NOTE\n"
                 "b         2-3          2                    99%                 "
                 "rank 2 is slow: others wait ~28 %\n"
                 "a         0-1          2                   ~71%\n");
        table_is(
                &f, 80,
                "run k3f9  1.0s  4 ranks on 2 nodes  running\n"
                "HOST         UP  WAIT             BUSY    CPU  NOTE\n"
                "b             2                    99%         rank 2 is slow: others wait ~28 %\n"
                "a             2                   ~71%\n");
        table_is(&f, 44,
                 "run k3f9  1.0s  4 ranks on 2 nodes  running\n"
                 "HOST        UP  BUSY   CPU NOTE\n"
                 "b            2   99%       rank 2 is slow:…\n"
                 "a            2  ~71%\n");
        top_frame_finish(&f);
        f = read_busy(71, 70, 99, 72, "looks");
        assert_int_equal(f.slow.cost, 28);
        assert_true(f.slow.guessed);
        assert_int_equal(f.hosts[1].odd.worst, ODD_SLOW);
        assert_int_equal(f.hosts[1].odd.n, 1);
}

TEST(no_rank_is_slow_without_a_reason)
{
        static const int busy[][4] = {
                { 71, 70, 75, 72 },     /* none stands out */
                { 99, 70, 71, 99 },     /* on several hosts */
                { 99, 99, 70, 70 },     /* half of the ranks */
                { 100, 100, 100, 100 }, /* they may be spinning */
                { 40, 99, 99, 99 },     /* one that waits */
        };

        for (size_t i = 0; i < ARRAY_SIZE(busy); i++) {
                const int *v = busy[i];
                CLEANUP(top_frame_finish)
                struct top_frame f = read_busy(v[0], v[1], v[2], v[3], "store");

                assert_int_equal(f.slow.above, -1);
                assert_int_equal(f.hosts[0].odd.worst, ODD_NOT);
                assert_int_equal(f.hosts[1].odd.worst, ODD_NOT);
                assert_int_equal(f.some_wait, i != 3);
        }
}

/* Four ranks of a host without output: three wait in a barrier for @wait_ms, one does not. */
static struct top_frame read_hang(int64_t wait_ms, const char *steps)
{
        CLEANUP(free_textp)
        char *text =
                xasprintf("{\"run\":\"k3f9\",\"state\":\"running\",\"us\":90000000,\"num_nodes\":1,"
                          "\"world_size\":4,\"alive\":4%s,\"hosts\":["
                          "{\"node\":0,\"host\":\"a\",\"state\":\"running\",\"ranks\":["
                          "{\"rank\":0,\"life\":\"alive\",\"state\":\"S\",\"busy_percent\":99,"
                          "\"busy_by\":\"store\"}",
                          steps);

        for (int r = 1; r < 4; r++) {
                char *more = xasprintf("%s,{\"rank\":%d,\"life\":\"alive\",\"state\":\"S\","
                                       "\"wait\":\"barrier\",\"wait_ms\":%lld,"
                                       "\"busy_percent\":50,\"busy_by\":\"store\"}",
                                       text, r, (long long)wait_ms);

                free(text);
                text = more;
        }
        CLEANUP(free_textp) char *line = xasprintf("%s]}]}\n", text);

        return read_text(line);
}

static void oddity_is(struct top_frame f, enum top_oddity want)
{
        assert_int_equal(f.hosts[0].ranks[0].odd, want);
        top_frame_finish(&f);
}

/* In a hang the others wait for a rank, too, but it is not slow. */
TEST(no_rank_is_slow_while_none_goes_on)
{
        oddity_is(read_hang(2900, ""), ODD_SLOW);
        oddity_is(read_hang(3000, ""), ODD_ALONE);
        oddity_is(read_hang(2000, ",\"step\":7,\"since_step_ms\":2900,\"step_ms\":500"), ODD_SLOW);
        oddity_is(read_hang(3000, ",\"step\":7,\"since_step_ms\":3000,\"step_ms\":500"), ODD_ALONE);
        oddity_is(read_hang(2000, ",\"step\":7,\"since_step_ms\":3000,\"step_ms\":500"), ODD_ALONE);
        oddity_is(read_hang(8000, ",\"step\":7,\"since_step_ms\":8000,\"step_ms\":3000"), ODD_SLOW);
}

TEST(a_hang_that_was_found_has_its_cause)
{
        struct top_frame f =
                read_hang(60000, ",\"hang\":{\"rank\":0,\"text\":\"rank 0 on a sleeps in "
                                 "f; 3 ranks wait in hn_barrier\"}");
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        assert_true(top_layout_hang(&f, 30, &b));
        buf_append(&b, "", 1);
        assert_string_equal((const char *)buf_data(&b), "rank 0 on a sleeps in f; 3 ran");
        top_frame_finish(&f);
        oddity_is(read_hang(60000, ",\"hang\":{\"rank\":0,\"text\":\"x\"}"), ODD_HANGS);
        oddity_is(read_hang(60000, ",\"hang\":{\"rank\":3,\"text\":\"x\"}"), ODD_ALONE);
        oddity_is(read_hang(60000, ",\"hang\":{\"rank\":null,\"text\":\"x\"}"), ODD_ALONE);
}

/* Of ranks that wait all the time for one, and tell no steps. */
TEST(a_rank_without_steps_is_slow_or_hangs)
{
        CLEANUP(top_frame_finish) struct top_frame f = read_busy(1, 2, 99, 3, "looks");
        char note[128];

        top_frame_slow_note(&f, note, sizeof(note));
        assert_string_equal(note, "rank 2 on b is slow or hangs: others wait ~97 %");
}

static void first_line_is(const char *steps, size_t width, const char *want)
{
        CLEANUP(top_frame_finish) struct top_frame f = read_hang(60000, steps);
        struct step_rate rate = { 0 };
        CLEANUP(buf_finish) struct buf b = BUF_INIT;

        for (int s = 0; s < 20; s++)
                step_rate_add(&rate, s * INT64_C(1000000), s);
        top_layout_head(&f, &rate, width, &b);
        CLEANUP(free_textp) char *got = buf_steal(&b);

        assert_string_equal(got, want);
}

TEST(an_alarm_stays_on_a_narrow_terminal)
{
        static const char still[] =
                ",\"step\":7,\"total\":500000,\"since_step_ms\":42000,\"step_ms\":500,"
                "\"stalled_ms\":42000,\"steps_per_s\":1.04";
        static const char slow[] =
                ",\"step\":7,\"total\":500000,\"since_step_ms\":42000,\"step_ms\":5000";

        (void)state;
        first_line_is(still, 80,
                      "run k3f9  1m30s  4 ranks on 1 node  step 7 of 500000  "
                      "no step for 42s");
        first_line_is(still, 40, "run k3f9  1m30s  no step for 42s");
        first_line_is(still, 20, "no step for 42s");
        first_line_is(still, 12, "no step for ");
        first_line_is(slow, 40, "run k3f9  step 7 of 500000  running");
        first_line_is(",\"step\":7,\"total\":100,\"steps_per_s\":3.1", 80,
                      "run k3f9  1m30s  step 7 of 100  3.1/s ███  30.0s left  running");
        first_line_is(",\"stalled_ms\":65000", 40, "run k3f9  1m30s  hangs for 1m");
}

/* top that is opened in an outage has no sample of the node. */
TEST(a_silent_node_without_a_sample_is_told)
{
        struct top_frame f = read_text(
                "{\"v\":1,\"run\":\"k3f9\",\"state\":\"running\",\"us\":90000000,\"num_nodes\":1,"
                "\"world_size\":1,\"alive\":1,\"hosts\":[{\"node\":0,\"host\":\"gpu001\","
                "\"state\":\"running\",\"silent_ms\":7200,\"ranks\":[{\"rank\":0,"
                "\"life\":\"alive\"}]}]}\n");

        table_is(&f, 60,
                 "run k3f9  1m30s  1 rank on 1 node  running\n"
                 "HOST        UP WAIT             CPU    MEM NOTE\n"
                 "gpu001       1                             silent for 7s\n"
                 "  rank 0\n");
        top_frame_finish(&f);
}

TEST(the_rate_is_that_of_the_last_seconds)
{
        struct step_rate r = { 0 };
        char spark[64];
        double rate;

        step_rate_spark(&r, spark, sizeof(spark));
        assert_string_equal(spark, "");
        for (int s = 0; s <= 20; s++)
                step_rate_add(&r, s * INT64_C(1000000), s * 4);
        for (int s = 21; s <= 40; s++)
                step_rate_add(&r, s * INT64_C(1000000), 80 + (s - 20) * 8);
        assert_true(step_rate_now(&r) > 7.99 && step_rate_now(&r) < 8.01);
        step_rate_spark(&r, spark, sizeof(spark));
        assert_string_equal(spark, "▅▅▅▅████");
        /* Slow steps: as many seconds as three of them take. */
        r.n = 0;
        for (int s = 0; s <= 60; s++)
                step_rate_add(&r, s * INT64_C(1000000), s / 10);
        assert_true(step_rate_now(&r) > 0.09 && step_rate_now(&r) < 0.15);
        /* At once again. */
        step_rate_add(&r, INT64_C(60250000), 7);
        assert_int_equal(r.n, 61);
        /* Both who ask in one tenth of a second have the same rate, also after a late frame. */
        step_rate_add(&r, INT64_C(60950000), 7);
        step_rate_add(&r, INT64_C(61420000), 8);
        rate = step_rate_now(&r);
        step_rate_add(&r, INT64_C(61480000), 9);
        assert_true(step_rate_now(&r) == rate);
        /* Two frames that are close to each other tell no rate. */
        r.n = 0;
        step_rate_add(&r, INT64_C(1299999), 1);
        step_rate_add(&r, INT64_C(1300000), 2);
        assert_int_equal(r.n, 2);
        assert_true(step_rate_now(&r) == 0);
        /* A restart. */
        step_rate_add(&r, INT64_C(62000000), 0);
        assert_true(step_rate_now(&r) == 0);
        step_rate_add(&r, INT64_C(63000000), -1);
        assert_int_equal(r.n, 1);
}

int main(void)
{
        setlocale(LC_CTYPE, "C.UTF-8");
        return unit_run(NULL, NULL);
}
