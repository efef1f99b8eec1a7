/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file counts by path, size and time of change, so an edited ssh configuration or a new
 * agent makes other settings. The key is a hash of the text of both: equal keys mean the same
 * version and settings.
 */
#include "head/hold/hold_match.h"

#include <limits.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/memory.h"
#include "head/core/json_text.h"
#include "wire/msg.h"
#include "wire/msg_functions.h"

enum { KEY_BYTES = 8 };

/* "PATH SIZE SECONDS.NANOSECONDS", the path alone of a missing file; malloc'ed. */
static char *describe_setting_file(const char *path)
{
        CLEANUP(free_textp) char *whole = realpath(path, NULL);
        struct stat st;

        if (!whole || stat(whole, &st) < 0)
                return xstrdup(path);
        return xasprintf("%s %jd %jd.%09ld", whole, (intmax_t)st.st_size,
                         (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void set_file(json_t *j, const char *name, const char *path)
{
        CLEANUP(free_textp) char *text = describe_setting_file(path);

        json_object_set_new(j, name, json_text(text));
}

/* Adds a text unless NULL. */
static void set_setting(json_t *j, const char *name, const char *text)
{
        if (text)
                json_object_set_new(j, name, json_text(text));
}

/* Adds the file of --ssh-config, else both usual files. */
static void set_ssh_config(json_t *j, const struct options *o)
{
        const char *home = getenv("HOME");
        CLEANUP(free_textp)
        char *own = o->ssh_config ? xstrdup(o->ssh_config)
                                  : xasprintf("%s/.ssh/config", home ? home : "");

        set_file(j, o->ssh_config ? "--ssh-config" : "~/.ssh/config", own);
        if (!o->ssh_config)
                set_file(j, "/etc/ssh/ssh_config", "/etc/ssh/ssh_config");
}

json_t *hold_match_settings(const struct options *o, const char *agent, const char *container)
{
        json_t *j = json_pack("{s:s, s:i}", "the version of hnlaunch", HNLAUNCH_VERSION,
                              "the protocol", MSG_VERSION);
        CLEANUP(buf_finish) struct buf keys = BUF_INIT;

        set_file(j, "hnlaunch-agent", agent);
        set_setting(j, "--container", container);
        set_setting(j, "--start-with", o->via);
        set_setting(j, "--user", o->user);
        set_setting(j, "--jump", o->jump);
        set_setting(j, "--ssh-command", o->ssh_command);
        set_ssh_config(j, o);
        for (size_t i = 0; i < o->identities.n; i++) {
                CLEANUP(free_textp) char *key = describe_setting_file(o->identities.v[i]);

                buf_printf(&keys, "%s\n", key);
        }
        if (buf_len(&keys)) {
                CLEANUP(free_textp) char *text = buf_steal(&keys);

                set_setting(j, "--identity", text);
        }
        if (o->port)
                json_object_set_new(j, "--ssh-port", json_integer(o->port));
        if (o->accept_new)
                json_object_set_new(j, "--host-key", json_true());
        return j;
}

char *hold_match_host(const struct host *h)
{
        CLEANUP(free_textp) char *port = h->port ? xasprintf(":%d", h->port) : xstrdup("");

        return xasprintf("%s%s%s%s", h->user ? h->user : "", h->user ? "@" : "", h->name, port);
}

static int compare_host_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *hold_match_key(const json_t *settings, const json_t *hosts)
{
        CLEANUP(free_textp) char *text = json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS);
        char *key = xcalloc(1, KEY_BYTES * 2 + 1);
        size_t n = json_array_size(hosts);
        const char **names = xcalloc(n + 1, sizeof(*names));
        unsigned char hash[KEY_BYTES * 2];
        crypto_generichash_state state;

        for (size_t i = 0; i < n; i++)
                names[i] = json_string_value(json_array_get(hosts, i));
        qsort(names, n, sizeof(*names), compare_host_names);
        crypto_generichash_init(&state, NULL, 0, sizeof(hash));
        crypto_generichash_update(&state, (const unsigned char *)text, strlen(text) + 1);
        /* With the NUL: no two lists have the same bytes. */
        for (size_t i = 0; i < n; i++)
                crypto_generichash_update(&state, (const unsigned char *)names[i],
                                          strlen(names[i]) + 1);
        crypto_generichash_final(&state, hash, sizeof(hash));
        free(names);
        sodium_bin2hex(key, KEY_BYTES * 2 + 1, hash, KEY_BYTES);
        return key;
}

/* Adds the names in @a without an equal value in @b; adds names in both objects only with @both. */
static void add_difference(struct buf *to, const json_t *a, const json_t *b, bool both)
{
        const char *name;
        const json_t *value;

        json_object_foreach((json_t *)(uintptr_t)a, name, value)
        {
                const json_t *other = json_object_get(b, name);

                if (other ? both && !json_equal(value, other) : true)
                        buf_printf(to, "%s%s", buf_len(to) ? ", " : "", name);
        }
}

char *hold_match_difference(const json_t *a, const json_t *b)
{
        struct buf names = BUF_INIT;

        add_difference(&names, a, b, true);
        add_difference(&names, b, a, false);
        return buf_len(&names) ? buf_steal(&names) : xstrdup("");
}
