/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command is parsed in place: separators in the text become NULs, and the fields point into the
 * text. A value of PMI-1 may contain blanks, so a word without '=' is joined to the field before by
 * putting the blank back. The frame functions find where a command ends in the bytes received so
 * far: a line of PMI-1, or the body of PMI-2 whose length stands in six digits in front.
 */
#include "agent/pmi/pmi_text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* Adds "KEY=VALUE", which ends with a NUL; the first field is the command's name. */
static int add_pmi_field(struct pmi_command *c, char *text, bool is_pmi1)
{
        char *equals = strchr(text, '=');

        if (!equals || equals == text) /* a field without a name */
                return -EPROTO;
        *equals = '\0';
        if (!c->name) {
                /* PMI-1 begins the lines of a spawn with mcmd. */
                if (strcmp(text, "cmd") != 0 && !(is_pmi1 && !strcmp(text, "mcmd")))
                        return -EPROTO;
                c->name = equals + 1;
                return 0;
        }
        if (c->n == PMI_FIELDS_MAX)
                return -EPROTO;
        c->fields[c->n++] = (struct pmi_field){ text, equals + 1 };
        return 0;
}

static bool takes_rest(const char *text)
{
        return !strncmp(text, "value=", 6) || !strncmp(text, "message=", 8);
}

int pmi1_parse(struct pmi_command *c, char *text, size_t len)
{
        char *next;

        *c = (struct pmi_command){ 0 };
        if (memchr(text, '\0', len))
                return -EPROTO;
        /* Blanks may stand anywhere between fields. */
        for (; *text; text = next) {
                if (*text == ' ') {
                        next = text + 1;
                        continue;
                }
                next = text + (takes_rest(text) ? strlen(text) : strcspn(text, " "));
                if (*next)
                        *next++ = '\0';
                if (c->n && !strchr(text, '=')) { /* a space within the value before */
                        text[-1] = ' ';
                        continue;
                }
                if (add_pmi_field(c, text, true) < 0)
                        return -EPROTO;
        }
        return c->name ? 0 : -EPROTO;
}

/* Returns the separator that ends the field; NULL = none. */
static char *find_pmi2_end(char *text)
{
        while ((text = strchr(text, ';'))) {
                if (text[1] != ';')
                        return text;
                text += 2;
        }
        return NULL;
}

int pmi2_parse(struct pmi_command *c, char *text, size_t len)
{
        char *end;

        *c = (struct pmi_command){ 0 };
        if (memchr(text, '\0', len))
                return -EPROTO;
        for (; *text; text = end + 1) {
                end = find_pmi2_end(text);
                if (!end) /* every field of PMI-2 ends with a semicolon */
                        return -EPROTO;
                *end = '\0';
                if (add_pmi_field(c, text, false) < 0)
                        return -EPROTO;
        }
        return c->name ? 0 : -EPROTO;
}

const char *pmi_find_field(const struct pmi_command *c, const char *key)
{
        for (size_t i = 0; i < c->n; i++)
                if (!strcmp(c->fields[i].key, key))
                        return c->fields[i].value;
        return NULL;
}

bool pmi_find_number(const struct pmi_command *c, const char *key, int *ret)
{
        const char *text = pmi_find_field(c, key);
        char *end;
        long number;

        if (!text || !*text)
                return false;
        errno = 0;
        number = strtol(text, &end, 10);
        if (errno || *end || number < INT_MIN || number > INT_MAX)
                return false;
        *ret = (int)number;
        return true;
}

int pmi1_frame(const struct buf *in, size_t *ret_len, size_t *ret_all)
{
        /* buf_data() of an empty buffer has nothing to search. */
        const unsigned char *p = buf_data(in), *end = NULL;

        if (buf_len(in))
                end = memchr(p, '\n', buf_len(in));
        if (!end || end - p >= PMI_MESSAGE_MAX)
                return end || buf_len(in) >= PMI_MESSAGE_MAX ? -EPROTO : 0;
        *ret_len = (size_t)(end - p);
        *ret_all = *ret_len + 1;
        return 1;
}

/* Clients put the number to the left or to the right of the six bytes. */
int pmi2_frame(const struct buf *in, size_t *ret_len, size_t *ret_all)
{
        const unsigned char *p = buf_data(in);
        size_t len = 0, digits = 0, spaces = 0;

        if (buf_len(in) < PMI2_LENGTH_SIZE)
                return 0;
        for (size_t i = 0; i < PMI2_LENGTH_SIZE; i++) {
                if (p[i] == ' ') {
                        spaces += digits > 0; /* behind the digits: no further digit may follow */
                } else if (p[i] >= '0' && p[i] <= '9' && !spaces) {
                        len = len * 10 + p[i] - '0';
                        digits++;
                } else {
                        return -EPROTO;
                }
        }
        if (!digits || !len || len > PMI_MESSAGE_MAX)
                return -EPROTO;
        if (buf_len(in) < PMI2_LENGTH_SIZE + len)
                return 0;
        *ret_len = len;
        *ret_all = PMI2_LENGTH_SIZE + len;
        return 1;
}
