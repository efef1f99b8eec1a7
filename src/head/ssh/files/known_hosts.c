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

#include <ctype.h>
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

#define FILE_MAX     (64u << 20)
#define NAME_MAX_LEN 320

struct known_key {
        const char *file;
        int line;
        bool revoked;
        char *type, *blob;
};

struct hashed_name {
        SHA_CTX inner, outer;
        unsigned char digest[SHA_DIGEST_LENGTH];
        size_t key;
};

/* A list of names with a wildcard or a negation. */
struct pattern_list {
        char *text;
        size_t key;
};

struct plain_name {
        char *name;
        size_t *keys;
        size_t n;
        UT_hash_handle hh;
};

struct known_hosts {
        struct strv files;
        struct known_key *keys;
        size_t n, cap, bad;
        struct plain_name *plain;
        struct hashed_name *hashed;
        size_t hashed_n, hashed_cap;
        struct pattern_list *patterns;
        size_t patterns_n, patterns_cap;
};

/* Makes space for one more element; doubles, so that long files cost linear time. */
static void *grow_array(void *v, size_t n, size_t *cap, size_t size)
{
        if (n < *cap)
                return v;
        *cap = *cap ? *cap * 2 : 16;
        return xrealloc(v, *cap, size);
}

static bool decode_base64(const char *text, size_t len, unsigned char *out, size_t size,
                          size_t *ret_len)
{
        return sodium_base642bin(out, size, text, len, NULL, ret_len, NULL,
                                 sodium_base64_VARIANT_ORIGINAL) == 0;
}

/* Tells whether @blob is base64 of a key that begins with @type. */
static bool base64_is_of_type(const char *blob, size_t blob_len, const char *type, size_t type_len)
{
        size_t len;
        bool good;
        unsigned char *raw;

        if (blob_len == 0 || blob_len > 65536)
                return false;
        raw = xrealloc(NULL, blob_len, 1);
        good = decode_base64(blob, blob_len, raw, blob_len, &len) && len > 4 + type_len &&
               raw[0] == 0 && raw[1] == 0 && (size_t)(raw[2] << 8 | raw[3]) == type_len &&
               memcmp(raw + 4, type, type_len) == 0;
        free(raw);
        return good;
}

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

static bool hmac_matches(const struct hashed_name *h, const char *name, size_t len)
{
        unsigned char digest[SHA_DIGEST_LENGTH];
        SHA_CTX ctx = h->inner;

        SHA1_Update(&ctx, name, len);
        SHA1_Final(digest, &ctx);
        ctx = h->outer;
        SHA1_Update(&ctx, digest, sizeof(digest));
        SHA1_Final(digest, &ctx);
        return memcmp(digest, h->digest, sizeof(digest)) == 0;
}

/* Adds "|1|salt|digest". */
static bool add_hashed_name(struct known_hosts *kh, const char *text, size_t len, size_t key)
{
        unsigned char salt[SHA_CBLOCK];
        struct hashed_name h;
        size_t salt_len, digest_len;
        const char *bar;

        if (len < 4 || memcmp(text, "|1|", 3) != 0)
                return false;
        text += 3;
        len -= 3;
        bar = memchr(text, '|', len);
        if (!bar || !decode_base64(text, (size_t)(bar - text), salt, sizeof(salt), &salt_len) ||
            !decode_base64(bar + 1, len - (size_t)(bar + 1 - text), h.digest, sizeof(h.digest),
                           &digest_len) ||
            digest_len != sizeof(h.digest))
                return false;
        prepare_hmac(&h, salt, salt_len);
        h.key = key;
        kh->hashed = grow_array(kh->hashed, kh->hashed_n, &kh->hashed_cap, sizeof(h));
        kh->hashed[kh->hashed_n++] = h;
        return true;
}

static char *copy_lower(const char *text, size_t len)
{
        char *copy = xrealloc(NULL, len + 1, 1);
        size_t i;

        for (i = 0; i < len; i++)
                copy[i] = (char)tolower((unsigned char)text[i]);
        copy[len] = '\0';
        return copy;
}

static void add_plain_name(struct known_hosts *kh, const char *text, size_t len, size_t key)
{
        char *name = copy_lower(text, len);
        struct plain_name *p;

        HASH_FIND_STR(kh->plain, name, p);
        if (!p) {
                p = xcalloc(1, sizeof(*p));
                p->name = name;
                HASH_ADD_KEYPTR(hh, kh->plain, p->name, len, p);
        } else {
                free(name);
        }
        p->keys = xrealloc(p->keys, p->n + 1, sizeof(*p->keys));
        p->keys[p->n++] = key;
}

static bool add_key_names(struct known_hosts *kh, const char *text, size_t len, size_t key)
{
        const char *end = text + len;

        if (*text == '|')
                return add_hashed_name(kh, text, len, key);
        if (memchr(text, '*', len) || memchr(text, '?', len) || memchr(text, '!', len)) {
                kh->patterns = grow_array(kh->patterns, kh->patterns_n, &kh->patterns_cap,
                                          sizeof(*kh->patterns));
                kh->patterns[kh->patterns_n++] =
                        (struct pattern_list){ .text = copy_lower(text, len), .key = key };
                return true;
        }
        while (text < end) {
                const char *comma = memchr(text, ',', (size_t)(end - text));
                const char *stop = comma ? comma : end;

                if (stop > text)
                        add_plain_name(kh, text, (size_t)(stop - text), key);
                text = stop + 1;
        }
        return true;
}

static const char *next_known_word(const char **text, const char *end, size_t *ret_len)
{
        const char *start;

        while (*text < end && (**text == ' ' || **text == '\t'))
                (*text)++;
        start = *text;
        while (*text < end && **text != ' ' && **text != '\t' && **text != '\r')
                (*text)++;
        *ret_len = (size_t)(*text - start);
        return start;
}

static bool word_is(const char *word, size_t len, const char *text)
{
        return len == strlen(text) && memcmp(word, text, len) == 0;
}

static bool add_known_line(struct known_hosts *kh, const char *file, int line, const char *text,
                           const char *end)
{
        struct known_key k = { .file = file, .line = line };
        size_t names_len, type_len, blob_len;
        const char *names, *type, *blob;

        names = next_known_word(&text, end, &names_len);
        if (names_len == 0 || *names == '#')
                return true;
        if (*names == '@') {
                if (!word_is(names, names_len, "@revoked"))
                        return false;
                k.revoked = true;
                names = next_known_word(&text, end, &names_len);
        }
        type = next_known_word(&text, end, &type_len);
        blob = next_known_word(&text, end, &blob_len);
        if (names_len == 0 || type_len == 0 || !base64_is_of_type(blob, blob_len, type, type_len) ||
            !add_key_names(kh, names, names_len, kh->n))
                return false;
        k.type = strndup(type, type_len);
        k.blob = strndup(blob, blob_len);
        kh->keys = grow_array(kh->keys, kh->n, &kh->cap, sizeof(*kh->keys));
        kh->keys[kh->n++] = k;
        return true;
}

static void load_known_file(struct known_hosts *kh, const char *path)
{
        size_t len;
        char *text;
        const char *at, *end;
        int line = 0;

        if (fd_read_file(path, FILE_MAX, &text, &len) < 0)
                return;
        end = text + len;
        for (at = text; at < end;) {
                const char *stop = memchr(at, '\n', (size_t)(end - at));

                if (!stop)
                        stop = end;
                if (!add_known_line(kh, path, ++line, at, stop))
                        kh->bad++;
                at = stop + 1;
        }
        free(text);
}

struct known_hosts *known_hosts_load(const struct strv *files)
{
        struct known_hosts *kh = xcalloc(1, sizeof(*kh));

        strv_copy(&kh->files, files);
        for (size_t i = 0; i < kh->files.n; i++)
                load_known_file(kh, kh->files.v[i]);
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

size_t known_hosts_lines(const struct known_hosts *kh)
{
        return kh->n;
}

size_t known_hosts_bad(const struct known_hosts *kh)
{
        return kh->bad;
}

/* Matches * and ? without recursion: after a mismatch the last star takes another character. */
static bool glob_matches(const char *p, const char *p_end, const char *s)
{
        const char *star = NULL, *mark = NULL;

        while (*s) {
                if (p < p_end && *p == '*') {
                        star = p++;
                        mark = s;
                } else if (p < p_end && (*p == '?' || *p == *s)) {
                        p++;
                        s++;
                } else if (star) {
                        p = star + 1;
                        s = ++mark;
                } else {
                        return false;
                }
        }
        while (p < p_end && *p == '*')
                p++;
        return p == p_end;
}

/* Tells whether a pattern matches and no negated pattern does. */
static bool list_matches(const char *list, const char *name)
{
        bool found = false;

        while (*list) {
                const char *end = list + strcspn(list, ",");
                bool negated = *list == '!';

                if (glob_matches(list + negated, end, name)) {
                        if (negated)
                                return false;
                        found = true;
                }
                list = *end ? end + 1 : end;
        }
        return found;
}

static void add_to_set(struct known_set *set, const struct known_key *k)
{
        set->v = xrealloc(set->v, set->n + 1, sizeof(*set->v));
        set->v[set->n++] = k;
}

static void find_known_name(const struct known_hosts *kh, const char *name, struct known_set *set)
{
        size_t i, len = strlen(name);
        struct plain_name *p;

        HASH_FIND(hh, kh->plain, name, len, p);
        for (i = 0; p && i < p->n; i++)
                add_to_set(set, &kh->keys[p->keys[i]]);
        for (i = 0; i < kh->patterns_n; i++)
                if (list_matches(kh->patterns[i].text, name))
                        add_to_set(set, &kh->keys[kh->patterns[i].key]);
        for (i = 0; i < kh->hashed_n; i++)
                if (hmac_matches(&kh->hashed[i], name, len))
                        add_to_set(set, &kh->keys[kh->hashed[i].key]);
}

static void spell_name(char *ret, size_t size, const char *name, int port)
{
        if (port == 0 || port == 22)
                snprintf(ret, size, "%s", name);
        else
                snprintf(ret, size, "[%s]:%d", name, port);
        for (; *ret; ret++)
                *ret = (char)tolower((unsigned char)*ret);
}

void known_hosts_find(const struct known_hosts *kh, const char *name, int port,
                      struct known_set *ret)
{
        char spelled[NAME_MAX_LEN];

        *ret = (struct known_set){ 0 };
        spell_name(spelled, sizeof(spelled), name, port);
        find_known_name(kh, spelled, ret);
        ret->strict = ret->n;
        if (ret->n || spelled[0] != '[')
                return;
        spell_name(spelled, sizeof(spelled), name, 22);
        find_known_name(kh, spelled, ret);
}

void known_set_finish(struct known_set *set)
{
        free(set->v);
        *set = (struct known_set){ 0 };
}

static enum known_verdict classify_known_key(const struct known_set *set, const char *type,
                                             const char *blob, const struct known_key **ret)
{
        const struct known_key *match = NULL, *same_type = NULL, *other = NULL;

        for (size_t i = 0; i < set->n; i++) {
                const struct known_key *k = set->v[i];

                if (strcmp(k->blob, blob) == 0) {
                        *ret = k;
                        if (k->revoked)
                                return KNOWN_REVOKED;
                        match = match ? match : k;
                } else if (!k->revoked && i < set->strict) {
                        if (!same_type && strcmp(k->type, type) == 0)
                                same_type = k;
                        other = other ? other : k;
                }
        }
        *ret = match ? match : same_type ? same_type : other;
        return match ? KNOWN_OK : *ret ? KNOWN_CHANGED : KNOWN_UNKNOWN;
}

enum known_verdict known_set_check(const struct known_set *set, const char *type, const char *blob,
                                   char *ret_where, size_t size, const char **ret_blob)
{
        const struct known_key *k = NULL;
        enum known_verdict verdict = classify_known_key(set, type, blob, &k);

        if (k)
                snprintf(ret_where, size, "%s:%d", k->file, k->line);
        else
                snprintf(ret_where, size, "%s", "");
        if (ret_blob)
                *ret_blob = k ? k->blob : "";
        return verdict;
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

/* Tells whether an algorithm signs with keys of @type. */
static bool algorithm_is_of_type(const char *algorithm, size_t len, const char *type)
{
        if (len > 9 && memcmp(algorithm, "rsa-sha2-", 9) == 0)
                return strcmp(type, "ssh-rsa") == 0;
        return word_is(algorithm, len, type);
}

static bool set_has_type(const struct known_set *set, const char *algorithm, size_t len)
{
        for (size_t i = 0; i < set->n; i++)
                if (!set->v[i]->revoked && algorithm_is_of_type(algorithm, len, set->v[i]->type))
                        return true;
        return false;
}

char *known_set_algorithms(const struct known_set *set, const char *defaults)
{
        struct buf out = BUF_INIT;

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

static int open_for_append(const char *path)
{
        int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        const char *slash = strrchr(path, '/');

        if (fd < 0 && errno == ENOENT && slash && slash > path) {
                char *folder = strndup(path, (size_t)(slash - path));

                if (folder)
                        mkdir(folder, 0700);
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

int known_hosts_append(const char *path, const char *name, int port, const char *type,
                       const char *blob, struct error *err)
{
        char spelled[NAME_MAX_LEN], last = '\n', *line;
        int fd, r, number;

        fd = open_for_append(path);
        if (fd < 0)
                return err_set(err, -fd, "%s: %s", path, strerror(-fd));
        spell_name(spelled, sizeof(spelled), name, port);
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
