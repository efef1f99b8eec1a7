/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the lines. Each line has a form (reason_forms.c), is the head of a traceback of
 * Python, is a frame below a message (Java, JavaScript, Julia), or is plain. A form for the reason
 * of an end makes a candidate, whose text may take in lines below. The newest candidate stays, but
 *
 *   - a weak candidate replaces only another weak one: "terminate called without an active
 *     exception" behind a traceback, torchrun's ChildFailedError behind the traceback of its child;
 *   - a report of a lost peer replaces any other reason only if plain lines stand between the two:
 *     the program had gone on.
 *
 * At the end a candidate counts if only chatter and frames follow, if a launcher has reported the
 * failure of its process, or if the exit code fits the form: 1 for an exception of Python. Else the
 * last plain line counts, as the program may have survived a traceback.
 */
#include "head/reason/reason.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory.h"
#include "head/reason/reason_forms.h"
#include "head/reason/reason_lines.h"
#include "head/term/columns.h"

enum {
        SHORT = 118, /* bytes of both parts, above which the first is cut */
        HEAD = 60,   /* bytes of the first part then */
        BELOW = 64,  /* lines searched for the second part */
};

#define PYTHON_HEAD "Traceback (most recent call last)"

struct reason_search {
        struct reason_lines lines;
        size_t at;                /* the next line */
        struct reason best;       /* the candidate; source REASON_NONE = none */
        enum reason_kind kind;    /* of the candidate */
        unsigned ends;            /* exit codes of its form */
        bool followed, confirmed; /* by plain lines; by a launcher */
        size_t weak_end;          /* a traceback is weak if its head is above this line */
        struct reason cause;      /* the direct cause, as Python prints, of the next exception */
        size_t plain, chatter, launcher; /* the last such line, lines.n = none */
};

/* Returns a line, "" beyond the last: readers look ahead without a check. */
static const char *line_at(const struct reason_search *s, size_t i)
{
        return i < s->lines.n ? s->lines.v[i] : "";
}

static bool begins_with(const char *line, const char *text)
{
        return !strncmp(line, text, strlen(text));
}

/* Sets the text to @n bytes of @head, and @more behind @between. A long head is cut, so that both
 * fit on the last line. */
static void join_text(struct reason *r, const char *head, size_t n, const char *between,
                      const char *more)
{
        bool cut = *more && n > HEAD && n + strlen(between) + strlen(more) > SHORT;

        head += strspn(head, " \t") < n ? strspn(head, " \t") : 0;
        n = strnlen(head, n);
        if (cut)
                n = columns_char_start(head, HEAD < n ? HEAD : n);
        snprintf(r->text, sizeof(r->text), "%.*s%s%s%s", (int)(n < 4096 ? n : 4096), head,
                 cut ? "..." : "", *more ? between : "", more);
        /* A full text may end within a character. */
        n = strlen(r->text);
        if (n + 1 == sizeof(r->text))
                r->text[columns_char_start(r->text, n - 1)] = '\0';
        r->source = REASON_KNOWN;
}

/* --- candidates ------------------------------------------------------------------------------- */

/* Makes a reason the candidate unless the present one is better; see above. */
static void offer_reason(struct reason_search *s, const struct reason *r, enum reason_kind kind,
                         unsigned ends)
{
        bool have = s->best.source != REASON_NONE && s->kind != LINE_WEAK;

        /* The weak reason is often the report of a launcher, such as torchrun's
         * ChildFailedError. */
        s->confirmed |= kind == LINE_WEAK;
        if (have && (kind == LINE_WEAK || kind == LINE_THREAD ||
                     (kind == LINE_PEER && s->kind == LINE_REASON && !s->followed)))
                return;
        s->best = *r;
        s->best.echo = kind == LINE_PEER;
        s->kind = kind == LINE_THREAD ? LINE_WEAK : kind;
        s->ends = ends;
        s->followed = s->confirmed = false;
}

/* Whether a line begins like an exception of Python: "ValueError: text",
 * "torch.cuda.OutOfMemoryError". */
static bool is_exception(const char *line)
{
        size_t n = 0;

        while (isalnum((unsigned char)line[n]) || (unsigned char)line[n] >= 0x80 ||
               (line[n] && strchr("_.<>", line[n])))
                n++;
        return n && !isdigit((unsigned char)*line) && (!line[n] || line[n] == ':');
}

/* Returns the text behind the box of a line in a group of exceptions; NULL = not in a group. */
static const char *open_box(const char *line)
{
        line += strspn(line, " ");
        if (*line == '+')
                return line;
        if (*line != '|')
                return NULL;
        return line + 1 + (line[1] == ' ');
}

/* Offers the first single exception of a group, else the outermost group. */
static void read_exception_group(struct reason_search *s)
{
        const char *text, *group = NULL, *first = NULL;
        /* The next line of text may be an exception: at the beginning, and behind each edge of a
         * box. */
        bool due = true;

        for (; s->at < s->lines.n && (text = open_box(line_at(s, s->at))); s->at++) {
                if (*text == '+') {
                        due = true;
                } else if (due && is_exception(text)) {
                        due = false;
                        if (strstr(text, " sub-exception"))
                                group = group ? group : text;
                        else
                                first = first ? first : text;
                }
        }
        if (first || group) {
                struct reason r = { 0 };

                join_text(&r, first ? first : group, strlen(first ? first : group), "", "");
                offer_reason(s, &r, reason_forms_weigh(r.text), END_1);
        }
}

/* Whether a line belongs to the frames of a traceback indented by @indent, also in a box of
 * rich. */
static bool is_framed(const char *line, size_t indent)
{
        static const char *const sides[] = { "\u2502", "\u2570", "\u256d", "|", "+" };

        for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
                if (begins_with(line, sides[i]))
                        return true;
        return !*line || reason_lines_indent(line) > indent;
}

/* Moves to the line behind the frames of a traceback. */
static void skip_frames(struct reason_search *s, size_t indent)
{
        while (s->at < s->lines.n && is_framed(line_at(s, s->at), indent))
                s->at++;
}

/* Returns the text below a line that ends in ":", "" = none. */
static const char *read_rest(struct reason_search *s, const char *line)
{
        size_t n = strlen(line), next;

        if (!n || line[n - 1] != ':')
                return "";
        next = reason_lines_next(&s->lines, s->at);
        if (next == s->lines.n || strstr(line_at(s, next), PYTHON_HEAD) ||
            reason_forms_find(line_at(s, next)))
                return "";
        s->at = next + 1;
        return line_at(s, next) + reason_lines_indent(line_at(s, next));
}

/* Returns the kind of an exception, from its first line and a few more lines of its text. */
static enum reason_kind weigh_exception(const struct reason_search *s, const struct reason *r)
{
        enum { ROWS = 4 };
        enum reason_kind kind = reason_forms_weigh(r->text);

        for (size_t i = s->at; i < s->at + ROWS && kind == LINE_REASON; i++) {
                const char *line = line_at(s, i);

                if (!*line || strstr(line, PYTHON_HEAD) || reason_forms_find(line))
                        break;
                if (reason_forms_weigh(line) == LINE_PEER)
                        kind = LINE_PEER;
        }
        return s->at < s->weak_end ? LINE_THREAD : kind;
}

/* Offers the exception behind the frames of a traceback indented by @indent. */
static void read_traceback(struct reason_search *s, size_t indent)
{
        size_t weak_end = s->weak_end > s->at ? s->lines.n : 0;
        struct reason r = { 0 }, whole;
        const char *line;

        skip_frames(s, indent);
        line = line_at(s, s->at);
        if (!is_exception(line + reason_lines_indent(line)))
                return;
        s->at++;
        join_text(&r, line, strlen(line), " ", read_rest(s, line));
        whole = r;
        if (s->cause.source && strcmp(s->cause.text, r.text) != 0)
                join_text(&whole, r.text, strlen(r.text), ", caused by ", s->cause.text);
        s->weak_end = weak_end;
        offer_reason(s, &whole, weigh_exception(s, &whole), END_1);
        s->weak_end = 0;
        s->cause.source = REASON_NONE;
        if (begins_with(line_at(s, reason_lines_next(&s->lines, s->at)),
                        "The above exception was the direct cause"))
                s->cause = r;
}

/* Reads a traceback of Python if the line is the head, or the first frame of a traceback without a
 * head. False = neither. */
static bool take_traceback(struct reason_search *s, const char *line)
{
        size_t indent = reason_lines_indent(line);
        bool frame = begins_with(line + indent, "File \"") && indent >= 2 &&
                     (strstr(line, ", in ") || !strstr(line, " in "));

        if (strstr(line, "Exception Group " PYTHON_HEAD)) {
                s->at++;
                read_exception_group(s);
        } else if (strstr(line, PYTHON_HEAD) || frame) {
                s->at++;
                read_traceback(s, frame ? indent - 2 : indent);
        } else {
                return false;
        }
        return true;
}

/* --- known forms ------------------------------------------------------------------------------ */

/* Returns the text behind "function(12)....: " of a line of MPICH's error stack, NULL = none. */
static const char *find_frame_text(const char *line)
{
        size_t n = 0;

        while (isalnum((unsigned char)line[n]) || line[n] == '_')
                n++;
        if (!n || line[n] != '(')
                return NULL;
        n += 1 + strspn(line + n + 1, "0123456789");
        if (line[n] != ')')
                return NULL;
        n += 1 + strspn(line + n + 1, ".");
        return line[n] == ':' ? line + n + 1 + strspn(line + n + 1, " ") : NULL;
}

/* Returns the last text in MPICH's error stack, "" = none. */
static const char *read_error_stack(struct reason_search *s)
{
        const char *last = "", *text;

        while ((text = find_frame_text(line_at(s, s->at)))) {
                last = *text ? text : last;
                s->at++;
        }
        return last;
}

/* Returns how near a frame of Python is to the user: 0 for Python's own modules and the scripts
 * that pip makes, 1 for installed packages, 2 for other files. */
static int weigh_frame(const char *frame)
{
        const char *path = strchr(frame, '"') + 1, *slash;
        CLEANUP(free_textp) char *file = xstrndup(path, strcspn(path, "\""));

        if (strstr(file, "/site-packages/") || strstr(file, "/dist-packages/"))
                return 1;
        slash = strrchr(file, '/');
        if (strstr(file, "/lib/python") || strstr(file, "/lib64/python") ||
            begins_with(file, "<frozen") ||
            (slash && !strchr(slash, '.') && slash - file >= 4 && begins_with(slash - 4, "/bin/")))
                return 0;
        return 2;
}

/* Returns the innermost frame of the user's program among the frames of Python below the line with
 * f->after, else of a package, else of Python; "" = none. */
static const char *find_python_frame(struct reason_search *s, const struct reason_form *f)
{
        const char *own = "";
        size_t i = s->at;
        int best = -1;

        while (i < s->lines.n && !begins_with(line_at(s, i), f->after))
                i++;
        for (i++; i < s->lines.n && reason_lines_indent(line_at(s, i)); s->at = ++i) {
                const char *frame = strstr(line_at(s, i), f->more);

                if (frame && weigh_frame(frame) > best) {
                        own = frame;
                        best = weigh_frame(frame);
                }
        }
        return own;
}

/* Returns the addition of a line below to a reason of this form, "" = nothing. */
static const char *find_more(struct reason_search *s, const struct reason_form *f)
{
        /* A cause may stand anywhere below; other additions are near. */
        size_t end = f->make & LAST ? s->lines.n : s->at + BELOW;
        bool after = !f->after;
        const char *more = "";

        for (size_t i = s->at; f->more && i < s->lines.n && i < end; i++) {
                const char *line = line_at(s, i), *at = strstr(line, f->more);

                if (!after)
                        after = begins_with(line, f->after);
                else if (at && (at == line || at[-1] == ' '))
                        more = at + (f->make & BEHIND ? strlen(f->more) : 0);
                if (*more && !(f->make & LAST))
                        end = (s->at = i + 1);
        }
        return more + reason_lines_indent(more);
}

/* Cuts a line down to the name of an exception: in quotation marks ("after throwing an instance of
 * 'X'"), or behind a quoted name ("Exception in thread "main" X: text"). */
static void cut_to_name(const char **head, size_t *n)
{
        const char *from = strpbrk(*head, "'\""), *to = from ? strchr(from + 1, *from) : NULL;

        if (!to)
                return;
        *head = *from == '"' ? to + 1 : from + 1;
        *n = *from == '"' ? strlen(*head) : (size_t)(to - *head);
}

/* Sets the text of a reason to the first lines of a paragraph, of which @head is the first. */
static void join_paragraph(struct reason_search *s, struct reason *r, const char *head)
{
        enum { ROWS = 3 };

        join_text(r, head, strlen(head), "", "");
        for (int i = 0; i < ROWS && *line_at(s, s->at) && *line_at(s, s->at) != '-'; i++) {
                const char *line = line_at(s, s->at++);
                struct reason first = *r;

                join_text(r, first.text, strlen(first.text), " ", line + reason_lines_indent(line));
        }
}

/* Returns the text behind the opening words of PyTorch's watchdog. */
static const char *skip_watchdog(const char *text)
{
        static const char words[] = "watchdog thread terminated with exception: ";
        const char *at = strstr(text, words);

        return at ? at + strlen(words) : text;
}

/* Makes the text of a reason from a line of this form and the lines below. */
static void read_form(struct reason_search *s, const struct reason_form *f, const char *line,
                      struct reason *r)
{
        const char *head = f->make & ANYWHERE && f->make & FROM ? strstr(line, f->text) : line;
        const char *more = f->make & OWN ? find_python_frame(s, f) : find_more(s, f);
        const char *between = f->make & LAST ? ", caused by " : ": ";
        size_t n;

        if (f->make & FROM && f->with)
                head = strstr(head, f->with);
        n = strlen(head);
        if (f->make & PARAGRAPH) {
                join_paragraph(s, r, head);
                return;
        }
        if (*more && f->make & NAME)
                cut_to_name(&head, &n);
        if (f->make & ERROR_STACK) {
                more = read_error_stack(s);
                n = *more ? strcspn(head, ":") : n;
        }
        /* The colon of the line and that of @between would be two. */
        n -= *more && *between == ':' && n && head[n - 1] == ':';
        if (!*more && f->make & UNFINISHED) {
                more = read_rest(s, head);
                between = " ";
        }
        join_text(r, head, n, between, skip_watchdog(more));
}

/* --- the pass --------------------------------------------------------------------------------- */

/* Returns the first line of the message above a frame of Java, JavaScript or Julia; lines.n = none,
 * or the line is no such frame. */
static size_t find_message_above(const struct reason_search *s, const char *frame)
{
        enum { ROWS = 10 }; /* of a message of Julia */
        size_t i = s->at;

        if (begins_with(frame, "\tat ") || begins_with(frame, "    at ") ||
            begins_with(frame, "   at "))
                return s->plain + 1 == s->at ? s->plain : s->lines.n;
        if (!begins_with(frame, "Stacktrace:"))
                return s->lines.n;
        while (i && s->at - i < ROWS && !begins_with(line_at(s, i), "ERROR: "))
                i--;
        return begins_with(line_at(s, i), "ERROR: ") ? i : s->lines.n;
}

/* Offers the message above the first frame of a stack, if no form has taken the message already. */
static void read_message_above(struct reason_search *s, const char *frame)
{
        const char *message = line_at(s, find_message_above(s, frame));
        struct reason r = { 0 };

        if (!*message || reason_forms_find(message))
                return;
        join_text(&r, message, strlen(message), "", "");
        offer_reason(s, &r, reason_forms_weigh(r.text), END_1);
}

/* Moves behind a traceback of a program that went on. */
static void skip_traceback(struct reason_search *s)
{
        s->at++;
        s->at += begins_with(line_at(s, s->at), PYTHON_HEAD);
        skip_frames(s, 0);
        s->at += is_exception(line_at(s, s->at));
}

static void read_line(struct reason_search *s);

/* Reads a box of Open MPI, drawn with dashes: its first lines have the reason, the others explain.
 * False = no box begins here. */
static bool take_box(struct reason_search *s, const char *line)
{
        enum { DASHES = 70, ROWS = 40 };
        size_t first = s->at + 1, end = first;
        struct reason r = { 0 };

        if (strspn(line, "-") < DASHES || line[strspn(line, "-")] || !*line_at(s, first))
                return false;
        while (end < s->lines.n && end < first + ROWS && strcmp(line_at(s, end), line) != 0)
                end++;
        if (end == first || strcmp(line_at(s, end), line) != 0)
                return false;
        s->at = first;
        if (reason_forms_find(line_at(s, first))) {
                read_line(s);
        } else {
                s->at++;
                join_paragraph(s, &r, line_at(s, first));
                offer_reason(s, &r, reason_forms_weigh(r.text), 0);
        }
        s->at = end + 1;
        return true;
}

static void read_line(struct reason_search *s)
{
        const char *line = line_at(s, s->at);
        const struct reason_form *f;
        struct reason r = { 0 };

        if (!*line || take_traceback(s, line) || take_box(s, line)) {
                s->at += !*line;
                return;
        }
        f = reason_forms_find(line);
        switch (f ? f->kind : LINE_PLAIN) {
        case LINE_PLAIN:
                s->plain = s->at++;
                s->followed = true;
                break;
        case LINE_CHATTER:
                s->chatter = s->at++;
                break;
        case LINE_NOISE:
                read_message_above(s, line);
                s->at++;
                break;
        case LINE_IGNORED:
                skip_traceback(s);
                break;
        case LINE_THREAD:
                /* The head of the traceback follows within a few lines. */
                s->weak_end = s->at + 4;
                s->at++;
                break;
        case LINE_LAUNCHER:
                s->confirmed = true;
                s->launcher = s->at++;
                break;
        case LINE_REASON:
        case LINE_PEER:
        case LINE_WEAK:
                s->at++;
                read_form(s, f, line, &r);
                offer_reason(s, &r, f->kind == LINE_REASON ? reason_forms_weigh(r.text) : f->kind,
                             f->ends);
        }
}

/* Whether a program with a form of these END_* may end with @code. */
static bool ends_so(unsigned ends, int code)
{
        return ends & END_ANY || (ends & END_1 && code == 1) || (ends & END_2 && code == 2) ||
               (ends & END_101 && code == 101) || (ends & END_SIGNAL && code > 128);
}

/* Returns the line to quote if no reason is known, lines.n = there is none. */
static size_t find_last_line(const struct reason_search *s)
{
        size_t none = s->lines.n, last = none;

        if (s->plain != none && s->chatter != none)
                return s->plain > s->chatter ? s->plain : s->chatter;
        if (s->plain != none || s->chatter != none)
                return s->plain != none ? s->plain : s->chatter;
        if (s->launcher != none)
                return s->launcher;
        for (size_t i = 0; i < s->lines.n; i++)
                last = *line_at(s, i) ? i : last;
        return last;
}

/* Quotes a line as it is; "" = there is no reason at all. */
static void set_line(struct reason *r, const char *line)
{
        join_text(r, line, strlen(line), "", "");
        r->source = *line ? REASON_LINE : REASON_NONE;
        r->echo = reason_forms_weigh(line) == LINE_PEER;
}

void reason_find(struct reason *ret, const char *words, int code)
{
        struct reason_search s = { 0 };

        *ret = (struct reason){ 0 };
        reason_lines_read(&s.lines, words);
        s.plain = s.chatter = s.launcher = s.lines.n;
        while (s.at < s.lines.n)
                read_line(&s);
        if (s.best.source && (!s.followed || s.confirmed || ends_so(s.ends, code)))
                *ret = s.best;
        else
                set_line(ret, line_at(&s, find_last_line(&s)));
        reason_lines_finish(&s.lines);
}

void reason_first_line(struct reason *ret, const char *text)
{
        struct reason_lines l;

        *ret = (struct reason){ 0 };
        reason_lines_read(&l, text);
        if (reason_lines_next(&l, 0) < l.n)
                set_line(ret, l.v[reason_lines_next(&l, 0)]);
        reason_lines_finish(&l);
}
