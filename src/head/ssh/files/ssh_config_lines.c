/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading turns the files into a single list of lines, Includes spliced in, each line with the
 * index of its Host or Match line, the guard. As in ssh(1), each line is checked, also in blocks
 * that hold for no host: keyword, number of words, values. Includes are expanded once, so that
 * tokens that differ between hosts cannot be used there.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "head/ssh/files/ssh_config_private.h"

#define FILE_MAX    (16u << 20)
#define INCLUDE_MAX 16 /* as ssh(1); a file that includes itself ends here */
#define BLANKS      " \t\r\n"

/* Appends the word at @at without its quotes and escapes, and moves @at behind it. */
static int split_config_word(const char **at, struct buf *word, struct error *err)
{
        char quote = '\0';
        const char *p;

        for (p = *at; *p && (quote || !strchr(" \t", *p)); p++) {
                /* The escapes of ssh(1): a quote, a backslash, and outside of quotes a blank. */
                if (*p == '\\' && p[1] && (strchr("'\"\\", p[1]) || (!quote && p[1] == ' ')))
                        buf_append(word, ++p, 1);
                else if (!quote && (*p == '"' || *p == '\''))
                        quote = *p;
                else if (quote && *p == quote)
                        quote = '\0';
                else
                        buf_append(word, p, 1);
        }
        *at = p;
        return quote ? err_set(err, EINVAL, "a quote is not closed") : 0;
}

/* Splits the text behind a keyword into words; # begins a comment. */
static int split_config_words(const char *text, struct strv *ret, struct error *err)
{
        for (;;) {
                struct buf word = BUF_INIT;
                char *taken;

                text += strspn(text, " \t");
                /* Only at the beginning of a word, so a # within a word stays. */
                if (!*text || *text == '#')
                        return 0;
                if (split_config_word(&text, &word, err) < 0) {
                        buf_finish(&word);
                        return -EINVAL;
                }
                taken = buf_steal(&word);
                strv_push_take(ret, taken ? taken : xstrdup(""));
        }
}

/* Takes the keyword from the front of a line, with quotes or without, and the blanks and the one
 * "=" behind it. Returns the rest. */
static const char *split_keyword(const char *text, char **ret)
{
        size_t n;
        bool quoted = *text == '"';

        text += quoted;
        n = strcspn(text, quoted ? "\"" : BLANKS "=");
        *ret = xstrndup(text, n);
        ssh_name_lower(*ret);
        text += n + (quoted && text[n] == '"');
        text += strspn(text, BLANKS);
        if (!quoted && *text == '=')
                text += 1 + strspn(text + 1, BLANKS);
        return text;
}

/* The kind of a file: decides the base of relative Includes, and whether the owner is checked. */
enum config_place {
        PLACE_USER,   /* ~/.ssh/config */
        PLACE_NAMED,  /* on the command line: not checked */
        PLACE_SYSTEM, /* not checked */
};

/* A file on the way into the list of lines. */
struct config_file {
        enum config_place place;
        int depth; /* of Includes */
        int outer; /* the guard of the Include, -1 = none */
        const char *name;
        int number; /* of the line */
        int guard;
};

static int load_config_file(struct ssh_config *c, const char *path, enum config_place place,
                            int depth, int outer, struct error *err);

/* Writes the pattern of files for a name of an Include to *ret. -EINVAL: a token that differs
 * between hosts, or a variable that is not set. */
static int expand_include(const struct ssh_config *c, const char *name, const struct config_file *f,
                          char **ret, struct error *err)
{
        /* TOKENS_LOCAL need the configuration only, and no host. */
        const struct config_lookup l = { .config = c };
        int flags = EXPAND_VARIABLES | (f->place == PLACE_SYSTEM ? 0 : EXPAND_HOME);
        char *path;
        int r;

        /* Two characters on, because %% is no token. */
        for (const char *p = strchr(name, '%'); p && p[1]; p = strchr(p + 2, '%'))
                if (p[1] != '%' && !strchr(TOKENS_LOCAL, p[1])) {
                        err_set(err, EINVAL, "Include with %%%c is not obeyed", p[1]);
                        return err_help(err, "--ssh-command ssh obeys it");
                }
        r = config_expand(&l, name, TOKENS_LOCAL, flags, &path, err);
        if (r < 0)
                return r;
        /* The base of a relative name is that of the file with the Include, as in ssh(1). */
        if (*path == '/')
                *ret = STEAL(&path);
        else if (f->place == PLACE_SYSTEM)
                *ret = xasprintf("/etc/ssh/%s", path);
        else
                *ret = xasprintf("%s/.ssh/%s", c->home, path);
        free(path);
        return 0;
}

/* As in ssh(1), a missing file is skipped, and an unreadable one is an error. */
static int include_files(struct ssh_config *c, const struct strv *args, const struct config_file *f,
                         struct error *err)
{
        int r = 0;

        if (f->depth >= INCLUDE_MAX)
                return err_set(err, EINVAL, "Include goes deeper than %d files", INCLUDE_MAX);
        for (size_t i = 0; i < args->n && r == 0 && !c->sealed; i++) {
                glob_t found;
                char *path = NULL;

                r = expand_include(c, args->v[i], f, &path, err);
                if (r < 0)
                        return r;
                /* No match is no error: glob() fails, and nothing is read. */
                if (glob(path, 0, NULL, &found) == 0) {
                        for (size_t k = 0; k < found.gl_pathc && (r == 0 || r == -ENOENT); k++)
                                r = load_config_file(c, found.gl_pathv[k], f->place, f->depth + 1,
                                                     f->guard, err);
                        globfree(&found);
                        r = r == -ENOENT ? 0 : r;
                }
                free(path);
        }
        return r;
}

/* Tells whether an IgnoreUnknown before names the keyword. Whether that line holds is seen for each
 * host. */
static bool may_be_ignored(const struct ssh_config *c, const char *name)
{
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->lines[i].name, "ignoreunknown") == 0 &&
                    ssh_name_list_matches(c->lines[i].args.v[0], name))
                        return true;
        return false;
}

/* Checks a line as it stands; whether its block ever holds does not matter. */
static int check_config_line(const struct ssh_config *c, const struct config_line *line,
                             struct error *err)
{
        if (!*line->rest)
                return err_set(err, EINVAL, "%s has no value",
                               line->keyword ? line->keyword->name : line->name);
        if (!line->keyword && may_be_ignored(c, line->name))
                return 0;
        if (!line->keyword) {
                err_set(err, EINVAL, "unknown keyword '%s'", line->name);
                return err_help(err, "IgnoreUnknown %s, in a line before, passes over it",
                                line->name);
        }
        if (strcmp(line->name, "match") == 0 && line->args.n)
                return config_match_check(&line->args, err);
        return ssh_keyword_check(line->keyword, &line->args, err);
}

/* Appends the line, which becomes the guard of the lines behind if a block begins. Takes over the
 * content of @line. */
static void add_config_line(struct ssh_config *c, struct config_file *f, struct config_line *line)
{
        bool opens = strcmp(line->name, "host") == 0 || strcmp(line->name, "match") == 0;

        /* A block of an included file holds only where the Include does. */
        line->guard = opens ? f->outer : f->guard;
        if (opens)
                f->guard = (int)c->n;
        c->lines = xgrow(c->lines, c->n, &c->cap, sizeof(*c->lines));
        c->lines[c->n++] = *line;
}

static void finish_config_line(struct config_line *line)
{
        free(line->name);
        free(line->rest);
        strv_finish(&line->args);
}

int config_wrap_place(struct error *err, const char *file, int line, const char *keyword)
{
        if (!err->number)
                err->number = HN_SSH_CONFIG_LINE;
        return err_wrap(err, keyword ? "%s: line %d: %s" : "%s: line %d", file, line, keyword);
}

/* Takes a line without blanks at its end. Of nested Includes, the error has the first and the last
 * place. */
static int load_config_line(struct ssh_config *c, struct config_file *f, const char *text,
                            struct error *err)
{
        struct config_line line = { .file = f->name,
                                    .number = f->number,
                                    .system = f->place == PLACE_SYSTEM,
                                    .args = STRV_INIT };
        bool included;
        int r;

        text += strspn(text, BLANKS);
        if (!*text || *text == '#')
                return 0;
        text = split_keyword(text, &line.name);
        line.keyword = ssh_keyword_find(line.name);
        /* Only @rest has the text with quotes, for commands. */
        line.rest = xstrdup(text + strspn(text, BLANKS "="));
        r = split_config_words(text, &line.args, err);
        if (r == 0)
                r = check_config_line(c, &line, err);
        included = r == 0 && strcmp(line.name, "include") == 0;
        if (included) {
                r = include_files(c, &line.args, f, err);
        } else if (r == 0) {
                add_config_line(c, f, &line);
                return 0; /* the list owns the line now */
        }
        finish_config_line(&line);
        /* A failed Include in an included file adds no place of its own. */
        if (r < 0 && (f->depth == 0 || !included))
                return config_wrap_place(err, f->name, f->number, NULL);
        return r;
}

/* Reads the lines of a file; an Include is read in place. */
static int load_config_text(struct ssh_config *c, struct config_file *f, char *text, size_t len,
                            struct error *err)
{
        int r = 0;

        /* The lines refer to the name as long as the configuration lives. */
        strv_push(&c->files, f->name);
        f->name = c->files.v[c->files.n - 1];
        f->number = 1;
        f->guard = f->outer;
        for (char *end, *stop = text + len; text < stop && r == 0; f->number++, text = end + 1) {
                size_t n;

                end = memchr(text, '\n', (size_t)(stop - text));
                end = end ? end : stop;
                *end = '\0';
                n = strlen(text); /* a NUL ends the line, too */
                while (n && strchr(BLANKS "\f", text[n - 1]))
                        text[--n] = '\0';
                r = load_config_line(c, f, text, err);
        }
        return r;
}

/* Users with a group of their own and umask 002 are common; their files are safe. */
static bool is_group_of_one(gid_t gid, uid_t uid)
{
        const struct group *g = getgrgid(gid);
        const struct passwd *pw = getpwuid(uid);
        /* Without an entry for group or user nothing is known, so others may write. */
        bool found = false, others = !g || !pw;

        for (char **name = others ? NULL : g->gr_mem; name && *name; name++) {
                found = found || strcmp(*name, pw->pw_name) == 0;
                others = others || strcmp(*name, pw->pw_name) != 0;
        }
        /* The members of a group are not all in gr_mem: users with this group as their first are
         * missing there. */
        setpwent();
        while (!others && (pw = getpwent())) {
                found = found || (pw->pw_gid == gid && pw->pw_uid == uid);
                others = pw->pw_gid == gid && pw->pw_uid != uid;
        }
        endpwent();
        return found && !others;
}

/* Returns 0 if only the user or root can write to the open file; else HN_SSH_CONFIG_WRITABLE. As in
 * Debian's OpenSSH, write permission is accepted for a group whose only member is the user. */
static int check_config_owner(int fd, const char *path, struct error *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return err_set(err, errno, "%s: %s", path, strerror(errno));
        if (st.st_uid != 0 && st.st_uid != getuid()) {
                err_set(err, EPERM, "%s belongs to user %u", path, (unsigned)st.st_uid);
                err_help(err, "as root: chown %u %s", (unsigned)getuid(), path);
        } else if (st.st_mode & S_IWOTH ||
                   (st.st_mode & S_IWGRP && !is_group_of_one(st.st_gid, getuid()))) {
                err_set(err, EPERM, "%s can be written by others (mode %04o)", path,
                        (unsigned)st.st_mode & 07777);
                err_help(err, "chmod go-w %s", path);
        } else {
                return 0;
        }
        err->number = HN_SSH_CONFIG_WRITABLE;
        return -err->code;
}

/* Loads a file. As in ssh(1), the owner is checked for the user's file and all included files. */
static int load_config_file(struct ssh_config *c, const char *path, enum config_place place,
                            int depth, int outer, struct error *err)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        struct config_file f = { .place = place, .depth = depth, .outer = outer, .name = path };
        char *text;
        size_t len;
        int r = fd < 0 ? -errno : 0;

        if (r == 0 && (place == PLACE_USER || depth > 0) &&
            (r = check_config_owner(fd, path, err)) < 0)
                return r;
        if (r == 0)
                r = fd_read_all(fd, FILE_MAX, &text, &len);
        if (r == -EISDIR && (depth > 0 || place != PLACE_NAMED)) /* as ssh(1) */
                return 0;
        if (r < 0)
                return err_set(err, -r, "%s: %s", path, strerror(-r));
        r = load_config_text(c, &f, text, len, err);
        free(text);
        return r;
}

/* Makes a configuration without lines, for the account of the process. */
static struct ssh_config *create_config(void)
{
        struct ssh_config *c = xcalloc(1, sizeof(*c));
        const struct passwd *pw = getpwuid(getuid());
        /* The folder of the account, as ssh(1) does, and not that of HOME. */
        const char *home = pw ? pw->pw_dir : getenv("HOME");

        c->home = xstrdup(home ? home : "/");
        c->login = xstrdup(pw ? pw->pw_name : getenv("USER") ? getenv("USER") : "root");
        return c;
}

/* Tells whether the file is missing or closed to the user. An error of its lines has a number. */
static bool is_file_out_of_reach(int r, const struct error *err)
{
        return (r == -ENOENT || r == -EACCES || r == -ENOTDIR) && !err->number;
}

int ssh_config_load(struct ssh_config **ret, const char *file, struct error *err)
{
        struct ssh_config *c = create_config();
        int r = 0;

        if (!file) {
                char *path = xasprintf("%s/.ssh/config", c->home);

                r = load_config_file(c, path, PLACE_USER, 0, -1, err);
                free(path);
                /* The user's file goes first, because the first value counts. */
                if (r == 0 || is_file_out_of_reach(r, err))
                        r = load_config_file(c, "/etc/ssh/ssh_config", PLACE_SYSTEM, 0, -1, err);
                if (is_file_out_of_reach(r, err))
                        r = 0;
        } else if (strcasecmp(file, "none") != 0) {
                r = load_config_file(c, file, PLACE_NAMED, 0, -1, err);
        }
        if (r < 0) {
                ssh_config_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

int ssh_config_parse(struct ssh_config **ret, const char *text, size_t len, struct error *err)
{
        struct ssh_config *c = create_config();
        struct config_file f = { .place = PLACE_NAMED, .outer = -1, .name = "text" };
        char *copy = xcalloc(len + 1, 1);
        int r;

        memcpy(copy, text, len);
        c->sealed = true;
        r = load_config_text(c, &f, copy, len, err);
        free(copy);
        if (r < 0) {
                ssh_config_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

void ssh_config_free(struct ssh_config *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->n; i++)
                finish_config_line(&c->lines[i]);
        free(c->lines);
        strv_finish(&c->files);
        free(c->home);
        free(c->login);
        free(c);
}
