/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser reads a line, or a word of a list, into p->spec: parse_word() takes the first word,
 * parse_key() each key behind, check_slots() compares the values. finish_line() then adds a copy of
 * p->spec.host for every name. A line with an error is read to the end, to find further errors, and
 * adds nothing: it is one if t.errors has grown.
 */
#include "head/hosts/hostfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "head/hosts/host_spec.h"
#include "head/hosts/hostfile_text.h"

enum {
        MAX_FILE = 16 << 20, /* bytes */
};

/* State of reading a file or a list. */
struct parser {
        struct hostfile_text t;
        struct hosts *hosts;
        size_t first_host; /* earlier hosts are of other files */

        /* The line at hand, of a list the word: */
        struct host_spec spec;
        struct text_range word;
        size_t errors_before;
};

/* ---- keys ---- */

/* No line has a newline inside, and the text ends with a NUL: both stop within the line. */
static size_t skip_blanks(const struct parser *p, size_t at)
{
        return at + strspn(p->t.plain + at, " \t\v\f");
}

/* Returns the end of the word at @at; a key ends at its `=`. */
static size_t find_word_end(const struct parser *p, size_t at, bool key)
{
        return at + strcspn(p->t.plain + at, key ? " \t\v\f\r\n=" : " \t\v\f\r\n");
}

/* Adds an error for a key, with the nearest key or the reason why a key of another launcher has no
 * effect. */
static void complain_unknown_key(struct parser *p, struct text_range at, const char *name,
                                 enum host_attr attr)
{
        const char *near = diag_did_you_mean(name, host_attr_names, HOST_ATTRS);
        char label[64];
        struct diag *d;

        snprintf(label, sizeof(label), "did you mean `%s`?", near ? near : "");
        d = hostfile_text_error(&p->t, HN_UNKNOWN_HOST_KEY, at,
                                attr == ATTR_UNKNOWN && near ? label : NULL, "unknown key `%s`",
                                name);
        if (attr == ATTR_FOREIGN)
                diag_note(d, "`%s` is a key of other launchers without effect here: remove it",
                          name);
        else if (!near)
                diag_help(d, "keys are slots, max_slots, gpus, port, user, addr, iface, numa, "
                             "tags; a word is spare");
}

/* Adds an error for a word without =, with the most probable meaning. */
static void complain_stray_word(struct parser *p, struct text_range at)
{
        const char *text = p->t.text + at.at;
        struct range_error e;
        char name[32], label[64] = "";
        struct diag *d;
        int number;

        if (host_spec_number(text, at.len, "slots", 1, SLOTS_MAX, &number, &e) == 0)
                snprintf(label, sizeof(label), "did you mean `slots=%d`?", number);
        else if (host_attr_find(text, at.len, name, sizeof(name)) < HOST_ATTRS)
                snprintf(label, sizeof(label), "`%s` has no value", name);
        d = hostfile_text_error(&p->t, HN_STRAY_WORD, at, *label ? label : NULL,
                                "expected `key=value`");
        if (!*label)
                diag_help(d, "one host on a line; a list of hosts goes with -w");
}

/* Shows two places of the line; the second is the error. */
static void mark_two(struct parser *p, struct diag *d, struct text_range first,
                     const char *first_label, struct text_range second, const char *label)
{
        hostfile_text_mark(&p->t, d, p->t.line, first, '-', first_label);
        hostfile_text_mark(&p->t, d, p->t.line, second, '^', label);
}

/* Reads "key = value" or "spare" at text[at..end); returns where the next key may start. */
static size_t parse_key(struct parser *p, size_t at, size_t end)
{
        struct text_range word = { at, find_word_end(p, at, true) - at }, value;
        size_t equals = skip_blanks(p, at + word.len);
        const char *text = p->t.text;
        struct range_error e;
        enum host_attr attr;
        struct diag *d;
        char name[32];

        /* A word without a value. */
        if (equals == end || p->t.plain[equals] != '=') {
                if (word.len == 5 && !memcmp(text + at, "spare", 5))
                        p->spec.host.spare = true;
                else
                        complain_stray_word(p, word);
                return at + word.len;
        }
        value.at = skip_blanks(p, equals + 1);
        value.len = find_word_end(p, value.at, false) - value.at;
        attr = host_attr_find(text + at, word.len, name, sizeof(name));
        if (attr >= HOST_ATTRS) {
                /* A "=" without a key before it: there is a letter to point at. */
                word.len = MAX(word.len, (size_t)1);
                complain_unknown_key(p, word, name, attr);
        } else if (!value.len) {
                hostfile_text_error(&p->t, HN_HOST_KEY_EMPTY, (struct text_range){ equals, 1 },
                                    NULL, "`%s` has no value", name);
                return end;
        } else if (p->spec.given[attr].len) {
                d = hostfile_text_bare_error(&p->t, HN_HOST_KEY_TWICE, word, "`%s` is given twice",
                                             host_attr_names[attr]);
                mark_two(p, d, p->spec.given[attr], "first given here", word, "and again here");
        } else {
                p->spec.given[attr] =
                        (struct text_range){ word.at, value.at + value.len - word.at };
                if (host_attr_take(&p->spec, attr, text + value.at, value.len, &e) < 0)
                        hostfile_text_range_error(&p->t, value.at, &e);
        }
        return value.at + value.len;
}

/* ---- lines ---- */

/* Begins a line with the first word. */
static void parse_word(struct parser *p, size_t at, size_t len)
{
        struct range_error e;

        p->word = (struct text_range){ at, len };
        p->errors_before = p->t.errors;
        if (host_spec_parse(&p->spec, p->t.text + at, len, &e) < 0)
                hostfile_text_range_error(&p->t, at, &e);
        for (int i = 0; i < HOST_ATTRS; i++) /* from offsets in the word to offsets in the text */
                p->spec.given[i].at += at;
}

/* Compares slots=, max_slots= and gpus= of a line; max_slots= alone also sets the slots, as in Open
 * MPI. */
static void check_slots(struct parser *p)
{
        const struct text_range *given = p->spec.given;
        struct host *h = &p->spec.host;
        struct diag *d;

        if (h->slots && h->max_slots && h->max_slots < h->slots) {
                d = hostfile_text_bare_error(&p->t, HN_HOST_KEYS_DISAGREE, given[ATTR_MAX_SLOTS],
                                             "`max_slots` %d is below the %d slots", h->max_slots,
                                             h->slots);
                mark_two(p, d, given[ATTR_SLOTS], NULL, given[ATTR_MAX_SLOTS], NULL);
        }
        if (h->max_slots && !h->slots_given) {
                h->slots = h->max_slots;
                h->slots_given = true;
        }
        if (h->slots && h->has_gpus && (size_t)h->slots != h->gpus.n) {
                d = hostfile_text_bare_error(&p->t, HN_HOST_KEYS_DISAGREE, given[ATTR_GPUS],
                                             "%d slots, but `gpus` names %zu GPU%s", h->slots,
                                             h->gpus.n, h->gpus.n == 1 ? "" : "s");
                mark_two(p, d, given[given[ATTR_SLOTS].len ? ATTR_SLOTS : ATTR_MAX_SLOTS], NULL,
                         given[ATTR_GPUS], NULL);
        }
}

/* ---- hosts ---- */

/* Whether two texts differ; NULL equals NULL only. */
static bool texts_differ(const char *a, const char *b)
{
        return a != b && (!a || !b || strcmp(a, b));
}

/* Returns the first key in which a repeated line differs from the host's first line, or NULL. */
static const char *find_difference(const struct host *a, const struct host *b, const char *addr)
{
        if (a->has_gpus != b->has_gpus || a->gpus.n != b->gpus.n ||
            (a->gpus.n && memcmp(a->gpus.v, b->gpus.v, a->gpus.n * sizeof(int))))
                return "gpus";
        return a->port != b->port                 ? "port"
               : texts_differ(a->user, b->user)   ? "user"
               : texts_differ(a->addr, addr)      ? "addr"
               : texts_differ(a->iface, b->iface) ? "iface"
                                                  : NULL;
}

/* Adds the error of a host given twice, with both places. */
static void complain_repeated(struct parser *p, const struct host *first, const char *fact)
{
        struct diag *d = hostfile_text_bare_error(&p->t, HN_HOST_REPEATED, p->word, "%s", fact);
        bool here = (size_t)(first - p->hosts->v) >= p->first_host;
        size_t at, end;

        /* Lines of another file are not at hand: a note names the place. */
        if (here) {
                at = p->t.lines[first->line - 1] + (size_t)first->col - 1;
                end = p->t.list ? at + strcspn(p->t.plain + at, ", \t")
                                : find_word_end(p, at, false);
                hostfile_text_mark(&p->t, d, first->line, (struct text_range){ at, end - at }, '-',
                                   "first given here");
        }
        hostfile_text_mark(&p->t, d, p->t.line, p->word, '^', "and again here");
        if (!here)
                diag_note(d, "first given at %s:%d:%d", first->file, first->line, first->col);
}

/* Adds a slot to the host @first, which has name number @i of the line. */
static void repeat_host(struct parser *p, struct host *first, size_t i)
{
        const struct host *again = &p->spec.host;
        const char *addr = p->spec.addrs.n ? p->spec.addrs.v[i] : NULL, *key;
        char fact[512];

        if (first->slots_given && again->slots_given) {
                snprintf(fact, sizeof(fact), "%s has two slot counts", first->name);
        } else if (first->slots_given || again->slots_given) {
                snprintf(fact, sizeof(fact), "%s is given once with slots and once without",
                         first->name);
        } else if ((key = find_difference(first, again, addr))) {
                snprintf(fact, sizeof(fact), "the lines of %s differ in `%s`", first->name, key);
        } else if (first->slots == SLOTS_MAX) {
                snprintf(fact, sizeof(fact), "%s is given more than %d times", first->name,
                         SLOTS_MAX);
        } else {
                /* A host named once has slots 0, which means as many as the node has; from the
                 * second line on the lines are counted. */
                first->slots = MAX(first->slots, 1) + 1;
                return;
        }
        complain_repeated(p, first, fact);
}

/* Ends a line: adds its hosts, unless the line has errors. Stops at the first host with an error,
 * as a range would repeat the error. */
static void finish_line(struct parser *p)
{
        p->spec.host.file = xstrdup(p->t.file);
        p->spec.host.line = p->t.line;
        p->spec.host.col = (int)(p->word.at - p->t.lines[p->t.line - 1]) + 1;
        for (size_t i = 0; p->t.errors == p->errors_before && i < p->spec.names.n; i++) {
                const char *name = p->spec.names.v[i];
                struct host *host = hosts_find(p->hosts, name);

                if (host) {
                        repeat_host(p, host, i);
                } else if (p->hosts->n == HOSTS_MAX) {
                        hostfile_text_error(&p->t, HN_TOO_MANY_HOSTS, p->word, NULL,
                                            "more than %d hosts", HOSTS_MAX);
                } else {
                        host = hosts_add_like(p->hosts, &p->spec.host);
                        host->name = xstrdup(name);
                        host->addr = p->spec.addrs.n ? xstrdup(p->spec.addrs.v[i]) : NULL;
                        /* Port and user ask for ssh, also to this machine. */
                        host->local = !host->port && !host->user &&
                                      (!strcasecmp(name, "localhost") ||
                                       !strcmp(name, "127.0.0.1") || !strcmp(name, "::1"));
                }
        }
        host_spec_finish(&p->spec);
}

/* Parses a line: a host, then keys. Errors do not end the line, so that all are told at once. */
static void parse_line(struct parser *p)
{
        size_t end = hostfile_text_line_end(&p->t, p->t.line),
               at = skip_blanks(p, p->t.lines[p->t.line - 1]), next;
        size_t len;

        /* An empty line, or a comment. */
        if (at == end)
                return;
        len = find_word_end(p, at, true) - at;
        next = skip_blanks(p, at + len);
        if (next < end && p->t.plain[next] == '=') {
                hostfile_text_error(&p->t, HN_BAD_HOST_NAME,
                                    (struct text_range){ at, MAX(len, (size_t)1) }, NULL,
                                    "expected a host name");
                return;
        }
        parse_word(p, at, len);
        while (next < end)
                next = skip_blanks(p, parse_key(p, next, end));
        check_slots(p);
        finish_line(p);
}

/* ---- texts ---- */

/* Fits CLEANUP(). */
static void parser_finish(struct parser *p)
{
        hostfile_text_finish(&p->t);
        host_spec_finish(&p->spec);
}

int hostfile_parse(struct hosts *h, const char *file, const char *text, size_t len, struct diags *d)
{
        CLEANUP(parser_finish) struct parser p = { .hosts = h, .first_host = h->n };
        /* The byte order mark of UTF-8, as some editors write. */
        bool mark = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);
        bool words = false;

        hostfile_text_init(&p.t, file, mark ? text + 3 : text, mark ? len - 3 : len, d);
        if (hostfile_text_check(&p.t) < 0)
                return -EINVAL;
        hostfile_text_blank_comments(&p.t);
        /* Whether there is anything but blanks and comments: a file with wrong lines only is not
         * called empty. */
        for (size_t i = 0; p.t.plain[i]; i++)
                words |= !strchr(" \t\v\f\r\n", p.t.plain[i]);
        for (p.t.line = 1; (size_t)p.t.line <= p.t.n_lines; p.t.line++)
                parse_line(&p);
        hostfile_text_finish_errors(&p.t);
        if (!words && !p.t.errors) {
                diag_help(diag_add(d, HN_HOSTFILE_EMPTY, EX_DATAERR, "no hosts in %s", file),
                          "one host on a line: gpu001 slots=8");
                p.t.errors++;
        }
        return p.t.errors ? -EINVAL : 0;
}

/* ---- lists ---- */

/* "node 001": a number alone, behind a blank, was meant to be a part of the name. */
static void check_stray_number(struct parser *p)
{
        size_t digits = strspn(p->t.text + p->word.at, "0123456789");

        if (digits != strcspn(p->t.text + p->word.at, ":, \t\n"))
                return;
        diag_help(hostfile_text_error(&p->t, HN_BAD_HOST_NAME, p->word, NULL,
                                      "blanks separate hosts, and a number alone is not a host"),
                  "write the name without the blank");
}

int hostlist_parse(struct hosts *h, const char *text, struct diags *d)
{
        CLEANUP(parser_finish) struct parser p = { .hosts = h, .first_host = h->n };
        bool blank = false; /* no comma before the word */
        size_t at = 0;

        hostfile_text_init(&p.t, "-w", text, strlen(text), d);
        p.t.list = true;
        p.t.n_lines = 1; /* a newline is a blank here */
        p.t.plain = xstrdup(text);
        for (;; at++) {
                size_t start = at += strspn(text + at, " \t\n");

                at = range_find(text, at, p.t.len, ", \t\n");
                parse_word(&p, start, at - start);
                if (blank && p.t.errors == p.errors_before)
                        check_stray_number(&p);
                finish_line(&p);
                at += strspn(text + at, " \t\n");
                if (at >= p.t.len)
                        break;
                blank = text[at] != ',';
                if (blank)
                        at--; /* blanks alone separate words, too */
        }
        hostfile_text_finish_errors(&p.t);
        return p.t.errors ? -EINVAL : 0;
}

/* ---- files ---- */

/* Whether @load takes @text as it is. */
static bool would_load(const char *text, int (*load)(struct hosts *, const char *, struct diags *))
{
        CLEANUP(hosts_finish) struct hosts h = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags d = DIAGS_INIT;

        return load(&h, text, &d) == 0;
}

/* Adds the error; offers -w for a list of hosts. -EINVAL. */
static int complain_unreadable(const char *path, int code, struct diags *d)
{
        struct diag *e;

        /* A frequent mistake: a list of hosts behind -H. */
        if (code == ENOENT && strpbrk(path, "[,:@") && would_load(path, hostlist_parse)) {
                e = diag_add(d, HN_HOSTFILE_UNREADABLE, EX_NOINPUT, "there is no file %s", path);
                diag_note(e, "-H takes a file; this looks like a list of hosts");
                diag_help(e, "use -w %s", path);
                return -EINVAL;
        }
        if (code == EFBIG)
                e = diag_add(d, HN_HOSTFILE_UNREADABLE, EX_DATAERR, "%s is larger than %d MiB",
                             path, MAX_FILE >> 20);
        else
                e = diag_add(d, HN_HOSTFILE_UNREADABLE, EX_NOINPUT,
                             "cannot read the hostfile %s: %s", path,
                             code == ENOENT ? "there is no such file" : strerror(code));
        if (code == ENOENT)
                diag_help(e, "-H takes a file, -w a list of hosts, --local needs neither");
        return -EINVAL;
}

int hostfile_load(struct hosts *h, const char *path, struct diags *d)
{
        bool standard_input = !strcmp(path, "-");
        size_t len = 0;
        char *text;
        int r;

        if (standard_input)
                r = fd_read_all(STDIN_FILENO, MAX_FILE, &text, &len);
        else
                r = fd_read_file(path, MAX_FILE, &text, &len);
        if (r < 0)
                return complain_unreadable(standard_input ? "standard input" : path, -r, d);
        r = hostfile_parse(h, standard_input ? "<stdin>" : path, text, len, d);
        free(text);
        return r;
}

int hostlist_load(struct hosts *h, const char *text, struct diags *d)
{
        struct diag *e;
        struct stat st;

        /* A host may have the name of a file here: only a path, or a file that is a good hostfile,
         * is refused. */
        if (stat(text, &st) < 0 || !S_ISREG(st.st_mode) ||
            (!strchr(text, '/') && !would_load(text, hostfile_load)))
                return hostlist_parse(h, text, d);
        e = diag_add(d, HN_LIST_IS_FILE, EX_USAGE, "-w takes host names, but %s is a file", text);
        diag_help(e, "-H %s reads the hosts from it", text);
        return -EINVAL;
}
