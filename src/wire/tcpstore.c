/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command is a row of fields. The parser remembers the next field and its position. Lengths are
 * stored while a command comes in; pointers are made once the command is whole, because the buffer
 * moves in between.
 *
 * A or B? Releases up to 2.0 send the number of a command alone in a segment of its own, 2.1 sends
 * a command in one piece. So a first segment of one byte, or a number alone in an empty buffer,
 * means A; but segments may have been joined on the way, so the opposite proves nothing. The
 * commands of B only (9, 10 and 11, and 7 after any other command) correct a wrong guess. While
 * nothing is known, 8 is checked each time: A's DELETE ends with the key and waits for the answer,
 * B's APPEND goes on.
 */
#include "wire/tcpstore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "wire/codec.h"

enum {
        NUMBERS = 19,     /* of commands on the wire */
        MORE_KEYS = 64,   /* the first capacity of a list */
        KEPT_KEYS = 1024, /* capacity kept from command to command */
};

#define NOTHING TCPSTORE_OPS /* no command has begun */

enum tcpstore_field { END, KEY, EXPECT, VALUE, NUMBER, WORD, KEYS, PAIRS };

/* The fields of each command in the order of the wire. A missing field is END (0), which ends the
 * row. */
static const struct {
        const char *name;
        uint8_t fields[4];
} ops[] = {
        [TCPSTORE_VALIDATE] = { "VALIDATE", { WORD } },
        [TCPSTORE_SET] = { "SET", { KEY, VALUE } },
        [TCPSTORE_COMPARE_SET] = { "COMPARE_SET", { KEY, EXPECT, VALUE } },
        [TCPSTORE_GET] = { "GET", { KEY } },
        [TCPSTORE_ADD] = { "ADD", { KEY, NUMBER } },
        [TCPSTORE_CHECK] = { "CHECK", { KEYS } },
        [TCPSTORE_WAIT] = { "WAIT", { KEYS } },
        [TCPSTORE_NUM_KEYS] = { "NUM_KEYS", { END } },
        [TCPSTORE_DELETE] = { "DELETE", { KEY } },
        [TCPSTORE_APPEND] = { "APPEND", { KEY, VALUE } },
        [TCPSTORE_MULTI_GET] = { "MULTI_GET", { KEYS } },
        [TCPSTORE_MULTI_SET] = { "MULTI_SET", { PAIRS } },
        [TCPSTORE_CANCEL_WAIT] = { "CANCEL_WAIT", { END } },
        [TCPSTORE_PING] = { "PING", { WORD } },
        [TCPSTORE_QUEUE_PUSH] = { "QUEUE_PUSH", { KEY, VALUE } },
        [TCPSTORE_QUEUE_POP] = { "QUEUE_POP", { KEY } },
        [TCPSTORE_QUEUE_LEN] = { "QUEUE_LEN", { KEY } },
        [TCPSTORE_LIST_KEYS] = { "LIST_KEYS", { END } },
        [TCPSTORE_BARRIER] = { "BARRIER", { KEY, NUMBER } },
        [TCPSTORE_WATCH_KEY] = { "WATCH_KEY", { KEY } },
};

/* clang-format off */
static const uint8_t numbers_a[] = {
        TCPSTORE_SET, TCPSTORE_COMPARE_SET, TCPSTORE_GET, TCPSTORE_ADD, TCPSTORE_CHECK,
        TCPSTORE_WAIT, TCPSTORE_NUM_KEYS, TCPSTORE_WATCH_KEY, TCPSTORE_DELETE,
};
static const uint8_t numbers_b[] = {
        TCPSTORE_SET, TCPSTORE_COMPARE_SET, TCPSTORE_GET, TCPSTORE_ADD, TCPSTORE_CHECK,
        TCPSTORE_WAIT, TCPSTORE_NUM_KEYS, TCPSTORE_DELETE, TCPSTORE_APPEND, TCPSTORE_MULTI_GET,
        TCPSTORE_MULTI_SET, TCPSTORE_CANCEL_WAIT,
};
/* clang-format on */

struct tcpstore_parser {
        struct tcpstore_limits limits;
        enum tcpstore_dialect dialect;
        bool said;     /* a command has been consumed */
        bool watching; /* WATCH_KEY was first: A's second connection, which has no other commands */
        bool joined;   /* this command began after another one in the buffer */
        bool whole;
        struct tcpstore_command command; /* pointers are valid only when whole */
        unsigned step;                   /* index of the next field */
        size_t at;                       /* where the next field, or item of a list, begins */
        bool counted; /* the list's count is known: n_keys of @count are parsed */
        uint32_t count;
        uint32_t capacity; /* capacity of the arrays */
};

struct tcpstore_parser *tcpstore_parser_create(struct tcpstore_limits limits)
{
        struct tcpstore_parser *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        p->limits = limits;
        p->command.op = NOTHING;
        return p;
}

void tcpstore_parser_destroy(struct tcpstore_parser *p)
{
        if (!p)
                return;
        free(p->command.keys);
        free(p->command.values);
        free(p);
}

enum tcpstore_dialect tcpstore_parser_dialect(const struct tcpstore_parser *p)
{
        return p->dialect;
}

const char *tcpstore_op_name(enum tcpstore_op op)
{
        return (unsigned)op < ARRAY_SIZE(ops) ? ops[op].name : "?";
}

/* The caller has checked that @size bytes are there: 4 or 8. */
static uint64_t read_integer(const unsigned char *from, size_t size)
{
        struct reader r = READER_INIT(from, size);

        return size == 4 ? take_u32(&r) : take_u64(&r);
}

/* --- which command ---------------------------------------------------------------------------- */

/* A printable first byte is most likely another protocol, such as HTTP. */
static int reject_number(const struct tcpstore_parser *p, unsigned char number, struct error *err)
{
        if (!p->said && number >= ' ' && number < 0x7f)
                return err_set(err, EPROTO, "not a TCPStore client: first byte `%c`", number);
        return err_set(err, EPROTO, "unknown TCPStore command %u", number);
}

/* Chooses between the dialects that begin with the same numbers, as late as possible: some commands
 * decide, others are equal in both. */
static int choose_a_or_b(struct tcpstore_parser *p, const struct buf *in, size_t first_segment,
                         struct error *err)
{
        unsigned char number = *buf_data(in);
        bool alone = p->said ? buf_len(in) == 1 && !p->joined : first_segment == 1;

        /* numbers_b is the longer table. */
        if (number >= ARRAY_SIZE(numbers_b))
                return reject_number(p, number, err);
        if (p->dialect == TCPSTORE_UNKNOWN)
                p->dialect = TCPSTORE_A_OR_B;
        /* NUM_KEYS is a single byte in every dialect. */
        if (p->dialect == TCPSTORE_A_OR_B && alone && numbers_b[number] != TCPSTORE_NUM_KEYS)
                p->dialect = TCPSTORE_A;
        if (number == 7) {
                /* WATCH_KEY only as the first command of a connection: A's second connection. */
                p->watching |= !p->said && first_segment <= 1;
                p->dialect = p->watching ? TCPSTORE_A : TCPSTORE_B;
        } else if (number >= ARRAY_SIZE(numbers_a)) {
                p->dialect = TCPSTORE_B;
        }
        p->command.op = p->dialect == TCPSTORE_B ? numbers_b[number] : numbers_a[number];
        return 1;
}

/* Reads the number of the command. 1: known now, 0: more bytes are needed. */
static int choose_command(struct tcpstore_parser *p, const struct buf *in, size_t first_segment,
                          struct error *err)
{
        static const unsigned char validate[] = { 0, TCPSTORE_MAGIC & 0xff,
                                                  TCPSTORE_MAGIC >> 8 & 0xff,
                                                  TCPSTORE_MAGIC >> 16 & 0xff,
                                                  TCPSTORE_MAGIC >> 24 };
        size_t n = MIN(buf_len(in), sizeof(validate));

        if (!n)
                return 0;
        /* A first 0 is VALIDATE or SET. SET goes on with a length, which cannot be as large as the
         * magic. */
        if (p->dialect == TCPSTORE_UNKNOWN && memcmp(buf_data(in), validate, n) == 0) {
                if (n < sizeof(validate))
                        return 0;
                p->dialect = TCPSTORE_C;
        }
        p->at = 1;
        if (p->dialect != TCPSTORE_C)
                return choose_a_or_b(p, in, first_segment, err);
        if (*buf_data(in) >= NUMBERS)
                return reject_number(p, *buf_data(in), err);
        p->command.op = *buf_data(in);
        return 1;
}

/* --- fields ----------------------------------------------------------------------------------- */

static int reject_length(const struct tcpstore_parser *p, const char *what, uint64_t n, size_t most,
                         struct error *err)
{
        return err_set(err, EPROTO, "%s: %s of %llu, more than %zu",
                       tcpstore_op_name(p->command.op), what, (unsigned long long)n, most);
}

/* Parses a length and as many bytes; the length is checked before the bytes are there. */
static int parse_command_string(struct tcpstore_parser *p, const struct buf *in, size_t max,
                                size_t *ret, struct error *err)
{
        size_t there = buf_len(in) - p->at;
        uint64_t len;

        if (there < 8)
                return 0;
        len = read_integer(buf_data(in) + p->at, 8);
        if (len > max)
                return reject_length(p, "a length", len, max, err);
        /* A list of valid items may be too large as a whole. @len is below @max, so the sum does
         * not overflow. */
        if (p->at + 8 + len > p->limits.command)
                return reject_length(p, "a size", p->at + 8 + len, p->limits.command, err);
        if (there < 8 + len)
                return 0;
        p->at += 8 + (size_t)len;
        *ret = (size_t)len;
        return 1;
}

/* VALIDATE's number is checked at once: a client with another magic gets no answer. */
static int parse_command_number(struct tcpstore_parser *p, const struct buf *in, size_t size,
                                struct error *err)
{
        if (buf_len(in) - p->at < size)
                return 0;
        p->command.number = (int64_t)read_integer(buf_data(in) + p->at, size);
        p->at += size;
        if (p->command.op == TCPSTORE_VALIDATE && p->command.number != TCPSTORE_MAGIC)
                return err_set(err, EPROTO, "VALIDATE with a wrong magic number");
        return 1;
}

/* The arrays grow with the items received, not with the count claimed. */
static int make_room(struct tcpstore_parser *p, struct error *err)
{
        uint32_t capacity = p->capacity ? 2 * p->capacity : MORE_KEYS;
        struct bytes **arrays[] = { &p->command.keys, &p->command.values };

        if (p->command.n_keys < p->capacity)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
                void *more = realloc(*arrays[i], capacity * sizeof(**arrays[i]));

                /* The other array is valid still, and is freed with the parser. */
                if (!more)
                        return err_set(err, EPROTO, "out of memory for %u keys", capacity);
                *arrays[i] = more;
        }
        p->capacity = capacity;
        return 0;
}

/* The key of a pair counts only together with the value; before, the pair is parsed again. */
static int parse_command_item(struct tcpstore_parser *p, const struct buf *in, bool pair,
                              struct error *err)
{
        struct tcpstore_command *c = &p->command;
        size_t before = p->at;
        int r = make_room(p, err);

        if (r == 0)
                r = parse_command_string(p, in, p->limits.key, &c->keys[c->n_keys].len, err);
        if (r > 0 && pair)
                r = parse_command_string(p, in, p->limits.value, &c->values[c->n_keys].len, err);
        if (r > 0)
                c->n_keys++;
        else
                p->at = before;
        return r;
}

/* Parses a counted list of keys, or of keys and values. 1, 0: more bytes must come, negative with
 * @err. */
static int parse_command_list(struct tcpstore_parser *p, const struct buf *in, bool pairs,
                              struct error *err)
{
        uint64_t count;
        int r = 1;

        if (!p->counted) {
                if (buf_len(in) - p->at < 8)
                        return 0;
                count = read_integer(buf_data(in) + p->at, 8);
                if (count > p->limits.keys)
                        return reject_length(p, "a count", count, p->limits.keys, err);
                p->at += 8;
                /* The limit has 32 bits, so the count fits. */
                p->count = (uint32_t)count;
                p->counted = true;
        }
        while (r > 0 && p->command.n_keys < p->count)
                r = parse_command_item(p, in, pairs, err);
        return r;
}

/* Returns the string in which @field is kept, or NULL: a number or a list. */
static struct bytes *command_string(struct tcpstore_command *c, uint8_t field)
{
        switch (field) {
        case KEY:
                return &c->key;
        case EXPECT:
                return &c->expect;
        case VALUE:
                return &c->value;
        default:
                return NULL;
        }
}

static int parse_command_field(struct tcpstore_parser *p, const struct buf *in, uint8_t field,
                               struct error *err)
{
        struct bytes *s = command_string(&p->command, field);

        if (s)
                return parse_command_string(p, in, field == KEY ? p->limits.key : p->limits.value,
                                            &s->len, err);
        if (field == NUMBER || field == WORD)
                return parse_command_number(p, in, field == WORD ? 4 : 8, err);
        return parse_command_list(p, in, field == PAIRS, err);
}

/* Parses the fields of a command, and goes on where the bytes ended last time. Returns as
 * parse_command_list(). */
static int parse_command_fields(struct tcpstore_parser *p, const struct buf *in, struct error *err)
{
        while (ops[p->command.op].fields[p->step] != END) {
                /* Only @step is kept from call to call: bytes of complete fields are not parsed
                 * again. */
                int r = parse_command_field(p, in, ops[p->command.op].fields[p->step], err);

                if (r <= 0)
                        return r;
                p->step++;
                /* A's DELETE ends with the key; B's APPEND, the same number, goes on. */
                if (p->command.op == TCPSTORE_DELETE && p->dialect == TCPSTORE_A_OR_B &&
                    buf_len(in) > p->at) {
                        p->dialect = TCPSTORE_B;
                        p->command.op = TCPSTORE_APPEND;
                }
        }
        return 1;
}

/* --- the whole command ------------------------------------------------------------------------ */

/* @at moves behind the string. */
static void locate_string(struct bytes *b, const unsigned char **at)
{
        b->p = *at + 8;
        *at += 8 + b->len;
}

/* Makes pointers from the lengths. Nothing follows a number. */
static void locate_fields(struct tcpstore_command *c, const unsigned char *at)
{
        for (const uint8_t *f = ops[c->op].fields; *f != END; f++) {
                struct bytes *s = command_string(c, *f);

                if (s) {
                        locate_string(s, &at);
                } else if (*f == KEYS || *f == PAIRS) {
                        at += 8;
                        for (uint32_t i = 0; i < c->n_keys; i++) {
                                locate_string(&c->keys[i], &at);
                                if (*f == PAIRS)
                                        locate_string(&c->values[i], &at);
                        }
                }
        }
}

/* A whole command stays the answer until tcpstore_parser_consume(); its pointers are made anew,
 * because the buffer may have moved. */
int tcpstore_parser_next(struct tcpstore_parser *p, const struct buf *in, size_t first_segment,
                         struct tcpstore_command *ret, struct error *err)
{
        int r = p->whole || p->command.op != NOTHING ? 1
                                                     : choose_command(p, in, first_segment, err);

        if (r > 0 && !p->whole)
                r = parse_command_fields(p, in, err);
        if (r <= 0)
                return r;
        p->whole = true;
        locate_fields(&p->command, buf_data(in) + 1);
        *ret = p->command;
        return 1;
}

void tcpstore_parser_consume(struct tcpstore_parser *p, struct buf *in)
{
        struct tcpstore_command *c = &p->command;

        buf_consume(in, p->at);
        /* A client that has sent one long list must not hold its memory for the rest of the
         * connection. */
        if (p->capacity > KEPT_KEYS) {
                free(c->keys);
                free(c->values);
                c->keys = c->values = NULL;
                p->capacity = 0;
        }
        *c = (struct tcpstore_command){ .op = NOTHING, .keys = c->keys, .values = c->values };
        p->said = true;
        p->joined = buf_len(in) > 0;
        p->whole = p->counted = false;
        p->step = p->count = 0;
        p->at = 0;
}

/* --- the other way round ---------------------------------------------------------------------- */

static void put_tcpstore_string(struct buf *b, struct bytes v)
{
        put_u64(b, v.len);
        buf_append(b, v.p, v.len);
}

/* Returns the number of @op in @dialect, or -1. */
static int wire_number(enum tcpstore_dialect dialect, enum tcpstore_op op)
{
        const uint8_t *table = dialect == TCPSTORE_A ? numbers_a : numbers_b;
        size_t n = dialect == TCPSTORE_A ? ARRAY_SIZE(numbers_a) : ARRAY_SIZE(numbers_b);

        /* C has the numbers of enum tcpstore_op; WATCH_KEY, of A only, is beyond NUMBERS. */
        if (dialect == TCPSTORE_C)
                return (int)op < NUMBERS ? (int)op : -1;
        for (size_t i = 0; i < n; i++)
                if (table[i] == op)
                        return (int)i;
        return -1;
}

static void put_command_list(struct buf *b, const struct tcpstore_command *c, bool pairs)
{
        put_u64(b, c->n_keys);
        for (uint32_t i = 0; i < c->n_keys; i++) {
                put_tcpstore_string(b, c->keys[i]);
                if (pairs)
                        put_tcpstore_string(b, c->values[i]);
        }
}

bool tcpstore_command_encode(struct buf *b, enum tcpstore_dialect dialect,
                             const struct tcpstore_command *c)
{
        int number = wire_number(dialect, c->op);

        if (number < 0)
                return false;
        put_u8(b, (uint8_t)number);
        for (const uint8_t *f = ops[c->op].fields; *f != END; f++) {
                struct bytes *s = command_string((struct tcpstore_command *)c, *f);

                if (s)
                        put_tcpstore_string(b, *s);
                else if (*f == NUMBER)
                        put_u64(b, (uint64_t)c->number);
                else if (*f == WORD)
                        put_u32(b, (uint32_t)c->number);
                else
                        put_command_list(b, c, *f == PAIRS);
        }
        return true;
}
