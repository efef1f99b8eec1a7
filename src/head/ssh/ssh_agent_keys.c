/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and answers (draft-miller-ssh-agent) are a length of 4 bytes, a type and a body. They
 * are read by hand, since libssh offers no function for the list of keys.
 *
 * The thread of a filter reads a request, asks the agent, and hands on the answer; only the list of
 * keys is made anew. Requests other than the list and a signature are answered with a failure. Any
 * error ends the thread, and closed descriptors tell libssh.
 */
#include "head/ssh/ssh_agent_keys.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/core/ssh_agent.h"
#include "head/core/thread_pool.h"

#define AGENT_WAIT_S 3
#define MESSAGE_MAX  (256u << 10) /* as OpenSSH's limit of a message of the agent */

/* Types of messages, SSH_AGENT_FAILURE and so on. */
enum { AGENT_FAILURE = 5, AGENT_LIST = 11, AGENT_KEYS = 12, AGENT_SIGN = 13 };

/* Owned by the thread: libssh has the other end of @client. */
struct agent_filter {
        int client, agent;
        struct key_blob *keys; /* malloc'ed, as is each of them */
        size_t n;
};

static void free_filter(struct agent_filter *f)
{
        fd_close(f->client);
        fd_close(f->agent);
        for (size_t i = 0; i < f->n; i++)
                free((void *)f->keys[i].data);
        free(f->keys);
        free(f);
}

static void append_u32(struct buf *b, size_t n)
{
        const unsigned char bytes[4] = { (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                         (unsigned char)(n >> 8), (unsigned char)n };

        buf_append(b, bytes, sizeof(bytes));
}

/* Reads a message, without its length. -1: the end, or a message that is too long. */
static int read_agent_message(int fd, struct buf *ret)
{
        unsigned char head[4];
        size_t len;

        buf_clear(ret);
        if (recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head))
                return -1;
        len = key_blob_u32(head);
        if (len == 0 || len > MESSAGE_MAX || !buf_reserve(ret, len) ||
            recv(fd, buf_reserve(ret, len), len, MSG_WAITALL) != (ssize_t)len)
                return -1;
        buf_advance(ret, len);
        return 0;
}

static int write_agent_message(int fd, const struct buf *message)
{
        struct buf out = BUF_INIT;
        int r;

        append_u32(&out, buf_len(message));
        buf_append(&out, buf_data(message), buf_len(message));
        r = fd_write_all(fd, buf_data(&out), buf_len(&out));
        buf_finish(&out);
        return r;
}

/* Moves @left, the body of a list, to its first key. False: it is no list. */
static bool begin_list(const struct buf *message, struct key_blob *ret_left)
{
        if (buf_len(message) < 5 || *buf_data(message) != AGENT_KEYS)
                return false;
        *ret_left = (struct key_blob){ buf_data(message) + 5, buf_len(message) - 5 };
        return true;
}

/* Takes a key and its comment from the front of @left. False: there is none. */
static bool next_agent_key(struct key_blob *left, struct key_blob *ret,
                           struct key_blob *ret_comment)
{
        size_t first = key_blob_skip(*left, 1), both = key_blob_skip(*left, 2);

        if (!both)
                return false;
        *ret = (struct key_blob){ left->data + 4, first - 4 };
        *ret_comment = (struct key_blob){ left->data + first + 4, both - first - 4 };
        *left = (struct key_blob){ left->data + both, left->len - both };
        return true;
}

/* --- for messages --- */

/* Adds a line for a key: type, SHA-256 as ssh prints it, comment. */
static void list_agent_key(struct key_blob key, struct key_blob comment, struct strv *ret)
{
        static const struct {
                const char *begin, *name;
        } names[] = { { "ssh-ed25519-cert", "ED25519-CERT" },
                      { "ssh-ed25519", "ED25519" },
                      { "ssh-rsa-cert", "RSA-CERT" },
                      { "ssh-rsa", "RSA" },
                      { "ecdsa-", "ECDSA" },
                      { "sk-", "SK" } };
        unsigned char hash[crypto_hash_sha256_BYTES];
        char print[64];
        const char *name = "key";
        size_t type_len = key_blob_u32(key.data);

        /* The first that fits: a certificate's type begins like that of the plain key. */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (type_len <= key.len - 4 && type_len >= strlen(names[i].begin) &&
                    memcmp(key.data + 4, names[i].begin, strlen(names[i].begin)) == 0) {
                        name = names[i].name;
                        break;
                }
        crypto_hash_sha256(hash, key.data, key.len);
        sodium_bin2base64(print, sizeof(print), hash, sizeof(hash),
                          sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
        strv_pushf(ret, "%s SHA256:%s %.*s", name, print, (int)comment.len,
                   (const char *)comment.data);
}

void ssh_agent_keys_list(const char *path, struct strv *ret)
{
        static const unsigned char type = AGENT_LIST;
        CLEANUP(fd_closep) int fd = ssh_agent_open(path, AGENT_WAIT_S);
        CLEANUP(buf_finish) struct buf message = BUF_INIT;
        struct key_blob left, key, comment;

        buf_append(&message, &type, 1);
        if (fd < 0 || write_agent_message(fd, &message) < 0 ||
            read_agent_message(fd, &message) < 0 || !begin_list(&message, &left))
                return;
        while (next_agent_key(&left, &key, &comment))
                if (key.len >= 4) /* room for the length of the type */
                        list_agent_key(key, comment, ret);
}

/* --- for libssh --- */

static bool filter_passes(const struct agent_filter *f, struct key_blob b)
{
        for (size_t i = 0; i < f->n; i++)
                if (key_blob_is_of(b, f->keys[i]))
                        return true;
        return false;
}

/* Drops keys from a list: type, number of keys, and for each a blob and a comment. */
static void filter_list(const struct agent_filter *f, struct buf *list)
{
        const unsigned char type = AGENT_KEYS;
        struct buf kept = BUF_INIT, out = BUF_INIT;
        struct key_blob left, key, comment;
        size_t n = 0;

        /* An answer to another request, or a failure: passed on as received. */
        if (!begin_list(list, &left))
                return;
        while (next_agent_key(&left, &key, &comment)) {
                if (!filter_passes(f, key))
                        continue;
                /* Key and comment with their lengths, as received. */
                buf_append(&kept, key.data - 4, key.len + comment.len + 8);
                n++;
        }
        buf_append(&out, &type, 1);
        append_u32(&out, n);
        buf_append(&out, buf_data(&kept), buf_len(&kept));
        buf_finish(&kept);
        buf_finish(list);
        *list = out;
}

static int answer_agent_request(const struct agent_filter *f, struct buf *message)
{
        const unsigned char type = *buf_data(message), failure = AGENT_FAILURE;

        if (type != AGENT_LIST && type != AGENT_SIGN) {
                buf_clear(message);
                buf_append(message, &failure, 1);
        } else if (write_agent_message(f->agent, message) < 0 ||
                   read_agent_message(f->agent, message) < 0) {
                return -1;
        }
        filter_list(f, message);
        return write_agent_message(f->client, message);
}

static void *run_filter(void *arg)
{
        struct agent_filter *f = arg;
        struct buf message = BUF_INIT;

        while (read_agent_message(f->client, &message) == 0 &&
               answer_agent_request(f, &message) == 0)
                ;
        buf_finish(&message);
        free_filter(f);
        return NULL;
}

int ssh_agent_keys_filter(const char *path, const struct key_blob *keys, size_t n)
{
        const struct timeval no_limit = { 0 }; /* an agent may ask its user before it signs */
        struct agent_filter *f;
        pthread_t thread;
        int fds[2], r, agent = ssh_agent_open(path, AGENT_WAIT_S);

        if (agent < 0)
                return agent;
        setsockopt(agent, SOL_SOCKET, SO_RCVTIMEO, &no_limit, sizeof(no_limit));
        r = fd_pair(fds);
        if (r < 0) {
                fd_close(agent);
                return r;
        }
        f = xcalloc(1, sizeof(*f));
        *f = (struct agent_filter){ .client = fds[1], .agent = agent, .n = n };
        f->keys = xcalloc(n + 1, sizeof(*f->keys)); /* not 0 */
        for (size_t i = 0; i < n; i++) {
                unsigned char *copy = xcalloc(1, keys[i].len + 1);

                memcpy(copy, keys[i].data, keys[i].len);
                f->keys[i] = (struct key_blob){ .data = copy, .len = keys[i].len };
        }
        r = thread_start(&thread, run_filter, f);
        if (r == 0) {
                pthread_detach(thread); /* and owns @f */
                return fds[0];
        }
        free_filter(f);
        fd_close(fds[0]);
        return -r; /* thread_start() returns an errno */
}
