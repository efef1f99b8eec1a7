/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All hosts are asked at once, by the ssh part of a launch, whose links end with the host key
 * (head/nodes/host_key.h). Equal keys share a row on standard output. Keys that have changed or are
 * revoked, and hosts without an answer, are told in front of the question, and nothing is stored
 * for them. Then each new key becomes a line of known_hosts, once for each name.
 */
#include "head/commands/run_trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <uv.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "head/alloc/alloc.h"
#include "head/commands/host_lists.h"
#include "head/nodes/same_machine.h"
#include "head/nodes/ssh_loader.h"
#include "head/output/say.h"

struct trust;

/* A host, and its answer. */
struct trust_host {
        struct trust *all;
        struct link *link;         /* NULL = this machine, which is not asked */
        struct link_host_key *key; /* NULL = see why */
        struct link_failure *why;
        bool is_new; /* the key is to be stored, and no other host has the same name and key */
};

struct trust {
        struct hosts hosts;
        struct trust_host *v; /* by host */
        size_t waiting;       /* links without an end */
};

/* --- asking the hosts ------------------------------------------------------------------------- */

/* The end of a link, also of a link with a key. The failure lives only during the call, so failure
 * and key are copied. */
static void on_link_failed(void *ctx, const struct link_failure *why)
{
        struct trust_host *h = ctx;

        h->all->waiting--;
        if (why->phase == LINK_HOSTKEY && why->cause == LINK_ENDED) {
                const struct link_host_key *key = container_of(why, struct link_host_key, end);
                size_t size = sizeof(*key) + strlen(key->blob) + 1;

                h->key = xcalloc(1, size);
                memcpy(h->key, key, size);
        } else {
                h->why = xcalloc(1, sizeof(*h->why));
                *h->why = *why;
        }
}

/* Banners of hosts are no answer here. */
static void ignore_noise(void *ctx UNUSED, const char *text UNUSED, size_t len UNUSED)
{
}

static const struct link_callbacks key_callbacks = {
        .failed = on_link_failed,
        .noise = ignore_noise,
};

/* Opens a link to each host; the transport limits how many are tried at once (--fanout). */
static int open_links(struct trust *t, struct transport *ssh, struct error *err)
{
        for (size_t i = 0; i < t->hosts.n; i++) {
                const struct host *h = &t->hosts.v[i];
                const struct link_target to = { .host = h->name, .user = h->user, .port = h->port };

                if (h->local)
                        continue;
                t->v[i].link = link_open(ssh, &to, &key_callbacks, &t->v[i], err);
                if (!t->v[i].link)
                        return -err->code;
                t->waiting++;
        }
        return 0;
}

/* Asks all hosts, and returns when each link has ended. 0, or a negative errno with @err. */
static int ask_hosts(struct trust *t, const struct ssh_options *login, struct error *err)
{
        struct transport *ssh;
        uv_loop_t loop;
        int r = uv_loop_init(&loop);

        if (r < 0)
                return err_set(err, -r, "cannot begin: %s", strerror(-r));
        ssh = ssh_loader_create(&loop, login, err);
        r = ssh ? open_links(t, ssh, err) : -err->code;
        while (r == 0 && t->waiting)
                uv_run(&loop, UV_RUN_ONCE);
        for (size_t i = 0; i < t->hosts.n; i++)
                link_close(STEAL(&t->v[i].link));
        transport_destroy(ssh);
        /* Handles of the transport are closed in further turns;
         * uv_loop_close() would refuse before. */
        uv_run(&loop, UV_RUN_DEFAULT);
        uv_loop_close(&loop);
        return r;
}

/* --- what they have told ---------------------------------------------------------------------- */

static bool is_same_key(const void *ctx, size_t a, size_t b)
{
        const struct link_host_key *x = ((const struct trust *)ctx)->v[a].key;
        const struct link_host_key *y = ((const struct trust *)ctx)->v[b].key;

        return x->known == y->known && !strcmp(x->blob, y->blob);
}

/* Prints a row for each key, and marks the new ones. Returns how many names get one. */
static size_t print_keys(struct trust *t, bool quiet)
{
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };
        size_t n = 0;

        for (size_t i = 0; i < t->hosts.n; i++)
                if (t->v[i].key)
                        host_groups_add(&groups, i, is_same_key, t);
        for (size_t g = 0; g < groups.n; g++) {
                const struct host_group *same = &groups.v[g];
                const struct link_host_key *key = t->v[same->hosts[0]].key;
                CLEANUP(free_textp) char *names = hosts_fold(&t->hosts, same->hosts, same->n);

                if (!quiet)
                        printf("%-5s  %-8s %s  %s\n", key->known ? "known" : "new", key->label,
                               key->print, names);
                for (size_t i = 0; i < same->n && !key->known; i++) {
                        const struct link_host_key *k = t->v[same->hosts[i]].key;
                        bool twice = false;

                        for (size_t j = 0; j < i && !twice; j++) {
                                const struct link_host_key *other = t->v[same->hosts[j]].key;

                                /* Two hosts of the list may share a name of the ssh configuration
                                 * (HostName): a single line is enough. */
                                twice = k->port == other->port &&
                                        !strcasecmp(k->name, other->name) &&
                                        !strcmp(k->file, other->file);
                        }
                        t->v[same->hosts[i]].is_new = !twice;
                        n += !twice;
                }
        }
        return n;
}

/* What is wrong with hosts, in the order of printing; the last one has all other causes. */
static const struct {
        enum link_cause cause;
        int id, exit;
        const char *one, *many;
} troubles[] = {
        { LINK_KEY_CHANGED, HN_HOST_KEY_CHANGED, EX_NOPERM, "the host key of %s has CHANGED",
          "host keys of %zu hosts have CHANGED" },
        { LINK_KEY_REVOKED, HN_HOST_KEY_REVOKED, EX_NOPERM, "the host key of %s is revoked",
          "host keys of %zu hosts are revoked" },
        { LINK_KEY_UNCHECKED, HN_HOST_KEY_UNCHECKED, EX_NOPERM,
          "the host key of %s cannot be checked", "host keys of %zu hosts cannot be checked" },
        { LINK_KEY_UNKNOWN, HN_HOST_KEY_UNKNOWN, EX_NOPERM, "the host key of %s cannot be added",
          "host keys of %zu hosts cannot be added" },
        { LINK_CONFIG, HN_SSH_CONFIG_OF_NODE, EX_CONFIG,
          "the ssh configuration for %s cannot be obeyed",
          "the ssh configuration for %zu hosts cannot be obeyed" },
        { LINK_CAUSES, HN_UNREACHABLE, EX_NOHOST, "%s cannot be reached",
          "%zu hosts cannot be reached" },
};

/* Returns the index in troubles; other causes are at the last entry. */
static size_t find_trouble(const struct link_failure *why)
{
        size_t i = 0;

        while (i + 1 < ARRAY_SIZE(troubles) && troubles[i].cause != why->cause)
                i++;
        return i;
}

/* The detail of a host key is the key; else it is an address. */
static bool is_same_trouble(const void *ctx, size_t a, size_t b)
{
        const struct link_failure *x = ((const struct trust *)ctx)->v[a].why;
        const struct link_failure *y = ((const struct trust *)ctx)->v[b].why;

        return !strcmp(x->fact, y->fact) &&
               (x->phase != LINK_HOSTKEY || !strcmp(x->detail, y->detail));
}

/* Adds a next step of the login. This command has no --ssh-command: ssh(1) itself adds the key. */
static void add_ssh_help(struct diag *d, const char *help, const char *host)
{
        static const char option[] = "--ssh-command ssh";
        const char *at = strstr(help, option);

        if (at)
                diag_help(d, "%.*sssh %s%s", (int)(at - help), help, host, at + sizeof(option) - 1);
        else
                diag_help(d, "%s", help);
}

static void report_trouble(const struct trust *t, size_t kind, struct diags *d)
{
        CLEANUP(host_groups_finish) struct host_groups groups = { 0 };
        CLEANUP(host_group_finish) struct host_group all = { 0 };
        CLEANUP(free_textp) char *names = NULL, *where = NULL;
        struct diag *di;

        for (size_t i = 0; i < t->hosts.n; i++)
                if (t->v[i].why && find_trouble(t->v[i].why) == kind) {
                        host_groups_add(&groups, i, is_same_trouble, t);
                        host_group_add(&all, i);
                }
        if (!all.n)
                return;
        names = hosts_fold(&t->hosts, all.hosts, all.n);
        where = hosts_locate(&t->hosts, all.hosts, all.n);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        di = all.n == 1 ? diag_add(d, troubles[kind].id, troubles[kind].exit, troubles[kind].one,
                                   names)
                        : diag_add(d, troubles[kind].id, troubles[kind].exit, troubles[kind].many,
                                   all.n);
#pragma GCC diagnostic pop
        diag_place(di, "%s", where);
        for (size_t g = 0; g < groups.n; g++) {
                const struct link_failure *w = t->v[groups.v[g].hosts[0]].why;
                CLEANUP(free_textp)
                char *same = hosts_fold(&t->hosts, groups.v[g].hosts, groups.v[g].n);
                CLEANUP(free_textp) char *evidence = xstrdup(w->evidence);
                char *rest = evidence, *line;

                diag_row(di, "%-16s %s", same, w->fact);
                while ((line = strsep(&rest, "\n")))
                        if (*line)
                                diag_row(di, "%s", line);
        }
        if (*t->v[all.hosts[0]].why->help && kind + 1 < ARRAY_SIZE(troubles))
                add_ssh_help(di, t->v[all.hosts[0]].why->help, t->hosts.v[all.hosts[0]].name);
        else if (kind + 1 == ARRAY_SIZE(troubles))
                diag_help(di, "try ssh %s", t->hosts.v[all.hosts[0]].name);
}

/* Prints what is wrong. 0, or the exit code. */
static int tell_troubles(const struct trust *t, const struct options *o)
{
        struct diags d = DIAGS_INIT;
        int rc;

        for (size_t i = 0; i < ARRAY_SIZE(troubles); i++)
                report_trouble(t, i, &d);
        rc = d.n ? diags_first_error(&d)->exit : 0;
        /* The rows of keys come before the messages on standard error. */
        fflush(stdout);
        say_diags(&d, say_has_color(o));
        diags_finish(&d);
        return rc;
}

/* --- storing ---------------------------------------------------------------------------------- */

/* Returns the files of new keys, "a, b"; malloc'ed. */
static char *list_files(const struct trust *t)
{
        CLEANUP(strv_finish) struct strv files = STRV_INIT;
        struct buf out = BUF_INIT;

        for (size_t i = 0; i < t->hosts.n; i++)
                if (t->v[i].is_new && !strv_has(&files, t->v[i].key->file))
                        strv_push(&files, t->v[i].key->file);
        for (size_t i = 0; i < files.n; i++)
                buf_printf(&out, "%s%s", i ? ", " : "", files.v[i]);
        return buf_steal(&out);
}

/* Asks at the terminal until there is an answer; its end is a no. */
static bool ask_user(size_t n, const char *files)
{
        char *line = NULL;
        size_t cap = 0;
        bool yes = false, no = false;

        while (!yes && !no) {
                fprintf(stderr, "add %zu host key%s to %s? (yes/no) ", n, n == 1 ? "" : "s", files);
                fflush(stderr);
                if (getline(&line, &cap, stdin) < 0) {
                        fputc('\n', stderr);
                        break;
                }
                line[strcspn(line, "\r\n")] = '\0';
                yes = !strcasecmp(line, "yes") || !strcasecmp(line, "y");
                no = !strcasecmp(line, "no") || !strcasecmp(line, "n");
        }
        free(line);
        return yes;
}

static bool is_agreed(const struct options *o, size_t n, const char *files, struct diags *d)
{
        bool terminal = isatty(STDIN_FILENO);

        if (o->list.yes || (terminal && ask_user(n, files)))
                return true;
        diag_help(diag_add(d, HN_KEYS_NOT_ADDED, EX_NOPERM, "%zu new host key%s not added%s", n,
                           n == 1 ? " was" : "s were",
                           terminal ? "" : ": standard input is no terminal to ask at"),
                  "compare the fingerprints with your admin's list, then %s",
                  terminal ? "answer yes" : "add --yes");
        return false;
}

static int store_keys(const struct trust *t, const char *files, struct diags *d)
{
        struct error err;
        size_t n = 0;

        for (size_t i = 0; i < t->hosts.n; i++) {
                if (!t->v[i].is_new)
                        continue;
                if (ssh_loader_store_key(t->v[i].key, &err) < 0) {
                        diag_add(d, HN_KEYS_NOT_STORED, EX_CANTCREAT,
                                 "cannot store the host key of %s: %s", t->hosts.v[i].name,
                                 err.text);
                        return EX_CANTCREAT;
                }
                n++;
        }
        say("hnlaunch: added %zu host key%s to %s\n", n, n == 1 ? "" : "s", files);
        return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

/* Reads the hosts as `hnlaunch hosts` does, and marks this machine. 0, or the exit code. */
static int load_hosts(struct trust *t, const struct options *o, const struct ssh_options *login,
                      struct diags *d)
{
        int rc = 0;

        if (host_lists_any(o))
                rc = host_lists_load(&t->hosts, o, d);
        else if (alloc_load(o->from, false, &t->hosts, d) < 0)
                rc = diags_first_error(d)->exit;
        if (!rc)
                same_machine_mark_own(&t->hosts, login);
        t->v = xcalloc(t->hosts.n + 1, sizeof(*t->v));
        for (size_t i = 0; i < t->hosts.n; i++)
                t->v[i].all = t;
        return rc;
}

/* Tells why no host was asked: the ssh module is missing, or the configuration cannot be used. */
static int refuse_ssh(struct error *err, struct diags *d)
{
        const char *help = err_cut_help(err);
        bool config = err->number == HN_SSH_CONFIG_WRITABLE || err->number == HN_SSH_CONFIG_LINE;
        struct diag *di = diag_add(d, err->number ? err->number : HN_NO_CONNECTIONS,
                                   config ? EX_CONFIG : EX_UNAVAILABLE, "%s", err->text);

        if (help)
                add_ssh_help(di, help, "HOST");
        return di->exit;
}

/* The hosts have answered. Returns the exit code. Keys of good hosts are stored although others are
 * in trouble, whose code is returned then. */
static int settle_keys(struct trust *t, const struct options *o, struct diags *d)
{
        size_t n = print_keys(t, o->quiet && o->list.yes);
        CLEANUP(free_textp) char *files = list_files(t);
        int rc = tell_troubles(t, o), stored = 0;

        if (n && !is_agreed(o, n, files, d))
                stored = EX_NOPERM;
        else if (n)
                stored = store_keys(t, files, d);
        return rc ? rc : stored;
}

static void finish_trust(struct trust *t)
{
        for (size_t i = 0; i < t->hosts.n; i++) {
                free(t->v[i].key);
                free(t->v[i].why);
        }
        free(t->v);
        hosts_finish(&t->hosts);
}

int run_trust_do(const struct options *o, struct diags *d)
{
        struct trust t = { 0 };
        struct ssh_options login = { .config_file = o->ssh_config,
                                     .user = o->user,
                                     .port = o->port,
                                     .identities = &o->identities,
                                     .jump = o->jump,
                                     .accept_new = o->accept_new,
                                     .fanout = o->fanout,
                                     .connect_timeout_ms = (int)o->connect_timeout_ms,
                                     .silence_ms = o->node_timeout_ms };
        struct error err = { 0 };
        int rc = load_hosts(&t, o, &login, d);

        /* The number of hosts bounds the worker threads of the transport. */
        login.hosts = t.hosts.n;
        if (!rc)
                rc = ask_hosts(&t, &login, &err) < 0 ? refuse_ssh(&err, d) : settle_keys(&t, o, d);
        finish_trust(&t);
        return rc;
}
