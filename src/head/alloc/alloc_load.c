/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "head/alloc/alloc_reader.h"

enum {
        HN_OUTSIDE = 154,
        FILE_MAX = 64 << 20,
};

/* What surrounds this process. */
struct surroundings {
        struct alloc_input in;
        char host[256];
        char *cgroup, *text;
};

static void surroundings_finish(struct surroundings *s)
{
        free(s->cgroup);
        free(s->text);
}

/* Reads the file that @from needs, if it needs one. 0, or -errno. */
static int read_surroundings(struct surroundings *s, enum alloc_from from, bool asked)
{
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
        if (s->in.path) {
                int r = fd_read_file(s->in.path, FILE_MAX, &s->text, &s->in.len);

                if (r < 0)
                        return r;
        }
        s->in.text = s->text;
        return 0;
}

static int complain_file(enum alloc_from from, const char *path, int error, struct diags *d)
{
        struct diag *e = diag_add(d, HN_ALLOC_MISSING, EX_DATAERR,
                                  "cannot read the nodes of the %s allocation from %s: %s",
                                  alloc_title(from), path, strerror(error));

        diag_note(e, "%s writes this file on the first node of the job only", alloc_title(from));
        diag_help(e, "start hnlaunch in the job's script, or name the hosts with -H or -w");
        return -EINVAL;
}

int alloc_load(enum alloc_from from, bool ppn, struct hosts *h, struct diags *d)
{
        CLEANUP(surroundings_finish) struct surroundings s = { 0 };
        bool asked = from != ALLOC_AUTO;
        int r;

        from = asked ? from : alloc_find(environ);
        r = read_surroundings(&s, from, asked);
        if (r < 0)
                return complain_file(from, s.in.path, -r, d);
        s.in.ppn = ppn;
        return alloc_read(from, &s.in, h, d);
}

/* Whether the host is known by an address, which no manager writes. */
static bool is_numeric(const char *name)
{
        return strchr(name, ':') || !name[strspn(name, "0123456789.")];
}

void alloc_check_given(enum alloc_from from, const struct hosts *given, struct diags *d)
{
        CLEANUP(surroundings_finish) struct surroundings s = { 0 };
        CLEANUP(hosts_finish) struct hosts own = HOSTS_INIT;
        CLEANUP(diags_finish) struct diags ignored = DIAGS_INIT;
        size_t *outside = xcalloc(given->n, sizeof(*outside)), n = 0;
        bool asked = from != ALLOC_AUTO;
        CLEANUP(free_textp) char *names = NULL;

        from = asked ? from : alloc_find(environ);
        if (from != ALLOC_NONE && read_surroundings(&s, from, asked) == 0 &&
            alloc_read(from, &s.in, &own, &ignored) == 0)
                for (size_t i = 0; i < given->n; i++)
                        if (!given->v[i].local && !is_numeric(given->v[i].name) &&
                            !alloc_find_host(&own, given->v[i].name))
                                outside[n++] = i;
        if (n) {
                names = hosts_fold(given, outside, n);
                diag_help(diag_warn(d, HN_OUTSIDE, "not in the %s: %s", own.source, names),
                          "without hosts that are named, its %zu node%s would be used; --from none "
                          "says that the others are meant",
                          own.n, own.n == 1 ? "" : "s");
        }
        free(outside);
}
