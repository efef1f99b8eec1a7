/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three kinds of names lead to a key: plain names (a hash table), lists with patterns, and hashed
 * names. A hashed name is HMAC-SHA1(salt, name) with a salt per line, so every line must be tried
 * for every host: the two SHA-1 states after the padded salt are kept per line, and a test costs
 * two blocks. A lookup gathers the keys of all three; known_set_check() then decides between
 * revoked, known, changed and unknown.
 */
#define OPENSSL_API_COMPAT 0x10100000L /* the one-shot HMAC costs ten times as much per line */

#include "head/ssh/files/known_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/fd.h"
#include "head/ssh/files/key_line.h"
#include "head/ssh/files/ssh_pattern.h"

#define FILE_MAX     (64u << 20)
#define NAME_MAX_LEN 320

struct known_key {
        const char *file;
        int line;
        bool revoked;
        char *type, *blob;
};

/* A hashed name: two SHA-1 states behind the padded salt, and the digest to compare with. */
struct hashed_name {
        SHA_CTX inner, outer;
        unsigned char digest[SHA_DIGEST_LENGTH];
        size_t key; /* index in known_hosts.keys, here and below */
};

/* A list of names with a wildcard or a negation. */
struct pattern_list {
        char *text;
        size_t key;
};

/* A name without patterns, and the keys of all lines with this name. */
struct plain_name {
        char *name;
        size_t *keys;
        size_t n;
        UT_hash_handle hh;
};

struct known_hosts {
        struct strv files;
        const char *unread; /* the first that exists and cannot be read */
        int error;          /* errno of @unread */
        struct known_key *keys;
        size_t n, cap;
        struct plain_name *plain;
        struct hashed_name *hashed;
        size_t hashed_n, hashed_cap;
        struct pattern_list *patterns;
        size_t patterns_n, patterns_cap;
};

/* False: malformed, or more than @size bytes. */
static bool decode_base64(const char *text, size_t len, unsigned char *out, size_t size,
                          size_t *ret_len)
{
        return sodium_base642bin(out, size, text, len, NULL, ret_len, NULL,
                                 sodium_base64_VARIANT_ORIGINAL) == 0;
}

/* Hashes the padded salt: the part of HMAC-SHA1 (RFC 2104) that is the same for all names. */
static void prepare_hmac(struct hashed_name *h, const unsigned char *salt, size_t len)
{
        unsigned char pad[SHA_CBLOCK];
        size_t i;

        memset(pad, 0x36, sizeof(pad));
        for (i = 0; i < len; i++)
                pad[i] ^= salt[i];
        SHA1_Init(&h->inner);
        SHA1_Update(&h->inner, pad, sizeof(pad));
        for (i = 0; i < sizeof(pad); i++)
                pad[i] ^= 0x36 ^ 0x5c;
        SHA1_Init(&h->outer);
        SHA1_Update(&h->outer, pad, sizeof(pad));
}

/* Continues both states with a name; the states of @h stay. */
static void compute_hmac(const struct hashed_name *h, const char *name, size_t len,
                         unsigned char ret[SHA_DIGEST_LENGTH])
{
        SHA_CTX ctx = h->inner;

        SHA1_Update(&ctx, name, len);
        SHA1_Final(ret, &ctx);
        ctx = h->outer;
        SHA1_Update(&ctx, ret, SHA_DIGEST_LENGTH);
        SHA1_Final(ret, &ctx);
}

static bool hmac_matches(const struct hashed_name *h, const char *name, size_t len)
{
        unsigned char digest[SHA_DIGEST_LENGTH];

        compute_hmac(h, name, len, digest);
        return memcmp(digest, h->digest, sizeof(digest)) == 0;
}

/* Replaces a name with "|1|salt|digest", as HashKnownHosts and ssh-keygen -H do. */
static void hash_name(char *name, size_t size)
{
        unsigned char salt[SHA_DIGEST_LENGTH];
        char salt_text[32], digest_text[32];
        struct hashed_name h;

        randombytes_buf(salt, sizeof(salt));
        prepare_hmac(&h, salt, sizeof(salt));
        compute_hmac(&h, name, strlen(name), h.digest);
        sodium_bin2base64(salt_text, sizeof(salt_text), salt, sizeof(salt),
                          sodium_base64_VARIANT_ORIGINAL);
        sodium_bin2base64(digest_text, sizeof(digest_text), h.digest, sizeof(h.digest),
                          sodium_base64_VARIANT_ORIGINAL);
        snprintf(name, size, "|1|%s|%s", salt_text, digest_text);
}

/* Adds "|1|salt|digest". */
static bool add_hashed_name(struct known_hosts *kh, const char *text)
{
        const char *bar;
        unsigned char salt[SHA_CBLOCK];
        struct hashed_name h = { .key = kh->n }; /* the key is added behind its names */
        size_t salt_len, digest_len;

        if (strncmp(text, "|1|", 3) != 0)
                return false;
        text += 3;
        bar = strchr(text, '|');
        if (!bar || !decode_base64(text, (size_t)(bar - text), salt, sizeof(salt), &salt_len) ||
            !decode_base64(bar + 1, strlen(bar + 1), h.digest, sizeof(h.digest), &digest_len) ||
            digest_len != sizeof(h.digest))
                return false;
        prepare_hmac(&h, salt, salt_len);
        kh->hashed = xgrow(kh->hashed, kh->hashed_n, &kh->hashed_cap, sizeof(h));
        kh->hashed[kh->hashed_n++] = h;
        return true;
}

/* Adds a name of the next key, kh->n, which is added behind the names. */
static void add_plain_name(struct known_hosts *kh, const char *name)
{
        struct plain_name *p;

        HASH_FIND_STR(kh->plain, name, p);
        if (!p) {
                p = xcalloc(1, sizeof(*p));
                p->name = xstrdup(name);
                HASH_ADD_KEYPTR(hh, kh->plain, p->name, strlen(p->name), p);
        }
        /* Few keys have the same name: one for each type, as a rule. */
        p->keys = xrealloc(p->keys, p->n + 1, sizeof(*p->keys));
        p->keys[p->n++] = kh->n;
}

/* Adds the names of the next key. */
static bool add_key_names(struct known_hosts *kh, char *names)
{
        if (*names == '|')
                return add_hashed_name(kh, names);
        ssh_name_lower(names);
        /* One pattern in a list makes the whole list one of patterns: a negation is about the other
         * names. */
        if (strpbrk(names, "*?!")) {
                kh->patterns = xgrow(kh->patterns, kh->patterns_n, &kh->patterns_cap,
                                     sizeof(*kh->patterns));
                kh->patterns[kh->patterns_n++] =
                        (struct pattern_list){ .text = xstrdup(names), .key = kh->n };
                return true;
        }
        while (names) {
                const char *name = strsep(&names, ",");

                if (*name)
                        add_plain_name(kh, name);
        }
        return true;
}

/* Adds the key of a line; skips comments, @cert-authority and malformed lines. */
static void add_known_line(struct known_hosts *kh, const char *file, int line, char *text)
{
        char *names = key_line_word(&text), *type, *blob;
        bool revoked = names && strcmp(names, "@revoked") == 0;
        unsigned char *raw;
        size_t len;

        if (revoked)
                names = key_line_word(&text);
        type = key_line_word(&text);
        blob = key_line_word(&text);
        if (!blob || strchr("#@", *names)) /* @cert-authority, or a marker unknown here */
                return;
        raw = key_line_blob(blob, type, &len);
        if (raw && add_key_names(kh, names)) {
                kh->keys = xgrow(kh->keys, kh->n, &kh->cap, sizeof(*kh->keys));
                kh->keys[kh->n++] = (struct known_key){ .file = file,
                                                        .line = line,
                                                        .revoked = revoked,
                                                        .type = xstrdup(type),
                                                        .blob = xstrdup(blob) };
        }
        free(raw);
}

struct known_hosts *known_hosts_load(const struct strv *files)
{
        struct known_hosts *kh = xcalloc(1, sizeof(*kh));

        strv_copy(&kh->files, files);
        for (size_t i = 0; i < kh->files.n; i++) {
                int line = 0, r;
                size_t len;
                char *text;

                r = fd_read_file(kh->files.v[i], FILE_MAX, &text, &len);
                /* An unreadable file may have the key, or revoke it: no new key is then
                 * accepted. */
                if (r < 0 && r != -ENOENT && r != -ENOTDIR && !kh->unread) {
                        kh->unread = kh->files.v[i];
                        kh->error = -r;
                }
                if (r < 0)
                        continue;
                for (char *at = text, *stop; at < text + len; at = stop + 1) {
                        stop = memchr(at, '\n', (size_t)(text + len - at));
                        stop = stop ? stop : text + len;
                        *stop = '\0';
                        add_known_line(kh, kh->files.v[i], ++line, at);
                }
                free(text);
        }
        return kh;
}

void known_hosts_free(struct known_hosts *kh)
{
        struct plain_name *p, *next;

        if (!kh)
                return;
        HASH_ITER(hh, kh->plain, p, next)
        {
                HASH_DEL(kh->plain, p);
                free(p->name);
                free(p->keys);
                free(p);
        }
        for (size_t i = 0; i < kh->n; i++) {
                free(kh->keys[i].type);
                free(kh->keys[i].blob);
        }
        for (size_t i = 0; i < kh->patterns_n; i++)
                free(kh->patterns[i].text);
        free(kh->keys);
        free(kh->hashed);
        free(kh->patterns);
        strv_finish(&kh->files);
        free(kh);
}

static void add_to_set(struct known_set *set, const struct known_key *k)
{
        set->v = xrealloc(set->v, set->n + 1, sizeof(*set->v));
        set->v[set->n++] = k;
}

/* The spelling of known_hosts: [name]:port unless the port is the default; 0 = not known. */
static void spell_name(char *ret, size_t size, const char *name, int port)
{
        if (port == 0 || port == 22)
                snprintf(ret, size, "%s", name);
        else
                snprintf(ret, size, "[%s]:%d", name, port);
        ssh_name_lower(ret);
}

/* Collects the keys of a name: plain names by a hash table, patterns and hashed names one by one,
 * as each hashed name has a salt of its own. */
static void find_known_name(const struct known_hosts *kh, const char *name, int port,
                            struct known_set *set)
{
        char spelled[NAME_MAX_LEN];
        struct plain_name *p;
        size_t i, len;

        spell_name(spelled, sizeof(spelled), name, port);
        len = strlen(spelled);
        HASH_FIND(hh, kh->plain, spelled, len, p);
        for (i = 0; p && i < p->n; i++)
                add_to_set(set, &kh->keys[p->keys[i]]);
        for (i = 0; i < kh->patterns_n; i++)
                if (ssh_pattern_list_matches(kh->patterns[i].text, spelled))
                        add_to_set(set, &kh->keys[kh->patterns[i].key]);
        for (i = 0; i < kh->hashed_n; i++)
                if (hmac_matches(&kh->hashed[i], spelled, len))
                        add_to_set(set, &kh->keys[kh->hashed[i].key]);
}

static bool has_valid_key(const struct known_set *set)
{
        for (size_t i = 0; i < set->n; i++)
                if (!set->v[i]->revoked)
                        return true;
        return false;
}

void known_hosts_find(const struct known_hosts *kh, const char *name, int port,
                      struct known_set *ret)
{
        *ret = (struct known_set){ .unread = kh->unread, .error = kh->error };
        find_known_name(kh, name, port, ret);
        ret->strict = ret->n;
        /* As in ssh(1), a key of the default port is known at other ports, but cannot show a
         * change. Lines of revoked keys, as of "@revoked *", do not make a host known. */
        if (!has_valid_key(ret) && port != 0 && port != 22)
                find_known_name(kh, name, 22, ret);
}

void known_set_finish(struct known_set *set)
{
        free(set->v);
        *set = (struct known_set){ 0 };
}

enum known_verdict known_set_check(const struct known_set *set, const char *type, const char *blob,
                                   char *ret_where, size_t size, const char **ret_blob)
{
        const struct known_key *revoked = NULL, *match = NULL, *same_type = NULL, *other = NULL, *k;

        for (size_t i = 0; i < set->n && !revoked; i++) {
                k = set->v[i];
                if (strcmp(k->blob, blob) == 0) {
                        revoked = k->revoked ? k : NULL;
                        match = match ? match : k; /* the first line, for the message */
                } else if (!k->revoked && i < set->strict) {
                        /* Not for keys of the plain name: another server may be at this port. */
                        if (!same_type && strcmp(k->type, type) == 0)
                                same_type = k;
                        other = other ? other : k;
                }
        }
        /* From the gravest to the least telling. */
        k = revoked ? revoked : match ? match : same_type ? same_type : other;
        *ret_where = '\0';
        if (k)
                snprintf(ret_where, size, "%s:%d", k->file, k->line);
        if (ret_blob)
                *ret_blob = k ? k->blob : "";
        return revoked ? KNOWN_REVOKED : match ? KNOWN_OK : k ? KNOWN_CHANGED : KNOWN_UNKNOWN;
}

void known_set_lines(const struct known_set *set, const struct revoked_keys *revoked,
                     const char *name, struct buf *to)
{
        for (size_t i = 0; i < set->n; i++) {
                const struct known_key *k = set->v[i];
                bool marked = k->revoked || revoked_keys_has(revoked, k->blob, NULL, 0);

                buf_printf(to, "%s%s %s %s\n", marked ? "@revoked " : "", name, k->type, k->blob);
        }
}

/* Tells whether there is a key of the type with which an algorithm signs. Signatures of RSA keys
 * have names of their own. */
static bool set_has_type(const struct known_set *set, const char *algorithm, size_t len)
{
        if (len > 9 && memcmp(algorithm, "rsa-sha2-", 9) == 0) {
                algorithm = "ssh-rsa";
                len = strlen(algorithm);
        }
        for (size_t i = 0; i < set->n; i++)
                if (!set->v[i]->revoked && strlen(set->v[i]->type) == len &&
                    memcmp(set->v[i]->type, algorithm, len) == 0)
                        return true;
        return false;
}

char *known_set_algorithms(const struct known_set *set, const char *defaults)
{
        struct buf out = BUF_INIT;

        /* Two rounds over the list: first types with a known key, then the others. */
        for (int known = 1; known >= 0; known--)
                for (const char *at = defaults; *at;) {
                        size_t n = strcspn(at, ",");

                        if (n && set_has_type(set, at, n) == (known == 1)) {
                                if (buf_len(&out))
                                        buf_appends(&out, ",");
                                buf_append(&out, at, n);
                        }
                        at += n + (at[n] == ',');
                }
        return buf_steal(&out);
}

/* Opens for reading, too: the last byte and the number of lines are looked at. */
static int open_for_append(const char *path)
{
        int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        const char *slash = strrchr(path, '/');

        if (fd < 0 && errno == ENOENT && slash && slash > path) {
                char *folder = strndup(path, (size_t)(slash - path));

                if (folder)
                        mkdir(folder, 0700); /* only the last folder is made */
                free(folder);
                fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        }
        return fd < 0 ? -errno : fd;
}

/* Counts the lines before @end. */
static int count_lines(int fd, off_t end)
{
        char piece[65536];
        off_t at = 0;
        ssize_t n;
        int lines = 0;

        while (at < end && (n = pread(fd, piece, MIN(sizeof(piece), (size_t)(end - at)), at)) > 0) {
                for (ssize_t i = 0; i < n; i++)
                        lines += piece[i] == '\n';
                at += n;
        }
        return lines;
}

int known_hosts_append(const char *path, const char *name, int port, bool hashed, const char *type,
                       const char *blob, struct error *err)
{
        char spelled[NAME_MAX_LEN], last = '\n', *line;
        int fd, r, number;

        fd = open_for_append(path);
        if (fd < 0)
                return err_set(err, -fd, "%s: %s", path, strerror(-fd));
        spell_name(spelled, sizeof(spelled), name, port);
        if (hashed)
                hash_name(spelled, sizeof(spelled));
        /* A file edited by hand may lack its last newline. */
        if (lseek(fd, -1, SEEK_END) >= 0 && read(fd, &last, 1) != 1)
                last = '\n';
        line = xasprintf("%s%s %s %s\n", last == '\n' ? "" : "\n", spelled, type, blob);
        r = fd_write_all(fd, line, strlen(line));
        free(line);
        /* Other processes may append at the same time: our line ends at the present offset. */
        number = count_lines(fd, lseek(fd, 0, SEEK_CUR));
        fd_close(fd);
        return r < 0 ? err_set(err, -r, "%s: %s", path, strerror(-r)) : number;
}
