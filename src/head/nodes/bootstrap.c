/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remote command is made once from the list of agents: a case per machine sets the agent's id
 * and size, and the fixed script behind the cases finds, requests and starts the agent. The other
 * half, bootstrap_feed(), reads the answer: the function looks for the first of three marks in the
 * stream, keeps the bytes before as noise, and treats the end of the buffer as the possible
 * beginning of an incomplete mark. Each mark but the greeting is followed by the rest of a line.
 */
#include "head/nodes/bootstrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/printable.h"
#include "wire/env/container_order.h"
#include "wire/msg.h"

#define MARK_NEED "HNLAUNCH-NEED "
#define MARK_FAIL "HNLAUNCH-FAIL "

enum {
        NOISE_MAX = 4096,
        LINE_MAX_LEN = 512,   /* kept */
        LINE_WAIT_MAX = 8192, /* waited for */
};

/*
 * The script must not contain a single quote, backslash, newline or exclamation mark: the line is
 * wrapped in single quotes for sh, bash, csh and fish alike. The script chooses the agent for this
 * machine first, since machines of two kinds may share a home; the first g after that is the fast
 * path.
 *
 * g executes a complete and running agent. A crashed node may have left an empty or cut file, or a
 * file full of zeros, under the agent's name, and a shell takes such a file for an empty script.
 * Therefore g runs the file with -s, which prints the size of the agent. A file with no answer or
 * another size is replaced like a missing file. A new agent is synced to the disk before the
 * rename.
 *
 * A candidate folder is tested before the agent is requested, because the bytes can be sent only
 * once: execution (a shell runs a script without a first line itself, but only where the kernel
 * would execute files) and free space (by writing zeros). The tests and the agent use the same
 * file, so no second file has to be removed. The traps remove the file when the shell gives up, for
 * example without descriptors for a pipe, or when the connection ends during the write. Folders in
 * /var/tmp and /dev/shm must belong to the user and be no link, since every user can create names
 * there. Containers with the same home may have equal host names and process numbers, hence the
 * random part of the name.
 */
static const char script[] =
        "m=$(uname -m); case \"$m\" in %s*) echo \"" MARK_NEED "$m\"; exit 1;; esac; "
        "c=\"${XDG_CACHE_HOME:-$HOME/.cache}/hnlaunch\"; "
        "[ -n \"$XDG_CACHE_HOME\" ] || [ -d \"$HOME\" ] || c=; "
        "g() { [ -x \"$1\" ] && [ \"$(\"$1\" -s 2>/dev/null)\" = $s ] && exec \"$1\"; }; "
        "g \"$c/$h\"; "
        "u=$(id -u); r=\"${XDG_RUNTIME_DIR:-/run/user/$u}/hnlaunch\"; "
        "for d in \"$r\" /var/tmp/hnlaunch-$u /dev/shm/hnlaunch-$u; do "
        "[ -O \"$d\" ] || continue; [ -h \"$d\" ] && continue; "
        "g \"$d/$h\"; done; "
        "k=$(umask); umask 077; t=; x() { [ -z \"$t\" ] || rm -f \"$t\" 2>/dev/null; }; trap x 0; "
        "trap \"exit 1\" 1 2 13 15; "
        "for d in \"$c\" \"$r\" /var/tmp/hnlaunch-$u /dev/shm/hnlaunch-$u; do "
        "mkdir -p \"$d\" 2>/dev/null; [ -O \"$d\" ] || continue; [ -h \"$d\" ] && continue; "
        "t=\"$d/.new-$(uname -n)-$$-$(od -An -N6 -tx1 /dev/urandom | tr -d \" \")\"; "
        "if (echo \"exit 0\" >\"$t\" && chmod 700 \"$t\" && \"$t\" && "
        "head -c $s /dev/zero >\"$t\") 2>/dev/null; then echo \"" MARK_NEED "$m\"; "
        "head -c $s >\"$t\" && [ $(wc -c <\"$t\") -eq $s ] && "
        "{ dd if=/dev/null of=\"$t\" conv=notrunc,fsync 2>/dev/null; mv -f \"$t\" \"$d/$h\"; } && "
        "umask ${k:-77} && exec \"$d/$h\"; "
        "rm -f \"$t\"; echo \"" MARK_FAIL "cannot write $d/$h\"; exit 1; fi; "
        "rm -f \"$t\" 2>/dev/null; done; "
        "echo \"" MARK_FAIL "no folder for the agent is writable and executable: tried $c $r "
        "/var/tmp /dev/shm\"; exit 1";

char *bootstrap_command(const struct agent_binaries *set, const char *container)
{
        char *cases = xstrdup(""), *body, *line;

        for (size_t i = 0; i < set->n; i++) {
                const struct agent_binary *binary = &set->v[i];
                char *more = xasprintf("%s%s) h=agent-%s; s=%zu;; ", cases, binary->arch,
                                       binary->id, binary->len);

                free(cases);
                cases = more;
        }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        body = xasprintf(script, cases);
#pragma GCC diagnostic pop
        line = container ? xasprintf("exec /bin/sh -c '" CONTAINER_ORDER
                                     "=\"%s\"; export " CONTAINER_ORDER "; %s'",
                                     container, body)
                         : xasprintf("exec /bin/sh -c '%s'", body);
        free(cases);
        free(body);
        return line;
}

/* --- the conversation ------------------------------------------------------------------------- */

/* Returns the offset of @mark in @in, or of a beginning of @mark at the end; @ret_whole tells
 * which. */
static size_t find_mark(const struct buf *in, const char *mark, bool *ret_whole)
{
        const unsigned char *p = buf_data(in), *hit;
        size_t n = buf_len(in), len = strlen(mark), tail;

        hit = n ? memmem(p, n, mark, len) : NULL;
        *ret_whole = hit != NULL;
        if (hit)
                return (size_t)(hit - p);
        /* The longest end of the buffer that may become the mark. */
        for (tail = MIN(len - 1, n); tail; tail--)
                if (!memcmp(p + n - tail, mark, tail))
                        break;
        return n - tail;
}

/* Reads the rest of the line behind the mark at the front of @in. False: the line is incomplete. */
static bool read_mark_line(struct buf *in, const char *mark, char *to, size_t size)
{
        const unsigned char *p = buf_data(in) + strlen(mark);
        const unsigned char *end = memchr(p, '\n', buf_len(in) - strlen(mark));
        size_t n;

        if (!end)
                return false;
        /* A longer line is cut for the message, but consumed as a whole. */
        n = MIN((size_t)(end - p), size - 1);
        memcpy(to, p, n);
        to[n] = '\0';
        buf_consume(in, (size_t)(end + 1 - buf_data(in)));
        return true;
}

void bootstrap_keep_noise(struct bootstrap *b, const void *text, size_t len)
{
        buf_append(&b->noise, text, len);
        if (buf_len(&b->noise) > NOISE_MAX)
                buf_consume(&b->noise, buf_len(&b->noise) - NOISE_MAX);
}

char *bootstrap_last_words(const struct bootstrap *b)
{
        const char *text = (const char *)buf_data(&b->noise);
        CLEANUP(free_textp) char *line = NULL;
        size_t end = buf_len(&b->noise), from;

        /* NUL bytes count as blanks: strchr() finds the end of the list. */
        while (end && strchr(" \t\r\n", text[end - 1]))
                end--;
        for (from = end; from && text[from - 1] != '\n';)
                from--;
        line = xstrndup(end ? text + from : "", end - from);

        return printable_text(line, PRINTABLE_QUOTE);
}

/* Reads the order @mark and the rest of @line. Returns as bootstrap_feed(). */
static enum bootstrap_result follow_mark(struct bootstrap *b, const struct agent_binaries *set,
                                         const char *mark, const char *line, struct error *err)
{
        char names[64];

        if (strcmp(mark, MARK_NEED) != 0) {
                err_set(err, EPROTO, "%s", line);
                return strcmp(mark, CONTAINER_MARK) == 0 ? BOOTSTRAP_NO_CONTAINER
                                                         : BOOTSTRAP_CANNOT_RUN;
        }
        /* The script asks once, so something else is asking. */
        if (b->sent) {
                err_set(err, EPROTO, "the agent was sent, but requested again");
                return BOOTSTRAP_CANNOT_RUN;
        }
        b->sent = agent_binary_for(set, line);
        if (b->sent)
                return BOOTSTRAP_UPLOAD;
        agent_binaries_names(set, names, sizeof(names));
        err_set(err, ENOEXEC, "is a machine of type %.32s; agents installed: %s",
                *line ? line : "unknown", names);
        return BOOTSTRAP_NO_AGENT;
}

enum bootstrap_result bootstrap_feed(struct bootstrap *b, const struct agent_binaries *set,
                                     struct buf *in, struct error *err)
{
        static const char *const marks[] = { MSG_MAGIC, MARK_NEED, MARK_FAIL, CONTAINER_MARK };
        size_t first = buf_len(in), at;
        char line[LINE_MAX_LEN];
        int which = -1;
        bool whole;

        for (int i = 0; i < (int)ARRAY_SIZE(marks); i++) {
                at = find_mark(in, marks[i], &whole);
                if (at < first || (at == first && whole)) {
                        first = at;
                        which = whole ? i : -1;
                }
        }
        bootstrap_keep_noise(b, buf_data(in), first);
        buf_consume(in, first);
        if (which == 0) {
                buf_consume(in, strlen(MSG_MAGIC));
                return BOOTSTRAP_GREETED;
        }
        if (which < 0)
                return BOOTSTRAP_MORE;
        if (read_mark_line(in, marks[which], line, sizeof(line)))
                return follow_mark(b, set, marks[which], line, err);
        if (buf_len(in) < LINE_WAIT_MAX)
                return BOOTSTRAP_MORE;
        err_set(err, EPROTO, "sent %.13s and a line of more than 8 KiB", marks[which]);
        return BOOTSTRAP_CANNOT_RUN;
}
