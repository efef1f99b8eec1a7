/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line of the output is tried as a frame of py-spy, as a frame of eu-stack or gdb, as a source
 * line, or as the heading of a thread; other lines are ignored. Only the main thread's frames are
 * kept. Names lose arguments, versions and underscores, and frames common to all programs are
 * dropped, so that two ranks at the same place have equal text whichever tool has read the stack.
 */
#include "head/why/stack_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "base/memory.h"

enum { FRAMES_MAX = 64, NAME_MAX_LEN = 120 }; /* innermost frames kept; bytes of a name */

/* --- frames ----------------------------------------------------------------------------------- */

static bool has_start(const char *text, const char *with)
{
        return !strncmp(text, with, strlen(with));
}

/* Frames that are the same in every program. */
static bool is_noise(const char *function, const char *place)
{
        static const char *const starts[] = { "__libc_start", "start_thread", "__clone",
                                              "clone3",       "_Py",          "Py",
                                              "cfunction_",   "method_vec",   "run_mod",
                                              "_bootstrap",   "_run_code",    "_run_module",
                                              "pyrun_" };

        if (!*function || !strcmp(function, "_start") || !strcmp(function, "clone") ||
            has_start(place, "<frozen"))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
                if (has_start(function, starts[i]))
                        return true;
        return false;
}

/* Whether a file, with or without its folder, is a library that programs do not name as theirs. */
static bool is_library_file(const char *path, size_t len)
{
        static const char *const starts[] = {
                "libc.so",   "libc-2.", "ld-linux",   "ld-2.",    "ld-musl",  "libm.so",
                "libm-2.",   "libmvec", "libpthread", "libdl.so", "librt.so", "libstdc++",
                "libgcc_s",  "libc++",  "libgomp",    "libasan",  "libubsan", "libtsan",
                "libpython", "python3", "libffi",     "[vdso",
        };
        const char *slash = memrchr(path, '/', len);

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
                if (has_start(slash ? slash + 1 : path, starts[i]))
                        return true;
        return false;
}

/* Whether a path is that of a source of the system. Those of the C library are relative, as may be
 * those of a program. */
static bool is_library_source(const char *text, bool has_module)
{
        static const char *const starts[] = { "/usr/include/", "/usr/lib/gcc/", "/usr/src/debug/",
                                              "/build/glibc" };
        static const char *const relative[] = { "./", "../sysdeps/", "../csu/", "../nptl/",
                                                "../elf/" };

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
                if (has_start(text, starts[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(relative); i++)
                if (!has_module && has_start(text, relative[i]))
                        return true;
        return false;
}

/* Turns "/home/me/train.c:88:12" into "train.c:88". */
static char *tidy_place(const char *text, size_t len)
{
        char *place, *slash, *colon;

        while (len && *text == '.') {
                size_t up = has_start(text, "../") ? 3 : has_start(text, "./") ? 2 : 0;

                if (!up || up > len)
                        break;
                text += up;
                len -= up;
        }
        place = xstrndup(text, len);
        /* An absolute path is that of the machine of the build; a relative one tells files
         * apart. */
        slash = *place == '/' ? strrchr(place, '/') : NULL;
        if (slash)
                memmove(place, slash + 1, strlen(slash));
        colon = strchr(place, ':');
        colon = colon ? strchr(colon + 1, ':') : NULL; /* a column */
        if (colon)
                *colon = '\0';
        return place;
}

/* Waiting calls of the C library, and their insides: the caller says more. */
static bool is_system_call(const char *function)
{
        static const char *const starts[] = {
                "__interceptor",   "__poll",      "ppoll",    "pthread_", "__futex",
                "clock_nanosleep", "nanosleep",   "usleep",   "__select", "pselect",
                "epoll_",          "__nanosleep", "accept",   "recv",     "send",
                "connect",         "openat",      "__open",   "waitpid",  "wait4",
                "__new_sem",       "sem_",        "do_futex", "lll_lock", "__lll_lock",
                "___pthread_",     "__pthread_",
        };
        static const char *const names[] = { "read", "write", "poll",   "pause", "flock", "select",
                                             "open", "sleep", "open64", "wait",  "fcntl", "readv" };

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
                if (has_start(function, starts[i]))
                        return true;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!strcmp(function, names[i]))
                        return true;
        return false;
}

/* Removes the underscores before the name of a system call: debug information has __flock and
 * ___pthread_mutex_lock where the symbols have flock and pthread_mutex_lock. */
static void drop_underscores(char *name)
{
        size_t n = strspn(name, "_");

        if (n >= 2 && is_system_call(name + n))
                memmove(name, name + n, strlen(name + n) + 1);
}

/* Returns the name without arguments, version and prefixes of the C library. */
static char *tidy_function(const char *text, size_t len)
{
        static const char *const prefixes[] = { "__GI___libc_", "__GI___", "__GI_", "__libc_" };
        char *name = xstrndup(text, len), *from, *end;

        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (has_start(name, prefixes[i]) && !has_start(name, "__libc_start")) {
                        memmove(name, name + strlen(prefixes[i]),
                                strlen(name + strlen(prefixes[i])) + 1);
                        break;
                }
        from = has_start(name, "(anonymous") ? strchr(name, ')') : name;
        end = from ? strchr(from, '(') : NULL;
        if (end && end - name >= 8 && has_start(end - 8, "operator()"))
                end = strchr(end + 2, '(');
        end = end ? end : strchr(name, '@');
        if (end)
                *end = '\0';
        for (size_t n = strlen(name); n && name[n - 1] == ' ';)
                name[--n] = '\0';
        if (strlen(name) > NAME_MAX_LEN)
                name[NAME_MAX_LEN] = '\0';
        drop_underscores(name);
        return name;
}

/* Adds a frame, or frees one that is noise or beyond the limit. */
static void add_frame(struct stack *s, const struct stack_frame *f)
{
        if (s->n == FRAMES_MAX || is_noise(f->function, f->place)) {
                free(f->function);
                free(f->place);
                return;
        }
        s->v = xrealloc(s->v, s->n + 1, sizeof(*s->v));
        s->v[s->n++] = *f;
}

/* Sets the place of a frame; one in the sources of the C library says nothing. */
static void set_place(struct stack_frame *f, const char *text, size_t len)
{
        f->library |= is_library_source(text, f->module);
        if (f->library && *text == '.')
                len = 0;
        free(f->place);
        f->place = tidy_place(text, len);
}

/* Removes the file of the code behind a function, "- libc.so.6" of eu-stack or
 * "from /lib/libc.so.6" of gdb, from the line. Returns the new end. */
static const char *cut_module(struct stack_frame *f, const char *line, const char *end)
{
        /* From behind: names of C++ may have " - " in front. At the beginning p[-1] is still in the
         * line: a number stands before the name. */
        for (const char *p = end; p >= line; p--) {
                size_t n = p[-1] != ' '            ? 0
                           : has_start(p, "- ")    ? 2
                           : has_start(p, "from ") ? 5
                                                   : 0;
                const char *file = p + n;

                if (!n || file >= end ||
                    (*file != '/' && *file != '[' && !memmem(file, (size_t)(end - file), ".so", 3)))
                        continue;
                f->module = true;
                f->library = is_library_file(file, (size_t)(end - file));
                return p;
        }
        return end;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* "    load_batch (train.py:88)" of py-spy. */
static void take_python_line(struct stack *s, const char *line, size_t len)
{
        const char *open;
        size_t at = len;

        while (len && line[len - 1] == ' ')
                len--;
        /* The last " (": names in brackets may have blanks. */
        while (at > 1 && !(line[at - 1] == '(' && line[at - 2] == ' '))
                at--;
        if (at <= 1 || line[len - 1] != ')')
                return;
        open = line + at - 2;
        add_frame(s, &(struct stack_frame){ .function = xstrndup(line, (size_t)(open - line)),
                                            .place = tidy_place(open + 2, len - at - 1) });
}

/* "#1  0x0000557a0e486183 load_batch - /home/me/w" of eu-stack, or
 * "#1  0x0000557a0e486183 in load_batch (n=1) at w.c:4" of gdb. */
static void take_native_line(struct stack *s, const char *line, size_t len)
{
        const char *end = line + len, *at = NULL;
        struct stack_frame f = { 0 };

        /* Past "#1", blanks, and an address, which frame 0 of gdb may lack. */
        for (line++; line < end && isdigit((unsigned char)*line); line++)
                ;
        while (line < end && *line == ' ')
                line++;
        if (end - line > 2 && has_start(line, "0x")) {
                while (line < end && *line != ' ')
                        line++;
                while (line < end && *line == ' ')
                        line++;
                if (end - line > 3 && has_start(line, "in "))
                        line += 3;
        }
        for (const char *p = line; p + 4 < end; p++)
                if (!strncmp(p, " at ", 4))
                        at = p;
        f.place = xstrdup("");
        if (at)
                set_place(&f, at + 4, (size_t)(end - at - 4));
        end = at ? at : cut_module(&f, line, end);
        f.function = tidy_function(line, (size_t)(end - line));
        add_frame(s, &f);
}

/* "    ../w.c:4:75" of eu-stack -s, about the frame before. */
static void take_source_line(struct stack *s, const char *line, size_t len)
{
        struct stack_frame *f = s->n ? &s->v[s->n - 1] : NULL;

        if (f && !*f->place)
                set_place(f, line, len);
}

/* Whether a heading begins the main thread. eu-stack and py-spy begin with the main thread. gdb
 * ends with the main thread, and writes "process" for a thread of an unknown C library. py-spy
 * knows names of threads only in programs that import threading. */
static bool is_main_heading(const char *line, size_t len, bool is_first)
{
        if (has_start(line, "Thread ") &&
            (memmem(line, len, "(LWP ", 5) || memmem(line, len, "(process ", 9)))
                return has_start(line, "Thread 1 ");
        if (has_start(line, "Thread ") && memchr(line, '"', len))
                return memmem(line, len, "\"MainThread\"", 12);
        return is_first;
}

void stack_parse(struct stack *ret, const char *text)
{
        bool in_main = true, seen = false, had_native = false;

        *ret = (struct stack){ 0 };
        while (*text) {
                size_t len = strcspn(text, "\n"), indent = strspn(text, " ");

                if (has_start(text, "Thread ") || has_start(text, "TID ")) {
                        in_main = is_main_heading(text, len, !seen);
                        seen = true;
                } else if (in_main && *text == '#') {
                        size_t before;

                        if (has_start(text, "#0 ")) /* gdb prints frame 0 of a core file twice */
                                stack_finish(ret);
                        before = ret->n;
                        take_native_line(ret, text, len);
                        had_native = ret->n > before;
                } else if (in_main && indent == 4 && len > 4) {
                        /* Both kinds of lines have four blanks in front; only a frame of py-spy has
                         * one more inside. */
                        bool is_place = !memchr(text + 4, ' ', len - 4);

                        if (had_native && is_place)
                                take_source_line(ret, text + 4, len - 4);
                        else if (!is_place)
                                take_python_line(ret, text + 4, len - 4);
                        had_native = false;
                }
                text += len + (text[len] == '\n');
        }
}

void stack_finish(struct stack *s)
{
        for (size_t i = 0; i < s->n; i++) {
                free(s->v[i].function);
                free(s->v[i].place);
        }
        free(s->v);
        *s = (struct stack){ 0 };
}

/* --- questions -------------------------------------------------------------------------------- */

/* Appends "load (w.c:8)", or the function alone. */
static void put_frame(struct buf *to, const struct stack_frame *f)
{
        buf_printf(to, *f->place ? "%s (%s)" : "%s", f->function, f->place);
}

char *stack_line(const struct stack *s, size_t from, size_t most)
{
        struct buf b = BUF_INIT;

        for (size_t i = from; i < s->n && i - from < most; i++) {
                buf_appends(&b, i > from ? " <- " : "");
                put_frame(&b, &s->v[i]);
        }
        if (s->n > from + most)
                buf_appends(&b, " <- ...");
        return buf_steal(&b);
}

char *stack_where(const struct stack *s, size_t from)
{
        struct buf b = BUF_INIT;

        for (size_t i = from; i < s->n; i++)
                /* First choice: a line that the user can open. */
                if (*s->v[i].place && !s->v[i].library && !has_start(s->v[i].place, "torch/")) {
                        put_frame(&b, &s->v[i]);
                        return buf_steal(&b);
                }
        for (size_t i = from; i < s->n; i++)
                /* Second: a function of the program without debug information. */
                if (!s->v[i].library && !is_system_call(s->v[i].function)) {
                        put_frame(&b, &s->v[i]);
                        return buf_steal(&b);
                }
        if (from < s->n)
                put_frame(&b, &s->v[from]);
        return buf_steal(&b);
}

/* Whether a frame belongs to a process ending itself: abort(), assert(), an exception of C++
 * without a handler, raise(). */
static bool is_of_abort(const char *function)
{
        static const char *const starts[] = {
                "__pthread_kill", "pthread_kill",     "raise",          "gsignal",
                "abort",          "__assert",         "assert_fail",    "std::terminate",
                "__cxxabiv1::",   "__cxa_",           "__gnu_cxx::__v", "__libc_message",
                "__fortify_fail", "__stack_chk_fail", "__chk_fail",     "malloc_printerr",
        };

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
                if (has_start(function, starts[i]))
                        return true;
        return false;
}

/* Returns the frame of the crash: below a signal handler, and below functions that raise the
 * signal. */
static size_t find_crash(const struct stack *s)
{
        size_t at = 0;

        for (size_t i = 0; i < s->n; i++)
                if (has_start(s->v[i].function, "__restore_rt") ||
                    has_start(s->v[i].function, "<signal handler"))
                        at = i + 1;
        while (at + 1 < s->n && is_of_abort(s->v[at].function))
                at++;
        return at;
}

/* Whether "<" at @p is part of an operator of C++, as in "operator<<". */
static bool is_of_operator(const char *name, const char *p)
{
        static const char word[] = "operator";
        size_t n = strlen(word);

        while (p > name && p[-1] == '<')
                p--;
        return (size_t)(p - name) >= n && !strncmp(p - n, word, n);
}

/* Appends "memcpy" of "__memcpy_avx512_unaligned_erms", and names of C++ without the arguments of
 * templates. */
static void put_short_name(struct buf *to, const char *name)
{
        static const char *const variants[] = { "_avx", "_evex",    "_sse",   "_ssse", "_erms",
                                                "_sve", "_generic", "_asimd", "_power" };
        size_t len = strlen(name), depth = 0;

        for (size_t i = 0; has_start(name, "__") && i < ARRAY_SIZE(variants); i++) {
                const char *variant = strstr(name + 2, variants[i]);

                if (variant)
                        len = MIN(len, (size_t)(variant - name));
        }
        for (const char *p = name + (len < strlen(name) ? 2 : 0); p < name + len; p++) {
                if (*p == '<' && p > name && !is_of_operator(name, p))
                        depth++;
                if (!depth)
                        buf_append(to, p, 1);
                if (*p == '>' && depth)
                        depth--;
        }
}

/* Appends a frame with a short name. */
static void put_crash_frame(struct buf *to, const struct stack_frame *f)
{
        put_short_name(to, f->function);
        if (*f->place)
                buf_printf(to, " (%s)", f->place);
}

/* Returns the first frame of the program's own at or after @from with a known place, else the first
 * of its own, else @from. */
static size_t find_own_frame(const struct stack *s, size_t from)
{
        size_t own = s->n;

        for (size_t i = from; i < s->n; i++) {
                if (s->v[i].library)
                        continue;
                if (*s->v[i].place)
                        return i;
                own = MIN(own, i);
        }
        return own < s->n ? own : from;
}

char *stack_crash(const struct stack *s)
{
        size_t from = find_crash(s), at = find_own_frame(s, from), places = 0;
        struct buf b = BUF_INIT;
        bool any = at < s->n && *s->v[at].place;

        /* Two places are enough for a line: where, and called from where. */
        for (size_t i = at; i < s->n && places < 2; i++) {
                if (i > at && (s->v[i].library || (any && !*s->v[i].place)))
                        continue;
                buf_appends(&b, i > at ? ", called in " : "");
                put_crash_frame(&b, &s->v[i]);
                places++;
                if (i != at || at == from)
                        continue;
                buf_appends(&b, " calling ");
                put_short_name(&b, s->v[at - 1].function);
        }
        return buf_steal(&b);
}

/* Calls of libraries, by the beginnings of their names. */
static const struct {
        const char *start, *library;
} calls[] = {
        { "MPI_", "MPI" },
        { "PMPI_", "MPI" },
        { "PMI_Barrier", "PMI" },
        { "PMI2_KVS_Fence", "PMI" },
        { "PMIx_Fence", "PMIx" },
        { "PMIx_Get", "PMIx" },
        { "ncclAll", "NCCL" },
        { "ncclBroadcast", "NCCL" },
        { "ncclReduce", "NCCL" },
        { "ncclSend", "NCCL" },
        { "ncclRecv", "NCCL" },
        { "ncclGroupEnd", "NCCL" },
        { "ncclCommInit", "NCCL" },
        { "gloo::", "Gloo" },
        { "c10d::", "torch.distributed" },
        { "hn_barrier", "libhnlaunch" },
        { "hn_comm_", "libhnlaunch" },
        { "hn_all_", "libhnlaunch" },
        { "hn_broadcast", "libhnlaunch" },
        { "hn_reduce", "libhnlaunch" },
        { "hn_send", "libhnlaunch" },
        { "hn_recv", "libhnlaunch" },
        { "hn_group_", "libhnlaunch" },
        { "hn_store_get", "libhnlaunch" },
        { "hn_store_wait", "libhnlaunch" },
};

/* Returns the library of a call that waits for other ranks, NULL = none. Of PyTorch the module in
 * Python tells; its private functions and the wrapper around each call say less than the public
 * one. */
static const char *find_call_library(const struct stack_frame *f, bool *ret_weak)
{
        bool is_torch = strstr(f->place, "distributed_c10d.py:") ||
                        strstr(f->place, "torch/distributed/rendezvous.py:");

        *ret_weak = !strcmp(f->function, "_engine_run_backward");
        if (*ret_weak)
                return "torch.autograd";
        if (is_torch && *f->function != '_' && strcmp(f->function, "wrapper") != 0)
                return "torch.distributed";
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                if (has_start(f->function, calls[i].start))
                        return calls[i].library;
        return NULL;
}

bool stack_find_wait(const struct stack *s, struct stack_wait *ret)
{
        /* From the outermost frame: MPI_Allreduce tells more than the MPI_Recv inside. */
        for (size_t i = s->n; i-- > 0;) {
                bool weak;
                const char *library = find_call_library(&s->v[i], &weak);
                const char *name = s->v[i].function;

                if (!library)
                        continue;
                name = weak ? "backward" : name + has_start(name, "PMPI_");
                *ret = (struct stack_wait){ .library = library, .frame = i, .weak = weak };
                snprintf(ret->operation, sizeof(ret->operation), "%.60s", name);
                return true;
        }
        return false;
}
