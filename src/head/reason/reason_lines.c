/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is copied once, without escape sequences, and cut into lines in place. Of a line only
 * the part that a terminal would show last stays, without prefixes of launchers: several may stand
 * in front of each other.
 */
#include "head/reason/reason_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "head/term/escapes.h"

/* Returns the part of a line behind the last carriage return, without blanks at the end. */
static char *trim_line(char *line)
{
        size_t n = strlen(line);
        char *cr;

        while (n && isspace((unsigned char)line[n - 1]))
                line[--n] = '\0';
        cr = strrchr(line, '\r');
        return cr ? cr + 1 : line;
}

/* Returns the end of a line's prefix of this form, NULL = the line has none. In @form, "#" is a
 * number, "*" some characters without blanks; other characters match themselves. */
static char *match_prefix(char *line, const char *form)
{
        for (; *form; form++) {
                char *from = line;

                if (*form == '#')
                        while (isdigit((unsigned char)*line))
                                line++;
                else if (*form == '*')
                        while (*line && !strchr(" []():", *line))
                                line++;
                else if (*line == *form)
                        line++;
                if (line == from)
                        return NULL;
        }
        return line;
}

/* Returns the text behind all prefixes, of PyTorch and torchrun, of Open MPI's --tag-output, and of
 * Ray. */
static char *skip_prefixes(char *line)
{
        static const char *const forms[] = {
                "[rank#]: ",      "[rank#]:",         "[default#]:", "[#,#]<stderr>: ",
                "[#,#]<stderr>:", "(* pid=#, ip=*) ", "(* pid=#) ",  "(pid=#) ",
        };
        bool again = true;

        while (again) {
                again = false;
                for (size_t i = 0; i < ARRAY_SIZE(forms) && !again; i++) {
                        char *end = match_prefix(line, forms[i]);

                        again = end != NULL;
                        line = again ? end : line;
                }
        }
        return line;
}

void reason_lines_read(struct reason_lines *ret, const char *words)
{
        size_t cap = 0;
        char *rest, *line;

        *ret = (struct reason_lines){ .text = escapes_copy_plain(words) };
        rest = ret->text;
        while ((line = strsep(&rest, "\n"))) {
                ret->v = xgrow(ret->v, ret->n, &cap, sizeof(*ret->v));
                ret->v[ret->n++] = skip_prefixes(trim_line(line));
        }
}

void reason_lines_finish(struct reason_lines *l)
{
        free(l->text);
        free(l->v);
        *l = (struct reason_lines){ 0 };
}

size_t reason_lines_next(const struct reason_lines *l, size_t from)
{
        while (from < l->n && !*l->v[from])
                from++;
        return from < l->n ? from : l->n;
}

size_t reason_lines_indent(const char *line)
{
        return strspn(line, " \t");
}

bool reason_has_phrase(const char *text, const char *const *phrases, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strstr(text, phrases[i]))
                        return true;
        return false;
}
