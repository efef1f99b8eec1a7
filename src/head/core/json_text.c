/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of ranks and files may hold any bytes: text that is no UTF-8 gets replacement characters,
 * and characters that would move a cursor or deceive a reader become escapes of JSON.
 */
#include "head/core/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/printable.h"

json_t *json_text(const char *text)
{
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        json_t *j = text ? json_string(text) : json_null();

        if (j)
                return j;
        /* Byte by byte, so that ASCII beside a broken character stays. */
        for (; *text; text++)
                if ((unsigned char)*text < 0x80)
                        buf_append(&clean, text, 1);
                else
                        buf_appends(&clean, "\xef\xbf\xbd");
        return json_stringn((const char *)buf_data(&clean), buf_len(&clean));
}

json_t *json_texts(const struct strv *texts)
{
        json_t *list = json_array();

        for (size_t i = 0; i < texts->n; i++)
                json_array_append_new(list, json_text(texts->v[i]));
        return list;
}

json_t *json_numbers(const int *v, size_t n)
{
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_integer(v[i]));
        return list;
}

/* Appends a character as JSON's escape, two of UTF-16 above U+FFFF. */
static void put_json_escape(struct buf *to, uint32_t c)
{
        if (c < 0x10000)
                buf_printf(to, "\\u%04x", (unsigned)c);
        else
                buf_printf(to, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                           (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
}

const char *json_member(const json_t *j, const char *name)
{
        const char *text = json_string_value(json_object_get(j, name));

        return text ? text : "";
}

/* Whether @text has characters of ASCII only, none of which moves a cursor. */
static bool is_plain_ascii(const char *text)
{
        while (*text && (unsigned char)*text < 0x7f)
                text++;
        return !*text;
}

char *json_dump_plain(const json_t *j, size_t flags)
{
        char *text = json_dumps(j, flags);
        struct buf b = BUF_INIT;
        size_t len = text ? strlen(text) : 0, n;

        /* The usual case, without a copy. */
        if (len && is_plain_ascii(text))
                return text;
        for (size_t i = 0; i < len; i += n) {
                uint32_t c = (unsigned char)text[i];

                n = c < 0x80 ? 1 : printable_decode((unsigned char *)text + i, len - i, &c);
                n = MAX(n, (size_t)1);
                if (c >= 0x7f && printable_put(NULL, text + i, n) != 1)
                        /* Only within strings: outside, JSON has nothing above 0x7e. */
                        put_json_escape(&b, c);
                else
                        buf_append(&b, text + i, n);
        }
        free(text);
        /* Empty: json_dumps() has failed. */
        return buf_len(&b) ? buf_steal(&b) : xstrdup("{}");
}

bool json_write_plain(const json_t *j, FILE *to)
{
        CLEANUP(free_textp) char *text = json_dump_plain(j, JSON_INDENT(2));

        return fputs(text, to) != EOF && fputc('\n', to) != EOF;
}
