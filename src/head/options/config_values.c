/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of settings, and `hnlaunch config` as table and JSON. All values of all places are kept
 * in one array in the order of reading; nothing is overwritten. Which values count is derived from
 * their levels (settings_counts()), so that the table can show the overridden values as well.
 *
 * Options naming hosts are a family: -w on the command line also silences a hostfile of the
 * configuration. The keys of roles have no levels: they come from the job file only, and stand
 * behind the others as role.NAME.KEY.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/options/config.h"
#include "head/options/job_file_roles.h"
#include "head/options/option_parse.h"
#include "head/options/program_options.h"

void settings_finish(struct settings *s)
{
        for (size_t i = 0; i < s->n; i++) {
                free(s->v[i].value);
                free(s->v[i].origin);
                free(s->v[i].key);
                free(s->v[i].text);
        }
        free(s->v);
        free(s->job);
        job_file_roles_finish(s);
        strv_finish(&s->shown);
        *s = (struct settings){ 0 };
}

struct setting *settings_add(struct settings *s, const struct option_def *def, enum level level,
                             const char *value, const char *origin)
{
        struct setting *one;

        s->v = xrealloc(s->v, s->n + 1, sizeof(*s->v));
        one = &s->v[s->n++];
        *one = (struct setting){
                .def = def, .level = level, .value = xstrdup(value), .origin = xstrdup(origin)
        };
        return one;
}

void settings_add_list(struct settings *s, const struct option_def *def, enum level level,
                       const char *text, const char *origin)
{
        CLEANUP(free_textp) char *list = xstrdup(text);
        char *save = NULL;

        /* Other values may have commas and blanks of their own, such as an expression. */
        if (!(def->flags & OPTION_SPLIT))
                settings_add(s, def, level, text, origin);
        else
                for (char *one = strtok_r(list, ", \t", &save); one;
                     one = strtok_r(NULL, ", \t", &save))
                        settings_add(s, def, level, one, origin);
}

/* Whether a value names hosts, so that it replaces those of lower levels. */
static bool names_hosts(const struct setting *one)
{
        return one->def->flags & OPTION_SOURCE ||
               (one->def->flags & OPTION_ALLOCATION && strcmp(one->value, "auto") != 0 &&
                strcmp(one->value, "none") != 0);
}

int settings_level(const struct settings *s, const struct option_def *def)
{
        int level = -1;

        for (size_t i = 0; i < s->n; i++) {
                bool same_family =
                        s->v[i].def == def || (def->flags & OPTION_SOURCE && names_hosts(&s->v[i]));

                if (same_family)
                        level = MAX(level, (int)s->v[i].level);
        }
        return level;
}

/* Of a list replaced as a whole, all values of the deciding level count. */
bool settings_counts(const struct settings *s, const struct setting *one)
{
        return one->def->flags & OPTION_GATHER || (int)one->level == settings_level(s, one->def);
}

void setting_place(const struct setting *one, struct diag *diag)
{
        diag_place(diag, "%s:%d", one->origin, one->col);
        diag_source(diag, one->line, one->text, one->col, one->len, '^', NULL);
}

void setting_refuse(const struct setting *one, const struct error *err, struct diags *d)
{
        setting_place(one, diag_add(d, HN_CONFIG_VALUE, EX_CONFIG, "%s %s", one->key, err->text));
}

bool config_is_secret(const char *name)
{
        static const char *const words[] = { "TOKEN",  "SECRET",     "PASSW",  "PASSPHRASE",
                                             "APIKEY", "CREDENTIAL", "_KEY",   "AUTH",
                                             "COOKIE", "PRIVATE",    "SESSION" };
        char plain[256];

        /* Only the name is searched: a word in the value makes no secret. */
        snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, "="), name);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasestr(plain, words[i]))
                        return true;
        return false;
}

/* ---- the table of `hnlaunch config` ---- */

const char *setting_shown(const struct setting *one)
{
        static char masked[300];
        /* Of a list of --export all from the first value on is masked: a value may have commas. */
        const char *eq = strchr(one->value, '=');

        if (eq && (one->def->parse == value_export ||
                   (one->def->letter == 'x' && config_is_secret(one->value)))) {
                snprintf(masked, sizeof(masked), "%.*s=***", (int)MIN(eq - one->value, 256),
                         one->value);
                return masked;
        }
        if (!*one->value)
                return one->def->arg ? "(automatic)" : "yes";
        return one->value;
}

/* Prints a row of the table. Values come from files: escape sequences are made harmless. */
static void print_row(FILE *to, const char *key, const char *value, const char *origin, bool wrong)
{
        CLEANUP(free_textp) char *cell = printable_text(value, SIZE_MAX);
        CLEANUP(free_textp) char *place = printable_text(origin, SIZE_MAX);

        fprintf(to, "%-20s  %-24s  %s%s\n", key, cell, place, wrong ? ", not valid" : "");
}

/* Prints a value that does not count, below the deciding value. */
static void print_overridden(FILE *to, const struct setting *one)
{
        CLEANUP(free_textp) char *cell = printable_text(setting_shown(one), SIZE_MAX);
        CLEANUP(free_textp) char *place = printable_text(one->origin, SIZE_MAX);

        fprintf(to, "%-20s    instead of %s, %s\n", "", cell, place);
}

/* Prints the values of an option that count, the key in front of the first, then the overridden
 * values, the strongest first. */
static void print_setting_rows(const struct settings *s, const struct option_def *def, FILE *to)
{
        const char *key = def->key;

        for (size_t i = 0; i < s->n; i++) {
                const struct setting *one = &s->v[i];

                if (one->def != def || !settings_counts(s, one))
                        continue;
                print_row(to, key, setting_shown(one), one->origin, one->wrong);
                key = "";
        }
        if (*key)
                print_row(to, key, "-", "", false);
        for (size_t i = s->n; i-- > 0;)
                if (s->v[i].def == def && !settings_counts(s, &s->v[i]))
                        print_overridden(to, &s->v[i]);
}

/* "role.infer.gpus_per_rank", malloc'ed; NULL: the name of the role, which has no row. */
static char *name_role_key(const struct job_role *role, const struct option_def *def)
{
        char *key;

        if (!strcmp(def->name, "role"))
                return NULL;
        key = xasprintf("role.%s.%s", job_role_name(role), def->name);
        for (char *c = key + strlen("role.") + strlen(job_role_name(role)); *c; c++)
                if (*c == '-')
                        *c = '_';
        return key;
}

/* Whether @word is the key of an option of the role, as in role.infer.gpus_per_rank. */
static bool names_role_key(const char *word, const char *role, const struct option_def *def)
{
        size_t len = strlen("role."), n = strlen(role);

        return !strncmp(word, "role.", len) && !strncmp(word + len, role, n) &&
               word[len + n] == '.' && program_option_by_config_key(word + len + n + 1) == def;
}

/* Whether a key of a role has a row: without words of the user each key has a row. */
static bool is_role_key_shown(const struct settings *s, const struct job_role *role,
                              const struct option_def *def)
{
        for (size_t i = 0; i < s->shown.n; i++)
                if (names_role_key(s->shown.v[i], job_role_name(role), def))
                        return true;
        return !s->shown.n;
}

static void print_roles(const struct settings *s, FILE *to)
{
        for (size_t i = 0; i < s->n_roles; i++) {
                const struct settings *keys = &s->roles[i].keys;

                for (size_t k = 0; k < keys->n; k++) {
                        const struct setting *one = &keys->v[k];
                        CLEANUP(free_textp) char *key = name_role_key(&s->roles[i], one->def);

                        /* Nothing overrides a key of a role. */
                        if (key && is_role_key_shown(s, &s->roles[i], one->def))
                                print_row(to, key, setting_shown(one), one->origin, one->wrong);
                }
        }
}

/* ---- the same as JSON ---- */

/* Returns {value, origin}; NULL becomes null, of an option without a value. */
static json_t *json_setting(const char *value, const char *origin)
{
        json_t *j = json_object();

        json_object_set_new(j, "value", json_text(value));
        json_object_set_new(j, "origin", json_text(origin));
        return j;
}

/* Returns {value, origin} of the value that counts, of a list an array in the order of use. */
static json_t *json_option(const struct settings *s, const struct option_def *def)
{
        json_t *all = json_array(), *last;

        /* Gathered values of a list are used level by level, as apply_settings() does. */
        for (int level = LEVEL_PRESET; level <= LEVEL_LINE; level++)
                for (size_t i = 0; i < s->n; i++) {
                        const struct setting *one = &s->v[i];

                        if (one->def != def || (int)one->level != level || !settings_counts(s, one))
                                continue;
                        last = json_setting(setting_shown(one), one->origin);
                        if (one->wrong)
                                json_object_set_new(last, "wrong", json_true());
                        json_array_append_new(all, last);
                }
        if (def->parse == value_list || def->parse == value_env || def->parse == value_unset)
                return all;
        /* Of the values of a level the last wins. */
        last = json_incref(json_array_get(all, json_array_size(all) - 1));
        json_decref(all);
        return last ? last : json_setting(NULL, NULL);
}

/* Whether @def has a row. */
static bool is_key_shown(const struct settings *s, const struct option_def *def)
{
        if (!def->key || def->flags & OPTION_HIDDEN)
                return false;
        for (size_t i = 0; i < s->shown.n; i++)
                if (option_by_key(s->shown.v[i]) == def)
                        return true;
        return !s->shown.n;
}

/* Returns {value, origin} of a key of a role, of variables an array. */
static json_t *json_role_key(const struct settings *keys, const struct option_def *def)
{
        json_t *all = json_array(), *last = NULL;

        for (size_t i = 0; i < keys->n; i++)
                if (keys->v[i].def == def) {
                        last = json_setting(setting_shown(&keys->v[i]), keys->v[i].origin);
                        json_array_append_new(all, last);
                }
        if (def->flags & OPTION_GATHER)
                return all;
        json_incref(last);
        json_decref(all);
        return last;
}

static void put_json_roles(const struct settings *s, json_t *j)
{
        for (size_t i = 0; i < s->n_roles; i++) {
                const struct settings *keys = &s->roles[i].keys;

                for (size_t k = 0; k < keys->n; k++) {
                        CLEANUP(free_textp)
                        char *key = name_role_key(&s->roles[i], keys->v[k].def);

                        if (key && is_role_key_shown(s, &s->roles[i], keys->v[k].def))
                                json_object_set_new(j, key, json_role_key(keys, keys->v[k].def));
                }
        }
}

static void print_settings_json(const struct settings *s, FILE *to)
{
        json_t *j = json_object();

        json_object_set_new(j, "v", json_integer(1));
        for (size_t i = 0; i < option_count; i++)
                if (is_key_shown(s, &option_table[i]))
                        json_object_set_new(j, option_table[i].key,
                                            json_option(s, &option_table[i]));
        /* Programs that read earlier names of keys find these, too. */
        for (size_t i = 0; i < option_key_alias_count; i++)
                json_object_set(j, option_key_aliases[i].name,
                                json_object_get(j, option_key_aliases[i].means));
        if (s->job && !s->shown.n)
                json_object_set_new(j, option_program.key, json_option(s, &option_program));
        put_json_roles(s, j);
        json_write_plain(j, to);
        json_decref(j);
}

void config_print(const struct settings *s, bool json, FILE *to)
{
        if (json) {
                print_settings_json(s, to);
                return;
        }
        print_row(to, "KEY", "VALUE", "ORIGIN", false);
        for (size_t i = 0; i < option_count; i++)
                if (is_key_shown(s, &option_table[i]))
                        print_setting_rows(s, &option_table[i], to);
        if (s->job && !s->shown.n)
                print_setting_rows(s, &option_program, to);
        print_roles(s, to);
}
