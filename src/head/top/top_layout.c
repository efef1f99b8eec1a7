/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns are chosen by rank (text_columns_fit()); columns without any value take no part. The note
 * column gets the width that remains. Titles, hosts and ranks are rows of the same cells, so cells
 * stand below each other without a second pass. The head line and the lines for several hosts alike
 * are written freely and cut at the width.
 */
#include "head/top/top_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/output/text_table.h"
#include "head/term/columns.h"

enum {
        CELL_MAX = 160, /* bytes, before a cell is cut to its column */
        NARROW = 70,    /* below, one space lies between columns */
        HOST_MIN = 8,
        HOST_MAX = 32,
        RANKS_MAX = 24,
        NOTE_MIN = 16,
        NOTE_MAX = 44,  /* before other columns */
        FEW_FRAMES = 4, /* too few to tell whether steps go on */
};

static const struct text_column top_columns[TOP_COLUMNS] = {
        [TOP_HOST] = { "HOST", 0, 0, 0 },
        [TOP_RANKS] = { "RANKS", 0, 10, 0 },
        [TOP_UP] = { "UP", TEXT_RIGHT, 4, 0 },
        [TOP_STEP] = { "STEP", TEXT_RIGHT, 2, 0 },
        [TOP_LAG] = { "LAG", TEXT_RIGHT, 3, 0 },
        [TOP_WAIT] = { "WAIT", 0, 8, 0 },
        [TOP_BUSY] = { "BUSY", TEXT_RIGHT, 5, 0 },
        [TOP_CPU] = { "CPU", TEXT_RIGHT, 6, 0 },
        [TOP_MEM] = { "MEM", TEXT_RIGHT, 9, 0 },
        [TOP_GPU] = { "GPU%", TEXT_RIGHT, 7, 0 },
        [TOP_GMEM] = { "GMEM", TEXT_RIGHT, 12, 0 },
        [TOP_TEMP] = { "TEMP", TEXT_RIGHT, 14, 0 },
        [TOP_POWER] = { "POWER", TEXT_RIGHT, 13, 0 },
        [TOP_NET] = { "NET RX/TX", TEXT_RIGHT, 15, 0 },
        [TOP_OUT] = { "OUT", TEXT_RIGHT, 11, 0 },
        [TOP_NOTE] = { "NOTE", TEXT_TRUNCATE, 1, 0 },
};

/* Columns without a width here are measured for each frame: host, note and the ranks of roles. */
static const size_t top_widths[TOP_COLUMNS] = {
        [TOP_RANKS] = 7, [TOP_UP] = 5,    [TOP_STEP] = 7, [TOP_LAG] = 5, [TOP_WAIT] = 14,
        [TOP_BUSY] = 5,  [TOP_CPU] = 5,   [TOP_MEM] = 6,  [TOP_GPU] = 4, [TOP_GMEM] = 10,
        [TOP_TEMP] = 4,  [TOP_POWER] = 6, [TOP_NET] = 12, [TOP_OUT] = 6,
};

/* --- columns ---------------------------------------------------------------------------------- */

/* Whether a column has a value in this frame; GPU columns lie between TOP_GPU and TOP_POWER. */
static bool column_has_values(const struct top_frame *f, enum top_column c)
{
        if (c == TOP_STEP || c == TOP_LAG)
                return f->step >= 0;
        if (c == TOP_BUSY)
                return f->knows_busy;
        return f->has_gpus || c < TOP_GPU || c > TOP_POWER;
}

/* Returns the width for the longest note, within limits: columns are left out before a note becomes
 * shorter than that. */
static size_t find_note_width(const struct top_frame *f)
{
        size_t width = NOTE_MIN;
        char note[CELL_MAX];

        for (size_t i = 0; i < f->n_hosts; i++) {
                top_frame_host_note(f, &f->hosts[i], note, sizeof(note));
                width = MAX(width, strlen(note));
        }
        return MIN(width, (size_t)NOTE_MAX);
}

static void write_ranks(const struct top_frame_host *h, char *to, size_t size);

/* Names of roles are longer than numbers. */
static size_t find_ranks_width(const struct top_frame *f)
{
        size_t width = top_widths[TOP_RANKS];
        char cell[CELL_MAX];

        for (size_t i = 0; i < f->n_hosts; i++) {
                if (!f->hosts[i].n_ranks || !f->hosts[i].ranks[0].role)
                        continue;
                write_ranks(&f->hosts[i], cell, sizeof(cell));
                width = MAX(width, strlen(cell));
        }
        return MIN(width, (size_t)RANKS_MAX);
}

void top_layout_choose(struct top_layout *l, const struct top_frame *f, size_t width)
{
        size_t most = MAX(MIN(width / 3, (size_t)HOST_MAX), (size_t)HOST_MIN);
        struct text_column columns[TOP_COLUMNS];

        *l = (struct top_layout){ .width = width, .gap = width < NARROW ? 1 : 2 };
        memcpy(columns, top_columns, sizeof(columns));
        /* Up to half of a line for the note, of a narrow line a third. */
        columns[TOP_NOTE].least =
                MIN(find_note_width(f), MAX(width / (width < NARROW ? 3 : 2), (size_t)NOTE_MIN));
        for (int c = 0; c < TOP_COLUMNS; c++)
                if (column_has_values(f, c))
                        l->columns[c] = top_widths[c];
        l->columns[TOP_RANKS] = find_ranks_width(f);
        l->columns[TOP_HOST] = MAX(MIN(f->name_width, most), (size_t)HOST_MIN);
        /* The note gets what the others leave. */
        l->columns[TOP_NOTE] = width;
        text_columns_fit(columns, TOP_COLUMNS, l->gap, width, l->columns);
}

/* Appends @text, cut or filled to the width of a column. */
static void add_cell(const struct top_layout *l, enum top_column c, const char *text,
                     struct buf *to)
{
        CLEANUP(buf_finish) struct buf whole = BUF_INIT, plain = BUF_INIT;
        size_t width = l->columns[c], used;

        if (!width)
                return;
        if (c != TOP_HOST)
                buf_printf(to, "%*s", (int)l->gap, "");
        printable_put(&whole, text, strlen(text));
        buf_append(&whole, "", 1);
        /* Names of hosts differ at both ends and lose their middle; notes end behind a word; other
         * cells are simply cut. */
        if (c == TOP_HOST)
                columns_shorten(&plain, (const char *)buf_data(&whole), width);
        else if (c == TOP_NOTE)
                columns_cut(&plain, (const char *)buf_data(&whole), width);
        else
                buf_append(&plain, buf_data(&whole),
                           columns_fitting((const char *)buf_data(&whole), buf_len(&whole) - 1,
                                           width));
        used = columns_count((const char *)buf_data(&plain), buf_len(&plain));
        if (top_columns[c].flags & TEXT_RIGHT)
                buf_printf(to, "%*s", (int)(width - used), "");
        buf_append(to, buf_data(&plain), buf_len(&plain));
        if (!(top_columns[c].flags & TEXT_RIGHT) && c != TOP_NOTE)
                buf_printf(to, "%*s", (int)(width - used), "");
}

void top_layout_titles(const struct top_layout *l, struct buf *to)
{
        for (int c = 0; c < TOP_COLUMNS; c++)
                add_cell(l, c, top_columns[c].name, to);
}

/* --- cells ------------------------------------------------------------------------------------ */

/* "512M", "71.2G", "980G"; below 0 is nothing. */
static void write_mib(int64_t mib, char *to, size_t size)
{
        if (mib < 0)
                *to = '\0';
        else if (mib < 1000)
                snprintf(to, size, "%" PRId64 "M", mib);
        else if (mib < 100 * 1024)
                snprintf(to, size, "%.1fG", (double)mib / 1024);
        else
                snprintf(to, size, "%" PRId64 "G", mib >> 10);
}

/* "0k", "12.5M", "980M", "1.2G" per second. */
static void write_rate(int64_t kib, char *to, size_t size)
{
        if (kib < 1000)
                snprintf(to, size, "%" PRId64 "k", kib);
        else if (kib < 100 * 1024)
                snprintf(to, size, "%.1fM", (double)kib / 1024);
        else if (kib < 1000 * 1024)
                snprintf(to, size, "%" PRId64 "M", kib >> 10);
        else
                snprintf(to, size, "%.1fG", (double)kib / (1 << 20));
}

/* Writes nothing for -1, not known. */
static void write_count(int64_t n, const char *unit, char *to, size_t size)
{
        *to = '\0';
        if (n >= 0)
                snprintf(to, size, "%" PRId64 "%s", n, unit);
}

/* Writes "-3" for three steps behind the first rank. */
static void write_lag(int64_t lag, char *to, size_t size)
{
        *to = '\0';
        if (lag >= 0)
                snprintf(to, size, lag ? "-%" PRId64 : "0", lag);
}

/* Writes "barrier 12s"; nothing for a rank that does not wait. @r NULL: no rank of the host
 * waits. */
static void write_wait_cell(const struct top_frame_rank *r, char *to, size_t size)
{
        char age[24];

        *to = '\0';
        if (!r || !r->wait)
                return;
        top_frame_age(r->wait_ms, age, sizeof(age));
        snprintf(to, size, "%s %s", r->wait, age);
}

/* Writes "-" while no rank is seen to wait: all ranks may be spinning in their waits. */
static void write_busy(const struct top_frame *f, const struct top_frame_rank *r, char *to,
                       size_t size)
{
        if (!r || r->busy_percent < 0)
                *to = '\0';
        else if (!f->some_wait)
                snprintf(to, size, "-");
        else
                snprintf(to, size, "%s%" PRId64 "%%", r->busy_guessed ? "~" : "", r->busy_percent);
}

/* Writes a number of all GPUs of a host, whose limits differ by maker: total memory, use and power
 * may be missing. */
static void write_gpu_cell(const struct top_frame_host *h, enum top_column c, char *to, size_t size)
{
        char used[24];

        if (c == TOP_GPU) {
                write_count(h->gpus.percent, "%", to, size);
        } else if (c == TOP_TEMP) {
                write_count(h->gpus.celsius, "C", to, size);
        } else if (c == TOP_GMEM) {
                write_mib(h->gpus.memory_mib, used, sizeof(used));
                snprintf(to, size, h->gpus.total_mib < 0 ? "%s" : "%s/%" PRId64 "G", used,
                         h->gpus.total_mib >> 10);
        } else if (h->gpus.watts < 1000) {
                write_count(h->gpus.watts, "W", to, size);
        } else {
                snprintf(to, size, "%.1fkW", (double)h->gpus.watts / 1000);
        }
}

/* Returns the end of the ranks that follow each other from @i on, in the same role and replica. */
static size_t find_span_end(const struct top_frame_host *h, size_t i)
{
        size_t end = i + 1;

        while (end < h->n_ranks && h->ranks[end].role &&
               !strcmp(h->ranks[end].role, h->ranks[i].role) &&
               h->ranks[end].replica == h->ranks[i].replica &&
               h->ranks[end].role_rank == h->ranks[end - 1].role_rank + 1)
                end++;
        return end;
}

/* "infer:0-7,router:0"; cut when @to is full. */
static void write_role_ranks(const struct top_frame_host *h, char *to, size_t size)
{
        char name[TOP_RANK_NAME], last[24];

        *to = '\0';
        for (size_t i = 0, end, at = 0; i < h->n_ranks && at < size; i = end) {
                end = find_span_end(h, i);
                snprintf(last, sizeof(last), "-%" PRId64, h->ranks[end - 1].role_rank);
                at += (size_t)snprintf(to + at, size - at, "%s%s%s", i ? "," : "",
                                       top_frame_rank_name(&h->ranks[i], name),
                                       end > i + 1 ? last : "");
        }
}

/* "8-15", "3", "0,2,5". Ranks of a host are in order, so that first and last tell whether the whole
 * range is there. */
static void write_ranks(const struct top_frame_host *h, char *to, size_t size)
{
        size_t n = h->n_ranks;

        *to = '\0';
        if (n && h->ranks[0].role) {
                write_role_ranks(h, to, size);
                return;
        }
        if (n && h->ranks[n - 1].rank - h->ranks[0].rank == (int64_t)n - 1 && n > 1)
                snprintf(to, size, "%" PRId64 "-%" PRId64, h->ranks[0].rank, h->ranks[n - 1].rank);
        else
                for (size_t i = 0, at = 0; i < n && at < size; i++)
                        at += (size_t)snprintf(to + at, size - at, i ? ",%" PRId64 : "%" PRId64,
                                               h->ranks[i].rank);
}

/* Writes the cell of a host in a column; "" = the value is not known. */
static void write_host_cell(const struct top_frame *f, const struct top_frame_host *h,
                            enum top_column c, char *to, size_t size)
{
        char in[24], out[24];

        *to = '\0';
        switch (c) {
        case TOP_RANKS:
                write_ranks(h, to, size);
                break;
        case TOP_UP:
                snprintf(to, size, h->alive < h->n_ranks ? "%zu/%zu" : "%zu", h->alive, h->n_ranks);
                break;
        case TOP_STEP:
                write_count(h->step, "", to, size);
                break;
        case TOP_LAG:
                write_lag(h->lag, to, size);
                break;
        case TOP_WAIT:
                write_wait_cell(h->longest, to, size);
                break;
        case TOP_BUSY:
                write_busy(f, h->busiest, to, size);
                break;
        case TOP_CPU:
                if (h->cpu_percent >= 0)
                        snprintf(to, size, "%.0f%%", h->cpu_percent);
                break;
        case TOP_MEM:
                write_mib(h->memory_mib, to, size);
                break;
        case TOP_GPU:
        case TOP_GMEM:
        case TOP_TEMP:
        case TOP_POWER:
                if (h->gpus.memory_mib >= 0)
                        write_gpu_cell(h, c, to, size);
                break;
        case TOP_NET:
                if (h->in_kib < 0)
                        break;
                write_rate(h->in_kib, in, sizeof(in));
                write_rate(h->out_kib, out, sizeof(out));
                snprintf(to, size, "%s/%s", in, out);
                break;
        case TOP_OUT:
                if (h->quiet_ms >= 0)
                        top_frame_age(h->quiet_ms, to, size);
                break;
        case TOP_NOTE:
                top_frame_host_note(f, h, to, size);
                break;
        case TOP_HOST:
        case TOP_COLUMNS:
                break;
        }
}

/* The same of a rank. GPUs and network belong to the host as a whole: these cells stay empty. */
static void write_rank_cell(const struct top_frame *f, const struct top_frame_rank *r,
                            enum top_column c, char *to, size_t size)
{
        char name[TOP_RANK_NAME];

        *to = '\0';
        if (c == TOP_HOST)
                snprintf(to, size, "  %s", top_frame_rank_name(r, name));
        else if (c == TOP_UP && r->state)
                snprintf(to, size, "%c", r->state);
        else if (c == TOP_STEP)
                write_count(r->step, "", to, size);
        else if (c == TOP_LAG)
                write_lag(r->lag, to, size);
        else if (c == TOP_WAIT)
                write_wait_cell(r, to, size);
        else if (c == TOP_BUSY && r->alive)
                write_busy(f, r, to, size);
        else if (c == TOP_CPU)
                write_count(r->cpu_percent, "%", to, size);
        else if (c == TOP_MEM)
                write_mib(r->memory_mib, to, size);
        else if (c == TOP_OUT && r->quiet_ms >= 0)
                top_frame_age(r->quiet_ms, to, size);
        else if (c == TOP_NOTE)
                top_frame_rank_note(f, r, to, size);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Whether a column has measured values, which a lost node has not. */
static bool is_a_value(enum top_column c)
{
        return c != TOP_HOST && c != TOP_RANKS && c != TOP_UP && c != TOP_NOTE;
}

void top_layout_host(const struct top_layout *l, const struct top_frame *f,
                     const struct top_frame_host *h, struct buf *to)
{
        char cell[CELL_MAX];

        add_cell(l, TOP_HOST, h->name, to);
        for (int c = TOP_HOST + 1; c < TOP_COLUMNS; c++) {
                if (h->odd.worst == ODD_LOST && is_a_value(c))
                        snprintf(cell, sizeof(cell), "-");
                else
                        write_host_cell(f, h, c, cell, sizeof(cell));
                add_cell(l, c, cell, to);
        }
}

void top_layout_rank(const struct top_layout *l, const struct top_frame *f,
                     const struct top_frame_rank *r, struct buf *to)
{
        char cell[CELL_MAX];

        for (int c = 0; c < TOP_COLUMNS; c++) {
                if (r->silent && is_a_value(c))
                        snprintf(cell, sizeof(cell), "-");
                else
                        write_rank_cell(f, r, c, cell, sizeof(cell));
                add_cell(l, c, cell, to);
        }
}

/* The only number of a folded row is the range of BUSY, which tells at a glance whether alike hosts
 * are truly alike. */
void top_layout_alike(const struct top_frame *f, const size_t *order, size_t first, size_t n,
                      struct buf *to)
{
        const char *about = "";
        int64_t least = INT64_MAX, most = -1;

        for (size_t i = first; i < first + n; i++) {
                const struct top_frame_rank *r = f->hosts[order[i]].busiest;

                if (!r)
                        continue;
                least = MIN(least, r->busy_percent);
                most = MAX(most, r->busy_percent);
                about = r->busy_guessed ? "~" : about;
        }
        buf_printf(to, "  ... %zu hosts alike", n);
        if (most >= 0 && f->some_wait)
                buf_printf(to, ", busy %s%" PRId64, about, least);
        if (most > least && f->some_wait)
                buf_printf(to, "-%" PRId64, most);
        if (most >= 0 && f->some_wait)
                buf_appends(to, "%");
        buf_appends(to, " (Enter opens) ...");
}

/* Returns the state of the run, or words about a possible hang with *@alarm set. malloc'ed. */
static char *describe_state(const struct top_frame *f, const struct step_rate *rate, bool *alarm)
{
        /* Where steps come, output says nothing: a training loop may be silent for hours. The first
         * frames have no rate yet and raise no alarm. */
        bool stalled = f->pace.stalled_ms > 0;
        /* With roles a hang may be in a world whose steps do not count: "hangs for", not "no step
         * for". */
        bool no_step = stalled && f->step >= 0 && !(f->pace.has_roles && f->pace.hang);
        bool steps =
                !stalled && (f->pace.rate > 0 || (rate && f->step >= 0 && rate->n < FEW_FRAMES));
        int64_t still_ms = steps ? -1 : top_frame_still_ms(f);
        const json_t *first = json_array_get(json_object_get(f->json, "waits"), 0);
        const char *waits = json_string_value(json_object_get(first, "text"));
        char age[24];

        *alarm = (still_ms >= 0 || stalled) && !strcmp(f->state, "running");
        if (!*alarm)
                return xasprintf("%s%s%s", f->state, waits ? ", " : "", waits ? waits : "");
        top_frame_age(stalled ? f->pace.stalled_ms : still_ms, age, sizeof(age));
        if (no_step)
                return xasprintf("no step for %s%s", age, still_ms >= 0 ? ", no rank works" : "");
        return xasprintf(stalled ? "hangs for %s" : "no output for %s, no rank works", age);
}

/* "9.7/s ▃▅▆▆", and "5m25s left" when the program told the number of steps. */
static void write_speed(const struct top_frame *f, const struct step_rate *rate, char *speed,
                        size_t speed_size, char *left, size_t left_size)
{
        double now = f->pace.rate;
        char spark[STEP_RATE_BARS * 4 + 1] = "", time[32];

        if (now <= 0)
                return;
        if (rate)
                step_rate_spark(rate, spark, sizeof(spark));
        snprintf(speed, speed_size, now < 10 ? "%.1f/s%s%s" : "%.0f/s%s%s", now, *spark ? " " : "",
                 spark);
        if (f->total <= f->step)
                return;
        format_duration(time, sizeof(time),
                        (int64_t)((double)(f->total - f->step) / now) * 1000000);
        snprintf(left, left_size, "%s left", time);
}

void top_layout_head(const struct top_frame *f, const struct step_rate *rate, size_t width,
                     struct buf *to)
{
        char age[32], speed[96] = "", left[48] = "";
        /* In the order of the line; the last of the other order is left out first. */
        enum { RUN, AGE, RANKS, STEP, SPEED, LEFT, STATE, PIECES };
        static const int order[] = { RUN, STEP, STATE, SPEED, LEFT, AGE, RANKS };
        static const int alarm_order[] = { STATE, RUN, STEP, SPEED, LEFT, AGE, RANKS };
        CLEANUP(free_textp) char *run = xasprintf("run %s", f->run);
        CLEANUP(free_textp)
        char *ranks = xasprintf("%" PRId64 " rank%s on %" PRId64 " node%s", f->world_size,
                                f->world_size == 1 ? "" : "s", f->num_nodes,
                                f->num_nodes == 1 ? "" : "s");
        CLEANUP(buf_finish) struct buf step = BUF_INIT;
        const char *role = json_string_value(json_object_get(f->json, "step_role"));
        bool shown[PIECES] = { 0 }, alarm = false;
        size_t used = 0;

        /* Whole seconds: fractions would only flicker. */
        format_duration(age, sizeof(age), f->us / 1000000 * 1000000);
        buf_appends(&step, "");
        if (f->step >= 0)
                buf_printf(&step, "%s%sstep %" PRId64, role ? role : "", role ? " " : "", f->step);
        if (f->spread > 0)
                buf_printf(&step, "-%" PRId64, f->step + f->spread);
        if (f->step >= 0 && f->total > 0)
                buf_printf(&step, " of %" PRId64, f->total);
        CLEANUP(free_textp) char *steps = buf_steal(&step);
        CLEANUP(free_textp) char *state = describe_state(f, rate, &alarm);

        if (f->step >= 0 && f->pace.stalled_ms <= 0)
                write_speed(f, rate, speed, sizeof(speed), left, sizeof(left));
        const char *pieces[PIECES] = { run, age, ranks, steps, speed, left, state };

        for (int i = 0; i < PIECES; i++) {
                int piece = (alarm ? alarm_order : order)[i];
                const char *p = pieces[piece];
                size_t own = columns_count(p, strlen(p)) + (used ? 2 : 0);

                /* A piece that does not fit is skipped, and a shorter one behind may still fit. An
                 * alarm is cut rather than skipped. */
                if (!*p || (used + own > width && !(alarm && piece == STATE)))
                        continue;
                shown[piece] = true;
                used += own;
        }
        used = 0;
        for (int i = 0; i < PIECES; i++)
                if (shown[i]) {
                        buf_printf(to, used++ ? "  " : "");
                        printable_put(to, pieces[i],
                                      columns_fitting(pieces[i], strlen(pieces[i]), width));
                }
}

/* The line stands below the head, on its own, because the sentence has the length of a line. */
bool top_layout_hang(const struct top_frame *f, size_t width, struct buf *to)
{
        const char *text = json_string_value(json_object_get(f->pace.hang, "text"));
        size_t start = buf_len(to);

        if (!text)
                return false;
        printable_put(to, text, strlen(text));
        buf_truncate(to, start + columns_fitting((const char *)buf_data(to) + start,
                                                 buf_len(to) - start, width));
        return true;
}

/* Ends the line: drops blanks, and appends a newline. */
static void end_table_line(struct buf *to, size_t start)
{
        size_t len = buf_len(to);

        while (len > start && buf_data(to)[len - 1] == ' ')
                len--;
        buf_truncate(to, len);
        buf_appends(to, "\n");
}

/* Without a terminal: one frame, no course of the rate. The ranks of several hosts would make the
 * table too long. */
void top_layout_table(const struct top_frame *f, const size_t *order, size_t width, struct buf *to)
{
        struct top_layout l;
        size_t start = buf_len(to);

        top_layout_choose(&l, f, width);
        top_layout_head(f, NULL, width, to);
        end_table_line(to, start);
        start = buf_len(to);
        if (top_layout_hang(f, width, to))
                end_table_line(to, start);
        start = buf_len(to);
        top_layout_titles(&l, to);
        end_table_line(to, start);
        for (size_t i = 0; i < f->n_hosts; i++) {
                const struct top_frame_host *h = &f->hosts[order[i]];

                start = buf_len(to);
                top_layout_host(&l, f, h, to);
                end_table_line(to, start);
                for (size_t k = 0; k < h->n_ranks && f->n_hosts == 1; k++) {
                        start = buf_len(to);
                        top_layout_rank(&l, f, &h->ranks[k], to);
                        end_table_line(to, start);
                }
        }
}
