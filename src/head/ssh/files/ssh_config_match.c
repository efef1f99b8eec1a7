/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host and Match lines. A Match line is a list of criteria, read by next_criterion(): when a file
 * is loaded, to check each line, and for each host, to evaluate the criteria from left to right. A
 * command runs only when all criteria before it hold. There is no version to match, since that is
 * the version of ssh(1).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/spawn.h"
#include "head/ssh/files/ssh_config_private.h"

/* What runs on the nodes, for Match command. */
#define REMOTE_COMMAND "hnlaunch-agent"

enum criterion_kind {
        MATCH_ALL,
        MATCH_FINAL,
        MATCH_HOST,
        MATCH_ORIGINAL_HOST,
        MATCH_USER,
        MATCH_LOCAL_USER,
        MATCH_LOCAL_NETWORK,
        MATCH_TAGGED,
        MATCH_COMMAND,
        MATCH_SESSION_TYPE,
        MATCH_EXEC,
};

struct criterion {
        enum criterion_kind kind;
        bool negated;
        bool asks_final; /* "final", not "canonical" */
        const char *value;
};

static const struct {
        const char *name;
        enum criterion_kind kind;
        bool alone; /* has no value */
        bool empty; /* the value may be empty */
} criteria[] = {
        { "all", MATCH_ALL, true, false },
        { "final", MATCH_FINAL, true, false },
        { "canonical", MATCH_FINAL, true, false },
        { "host", MATCH_HOST, false, false },
        { "originalhost", MATCH_ORIGINAL_HOST, false, false },
        { "user", MATCH_USER, false, false },
        { "localuser", MATCH_LOCAL_USER, false, false },
        { "localnetwork", MATCH_LOCAL_NETWORK, false, false },
        { "tagged", MATCH_TAGGED, false, true },
        { "command", MATCH_COMMAND, false, true },
        { "sessiontype", MATCH_SESSION_TYPE, false, false },
        { "exec", MATCH_EXEC, false, false },
};

/* Reads the criterion at @i and moves @i behind it. 1, 0 at the end, or -EINVAL. */
static int next_criterion(const struct strv *args, size_t *i, struct criterion *ret,
                          struct error *err)
{
        size_t k = 0, len;
        const char *word;

        if (*i >= args->n)
                return 0;
        word = args->v[(*i)++];
        *ret = (struct criterion){ .negated = *word == '!' };
        word += ret->negated;
        len = strcspn(word, "=");
        while (k < ARRAY_SIZE(criteria) &&
               (strlen(criteria[k].name) != len || strncasecmp(word, criteria[k].name, len) != 0))
                k++;
        if (k == ARRAY_SIZE(criteria) && len == 7 && strncasecmp(word, "version", 7) == 0)
                return err_set(err, EINVAL, "Match version asks for the version of ssh(1)");
        if (k == ARRAY_SIZE(criteria) || (criteria[k].alone && word[len]))
                return err_set(err, EINVAL, "Match has no criterion '%s'", word);
        ret->kind = criteria[k].kind;
        ret->asks_final = ret->kind == MATCH_FINAL && *criteria[k].name == 'f';
        if (criteria[k].alone)
                return 1;
        /* Both "user=name" and "user name" are allowed. */
        ret->value = word[len] ? word + len + 1 : *i < args->n ? args->v[(*i)++] : NULL;
        if (!ret->value || (!*ret->value && !criteria[k].empty))
                return err_set(err, EINVAL, "Match %s has no value", criteria[k].name);
        return 1;
}

/* An address with the number of bits that count. */
struct network {
        int family;
        unsigned char address[16];
        unsigned bits;
};

/* Reads "10.0.0.0/8" or an address alone, which is a network of one. False: neither. */
static bool parse_network(const char *text, size_t len, struct network *ret)
{
        CLEANUP(free_textp) char *copy = xstrndup(text, len);
        char *slash = strchr(copy, '/'), none[] = "", *end = none;
        unsigned most;

        if (slash)
                *slash++ = '\0';
        ret->family = strchr(copy, ':') ? AF_INET6 : AF_INET;
        most = ret->family == AF_INET6 ? 128 : 32;
        if (inet_pton(ret->family, copy, ret->address) != 1)
                return false;
        ret->bits = slash ? (unsigned)strtoul(slash, &end, 10) : most;
        /* strtoul() would take a sign or a blank in front. */
        return !*end && (!slash || (*slash >= '0' && *slash <= '9')) && ret->bits <= most;
}

/* Compares the first @bits bits. */
static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
        unsigned rest = bits % 8;

        return memcmp(a, b, bits / 8) == 0 &&
               (!rest || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0);
}

/* Whether an address of an interface that is up lies in the network. */
static bool interface_is_in(const struct ifaddrs *i, const struct network *n)
{
        const void *at;

        if (!i->ifa_addr || i->ifa_addr->sa_family != n->family || !(i->ifa_flags & IFF_UP))
                return false;
        at = n->family == AF_INET ? (const void *)&((struct sockaddr_in *)i->ifa_addr)->sin_addr
                                  : &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        return same_bits(at, n->address, n->bits);
}

/* Tells whether an address of this machine is in a list of networks; without @all, only whether the
 * list is one. */
static int networks_hold(const char *list, const struct ifaddrs *all, struct error *err)
{
        bool found = false;

        for (size_t n; *list; list += n + (list[n] == ',')) {
                struct network net;

                n = strcspn(list, ",");
                if (!parse_network(list, n, &net))
                        return err_set(err, EINVAL, "Match localnetwork: '%.*s' is not a network",
                                       (int)n, list);
                for (const struct ifaddrs *i = all; i; i = i->ifa_next)
                        found = found || interface_is_in(i, &net);
        }
        return found;
}

int config_match_check(const struct strv *args, struct error *err)
{
        struct criterion c;
        size_t i = 0, before = 0;
        int r;

        while ((r = next_criterion(args, &i, &c, err)) > 0) {
                /* "all" may have "final" or "canonical" in front. */
                if (c.kind == MATCH_ALL && (before > 1 || i < args->n))
                        return err_set(err, EINVAL, "Match all stands alone");
                if (c.kind == MATCH_LOCAL_NETWORK && networks_hold(c.value, NULL, err) < 0)
                        return -EINVAL;
                before++;
        }
        return r;
}

/* Match localnetwork: 1 or 0. Negative with @err: the list is malformed. */
static int localnetwork_holds(const struct config_lookup *l, const char *list, struct error *err)
{
        struct ifaddrs *all = NULL;
        int r;

        /* Without addresses no network holds, but the list is still checked. */
        if (!l->config->sealed && getifaddrs(&all) < 0)
                return 0;
        r = networks_hold(list, all, err);
        if (all)
                freeifaddrs(all);
        return r;
}

/* Runs the command of Match exec, without standard input and output: 1 if the exit code is 0. */
static int command_holds(struct config_lookup *l, const char *text, struct error *err)
{
        /* As ssh(1): the user's shell runs the command. */
        char *shell = getenv("SHELL"), flag[] = "-c", sh[] = "/bin/sh", *command;
        char *argv[] = { shell && *shell ? shell : sh, flag, NULL, NULL };
        struct spawn s = { .argv = argv, .fds = { SPAWN_NULL, SPAWN_NULL, SPAWN_INHERIT } };
        pid_t pid;
        int status, r = config_expand(l, text, TOKENS_ALL, 0, &command, err);

        /* The text was checked, but a sealed configuration runs nothing. */
        if (r < 0 || l->config->sealed) {
                free(command);
                return r;
        }
        argv[2] = command;
        r = spawn_process(&pid, &s, NULL, err);
        if (r < 0) {
                r = err_set(err, EINVAL, "Match exec: %s", err->text);
        } else {
                while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                        ;
                r = WIFEXITED(status) ? WEXITSTATUS(status) == 0
                                      : err_set(err, EINVAL, "Match exec: signal %d ended '%s'",
                                                WTERMSIG(status), command);
        }
        free(command);
        return r;
}

/* Whether a criterion of Match holds, before a negation. Negative with @err: cannot be decided. */
static int criterion_holds(struct config_lookup *l, const struct criterion *c, struct error *err)
{
        /* HostName counts as soon as a line has set it. */
        const char *name = l->hostname ? l->hostname : l->request->alias;
        const char *tag = config_value(l, "Tag");

        switch (c->kind) {
        case MATCH_ALL:
                return 1;
        case MATCH_FINAL:
                /* Only a plain "final" asks for the second walk; "canonical" and "!final" do
                 * not. */
                l->wants_final = l->wants_final || (c->asks_final && !c->negated);
                return l->final;
        case MATCH_HOST:
                return ssh_name_list_matches(c->value, name);
        case MATCH_ORIGINAL_HOST:
                return ssh_name_list_matches(c->value, l->request->alias);
        case MATCH_USER:
                return ssh_pattern_list_matches(c->value, config_user(l));
        case MATCH_LOCAL_USER:
                return ssh_pattern_list_matches(c->value, l->config->login);
        case MATCH_LOCAL_NETWORK:
                return localnetwork_holds(l, c->value, err);
        case MATCH_TAGGED:
                /* No tag is matched by an empty value alone. */
                return tag ? ssh_pattern_list_matches(c->value, tag) : !*c->value;
        case MATCH_COMMAND:
                return ssh_pattern_list_matches(c->value, REMOTE_COMMAND);
        case MATCH_SESSION_TYPE:
                return ssh_pattern_list_matches(c->value, "exec");
        case MATCH_EXEC:
                return command_holds(l, c->value, err);
        }
        return 0;
}

/* All criteria are looked at, since ssh(1) notes a Match final behind one that does not hold. */
static int match_holds(struct config_lookup *l, const struct strv *args, struct error *err)
{
        struct criterion c;
        bool holds = true;
        int r;

        for (size_t i = 0; (r = next_criterion(args, &i, &c, err)) > 0;) {
                if (!holds && c.kind != MATCH_FINAL)
                        continue;
                r = criterion_holds(l, &c, err);
                if (r < 0)
                        return r;
                holds = holds && (r > 0) != c.negated;
        }
        return r < 0 ? r : holds;
}

/* Whether a Host line holds: a negated pattern that matches excludes the host, whatever else
 * matches. */
static int host_holds(const struct config_lookup *l, const struct strv *patterns)
{
        /* Host lines see the name as given, in the second walk the final name. */
        const char *name = l->final ? l->hostname : l->request->alias;
        bool found = false;

        for (size_t i = 0; i < patterns->n; i++) {
                const char *p = patterns->v[i];
                bool negated = *p == '!';

                if (!ssh_pattern_matches(p + negated, strlen(p + negated), name, strlen(name)))
                        continue;
                if (negated)
                        return 0;
                found = true;
        }
        return found;
}

int config_line_holds(struct config_lookup *l, const struct config_line *line, struct error *err)
{
        if (strcmp(line->name, "host") == 0)
                return host_holds(l, &line->args);
        return match_holds(l, &line->args, err);
}
