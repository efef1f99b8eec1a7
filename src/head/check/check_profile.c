/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is parsed line by line, and the errors of all lines are reported. Expected values and
 * levels stay texts by the name of the check; limits become numbers, in bytes, seconds or as
 * written.
 *
 * parse_profile_line() cuts a line in place; messages mark a place in a copy of the line.
 */
#include "head/check/check_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"

enum { PROFILE_MAX = 1 << 20 };

/* The keys of [limit], and limits without a file. 64 MiB are the whole /dev/shm of a container of
 * Docker without --shm-size: enough for a single rank. */
static const struct {
        const char *key;
        double preset;
        enum { LIMIT_BYTES, LIMIT_COUNT, LIMIT_SECONDS } unit;
} limit_table[CHECK_LIMITS] = {
        [CHECK_SHM_PER_RANK] = { "shm_per_rank", 64 << 20, LIMIT_BYTES },
        [CHECK_TMP_FREE] = { "tmp_free", 100e6, LIMIT_BYTES },
        [CHECK_FILES] = { "files", 4096, LIMIT_COUNT },
        [CHECK_PROCESSES] = { "processes", 4096, LIMIT_COUNT },
        [CHECK_CLOCK] = { "clock", 1, LIMIT_SECONDS },
        [CHECK_IB_ERRORS] = { "ib_errors", 100, LIMIT_COUNT },
};

void check_profile_init(struct check_profile *p)
{
        *p = (struct check_profile){ .expected = STRV_INIT };
        for (size_t i = 0; i < CHECK_LIMITS; i++)
                p->limits[i] = limit_table[i].preset;
}

void check_profile_finish(struct check_profile *p)
{
        strv_finish(&p->expected);
        strv_finish(&p->moves);
}

/* --- values ----------------------------------------------------------------------------------- */

/* Returns the factor of a unit; 0 = unknown. "" is always a unit: bytes, seconds, or a count. */
static double find_unit(const char *text, int unit)
{
        static const struct {
                const char *name;
                double bytes;
        } units[] = {
                { "", 1 },        { "K", 1024 },       { "M", 1 << 20 },
                { "G", 1 << 30 }, { "T", 1ULL << 40 }, { "kB", 1e3 },
                { "MB", 1e6 },    { "GB", 1e9 },       { "TB", 1e12 },
        };

        if (unit == LIMIT_SECONDS)
                return !*text || !strcmp(text, "s") ? 1 : !strcmp(text, "ms") ? 1e-3 : 0;
        for (size_t i = 0; i < ARRAY_SIZE(units) && (unit == LIMIT_BYTES || !i); i++)
                if (!strcmp(units[i].name, text))
                        return units[i].bytes;
        return 0;
}

/* Reads a limit. False: no number, or an unknown unit, and *ret has no meaning. */
static bool parse_limit(double *ret, const char *value, int unit)
{
        char *end;
        double number;

        /* strtod() would take signs, "inf" and "nan". */
        if (*value < '0' || *value > '9')
                return false;
        number = strtod(value, &end);
        end += strspn(end, " ");
        *ret = number * find_unit(end, unit);
        return find_unit(end, unit) > 0 && *ret < 1e18;
}

/* --- lines ------------------------------------------------------------------------------------ */

enum profile_section { SECTION_NONE, SECTION_LIMIT, SECTION_EXPECT, SECTION_CHECK };

struct profile_reader {
        struct check_profile *to;
        const char *path;
        bool (*has_check)(const char *name, bool *ret_fact);
        struct diags *d;
        enum profile_section section;
        int number;       /* of the line */
        const char *line; /* as written, without the newline */
};

/* Shows the line with a mark under @len bytes from @at on, in r->line. */
static void mark_profile(const struct profile_reader *r, struct diag *diag, const char *at,
                         size_t len)
{
        int col = (int)(at - r->line) + 1;

        diag_place(diag, "%s:%d:%d", r->path, r->number, col);
        diag_source(diag, r->number, r->line, col, (int)len, '^', NULL);
}

static void parse_section(struct profile_reader *r, const char *text)
{
        static const char *const names[] = { "", "[limit]", "[expect]", "[check]" };
        struct diag *diag;

        for (size_t i = SECTION_LIMIT; i < ARRAY_SIZE(names); i++)
                if (!strcmp(names[i], text)) {
                        r->section = (enum profile_section)i;
                        return;
                }
        diag = diag_add(r->d, HN_CONFIG_KEY, EX_CONFIG, "unknown section %s", text);
        mark_profile(r, diag, r->line + strspn(r->line, " \t"), strlen(text));
        diag_help(diag, "a profile has [limit], [expect] and [check]");
        /* Refuses the lines below, too: no other section is meant. */
        r->section = SECTION_NONE;
}

static void refuse_profile_key(struct profile_reader *r, const char *key, const char *help)
{
        struct diag *diag = diag_add(r->d, HN_CONFIG_KEY, EX_CONFIG, "unknown key `%s`", key);

        mark_profile(r, diag, r->line + strspn(r->line, " \t"), strlen(key));
        diag_help(diag, "%s", help);
}

/* @what: "is no size". A value is marked in its line from @at on. */
static struct diag *refuse_profile_value(struct profile_reader *r, const char *key,
                                         const char *value, const char *at, const char *what)
{
        struct diag *diag =
                *value ? diag_add(r->d, HN_CONFIG_VALUE, EX_CONFIG, "%s: `%s` %s", key, value, what)
                       : diag_add(r->d, HN_CONFIG_VALUE, EX_CONFIG, "%s has no value", key);

        mark_profile(r, diag, at, MAX(strlen(value), (size_t)1));
        return diag;
}

/* Takes a line of [limit]. @at: the value within r->line. A wrong value leaves the limit undefined:
 * the caller drops the profile. */
static void parse_limit_line(struct profile_reader *r, const char *key, const char *value,
                             const char *at)
{
        const char *keys[CHECK_LIMITS], *near;
        size_t i = 0;

        while (i < CHECK_LIMITS && strcmp(limit_table[i].key, key) != 0)
                i++;
        if (i == CHECK_LIMITS) {
                CLEANUP(free_textp) char *help = NULL;

                for (i = 0; i < CHECK_LIMITS; i++)
                        keys[i] = limit_table[i].key;
                near = diag_did_you_mean(key, keys, CHECK_LIMITS);
                help = near ? xasprintf("did you mean `%s`?", near)
                            : xstrdup("hnlaunch-check(1) lists the limits");
                refuse_profile_key(r, key, help);
                return;
        }
        if (parse_limit(&r->to->limits[i], value, limit_table[i].unit))
                return;
        diag_help(refuse_profile_value(r, key, value, at,
                                       limit_table[i].unit == LIMIT_BYTES     ? "is no size"
                                       : limit_table[i].unit == LIMIT_SECONDS ? "is no time"
                                                                              : "is no number"),
                  "for example %s = %s", key,
                  limit_table[i].unit == LIMIT_BYTES     ? "64M"
                  : limit_table[i].unit == LIMIT_SECONDS ? "0.5s"
                                                         : "4096");
}

/* Takes a line of [expect]. Refuses results that are no fact of a node, such as bandwidth. */
static void parse_expected_line(struct profile_reader *r, const char *name, const char *value,
                                bool is_fact)
{
        struct diag *diag;

        if (is_fact) {
                strv_env_set(&r->to->expected, name, value);
                return;
        }
        diag = diag_add(r->d, HN_CONFIG_KEY, EX_CONFIG, "cannot expect a value of %s", name);
        mark_profile(r, diag, r->line + strspn(r->line, " \t"), strlen(name));
        diag_help(diag, "set the level of its results in [check]: ignore, warn or fail");
}

/* Takes a line of [check]. The last of several lines for a check counts. */
static void parse_move_line(struct profile_reader *r, const char *name, const char *value,
                            const char *at)
{
        if (!strcmp(value, "ignore") || !strcmp(value, "warn") || !strcmp(value, "fail"))
                strv_env_set(&r->to->moves, name, value);
        else
                refuse_profile_value(r, name, value, at, "is not ignore, warn or fail");
}

/* Takes "key = value"; @line is changed, and has the text of r->line. A # behind a value belongs to
 * the value. */
static void parse_profile_line(struct profile_reader *r, char *line)
{
        char *key = line + strspn(line, " \t"), *eq = strchr(key, '='), *value, *end;
        bool is_fact;

        end = key + strlen(key);
        while (end > key && strchr(" \t\r", end[-1]))
                *--end = '\0';
        if (!*key || *key == '#' || *key == ';')
                return;
        if (*key == '[') {
                parse_section(r, key);
                return;
        }
        if (!eq || eq == key) {
                mark_profile(r,
                             diag_add(r->d, HN_CONFIG_LINE, EX_CONFIG,
                                      "expected key = value or [section]"),
                             r->line + (key - line), strlen(key));
                return;
        }
        value = eq + 1 + strspn(eq + 1, " \t");
        *eq = '\0';
        for (end = eq; end > key && strchr(" \t", end[-1]);)
                *--end = '\0';
        /* Quotes keep blanks at the end. */
        if (*value == '"' && value[1] && value[strlen(value) - 1] == '"') {
                value[strlen(value) - 1] = '\0';
                value++;
        }
        if (r->section == SECTION_NONE)
                refuse_profile_key(r, key, "a profile has [limit], [expect] and [check]");
        else if (r->section == SECTION_LIMIT)
                parse_limit_line(r, key, value, r->line + (value - line));
        else if (!r->has_check(key, &is_fact))
                refuse_profile_key(r, key, "hnlaunch-check(1) lists the checks");
        else if (r->section == SECTION_EXPECT)
                parse_expected_line(r, key, value, is_fact);
        else
                parse_move_line(r, key, value, r->line + (value - line));
}

bool check_profile_parse(struct check_profile *p, const char *path, const char *text,
                         bool (*has_check)(const char *name, bool *ret_fact), struct diags *d)
{
        struct profile_reader r = { .to = p, .path = path, .has_check = has_check, .d = d };
        CLEANUP(free_textp) char *lines = xstrdup(text);
        size_t before = diags_errors(d);
        char *rest = lines, *line;

        while ((line = strsep(&rest, "\n"))) {
                CLEANUP(free_textp) char *copy = xstrdup(line);

                r.number++;
                r.line = copy;
                parse_profile_line(&r, line);
        }
        return diags_errors(d) == before;
}

bool check_profile_read(struct check_profile *p, const char *path,
                        bool (*has_check)(const char *name, bool *ret_fact), struct diags *d)
{
        CLEANUP(free_textp) char *text = NULL;
        int r = fd_read_file(path, PROFILE_MAX, &text, NULL);

        if (r < 0) {
                diag_add(d, HN_CONFIG_UNREADABLE, r == -ENOENT ? EX_NOINPUT : EX_CONFIG,
                         "cannot read the profile %s: %s", path, strerror(-r));
                return false;
        }
        return check_profile_parse(p, path, text, has_check, d);
}
