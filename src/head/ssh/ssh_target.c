/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target is found in a single pass: look up the ssh config, then either the jump host
 * (find_via()), the proxy command, or the addresses; then the keys, the agent's socket, the host
 * keys and the server's limits. A jump host is a target itself, found recursively for "a,b,c" from
 * the last name to the first, and kept in the site by the chain of names. known_hosts files are
 * kept by the list of names, so that hosts with the same files share an index. Both tables have a
 * mutex; the mutex of jump hosts is held during the whole lookup, since concurrent lookups need the
 * same answer.
 */
#include "head/ssh/ssh_target.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/ssh/files/ssh_config.h"

#define JUMPS_MAX 8 /* in a chain; also ends a chain that leads back to itself */

struct known_entry {
        char *files; /* the names of the files, one per line */
        struct known_hosts *known;
        struct revoked_keys *revoked;
        UT_hash_handle hh;
};

struct jump_entry {
        char *name;
        size_t number;             /* by which transport_ssh.c chooses the worker */
        struct ssh_target *target; /* NULL: see why */
        struct link_failure why;
        UT_hash_handle hh;
};

struct ssh_site {
        const struct ssh_options *options;
        struct ssh_config *config;
        struct ssh_keys *keys;
        struct ssh_servers *servers;
        pthread_mutex_t known_mutex;
        struct known_entry *known;
        struct strv accepted;              /* "name port blob" of appended keys */
        struct strv notices[LINK_NOTICES]; /* each text once */
        size_t told[LINK_NOTICES];         /* the number of them that were fetched */
        /* Held while a jump host is looked up. */
        pthread_mutex_t jump_mutex;
        struct jump_entry *jumps;
};

int ssh_site_create(struct ssh_site **ret, const struct ssh_options *o, struct error *err)
{
        struct ssh_config *config;
        struct ssh_site *site;
        int r = ssh_config_load(&config, o->config_file, err);

        if (r < 0)
                return r;
        site = xcalloc(1, sizeof(*site));
        site->options = o;
        site->config = config;
        site->keys = ssh_keys_create();
        site->servers = ssh_servers_create();
        pthread_mutex_init(&site->known_mutex, NULL);
        pthread_mutex_init(&site->jump_mutex, NULL);
        *ret = site;
        return 0;
}

void ssh_site_free(struct ssh_site *site)
{
        struct known_entry *k, *next_k;
        struct jump_entry *j, *next_j;

        if (!site)
                return;
        HASH_ITER(hh, site->jumps, j, next_j)
        {
                HASH_DEL(site->jumps, j);
                ssh_target_free(j->target);
                free(j->name);
                free(j);
        }
        HASH_ITER(hh, site->known, k, next_k)
        {
                HASH_DEL(site->known, k);
                known_hosts_free(k->known);
                revoked_keys_free(k->revoked);
                free(k->files);
                free(k);
        }
        strv_finish(&site->accepted);
        for (size_t i = 0; i < ARRAY_SIZE(site->notices); i++)
                strv_finish(&site->notices[i]);
        ssh_keys_free(site->keys);
        ssh_servers_free(site->servers);
        ssh_config_free(site->config);
        pthread_mutex_destroy(&site->known_mutex);
        pthread_mutex_destroy(&site->jump_mutex);
        free(site);
}

const struct ssh_options *ssh_site_options(const struct ssh_site *site)
{
        return site->options;
}

const struct ssh_config *ssh_site_config(const struct ssh_site *site)
{
        return site->config;
}

void ssh_site_host_keys(struct ssh_site *site, const struct ssh_host *h, struct known_set *ret,
                        const struct revoked_keys **ret_revoked)
{
        struct buf name = BUF_INIT;
        struct known_entry *e;
        char *key;

        for (size_t i = 0; i < h->known_hosts.n; i++)
                buf_printf(&name, "%s\n", h->known_hosts.v[i]);
        for (size_t i = 0; i < h->revoked.n; i++)
                buf_printf(&name, "\n%s", h->revoked.v[i]);
        buf_appends(&name, "\n");
        key = buf_steal(&name);
        pthread_mutex_lock(&site->known_mutex);
        HASH_FIND_STR(site->known, key, e);
        if (!e) {
                e = xcalloc(1, sizeof(*e));
                e->files = STEAL(&key);
                e->known = known_hosts_load(&h->known_hosts);
                e->revoked = revoked_keys_load(&h->revoked);
                HASH_ADD_KEYPTR(hh, site->known, e->files, strlen(e->files), e);
        }
        pthread_mutex_unlock(&site->known_mutex);
        free(key);
        /* Without the mutex: the index is read-only from here on. */
        known_hosts_find(e->known, h->host_key_alias ? h->host_key_alias : h->hostname,
                         h->host_key_alias ? 22 : h->port, ret);
        *ret_revoked = e->revoked;
}

static void add_identity(const struct ssh_identity ***v, size_t *n, const struct ssh_identity *id)
{
        *v = xrealloc(*v, *n + 1, sizeof(**v));
        (*v)[(*n)++] = id;
}

/* Certificates of other keys are no error: each certificate is tried with each key. */
static void add_certificate(struct ssh_site *site, struct ssh_target *r, const char *path,
                            const char *cert)
{
        const struct ssh_identity *id = ssh_keys_get(site->keys, path, cert);

        if (id->state == IDENTITY_GOOD)
                add_identity(&r->offers, &r->offers_n, id);
}

/* Certificates before plain keys, each file once, in the order of the config; then the agent. */
static void find_keys(struct ssh_site *site, struct ssh_target *r)
{
        const struct strv *files = &r->host.identities;
        const char *socket = r->host.identity_agent;

        if (!r->host.login.pubkey)
                return;
        for (size_t i = 0; i < files->n; i++) {
                char *beside = xasprintf("%s-cert.pub", files->v[i]);

                /* A certificate beside the key needs no line in the config, as for ssh(1). */
                add_certificate(site, r, files->v[i], beside);
                free(beside);
                for (size_t k = 0; k < r->host.certificates.n; k++)
                        add_certificate(site, r, files->v[i], r->host.certificates.v[k]);
        }
        /* Missing standard names are not worth a word, unlike a name that was given. */
        for (size_t i = 0; i < files->n; i++) {
                const struct ssh_identity *id = ssh_keys_get(site->keys, files->v[i], NULL);
                bool again = false;

                for (size_t k = 0; k < i; k++)
                        again = again || strcmp(files->v[k], files->v[i]) == 0;
                if (again)
                        continue;
                if (id->state == IDENTITY_GOOD)
                        add_identity(&r->offers, &r->offers_n, id);
                else if (id->state != IDENTITY_MISSING || r->host.identities_given)
                        add_identity(&r->unusable, &r->unusable_n, id);
        }
        if (!socket || strcmp(socket, "SSH_AUTH_SOCK") == 0)
                socket = getenv("SSH_AUTH_SOCK");
        else if (*socket == '$')
                socket = getenv(socket + 1);
        else if (strcasecmp(socket, "none") == 0)
                socket = NULL;
        if (socket && *socket)
                r->agent = xstrdup(socket);
}

static void set_lookup_failure(struct link_failure *why, enum link_cause cause, const char *fact,
                               const char *detail)
{
        why->phase = LINK_RESOLVING;
        why->cause = cause;
        snprintf(why->fact, sizeof(why->fact), "%.*s", (int)sizeof(why->fact) - 1, fact);
        snprintf(why->detail, sizeof(why->detail), "%.*s", (int)sizeof(why->detail) - 1, detail);
}

/* Resolves the name. 0, or -1 with @why, which has HostName where the configuration gives another
 * name. */
static int find_addresses(struct ssh_target *r, struct link_failure *why)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = r->host.family };
        char port[12], detail[200] = "";
        const char *fact;
        int e;

        snprintf(port, sizeof(port), "%d", r->host.port);
        e = getaddrinfo(r->host.hostname, port, &hints, &r->addresses);
        if (e == 0)
                return 0;
        if (strcmp(r->host.hostname, r->host.alias) != 0)
                snprintf(detail, sizeof(detail), "HostName %s", r->host.hostname);
        r->addresses = NULL; /* unspecified after a failure */
        if (e == EAI_NONAME || e == EAI_NODATA)
                fact = "name does not resolve";
        else if (e == EAI_AGAIN)
                fact = "name does not resolve: the name servers do not answer";
        else
                fact = gai_strerror(e);
        set_lookup_failure(why, LINK_NO_NAME, fact, detail);
        return -1;
}

/* Expands the lists of the configuration (+, - and ^) to names known to the library. 0, or -1 with
 * @why. */
static int find_algorithms(struct ssh_target *r, struct link_failure *why)
{
        char fact[sizeof(why->fact)];

        for (enum algorithm_kind i = 0; i < ALGORITHM_KINDS; i++) {
                const char *wish = r->host.algorithms.lists[i];

                r->algorithms[i] = algorithms_expand(i, wish);
                if (r->algorithms[i])
                        continue;
                snprintf(fact, sizeof(fact), "%s %.180s: the ssh library has none of these",
                         algorithms_keyword(i), wish);
                set_lookup_failure(why, LINK_OTHER, fact, "");
                return -1;
        }
        return 0;
}

/* As in ssh(1), types of known keys move to the front unless the configuration has an order. */
static void order_host_keys(struct ssh_target *r)
{
        const char *wish = r->host.algorithms.lists[ALGORITHM_HOST_KEY];
        char **list = &r->algorithms[ALGORITHM_HOST_KEY], *old;

        /* A list of its own, or ^, is an order already. */
        if (wish && !strchr("+-", *wish))
                return;
        old = *list;
        *list = known_set_algorithms(&r->known, old);
        free(old);
}

static int find_source(struct ssh_target *r, struct link_failure *why)
{
        struct error err = { 0 };

        if (ssh_source_find(&r->host.local, &r->source, &err) == 0)
                return 0;
        set_lookup_failure(why, LINK_OTHER, err.text, "");
        why->phase = LINK_CONNECTING;
        return -1;
}

static int find_target(struct ssh_site *site, const struct ssh_host_request *request,
                       const char *jumps, int depth, struct ssh_target **ret,
                       struct link_failure *why);

/* Splits "[user@]host[:port]" or "ssh://..."; IPv6 in brackets. Changes @text. */
static void split_jump(char *text, struct ssh_host_request *ret)
{
        char *at, *colon;

        *ret = (struct ssh_host_request){ 0 };
        if (strncmp(text, "ssh://", 6) == 0)
                text += 6;
        at = strrchr(text, '@');
        if (at) {
                *at = '\0';
                ret->user = text;
                text = at + 1;
        }
        if (*text == '[' && strchr(text, ']')) {
                char *end = strchr(text, ']');

                *end = '\0';
                text++;
                colon = end[1] == ':' ? end + 1 : NULL;
        } else {
                colon = strchr(text, ':');
                if (colon && strchr(colon + 1, ':')) /* a bare IPv6 address */
                        colon = NULL;
        }
        if (colon) {
                *colon = '\0';
                ret->port = atoi(colon + 1);
        }
        ret->alias = text;
}

/* Returns the last jump host of "a,b,c", which is itself reached over the others. */
static struct jump_entry *find_jump(struct ssh_site *site, const char *jumps, int depth)
{
        struct jump_entry *e;

        HASH_FIND_STR(site->jumps, jumps, e);
        if (e)
                return e;
        e = xcalloc(1, sizeof(*e));
        e->name = xstrdup(jumps);
        e->number = HASH_COUNT(site->jumps);
        char *copy = xstrdup(jumps), *comma = strrchr(copy, ',');
        struct ssh_host_request request;

        if (comma)
                *comma = '\0';
        split_jump(comma ? comma + 1 : copy, &request);
        request.identities = site->options->identities;
        /* The failure is kept in the entry: it is the same for all hosts behind. */
        find_target(site, &request, comma ? copy : NULL, depth + 1, &e->target, &e->why);
        free(copy);
        HASH_ADD_KEYPTR(hh, site->jumps, e->name, strlen(e->name), e);
        return e;
}

/* Finds the jump host, which all hosts behind share. 0, or -1 with @why. */
static int find_via(struct ssh_site *site, struct ssh_target *r, const char *jumps, int depth,
                    struct link_failure *why)
{
        struct jump_entry *jump;

        if (depth >= JUMPS_MAX) {
                set_lookup_failure(why, LINK_OTHER, "too many jump hosts", jumps);
                return -1;
        }
        /* The recursion for "a,b,c" holds the mutex already. */
        if (depth == 0)
                pthread_mutex_lock(&site->jump_mutex);
        jump = find_jump(site, jumps, depth);
        if (depth == 0)
                pthread_mutex_unlock(&site->jump_mutex);
        if (!jump->target) {
                *why = jump->why;
                /* Of "a,b,c" the first one that fails is named. */
                if (!why->at_jump_host)
                        snprintf(why->fact, sizeof(why->fact), "jump host %.60s: %.180s", jumps,
                                 jump->why.fact);
                why->at_jump_host = true;
                return -1;
        }
        r->via = jump->target;
        r->via_name = xstrdup(jumps);
        r->via_number = jump->number;
        return 0;
}

/* A jump host under "Host *" with a ProxyJump to itself is reached directly. */
static bool jumps_to_itself(const struct ssh_target *r)
{
        struct ssh_host_request request;
        char *copy;
        bool same;

        if (!r->host.proxy_jump || strchr(r->host.proxy_jump, ','))
                return false;
        copy = xstrdup(r->host.proxy_jump);
        split_jump(copy, &request);
        same = strcmp(request.alias, r->host.alias) == 0 ||
               strcmp(request.alias, r->host.hostname) == 0;
        free(copy);
        return same;
}

/* Keeps the texts that are new for ssh_site_notice(). */
static void add_notices(struct ssh_site *site, enum link_notice kind, struct strv *texts)
{
        struct strv *all = &site->notices[kind];

        pthread_mutex_lock(&site->known_mutex);
        for (size_t i = 0; i < texts->n; i++)
                if (!strv_has(all, texts->v[i]))
                        strv_push(all, texts->v[i]);
        pthread_mutex_unlock(&site->known_mutex);
        strv_finish(texts);
}

static void notice_key_files(struct ssh_site *site, const struct ssh_target *r)
{
        struct strv texts = STRV_INIT;

        for (size_t i = 0; i < r->unusable_n; i++)
                if (r->unusable[i]->state == IDENTITY_EXPOSED)
                        strv_pushf(&texts, "%s  %04o", r->unusable[i]->path, r->unusable[i]->mode);
        add_notices(site, NOTICE_KEY_FILE, &texts);
}

char *ssh_site_notice(struct ssh_site *site, enum link_notice *ret_kind)
{
        char *text = NULL;

        pthread_mutex_lock(&site->known_mutex);
        for (int kind = 0; kind < LINK_NOTICES && !text; kind++)
                if (site->told[kind] < site->notices[kind].n) {
                        *ret_kind = (enum link_notice)kind;
                        text = xstrdup(site->notices[kind].v[site->told[kind]++]);
                }
        pthread_mutex_unlock(&site->known_mutex);
        return text;
}

/* Gathers everything that a login needs, in a thread of the pool: configuration, addresses or jump
 * hosts, keys and known keys. 0, or -1 with @why. */
static int find_target(struct ssh_site *site, const struct ssh_host_request *request,
                       const char *jumps, int depth, struct ssh_target **ret,
                       struct link_failure *why)
{
        struct ssh_target *r = xcalloc(1, sizeof(*r));
        const struct ssh_host *h = &r->host;
        struct ssh_unobeyed unobeyed = { 0 };
        struct error err = { 0 };
        int failed = ssh_config_lookup(site->config, request, &r->host, &unobeyed, &err);

        *why = (struct link_failure){ 0 };
        if (failed < 0) {
                link_failure_set_error(why, &err);
                free(r);
                return -1;
        }
        add_notices(site, NOTICE_CONFIG, &unobeyed.told);
        add_notices(site, NOTICE_CONFIG_ASIDE, &unobeyed.aside);
        why->port = h->port;
        snprintf(why->user, sizeof(why->user), "%s", h->user);
        if (!jumps && !jumps_to_itself(r))
                jumps = h->proxy_jump;
        if (find_algorithms(r, why) < 0)
                failed = -1;
        else if (jumps)
                failed = find_via(site, r, jumps, depth, why);
        else if (!h->proxy_command)
                failed = find_addresses(r, why) < 0 || find_source(r, why) < 0;
        if (failed) {
                ssh_target_free(r);
                return -1;
        }
        find_keys(site, r);
        notice_key_files(site, r);
        ssh_site_host_keys(site, h, &r->known, &r->revoked);
        order_host_keys(r);
        r->known_name = h->host_key_alias ? h->host_key_alias : h->hostname;
        /* By the name as configured: two names of a server have two limits. */
        r->server = ssh_server_get(site->servers, h->hostname, h->port);
        *ret = r;
        return 0;
}

int ssh_target_find(struct ssh_site *site, const char *host, const char *user, int port,
                    struct ssh_target **ret, struct link_failure *why)
{
        const struct ssh_options *o = site->options;
        struct ssh_host_request request = {
                .alias = host,
                .user = user ? user : o->user,
                .port = port ? port : o->port,
                .identities = o->identities,
        };

        return find_target(site, &request, o->jump, 0, ret, why);
}

void ssh_target_free(struct ssh_target *target)
{
        if (!target)
                return;
        if (target->addresses)
                freeaddrinfo(target->addresses);
        free(target->source);
        known_set_finish(&target->known);
        ssh_host_finish(&target->host);
        free(target->via_name);
        for (size_t i = 0; i < ARRAY_SIZE(target->algorithms); i++)
                free(target->algorithms[i]);
        free(target->offers);
        free(target->unusable);
        free(target->agent);
        free(target);
}

int ssh_site_accept(struct ssh_site *site, const struct ssh_target *target, const char *type,
                    const char *blob, struct error *err)
{
        const struct ssh_host *h = &target->host;
        int port = h->host_key_alias ? 22 : h->port, r = 0;
        char *mark;

        if (h->user_files == 0)
                return err_set(err, ENOENT, "the ssh config names no known_hosts file of the user");
        mark = xasprintf("%s %d %s", target->known_name, port, blob);
        pthread_mutex_lock(&site->known_mutex);
        /* Several hosts with one name would each append the line. */
        if (!strv_has(&site->accepted, mark)) {
                r = known_hosts_append(h->known_hosts.v[0], target->known_name, port, h->hash_names,
                                       type, blob, err);
                if (r >= 0)
                        strv_push(&site->accepted, mark);
        }
        pthread_mutex_unlock(&site->known_mutex);
        free(mark);
        return r;
}

bool own_login_leads_elsewhere(const struct ssh_options *o, const char *host, char **ret_name)
{
        struct ssh_host_request request = { .alias = host, .user = o->user, .port = o->port };
        const struct passwd *me = getpwuid(geteuid());
        struct ssh_config *config = NULL;
        struct ssh_host h = { 0 };
        struct error err;
        bool elsewhere;

        if (ssh_config_load(&config, o->config_file, &err) < 0)
                return true;
        elsewhere = ssh_config_lookup(config, &request, &h, NULL, &err) < 0;
        if (!elsewhere) {
                /* Any of these means that a login does not simply reach this machine as this
                 * user. */
                elsewhere = o->jump || h.proxy_command || h.port != 22 ||
                            (h.proxy_jump && strcasecmp(h.proxy_jump, "none") != 0) ||
                            (me && strcmp(h.user, me->pw_name) != 0);
                *ret_name = xstrdup(h.hostname);
                ssh_host_finish(&h);
        }
        ssh_config_free(config);
        return elsewhere;
}
