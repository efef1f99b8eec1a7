/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "head/options/option_parse.h"
#include "head/options/option_table.h"
#include "lib/unit.h"

static bool has_bounds(const struct option_def *def)
{
        /* Options of a role have parsers of their own (program_options.c). */
        return def->parse && (def->max || def->parse == value_span || def->parse == value_limit ||
                              def->parse == value_size);
}

/* Gives @text to the option's parser. Returns whether the value is taken; else @err tells why. */
static bool accepts(const struct option_def *def, const char *text, struct error *err)
{
        static struct options o;

        return def->parse((char *)&o + def->field.offset, def, text, err) == 0;
}

/* Copies the word of @message behind @mark. */
static void copy_bound(char to[32], const struct option_def *def, const char *message,
                       const char *mark)
{
        const char *at = strstr(message, mark);

        if (!at)
                fail_msg("--%s names no bound: %s", def->name, message);
        snprintf(to, 32, "%.*s", (int)strcspn(at + strlen(mark), " ,"), at + strlen(mark));
}

/* Writes a value beyond @bound: 1 more, or 1 less in the unit of the row. */
static void write_beyond(char to[40], const struct option_def *def, const char *bound, bool above)
{
        bool is_time = def->parse == value_span || def->parse == value_limit;

        if (above)
                snprintf(to, 40, "%lld%s", atoll(bound) + 1, bound + strspn(bound, "0123456789"));
        else
                snprintf(to, 40, "%ld%s", def->min - 1, is_time ? "ms" : "");
}

TEST(a_refused_value_names_the_bounds_of_the_option)
{
        size_t n = 0;

        for (size_t i = 0; i < option_count; i++) {
                const struct option_def *def = &option_table[i];
                char least[32], most[32], beyond[40];
                struct error err;

                if (!has_bounds(def))
                        continue;
                n++;
                assert_false(accepts(def, "99999999999999999999", &err));
                copy_bound(least, def, err.text, def->max ? "must be " : " from ");
                copy_bound(most, def, err.text, " to ");
                if (!accepts(def, least, &err) || !accepts(def, most, &err))
                        fail_msg("--%s: %s", def->name, err.text);
                write_beyond(beyond, def, most, true);
                if (accepts(def, beyond, &err))
                        fail_msg("--%s takes %s, more than %s", def->name, beyond, most);
                write_beyond(beyond, def, least, false);
                if (def->min && (accepts(def, beyond, &err) || !strstr(err.text, least)))
                        fail_msg("--%s %s, less than %s: %s", def->name, beyond, least, err.text);
        }
        assert_true(n > 30);
}
