/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop waits for lines of the run, an answer to why, keys and signals, and paints the screen
 * anew after each. Signals come only within ppoll(): none is missed, and none interrupts ncurses.
 * ncurses itself handles SIGWINCH, and returns a key for the signal.
 */
#include "head/top/screen/top_screen.h"

#include <errno.h>
#include <langinfo.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/intlist.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/model/step_rate.h"
#include "head/term/columns.h"
#include "head/top/top_frame.h"
#include "head/top/top_layout.h"
#include "head/top/top_lines.h"
#include "head/top/top_view.h"

enum {
        SILENT_AFTER_MS = 3000, /* without a line of the run */
        ESCAPE_MS = 25,         /* between the bytes of a key */
        TICK_MS = 1000,
};

/* What the rows between head and foot show, and where keys go. */
enum top_mode { MODE_ROWS, MODE_FILTER, MODE_HELP, MODE_WHY, MODE_STOP };

static volatile sig_atomic_t ending; /* number of a signal to end */

/* All state of the screen, between top_screen_show() and its return. */
struct top_paint {
        const struct top_screen *s;
        struct top_lines lines, why;
        int why_fd;     /* -1 = no answer is to come */
        char *why_text; /* NULL = no answer yet */
        struct top_frame frame;
        struct step_rate *rate;
        struct top_view view;
        enum top_mode mode;
        int64_t heard_ms; /* clock_ms() of the last frame */
        bool quit, ascii; /* @ascii: the locale is not UTF-8 */
};

static const char *const help_lines[] = {
        "q                                 quit; the run goes on",
        "up, down, PgUp, PgDn, Home, End   move",
        "Enter, right, left                show or hide the ranks of a host",
        "u                                 show or hide the ranks of all hosts",
        "l                                 logs of the host or rank; Ctrl-C: back",
        "s                                 sort: odd hosts first, by host, lag, wait, cpu, mem, "
        "gpu, net, out",
        "/                                 show hosts with a part of their name; Esc: all",
        "w                                 ask why ranks wait, as hnlaunch why",
        "S                                 stop the run, as hnlaunch stop",
        "",
        "UP    ranks that live; of a rank the state of its process: R runs, S sleeps, D waits for "
        "a device, T is stopped",
        "LAG   steps behind the furthest rank",
        "WAIT  the longest wait in the store of hnlaunch",
        "BUSY  share of the last 10 s in which it did not wait for others; ~ by many looks at its "
        "process, else by its requests to the store; - not known: all may be spinning",
        "CPU   of all cores of the host; of a rank, percent of a core",
        "OUT   time since the last output",
};

/* Only notes the signal: the loop ends, and top_screen_show() restores the terminal. */
static void on_end_signal(int signo)
{
        ending = signo;
}

/* --- painting --------------------------------------------------------------------------------- */

/* Paints a line of printable text, at most as wide as the screen. */
static void paint_line(const struct top_paint *p, int y, struct buf *line, int attribute)
{
        char *text;
        size_t n;

        buf_append(line, "", 1);
        /* The bytes are this function's own until buf_clear(). */
        text = (char *)(uintptr_t)buf_data(line);
        for (char *c = text; p->ascii && *c; c++)
                if ((unsigned char)*c >= 0x80)
                        *c = '?';
        n = columns_fitting(text, strlen(text), (size_t)COLS);
        attrset(attribute);
        mvaddnstr(y, 0, text, (int)n);
        /* The bar of the cursor reaches to the right edge. */
        if (attribute & A_REVERSE)
                mvchgat(y, 0, -1, (attr_t)attribute, 0, NULL);
        attrset(A_NORMAL);
        buf_clear(line);
}

/* The same of a text that may have bytes for a terminal to obey. */
static void paint_text(const struct top_paint *p, int y, const char *text, int attribute)
{
        struct buf line = BUF_INIT;

        printable_put(&line, text, strlen(text));
        paint_line(p, y, &line, attribute);
        buf_finish(&line);
}

/* Paints a paragraph, broken at blanks, from line @y on; later lines begin behind @indent blanks.
 * Returns the next line. */
static int paint_paragraph(const struct top_paint *p, int y, size_t indent, const char *text)
{
        CLEANUP(free_textp) char *plain = printable_text(text, PRINTABLE_LINE);
        size_t blanks = 0, least = strspn(plain, " ");
        const char *at = plain;

        for (; *at && y < LINES - 1; y++) {
                size_t room = (size_t)MAX(COLS, (int)blanks + 1) - blanks;
                size_t n = columns_fitting(at, strlen(at), room), cut = n;

                /* Not within the blanks of the beginning, which are an indent. */
                while (at[n] && cut > least && at[cut] != ' ')
                        cut--;
                n = cut > least ? cut : MAX(n, (size_t)1);
                CLEANUP(free_textp) char *line = xasprintf("%*s%.*s", (int)blanks, "", (int)n, at);

                paint_text(p, y, line, A_NORMAL);
                at += n;
                at += strspn(at, " ");
                blanks = indent;
                least = 0;
        }
        return y;
}

/* Paints the keys and columns; a long text goes on below its own beginning, not below the key. */
static void paint_help(const struct top_paint *p)
{
        int y = 2;

        for (size_t i = 0; i < ARRAY_SIZE(help_lines); i++) {
                const char *text = help_lines[i], *gap = strstr(text, "  ");
                size_t indent = gap ? (size_t)(gap - text) + strspn(gap, " ") : 0;

                y = *text ? paint_paragraph(p, y, MIN(indent, (size_t)COLS / 2), text) : y + 1;
        }
}

/* Paints the last line: keys that fit, the most needed first, or the question of the mode. */
static void paint_foot(const struct top_paint *p)
{
        const struct top_view *v = &p->view;
        CLEANUP(free_textp) char *sort = xasprintf("s sort: %s", top_view_sort_name(v->sort));
        CLEANUP(free_textp)
        char *filter = xasprintf(*v->filter ? "/ %s" : "/ filter%s", v->filter);
        const char *pieces[] = { "q quit", "? help", sort,     filter, "Enter ranks",
                                 "w why",  "l logs", "S stop", "u all" };
        struct buf line = BUF_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(pieces) && p->mode == MODE_ROWS; i++)
                if (columns_count((const char *)buf_data(&line), buf_len(&line)) +
                            strlen(pieces[i]) + 2 <=
                    (size_t)COLS)
                        buf_printf(&line, i ? "  %s" : "%s", pieces[i]);
        if (p->mode == MODE_FILTER)
                buf_printf(&line, "hosts with: %s", v->filter);
        else if (p->mode == MODE_STOP)
                buf_printf(&line, "stop run %s? y stops it, any other key: back", p->frame.run);
        else if (p->mode != MODE_ROWS)
                buf_appends(&line, "any key: back");
        paint_line(p, LINES - 1, &line, A_DIM);
        buf_finish(&line);
}

/* The line of the titles: below the head, and the cause of a hang. */
static int titles_line(const struct top_paint *p)
{
        return p->frame.pace.hang ? 2 : 1;
}

/* Returns the lines between titles and foot, at least one. */
static size_t page_rows(const struct top_paint *p)
{
        return (size_t)MAX(LINES - 2 - titles_line(p), 1);
}

/* The place of a host in the order. */
static size_t find_order_place(const struct top_view *v, size_t host)
{
        size_t at = 0;

        while (v->order[at] != host)
                at++;
        return at;
}

/* Paints the table. The columns are chosen for each frame, so that a column appears with its first
 * value. */
static void paint_rows(const struct top_paint *p)
{
        const struct top_view *v = &p->view;
        struct top_layout layout;
        struct buf line = BUF_INIT;

        top_layout_choose(&layout, &p->frame, (size_t)COLS);
        if (top_layout_hang(&p->frame, (size_t)COLS, &line))
                paint_line(p, 1, &line, A_BOLD);
        top_layout_titles(&layout, &line);
        paint_line(p, titles_line(p), &line, A_BOLD);
        for (size_t i = v->first; i < v->n_rows && i < v->first + page_rows(p); i++) {
                const struct top_row *r = &v->rows[i];
                const struct top_frame_host *h = &p->frame.hosts[r->host];
                enum top_oddity odd = r->rank < 0 ? h->odd.worst : h->ranks[r->rank].odd;

                if (r->rank == TOP_ROW_ALIKE)
                        top_layout_alike(&p->frame, v->order, find_order_place(v, r->host),
                                         r->alike, &line);
                else if (r->rank < 0)
                        top_layout_host(&layout, &p->frame, h, &line);
                else
                        top_layout_rank(&layout, &p->frame, &h->ranks[r->rank], &line);
                paint_line(p, titles_line(p) + 1 + (int)(i - v->first), &line,
                           (odd != ODD_NOT ? A_BOLD : A_NORMAL) |
                                   (i == v->selected ? A_REVERSE : A_NORMAL));
        }
        buf_finish(&line);
}

/* Paints everything; ncurses sends only what has changed. */
static void paint_screen(struct top_paint *p)
{
        int64_t silent_ms = clock_ms() - p->heard_ms;
        struct buf line = BUF_INIT;
        char age[24];

        erase();
        if (!p->frame.json) {
                buf_appends(&line, "waiting for the run");
                /* A run writes a line each second: the head hangs, or its machine is overloaded. */
        } else if (silent_ms >= SILENT_AFTER_MS) {
                top_frame_age(silent_ms, age, sizeof(age));
                buf_printf(&line, "no answer for %s  ", age);
                top_layout_head(&p->frame, p->rate, (size_t)COLS, &line);
        } else {
                top_layout_head(&p->frame, p->rate, (size_t)COLS, &line);
        }
        paint_line(p, 0, &line, A_BOLD);
        buf_finish(&line);
        if (p->mode == MODE_HELP)
                paint_help(p);
        else if (p->mode == MODE_WHY)
                paint_paragraph(p, 2, 0, p->why_text ? p->why_text : "asking ...");
        else if (p->frame.json)
                paint_rows(p);
        paint_foot(p);
        refresh();
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Drops an answer, or what has come of it. */
static void end_why(struct top_paint *p)
{
        fd_close(p->why_fd);
        p->why_fd = -1;
        top_lines_finish(&p->why);
}

/* Asks why ranks wait. While an answer is to come, another key asks nothing new and waits for the
 * same answer. */
static void begin_why_look(struct top_paint *p)
{
        struct error err = { 0 };

        free(p->why_text);
        p->why_text = NULL;
        p->mode = MODE_WHY;
        if (p->why_fd < 0)
                p->why_fd = p->s->ask_why(p->s->ctx, &err);
        if (p->why_fd < 0)
                p->why_text = xstrdup(err.text);
}

/* An error of the order is shown where answers to why are. */
static void end_stop_question(struct top_paint *p, bool yes)
{
        struct error err = { 0 };

        p->mode = MODE_ROWS;
        if (!yes || p->s->stop(p->s->ctx, &err) == 0)
                return;
        free(p->why_text);
        p->why_text = xstrdup(err.text);
        p->mode = MODE_WHY;
}

/* Leaves the screen for the logs of the row of the cursor: a rank, or all ranks of a host. */
static void show_logs_of_row(const struct top_paint *p)
{
        const struct top_row *r = p->view.n_rows ? &p->view.rows[p->view.selected] : NULL;
        const struct top_frame_host *h;
        struct intlist ranks = { 0 };

        if (!r || r->rank == TOP_ROW_ALIKE)
                return;
        h = &p->frame.hosts[r->host];
        for (size_t i = 0; i < h->n_ranks; i++)
                if (r->rank < 0 || (size_t)r->rank == i)
                        intlist_add(&ranks, (int)h->ranks[i].rank);
        CLEANUP(free_textp) char *text = intlist_fold(&ranks);

        intlist_finish(&ranks);
        endwin();
        p->s->show_logs(p->s->ctx, text);
        /* The logs have overwritten the screen: paint all of it. */
        clearok(curscr, true);
        refresh();
}

/* Changes the filter, which takes effect with each key. Keys beyond ASCII come as several bytes and
 * are ignored. */
static void take_filter_key(struct top_paint *p, int key)
{
        char *filter = p->view.filter;
        size_t n = strlen(filter);

        if (key == '\n' || key == '\r' || key == KEY_ENTER)
                p->mode = MODE_ROWS;
        else if (key == '\033')
                *filter = '\0', p->mode = MODE_ROWS;
        else if ((key == KEY_BACKSPACE || key == '\b' || key == 127) && n)
                filter[n - 1] = '\0';
        else if (key >= ' ' && key < 127 && n + 1 < sizeof(p->view.filter))
                filter[n] = (char)key, filter[n + 1] = '\0';
        top_view_update(&p->view, &p->frame, page_rows(p));
}

/* Returns whether the key moves, opens or sorts. */
static bool take_view_key(struct top_paint *p, int key)
{
        static const struct {
                int key;
                enum top_key means;
        } keys[] = {
                { KEY_UP, TOP_KEY_UP },         { 'k', TOP_KEY_UP },
                { KEY_DOWN, TOP_KEY_DOWN },     { 'j', TOP_KEY_DOWN },
                { KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
                { ' ', TOP_KEY_PAGE_DOWN },     { KEY_HOME, TOP_KEY_FIRST },
                { KEY_END, TOP_KEY_LAST },      { '\n', TOP_KEY_TOGGLE },
                { '\r', TOP_KEY_TOGGLE },       { KEY_ENTER, TOP_KEY_TOGGLE },
                { KEY_RIGHT, TOP_KEY_OPEN },    { KEY_LEFT, TOP_KEY_CLOSE },
                { 'u', TOP_KEY_ALL },           { 's', TOP_KEY_SORT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (keys[i].key == key) {
                        top_view_key(&p->view, &p->frame, keys[i].means, page_rows(p));
                        return true;
                }
        return false;
}

/* KEY_RESIZE comes in any mode and changes none. */
static void take_screen_key(struct top_paint *p, int key)
{
        if (key == KEY_RESIZE)
                top_view_update(&p->view, &p->frame, page_rows(p));
        else if (p->mode == MODE_FILTER)
                take_filter_key(p, key);
        else if (p->mode == MODE_STOP)
                end_stop_question(p, key == 'y' || key == 'Y');
        else if (p->mode != MODE_ROWS)
                p->mode = MODE_ROWS;
        else if (key == 'q')
                p->quit = true;
        else if (key == '?' || key == 'h')
                p->mode = MODE_HELP;
        else if (key == '/')
                p->mode = MODE_FILTER;
        else if (key == '\033')
                *p->view.filter = '\0', top_view_update(&p->view, &p->frame, page_rows(p));
        else if (key == 'w')
                begin_why_look(p);
        else if (key == 'l')
                show_logs_of_row(p);
        else if (key == 'S' && p->frame.json)
                p->mode = MODE_STOP;
        else
                take_view_key(p, key);
}

/* --- what comes ------------------------------------------------------------------------------- */

/* Returns whether the run goes on. */
static bool take_run_lines(struct top_paint *p, json_t **ret_end)
{
        struct top_frame frame;
        json_t *j = NULL;
        ssize_t n;

        /* Reads all that is there: only the newest line counts. */
        while ((n = top_lines_read(&p->lines, p->s->fd)) > 0)
                ;
        j = top_lines_take(&p->lines);
        /* The last line of a run that has ended. */
        if (j && !json_object_get(j, "hosts")) {
                *ret_end = j;
                return false;
        }
        if (j && top_frame_read(&frame, j)) {
                top_frame_finish(&p->frame);
                p->frame = frame;
                step_rate_add(p->rate, frame.us, frame.step);
                p->heard_ms = clock_ms();
                top_view_update(&p->view, &p->frame, page_rows(p));
        }
        return n == -EAGAIN || n == -EINTR;
}

/* Reads what has come of an answer: each line replaces the text, the last one has no "more". An end
 * without such a line keeps the text so far. */
static void take_why_lines(struct top_paint *p)
{
        ssize_t n = top_lines_read(&p->why, p->why_fd);
        json_t *j = top_lines_take(&p->why);
        const char *text = json_string_value(json_object_get(j, "text"));

        if (text) {
                free(p->why_text);
                p->why_text = xstrdup(text);
        }
        if ((j && !json_object_get(j, "more")) || (n <= 0 && n != -EAGAIN && n != -EINTR))
                end_why(p);
        json_decref(j);
}

/* Waits for an event, and handles all events. Returns as take_run_lines(). */
static bool turn_screen(struct top_paint *p, const sigset_t *mask, json_t **ret_end)
{
        struct pollfd v[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                              { .fd = p->s->fd, .events = POLLIN },
                              { .fd = p->why_fd, .events = POLLIN } };
        struct timespec tick = { TICK_MS / 1000, 0 };
        int key, n = ppoll(v, ARRAY_SIZE(v), &tick, mask);
        bool goes_on = true;

        if (n > 0 && v[1].revents)
                goes_on = take_run_lines(p, ret_end);
        if (n > 0 && v[2].revents)
                take_why_lines(p);
        /* Also without input: SIGWINCH becomes a key of ncurses. */
        while (!p->quit && (key = getch()) != ERR)
                take_screen_key(p, key);
        if (n > 0 && v[0].revents & (POLLHUP | POLLERR))
                p->quit = true; /* the terminal is gone */
        return goes_on;
}

/* --- life cycle ------------------------------------------------------------------------------- */

static const int end_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

/* Has signals come within ppoll() only. */
static void catch_signals(struct sigaction *before, sigset_t *mask)
{
        struct sigaction end = { .sa_handler = on_end_signal };
        sigset_t blocked;

        ending = 0;
        sigemptyset(&blocked);
        /* Blocked, as the others, so that a new size cannot come between painting and ppoll(). */
        sigaddset(&blocked, SIGWINCH);
        for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++) {
                sigaction(end_signals[i], NULL, &before[i]);
                /* As under nohup: stays ignored. */
                if (before[i].sa_handler == SIG_IGN)
                        continue;
                sigaction(end_signals[i], &end, NULL);
                sigaddset(&blocked, end_signals[i]);
        }
        sigprocmask(SIG_BLOCK, &blocked, mask);
}

/* Undoes catch_signals(); a signal that is still pending comes now, to the handler of before. */
static void release_signals(const struct sigaction *before, const sigset_t *mask)
{
        for (size_t i = 0; i < ARRAY_SIZE(end_signals); i++)
                sigaction(end_signals[i], &before[i], NULL);
        sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Takes the terminal over. False: the terminal is unknown, or cannot address the cursor, such as
 * "dumb". */
static bool open_screen(SCREEN **ret)
{
        *ret = newterm(NULL, stdout, stdin);
        if (!*ret)
                return false;
        /* NULL and -1 are the two ways in which terminfo says no. */
        if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
                endwin();
                delscreen(*ret);
                return false;
        }
        cbreak();
        noecho();
        nonl();
        keypad(stdscr, true);
        nodelay(stdscr, true);
        /* The default of ncurses, a second, makes Esc feel broken. */
        set_escdelay(ESCAPE_MS);
        curs_set(0);
        return true;
}

enum top_screen_end top_screen_show(const struct top_screen *s, json_t **ret_end, int *ret_signal)
{
        struct step_rate rate = { 0 };
        struct top_paint p = { .s = s, .why_fd = -1, .rate = &rate, .heard_ms = clock_ms() };
        struct sigaction before[ARRAY_SIZE(end_signals)];
        /* newterm() and not initscr(), which ends the process on an unknown terminal. */
        SCREEN *screen;
        bool goes_on = true;
        sigset_t mask;

        *ret_signal = 0;
        *ret_end = NULL;
        if (!open_screen(&screen))
                return TOP_SCREEN_NO_CURSOR;
        p.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
        catch_signals(before, &mask);
        top_view_init(&p.view);
        while (goes_on && !p.quit && !ending) {
                paint_screen(&p);
                goes_on = turn_screen(&p, &mask, ret_end);
        }
        endwin();
        delscreen(screen);
        release_signals(before, &mask);
        end_why(&p);
        free(p.why_text);
        top_view_finish(&p.view);
        top_frame_finish(&p.frame);
        top_lines_finish(&p.lines);
        *ret_signal = goes_on ? ending : 0;
        return goes_on ? TOP_SCREEN_QUIT : TOP_SCREEN_RUN_ENDED;
}
