/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer draws the line twice a second on a terminal, the second time without new facts, because
 * output erases it. Facts come from the board of ranks and from output; live_line_text() makes the
 * line and is pure.
 */
#include "head/output/live_line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/intlist.h"
#include "base/memory.h"
#include "base/strv.h"
#include "head/model/role_list.h"
#include "head/model/step_pace.h"
#include "head/output/say.h"
#include "head/term/columns.h"
#include "head/term/escapes.h"
#include "head/term/redraw.h"

enum {
        DRAW_MS = 500, /* behind that of new facts, on a terminal */
        /* From output, or from the order to stop, to the line. Pieces of output that follow each
         * other shortly erase one line only. */
        SOON_MS = 50,
        /* Ticks of LIVE_LINE_MS from one plain line to the next. */
        PLAIN_TICKS = 60,
        QUIET_US = 10000000, /* output is missed */
        BAR_MAX = 1024,      /* bytes of a bar, colours included */
        /* A plain line has no width of a terminal to be cut at. */
        BAR_COLUMNS = 160,
        NAMED_MOST = 8, /* ranks that still run */
};

/* The last state of a line that a rank draws again and again. */
struct newest_bar {
        int rank;
        uint8_t stream;
        size_t len; /* 0 = none is drawn */
        char text[BAR_MAX];
};

/* Names of ranks in the newest facts. */
struct live_names {
        bool of_roles;
        char one[PLAN_RANK_NAME_MAX];
        char *running; /* in words; NULL = none, or too many */
};

/* The line of this second, NULL = none, and the bar behind it. */
struct live_drawn {
        char *line, *bar;
};

struct live_line {
        uv_timer_t timer, soon; /* soon: after output, which erases the line */
        unsigned closing;       /* timers; 0 = the line is not closed */
        struct events *es;
        struct rank_board *ranks;
        const struct hosts *hosts;
        bool tty;
        struct live_drawn drawn; /* on a terminal */
        bool again;              /* the next look only draws them again */
        bool *silent;            /* by node */
        int64_t spares;          /* at the last restart */
        int64_t ticks;
        uint64_t bytes;     /* since the last tick */
        int64_t written_us; /* the last output */
        char *slow;         /* a sentence; NULL = no rank is */
        struct newest_bar bar;
        int64_t stopped_us; /* the order to stop */
        bool over;          /* at the last facts no rank was left */
        struct live_names names;
        struct strv waits; /* of roles, by name as an environment */
};

/* --- text ------------------------------------------------------------------------------------- */

/* Appends the steps, as " step 10-12/100, rank 3 on gpu1 is the last 2.5/s 36s left". The rank is
 * not named where a line about a slow rank stands above. */
static void add_steps(struct buf *b, const struct live_facts *f)
{
        char left[32];

        buf_printf(b, "  %s%sstep %" PRId64, f->role ? f->role : "", f->role ? " " : "", f->least);
        if (f->most > f->least)
                buf_printf(b, "-%" PRId64, f->most);
        if (f->total)
                buf_printf(b, "/%" PRId64, f->total);
        if (f->most > f->least && f->ranks > 1 && !f->slow)
                buf_printf(b, ", %s on %s is the last", f->name, f->host);
        if (f->rate <= 0)
                return;
        buf_printf(b, f->rate < 10 ? "  %.1f/s" : "  %.0f/s", f->rate);
        /* The job ends with its slowest rank, so the rest counts from the least step. */
        if (f->total > f->least) {
                format_duration(left, sizeof(left),
                                (int64_t)((double)(f->total - f->least) / f->rate * 1e6));
                buf_printf(b, "  %s left", left);
        }
}

/* Appends a bar without colours and control characters. */
static void add_bar(struct buf *b, const struct live_facts *f)
{
        CLEANUP(buf_finish) struct buf text = BUF_INIT, plain = BUF_INIT;
        struct escapes e = ESCAPES_INIT;
        const char *p, *end, *c;
        size_t n;

        escapes_filter(&e, &text, f->bar.text, f->bar.len, false);
        p = (const char *)buf_data(&text);
        end = p + buf_len(&text);
        for (; p < end; p = c) { /* only ESC [ ... m is left of the sequences */
                for (c = p; c < end && (unsigned char)*c >= ' ';)
                        c++;
                buf_append(&plain, p, (size_t)(c - p));
                if (c < end && *c == '\033')
                        while (c < end && *c != 'm')
                                c++;
                else if (c < end)
                        buf_append(&plain, " ", 1);
                c += c < end;
        }
        p = (const char *)buf_data(&plain);
        n = buf_len(&plain);
        for (; n && *p == ' '; n--)
                p++;
        for (; n && p[n - 1] == ' ';)
                n--;
        if (!n)
                return;
        if (f->bar.name)
                buf_printf(b, "  %s: ", f->bar.name);
        else
                buf_printf(b, "  rank %d: ", f->bar.rank);
        buf_append(b, p, columns_fitting(p, n, BAR_COLUMNS));
}

/* Appends what the end waits for, in place of steps. Ranks are named only if few are left. */
static void add_end(struct buf *b, const struct live_facts *f)
{
        const struct live_end *e = &f->end;
        char text[32];

        if (e->stopping) {
                format_duration(text, sizeof(text), e->us);
                buf_printf(b, "  stopping for %s", text);
        }
        buf_appends(b, e->stopping ? ", " : "  ");
        if (e->over)
                buf_appends(b, "all ranks have ended, waiting for their output");
        else if (e->running && e->named)
                buf_printf(b, "%s still run%s", e->running, f->ranks == 1 ? "s" : "");
        else if (e->running && f->ranks == 1)
                buf_printf(b, "rank %s still runs", e->running);
        else if (e->running && f->ranks)
                buf_printf(b, "ranks %s still run", e->running);
        else
                buf_printf(b, "%d of %d ranks still run", f->ranks, e->of);
}

/* Whether no output, or with steps no step, has come for long. */
static bool is_quiet(const struct live_facts *f)
{
        return f->steps ? step_pace_is_still(f->silent_us, f->step_us) : f->silent_us >= QUIET_US;
}

char *live_line_text(const struct live_facts *f)
{
        bool ends = f->end.stopping || f->end.over;
        struct buf b = BUF_INIT;
        char text[32];

        format_duration(text, sizeof(text), f->us);
        if (f->slow && f->steps && !ends)
                buf_printf(&b, "%s\n", f->slow);
        buf_printf(&b, "%s", text);
        if (f->attempt)
                buf_printf(&b, "  attempt %" PRId64, f->attempt + 1);
        if (f->attempt && f->spares)
                buf_printf(&b, ", %" PRId64 " spare%s left", f->spares, f->spares == 1 ? "" : "s");
        if (ends)
                add_end(&b, f);
        else if (f->steps)
                add_steps(&b, f);
        else
                buf_printf(&b, "  %d rank%s", f->ranks, f->ranks == 1 ? "" : "s");
        if (f->waits && !ends)
                buf_printf(&b, "  %s", f->waits);
        if (f->bytes) {
                format_size(text, sizeof(text), f->bytes);
                buf_printf(&b, "  output %s/s", text);
        } else if (!ends && is_quiet(f)) {
                format_duration(text, sizeof(text), f->silent_us);
                buf_printf(&b, "  no %s for %s", f->steps ? "step" : "output", text);
        }
        if (f->silent.nodes == 1)
                buf_printf(&b, "  %s is silent", f->silent.host);
        else if (f->silent.nodes)
                buf_printf(&b, "  %zu nodes are silent", f->silent.nodes);
        if (f->bar.len && !f->steps && !ends)
                add_bar(&b, f);
        return buf_steal(&b);
}

/* --- facts ------------------------------------------------------------------------------------ */

/* Returns "infer:3,trainer:0" for ranks of roles, or "0-2,5"; malloc'ed. */
static char *name_running(const struct live_line *l, const struct intlist *ranks)
{
        char name[PLAN_RANK_NAME_MAX];
        struct buf b = BUF_INIT;

        if (!l->names.of_roles)
                return intlist_fold(ranks);
        for (size_t i = 0; i < ranks->n; i++)
                buf_printf(&b, "%s%s", i ? "," : "",
                           plan_rank_label(l->ranks->plan, ranks->v[i], name));
        return buf_steal(&b);
}

/* The names of the ranks that run are kept up to the next call. */
static struct live_end collect_end(struct live_line *l)
{
        const struct rank_board *ranks = l->ranks;
        const struct plan *plan = ranks->plan;
        struct live_end e = { .stopping = ranks->stopping,
                              .us = events_now_us(l->es) - l->stopped_us,
                              .of = ranks->n };
        struct intlist running = { 0 };
        bool over = ranks->n > 0;

        l->names.of_roles = ranks->n > 0 && plan->ranks[0].role;
        for (int r = 0; r < ranks->n; r++) {
                over = over && rank_board_is_over(&ranks->rows[r]);
                if (ranks->alive <= NAMED_MOST && ranks->rows[r].life == RANK_ALIVE)
                        intlist_add(&running, r);
        }
        free(l->names.running);
        l->names.running = running.n ? name_running(l, &running) : NULL;
        intlist_finish(&running);
        e.running = l->names.running;
        e.named = l->names.of_roles;
        e.over = over && l->over; /* for a second, which the end of a job does not take */
        l->over = over;
        return e;
}

/* Returns the name of a rank with a role, which is kept up to the next call for @to; else NULL. */
static const char *name_of_role(const struct live_line *l, int rank, char to[PLAN_RANK_NAME_MAX])
{
        return l->names.of_roles ? plan_rank_label(l->ranks->plan, rank, to) : NULL;
}

/* Reads the facts of this second. Texts in the result are lent by the board, the hosts and @l, up
 * to the next call. The caller resets the count of bytes. */
static struct live_facts collect_facts(struct live_line *l)
{
        const struct rank_board_steps steps = rank_board_steps(l->ranks);
        const struct step_pace *pace = l->ranks->pace;
        const struct plan *plan = l->ranks->plan;
        struct live_facts f = { .us = events_now_us(l->es),
                                .ranks = l->ranks->alive,
                                .attempt = l->ranks->attempt,
                                .spares = l->spares,
                                .steps = steps.told,
                                .least = steps.least,
                                .most = steps.most,
                                .total = steps.total,
                                .role = steps.role,
                                .bytes = l->bytes,
                                .slow = l->slow,
                                .end = collect_end(l),
                                .host = "" };

        for (size_t i = 0; i < l->hosts->n; i++) {
                if (!l->silent[i])
                        continue;
                f.silent.nodes++;
                f.silent.host = l->hosts->v[i].name;
        }
        /* The line has room for one role only. */
        f.waits = l->waits.n ? strchr(l->waits.v[0], '=') + 1 : NULL;
        /* A rank that tells steps may write nothing, or write much without a step. */
        f.silent_us = f.us - (f.steps ? pace->had_us : l->written_us);
        f.step_us = step_pace_step_us(pace);
        if (!f.steps) {
                f.bar = (struct live_bar){ l->bar.text, l->bar.len, l->bar.rank,
                                           name_of_role(l, l->bar.rank, l->names.one) };
                return f;
        }
        f.name = name_of_role(l, steps.slowest, l->names.one);
        if (!f.name)
                f.name = role_rank_name(NULL, -1, steps.slowest, l->names.one);
        f.host = l->hosts->v[plan->nodes[plan->ranks[steps.slowest].node].host].name;
        f.rate = rank_board_rate(l->ranks, uv_now(l->timer.loop));
        if (!is_quiet(&f))
                return f;
        f.slow = NULL; /* it stands still */
        f.rate = 0;
        return f;
}

/* Returns the text of the bar, which is taken out of @f; malloc'ed. */
static char *take_bar_text(struct live_facts *f)
{
        struct buf b = BUF_INIT;

        if (f->bar.len && !f->steps)
                add_bar(&b, f);
        f->bar.len = 0;
        return buf_steal(&b);
}

/* On a terminal each second tick only draws again what the tick before has made; else each tick
 * reads facts, and one in PLAIN_TICKS prints a line. */
static void on_live_tick(uv_timer_t *t)
{
        struct live_line *l = t->data;
        bool again = l->again, shown;
        struct live_facts f;

        l->again = l->tty && !again;
        uv_timer_start(t, on_live_tick, l->again ? DRAW_MS : live_line_due_ms(t->loop), 0);
        if (!again) {
                f = collect_facts(l);
                shown = l->tty || (l->ticks && l->ticks % PLAIN_TICKS == 0);
                l->ticks++;
                l->bytes = 0;
                free(l->drawn.bar);
                l->drawn.bar = l->tty ? take_bar_text(&f) : NULL;
                free(l->drawn.line);
                l->drawn.line = shown && (f.ranks > 0 || f.end.over) ? live_line_text(&f) : NULL;
        }
        if (l->drawn.line && l->tty)
                say_live(l->drawn.line, l->drawn.bar);
        else if (l->drawn.line)
                say("hnlaunch: %s\n", l->drawn.line);
}

/* Draws the line again after output, unless a tick has drawn the line meanwhile. */
static void on_live_soon(uv_timer_t *t)
{
        struct live_line *l = t->data;

        if (l->drawn.line && (l->ranks->alive > 0 || l->over) && !say_shows_live())
                say_live(l->drawn.line, l->drawn.bar);
}

/* Tells of the order before the next second. */
static void show_stop(struct live_line *l, int64_t us)
{
        l->stopped_us = us;
        if (!l->tty)
                return;
        l->again = false;
        uv_timer_start(&l->timer, on_live_tick, SOON_MS, 0);
}

static void on_live_event(void *ctx, const struct event *e)
{
        struct live_line *l = ctx;

        /* A listener cannot leave the event stream. */
        if (l->closing)
                return;
        if (e->kind == EVENT_RESTART) {
                l->spares = e->count;
                strv_finish(&l->waits);
        }
        if (e->kind == EVENT_ROLE_WAITS)
                strv_env_set(&l->waits, e->brief, e->text);
        if (e->kind == EVENT_ROLE_RESTART) {
                CLEANUP(free_textp) char *text = xasprintf("role %s starts again", e->brief);

                strv_env_set(&l->waits, e->brief, text);
        }
        if (e->kind == EVENT_ROLE_STARTS)
                strv_env_unset(&l->waits, e->brief);
        if (e->kind == EVENT_STOP)
                show_stop(l, e->us);
        /* A lost node is no longer silent: the end of its ranks is told elsewhere. */
        if (e->kind == EVENT_NODE_SILENT || e->kind == EVENT_NODE_HEARD ||
            e->kind == EVENT_NODE_LOST)
                l->silent[e->node] = e->kind == EVENT_NODE_SILENT;
        else if (e->kind == EVENT_RESTART ||
                 (e->kind == EVENT_RANK_EXITED && e->rank == l->bar.rank))
                l->bar.len = 0;
}

/* --- life cycle ------------------------------------------------------------------------------- */

struct live_line *live_line_create(uv_loop_t *loop, struct events *es, struct rank_board *ranks,
                                   const struct hosts *hosts, bool tty)
{
        struct live_line *l = xcalloc(1, sizeof(*l));

        *l = (struct live_line){ .es = es, .ranks = ranks, .hosts = hosts, .tty = tty };
        l->silent = xcalloc(hosts->n, sizeof(*l->silent));
        uv_timer_init(loop, &l->timer);
        l->timer.data = l;
        /* The line alone does not keep the loop of a job running. */
        uv_unref((uv_handle_t *)&l->timer);
        uv_timer_init(loop, &l->soon);
        l->soon.data = l;
        uv_unref((uv_handle_t *)&l->soon);
        uv_timer_start(&l->timer, on_live_tick, live_line_due_ms(loop), 0);
        events_listen(es, on_live_event, l);
        return l;
}

/* Keeps the newest state of a bar: text between carriage returns, behind the last newline. Of
 * several ranks the lowest one's bar stays, up to its newline or the end of the rank. */
static void take_bar(struct newest_bar *bar, int rank, uint8_t stream, const char *data, size_t len)
{
        const char *nl = memrchr(data, '\n', len), *p = nl ? nl + 1 : data;
        size_t n = len - (size_t)(p - data), body = redraw_body((const unsigned char *)p, n);
        ssize_t cr = redraw_last((const unsigned char *)p, body);

        if (bar->len && rank > bar->rank)
                return;
        if (nl && rank == bar->rank && stream == bar->stream)
                bar->len = 0;
        /* Without a carriage return the text is a line that goes on, not a state. */
        if (cr < 0 && body == n)
                return;
        p += cr + 1;
        body -= (size_t)(cr + 1);
        if (redraw_is_blank((const unsigned char *)p, body))
                return;
        bar->rank = rank;
        bar->stream = stream;
        bar->len = MIN(body, sizeof(bar->text));
        memcpy(bar->text, p, bar->len);
}

void live_line_output(struct live_line *l, int rank, uint8_t stream, const void *data, size_t len)
{
        if (!l)
                return;
        l->bytes += len;
        l->written_us = events_now_us(l->es);
        if (l->tty && l->drawn.line && !uv_is_active((uv_handle_t *)&l->soon))
                uv_timer_start(&l->soon, on_live_soon, SOON_MS, 0);
        take_bar(&l->bar, rank, stream, data, len);
}

void live_line_slow(struct live_line *l, const char *text)
{
        if (!l)
                return;
        free(l->slow);
        l->slow = text ? xstrdup(text) : NULL;
}

/* Frees the line with the last of its timers: libuv reads each until its own callback. */
static void on_live_closed(uv_handle_t *h)
{
        struct live_line *l = h->data;

        if (--l->closing)
                return;
        free(l->silent);
        free(l->drawn.line);
        free(l->drawn.bar);
        free(l->names.running);
        free(l->slow);
        strv_finish(&l->waits);
        free(l);
}

void live_line_close(struct live_line *l)
{
        if (!l)
                return;
        l->closing = 2;
        uv_close((uv_handle_t *)&l->soon, on_live_closed);
        uv_close((uv_handle_t *)&l->timer, on_live_closed);
}
