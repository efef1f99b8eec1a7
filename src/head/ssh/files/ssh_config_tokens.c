/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: %h and the like, ${NAME} and ~, each only in the keywords where ssh(1) expands it. A
 * token or a variable without a value is an error, as there.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "head/ssh/files/ssh_config_private.h"

/* Appends the host of the last of "user@a:22,b:23". */
static void append_jump(struct buf *out, const struct config_lookup *l)
{
        /* %j is the last jump, the one beside the host. */
        const char *jump = l->jump ? l->jump->rest : "none", *last = strrchr(jump, ','), *at;

        if (strcasecmp(jump, "none") == 0)
                return;
        last = last ? last + 1 : jump;
        if (strncmp(last, "ssh://", 6) == 0)
                last += 6;
        at = strrchr(last, '@');
        last = at ? at + 1 : last;
        /* An IPv6 address in brackets has colons of its own. */
        if (*last == '[')
                buf_append(out, last + 1, strcspn(last + 1, "]"));
        else
                buf_append(out, last, strcspn(last, ":/ \t#"));
}

static void append_token(struct buf *out, const struct config_lookup *l, char letter);

/* Appends the hash of %l%h%p%r%j in hex. */
static void append_connection_hash(struct buf *out, const struct config_lookup *l)
{
        struct buf text = BUF_INIT;
        unsigned char hash[EVP_MAX_MD_SIZE];
        unsigned len = 0;

        for (const char *token = "lhprj"; *token; token++)
                append_token(&text, l, *token);
        EVP_Digest(buf_data(&text), buf_len(&text), hash, &len, EVP_sha1(), NULL);
        for (unsigned i = 0; i < len; i++)
                buf_printf(out, "%02x", hash[i]);
        buf_finish(&text);
}

/* Appends what "%@letter" stands for in ssh_config(5). */
static void append_token(struct buf *out, const struct config_lookup *l, char letter)
{
        const char *alias = config_value(l, "HostKeyAlias");
        char local[256] = "";

        gethostname(local, sizeof(local) - 1);
        switch (letter) {
        case 'C':
                append_connection_hash(out, l);
                break;
        case 'h':
                buf_appends(out, l->hostname ? l->hostname : l->request->alias);
                break;
        case 'n':
                buf_appends(out, l->request->alias);
                break;
        case 'k':
                buf_appends(out, alias ? alias : l->request->alias);
                break;
        case 'j':
                append_jump(out, l);
                break;
        case 'p':
                buf_printf(out, "%d", config_port(l));
                break;
        case 'r':
                /* The expanded user, once it is known: see complete_host(). */
                buf_appends(out, l->host->user ? l->host->user : config_user(l));
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
        }
}

/* Appends the home folder for "~" or "~user" in front, and moves @at behind it. */
static int append_home(struct buf *out, const struct config_lookup *l, const char **at,
                       struct error *err)
{
        size_t len = strcspn(*at + 1, "/");
        CLEANUP(free_textp) char *user = xstrndup(*at + 1, len);
        struct passwd entry, *found = NULL;
        /* getpwnam_r() and not getpwnam(): lookups run in several threads. */
        char room[4096];

        if (len && (getpwnam_r(user, &entry, room, sizeof(room), &found) != 0 || !found))
                return err_set(err, EINVAL, "there is no user '%s' for '%s'", user, *at);
        buf_appends(out, len ? found->pw_dir : l->config->home);
        *at += 1 + len;
        return 0;
}

/* Appends the variable of "${NAME}", and moves @at to the brace. */
static int append_variable(struct buf *out, const char **at, struct error *err)
{
        const char *end = strchr(*at, '}');
        char *name, *value;

        if (!end || end == *at + 2) /* "${}" */
                return err_set(err, EINVAL, "'%s' names no variable", *at);
        name = xstrndup(*at + 2, (size_t)(end - *at - 2));
        value = getenv(name);
        if (value)
                buf_appends(out, value);
        else
                err_set(err, EINVAL, "the variable %s is not set", name);
        free(name);
        *at = end;
        return value ? 0 : -EINVAL;
}

int config_expand(const struct config_lookup *l, const char *text, const char *tokens, int flags,
                  char **ret, struct error *err)
{
        struct buf out = BUF_INIT;
        int r = 0;

        *ret = NULL;
        if (flags & EXPAND_HOME && *text == '~')
                r = append_home(&out, l, &text, err);
        for (; *text && r == 0; text++) {
                if (flags & EXPAND_VARIABLES && text[0] == '$' && text[1] == '{') {
                        r = append_variable(&out, &text, err);
                } else if (*text != '%' || !*tokens) {
                        /* Without a set of tokens a percent sign is a character. */
                        buf_append(&out, text, 1);
                } else if (*++text == '%') {
                        buf_appends(&out, "%");
                } else if (*text && strchr(tokens, *text)) {
                        append_token(&out, l, *text);
                } else {
                        r = err_set(err, EINVAL, "the token '%%%.1s' is unknown there", text);
                        break;
                }
        }
        if (r == 0) {
                char *result = buf_steal(&out);

                *ret = result ? result : xstrdup("");
        }
        buf_finish(&out);
        return r;
}
