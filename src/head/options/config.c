/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of configuration files. inih splits lines into section, name and value, but reads
 * them through read_ini_line(): inih's own reader cuts lines at 200 bytes, loses count of them
 * then, and takes a line with leading blanks for a continuation. read_ini_line() hands over one
 * whole, clean line for each call, or refuses the line with its place. A program may be longer than
 * inih's lines and has no comments: inih gets its key only, and take_program() reads the line.
 *
 * A pair passes take_pair() (is the key known?), and place_settings() records key and place in
 * struct settings. Nothing is parsed by type here: options_load() does so for the values that win.
 */
#include "head/options/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/core/program.h"
#include "head/core/shell_words.h"
#include "head/options/job_file_roles.h"
#include "head/options/program_options.h"

struct ini_reader {
        struct settings *s;
        struct settings *to;         /* of the section: s, or the keys of a role */
        const struct job_role *role; /* of the section; NULL: none */
        bool role_env;               /* the section is [env NAME] */
        bool skipped;                /* the section was refused */
        struct diags *d;
        enum level level;
        const char *path, *folder; /* of the file; folder NULL: the path has none */
        const char *next, *end;    /* the rest of the text */
        const char *at;            /* the line in hand */
        size_t len;
        int line;
};

/* Shows the current line under @diag, with a mark under @word. */
static void show_line(struct ini_reader *r, struct diag *diag, const char *word, const char *label)
{
        CLEANUP(free_textp) char *text = xstrndup(r->at, r->len);
        const char *found = word && *word ? strstr(text, word) : NULL;
        int col = found ? (int)(found - text) + 1 : 1;
        size_t len = found ? strlen(word) : strcspn(text, "\n");

        diag_place(diag, "%s:%d:%d", r->path, r->line, col);
        diag_source(diag, r->line, text, col, (int)MIN(len, 160U), '^', label);
}

/* ---- lines ---- */

/* Takes the next line, also the last one without a newline. inih gets the lines from here, since
 * packaged builds of inih cut long values. */
static bool take_ini_line(struct ini_reader *r)
{
        const char *stop;

        if (r->next >= r->end)
                return false;
        stop = memchr(r->next, '\n', (size_t)(r->end - r->next));
        if (!stop)
                stop = r->end;
        r->at = r->next;
        r->len = (size_t)(stop - r->next);
        r->next = stop + 1;
        r->line++;
        if (r->len && r->at[r->len - 1] == '\r')
                r->len--;
        return true;
}

/* Adds an error about the whole line in hand. */
static void refuse_line(struct ini_reader *r, const char *why)
{
        show_line(r, diag_add(r->d, HN_CONFIG_LINE, EX_CONFIG, "%s", why), NULL, NULL);
}

/* Whether a section ends with the bracket. Anything but a comment after the closing bracket would
 * be lost on the way: inih reads no further. */
static bool section_is_whole(const char *line, size_t len)
{
        const char *close = memchr(line, ']', len), *c;

        if (!close)
                return false;
        for (c = close + 1; c < line + len && isspace((unsigned char)*c); c++)
                ;
        return c == line + len || *c == ';' || *c == '#';
}

/* Returns what stands behind `program =` in a line, or NULL. @line begins with the key, and has no
 * NUL before @len. */
static const char *find_program_text(const char *line, size_t len)
{
        const char *c = line + strlen("program"), *end = line + len;

        if (c >= end || strncmp(line, "program", strlen("program")) != 0)
                return NULL;
        while (c < end && isspace((unsigned char)*c))
                c++;
        if (c == end || (*c != '=' && *c != ':'))
                return NULL;
        for (c++; c < end && isspace((unsigned char)*c); c++)
                ;
        return c;
}

/* Whether a key of the table has this section. */
static bool is_section(const char *name, size_t len)
{
        for (size_t i = 0; i < option_count; i++) {
                const char *key = option_table[i].key;

                if (key && !strncmp(key, name, len) && key[len] == '.')
                        return true;
        }
        return false;
}

/* Refuses a second section [role @name]. */
static void refuse_second_role(struct ini_reader *r, const char *name, int col)
{
        CLEANUP(free_textp) char *text = xstrndup(r->at, r->len);
        const struct job_role *first = job_file_roles_find(r->s, name);
        const struct setting *one = &first->keys.v[first->place];
        struct diag *diag =
                diag_add(r->d, HN_ROLE_TWICE, EX_CONFIG, "two roles are called `%s`", name);

        diag_place(diag, "%s:%d:%d", r->path, r->line, col);
        diag_source(diag, one->line, one->text, one->col, one->len, '-', "the first");
        diag_source(diag, r->line, text, col, (int)strlen(name), '^', NULL);
        diag_help(diag, "replicas = R makes R equal worlds of one role");
        r->skipped = true;
}

/* Enters [role @name], or with @env [env @name]; the name is at @col in the line. */
static void enter_role(struct ini_reader *r, const char *name, int col, bool env)
{
        struct job_role *role = job_file_roles_enter(r->s, name, env);
        struct setting *one;

        if (!role) {
                refuse_second_role(r, name, col);
                return;
        }
        r->role = role;
        r->role_env = env;
        r->to = &role->keys;
        /* The setting --role, which job_file_roles_enter() has added, gets this place. */
        one = &role->keys.v[role->keys.n - 1];
        free(one->origin);
        one->origin = xasprintf("%s:%d", r->path, r->line);
        one->key = xstrdup("a role");
        one->line = r->line;
        one->text = xstrndup(r->at, r->len);
        one->col = col;
        one->len = (int)strlen(name);
}

/* Enters a section, and refuses one that a job file does not have. @line begins with the bracket.
 */
static void enter_section(struct ini_reader *r, const char *line)
{
        size_t len = strcspn(line + 1, "]"), word = strcspn(line + 1, " \t]");
        CLEANUP(free_textp) char *name = xstrndup(line + 1, len);
        const char *rest = name + word + strspn(name + word, " \t");
        bool env = word == 3 && !strncmp(name, "env", word);
        struct diag *diag;

        r->to = r->s;
        r->role = NULL;
        r->skipped = false;
        /* Configuration files may have sections of later versions; their keys are warnings. A job
         * file belongs to this version. */
        if (r->level != LEVEL_JOB || is_section(name, len))
                return;
        if (*rest && (env || (word == 4 && !strncmp(name, "role", word)))) {
                enter_role(r, rest, (int)(line + 2 - r->at + (rest - name)), env);
                return;
        }
        diag = diag_add(r->d, HN_CONFIG_SECTION, EX_CONFIG, "unknown section [%s] in a job file",
                        name);
        show_line(r, diag, name, NULL);
        diag_help(diag, strcmp(name, "role")
                                ? "sections are run, env, ssh, net, log, role NAME and "
                                  "env NAME"
                                : "a role has a name: [role NAME]");
        r->skipped = true;
}

/* Refuses a line that inih would misread: @size is that of its buffer. Returns whether it did. */
static bool refuse_bad_line(struct ini_reader *r, const char *line, size_t len, int size)
{
        bool half_section = len && *line == '[' && !section_is_whole(line, len);

        if (len + 3 > (size_t)size)
                diag_help(diag_add(r->d, HN_CONFIG_LINE, EX_CONFIG,
                                   "%s:%d: the line is longer than %d bytes", r->path, r->line,
                                   size - 3),
                          "give it on the command line, or as a variable HNLAUNCH_SECTION_KEY");
        else if (half_section)
                refuse_line(r, "a section is written [name]");
        else if (len && *line != '[' && !memchr(line, '=', len) && !memchr(line, ':', len))
                refuse_line(r, "expected key = value");
        else
                return false;
        /* The keys that follow are those of a section whose name is not known. */
        r->skipped = r->skipped || half_section;
        return true;
}

/* Copies the next line to @buffer, or an empty line in place of a refused line. An ini_reader. */
static char *read_ini_line(char *buffer, int size, void *stream)
{
        struct ini_reader *r = stream;
        const char *line;
        size_t len;

        if (!take_ini_line(r))
                return NULL;
        line = r->at;
        len = r->len;
        while (len && isspace((unsigned char)*line)) {
                line++;
                len--;
        }
        strcpy(buffer, "\n");
        if (memchr(line, '\0', len)) {
                refuse_line(r, "a NUL byte in a configuration file");
                r->next = r->end; /* no text: each line could have one */
        } else if (len && (*line == ';' || *line == '#')) {
                return buffer;
        } else if (find_program_text(line, len)) {
                /* The key alone: inih would take a semicolon in the program for a
                 * comment, and cut a long one. */
                strcpy(buffer, "program =\n");
        } else if (!refuse_bad_line(r, line, len, size)) {
                /* Before inih reports a key, so that the section of the key is entered. */
                if (len && *line == '[')
                        enter_section(r, line);
                snprintf(buffer, (size_t)size, "%.*s\n", (int)len, line);
        }
        return buffer;
}

/* ---- values ---- */

/* Whether @text is one of the words that an option takes beside paths: "auto|none|FILE". */
static bool is_choice(const struct option_def *def, const char *text)
{
        size_t len = strlen(text);

        for (const char *c = def->arg; *c; c += *c == '|') {
                size_t n = strcspn(c, "|");

                /* Words in capitals stand for values of the user. */
                if (n == len && !strncmp(c, text, n) && !isupper((unsigned char)*c))
                        return true;
                c += n;
        }
        return false;
}

/* Resolves ~/x below the home and x below the file's folder. malloc'ed. */
static char *resolve_path(const char *folder, const char *value)
{
        const char *home = getenv("HOME");

        if (!strncmp(value, "~/", 2) && home)
                return xasprintf("%s/%s", home, value + 2);
        if (*value == '/' || !strcmp(value, "-") || !strcmp(value, "none") || !*value || !folder)
                return xstrdup(value);
        return xasprintf("%s/%s", folder, value);
}

char *config_resolve(const struct option_def *def, unsigned flags, const char *folder,
                     const char *value)
{
        /* Of PATH:DEST only DEST is on this machine. */
        const char *colon = flags & def->flags & OPTION_JOB_DEST ? strrchr(value, ':') : NULL;
        CLEANUP(free_textp) char *dest = colon && colon[1] ? resolve_path(folder, colon + 1) : NULL;

        if (dest)
                return xasprintf("%.*s%s", (int)(colon + 1 - value), value, dest);
        if (flags & def->flags & (OPTION_PATH | OPTION_JOB_PATH) && !is_choice(def, value))
                return resolve_path(folder, value);
        return xstrdup(value);
}

/* Completes the settings from @first on, which the line in hand has added. */
static void place_settings(struct ini_reader *r, size_t first, const char *key)
{
        /* A job file stands beside the program and inputs, so more paths start there. */
        unsigned paths = r->level == LEVEL_JOB ? UINT_MAX : OPTION_PATH;

        for (size_t i = first; i < r->to->n; i++) {
                struct setting *one = &r->to->v[i];
                CLEANUP(free_textp) char *value = one->value;
                const char *found;

                one->value = config_resolve(one->def, paths, r->folder, value);
                one->key = xstrdup(key);
                one->line = r->line;
                one->text = xstrndup(r->at, r->len);
                /* The value is searched behind the key; a value changed by inih is not found, and
                 * the whole line is marked. */
                found = *value ? strstr(one->text + strcspn(one->text, "=:"), value) : NULL;
                one->col = found ? (int)(found - one->text) + 1 : 1;
                one->len = (int)strlen(found ? value : one->text);
        }
}

/* ---- keys ---- */

/* Returns the key that is meant, or NULL. @job: the program is one of the keys. */
static const char *suggest_key(const char *key, bool job)
{
        const char **keys = xcalloc(option_count + 1, sizeof(*keys)), *near;
        size_t n = 0;

        if (job)
                keys[n++] = option_program.key;
        for (size_t i = 0; i < option_count; i++)
                if (option_table[i].key && !(option_table[i].flags & OPTION_HIDDEN))
                        keys[n++] = option_table[i].key;
        near = diag_did_you_mean(key, keys, n);
        free(keys);
        return near;
}

/* Finds a section with a key @name, for a line above all sections: "run.np", or NULL. */
static const char *section_with_name(const char *name, bool job)
{
        if (job && !strcmp(name, option_program.name))
                return option_program.key;
        for (size_t i = 0; i < option_count; i++) {
                const char *key = option_table[i].key ? option_table[i].key : "";
                CLEANUP(free_textp)
                char *whole = xasprintf("%.*s.%s", (int)strcspn(key, "."), key, name);

                if (option_by_key(whole) == &option_table[i])
                        return key;
        }
        return NULL;
}

/* Warns of an unknown key; in a job file, which belongs to this version of hnlaunch, an error. */
static void tell_unknown_config_key(struct ini_reader *r, const char *key, const char *name)
{
        bool job = r->level == LEVEL_JOB;
        const char *home = strchr(key, '.') ? NULL : section_with_name(name, job);
        /* Keys of a section [role NAME] in another file than a job file, or keys
         * of a role below [run]. */
        bool of_role = !strncmp(key, "role ", 5) ||
                       (!strncmp(key, "run.", 4) && program_option_by_key(name));
        const char *near = home || of_role ? NULL : suggest_key(key, job);
        CLEANUP(free_textp) char *label = near ? xasprintf("did you mean `%s`?", near) : NULL;
        struct diag *diag = job ? diag_add(r->d, HN_CONFIG_KEY, EX_CONFIG, "unknown key `%s`", key)
                                : diag_warn(r->d, HN_CONFIG_KEY, "unknown key `%s`", key);

        show_line(r, diag, name, label);
        /* A key of earlier versions, which read .hnlaunch.ini of trusted folders. */
        if (!strcmp(key, "safe.directory"))
                diag_help(diag, "no file is read that needs to be trusted: remove it");
        else if (home)
                diag_help(diag, "put it under [%.*s]", (int)strcspn(home, "."), home);
        else if (of_role)
                diag_help(diag, job ? "it is a key of a role: put it under a [role NAME]"
                                    : "it is a key of a role: put it under a [role NAME] of a job "
                                      "file (--job)");
        else if (!near)
                diag_help(diag, "`hnlaunch config` lists all keys");
}

/* Refuses the line in hand, which has a program. Returns the message, for a help. */
static struct diag *refuse_program(struct ini_reader *r, int id, const char *why)
{
        struct diag *diag = diag_add(r->d, id, EX_CONFIG, "%s", why);

        show_line(r, diag, "program", NULL);
        return diag;
}

/* Takes the program in the line in hand, as written: the words are split when the value is applied.
 * A backslash at the end is refused, as other files join lines with it. */
static void take_program(struct ini_reader *r, const char *origin)
{
        CLEANUP(free_textp) char *line = xstrndup(r->at, r->len);
        const char *text = line;
        size_t backslashes = 0;

        while (isspace((unsigned char)*text))
                text++;
        text = find_program_text(text, strlen(text));
        for (const char *c = text + strlen(text); c > text && c[-1] == '\\'; c--)
                backslashes++;
        if (r->level != LEVEL_JOB)
                diag_help(
                        refuse_program(r, HN_STRAY_PROGRAM, "only a job file may name the program"),
                        "put it into a file of its own: hnlaunch --job FILE");
        else if (settings_level(r->to, &option_program) == LEVEL_JOB)
                refuse_program(r, HN_STRAY_PROGRAM,
                               r->role ? "a role has one program" : "a job file has one program");
        else if (backslashes % 2)
                diag_help(refuse_program(r, HN_CONFIG_VALUE, "the program ends with a backslash"),
                          "a program stands on one line, of any length");
        else
                settings_add(r->to, &option_program, r->level, text, origin);
}

/* Refuses @name, which is no key of a role, or with role_env no key of its variables. */
static void refuse_role_key(struct ini_reader *r, const char *name)
{
        const char *home = section_with_name(name, false);
        const char *near = r->role_env ? diag_did_you_mean(name, (const char *[]){ "pass" }, 1)
                           : home      ? NULL
                                       : program_option_suggest(name);
        CLEANUP(free_textp) char *label = near ? xasprintf("did you mean `%s`?", near) : NULL;
        struct diag *diag =
                diag_add(r->d, HN_CONFIG_KEY, EX_CONFIG, "unknown key `%s` of a role", name);

        /* Keys are spelled with underscores, and options with dashes. */
        for (char *c = label; c && *c; c++)
                *c = *c == '-' ? '_' : *c;
        show_line(r, diag, name, label);
        if (!strcmp(name, "env") || !strncmp(name, "set.", 4))
                diag_help(diag, "variables of the role stand under [env %s]: set.NAME = VALUE",
                          job_role_name(r->role));
        else if (home)
                diag_help(diag, "it holds for all roles: put it under [%.*s]",
                          (int)strcspn(home, "."), home);
        else if (!near)
                diag_help(diag, r->role_env ? "keys are pass, and set.NAME for a variable"
                                            : "hnlaunch-job(5) has the keys of a role");
}

/* Takes a key of a role. */
static void take_role_pair(struct ini_reader *r, const char *name, const char *value,
                           const char *origin)
{
        const struct option_def *env = option_by_name("env");
        const struct option_def *def = r->role_env ? NULL : program_option_by_key(name);
        CLEANUP(free_textp) char *pair = xasprintf("%s=%s", name, value);
        size_t first = r->to->n;

        if (r->role_env && !strncmp(name, "set.", 4) && name[4])
                settings_add(r->to, env, r->level, pair + strlen("set."), origin);
        else if (r->role_env && !strcmp(name, "pass"))
                settings_add_list(r->to, env, r->level, value, origin);
        else if (!r->role_env && !strcmp(name, option_program.name))
                take_program(r, origin);
        else if (def)
                settings_add_list(r->to, def, r->level, value, origin);
        else
                refuse_role_key(r, name);
        place_settings(r, first, name);
}

/* Takes one key with its value. An ini_handler. */
static int take_pair(void *user, const char *section, const char *name, const char *value)
{
        struct ini_reader *r = user;
        CLEANUP(free_textp) char *key = xasprintf("%s%s%s", section, *section ? "." : "", name);
        CLEANUP(free_textp) char *pair = xasprintf("%s=%s", key, value);
        CLEANUP(free_textp) char *origin = xasprintf("%s:%d", r->path, r->line);
        const struct option_def *def = option_by_key(key);
        size_t first = r->s->n;

        /* Keys of a refused section would only repeat the error. */
        if (r->skipped)
                return 1;
        if (r->role) {
                take_role_pair(r, name, value, origin);
                return 1;
        }
        if (!strcmp(key, option_program.key)) {
                take_program(r, origin);
        } else if (!def) {
                tell_unknown_config_key(r, key, name);
        } else if (!strncmp(key, "env.set.", 8)) {
                /* The value is NAME=VALUE of -x, and no list: a value may have commas. */
                settings_add(r->s, def, r->level, pair + strlen("env.set."), origin);
        } else {
                settings_add_list(r->s, def, r->level, value, origin);
        }
        place_settings(r, first, key);
        return 1;
}

/* "run.ppn", "8" -> "HNLAUNCH_RUN_PPN=8"; malloc'ed. */
static char *write_variable(const char *key, const char *value)
{
        char *name = xasprintf("HNLAUNCH_%s=%s", key, value);
        /* The rest is the name of a variable of the ranks. */
        size_t len = strncmp(key, "env.set.", 8) ? strlen(key) : 8;

        /* The dot of a section becomes an underscore. */
        for (char *c = name + strlen("HNLAUNCH_"); len--; c++)
                *c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
        return name;
}

/* Says how to set @key. */
static void help_with_setting(struct diag *diag, const char *key, const char *value)
{
        CLEANUP(free_textp) char *user = config_user_path();
        CLEANUP(strv_finish) struct strv variable = STRV_INIT;
        CLEANUP(free_textp) char *quoted = NULL;
        int section = (int)strcspn(key, ".");

        strv_push_take(&variable, write_variable(key, value));
        quoted = shell_words_join(&variable);
        diag_help(diag, "write to %s, below [%.*s]: %s = %s",
                  user ? user : "/etc/hnlaunch/config.ini", section, key, key + section + 1, value);
        diag_help(diag, "or for this shell: export %s", quoted);
}

/* Refuses `get KEY`, `set KEY VALUE` and `KEY VALUE` of other tools, unless such a program exists.
 */
static int refuse_verb(const struct strv *words, struct diags *d)
{
        const char *verb = words->v[0], *word = words->n > 1 ? words->v[1] : "";
        CLEANUP(free_textp) char *given = xstrndup(word, strcspn(word, "="));
        const char *value = word[strlen(given)] ? word + strlen(given) + 1
                            : words->n > 2      ? words->v[2]
                                                : "VALUE";
        const char *key = option_by_key(given) ? given : suggest_key(given, false);
        bool sets = !strcmp(verb, "set");
        struct diag *diag;

        /* KEY VALUE, as for git config. */
        if (words->n == 2 && option_by_key(verb) && !program_exists(word, NULL)) {
                help_with_setting(diag_add(d, HN_COMMAND_WORDS, EX_USAGE,
                                           "`config` only shows settings: no value for `%s`", verb),
                                  verb, word);
                return -EINVAL;
        }
        if ((!sets && strcmp(verb, "get") != 0) || program_exists(verb, NULL))
                return 0;
        diag = diag_add(d, HN_COMMAND_WORDS, EX_USAGE, "`config` only shows settings: no `%s`",
                        verb);
        if (sets)
                help_with_setting(diag, key ? key : "SECTION.KEY", value);
        else
                diag_help(diag, "hnlaunch config %s", key ? key : "KEY");
        return -EINVAL;
}

/* Whether @word is a key, also one of a role: role.infer.nodes. The role need not
 * exist: files are read later. */
static bool is_config_key(const char *word)
{
        const char *key = !strncmp(word, "role.", 5) ? strchr(word + 5, '.') : NULL;

        return key ? program_option_by_config_key(key + 1) : option_by_key(word);
}

int config_take_keys(struct settings *s, struct strv *words, struct diags *d)
{
        const char *near = NULL;
        struct diag *diag;
        size_t keys = 0;

        while (keys < words->n && is_config_key(words->v[keys]))
                keys++;
        if (keys == words->n) {
                strv_finish(&s->shown);
                s->shown = *words;
                *words = (struct strv){ 0 };
                return 0;
        }
        if (refuse_verb(words, d) < 0)
                return -EINVAL;
        /* Other words are a program, whose launch the settings are shown for. */
        if (words->n == 1 && access(words->v[0], F_OK) != 0 && !program_in_path(words->v[0]))
                near = suggest_key(words->v[0], false);
        if (!near)
                return 0;
        diag = diag_add(d, HN_CONFIG_KEY, EX_USAGE, "unknown key `%s`", words->v[0]);
        diag_help(diag, "did you mean `%s`?", near);
        return -EINVAL;
}

int config_parse(struct settings *s, enum level level, const char *path, const char *text,
                 size_t len, struct diags *d)
{
        const char *slash = strrchr(path, '/');
        CLEANUP(free_textp) char *folder = slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
        struct ini_reader r = { .s = s,
                                .to = s,
                                .d = d,
                                .level = level,
                                .path = path,
                                .folder = folder,
                                .next = text,
                                .end = text + len };
        size_t before = diags_errors(d);
        int bad;

        if (len >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2))) {
                diag_help(diag_add(d, HN_CONFIG_LINE, EX_CONFIG, "%s is written in UTF-16", path),
                          "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE");
                return -EINVAL;
        }
        /* A byte order mark of UTF-8, written by some editors. */
        if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
                r.next += 3;
        bad = ini_parse_stream(read_ini_line, &r, take_pair, &r);
        /* inih tells only the number of the first unreadable line. With an error of ours the place
         * is known better. */
        if (bad > 0 && diags_errors(d) == before)
                diag_place(
                        diag_add(d, HN_CONFIG_LINE, EX_CONFIG, "expected key = value or [section]"),
                        "%s:%d", path, bad);
        if (bad < 0)
                diag_add(d, HN_CONFIG_LINE, EX_CONFIG, "%s: out of memory", path);
        if (level == LEVEL_JOB && diags_errors(d) == before)
                return job_file_roles_check(s, d);
        return diags_errors(d) > before ? -EINVAL : 0;
}

int config_assign(struct settings *s, const char *assignment, struct diags *d)
{
        const char *eq = strchr(assignment, '=');
        CLEANUP(free_textp) char *key = xstrndup(assignment, strcspn(assignment, "="));
        CLEANUP(free_textp) char *origin = xasprintf("-o %s", key);
        const struct option_def *def = eq ? option_by_key(key) : NULL;
        const char *near = suggest_key(key, false);
        struct diag *diag;

        if (def) {
                settings_add(s, def, LEVEL_LINE,
                             strncmp(key, "env.set.", 8) ? eq + 1 : assignment + 8, origin);
                return 0;
        }
        diag = diag_add(d, HN_CONFIG_SET, EX_USAGE,
                        eq ? "-o: unknown key `%s`" : "-o wants SECTION.KEY=VALUE, not `%s`", key);
        if (near && strcmp(near, key) != 0)
                diag_help(diag, "did you mean `%s`?", near);
        else if (!eq && !near)
                diag_help(diag, "--log-dir DIR keeps the output in one file per rank");
        return -EINVAL;
}
