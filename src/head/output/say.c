/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text goes to a copy, if one is wanted, and then either to the printer, while ranks write, or to
 * stderr itself. Without a printer the state of the last line is kept here: whether the live line
 * stands there and must be erased, and whether an unfinished line needs a newline first.
 * say_briefly() arms a timer signal for the end of the process: a terminal that does not read must
 * not hold up the exit.
 */
#include "head/output/say.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/printable.h"
#include "head/options/options.h"
#include "head/output/printer.h"
#include "head/term/columns.h"

enum { BRIEF_MS = 1000 };

/* One state for the process: stderr is one stream, and messages come from all parts. */
static struct {
        struct printer *printer; /* NULL = ranks do not write */
        bool unfinished;         /* the output of ranks ended within a line */
        size_t live;             /* columns of the live line; 0 = none is shown */
        int stdout_error;        /* errno of the first failed write */
        void (*copy)(void *ctx, const char *text, size_t len); /* NULL = none */
        void *copy_ctx;
} own;

/* stdio forgets the errno of a write that has failed before, and drops the bytes. Another write
 * fails in the same way; an empty one would not. */
int say_stdout_error(void)
{
        bool failed = ferror(stdout);

        errno = 0;
        if ((fflush(stdout) || failed) && !own.stdout_error) {
                if (!errno)
                        (void)!write(STDOUT_FILENO, "\n", 1);
                own.stdout_error = errno ? errno : EIO;
        }
        return own.stdout_error;
}

int say_close_stdout(char **ret_name)
{
        int error = say_stdout_error();

        *ret_name = error ? say_name_stream("standard output", STDOUT_FILENO) : NULL;
        if (close(STDOUT_FILENO) < 0 && !error) {
                error = errno;
                *ret_name = xstrdup("standard output");
        }
        return error;
}

char *say_name_stream(const char *name, int fd)
{
        char link[64], path[4096];
        struct stat s;
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? readlink(link, path, sizeof(path)) : -1;
        return n > 0 ? xasprintf("%s (%.*s)", name, (int)n, path) : xstrdup(name);
}

bool say_has_color(const struct options *o)
{
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        if (o->color != AUTO)
                return o->color == YES;
        return isatty(STDERR_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

void say_through(struct printer *p)
{
        if (!p && own.printer)
                own.unfinished = printer_is_mid_line(own.printer);
        own.printer = p;
}

/* Does nothing: a handler, unlike SIG_IGN, makes write() return with EINTR. */
static void on_brief_over(int signo UNUSED)
{
}

/* The timer repeats, because the exit may have several writes to a reader that does not read. */
void say_briefly(void)
{
        const struct sigaction over = { .sa_handler = on_brief_over }; /* no SA_RESTART */
        const struct timeval ms = { BRIEF_MS / 1000, BRIEF_MS % 1000 * 1000 };

        sigaction(SIGALRM, &over, NULL);
        setitimer(ITIMER_REAL, &(struct itimerval){ ms, ms }, NULL);
}

/* Begins a line on stderr itself. */
static void begin_stderr_line(void)
{
        say_erase();
        if (own.unfinished)
                fputc('\n', stderr);
        own.unfinished = false;
}

void say_copy_to(void (*copy)(void *ctx, const char *text, size_t len), void *ctx)
{
        own.copy = copy;
        own.copy_ctx = ctx;
}

static void keep_copy(const char *text, size_t n)
{
        if (own.copy && n)
                own.copy(own.copy_ctx, text, n);
}

/* Shows a text without a copy for the records. Standard output is flushed first, so lines of both
 * streams come in order where both are one file. */
static void show_text(const char *text, size_t n)
{
        if (own.printer && n) {
                printer_tell(own.printer, text, n);
        } else if (n) {
                say_stdout_error();
                begin_stderr_line();
                fwrite(text, 1, n, stderr);
        }
}

static void put_text(const char *text, size_t n)
{
        keep_copy(text, n);
        show_text(text, n);
}

void say_live(const char *text, const char *bar)
{
        size_t columns = columns_of_terminal(STDERR_FILENO), n;

        if (own.printer) {
                printer_draw_live(own.printer, text, bar);
                return;
        }
        /* say_erase() erases one line. */
        text = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
        n = columns_fitting(text, strlen(text), MAX(columns, (size_t)1) - 1);
        begin_stderr_line();
        fwrite(text, 1, n, stderr);
        fflush(stderr);
        own.live = MAX(columns_count(text, n), (size_t)1);
}

bool say_shows_live(void)
{
        return own.printer ? printer_shows_live(own.printer) : own.live > 0;
}

void say_erase(void)
{
        size_t columns = own.live ? columns_of_terminal(STDERR_FILENO) : 1;

        if (own.live)
                fputs("\r\033[K", stderr);
        for (size_t wrapped = columns; wrapped < own.live; wrapped += columns)
                fputs("\033[A\033[K", stderr); /* the terminal has become narrower */
        own.live = 0;
}

void say(const char *fmt, ...)
{
        va_list ap;
        char *text;

        va_start(ap, fmt);
        text = xvasprintf(fmt, ap);
        va_end(ap);
        put_text(text, strlen(text));
        free(text);
}

void say_after_entry(int fd)
{
        struct termios modes;

        if (own.printer && tcgetattr(fd, &modes) == 0 && modes.c_lflag & ECHO)
                printer_end_entered_line(own.printer, fd);
}

void say_after_key(void)
{
        if (own.printer)
                printer_erase_echo(own.printer);
}

static void put_diags(const struct diags *d, bool color,
                      void (*print)(const struct diags *d, FILE *to, bool color),
                      void (*put)(const char *text, size_t n))
{
        char *text = NULL;
        size_t n = 0;
        FILE *f = d->n ? open_memstream(&text, &n) : NULL;

        if (!f)
                return;
        print(d, f, color);
        fclose(f);
        put(text, n);
        free(text);
}

void say_diags(const struct diags *d, bool color)
{
        put_diags(d, color, diags_print, keep_copy);
        put_diags(d, color, diags_print_on_screen, show_text);
}

void say_to_stdout(const char *line)
{
        if (printer_same_file(STDOUT_FILENO, STDERR_FILENO)) {
                put_text(line, strlen(line));
        } else {
                fputs(line, stdout);
                say_stdout_error();
        }
}

static void say_warning(int id, const char *line, bool color)
{
        struct diags d = DIAGS_INIT;

        diag_warn(&d, id, "%s", line);
        say_diags(&d, color);
        diags_finish(&d);
}

void say_log(void *color, enum log_level level UNUSED, int id, const char *line)
{
        CLEANUP(free_textp) char *safe = printable_text(line, PRINTABLE_LINE);

        if (id)
                say_warning(id, line, *(const bool *)color);
        else
                say("hnlaunch: %s\n", safe);
}
