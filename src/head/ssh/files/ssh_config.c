/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lookup walks the list of lines once, notes which Host and Match lines hold, skips the lines
 * behind the others, and notes the first line of every keyword. A Match final
 * asks for a second walk with the name that HostName gave; what was found stays. Then the values
 * are expanded and completed with defaults, and the lines that are not obeyed are judged.
 */
#include "head/ssh/files/ssh_config.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "head/ssh/files/ssh_config_private.h"

#define YES "yes|true"

/* Returns the first line with the keyword that holds, or NULL. */
static const struct config_line *find_line(const struct config_lookup *l, const char *keyword)
{
        for (size_t i = 0; i < l->found_n; i++)
                if (strcmp(l->found[i]->keyword->name, keyword) == 0)
                        return l->found[i];
        return NULL;
}

const char *config_value(const struct config_lookup *l, const char *keyword)
{
        const struct config_line *line = find_line(l, keyword);

        return line ? line->args.v[0] : NULL;
}

const char *config_user(const struct config_lookup *l)
{
        const char *user = l->request->user ? l->request->user : config_value(l, "User");

        return user ? user : l->config->login;
}

int config_port(const struct config_lookup *l)
{
        const char *port = config_value(l, "Port");

        return l->request->port ? l->request->port : port ? ssh_keyword_port(port) : 22;
}

/* Spells a name as known_hosts has it: addresses as the system prints them, names in lower case. */
static char *spell_hostname(char *name)
{
        /* No lookup: only the spelling of addresses is changed. */
        const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
        struct addrinfo *found = NULL;
        char text[NI_MAXHOST];

        if (getaddrinfo(name, NULL, &hints, &found) != 0) {
                ssh_name_lower(name);
                return name;
        }
        if (getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
                        NI_NUMERICHOST) == 0) {
                free(name);
                name = xstrdup(text);
        }
        freeaddrinfo(found);
        return name;
}

/* The first line of ProxyJump and ProxyCommand disables the other; ProxyJump none does not. */
static void note_proxy(struct config_lookup *l, const struct config_line *line)
{
        const struct config_line **at = &l->command;

        if (strcmp(line->name, "proxyjump") == 0)
                at = &l->jump;
        else if (l->jump && strcasecmp(l->jump->rest, "none") != 0)
                return;
        if (at == &l->jump && l->command && strcasecmp(line->rest, "none") != 0)
                return;
        if (!*at)
                *at = line;
}

/* Notes a line that holds for the host. HostName is expanded at once, because later Match lines
 * compare the name. Identities and certificates add up; of other keywords the first line stays. */
static int apply_line(struct config_lookup *l, const struct config_line *line, struct error *err)
{
        struct ssh_host *h = l->host;
        const char *name = line->keyword->name, *value = line->args.v[0];

        if (strcmp(name, "IdentityFile") == 0 && !strv_has(&h->identities, value))
                strv_push(&h->identities, value);
        else if (strcmp(name, "CertificateFile") == 0 && !strv_has(&h->certificates, value))
                strv_push(&h->certificates, value);
        else if (strcmp(name, "ProxyJump") == 0 || strcmp(name, "ProxyCommand") == 0)
                note_proxy(l, line);
        else if (strcmp(name, "RefuseConnection") == 0)
                return err_set(err, EINVAL, "RefuseConnection: %s", value);
        /* The first value of a keyword counts. */
        if (find_line(l, name))
                return 0;
        l->found = xrealloc(l->found, l->found_n + 1, sizeof(*l->found));
        l->found[l->found_n++] = line;
        if (strcmp(name, "HostName") == 0 && !l->hostname)
                return config_expand(l, value, TOKENS_HOSTNAME, 0, &l->hostname, err);
        return 0;
}

/* Applies a line, or decides whether the lines below a Host or Match hold. 0, or negative with
 * @err. */
static int walk_line(struct config_lookup *l, size_t i, struct error *err)
{
        const struct config_line *line = &l->config->lines[i];
        int r;

        /* Checked before the guard, as ssh(1) does for lines in any block. */
        if (!line->keyword) {
                const char *ignored = config_value(l, "IgnoreUnknown");

                return ignored && ssh_name_list_matches(ignored, line->name)
                               ? 0
                               : err_set(err, EINVAL, "unknown keyword '%s'", line->name);
        }
        if (line->guard >= 0 && !l->holds[line->guard])
                return 0;
        if (strcmp(line->name, "host") != 0 && strcmp(line->name, "match") != 0)
                return apply_line(l, line, err);
        r = config_line_holds(l, line, err);
        l->holds[i] = r > 0;
        /* 1 and 0 are answers, no errors. */
        return MIN(r, 0);
}

/* Decides all Host and Match lines, and notes the lines that hold. */
static int walk_lines(struct config_lookup *l, struct error *err)
{
        const struct ssh_config *c = l->config;

        /* The second walk decides anew, by the name of HostName. */
        memset(l->holds, 0, c->n);
        for (size_t i = 0; i < c->n; i++)
                if (walk_line(l, i, err) < 0)
                        return config_wrap_place(err, c->lines[i].file, c->lines[i].number, NULL);
        return 0;
}

/* Expands the value of a keyword; the place of its line is in the error. @at stays NULL without
 * one. */
static int expand_value(const struct config_lookup *l, const char *keyword, const char *tokens,
                        int flags, char **at, struct error *err)
{
        const struct config_line *line = find_line(l, keyword);

        if (!line || config_expand(l, line->args.v[0], tokens, flags, at, err) == 0)
                return 0;
        return config_wrap_place(err, line->file, line->number, keyword);
}

/* Puts the place of the line with the value in front of the sentence. */
static int wrap_place(const struct config_lookup *l, const char *keyword, const char *value,
                      struct error *err)
{
        for (size_t i = 0; i < l->config->n; i++) {
                const struct config_line *line = &l->config->lines[i];

                if (line->keyword && strcmp(line->keyword->name, keyword) == 0 &&
                    strv_has(&line->args, value))
                        return config_wrap_place(err, line->file, line->number, keyword);
        }
        return err_wrap(err, "%s", keyword); /* a default, or a file of the command line */
}

/* Expands names of files and drops "none". */
static int expand_files(const struct config_lookup *l, const char *keyword, const char *tokens,
                        int flags, struct strv *s, struct error *err)
{
        struct strv out = STRV_INIT;
        int r = 0;

        for (size_t i = 0; i < s->n && r == 0; i++) {
                char *file;

                if (strcasecmp(s->v[i], "none") == 0)
                        continue;
                r = config_expand(l, s->v[i], tokens, flags, &file, err);
                if (r < 0)
                        wrap_place(l, keyword, s->v[i], err);
                else
                        strv_push_take(&out, file);
        }
        strv_finish(s);
        *s = out;
        return r;
}

/* The standard names of ssh(1), in its order, unless identities are configured. */
static void complete_keys(struct config_lookup *l)
{
        static const char *const keys[] = { "id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk",
                                            "id_ecdsa_sk" };
        struct ssh_host *h = l->host;

        h->identities_given = h->identities.n > 0;
        for (size_t i = 0; i < ARRAY_SIZE(keys) && !h->identities_given; i++)
                strv_pushf(&h->identities, "~/.ssh/%s", keys[i]);
}

/* Expands the files of a keyword, or the two defaults, and appends them to @to. */
static int complete_files(const struct config_lookup *l, const char *keyword, const char *tokens,
                          int flags, const char *const defaults[2], struct strv *to,
                          struct error *err)
{
        const struct config_line *line = find_line(l, keyword);
        struct strv files = STRV_INIT;
        int r;

        for (size_t i = 0; !line && i < 2 && defaults; i++)
                strv_push(&files, defaults[i]);
        if (line)
                strv_copy(&files, &line->args);
        r = expand_files(l, keyword, tokens, flags, &files, err);
        strv_copy(to, &files);
        strv_finish(&files);
        return r;
}

/* Fills in the files of known and of revoked keys, in the order of ssh(1). */
static int complete_known_hosts(const struct config_lookup *l, struct error *err)
{
        static const char *const user[] = { "~/.ssh/known_hosts", "~/.ssh/known_hosts2" };
        static const char *const global[] = { "/etc/ssh/ssh_known_hosts",
                                              "/etc/ssh/ssh_known_hosts2" };
        struct ssh_host *h = l->host;
        int r = complete_files(l, "UserKnownHostsFile", TOKENS_ALL, EXPAND_FILE, user,
                               &h->known_hosts, err);

        /* New keys go to a file of the user, never to a global one. */
        h->user_files = h->known_hosts.n;
        if (r == 0)
                r = complete_files(l, "GlobalKnownHostsFile", TOKENS_NONE, EXPAND_HOME, global,
                                   &h->known_hosts, err);
        if (r == 0)
                r = complete_files(l, "RevokedHostKeys", TOKENS_ALL, EXPAND_FILE, NULL, &h->revoked,
                                   err);
        return r;
}

/* Expands the text of a ProxyJump or ProxyCommand; "none" leaves @at NULL. */
static int expand_proxy(const struct config_lookup *l, const struct config_line *line,
                        const char *text, char **at, struct error *err)
{
        if (strcasecmp(text, "none") == 0 || config_expand(l, text, TOKENS_PROXY, 0, at, err) == 0)
                return 0;
        return config_wrap_place(err, line->file, line->number, line->keyword->name);
}

/* Fills in ProxyJump, without a comment at the end, and ProxyCommand, where # belongs to the
 * command. */
static int complete_proxy(const struct config_lookup *l, struct error *err)
{
        int r = 0;

        if (l->jump) {
                size_t n = strcspn(l->jump->rest, "#");
                char *jump;

                while (n && strchr(" \t", l->jump->rest[n - 1]))
                        n--;
                jump = xstrndup(l->jump->rest, n);
                r = expand_proxy(l, l->jump, jump, &l->host->proxy_jump, err);
                free(jump);
        }
        if (r == 0 && l->command)
                r = expand_proxy(l, l->command, l->command->rest, &l->host->proxy_command, err);
        return r;
}

/* Tells whether a keyword has one of the values, such as YES. */
static bool config_is(const struct config_lookup *l, const char *keyword, const char *values)
{
        const char *value = config_value(l, keyword);

        return value && ssh_keyword_list_has(values, value);
}

/* Returns the value for free(), NULL = not configured. */
static char *copy_value(const struct config_lookup *l, const char *keyword)
{
        const char *value = config_value(l, keyword);

        return value ? xstrdup(value) : NULL;
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

/* Without a list publickey comes first, and GSSAPI is tried only when switched on. */
static void complete_login(const struct config_lookup *l)
{
        const char *list = config_value(l, "PreferredAuthentications");
        int pubkey = find_preference(list ? list : "publickey", "publickey");
        int gssapi = find_preference(list ? list : "publickey,gssapi-with-mic", "gssapi-with-mic");

        l->host->login = (struct ssh_host_login){
                .pubkey = pubkey && !config_is(l, "PubkeyAuthentication", "no|false"),
                .gssapi = gssapi && config_is(l, "GSSAPIAuthentication", YES),
                .gssapi_first = gssapi < pubkey,
        };
}

/* Whether the value is one of the site's: not a wish of the user. */
static bool is_of_system(const struct config_lookup *l, const char *keyword)
{
        const struct config_line *line = find_line(l, keyword);

        return line && line->system;
}

/* Notes the wishes as written: algorithms_expand() makes the lists. */
static void complete_algorithms(const struct config_lookup *l)
{
        struct ssh_host_algorithms *a = &l->host->algorithms;
        const char *bits = config_value(l, "RequiredRSASize");

        for (enum algorithm_kind kind = 0; kind < ALGORITHM_KINDS; kind++) {
                a->lists[kind] = copy_value(l, algorithms_keyword(kind));
                a->system_lists[kind] = is_of_system(l, algorithms_keyword(kind));
        }
        a->rsa_bits = bits ? (int)strtol(bits, NULL, 10) : 0;
        a->system_rsa_bits = is_of_system(l, "RequiredRSASize");
}

/* Values without tokens. */
static void complete_words(const struct config_lookup *l)
{
        struct ssh_host *h = l->host;
        const char *family = config_value(l, "AddressFamily");

        h->port = config_port(l);
        h->family = !family || strcasecmp(family, "any") == 0 ? AF_UNSPEC
                    : strcasecmp(family, "inet") == 0         ? AF_INET
                                                              : AF_INET6;
        h->host_key_alias = copy_value(l, "HostKeyAlias");
        if (h->host_key_alias)
                ssh_name_lower(h->host_key_alias);
        h->local.address = copy_value(l, "BindAddress");
        h->local.interface = copy_value(l, "BindInterface");
        complete_algorithms(l);
        h->identities_only = config_is(l, "IdentitiesOnly", YES);
        h->hash_names = config_is(l, "HashKnownHosts", YES);
        complete_login(l);
}

/* Whether ssh(1) takes a login that comes from a variable: no words of a shell, no option behind a
 * blank. */
static bool is_fine_login(const char *name)
{
        if (!*name || *name == '-' || name[strlen(name) - 1] == '\\')
                return false;
        for (const char *p = name; *p; p++)
                if (iscntrl((unsigned char)*p) || strchr("'`\";&<>|(){}", *p) ||
                    (*p == ' ' && p[1] == '-'))
                        return false;
        return true;
}

/* Fills in the login of User, if there is a line. A name that stands in the file is taken as it is,
 * such as DOMAIN\me; tokens and variables bring words from elsewhere, which reach ProxyCommand. */
static int complete_user(const struct config_lookup *l, struct error *err)
{
        const struct config_line *line = find_line(l, "User");
        int r = expand_value(l, "User", TOKENS_USER, EXPAND_VARIABLES, &l->host->user, err);
        const char *user = l->host->user;

        if (r < 0 || !line || !strcmp(user, line->args.v[0]) || is_fine_login(user))
                return r;
        err_set(err, EINVAL, "'%s' is not a user name", user);
        return config_wrap_place(err, line->file, line->number, "User");
}

/* Fills in @host from the lines found; the user comes before the rest, since %r expands to the
 * user. */
static int complete_host(struct config_lookup *l, struct error *err)
{
        struct ssh_host *h = l->host;
        int r = 0;

        h->hostname = xstrdup(l->hostname);
        complete_words(l);
        complete_keys(l);
        if (l->request->user)
                h->user = xstrdup(l->request->user);
        else
                r = complete_user(l, err);
        if (!h->user) /* no User, or a failure, which the caller reports */
                h->user = xstrdup(l->config->login);
        if (r == 0)
                r = complete_proxy(l, err);
        if (r == 0)
                r = expand_files(l, "IdentityFile", TOKENS_ALL, EXPAND_FILE, &h->identities, err);
        if (r == 0)
                r = expand_files(l, "CertificateFile", TOKENS_ALL, EXPAND_FILE, &h->certificates,
                                 err);
        if (r == 0)
                r = complete_known_hosts(l, err);
        if (r == 0)
                r = expand_value(l, "IdentityAgent", TOKENS_ALL, EXPAND_FILE, &h->identity_agent,
                                 err);
        return r;
}

/* Tells whether a line that is not obeyed would change nothing. */
static bool changes_nothing(const struct config_lookup *l, const struct config_line *line)
{
        const struct ssh_keyword *k = line->keyword;
        const struct strv *args = &line->args;
        const char *condition = k->only_if;
        bool negated = condition && *condition == '!';

        if (ssh_keyword_list_has(k->fine, args->v[0]) &&
            (args->n == 1 || strcasecmp(args->v[1], "none") == 0))
                return true;
        if (!condition)
                return false;
        condition += negated;
        CLEANUP(free_textp)
        char *keyword = xstrndup(condition, strcspn(condition, " "));
        /* "Keyword yes" must hold for the line to matter; with "!" it must not. */
        return config_is(l, keyword, YES) == negated;
}

/* Judges the lines that are not obeyed: an error, or a text in @unobeyed. */
static int judge_unobeyed(const struct config_lookup *l, struct ssh_unobeyed *unobeyed,
                          struct error *err)
{
        for (size_t i = 0; i < l->found_n; i++) {
                const struct config_line *line = l->found[i];
                const struct ssh_keyword *k = line->keyword;

                if (k->use < KEYWORD_ASIDE || changes_nothing(l, line))
                        continue;
                if (k->use == KEYWORD_REFUSED) {
                        err_set(err, EINVAL, "%s is not obeyed: %s", k->name, k->why);
                        config_wrap_place(err, line->file, line->number, NULL);
                        return err_help(
                                err,
                                "--ssh-command ssh obeys it, or remove the line for this host");
                }
                if (unobeyed)
                        strv_pushf(k->use == KEYWORD_ASIDE ? &unobeyed->aside : &unobeyed->told,
                                   "%s: line %d: %s is not obeyed: %s", line->file, line->number,
                                   k->name, k->why);
        }
        return 0;
}

/* Refuses characters with a meaning in a shell or a log line: names reach both. @what is the noun
 * of the message. */
static int check_name(const char *what, const char *name, struct error *err)
{
        if (!*name || *name == '-' || strlen(name) > 255)
                return err_set(err, EINVAL, "'%s' is not a %s", name, what);
        for (const unsigned char *p = (const unsigned char *)name; *p; p++)
                /* Letters above ASCII pass: a name may be in UTF-8. */
                if (*p <= ' ' || *p == 0x7f || strchr("'\"`$\\;&|<>(){}!#*?", *p))
                        return err_set(err, EINVAL, "'%s' is not a %s", name, what);
        return 0;
}

/* Walks once, or twice if there is a Match final; fills in the host. */
static int look_up(struct config_lookup *l, struct error *err)
{
        int r = walk_lines(l, err);

        if (r < 0)
                return r;
        /* From here on tokens and Match host use the final name. */
        l->hostname = spell_hostname(l->hostname ? l->hostname : xstrdup(l->request->alias));
        l->final = true;
        /* A second walk may only add values: the first ones stay. */
        if (l->wants_final)
                r = walk_lines(l, err);
        if (r == 0)
                r = complete_host(l, err);
        if (r == 0)
                /* Once more: HostName may have brought in other characters. */
                r = check_name("host name", l->host->hostname, err);
        return r;
}

int ssh_config_lookup(const struct ssh_config *c, const struct ssh_host_request *request,
                      struct ssh_host *ret, struct ssh_unobeyed *unobeyed, struct error *err)
{
        struct config_lookup l = { .config = c, .request = request, .host = ret };
        int r;

        *ret = (struct ssh_host){ 0 };
        r = check_name("host name", request->alias, err);
        if (r == 0 && request->user)
                r = check_name("user name", request->user, err);
        if (r < 0)
                return r;
        l.holds = xcalloc(c->n + 1, 1);
        ret->alias = xstrdup(request->alias);
        if (request->identities)
                strv_copy(&ret->identities, request->identities);
        r = look_up(&l, err);
        if (r == 0)
                r = judge_unobeyed(&l, unobeyed, err);
        free(l.hostname);
        free(l.found);
        free(l.holds);
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
        strv_finish(&h->identities);
        strv_finish(&h->certificates);
        strv_finish(&h->known_hosts);
        strv_finish(&h->revoked);
        free(h->proxy_command);
        free(h->proxy_jump);
        free(h->identity_agent);
        free(h->local.address);
        free(h->local.interface);
        for (size_t i = 0; i < ARRAY_SIZE(h->algorithms.lists); i++)
                free(h->algorithms.lists[i]);
        *h = (struct ssh_host){ 0 };
}
