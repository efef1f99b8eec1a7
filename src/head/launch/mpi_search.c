/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each word is looked up as a program. The first program linked with MPI is the answer, else the
 * first Python script with an import of mpi4py. A word with blanks, as behind `sh -c`, and the text
 * of a shell script are split into words again, without the rules of a shell: the rest of a word
 * behind a variable ("$HERE/a.out") is looked up below the folder of the script, and "cd" counts. A
 * wrong answer changes only how MPI is served, and a job without MPI does not ask.
 */
#include "head/launch/mpi_search.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/strv.h"
#include "head/core/program.h"

/* Limits of files looked up, words of the command line, bytes of a script, and scripts within
 * scripts. */
enum { FILES_MAX = 300, WORDS_MAX = 64, TEXT_MAX = 1 << 16, DEPTH_MAX = 3 };

/* State of mpi_search(). */
struct mpi_hunt {
        struct mpi_found *found;
        const char *library_path;
        struct strv seen; /* paths */
        bool launcher;    /* its words follow */
};

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* sh, bash, zsh, dash, fish: all end in "sh". */
static bool is_shell(const char *path)
{
        const char *name = base_name(path);
        size_t n = strlen(name);

        return n >= 2 && !strcmp(name + n - 2, "sh");
}

/* Whether nothing more is to be looked up. */
static bool is_done(const struct mpi_hunt *h)
{
        return h->found->program || h->launcher || h->seen.n >= FILES_MAX;
}

static void search_words(struct mpi_hunt *h, const char *text, const char *cwd, const char *folder,
                         int depth);

/* Returns the path of the file that a word names, malloc'ed; NULL = none. A word without a folder
 * is a program in PATH, or a script for the shell or Python before it. */
static char *find_word(const char *word, const char *cwd)
{
        char *path =
                strchr(word, '/') || !*word || *word == '-' ? NULL : program_find_in_path(word);
        struct stat st;

        if (path)
                return path;
        path = *word == '/' ? xstrdup(word) : xasprintf("%s/%s", cwd, word);
        if (*word && stat(path, &st) == 0 && S_ISREG(st.st_mode))
                return path;
        free(path);
        return NULL;
}

/* Looks at the words of a shell script. */
static void search_script(struct mpi_hunt *h, const char *path, const char *cwd, bool for_shell,
                          int depth)
{
        CLEANUP(free_textp) char *text = NULL, *folder = NULL;
        const char *end;
        char *first;

        if (depth == DEPTH_MAX || fd_read_regular(AT_FDCWD, path, TEXT_MAX, &text, NULL) < 0 ||
            (!for_shell && strncmp(text, "#!", 2) != 0))
                return;
        end = strchr(text, '\n');
        first = xstrndup(text, end ? (size_t)(end - text) : strlen(text));
        if (strncmp(text, "#!", 2) != 0 || strstr(first, "sh")) {
                folder = xstrndup(path, (size_t)(base_name(path) - path));
                search_words(h, text, cwd, folder, depth + 1);
        }
        free(first);
}

/* Looks at the file named by argv[0], and takes a file that uses MPI. @before: the word before. */
static void search_program(struct mpi_hunt *h, char *const *argv, const char *before,
                           const char *cwd, int depth)
{
        CLEANUP(free_textp) char *path = find_word(argv[0], cwd);
        bool elf;

        if (mpi_is_launcher(base_name(argv[0])))
                h->launcher = true;
        if (!path || h->launcher || strv_has(&h->seen, path))
                return;
        strv_push(&h->seen, path);
        elf = mpi_libraries_find(&h->found->libs, path, h->library_path) == 0;
        if (h->found->libs.name) {
                h->found->program = xstrdup(argv[0]);
                return;
        }
        mpi_libraries_finish(&h->found->libs);
        if (elf && !mpi_is_python(path))
                return; /* no script */
        if (!h->found->script)
                h->found->script = mpi_script_of(path, argv, cwd);
        if (!h->found->script)
                search_script(h, path, cwd, before && is_shell(before), depth);
}

/* Looks at a word of a text: as it is, and, behind a variable, below the folder of the script. */
static void search_token(struct mpi_hunt *h, const char *word, const char *before, const char *cwd,
                         const char *folder, bool variable, int depth)
{
        char *const argv[] = { (char *)word, NULL };
        const char *rest = variable ? strchr(word, '/') : NULL;
        char python[] = "python";
        char *below = rest && folder ? xasprintf("%s%s", folder, rest + 1) : NULL;

        search_program(h, argv, before, cwd, depth);
        if (!h->found->script && strlen(word) > 3 && !strcmp(word + strlen(word) - 3, ".py"))
                h->found->script =
                        mpi_script_of(python, (char *const[]){ python, argv[0], NULL }, cwd);
        if (below && !is_done(h))
                search_program(h, (char *const[]){ below, NULL }, before, cwd, depth);
        free(below);
}

/* Looks at the words of a text: a script, or the argument of `sh -c`. */
static void search_words(struct mpi_hunt *h, const char *text, const char *cwd, const char *folder,
                         int depth)
{
        static const char ends[] = " \t\r\n;|&()<>\"'`={}$";
        CLEANUP(free_textp) char *where = xstrdup(cwd), *before = NULL;
        bool comment = false, variable = false;

        for (const char *p = text; *p && !is_done(h);) {
                size_t n = strcspn(p, ends);
                char *word;

                /* Only lines that begin with #: a # behind words may be within quotes. */
                comment = (comment && *p != '\n') || (*p == '#' && (p == text || p[-1] == '\n'));
                if (!n || comment) {
                        variable = *p == '$' || (variable && strchr("{}()", *p));
                        p += n ? n : 1;
                        continue;
                }
                word = xstrndup(p, n);
                if (before && !strcmp(before, "cd")) {
                        char *to = *word == '/' ? xstrdup(word) : xasprintf("%s/%s", where, word);

                        free(where);
                        where = to;
                } else {
                        search_token(h, word, before, where, folder, variable, depth);
                }
                free(before);
                before = word;
                variable = false;
                p += n;
        }
}

void mpi_search(struct mpi_found *ret, char *const *argv, const char *cwd, const char *library_path)
{
        struct mpi_hunt h = { .found = ret, .library_path = library_path };

        *ret = (struct mpi_found){ 0 };
        for (size_t i = 0; argv[i] && i < WORDS_MAX && !is_done(&h); i++) {
                const char *before = i ? argv[i - 1] : NULL;

                if (i && strpbrk(argv[i], " \t\n;"))
                        search_words(&h, argv[i], cwd, NULL, 1);
                else
                        search_program(&h, argv + i, before, cwd, 0);
        }
        strv_finish(&h.seen);
}

void mpi_found_finish(struct mpi_found *f)
{
        mpi_libraries_finish(&f->libs);
        free(f->program);
        free(f->script);
        *f = (struct mpi_found){ 0 };
}
