/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comments are blanked out in a copy first, so that offsets into the copy are offsets into the
 * text that messages show. Then every line becomes an entry, and every good entry hosts.
 */
#include "head/hosts/hostfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/fd.h"
#include "head/hosts/host_attrs.h"
#include "head/hosts/host_spec.h"
#include "head/hosts/hostfile_text.h"

enum {
        MAX_FILE = 16 << 20,
};

enum {
        HN_UNREADABLE = 106,
        HN_NO_HOSTS = 108,
        HN_LIST_IS_FILE = 126,
        HN_TOO_MANY = 105,
        HN_UNKNOWN_KEY = 110,
        HN_NO_HOST = 112,
        HN_REPEATED = 114,
        HN_STRAY_WORD = 115,
        HN_NO_VALUE = 116,
        HN_DISAGREE = 118,
        HN_KEY_TWICE = 119,
};

/* One line of a file, or one word of a list. */
struct entry {
        struct span word, seen[KEYS]; /* len 0 = not there */
        struct host_spec host;
        struct host_attrs v;
        bool spare, bad;
};

struct parser {
        struct hostfile_text t;
        struct hosts *hosts;
        size_t first_host; /* the hosts before are of other files */
};

/* ---- keys ---- */

static size_t skip_blanks(const struct parser *p, size_t at, size_t end)
{
        while (at < end && strchr(" \t\v\f", p->t.plain[at]))
                at++;
        return at;
}

/* The end of the word at @at; a key ends at its `=`. */
static size_t word_end(const struct parser *p, size_t at, size_t end, bool key)
{
        while (at < end && !strchr(" \t\v\f", p->t.plain[at]) && !(key && p->t.plain[at] == '='))
                at++;
        return at;
}

static void unknown_key(struct parser *p, struct span at, const char *name, enum host_attr key)
{
        struct diag *d =
                hostfile_text_complain(&p->t, HN_UNKNOWN_KEY, at, "unknown key `%s`", name);
        const char *near = diag_did_you_mean(name, host_key_names, KEYS);
        char label[64];

        snprintf(label, sizeof(label), "did you mean `%s`?", near ? near : "");
        hostfile_text_point(&p->t, d, p->t.line, at, '^',
                            key == KEY_UNKNOWN && near ? label : NULL);
        if (key == KEY_FOREIGN)
                diag_note(d, "other launchers know `%s`; it means nothing here, remove it", name);
        else if (!near)
                diag_help(d, "keys are slots, max_slots, gpus, port, user, addr, iface, numa, "
                             "tags; a word is "
                             "spare");
}

static void key_twice(struct parser *p, struct entry *en, enum host_attr key, struct span at)
{
        struct diag *d = hostfile_text_complain(&p->t, HN_KEY_TWICE, at, "`%s` is given twice",
                                                host_key_names[key]);

        hostfile_text_point(&p->t, d, p->t.line, en->seen[key], '-', "first given here");
        hostfile_text_point(&p->t, d, p->t.line, at, '^', "and again here");
        en->bad = true;
}

static void stray_word(struct parser *p, struct span at)
{
        struct diag *d =
                hostfile_text_complain(&p->t, HN_STRAY_WORD, at, "this word is no `key=value`");
        const char *text = p->t.text + at.at;
        struct range_error e;
        char name[32], label[64] = "";
        int number;

        if (host_spec_number(text, at.len, "slots", 1, SLOTS_MAX, &number, &e) == 0)
                snprintf(label, sizeof(label), "did you mean `slots=%d`?", number);
        else if (host_attr_find(text, at.len, name, sizeof(name)) < KEYS)
                snprintf(label, sizeof(label), "`%s` has no value", name);
        hostfile_text_point(&p->t, d, p->t.line, at, '^', *label ? label : NULL);
        if (!*label)
                diag_help(d, "one host on a line; a list of hosts goes with -w");
}

/* "key = value" at text[at..end); returns where the next one may start. */
static size_t parse_key(struct parser *p, struct entry *en, size_t at, size_t end)
{
        struct span word = { at, word_end(p, at, end, true) - at }, value;
        size_t equals = skip_blanks(p, at + word.len, end);
        struct range_error e;
        char name[32];
        enum host_attr key;

        if (equals == end || p->t.plain[equals] != '=') {
                if (word.len == 5 && !memcmp(p->t.text + at, "spare", 5)) {
                        en->spare = true;
                        return at + word.len;
                }
                stray_word(p, word);
                en->bad = true;
                return at + word.len;
        }
        value.at = skip_blanks(p, equals + 1, end);
        value.len = word_end(p, value.at, end, false) - value.at;
        key = host_attr_find(p->t.text + at, word.len, name, sizeof(name));
        if (key >= KEYS) {
                word.len = MAX(word.len, (size_t)1);
                unknown_key(p, word, name, key);
                en->bad = true;
        } else if (!value.len) {
                value = (struct span){ equals, 1 };
                hostfile_text_point(&p->t,
                                    hostfile_text_complain(&p->t, HN_NO_VALUE, value,
                                                           "`%s` has no value", name),
                                    p->t.line, value, '^', NULL);
                en->bad = true;
                return end;
        } else if (en->seen[key].len) {
                key_twice(p, en, key, word);
        } else {
                en->seen[key] = (struct span){ word.at, value.at + value.len - word.at };
                if (host_attrs_take(&en->v, key, p->t.text + value.at, value.len, en->host.names.n,
                                    &e) < 0) {
                        hostfile_text_complain_about(&p->t, value.at, &e);
                        en->bad = true;
                }
        }
        return value.at + value.len;
}

/* ---- entries ---- */

static void entry_finish(struct entry *en)
{
        host_spec_finish(&en->host);
        host_attrs_finish(&en->v);
}

static void parse_word(struct parser *p, struct entry *en, size_t at, size_t len)
{
        struct range_error e;

        en->word = (struct span){ at, len };
        if (host_spec_parse(&en->host, p->t.text + at, len, &e) < 0) {
                hostfile_text_complain_about(&p->t, at, &e);
                en->bad = true;
                return;
        }
        en->v.user = STEAL(&en->host.user);
        en->v.slots = en->host.slots;
        en->v.slots_given = en->host.slots_given;
        if (en->host.user_len)
                en->seen[KEY_USER] = (struct span){ at, en->host.user_len };
        if (en->host.slots_given)
                en->seen[KEY_SLOTS] = (struct span){ at + en->host.slots_at, en->host.slots_len };
}

/* Two keys of one line that cannot both be true. */
static void disagree(struct parser *p, struct entry *en, enum host_attr a, enum host_attr b,
                     const char *fact)
{
        struct diag *d = hostfile_text_complain(&p->t, HN_DISAGREE, en->seen[b], "%s", fact);

        hostfile_text_point(&p->t, d, p->t.line, en->seen[a], '-', NULL);
        hostfile_text_point(&p->t, d, p->t.line, en->seen[b], '^', NULL);
        en->bad = true;
}

static void check_slots(struct parser *p, struct entry *en)
{
        struct host_attrs *v = &en->v;
        char fact[96];

        if (v->slots && v->max_slots && v->max_slots < v->slots) {
                snprintf(fact, sizeof(fact), "`max_slots` %d is below the %d slots", v->max_slots,
                         v->slots);
                disagree(p, en, KEY_SLOTS, KEY_MAX_SLOTS, fact);
        }
        if (v->max_slots && !v->slots_given) {
                v->slots = v->max_slots;
                v->slots_given = true;
        }
        if (v->slots && v->has_gpus && (size_t)v->slots != v->gpus.n) {
                snprintf(fact, sizeof(fact), "%d slots, but `gpus` names %zu GPU%s", v->slots,
                         v->gpus.n, v->gpus.n == 1 ? "" : "s");
                disagree(p, en, en->seen[KEY_SLOTS].len ? KEY_SLOTS : KEY_MAX_SLOTS, KEY_GPUS,
                         fact);
        }
}

static bool is_local(const struct host *host)
{
        return !host->port && !host->user &&
               (!strcasecmp(host->name, "localhost") || !strcmp(host->name, "127.0.0.1") ||
                !strcmp(host->name, "::1"));
}

static char *dup_or_null(const char *text)
{
        return text ? xstrdup(text) : NULL;
}

static void add_host(struct parser *p, const struct entry *en, size_t i)
{
        const struct host_attrs *v = &en->v;
        struct host *host = hosts_add(p->hosts);

        host->name = xstrdup(en->host.names.v[i]);
        host->user = dup_or_null(v->user);
        host->iface = dup_or_null(v->iface);
        host->numa = dup_or_null(v->numa);
        host->tags = dup_or_null(v->tags);
        host->spare = en->spare;
        host->addr = en->v.addrs.n ? xstrdup(en->v.addrs.v[i]) : NULL;
        host->port = v->port;
        host->slots = v->slots;
        host->max_slots = v->max_slots;
        host->slots_given = v->slots_given;
        host->has_gpus = v->has_gpus;
        for (size_t k = 0; k < v->gpus.n; k++)
                intlist_add(&host->gpus, v->gpus.v[k]);
        host->local = is_local(host);
        host->file = xstrdup(p->t.file);
        host->line = p->t.line;
        host->col = (int)(en->word.at - p->t.lines[p->t.line - 1]) + 1;
}

static bool differ(const char *a, const char *b)
{
        return a != b && (!a || !b || strcmp(a, b));
}

/* The first key in which a repeated line differs from the host's first one, or NULL. */
static const char *find_difference(const struct host *a, const struct host_attrs *b,
                                   const char *addr)
{
        if (a->has_gpus != b->has_gpus || a->gpus.n != b->gpus.n ||
            (a->gpus.n && memcmp(a->gpus.v, b->gpus.v, a->gpus.n * sizeof(int))))
                return "gpus";
        return a->port != b->port           ? "port"
               : differ(a->user, b->user)   ? "user"
               : differ(a->addr, addr)      ? "addr"
               : differ(a->iface, b->iface) ? "iface"
               : differ(a->numa, b->numa)   ? "numa"
               : differ(a->tags, b->tags)   ? "tags"
                                            : NULL;
}

/* Shows where a host was first, and where it is again. */
static void complain_repeated(struct parser *p, const struct entry *en, const struct host *first,
                              const char *fact)
{
        struct diag *d = hostfile_text_complain(&p->t, HN_REPEATED, en->word, "%s", fact);
        bool here = (size_t)(first - p->hosts->v) >= p->first_host;
        size_t at, end;

        if (here) {
                at = p->t.lines[first->line - 1] + (size_t)first->col - 1;
                end = hostfile_text_line_end(&p->t, first->line);
                end = p->t.list ? at + strcspn(p->t.plain + at, ", \t")
                                : word_end(p, at, end, false);
                hostfile_text_point(&p->t, d, first->line, (struct span){ at, end - at }, '-',
                                    "first given here");
        }
        hostfile_text_point(&p->t, d, p->t.line, en->word, '^', "and again here");
        if (!here)
                diag_note(d, "first given at %s:%d:%d", first->file, first->line, first->col);
}

/* A host that is there already: 0 when it gained a slot, -EINVAL when that is an error. */
static int repeat_host(struct parser *p, const struct entry *en, size_t i, struct host *first)
{
        const struct host_attrs *v = &en->v;
        const char *key;
        char fact[512];

        if (first->slots_given && v->slots_given) {
                snprintf(fact, sizeof(fact), "%s has two slot counts", first->name);
        } else if (first->slots_given || v->slots_given) {
                snprintf(fact, sizeof(fact), "%s is given with slots and again without",
                         first->name);
        } else if ((key = find_difference(first, v, en->v.addrs.n ? en->v.addrs.v[i] : NULL))) {
                snprintf(fact, sizeof(fact), "the lines of %s differ in `%s`", first->name, key);
        } else if (first->slots == SLOTS_MAX) {
                snprintf(fact, sizeof(fact), "%s is given more than %d times", first->name,
                         SLOTS_MAX);
        } else {
                first->slots = MAX(first->slots, 1) + 1;
                return 0;
        }
        complain_repeated(p, en, first, fact);
        return -EINVAL;
}

static void too_many(struct parser *p, const struct entry *en)
{
        struct diag *d = hostfile_text_complain(&p->t, HN_TOO_MANY, en->word, "more than %d hosts",
                                                HOSTS_MAX);

        hostfile_text_point(&p->t, d, p->t.line, en->word, '^', NULL);
}

/* The entry's hosts; only the first error, a range would give many of the same. */
static void add_hosts(struct parser *p, const struct entry *en)
{
        for (size_t i = 0; i < en->host.names.n; i++) {
                const struct host *first = hosts_find(p->hosts, en->host.names.v[i]);

                if (first) {
                        if (repeat_host(p, en, i, &p->hosts->v[first - p->hosts->v]) < 0)
                                return;
                } else if (p->hosts->n == HOSTS_MAX) {
                        too_many(p, en);
                        return;
                } else {
                        add_host(p, en, i);
                }
        }
}

static void parse_line(struct parser *p)
{
        CLEANUP(entry_finish) struct entry en = { 0 };
        size_t end = hostfile_text_line_end(&p->t, p->t.line),
               at = skip_blanks(p, p->t.lines[p->t.line - 1], end), next;
        struct span word;

        if (at == end)
                return;
        word = (struct span){ at, word_end(p, at, end, true) - at };
        next = skip_blanks(p, at + word.len, end);
        if (next < end && p->t.plain[next] == '=') {
                word.len = MAX(word.len, (size_t)1);
                hostfile_text_point(&p->t,
                                    hostfile_text_complain(&p->t, HN_NO_HOST, word,
                                                           "the line does not begin with a host"),
                                    p->t.line, word, '^', NULL);
                return;
        }
        parse_word(p, &en, at, word.len);
        while (next < end)
                next = skip_blanks(p, parse_key(p, &en, next, end), end);
        check_slots(p, &en);
        if (!en.bad)
                add_hosts(p, &en);
}

/* ---- texts ---- */

static void parser_finish(struct parser *p)
{
        hostfile_text_finish(&p->t);
}

int hostfile_parse(struct hosts *h, const char *file, const char *text, size_t len, struct diags *d)
{
        CLEANUP(parser_finish) struct parser p = { .hosts = h, .first_host = h->n };
        bool mark = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);
        bool words = false;

        hostfile_text_init(&p.t, file, mark ? text + 3 : text, mark ? len - 3 : len, d);
        if (hostfile_text_check(&p.t) < 0)
                return -EINVAL;
        hostfile_text_blank_comments(&p.t);
        for (size_t i = 0; p.t.plain[i]; i++)
                words |= !strchr(" \t\v\f\r\n", p.t.plain[i]);
        for (p.t.line = 1; (size_t)p.t.line <= p.t.n_lines; p.t.line++)
                parse_line(&p);
        hostfile_text_finish_errors(&p.t);
        if (!words && !p.t.errors) {
                diag_help(diag_add(d, HN_NO_HOSTS, EX_DATAERR, "no hosts in %s", file),
                          "one host on a line: gpu001 slots=8");
                p.t.errors++;
        }
        return p.t.errors ? -EINVAL : 0;
}

/* ---- lists ---- */

static size_t list_word_end(const struct parser *p, size_t at)
{
        bool inside = false;

        for (; at < p->t.len; at++) {
                if (p->t.text[at] == '[' || p->t.text[at] == ']')
                        inside = p->t.text[at] == '[';
                else if (!inside && strchr(", \t\n", p->t.text[at]))
                        break;
        }
        return at;
}

/* "node 001": a number alone, behind a blank, was meant to be a part of the name. */
static void stray_number(struct parser *p, struct entry *en)
{
        size_t digits = strspn(p->t.text + en->word.at, "0123456789");

        if (digits != strcspn(p->t.text + en->word.at, ":, \t\n"))
                return;
        struct diag *d = hostfile_text_complain(
                &p->t, HN_NO_HOST, en->word, "blanks separate hosts, and a number alone is none");

        hostfile_text_point(&p->t, d, p->t.line, en->word, '^', NULL);
        diag_help(d, "write the name without the blank");
        en->bad = true;
}

int hostlist_parse(struct hosts *h, const char *text, struct diags *d)
{
        CLEANUP(parser_finish) struct parser p = { .hosts = h, .first_host = h->n };
        bool blank = false; /* a blank stands before the word, no comma */
        size_t at = 0;

        hostfile_text_init(&p.t, "-w", text, strlen(text), d);
        p.t.list = true;
        p.t.n_lines = 1; /* a newline is a blank here */
        p.t.plain = xstrdup(text);
        for (;; at++) {
                CLEANUP(entry_finish) struct entry en = { 0 };
                size_t start = at += strspn(text + at, " \t\n");

                at = list_word_end(&p, at);
                parse_word(&p, &en, start, at - start);
                if (blank && !en.bad)
                        stray_number(&p, &en);
                if (!en.bad)
                        add_hosts(&p, &en);
                at += strspn(text + at, " \t\n");
                if (at >= p.t.len)
                        break;
                blank = text[at] != ',';
                if (blank)
                        at--; /* blanks alone set words apart too */
        }
        hostfile_text_finish_errors(&p.t);
        return p.t.errors ? -EINVAL : 0;
}

/* ---- files ---- */

static int read_stdin(char **ret_text, size_t *ret_len)
{
        struct buf all = BUF_INIT;
        ssize_t n;

        for (;;) {
                void *to = buf_reserve(&all, 65536);

                n = to ? read(STDIN_FILENO, to, 65536) : -1;
                if (n < 0 && to && errno == EINTR)
                        continue;
                if (n <= 0 || buf_len(&all) > MAX_FILE)
                        break;
                buf_advance(&all, (size_t)n);
        }
        if (n < 0 || buf_len(&all) > MAX_FILE) {
                n = n < 0 ? -errno : -EFBIG;
                buf_finish(&all);
                return (int)n;
        }
        *ret_len = buf_len(&all);
        *ret_text = buf_steal(&all);
        return *ret_text ? 0 : -ENOMEM;
}

/* True when @path would be a good argument of -w and hardly the name of a file. */
static bool looks_like_list(const char *path)
{
        struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        bool good = strpbrk(path, "[,:@") && hostlist_parse(&h, path, &d) == 0;

        hosts_finish(&h);
        diags_finish(&d);
        return good;
}

static int cannot_read(const char *path, int code, struct diags *d)
{
        struct diag *e;

        if (code == ENOENT && looks_like_list(path)) {
                e = diag_add(d, HN_UNREADABLE, EX_NOINPUT, "there is no file %s", path);
                diag_note(e, "-H takes a file; this looks like a list of hosts");
                diag_help(e, "use -w %s", path);
                return -EINVAL;
        }
        if (code == EFBIG)
                e = diag_add(d, HN_UNREADABLE, EX_DATAERR, "%s is larger than %d MiB", path,
                             MAX_FILE >> 20);
        else
                e = diag_add(d, HN_UNREADABLE, EX_NOINPUT, "cannot read the hostfile %s: %s", path,
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
                r = read_stdin(&text, &len);
        else
                r = fd_read_file(path, MAX_FILE, &text, &len);
        if (r < 0)
                return cannot_read(standard_input ? "standard input" : path, -r, d);
        r = hostfile_parse(h, standard_input ? "<stdin>" : path, text, len, d);
        free(text);
        return r;
}

/* True when @path is a file that could stand behind -H. */
static bool is_hostfile(const char *path)
{
        struct hosts h = HOSTS_INIT;
        struct diags d = DIAGS_INIT;
        struct stat st;
        bool good = stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                    (strchr(path, '/') || hostfile_load(&h, path, &d) == 0);

        hosts_finish(&h);
        diags_finish(&d);
        return good;
}

int hostlist_load(struct hosts *h, const char *text, struct diags *d)
{
        struct diag *e;

        if (!is_hostfile(text))
                return hostlist_parse(h, text, d);
        e = diag_add(d, HN_LIST_IS_FILE, EX_USAGE, "-w takes names of hosts, and %s is a file",
                     text);
        diag_help(e, "-H %s reads the hosts from it", text);
        return -EINVAL;
}
