/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_reference() reads the next piece of a text: a byte, a reference, or a fault, which is a
 * reference with an error at a known place. Both passes go over the pieces of a text. The TEXT of
 * {ROLE.each:TEXT} has pieces, too, read with the role of `each`. A fault is also `each` within
 * `each`: the length of a result grows with the number of instances, not with a power of it.
 */
#include "head/model/role_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "head/term/diag.h"
#include "wire/port_name.h"

#define ROLE_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define BLANKS       " \t\n"

/* A reserved port of an instance; 0 = not known yet. */
struct role_port {
        char *name;
        uint32_t number;
};

struct role_instance {
        char *host, *addr;
        struct role_port *ports;
        size_t n_ports, cap_ports;
};

/* A host of a role, so that {ROLE.hosts} names each once without a search of the list. */
struct role_host {
        char *name;
        UT_hash_handle hh;
};

struct role_entry {
        char *name;
        bool replicated;
        struct strv ports;
        struct intlist referred;
        struct role_instance *v;
        size_t n, cap;
        struct role_host *hosts; /* the names so far */
        struct buf host_list;    /* joined by commas */
};

struct role_book {
        struct role_entry *v;
        size_t n, cap;
};

enum reference_kind {
        REFERENCE_NONE,
        /* behind a role and a dot, in the order of role_words */
        REFERENCE_ADDR,
        REFERENCE_HOSTS,
        REFERENCE_PORT,
        REFERENCE_URLS,
        REFERENCE_EACH,
        /* of one instance */
        REFERENCE_OWN_PORT,
        REFERENCE_OWN_ADDR,
        REFERENCE_OWN_HOST,
        REFERENCE_OWN_INDEX,
};

enum reference_fault {
        FAULT_NONE,
        FAULT_ROLE,   /* no such role */
        FAULT_WORD,   /* no such word behind the dot */
        FAULT_OPEN,   /* the brace is not closed */
        FAULT_NESTED, /* `each` within `each` */
};

struct reference {
        enum reference_kind kind;
        enum reference_fault fault;
        bool escaped; /* with a backslash, which belongs to the piece */
        int role;     /* -1 = of one instance */
        size_t len;   /* bytes of the text */
        /* The name of the port, or the text of `each`; of a fault the place for the carets. */
        size_t at, n;
};

/* One pass over a text. */
struct book_pass {
        const struct role_book *book;
        const struct role_text *text;
        int instance; /* of the role of @text; -1 = none */
        struct diags *diags;
        int rc;
};

static const char *const role_words[] = { "addr", "hosts", "port", "urls", "each" };

/* ---- the book ---- */

struct role_book *role_book_create(void)
{
        return xcalloc(1, sizeof(struct role_book));
}

static void free_instance(struct role_instance *i)
{
        for (size_t k = 0; k < i->n_ports; k++)
                free(i->ports[k].name);
        free(i->ports);
        free(i->host);
        free(i->addr);
}

/* Forgets the instances of a role. Names and ports of the role stay, for the next attempt. */
static void clear_role_entry(struct role_entry *e)
{
        struct role_host *h, *next;

        HASH_ITER(hh, e->hosts, h, next)
        {
                HASH_DEL(e->hosts, h);
                free(h);
        }
        for (size_t i = 0; i < e->n; i++)
                free_instance(&e->v[i]);
        free(e->v);
        e->v = NULL;
        e->n = e->cap = 0;
        buf_finish(&e->host_list);
        e->host_list = (struct buf)BUF_INIT;
}

void role_book_clear_instances(struct role_book *b)
{
        for (size_t r = 0; r < b->n; r++)
                clear_role_entry(&b->v[r]);
}

void role_book_destroy(struct role_book *b)
{
        for (size_t r = 0; b && r < b->n; r++) {
                struct role_entry *e = &b->v[r];

                clear_role_entry(e);
                free(e->name);
                strv_finish(&e->ports);
                intlist_finish(&e->referred);
        }
        if (b)
                free(b->v);
        free(b);
}

int role_book_add(struct role_book *b, const char *name)
{
        b->v = xgrow(b->v, b->n, &b->cap, sizeof(*b->v));
        b->v[b->n] = (struct role_entry){ .name = xstrdup(name) };
        return (int)b->n++;
}

void role_book_set_replicated(struct role_book *b, int role)
{
        b->v[role].replicated = true;
}

bool role_book_is_replicated(const struct role_book *b, int role)
{
        return b->v[role].replicated;
}

/* Returns the number of the role whose name is @len bytes, -1 = there is none. */
static int find_book_role(const struct role_book *b, const char *name, size_t len)
{
        for (size_t r = 0; r < b->n; r++)
                if (strlen(b->v[r].name) == len && !memcmp(b->v[r].name, name, len))
                        return (int)r;
        return -1;
}

int role_book_find(const struct role_book *b, const char *name)
{
        return find_book_role(b, name, strlen(name));
}

int role_book_need_port(struct role_book *b, int role, const char *name)
{
        struct strv *ports = &b->v[role].ports;

        if (!port_name_is_valid(name, strlen(name)))
                return -EINVAL;
        if (strv_has(ports, name))
                return 0;
        if (ports->n == PORT_NAMES_MAX)
                return -E2BIG;
        strv_push(ports, name);
        return 0;
}

const struct strv *role_book_ports(const struct role_book *b, int role)
{
        return &b->v[role].ports;
}

const struct intlist *role_book_referred(const struct role_book *b, int role)
{
        return &b->v[role].referred;
}

/* Adds a host to the list of the role, once. @host is lent by its instance, and lives as long. */
static void note_role_host(struct role_entry *e, char *host)
{
        struct role_host *h;

        HASH_FIND_STR(e->hosts, host, h);
        if (h)
                return;
        h = xcalloc(1, sizeof(*h));
        h->name = host;
        HASH_ADD_KEYPTR(hh, e->hosts, h->name, strlen(h->name), h);
        buf_printf(&e->host_list, "%s%s", buf_len(&e->host_list) ? "," : "", host);
}

int role_book_add_instance(struct role_book *b, int role, const char *host, const char *addr)
{
        struct role_entry *e = &b->v[role];
        struct role_instance *i;

        e->v = xgrow(e->v, e->n, &e->cap, sizeof(*e->v));
        i = &e->v[e->n];
        *i = (struct role_instance){ .host = xstrdup(host), .addr = xstrdup(addr ? addr : host) };
        note_role_host(e, i->host);
        return (int)e->n++;
}

const char *role_book_address(const struct role_book *b, int role, int instance)
{
        return b->v[role].v[instance].addr;
}

/* Returns the port of an instance, lent; NULL = none is reserved under this name. */
static struct role_port *find_role_port(const struct role_instance *i, const char *name, size_t len)
{
        for (size_t k = 0; k < i->n_ports; k++)
                if (strlen(i->ports[k].name) == len && !memcmp(i->ports[k].name, name, len))
                        return &i->ports[k];
        return NULL;
}

void role_book_set_port(struct role_book *b, int role, int instance, const char *name,
                        uint32_t number)
{
        struct role_instance *i = &b->v[role].v[instance];
        struct role_port *p = find_role_port(i, name, strlen(name));

        if (!p) {
                i->ports = xgrow(i->ports, i->n_ports, &i->cap_ports, sizeof(*i->ports));
                p = &i->ports[i->n_ports++];
                p->name = xstrdup(name);
        }
        p->number = number;
}

json_t *role_book_json(const struct role_book *b)
{
        json_t *roles = json_object();

        for (size_t r = 0; r < b->n; r++) {
                const struct role_entry *e = &b->v[r];
                json_t *instances = json_array();

                for (size_t i = 0; i < e->n; i++) {
                        json_t *ports = json_object();

                        for (size_t k = 0; k < e->v[i].n_ports; k++)
                                json_object_set_new(ports, e->v[i].ports[k].name,
                                                    json_integer(e->v[i].ports[k].number));
                        json_array_append_new(instances,
                                              json_pack("{s:i, s:o, s:o, s:o}", "index", (int)i,
                                                        "host", json_text(e->v[i].host), "addr",
                                                        json_text(e->v[i].addr), "ports", ports));
                }
                json_object_set_new(roles, e->name, json_pack("{s:o}", "instances", instances));
        }
        return roles;
}

/* ---- reading ---- */

/* Makes a fault of @len bytes, with carets under @n bytes from @at, at least one. */
static struct reference make_fault(enum reference_fault fault, size_t len, size_t at, size_t n)
{
        return (struct reference){
                .fault = fault, .role = -1, .len = len, .at = at, .n = n ? n : 1
        };
}

/* Returns the offset of the brace that closes @text[0], 0 = there is none. */
static size_t find_closing_brace(const char *text)
{
        size_t depth = 0;

        for (size_t i = 0; text[i]; i++) {
                /* `each` may have references in its TEXT, whose braces come in pairs. */
                depth += text[i] == '{';
                depth -= text[i] == '}';
                if (!depth)
                        return i;
        }
        return 0;
}

/* Reads references to an instance: {port:NAME}, and inside of `each` {addr}, {host}, {index}. */
static struct reference read_own(const char *text, bool in_each)
{
        static const char *const words[] = { "{addr}", "{host}", "{index}" };
        const char *end = !strncmp(text, "{port:", 6) ? strchr(text, '}') : NULL;

        if (end)
                return (struct reference){ .kind = REFERENCE_OWN_PORT,
                                           .role = -1,
                                           .len = (size_t)(end - text) + 1,
                                           .at = 6,
                                           .n = (size_t)(end - text) - 6 };
        for (size_t i = 0; in_each && i < ARRAY_SIZE(words); i++)
                if (!strncmp(text, words[i], strlen(words[i])))
                        return (struct reference){ .kind = (enum reference_kind)(
                                                           REFERENCE_OWN_ADDR + i),
                                                   .role = -1,
                                                   .len = strlen(words[i]) };
        return (struct reference){ .role = -1, .len = 1 };
}

static enum reference_kind find_role_word(const char *word, size_t len)
{
        for (size_t i = 0; i < ARRAY_SIZE(role_words); i++)
                if (strlen(role_words[i]) == len && !memcmp(word, role_words[i], len))
                        return (enum reference_kind)(REFERENCE_ADDR + i);
        return REFERENCE_NONE;
}

/* Reads {ROLE.WORD} or {ROLE.WORD:REST}. Braces of an unknown role are a fault only with a known
 * word. */
static struct reference read_role_word(const struct role_book *b, const char *text, bool in_each)
{
        size_t name = strspn(text + 1, ROLE_LETTERS), at = name + 2, word, end;
        enum reference_kind kind;
        bool fits;
        int role;

        if (!name || text[name + 1] != '.')
                return (struct reference){ .role = -1, .len = 1 };
        word = strspn(text + at, ROLE_LETTERS);
        if (!word || !text[at + word] || !strchr("}:", text[at + word]))
                return (struct reference){ .role = -1, .len = 1 };
        kind = find_role_word(text + at, word);
        /* A colon must follow exactly the words that take a name or a text. */
        fits = kind && (text[at + word] == ':') == (kind >= REFERENCE_PORT);
        role = find_book_role(b, text + 1, name);
        if (role < 0)
                return fits ? make_fault(FAULT_ROLE, at + word, 1, name)
                            : (struct reference){ .role = -1, .len = 1 };
        if (!fits)
                return make_fault(FAULT_WORD, at + word, at, word);
        if (kind == REFERENCE_EACH && in_each)
                return make_fault(FAULT_NESTED, at + word, at, word);
        end = kind == REFERENCE_EACH ? find_closing_brace(text) : strcspn(text, "}");
        if (!end || !text[end])
                return make_fault(FAULT_OPEN, at + word, 0, at + word);
        return (struct reference){ .kind = kind,
                                   .role = role,
                                   .len = end + 1,
                                   .at = at + word + 1,
                                   .n = kind >= REFERENCE_PORT ? end - at - word - 1 : 0 };
}

/* Reads the piece at @text[at]. */
static struct reference read_reference(const struct role_book *b, const char *text, size_t at,
                                       bool in_each)
{
        const char *piece = text + at + (text[at] == '\\');
        struct reference r = { .role = -1, .len = 1 };

        if (*piece == '{')
                r = read_own(piece, in_each);
        if (*piece == '{' && !r.kind && !(at && text[at - 1] == '$'))
                r = read_role_word(b, piece, in_each);
        if (text[at] != '\\')
                return r;
        if (!r.kind && !r.fault)
                return (struct reference){ .role = -1, .len = 1 };
        /* A backslash also silences a fault: the text stays as it is. */
        r.escaped = true;
        r.len++;
        r.fault = FAULT_NONE;
        return r;
}

/* ---- errors ---- */

/* Adds an error about @n bytes of the text of @p, from @at. */
PRINTF(6, 7)
static struct diag *add_reference_error(struct book_pass *p, int id, size_t at, size_t n,
                                        const char *label, const char *fmt, ...)
{
        const struct role_text *t = p->text;
        CLEANUP(free_textp) char *fact = NULL;
        struct diag *d;
        va_list ap;

        /* An error counts even where no messages are wanted. */
        p->rc = -EINVAL;
        if (!p->diags)
                return NULL;
        va_start(ap, fmt);
        fact = xvasprintf(fmt, ap);
        va_end(ap);
        d = diag_add(p->diags, id, EX_USAGE, "%s", fact);
        diag_place(d, "%s", t->place);
        diag_source(d, t->line, t->source ? t->source : t->text,
                    (int)((t->source ? t->at : 0) + at + 1), (int)n, '^', label);
        return d;
}

/* Returns `did you mean` with the candidate nearest to @len letters of @word, else @otherwise;
 * malloc'ed. */
static char *make_near_name(const char *word, size_t len, const char *const *names, size_t n,
                            const char *otherwise)
{
        CLEANUP(free_textp) char *text = xstrndup(word, len);
        const char *near = diag_did_you_mean(text, names, n);

        return near ? xasprintf("did you mean `%s`?", near) : xstrdup(otherwise);
}

/* HN414 with the roles of the job. @text begins at the reference, @base is its offset in the text
 * of @p; so in the functions below. */
static void add_unknown_role(struct book_pass *p, const char *text, size_t base,
                             const struct reference *r)
{
        const struct role_book *b = p->book;
        const char **names = xcalloc(b->n, sizeof(*names));
        CLEANUP(free_textp) char *label = NULL;
        CLEANUP(buf_finish) struct buf list = BUF_INIT;
        struct diag *d;

        for (size_t i = 0; i < b->n; i++) {
                names[i] = b->v[i].name;
                buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
        }
        label = make_near_name(text + r->at, r->n, names, b->n, "no such role");
        free(names);
        d = add_reference_error(p, HN_ROLE_REFERENCE, base + r->at, r->n, label,
                                "there is no role `%.*s`", (int)r->n, text + r->at);
        if (buf_len(&list))
                diag_note(d, "the roles of the job are %.*s", (int)buf_len(&list), buf_data(&list));
        diag_help(d, "a backslash in front keeps the text as it is: \\{%.*s...}", (int)r->n,
                  text + r->at);
}

/* A known word gets here without its colon, or with one too many. */
static void add_unknown_word(struct book_pass *p, const char *text, size_t base,
                             const struct reference *r)
{
        enum reference_kind kind = find_role_word(text + r->at, r->n);
        CLEANUP(free_textp)
        char *label = kind ? xstrdup(kind >= REFERENCE_PORT ? "a colon and a name follow"
                                                            : "the brace ends behind it")
                           : make_near_name(text + r->at, r->n, role_words, ARRAY_SIZE(role_words),
                                            "no such word");
        struct diag *d = add_reference_error(p, HN_ROLE_REFERENCE, base + r->at, r->n, label,
                                             kind ? "`%.*s` of a role has another form"
                                                  : "a role has no `%.*s`",
                                             (int)r->n, text + r->at);

        diag_help(d, "the forms are {ROLE.addr}, {ROLE.hosts}, {ROLE.port:NAME}, {ROLE.urls:NAME} "
                     "and {ROLE.each:TEXT}; a backslash in front keeps the text as it is");
}

static void add_reference_fault(struct book_pass *p, const char *text, size_t base,
                                const struct reference *r)
{
        if (r->fault == FAULT_ROLE)
                add_unknown_role(p, text, base, r);
        else if (r->fault == FAULT_WORD)
                add_unknown_word(p, text, base, r);
        else if (r->fault == FAULT_NESTED)
                add_reference_error(p, HN_ROLE_REFERENCE, base + r->at, r->n, NULL,
                                    "{ROLE.each:TEXT} cannot stand inside of another one");
        else
                diag_help(add_reference_error(p, HN_ROLE_REFERENCE, base + r->at, r->n,
                                              "not closed", "a brace has no end"),
                          "a backslash in front keeps the text as it is: \\{...");
}

/* ---- the first pass ---- */

/* Reserves a port of the reference; @role -1 = the text is of no role, and {port:NAME} means
 * nothing. */
static void note_port(struct role_book *b, struct book_pass *p, int role, const char *name,
                      size_t base, size_t n)
{
        CLEANUP(free_textp) char *port = xstrndup(name, n);
        int rc = role < 0 ? 0 : role_book_need_port(b, role, port);
        struct diag *d;

        if (role < 0) {
                d = add_reference_error(p, HN_BAD_PORT_NAME, base, n ? n : 1, "whose port?",
                                        "{port:%s} stands outside of a role", port);
                diag_help(d, "{ROLE.port:%s} is the port of the first instance of ROLE", port);
        } else if (rc == -EINVAL) {
                d = add_reference_error(p, HN_BAD_PORT_NAME, base, n ? n : 1, NULL,
                                        "`%s` is no valid name of a port", port);
                diag_help(d,
                          "a name is a lower-case letter and up to %d lower-case letters, digits "
                          "and _; a backslash in front keeps the text as it is",
                          PORT_NAME_MAX - 1);
        } else if (rc == -E2BIG) {
                add_reference_error(p, HN_BAD_PORT_NAME, base, n, NULL,
                                    "`%s` is one port more than role %s may have: %d", port,
                                    b->v[role].name, PORT_NAMES_MAX);
        }
}

/* Reads @text, the text of @p from @base; @each is the role of an `each` around, -1 = none. */
static void scan_text(struct role_book *b, struct book_pass *p, const char *text, size_t base,
                      int each)
{
        int self = p->text->role;
        struct reference r;

        for (size_t at = 0; text[at]; at += r.len) {
                r = read_reference(b, text, at, each >= 0);
                if (r.fault)
                        add_reference_fault(p, text + at, base + at, &r);
                if (r.escaped || !r.kind)
                        continue;
                if (r.role >= 0 && self >= 0 && r.role != self &&
                    !intlist_has(&b->v[self].referred, r.role))
                        intlist_add(&b->v[self].referred, r.role);
                if (r.kind == REFERENCE_PORT || r.kind == REFERENCE_URLS)
                        note_port(b, p, r.role, text + at + r.at, base + at + r.at, r.n);
                else if (r.kind == REFERENCE_OWN_PORT)
                        note_port(b, p, each >= 0 ? each : self, text + at + r.at, base + at + r.at,
                                  r.n);
                else if (r.kind == REFERENCE_EACH) {
                        CLEANUP(free_textp) char *inner = xstrndup(text + at + r.at, r.n);

                        scan_text(b, p, inner, base + at + r.at, r.role);
                }
        }
}

int role_book_scan(struct role_book *b, const struct role_text *t, struct diags *d)
{
        struct book_pass p = { .book = b, .text = t, .instance = -1, .diags = d };

        scan_text(b, &p, t->text, 0, -1);
        return p.rc;
}

/* ---- the second pass ---- */

/* Appends an address; an IPv6 address in front of a colon, where a port follows, in brackets. */
static void append_role_address(struct buf *to, const char *addr, char next)
{
        buf_printf(to, next == ':' && strchr(addr, ':') ? "[%s]" : "%s", addr);
}

/* Appends the number of a port. A plan that was only asked for has no numbers, and shows words in
 * their place. */
static void append_role_port(struct book_pass *p, struct buf *to, const struct role_entry *e,
                             const struct role_instance *i, const char *name, size_t base, size_t n)
{
        const struct role_port *port = find_role_port(i, name, n);

        if (port && port->number)
                buf_printf(to, "%u", port->number);
        else if (port)
                buf_appends(to, "(free port there)");
        else
                add_reference_error(p, HN_BAD_PORT_NAME, base, n ? n : 1, "not reserved",
                                    "role %s has no port `%.*s` on %s", e->name, (int)n, name,
                                    i->host);
}

/* An instance whose text is expanded: of `each`, or of the reader. */
struct book_place {
        int role, instance; /* -1 = none */
        bool in_each;
};

static void expand_pieces(struct book_pass *p, struct buf *to, const char *text, size_t base,
                          struct book_place place);

/* Appends the text of `each` once for each instance, with blanks between. The first error ends the
 * work, else each instance would repeat it. */
static void expand_each(struct book_pass *p, struct buf *to, const char *text, size_t base,
                        const struct reference *r)
{
        CLEANUP(free_textp) char *inner = xstrndup(text + r->at, r->n);

        for (size_t i = 0; i < p->book->v[r->role].n && !p->rc; i++) {
                if (i)
                        buf_append(to, " ", 1);
                expand_pieces(p, to, inner, base + r->at,
                              (struct book_place){ r->role, (int)i, true });
        }
}

/* Appends the value of a reference to a role. */
static void expand_role(struct book_pass *p, struct buf *to, const char *text, size_t base,
                        const struct reference *r)
{
        const struct role_entry *e = &p->book->v[r->role];
        const char *name = text + r->at;

        if (!e->n) {
                add_reference_error(p, HN_ROLE_REFERENCE, base, r->len, NULL,
                                    "role %s has no instance", e->name);
                return;
        }
        switch (r->kind) {
        case REFERENCE_ADDR:
                append_role_address(to, e->v[0].addr, text[r->len]);
                break;
        case REFERENCE_HOSTS:
                buf_append(to, buf_data(&e->host_list), buf_len(&e->host_list));
                break;
        case REFERENCE_PORT:
                append_role_port(p, to, e, &e->v[0], name, base + r->at, r->n);
                break;
        case REFERENCE_URLS:
                for (size_t i = 0; i < e->n && !p->rc; i++) {
                        buf_appends(to, i ? ",http://" : "http://");
                        append_role_address(to, e->v[i].addr, ':');
                        buf_append(to, ":", 1);
                        append_role_port(p, to, e, &e->v[i], name, base + r->at, r->n);
                }
                break;
        default:
                expand_each(p, to, text, base, r);
        }
}

/* Appends the value of a reference to the instance of @place. */
static void expand_own(struct book_pass *p, struct buf *to, const char *text, size_t base,
                       const struct reference *r, struct book_place place)
{
        const struct role_entry *e = &p->book->v[place.role];
        const struct role_instance *i = &e->v[place.instance];

        switch (r->kind) {
        case REFERENCE_OWN_ADDR:
                append_role_address(to, i->addr, text[r->len]);
                break;
        case REFERENCE_OWN_HOST:
                append_role_address(to, i->host, text[r->len]);
                break;
        case REFERENCE_OWN_INDEX:
                buf_printf(to, "%d", place.instance);
                break;
        default:
                append_role_port(p, to, e, i, text + r->at, base + r->at, r->n);
        }
}

/* Appends @text, the text of @p from @base, to @to. */
static void expand_pieces(struct book_pass *p, struct buf *to, const char *text, size_t base,
                          struct book_place place)
{
        struct reference r;

        for (size_t at = 0; text[at]; at += r.len) {
                const char *piece = text + at;

                r = read_reference(p->book, text, at, place.in_each);
                if (r.fault)
                        add_reference_fault(p, piece, base + at, &r);
                else if (!r.escaped && r.role >= 0)
                        expand_role(p, to, piece, base + at, &r);
                else if (r.kind == REFERENCE_OWN_PORT && place.instance < 0)
                        buf_append(to, piece, r.len);
                else if (r.escaped || !r.kind)
                        buf_append(to, piece + r.escaped, r.len - r.escaped);
                else
                        expand_own(p, to, piece, base + at, &r, place);
        }
}

/* Returns the expanded text, malloc'ed; after an error, p->rc, its content means nothing. */
static char *expand_book_text(struct book_pass *p, const char *text, size_t base,
                              struct book_place place)
{
        struct buf to = BUF_INIT;

        expand_pieces(p, &to, text, base, place);
        return buf_len(&to) ? buf_steal(&to) : xstrdup("");
}

/* A text of no role has no instance, whatever the caller passes. */
static struct book_place find_book_place(const struct role_text *t, int instance)
{
        return (struct book_place){ t->role, t->role < 0 ? -1 : instance, false };
}

char *role_book_expand_text(const struct role_book *b, const struct role_text *t, int instance,
                            struct diags *d)
{
        struct book_pass p = { .book = b, .text = t, .instance = instance, .diags = d };
        char *text = expand_book_text(&p, t->text, 0, find_book_place(t, instance));

        if (!p.rc)
                return text;
        free(text);
        return NULL;
}

/* Appends the words of the text of `each` for one instance. The text is split before references
 * are replaced: a value is never split. */
static void expand_words(struct book_pass *p, struct strv *argv, const struct reference *r,
                         int instance)
{
        const char *text = p->text->text;

        for (size_t at = r->at, end = r->at + r->n, len; at < end; at += len) {
                CLEANUP(free_textp) char *word = NULL;

                at += strspn(text + at, BLANKS);
                len = MIN(strcspn(text + at, BLANKS), end - MIN(at, end));
                if (!len)
                        break;
                word = xstrndup(text + at, len);
                strv_push_take(argv,
                               expand_book_text(p, word, at,
                                                (struct book_place){ r->role, instance, true }));
        }
}

int role_book_expand(const struct role_book *b, const struct role_text *t, int instance,
                     struct strv *argv, struct diags *d)
{
        struct book_pass p = { .book = b, .text = t, .instance = instance, .diags = d };
        struct reference r = read_reference(b, t->text, 0, false);
        CLEANUP(strv_finish) struct strv words = STRV_INIT;

        /* The whole argument is `each`: its words become arguments, as a shell would split them. */
        if (r.kind == REFERENCE_EACH && !r.escaped && !t->text[r.len] && b->v[r.role].n)
                for (size_t i = 0; i < b->v[r.role].n && !p.rc; i++)
                        expand_words(&p, &words, &r, (int)i);
        else
                strv_push_take(&words,
                               expand_book_text(&p, t->text, 0, find_book_place(t, instance)));
        if (!p.rc)
                strv_copy(argv, &words);
        return p.rc;
}
