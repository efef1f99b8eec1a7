/* SPDX-License-Identifier: Apache-2.0 */
#include "head/core/json_text.h"

#include "base/buf.h"

json_t *json_text(const char *text)
{
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        json_t *j = text ? json_string(text) : json_null();

        if (j)
                return j;
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
