/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of head/alloc open nothing: read_surroundings() collects the variables and the name
 * of this machine, the cgroup of this process, and the manager's file or the output of the
 * manager's command. A test of a reader needs no manager then.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/program_output.h"
#include "head/alloc/alloc_reader.h"

enum {
        MANAGER_MS = 10000,  /* for a command described without a time */
        FILE_MAX = 64 << 20, /* of a manager's file or output */
};

/* The surroundings of this process. */
struct surroundings {
        struct alloc_input in;
        char host[256];
        char *cgroup, *text, *command; /* words of @command, for messages */
};

static void surroundings_finish(struct surroundings *s)
{
        free(s->cgroup);
        free(s->text);
        free(s->command);
}

/* Runs the command of a manager. 0, or -errno with @err. */
static int run_manager(struct surroundings *s, const struct alloc_manager *a, struct error *err)
{
        const char *const *argv = a->command;
        struct buf words = BUF_INIT;

        for (const char *const *word = argv; *word; word++)
                buf_printf(&words, "%s%s", word == argv ? "$(" : " ", *word);
        buf_appends(&words, ")");
        s->command = buf_steal(&words);
        s->in.path = a->command_name ? a->command_name : s->command;
        return program_output(argv, SPAWN_NULL, a->command_ms ? a->command_ms : MANAGER_MS,
                              FILE_MAX, &s->text, &s->in.len, err);
}

/* Reads the file of @from or runs the command, if there is any. 0, or -errno; for a command with a
 * sentence in @err. */
static int read_surroundings(struct surroundings *s, enum alloc_from from, bool asked,
                             struct error *err)
{
        int r = 0;

        *s = (struct surroundings){ .in = { .env = environ,
                                            .host = s->host,
                                            .now = time(NULL),
                                            .asked = asked,
                                            .path = alloc_path(from, environ) } };
        if (gethostname(s->host, sizeof(s->host) - 1) < 0)
                snprintf(s->host, sizeof(s->host), "localhost");
        if (fd_read_file("/proc/self/cgroup", FILE_MAX, &s->cgroup, NULL) < 0)
                s->cgroup = NULL;
        s->in.cgroup = s->cgroup;
        if (s->in.path)
                r = fd_read_file(s->in.path, FILE_MAX, &s->text, &s->in.len);
        else if (alloc_command(from, environ))
                r = run_manager(s, alloc_manager(from), err);
        s->in.text = s->text;
        return r;
}

/* Adds the error when a command or a file of the manager cannot be read. Returns -EINVAL. */
static int complain_surroundings(enum alloc_from from, const char *path, const struct error *err,
                                 int error, struct diags *d)
{
        const struct alloc_manager *a = alloc_manager(from);
        struct diag *e;

        if (err->code) {
                e = diag_add(d, HN_ALLOC_COMMAND, EX_UNAVAILABLE,
                             "cannot read the nodes of the %s %s: %s", a->title,
                             a->nodes_of ? a->nodes_of : "allocation", err->text);
                diag_note(e, "they are read from %s", path);
                diag_help(e, "mend what it says, or name the hosts with -H or -w");
                return -EINVAL;
        }
        e = diag_add(d, HN_ALLOC_MISSING, EX_DATAERR,
                     "cannot read the nodes of the %s allocation from %s: %s", a->title, path,
                     strerror(error));
        if (!a->shared_file)
                diag_note(e, "%s writes this file on the first node of the job only", a->title);
        diag_help(e, "start hnlaunch in the job's script, or name the hosts with -H or -w");
        return -EINVAL;
}

int alloc_load(enum alloc_from from, bool ppn, struct hosts *h, struct diags *d)
{
        CLEANUP(surroundings_finish) struct surroundings s = { 0 };
        bool asked = from != ALLOC_AUTO;
        struct error err = { 0 };
        int r;

        from = asked ? from : alloc_find(environ);
        r = read_surroundings(&s, from, asked, &err);
        if (r < 0)
                return complain_surroundings(from, s.in.path, &err, -r, d);
        s.in.ppn = ppn;
        return alloc_read(from, &s.in, h, d);
}

/* The claim is a bound socket without a file: the kernel drops the claim with the process, also
 * after SIGKILL. */
void alloc_claim(const struct hosts *h, struct diags *d)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        socklen_t len;

        /* A NUL in front: an abstract name (unix(7)), without a file, for this machine only. */
        snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "hnlaunch/%u/%s", (unsigned)getuid(),
                 h->source);
        len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1));
        /* Without a socket there is no claim; a bound one stays open as the claim. */
        if (fd < 0 || bind(fd, (const struct sockaddr *)&a, len) == 0)
                return; /* held from now on */
        fd_close(fd);
        diag_help(diag_warn(d, HN_ALLOC_SHARED, "another hnlaunch runs on the nodes of %s",
                            h->source),
                  "give each a part of the nodes: --nodes, --include, --exclude or -w");
}

/* Whether the host is known by an address, which no manager writes. */
static bool is_numeric(const char *name)
{
        return strchr(name, ':') || !name[strspn(name, "0123456789.")];
}

/* Adds the hosts once more without domains: each look-up takes constant time then. */
static void add_bare_names(struct hosts *h)
{
        for (size_t i = 0, n = h->n; i < n; i++)
                if (strchr(h->v[i].name, '.') && !is_numeric(h->v[i].name)) {
                        char *bare = xstrndup(h->v[i].name, strcspn(h->v[i].name, "."));

                        hosts_add(h)->name = bare;
                }
}

/* Whether @h, @n hosts followed by as many bare names, has the host: either name may lack the
 * domain. */
static bool is_host_inside(struct hosts *h, size_t n, const char *name)
{
        CLEANUP(free_textp) char *bare = xstrndup(name, strcspn(name, "."));
        const struct host *found = hosts_find(h, name);

        if (found || !strcmp(bare, name))
                return found;
        found = hosts_find(h, bare);
        return found && found < h->v + n;
}

void alloc_check_given(enum alloc_from from, const struct hosts *given, struct diags *d)
{
        CLEANUP(surroundings_finish) struct surroundings s = { 0 };
        CLEANUP(hosts_finish) struct hosts own = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags ignored = DIAGS_INIT;
        size_t *outside = xcalloc(given->n, sizeof(*outside)), n = 0, nodes = 0;
        bool asked = from != ALLOC_AUTO;
        CLEANUP(free_textp) char *names = NULL;
        struct error err = { 0 };

        from = asked ? from : alloc_find(environ);
        if (from != ALLOC_NONE && !alloc_command(from, environ) &&
            read_surroundings(&s, from, asked, &err) == 0 &&
            alloc_read(from, &s.in, &own, &ignored) == 0) {
                nodes = own.n;
                add_bare_names(&own);
                for (size_t i = 0; i < given->n; i++)
                        if (!given->v[i].local && !is_numeric(given->v[i].name) &&
                            !is_host_inside(&own, nodes, given->v[i].name))
                                outside[n++] = i;
        }
        if (n) {
                names = hosts_fold(given, outside, n);
                diag_help(diag_warn(d, HN_ALLOC_OUTSIDE, "not in the %s: %s", own.source, names),
                          "without hosts that are named, its %zu node%s would be used; --scheduler "
                          "none "
                          "says that the others are meant",
                          nodes, nodes == 1 ? "" : "s");
        }
        free(outside);
}
