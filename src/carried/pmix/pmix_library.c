/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each place is tried by opening the library there; the reasons of failures are gathered for the
 * message. Missing files are named in a short form, since most places have no libpmix: "not in A,
 * B". An opened library stays open, so a library without the needed functions is kept in memory,
 * unused.
 */
#include "carried/pmix/pmix_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf/elf_closure.h"
#include "base/elf/elf_libs.h"
#include "base/loader/old_glibc.h"
#include "base/memory.h"

#define LIBPMIX "libpmix.so.2"
#define LIBMPI  "libmpi.so.40"
#define LIBPAL  "libopen-pal.so.40"

struct search {
        struct pmix_functions *found;
        const struct pmix_job *job;
        struct strv missing; /* folders without the library */
        struct buf *said;
};

static bool bind_functions(struct pmix_functions *f, void *library)
{
        const struct {
                const char *name;
                void *to;
        } table[] = {
                { "PMIx_Get_version", &f->get_version },
                { "PMIx_Error_string", &f->error_string },
                { "PMIx_server_init", &f->server_init },
                { "PMIx_server_finalize", &f->server_finalize },
                { "PMIx_server_register_nspace", &f->register_nspace },
                { "PMIx_server_register_client", &f->register_client },
                { "PMIx_server_setup_fork", &f->setup_fork },
                { "PMIx_server_dmodex_request", &f->dmodex_request },
        };
        void *function;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                function = library_symbol(library, table[i].name);
                if (!function)
                        return false;
                memcpy(table[i].to, &function, sizeof(function));
        }
        return true;
}

/* Opens the library and binds the functions, or appends the reason of the failure to @said. */
static bool open_library(struct search *s, const char *path)
{
        /* RTLD_GLOBAL: plug-ins of libpmix expect the symbols of libpmix in the program. */
        void *library = library_open(path, RTLD_NOW | RTLD_GLOBAL);
        const char *why = library ? NULL : library_error();

        if (library && bind_functions(s->found, library)) {
                buf_clear(s->said);
                buf_printf(s->said, "%s", path);
                return true;
        }
        buf_printf(s->said, "%s; ", library ? "lacks functions of a server" : why);
        return false;
}

static bool try_folder(struct search *s, const char *folder)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/" LIBPMIX, folder);

        if (access(path, F_OK) == 0)
                return open_library(s, path);
        if (!strv_has(&s->missing, folder))
                strv_push(&s->missing, folder);
        return false;
}

/* Tries libopen-pal.so.40: an Open MPI 4 with the PMIx of its own sources has all of PMIx in this
 * library, so server and ranks have one version. Without these functions Open MPI was built with
 * another PMIx, and @said does not name the library. */
static bool try_own_pmix(struct search *s, const char *folder)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/" LIBPAL, folder);
        void *library = access(path, F_OK) == 0 ? library_open(path, RTLD_NOW | RTLD_GLOBAL) : NULL;

        if (!library || !bind_functions(s->found, library))
                return false;
        buf_clear(s->said);
        buf_printf(s->said, "%s", path);
        return true;
}

/* Tries the places where libmpi.so.40 in @folder would find libpmix; false without libmpi.so.40. */
static bool try_open_mpi(struct search *s, const char *folder)
{
        CLEANUP(free_textp) char *path = xasprintf("%s/" LIBMPI, folder);
        struct elf_libs libs;
        bool found = false;

        if (elf_libs_read(&libs, path) == 0) { /* fails without the library */
                for (size_t i = 0; i < libs.folders.n && !found; i++)
                        found = try_folder(s, libs.folders.v[i]);
                found = found || try_folder(s, folder) || try_own_pmix(s, folder);
        }
        elf_libs_finish(&libs);
        return found;
}

/* Returns the path of the program as the loader of the rank will see it, malloc'ed; NULL: no folder
 * of PATH has the program. */
static char *find_program(const struct pmix_job *job)
{
        const char *path = getenv("PATH");
        CLEANUP(free_textp) char *folders = xstrdup(path ? path : "/usr/bin:/bin");
        char *rest = folders, *full;

        if (*job->program == '/')
                return xstrdup(job->program);
        if (strchr(job->program, '/'))
                return xasprintf("%s/%s", job->cwd, job->program);
        for (char *folder; (folder = strsep(&rest, ":"));) {
                full = xasprintf("%s/%s", *folder ? folder : job->cwd, job->program);
                if (access(full, X_OK) == 0)
                        return full;
                free(full);
        }
        return NULL;
}

/* Tries the Open MPI that the program loads, directly or through another library. */
static bool try_libraries(struct search *s, const char *program)
{
        struct elf_closure c;
        bool found = false;

        elf_closure_read(&c, program, getenv("LD_LIBRARY_PATH"));
        for (size_t i = 0; i < c.n && !found; i++) {
                char *path = c.v[i].path;

                if (strcmp(c.v[i].name, LIBMPI) != 0 || !path)
                        continue;
                *strrchr(path, '/') = '\0';
                found = try_open_mpi(s, path);
        }
        elf_closure_finish(&c);
        return found;
}

static bool try_program(struct search *s)
{
        CLEANUP(free_textp) char *program = find_program(s->job), *lib = NULL;

        if (!program)
                return false;
        if (try_libraries(s, program))
                return true;
        *strrchr(program, '/') = '\0'; /* a full path has a slash */
        lib = xasprintf("%s/../lib", program);
        return try_open_mpi(s, lib);
}

static bool try_loader_folders(struct search *s)
{
        const char *path = getenv("LD_LIBRARY_PATH");
        CLEANUP(free_textp) char *folders = xstrdup(path ? path : "");
        char *rest = folders;

        for (char *folder; (folder = strsep(&rest, ":"));)
                if (*folder && try_open_mpi(s, folder))
                        return true;
        return false;
}

static bool try_prefix(struct search *s)
{
        static const char *const below[] = { "lib", "lib64", "lib/openmpi" };
        bool found = false;

        for (size_t i = 0; *s->job->prefix && i < ARRAY_SIZE(below) && !found; i++) {
                char *folder = xasprintf("%s/%s", s->job->prefix, below[i]);

                found = try_folder(s, folder);
                free(folder);
        }
        return found;
}

int pmix_library_open(struct pmix_functions *ret, const struct pmix_job *job, struct buf *said)
{
        struct search s = { .found = ret, .job = job, .said = said };
        bool found = try_prefix(&s) || try_program(&s) || try_loader_folders(&s) ||
                     open_library(&s, LIBPMIX);

        if (!found) {
                buf_truncate(said, buf_len(said) - 2); /* the last "; " */
                for (size_t i = 0; i < s.missing.n; i++)
                        buf_printf(said, i ? ", %s" : "; not in %s", s.missing.v[i]);
        }
        strv_finish(&s.missing);
        return found ? 0 : -ENOENT;
}
