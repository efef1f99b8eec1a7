/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form survives login shells without quotes: container_order_encode() writes words of safe
 * characters, all others as %XX, and container_order_decode() takes such words only.
 */
#include "wire/env/container_order.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const char *const kind_names[] = {
        [CONTAINER_DOCKER] = "docker",       [CONTAINER_PODMAN] = "podman",
        [CONTAINER_APPTAINER] = "apptainer", [CONTAINER_CHARLIECLOUD] = "charliecloud",
        [CONTAINER_EXEC] = "exec",
};

const char *container_kind_name(enum container_kind kind)
{
        return kind_names[kind];
}

int container_order_parse(struct container_order *o, const char *value, struct error *err)
{
        size_t len = strcspn(value, ":");

        o->kind = CONTAINER_NONE;
        for (enum container_kind k = CONTAINER_DOCKER; k < ARRAY_SIZE(kind_names); k++)
                if (strlen(kind_names[k]) == len && !strncmp(value, kind_names[k], len))
                        o->kind = k;
        if (o->kind == CONTAINER_NONE)
                return err_set(err, EINVAL, "`%.*s` is no kind of container", (int)len, value);
        if (value[len] != ':' || !value[len + 1])
                return err_set(err, EINVAL, "the %s is missing",
                               o->kind == CONTAINER_EXEC ? "name of the container" : "image");
        /* A container program would take the name for an option. */
        if (value[len + 1] == '-')
                return err_set(err, EINVAL, "the name `%s` begins with a dash", value + len + 1);
        o->name = xstrdup(value + len + 1);
        return 0;
}

/* --- as text ---------------------------------------------------------------------------------- */

static void append_word(struct buf *b, const char *word)
{
        if (!*word)
                buf_appends(b, "-"); /* a dash alone; a true one is written as %2d */
        for (; *word; word++)
                if (isalnum((unsigned char)*word) || strchr("_./:@=,+", *word))
                        buf_append(b, word, 1);
                else
                        buf_printf(b, "%%%02x", (unsigned char)*word);
}

/* Returns the value of a digit as append_word() writes it, or -1. */
static int hex_digit(char c)
{
        return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the word at the front of @text, which has @len bytes; NULL: damaged. */
static char *take_word(const char *text, size_t len)
{
        char *word = xcalloc(len + 1, 1), *to = word;
        int high, low;

        if (len == 1 && *text == '-')
                return word;
        for (size_t i = 0; i < len; i++) {
                if (text[i] != '%') {
                        *to++ = text[i];
                        continue;
                }
                /* Cut off behind the percent sign. */
                high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
                low = high >= 0 ? hex_digit(text[i + 2]) : -1;
                if (high < 0 || low < 0) {
                        free(word);
                        return NULL;
                }
                *to++ = (char)(high << 4 | low);
                i += 2;
        }
        return word;
}

char *container_order_encode(const struct container_order *o)
{
        struct buf b = BUF_INIT;

        buf_appends(&b, kind_names[o->kind]);
        buf_appends(&b, ":");
        append_word(&b, o->name);
        buf_appends(&b, " ");
        append_word(&b, o->dir ? o->dir : "");
        for (size_t i = 0; i < o->args.n; i++) {
                buf_appends(&b, " ");
                append_word(&b, o->args.v[i]);
        }
        buf_append(&b, "", 1);
        return buf_steal(&b);
}

int container_order_decode(struct container_order *o, const char *text, struct error *err)
{
        CLEANUP(strv_finish) struct strv words = STRV_INIT;
        char *word;

        for (size_t len; *text; text += len + (text[len] == ' ')) {
                len = strcspn(text, " ");
                word = take_word(text, len);
                if (!word)
                        return err_set(err, EINVAL, "damaged order of a container");
                strv_push_take(&words, word);
        }
        if (words.n < 2)
                return err_set(err, EINVAL, "incomplete order of a container");
        if (container_order_parse(o, words.v[0], err) < 0)
                return -EINVAL;
        o->dir = xstrdup(words.v[1]);
        for (size_t i = 2; i < words.n; i++)
                strv_push(&o->args, words.v[i]);
        return 0;
}

void container_order_finish(struct container_order *o)
{
        free(o->name);
        free(o->dir);
        strv_finish(&o->args);
        *o = (struct container_order){ 0 };
}
