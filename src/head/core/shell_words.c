/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The split follows the quoting rules of POSIX sh (XCU 2.2): nothing is special between single
 * quotes, and between double quotes a backslash only stands before $ ` " and itself.
 */
#include "head/core/shell_words.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

int shell_words_split(const char *text, struct strv *ret, struct error *err)
{
        for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
                struct buf word = BUF_INIT;
                /* The open quote, 0 = none. */
                char quote = 0;

                for (; *text && (quote || !strchr(" \t\n", *text)); text++) {
                        if (quote ? *text == quote : *text == '\'' || *text == '"') {
                                quote = quote ? 0 : *text;
                                continue;
                        }
                        /* A backslash before any other character stays between double quotes; at
                         * the end it stands for itself. */
                        if (*text == '\\' && quote != '\'' && text[1] &&
                            (!quote || strchr("$`\"\\", text[1])))
                                text++;
                        buf_append(&word, text, 1);
                }
                if (quote) {
                        buf_finish(&word);
                        return err_set(err, EINVAL, "a %c is not closed", quote);
                }
                strv_push_mem(ret, buf_data(&word), buf_len(&word));
                buf_finish(&word);
        }
        return ret->n ? 0 : err_set(err, EINVAL, "it is empty");
}

char *shell_words_join(const struct strv *words)
{
        struct buf b = BUF_INIT;

        for (size_t i = 0; i < words->n; i++) {
                const char *w = words->v[i];
                bool plain = *w && !strpbrk(w, " \t\n'\"\\$`*?[]{}()<>|&;#~!");

                buf_appends(&b, i ? " " : "");
                if (!plain)
                        buf_appends(&b, "'");
                for (const char *c = w; *c; c++)
                        /* No quote can stand between single quotes: they end, an escaped quote
                         * follows, and they begin again. */
                        if (*c == '\'')
                                buf_appends(&b, "'\\''");
                        else
                                buf_append(&b, c, 1);
                if (!plain)
                        buf_appends(&b, "'");
        }
        return buf_len(&b) ? buf_steal(&b) : xstrdup("");
}
