/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading turns the files into a single list of lines, Includes spliced in, each line with the
 * index of its Host or Match line, the guard. A lookup walks the list once, notes which guards
 * hold, skips the other lines, and keeps the first value of every keyword (struct config_lookup).
 * Defaults and the expansion of % and ~ come at the end, since tokens may refer to values found
 * later.
 */
#include "head/ssh/files/ssh_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <pwd.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "head/ssh/files/ssh_file_owner.h"

#define FILE_MAX    (16u << 20)
#define INCLUDE_MAX 16

struct config_line {
        const char *file; /* in ssh_config.files */
        int number;
        char *keyword; /* lower case */
        struct strv args;
        char *rest; /* the text behind the keyword, with quotes: for commands */
        int guard;  /* index of the Host or Match line, -1 = none */
};

struct ssh_config {
        struct strv files; /* the strings of lines[].file */
        struct config_line *lines;
        size_t n, cap;
        char *home;
        char *login;
};

extern char **environ;

/* Splits a line into words at blanks or one '='; quotes of both kinds keep a word together. */
static int split_config_words(const char *text, struct strv *ret, struct error *err)
{
        bool first = true;

        for (;;) {
                struct buf word = BUF_INIT;
                char *taken;

                text += strspn(text, " \t\r");
                if (first && ret->n == 1) {
                        first = false;
                        if (*text == '=')
                                text += 1 + strspn(text + 1, " \t");
                }
                if (!*text || *text == '#')
                        return 0;
                buf_append(&word, "", 0);
                while (*text && !strchr(" \t\r", *text) && !(ret->n == 0 && *text == '=')) {
                        const char quote = *text;
                        const char *end;

                        if (quote != '"' && quote != '\'') {
                                buf_append(&word, text++, 1);
                                continue;
                        }
                        end = strchr(++text, quote);
                        if (!end) {
                                buf_finish(&word);
                                return err_set(err, EINVAL, "a quote is not closed");
                        }
                        buf_append(&word, text, (size_t)(end - text));
                        text = end + 1;
                }
                taken = buf_steal(&word);
                strv_push_take(ret, taken ? taken : xstrdup(""));
        }
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

static int include_files(struct ssh_config *c, const struct strv *args, const struct config_file *f,
                         struct error *err)
{
        int r = 0;

        if (f->depth >= INCLUDE_MAX)
                return err_set(err, ELOOP, "Include goes deeper than %d files", INCLUDE_MAX);
        for (size_t i = 1; i < args->n && r == 0; i++) {
                const char *name = args->v[i];
                glob_t found;
                char *path;

                if (name[0] == '~' && (name[1] == '/' || !name[1]))
                        path = xasprintf("%s%s", c->home, name + 1);
                else if (*name == '/')
                        path = xstrdup(name);
                else if (f->place == PLACE_SYSTEM)
                        path = xasprintf("/etc/ssh/%s", name);
                else
                        path = xasprintf("%s/.ssh/%s", c->home, name);
                if (glob(path, 0, NULL, &found) == 0) {
                        for (size_t k = 0; k < found.gl_pathc && r == 0; k++)
                                r = load_config_file(c, found.gl_pathv[k], f->place, f->depth + 1,
                                                     f->guard, err);
                        globfree(&found);
                }
                free(path);
        }
        return r == -ENOENT || r == -EACCES ? 0 : r;
}

static int load_config_line(struct ssh_config *c, struct config_file *f, const char *text,
                            struct error *err)
{
        struct config_line line = { .file = f->name, .number = f->number, .args = STRV_INIT };
        int r = split_config_words(text, &line.args, err);
        bool opens;

        if (r < 0 || line.args.n == 0)
                goto out;
        line.keyword = line.args.v[0];
        text += strspn(text, " \t") + strlen(line.keyword);
        line.rest = xstrdup(text + strspn(text, " \t="));
        line.rest[strcspn(line.rest, "\r")] = '\0';
        for (char *p = line.keyword; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        if (strcmp(line.keyword, "include") == 0) {
                r = include_files(c, &line.args, f, err);
                goto out;
        }
        opens = strcmp(line.keyword, "host") == 0 || strcmp(line.keyword, "match") == 0;
        line.guard = opens ? f->outer : f->guard;
        if (opens)
                f->guard = (int)c->n;
        if (c->n == c->cap) {
                c->cap = c->cap ? 2 * c->cap : 32;
                c->lines = xrealloc(c->lines, c->cap, sizeof(*c->lines));
        }
        c->lines[c->n++] = line;
        return 0;
out:
        free(line.rest);
        strv_finish(&line.args);
        return r < 0 ? err_wrap(err, "%s: line %d", f->name, f->number) : 0;
}

/* Loads a file. As in ssh(1), the owner is checked for the user's file and all included files. */
static int load_config_file(struct ssh_config *c, const char *path, enum config_place place,
                            int depth, int outer, struct error *err)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        struct config_file f = {
                .place = place, .depth = depth, .outer = outer, .guard = outer, .number = 1
        };
        char *text, *at;
        int r = fd < 0 ? -errno : 0;

        if (r == 0 && (place == PLACE_USER || depth > 0) &&
            (r = ssh_file_owner_check(fd, path, err)) < 0)
                return r;
        if (r == 0)
                r = fd_read_all(fd, FILE_MAX, &text, NULL);
        if (r < 0)
                return err_set(err, -r, "%s: %s", path, strerror(-r));
        strv_push(&c->files, path);
        f.name = c->files.v[c->files.n - 1];
        for (at = text; at && r == 0; f.number++)
                r = load_config_line(c, &f, strsep(&at, "\n"), err);
        free(text);
        return r;
}

int ssh_config_load(struct ssh_config **ret, const char *file, struct error *err)
{
        struct ssh_config *c = xcalloc(1, sizeof(*c));
        const struct passwd *pw = getpwuid(getuid());
        const char *home = pw ? pw->pw_dir : getenv("HOME");
        char *path;
        int r = 0;

        c->home = xstrdup(home ? home : "/");
        c->login = xstrdup(pw ? pw->pw_name : getenv("USER") ? getenv("USER") : "root");
        if (!file) {
                path = xasprintf("%s/.ssh/config", c->home);
                r = load_config_file(c, path, PLACE_USER, 0, -1, err);
                free(path);
                if (r == 0 || r == -ENOENT || r == -EACCES || r == -ENOTDIR)
                        r = load_config_file(c, "/etc/ssh/ssh_config", PLACE_SYSTEM, 0, -1, err);
                if (r == -ENOENT || r == -EACCES)
                        r = 0;
        } else if (strcmp(file, "none") != 0) {
                r = load_config_file(c, file, PLACE_NAMED, 0, -1, err);
        }
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
        for (size_t i = 0; i < c->n; i++) {
                free(c->lines[i].rest);
                strv_finish(&c->lines[i].args);
        }
        free(c->lines);
        strv_finish(&c->files);
        free(c->home);
        free(c->login);
        free(c);
}

/* Tells whether a pattern matches @name and no negated pattern does. */
static bool patterns_match(char *const *patterns, size_t n, const char *name)
{
        bool found = false;

        for (size_t i = 0; i < n; i++) {
                const char *p = patterns[i];
                bool negated = *p == '!';

                if (fnmatch(p + negated, name, FNM_CASEFOLD | FNM_NOESCAPE) != 0)
                        continue;
                if (negated)
                        return false;
                found = true;
        }
        return found;
}

static bool comma_list_matches(const char *list, const char *name)
{
        struct strv words = STRV_INIT;
        bool matches;

        while (*list) {
                size_t n = strcspn(list, ",");

                strv_push_mem(&words, list, n);
                list += n + (list[n] == ',');
        }
        matches = patterns_match(words.v, words.n, name);
        strv_finish(&words);
        return matches;
}

/* The settings found so far: those of @host, and those that only lead there. */
struct config_lookup {
        const struct ssh_config *config;
        struct ssh_host host;
        char *holds; /* per line: a holding Host or Match line */
        struct strv user_files, global_files;
        bool proxy_seen;
        char *user; /* before the default */
        char *identities_only, *gssapi, *pubkey, *methods, *hash_names;
};

/* Appends what "%@letter" stands for in ssh_config(5). */
static void append_token(struct buf *out, const struct config_lookup *l, char letter)
{
        const struct ssh_host *h = &l->host;
        char local[256] = "";

        gethostname(local, sizeof(local) - 1);
        switch (letter) {
        case 'h':
                buf_appends(out, h->hostname ? h->hostname : h->alias);
                break;
        case 'n':
                buf_appends(out, h->alias);
                break;
        case 'k':
                buf_appends(out, h->host_key_alias ? h->host_key_alias : h->alias);
                break;
        case 'p':
                buf_printf(out, "%d", h->port ? h->port : 22);
                break;
        case 'r':
                buf_appends(out, l->user ? l->user : l->config->login);
                break;
        case 'u':
                buf_appends(out, l->config->login);
                break;
        case 'i':
                buf_printf(out, "%u", (unsigned)getuid());
                break;
        case 'd':
                buf_appends(out, l->config->home);
                break;
        case 'l':
                buf_appends(out, local);
                break;
        case 'L':
                buf_append(out, local, strcspn(local, "."));
                break;
        case '%':
                buf_appends(out, "%");
                break;
        default:
                buf_printf(out, "%%%c", letter);
        }
}

/* Expands ${NAME} and the %-tokens of ssh_config(5) for hosts, users and files; in a @path also ~
 * in front. */
static char *expand_tokens(const struct config_lookup *l, const char *text, bool path)
{
        struct buf out = BUF_INIT;
        char *result;

        buf_append(&out, "", 0);
        if (path && text[0] == '~' && (text[1] == '/' || !text[1])) {
                buf_appends(&out, l->config->home);
                text++;
        }
        for (; *text; text++) {
                const char *end = text[0] == '$' && text[1] == '{' ? strchr(text, '}') : NULL;

                if (end) {
                        CLEANUP(free_textp)
                        char *name = xstrndup(text + 2, (size_t)(end - text - 2));
                        const char *value = getenv(name);

                        buf_appends(&out, value ? value : "");
                        text = end;
                } else if (*text == '%' && text[1]) {
                        append_token(&out, l, *++text);
                } else {
                        buf_append(&out, text, 1);
                }
        }
        result = buf_steal(&out);
        return result ? result : xstrdup("");
}

/* Runs the command of Match exec; true if the exit code is 0. */
static bool command_holds(const struct config_lookup *l, const char *text)
{
        char *command = expand_tokens(l, text, false);
        char shell[] = "/bin/sh", flag[] = "-c";
        char *argv[] = { shell, flag, command, NULL };
        pid_t pid;
        int status = -1, r = posix_spawn(&pid, shell, NULL, NULL, argv, environ);

        if (r == 0)
                while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                        ;
        free(command);
        return r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool criterion_holds(const struct config_lookup *l, const char *name, const char *value)
{
        const struct ssh_host *h = &l->host;

        if (strcasecmp(name, "host") == 0)
                return comma_list_matches(value, h->hostname ? h->hostname : h->alias);
        if (strcasecmp(name, "originalhost") == 0)
                return comma_list_matches(value, h->alias);
        if (strcasecmp(name, "user") == 0)
                return comma_list_matches(value, l->user ? l->user : l->config->login);
        if (strcasecmp(name, "localuser") == 0)
                return comma_list_matches(value, l->config->login);
        if (strcasecmp(name, "exec") == 0)
                return command_holds(l, value);
        return false;
}

static bool match_holds(const struct config_lookup *l, const struct strv *args)
{
        for (size_t i = 1; i < args->n; i++) {
                const char *name = args->v[i];
                bool negated = *name == '!', holds;

                name += negated;
                if (strcasecmp(name, "all") == 0)
                        holds = true;
                else if (strcasecmp(name, "final") == 0 || strcasecmp(name, "canonical") == 0)
                        holds = strcasecmp(name, "final") == 0;
                else if (++i < args->n)
                        holds = criterion_holds(l, name, args->v[i]);
                else
                        holds = false;
                if (holds == negated)
                        return false;
        }
        return args->n > 1;
}

/* Keywords that only store their arguments; TAKE_WORD and TAKE_FIRST keep the first line's. */
enum setting_kind { TAKE_WORD, TAKE_FIRST, TAKE_ALL };

static const struct {
        const char *keyword;
        enum setting_kind kind;
        size_t offset; /* of a string, or of a strv, in struct config_lookup */
} settings[] = {
#define AT(field) offsetof(struct config_lookup, field)
        { "hostname", TAKE_WORD, AT(host.hostname) },
        { "user", TAKE_WORD, AT(user) },
        { "hostkeyalias", TAKE_WORD, AT(host.host_key_alias) },
        { "bindaddress", TAKE_WORD, AT(host.local.address) },
        { "bindinterface", TAKE_WORD, AT(host.local.interface) },
        { "identityagent", TAKE_WORD, AT(host.identity_agent) },
        { "kexalgorithms", TAKE_WORD, AT(host.algorithms.kex) },
        { "ciphers", TAKE_WORD, AT(host.algorithms.ciphers) },
        { "macs", TAKE_WORD, AT(host.algorithms.macs) },
        { "hostkeyalgorithms", TAKE_WORD, AT(host.algorithms.host_key) },
        { "pubkeyacceptedalgorithms", TAKE_WORD, AT(host.algorithms.pubkey) },
        { "pubkeyacceptedkeytypes", TAKE_WORD, AT(host.algorithms.pubkey) },
        { "identitiesonly", TAKE_WORD, AT(identities_only) },
        { "gssapiauthentication", TAKE_WORD, AT(gssapi) },
        { "pubkeyauthentication", TAKE_WORD, AT(pubkey) },
        { "preferredauthentications", TAKE_WORD, AT(methods) },
        { "hashknownhosts", TAKE_WORD, AT(hash_names) },
        { "identityfile", TAKE_ALL, AT(host.identities) },
        { "certificatefile", TAKE_ALL, AT(host.certificates) },
        { "userknownhostsfile", TAKE_FIRST, AT(user_files) },
        { "globalknownhostsfile", TAKE_FIRST, AT(global_files) },
        { "revokedhostkeys", TAKE_FIRST, AT(host.revoked) },
#undef AT
};

static void apply_setting(struct config_lookup *l, size_t setting, const struct strv *args)
{
        void *at = (char *)l + settings[setting].offset;
        struct strv *list = at;
        char **word = at;

        if (settings[setting].kind == TAKE_WORD) {
                if (!*word)
                        *word = xstrdup(args->v[1]);
        } else if (settings[setting].kind == TAKE_ALL) {
                strv_push(list, args->v[1]);
        } else if (list->n == 0) {
                for (size_t i = 1; i < args->n; i++)
                        strv_push(list, args->v[i]);
        }
}

static int apply_line(struct config_lookup *l, const struct config_line *line, struct error *err)
{
        struct ssh_host *h = &l->host;
        const struct strv *a = &line->args;
        const char *k = line->keyword;

        if (a->n < 2 && strcmp(k, "revokedhostkeys") == 0)
                return err_set(err, EINVAL, "RevokedHostKeys without a file");
        if (a->n < 2)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
                if (strcmp(k, settings[i].keyword) == 0)
                        apply_setting(l, i, a);
        if (strcmp(k, "port") == 0) {
                char *end;
                long port = strtol(a->v[1], &end, 10);

                if (*end || port < 1 || port > 65535)
                        return err_set(err, EINVAL, "Port must be 1 to 65535, not '%s'", a->v[1]);
                h->port = h->port ? h->port : (int)port;
        } else if (strcmp(k, "addressfamily") == 0 && h->family == AF_UNSPEC) {
                h->family = strcasecmp(a->v[1], "inet") == 0    ? AF_INET
                            : strcasecmp(a->v[1], "inet6") == 0 ? AF_INET6
                                                                : AF_UNSPEC;
        } else if (!l->proxy_seen &&
                   (strcmp(k, "proxyjump") == 0 || strcmp(k, "proxycommand") == 0)) {
                /* The first of both disables the other. */
                l->proxy_seen = true;
                if (strcasecmp(a->v[1], "none") == 0)
                        return 0;
                if (strcmp(k, "proxyjump") == 0)
                        h->proxy_jump = xstrdup(a->v[1]);
                else
                        h->proxy_command = xstrdup(line->rest);
        }
        return 0;
}

static int walk_lines(struct config_lookup *l, struct error *err)
{
        const struct ssh_config *c = l->config;

        for (size_t i = 0; i < c->n; i++) {
                const struct config_line *line = &c->lines[i];

                if (line->guard >= 0 && !l->holds[line->guard])
                        continue;
                if (strcmp(line->keyword, "host") == 0)
                        l->holds[i] =
                                patterns_match(line->args.v + 1, line->args.n - 1, l->host.alias);
                else if (strcmp(line->keyword, "match") == 0)
                        l->holds[i] = match_holds(l, &line->args);
                else if (apply_line(l, line, err) < 0)
                        return err_wrap(err, "%s: line %d", line->file, line->number);
        }
        return 0;
}

static void expand_list(const struct config_lookup *l, struct strv *s)
{
        struct strv out = STRV_INIT;

        for (size_t i = 0; i < s->n; i++)
                if (strcasecmp(s->v[i], "none") != 0)
                        strv_push_take(&out, expand_tokens(l, s->v[i], true));
        strv_finish(s);
        *s = out;
}

static void add_default_files(struct config_lookup *l)
{
        static const char *const keys[] = { "id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk",
                                            "id_ecdsa_sk" };
        struct ssh_host *h = &l->host;

        h->identities_given = h->identities.n > 0;
        for (size_t i = 0; i < ARRAY_SIZE(keys) && !h->identities_given; i++)
                strv_pushf(&h->identities, "~/.ssh/%s", keys[i]);
        if (l->user_files.n == 0) {
                strv_push(&l->user_files, "~/.ssh/known_hosts");
                strv_push(&l->user_files, "~/.ssh/known_hosts2");
        }
        if (l->global_files.n == 0) {
                strv_push(&l->global_files, "/etc/ssh/ssh_known_hosts");
                strv_push(&l->global_files, "/etc/ssh/ssh_known_hosts2");
        }
}

static void expand_string(const struct config_lookup *l, char **at, bool path)
{
        char *old = STEAL(at); /* %h in HostName is the alias */

        if (old)
                *at = expand_tokens(l, old, path);
        free(old);
}

static bool is_config_yes(const char *text)
{
        return text && (strcasecmp(text, "yes") == 0 || strcasecmp(text, "true") == 0);
}

/* Returns the place of a method in PreferredAuthentications, from 1; 0 = it is not to be tried. */
static int find_preference(const char *list, const char *method)
{
        int place = 1;

        for (size_t n; *list; list += n + (list[n] == ','), place++) {
                n = strcspn(list, ",");
                if (n == strlen(method) && strncmp(list, method, n) == 0)
                        return place;
        }
        return 0;
}

static void complete_login(struct config_lookup *l)
{
        const char *list = l->methods;
        int pubkey = find_preference(list ? list : "publickey", "publickey");
        int gssapi = find_preference(list ? list : "publickey,gssapi-with-mic", "gssapi-with-mic");

        l->host.login = (struct ssh_host_login){
                .pubkey = pubkey && (!l->pubkey || strcasecmp(l->pubkey, "no") != 0),
                .gssapi = gssapi && is_config_yes(l->gssapi),
                .gssapi_first = gssapi < pubkey,
        };
}

static void complete_host(struct config_lookup *l)
{
        struct ssh_host *h = &l->host;

        if (!h->hostname)
                h->hostname = xstrdup("%h");
        expand_string(l, &h->hostname, false);
        h->user = xstrdup(l->user ? l->user : l->config->login);
        if (!h->port)
                h->port = 22;
        h->identities_only = is_config_yes(l->identities_only);
        h->hash_names = is_config_yes(l->hash_names);
        complete_login(l);
        add_default_files(l);
        expand_list(l, &h->identities);
        expand_list(l, &h->certificates);
        expand_list(l, &h->revoked);
        expand_list(l, &l->user_files);
        expand_list(l, &l->global_files);
        h->user_files = l->user_files.n;
        strv_copy(&h->known_hosts, &l->user_files);
        strv_copy(&h->known_hosts, &l->global_files);
        expand_string(l, &h->identity_agent, true);
        expand_string(l, &h->proxy_command, false);
        expand_string(l, &h->proxy_jump, false);
}

/* Refuses characters with a meaning in a shell or a log line: names reach both. */
static int check_name(const char *what, const char *name, struct error *err)
{
        if (!*name || *name == '-' || strlen(name) > 255)
                return err_set(err, EINVAL, "'%s' is not a %s", name, what);
        for (const unsigned char *p = (const unsigned char *)name; *p; p++)
                if (*p <= ' ' || *p == 0x7f || strchr("'\"`$\\;&|<>(){}!#*?", *p))
                        return err_set(err, EINVAL, "'%s' is not a %s", name, what);
        return 0;
}

int ssh_config_lookup(const struct ssh_config *c, const struct ssh_host_request *request,
                      struct ssh_host *ret, struct error *err)
{
        struct config_lookup l = { .config = c };
        int r;

        *ret = (struct ssh_host){ 0 };
        r = check_name("host name", request->alias, err);
        if (r == 0 && request->user)
                r = check_name("user name", request->user, err);
        if (r < 0)
                return r;
        l.holds = xcalloc(c->n + 1, 1);
        l.host.alias = xstrdup(request->alias);
        l.host.family = AF_UNSPEC;
        l.host.port = request->port;
        l.user = request->user ? xstrdup(request->user) : NULL;
        if (request->identities)
                strv_copy(&l.host.identities, request->identities);
        r = walk_lines(&l, err);
        if (r == 0) {
                complete_host(&l);
                r = check_name("host name", l.host.hostname, err);
        }
        strv_finish(&l.user_files);
        strv_finish(&l.global_files);
        free(l.user);
        free(l.identities_only);
        free(l.gssapi);
        free(l.pubkey);
        free(l.methods);
        free(l.hash_names);
        free(l.holds);
        *ret = l.host;
        if (r < 0)
                ssh_host_finish(ret);
        return r;
}

void ssh_host_finish(struct ssh_host *h)
{
        free(h->alias);
        free(h->hostname);
        free(h->user);
        free(h->host_key_alias);
        free(h->local.address);
        free(h->local.interface);
        strv_finish(&h->identities);
        strv_finish(&h->certificates);
        strv_finish(&h->known_hosts);
        strv_finish(&h->revoked);
        free(h->proxy_command);
        free(h->proxy_jump);
        free(h->identity_agent);
        free(h->algorithms.kex);
        free(h->algorithms.ciphers);
        free(h->algorithms.macs);
        free(h->algorithms.host_key);
        free(h->algorithms.pubkey);
        *h = (struct ssh_host){ 0 };
}
