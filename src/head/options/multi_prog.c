/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line becomes a program. The agent replaces {rank} in arguments, so %t becomes {rank}, and
 * any other place-holder is escaped. The agent has no name for %o: a line with %o becomes a program
 * for each rank. A rank may stand in one line only, as with srun.
 */
#include "head/options/multi_prog.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/model/plan.h"
#include "head/options/option_table.h"
#include "head/options/program_options.h"
#include "wire/env/subst.h"

enum {
        FILE_SIZE_MAX = 8 << 20,
        PROGRAMS_MAX = 4096, /* of an order (wire/msg.c) */
        RANK_DIGITS = 7,
};

/* The line in hand. */
struct multi_reader {
        struct options *o;
        struct multi_prog *m;
        struct diags *d;
        bool *taken; /* by rank, PLAN_MAX_RANKS of them */
        int line;
        char *text;
};

/* ---- errors ---- */

/* Adds an error about @len bytes at @at, in the line in hand. */
static struct diag *refuse_at(struct multi_reader *r, const char *at, size_t len, const char *fact)
{
        struct diag *diag = diag_add(r->d, HN_MULTI_PROG, EX_DATAERR, "%s", fact);
        int col = (int)(at - r->text) + 1;

        diag_place(diag, "%s:%d:%d", r->m->path, r->line, col);
        diag_source(diag, r->line, r->text, col, (int)MAX(len, 1U), '^', NULL);
        return diag;
}

/* Refuses the highest rank of the file, too high for a world of @size. */
static void refuse_highest(const struct multi_prog *m, int size, struct diags *d)
{
        struct diag *diag = diag_add(d, HN_MULTI_PROG, EX_DATAERR,
                                     "there is no rank %d: the job has %d", m->highest, size);

        diag_place(diag, "%s:%d:%d", m->path, m->line, m->col);
        diag_source(diag, m->line, m->text, m->col, m->len, '^', NULL);
        diag_help(diag, "-n %d starts so many ranks", m->highest + 1);
}

/* ---- ranks ---- */

/* Notes the place of the highest rank so far. */
static void note_highest(struct multi_reader *r, int rank, const char *at, size_t len)
{
        if (rank <= r->m->highest)
                return;
        r->m->highest = rank;
        r->m->line = r->line;
        r->m->col = (int)(at - r->text) + 1;
        r->m->len = (int)len;
        free(r->m->text);
        r->m->text = xstrdup(r->text);
}

/* Adds a rank of the line. -EINVAL: another line, or the present line, has the rank already. */
static int take_rank(struct multi_reader *r, int rank, const char *at, size_t len,
                     struct intlist *ret_ranks)
{
        char fact[64];

        if (r->taken[rank]) {
                snprintf(fact, sizeof(fact), "rank %d has two programs", rank);
                diag_help(refuse_at(r, at, len, fact), "a rank stands in one line only");
                return -EINVAL;
        }
        r->taken[rank] = true;
        intlist_add(ret_ranks, rank);
        return 0;
}

/* Reads a number of at most RANK_DIGITS digits, and moves *at behind all digits. Returns -1 for any
 * other text, and for a rank beyond any job. */
static int read_rank(const char **at)
{
        size_t digits = strspn(*at, "0123456789");
        int rank = digits && digits <= RANK_DIGITS ? atoi(*at) : -1;

        *at += digits;
        return rank < PLAN_MAX_RANKS ? rank : -1;
}

/* Reads "0,3-5", @len bytes at @list. 0, or -EINVAL with an error. */
static int read_ranks(struct multi_reader *r, const char *list, size_t len,
                      struct intlist *ret_ranks)
{
        const char *end = list + len, *at = list;

        while (at < end) {
                const char *item = at;
                size_t size = strcspn(item, ", \t");
                int low = read_rank(&at), high = low;

                if (low >= 0 && *at == '-') {
                        at++;
                        high = read_rank(&at);
                }
                if (low < 0 || high < low || at != item + size || (*at == ',' && at + 1 == end)) {
                        diag_help(refuse_at(r, item, size, "a line begins with ranks"),
                                  "as in 0,3-5, or * for the ranks of no other line");
                        return -EINVAL;
                }
                for (int rank = low; rank <= high; rank++)
                        if (take_rank(r, rank, item, size, ret_ranks) < 0)
                                return -EINVAL;
                note_highest(r, high, item, size);
                at += *at == ',';
        }
        return 0;
}

/* ---- words ---- */

/* Adds the place-holder at @text with a backslash, against replacement. Returns the length, 0 =
 * none. */
static size_t keep_placeholder(const char *text, struct buf *word)
{
        struct subst_piece piece = subst_read(text);

        if (piece.kind == SUBST_NONE || piece.escaped)
                return 0;
        buf_printf(word, "\\%.*s", (int)piece.len, text);
        return piece.len;
}

/* How %t and %o of a line are replaced, and which of them were there. */
struct placeholders {
        const char *offset; /* NULL: {rank} */
        bool escape; /* {rank} and the like are arguments, and the agent would replace them */
        bool has_rank, has_offset;
};

/* Splits @text into words; single quotes and backslashes keep characters. Returns NULL, or the
 * place of an open quote. Called twice for a line: the first call finds the place-holders, whose
 * replacement then is known. */
static const char *split_words(const char *text, struct placeholders *p, struct strv *ret)
{
        const char *quote = NULL;
        struct buf word = BUF_INIT;
        bool any = false;
        size_t kept;

        for (const char *c = text;; c++) {
                if (!*c || (!quote && isspace((unsigned char)*c))) {
                        if (any)
                                strv_push_take(ret, buf_steal(&word));
                        any = false;
                        if (!*c)
                                break;
                        continue;
                }
                any = true;
                if (*c == '\'') {
                        quote = quote ? NULL : c;
                } else if (!quote && *c == '%' && (c[1] == 't' || c[1] == 'o')) {
                        p->has_offset |= *++c == 'o';
                        /* Without a list of ranks, %o is the rank. */
                        p->has_rank |= *c == 't' || !p->offset;
                        buf_appends(&word, *c == 'o' && p->offset ? p->offset : "{rank}");
                } else {
                        /* A backslash at the end of the line is a character. */
                        c += !quote && *c == '\\' && c[1];
                        kept = p->escape ? keep_placeholder(c, &word) : 0;
                        if (!kept)
                                buf_append(&word, c, 1);
                        c += MAX(kept, 1U) - 1;
                }
        }
        buf_finish(&word);
        return quote;
}

/* ---- programs ---- */

/* Adds a program, and moves @ranks there. Returns the empty list of words, or NULL: too many. The
 * words of the first program are those of the command line, as elsewhere. */
static struct strv *add_program(struct multi_reader *r, struct intlist *ranks)
{
        struct multi_prog *m = r->m;

        if (m->n == PROGRAMS_MAX)
                return NULL;
        m->v = xrealloc(m->v, m->n + 1, sizeof(*m->v));
        m->v[m->n++] = (struct multi_ranks){ .ranks = *ranks };
        *ranks = (struct intlist){ 0 };
        return m->n == 1 ? &r->o->argv : &program_options_add(r->o)->argv;
}

/* Adds the program at @text, or with %o one for each rank. */
static int add_programs(struct multi_reader *r, const char *text, struct intlist *ranks)
{
        struct placeholders p = { .offset = ranks->n ? "" : NULL };
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        const char *open = split_words(text, &p, &words);
        bool each = p.has_offset && ranks->n;
        struct intlist one = { 0 };
        struct strv *to;
        char place[24];

        if (open) {
                refuse_at(r, open, 1, "a ' is not closed");
                return -EINVAL;
        }
        /* With --subst place-holders in the words are meant for the agent. */
        p.escape = p.has_rank && !r->o->subst;
        for (size_t i = 0; i < (each ? ranks->n : 1); i++) {
                if (each)
                        intlist_add(&one, ranks->v[i]);
                to = add_program(r, each ? &one : ranks);
                if (!to) {
                        intlist_finish(&one);
                        refuse_at(r, r->text, strlen(r->text),
                                  "the file has more than 4096 programs");
                        return -EINVAL;
                }
                snprintf(place, sizeof(place), "%zu", i);
                p.offset = p.offset ? place : NULL;
                split_words(text, &p, to);
                /* The agent reads the words only where this file needs it. */
                r->m->v[r->m->n - 1].subst = p.has_rank;
        }
        return 0;
}

/* Reads the line in hand. */
static int read_ranks_line(struct multi_reader *r)
{
        const char *at = r->text + strspn(r->text, " \t\r\v\f");
        size_t len = strcspn(at, " \t");
        const char *program = at + len + strspn(at + len, " \t");
        CLEANUP(intlist_finish) struct intlist ranks = { 0 };
        bool rest = len == 1 && *at == '*';

        if (!*at || *at == '#')
                return 0;
        if (!rest && read_ranks(r, at, len, &ranks) < 0)
                return -EINVAL;
        if (rest && r->m->has_rest) {
                refuse_at(r, at, len, "two lines have the ranks of no other line");
                return -EINVAL;
        }
        if (!*program) {
                diag_help(refuse_at(r, at, len, "no program follows the ranks"),
                          "write it in the same line: 0,3-5 ./a.out ARGS...");
                return -EINVAL;
        }
        r->m->has_rest |= rest;
        return add_programs(r, program, &ranks);
}

/* Reads all lines, up to the first mistake. 0, or -EINVAL. */
static int read_lines(struct multi_reader *r, char *text)
{
        char *next = text;
        int bad = 0;

        while (next && bad == 0) {
                r->text = next;
                next = strchr(next, '\n');
                if (next)
                        *next++ = '\0';
                if (*r->text && r->text[strlen(r->text) - 1] == '\r')
                        r->text[strlen(r->text) - 1] = '\0';
                r->line++;
                bad = read_ranks_line(r);
        }
        return bad;
}

/* ---- the file ---- */

/* Refuses ranks without a program, and a file without any. @size is 0 when a line with * leaves
 * the number of ranks to the plan. */
static int check_missing(struct multi_reader *r, int size)
{
        struct diag *diag;
        int rank = 0;

        while (!r->m->has_rest && rank < size && r->taken[rank])
                rank++;
        if (r->m->n && (r->m->has_rest || rank == size))
                return 0;
        diag = diag_add(r->d, HN_MULTI_PROG, EX_DATAERR,
                        r->m->n ? "rank %d has no program" : "no program in the file", rank);
        diag_place(diag, "%s:%d", r->m->path, r->line);
        diag_help(diag,
                  r->m->n ? "the ranks of no other line have a line of their own: * ./a.out ARGS..."
                          : "a line has ranks and a program: 0,3-5 ./a.out ARGS...");
        return -EINVAL;
}

/* Refuses options and words beside the file. */
static int check_alone(const struct options *o, struct diags *d)
{
        const char *other = o->first           ? "--role"
                            : o->n_more        ? "a program behind `:`"
                            : o->plan.per_node ? "--per-node"
                                               : NULL;
        struct diag *diag;

        if (other) {
                diag_help(diag_add(d, HN_MULTI_PROG, EX_USAGE,
                                   "--multi-prog and %s exclude each other", other),
                          "the file has the programs of all ranks");
                return -EINVAL;
        }
        if (o->argv.n == 1)
                return 0;
        diag = diag_add(d, HN_MULTI_PROG, EX_USAGE, "`%s` behind the file of --multi-prog",
                        o->argv.v[1]);
        diag_help(diag, "arguments stand in the file, behind their program");
        return -EINVAL;
}

/* Reads the programs from @text. */
static int read_programs(struct multi_reader *r, char *text)
{
        int size = r->o->plan.np, bad = read_lines(r, text);

        /* -n is known now; without -n the plan tells later (multi_prog_share()). */
        if (bad == 0 && size && r->m->highest >= size) {
                refuse_highest(r->m, size, r->d);
                return -EINVAL;
        }
        /* The file names all ranks, so the size of the job follows. */
        if (!size && !r->m->has_rest)
                size = r->m->highest + 1;
        r->o->plan.np = size;
        return bad < 0 ? bad : check_missing(r, size);
}

int multi_prog_read(struct options *o, struct diags *d)
{
        struct multi_reader r = { .o = o, .d = d };
        CLEANUP(free_textp) char *text = NULL;
        size_t len;
        int bad;

        if (check_alone(o, d) < 0)
                return -EINVAL;
        r.m = o->multi = xcalloc(1, sizeof(*o->multi));
        r.m->path = xstrdup(o->argv.v[0]);
        r.m->highest = -1;
        bad = fd_read_file(r.m->path, FILE_SIZE_MAX, &text, &len);
        if (bad < 0) {
                diag_add(d, HN_MULTI_PROG, EX_NOINPUT,
                         "cannot read the file of --multi-prog %s: %s", r.m->path, strerror(-bad));
                return -EINVAL;
        }
        /* The word was the name of the file. */
        strv_finish(&o->argv);
        r.taken = xcalloc(PLAN_MAX_RANKS, sizeof(*r.taken));
        bad = read_programs(&r, text);
        free(r.taken);
        return bad;
}

int multi_prog_share(const struct multi_prog *m, struct plan *plan, struct diags *d)
{
        if (m->highest >= plan->world_size) {
                refuse_highest(m, plan->world_size, d);
                return -EINVAL;
        }
        for (size_t i = 0; i < m->n; i++)
                /* The program of * gets all ranks first; other lines then
                 * take the named ranks back. */
                for (int rank = 0; !m->v[i].ranks.n && rank < plan->world_size; rank++)
                        plan->ranks[rank].program = (int)i;
        for (size_t i = 0; i < m->n; i++)
                for (size_t k = 0; k < m->v[i].ranks.n; k++)
                        plan->ranks[m->v[i].ranks.v[k]].program = (int)i;
        return 0;
}

void multi_prog_free(struct multi_prog *m)
{
        if (!m)
                return;
        for (size_t i = 0; i < m->n; i++)
                intlist_finish(&m->v[i].ranks);
        free(m->v);
        free(m->path);
        free(m->text);
        free(m);
}
