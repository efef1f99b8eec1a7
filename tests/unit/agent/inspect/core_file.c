/* SPDX-License-Identifier: Apache-2.0 */
/* Names of core files as in core(5), notes as Linux 6.18 writes them, and the core of a child. */
#include "agent/inspect/core_file.h"

#include <elf.h>
#include <stdio.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "lib/unit.h"

static void assert_path(const char *pattern, bool uses_pid, const char *want)
{
        CLEANUP(free_textp) char *got = core_file_expand(pattern, uses_pid, 4711);

        assert_string_equal(got, want);
}

TEST(patterns_become_paths)
{
        char host[256], want[600];

        assert_path("core", false, "core");
        assert_path("core", true, "core.4711");
        assert_path("core.%p", true, "core.4711");
        assert_path("/cores/%e.%p%%", false, "/cores/\001.4711%");
        assert_path("%t%", false, "\001");
        assert_path("", false, "");
        gethostname(host, sizeof(host));
        snprintf(want, sizeof(want), "/%u/%u/%s", getuid(), getgid(), host);
        assert_path("/%u/%g/%h", false, want);
}

TEST(unknown_parts_match_any_text)
{
        assert_true(core_file_match("core", "core"));
        assert_false(core_file_match("core.1", "core"));
        assert_false(core_file_match("cor", "core"));
        assert_true(core_file_match("core.train.4711", "core.\001.4711"));
        assert_true(core_file_match("core.a.4711.4711", "core.\001.4711"));
        assert_false(core_file_match("core.train.471", "core.\001.4711"));
        assert_true(core_file_match("", "\001"));
        assert_true(core_file_match("x.1", "\001.\001"));
}

static void assert_pipe(const char *pattern, const char *want)
{
        char got[200];

        core_file_describe_pipe(pattern, 4711, got, sizeof(got));
        assert_string_equal(got, want);
}

TEST(pipes_name_their_program)
{
        assert_pipe("|/usr/lib/systemd/systemd-coredump %P %u",
                    "core_pattern gives cores to systemd-coredump: coredumpctl info 4711 shows it");
        assert_pipe("|/usr/share/apport/apport -p%p",
                    "core_pattern gives cores to apport, which keeps them in /var/crash");
        assert_pipe("|/opt/site/keep_core", "core_pattern gives cores to keep_core");
        assert_pipe("|", "core_pattern gives cores to ");
}

/* --- notes ------------------------------------------------------------------------------------ */

static size_t put_note(char *to, uint32_t type, const void *desc, size_t len)
{
        const Elf64_Nhdr h = { .n_namesz = 5, .n_descsz = (Elf64_Word)len, .n_type = type };

        memcpy(to, &h, sizeof(h));
        memcpy(to + sizeof(h), "CORE\0\0\0", 8);
        memcpy(to + sizeof(h) + 8, desc, len);
        return sizeof(h) + 8 + (len + 3) / 4 * 4;
}

static size_t put_notes(char *notes)
{
        const struct elf_prpsinfo info = { .pr_pid = 4711 };
        struct {
                uint64_t count, page, file[6];
                char names[24];
        } files = { 2, 4096, { 0 }, "/home/ada/mesh\0/lib/c.so" };
        size_t len = put_note(notes, NT_PRPSINFO, &info, sizeof(info));

        return len + put_note(notes + len, NT_FILE, &files, sizeof(files));
}

TEST(notes_tell_process_and_program)
{
        char notes[1024] = { 0 }, program[64];
        size_t len = put_notes(notes);
        pid_t pid = 0;

        assert_true(core_file_read_notes(notes, len, &pid, program, sizeof(program)));
        assert_int_equal(pid, 4711);
        assert_string_equal(program, "/home/ada/mesh");
        assert_false(core_file_read_notes(notes, 8, &pid, program, sizeof(program)));
        assert_string_equal(program, "");
}

TEST(damaged_notes_do_no_harm)
{
        char notes[1024] = { 0 }, program[8];
        size_t len = put_notes(notes);

        for (size_t n = 0; n <= len; n++)
                for (size_t at = 0; at < n; at++) {
                        CLEANUP(free_textp) char *text = malloc(n);
                        pid_t pid;

                        memcpy(text, notes, n);
                        text[at] = (char)0xff;
                        core_file_read_notes(text, n, &pid, program, sizeof(program));
                }
}

/* --- the core of a child ---------------------------------------------------------------------- */

static pid_t crash_in(const char *folder, rlim_t limit, bool *ret_dumped)
{
        const struct rlimit l = { limit, limit };
        pid_t pid = fork();
        int status;

        if (!pid) {
                signal(SIGABRT, SIG_DFL);
                if (chdir(folder) == 0 && setrlimit(RLIMIT_CORE, &l) == 0)
                        abort();
                _exit(1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        *ret_dumped = WCOREDUMP(status);
        return pid;
}

static bool pattern_is_a_name(void)
{
        CLEANUP(free_textp) char *pattern = NULL;

        return fd_read_file("/proc/sys/kernel/core_pattern", 4096, &pattern, NULL) == 0 &&
               *pattern != '|' && *pattern != '/';
}

TEST(the_core_of_a_process_is_found)
{
        char folder[] = "/tmp/core_file.XXXXXX", why[200] = "";
        struct core_file f = { 0 };

        if (!pattern_is_a_name())
                skip();
        assert_non_null(mkdtemp(folder));
        f.pid = crash_in(folder, 64 << 10, &f.dumped); /* cut: the memory of a sanitizer is large */
        if (!f.dumped)
                skip();
        f.cwd = folder;
        assert_true(core_file_find(&f, why, sizeof(why)));
        assert_memory_equal(f.path, folder, strlen(folder));
        assert_non_null(strstr(f.program, "core_file"));
        f.pid++;
        assert_false(core_file_find(&f, why, sizeof(why)));
        assert_non_null(strstr(why, "process"));
        unlink(f.path);
        f.cwd = "/nowhere";
        assert_false(core_file_find(&f, why, sizeof(why)));
        assert_non_null(strstr(why, "as /nowhere/"));
        rmdir(folder);
}

TEST(a_limit_of_0_is_the_reason)
{
        const struct rlimit zero = { 0, 1000 }, none = { 0, 0 };
        struct core_file f = { .pid = 1 << 22, .cwd = "/nowhere" };
        char why[200];

        if (!pattern_is_a_name())
                skip();
        setrlimit(RLIMIT_CORE, &zero);
        assert_false(core_file_find(&f, why, sizeof(why)));
        assert_string_equal(why, "ulimit -c is 0 (ulimit -c unlimited allows them)");
        setrlimit(RLIMIT_CORE, &none);
        assert_false(core_file_find(&f, why, sizeof(why)));
        assert_string_equal(why, "ulimit -c is 0, and so is its hard limit");
        f.dumped = true; /* the process has raised it */
        assert_false(core_file_find(&f, why, sizeof(why)));
        assert_non_null(strstr(why, "there is none of process 4194304 as /nowhere/"));
}
