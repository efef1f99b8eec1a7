/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/spawn.h"
#include "lib/files.h"
#include "lib/unit.h"

static char folder[64];

static char *in_folder(const char *name)
{
        return xasprintf("%s/%s", folder, name);
}

static void put_file(const char *name, const char *text, mode_t mode)
{
        CLEANUP(free_textp) char *path = in_folder(name);

        write_file(path, text);
        assert_int_equal(chmod(path, mode), 0);
}

static int make_folder(void **state UNUSED)
{
        strcpy(folder, "/tmp/test_spawn.XXXXXX");
        assert_non_null(mkdtemp(folder));
        put_file("say", "#!/bin/sh\necho \"$0\" \"$1\"\n", 0755);
        put_file("forbidden", "#!/bin/sh\n", 0644);
        put_file("garbage", "\x7f this is no program\n", 0755);
        put_file("orphan", "#!/nowhere/interpreter\n", 0755);
        return 0;
}

static int remove_folder(void **state UNUSED)
{
        static const char *const names[] = { "say", "forbidden", "garbage", "orphan" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                CLEANUP(free_textp) char *path = in_folder(names[i]);

                unlink(path);
        }
        return rmdir(folder);
}

static int wait_for(pid_t pid)
{
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

/* Runs @s with standard output in @out; returns the status. */
static int run(struct spawn s, struct buf *out)
{
        enum spawn_step step;
        struct error err = { 0 };
        int fds[2];
        pid_t pid;
        ssize_t n;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        s.fds[1] = fds[1];
        if (spawn_process(&pid, &s, &step, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(step, SPAWN_DONE);
        fd_close(fds[1]);
        while ((n = read(fds[0], buf_reserve(out, 4096), 4096)) > 0)
                buf_advance(out, (size_t)n);
        fd_close(fds[0]);
        buf_append(out, "", 1);
        return wait_for(pid);
}

static void expect_output(struct spawn s, const char *want)
{
        CLEANUP(buf_finish) struct buf out = BUF_INIT;

        assert_int_equal(run(s, &out), 0);
        assert_string_equal((const char *)buf_data(&out), want);
}

static void expect_failure(struct spawn s, enum spawn_step want, int error, const char *text)
{
        enum spawn_step step = SPAWN_DONE;
        struct error err = { 0 };
        pid_t pid = -7;

        assert_int_equal(spawn_process(&pid, &s, &step, &err), -error);
        assert_int_equal(step, want);
        assert_int_equal(err.code, error);
        if (!strstr(err.text, text))
                fail_msg("'%s' is not in '%s'", text, err.text);
        assert_int_equal(pid, -7);
        /* No child is left behind. */
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

/* A vector for exec out of literals; lives as long as the block. */
#define WORDS(...)    ((char **)(const char *[]){ __VA_ARGS__, NULL })
#define SHELL(script) WORDS("sh", "-c", script)
#define ON_NULL                                                                                    \
        {                                                                                          \
                SPAWN_NULL, SPAWN_NULL, SPAWN_INHERIT                                              \
        }

TEST(arguments_environment_and_folder_arrive)
{
        char **argv = WORDS("/bin/sh", "-c", "printf '%s|' \"$@\" \"$X\" \"$(pwd)\"; env | wc -l",
                            "zero", "", "a b\n\xff");
        char **env = WORDS("X=one two", "PATH=/usr/bin:/bin");
        struct spawn s = { .argv = argv, .env = env, .cwd = "/usr", .fds = ON_NULL };

        expect_output(s, "|a b\n\xff|one two|/usr|3\n"); /* PWD is the shell's own */
}

TEST(the_program_is_searched_in_the_childs_path)
{
        CLEANUP(free_textp)
        char *path = xasprintf("PATH=/nowhere:%s/say:/root/x:%s:/bin", folder, folder);
        CLEANUP(free_textp) char *want = xasprintf("%s/say hello\n", folder);
        char **argv = WORDS("say", "hello");
        char **env = WORDS(path);
        struct spawn s = { .argv = argv, .env = env, .fds = ON_NULL };

        expect_output(s, want);
}

TEST(relative_programs_and_empty_path_entries_count_from_cwd)
{
        char **relative = WORDS("./say", "r"), **plain = WORDS("say", "p");
        char **env = WORDS("PATH=/nowhere:");
        struct spawn s = { .argv = relative, .env = env, .cwd = folder, .fds = ON_NULL };

        expect_output(s, "./say r\n");
        s.argv = plain;
        expect_output(s, "say p\n");
}

TEST(without_path_the_usual_places_are_searched)
{
        char **env = WORDS("A=1");
        struct spawn s = { .argv = SHELL("echo $A"), .env = env, .fds = ON_NULL };

        expect_output(s, "1\n");
}

TEST(exec_failures_name_the_program)
{
        char **env = WORDS(xasprintf("PATH=%s:/bin", folder));
        const struct {
                const char *program;
                bool in_folder;
                int error;
                const char *text;
        } cases[] = {
                { "nothing-here", true, ENOENT, "nothing-here" },
                { "nothing-here", false, ENOENT, "cannot find 'nothing-here' in PATH" },
                { "", false, ENOENT, "cannot execute ''" },
                { "forbidden", true, EACCES, "Permission denied (mode 0644)" },
                { "forbidden", false, EACCES, "/forbidden': Permission denied (mode 0644)" },
                { "garbage", true, ENOEXEC, "Exec format error" },
                { "garbage", false, ENOEXEC, "/garbage': Exec format error" },
                { "orphan", true, ELIBACC,
                  "its interpreter '/nowhere/interpreter' does not exist" },
                { "say/x", true, ENOTDIR, "Not a directory" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *program = cases[i].in_folder ? in_folder(cases[i].program)
                                                   : xstrdup(cases[i].program);
                char **argv = WORDS(program);
                struct spawn s = { .argv = argv, .env = env, .fds = ON_NULL };

                expect_failure(s, SPAWN_EXEC, cases[i].error, cases[i].text);
                free(program);
        }
        free(env[0]);
}

TEST(a_missing_folder_is_told_apart_from_a_missing_program)
{
        struct spawn s = { .argv = SHELL("true"), .cwd = "/no/such", .fds = ON_NULL };

        expect_failure(s, SPAWN_CWD, ENOENT, "'/no/such'");
        s.cwd = "/etc/passwd";
        expect_failure(s, SPAWN_CWD, ENOTDIR, "'/etc/passwd'");
}

TEST(too_long_arguments_are_an_exec_failure)
{
        char **argv = WORDS("/bin/true", xcalloc(1, 256 << 10));
        struct spawn s = { .argv = argv, .fds = ON_NULL };

        memset(argv[1], 'x', (256 << 10) - 1); /* one string is limited to 128 KiB */
        expect_failure(s, SPAWN_EXEC, E2BIG, "/bin/true");
        free(argv[1]);
}

TEST(without_descriptors_no_process_is_started)
{
        struct rlimit old, low;
        struct spawn s = { .argv = SHELL("true"), .fds = ON_NULL };

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
        low = old;
        low.rlim_cur = 0;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        expect_failure(s, SPAWN_FORK, EMFILE, "cannot start a process for 'sh'");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

TEST(signals_are_as_new)
{
        char **argv = WORDS("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status");
        struct spawn s = { .argv = argv, .fds = ON_NULL };
        sigset_t set, old;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, &old);
        expect_output(s, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
        /* ... and the parent's are as before. */
        assert_ptr_equal(signal(SIGPIPE, SIG_IGN), SIG_IGN);
        assert_ptr_equal(signal(SIGHUP, SIG_IGN), SIG_IGN);
        sigprocmask(SIG_SETMASK, &old, &set);
        assert_true(sigismember(&set, SIGTERM));
        assert_false(sigismember(&set, SIGINT));
}

/* Kernels before 5.5 have no CLONE_CLEAR_SIGHAND, and some sandboxes no clone3. */
TEST(signals_are_as_new_without_clone3)
{
        struct sock_filter words[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = { ARRAY_SIZE(words), words };
        pid_t pid = fork();

        if (!pid) {
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
                        _exit(1);
                if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
                        _exit(2);
                test_signals_are_as_new(state);
                _exit(0);
        }
        assert_true(pid > 0);
        assert_int_equal(wait_for(pid), 0);
}

TEST(descriptors_of_the_parent_stay_there)
{
        struct spawn s = { .argv = SHELL("ls /proc/$$/fd | grep -x 77; readlink /proc/$$/fd/0"),
                           .fds = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
        int low = open("/etc/passwd", O_RDONLY | O_CLOEXEC), high = fcntl(low, F_DUPFD_CLOEXEC, 77);

        assert_int_equal(high, 77);
        expect_output(s, "/dev/null\n");
        fd_close(low);
        fd_close(high);
}

/* The descriptor for 0 is 1, and vice versa. */
TEST(standard_descriptors_can_change_places)
{
        char **argv = WORDS("cat");
        struct spawn s = { .argv = argv, .fds = { 1, 0, SPAWN_INHERIT } };
        int old_in = dup(0), old_out = dup(1), from[2], to[2], r;
        char text[8] = "";
        pid_t pid;

        assert_int_equal(pipe2(from, O_CLOEXEC), 0);
        assert_int_equal(pipe2(to, O_CLOEXEC), 0);
        assert_int_equal(write(from[1], "swap", 4), 4);
        dup2(to[1], 0);
        dup2(from[0], 1);
        r = spawn_process(&pid, &s, NULL, NULL);
        dup2(old_in, 0);
        dup2(old_out, 1);
        assert_int_equal(r, 0);
        fd_close(from[1]);
        fd_close(to[1]);
        assert_int_equal(wait_for(pid), 0);
        assert_int_equal(read(to[0], text, sizeof(text)), 4);
        assert_string_equal(text, "swap");
        fd_close(from[0]);
        fd_close(to[0]);
        fd_close(old_in);
        fd_close(old_out);
}

TEST(a_session_is_named_by_its_process)
{
        struct spawn s = { .argv = SHELL("sleep 60"), .fds = ON_NULL };
        pid_t pid;

        assert_int_equal(spawn_process(&pid, &s, NULL, NULL), 0);
        assert_int_equal(getsid(pid), pid);
        assert_int_equal(getpgid(pid), pid);
        assert_int_equal(kill(-pid, SIGKILL), 0);
        assert_int_equal(WTERMSIG(wait_for(pid)), SIGKILL);
}

/* A child starts a grandchild and is killed. The grandchild is inherited. */
TEST(a_child_dies_with_its_parent)
{
        struct spawn s = { .argv = SHELL("exec sleep 60"), .fds = ON_NULL };
        int fds[2], status;
        pid_t middle, pid = 0;

        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        assert_int_equal(pipe(fds), 0);
        middle = fork();
        if (!middle) {
                spawn_process(&pid, &s, NULL, NULL);
                if (write(fds[1], &pid, sizeof(pid)) != sizeof(pid))
                        _exit(1);
                pause();
        }
        assert_int_equal(read(fds[0], &pid, sizeof(pid)), sizeof(pid));
        kill(middle, SIGKILL);
        wait_for(middle);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
        fd_close(fds[0]);
        fd_close(fds[1]);
}

/* A folder that is no control group: the kernel refuses to start a child there, and the child joins
 * through the file, a plain file here. */
TEST(a_group_without_births_is_joined)
{
        char *procs = in_folder("cgroup.procs"), word[8] = "";
        int there = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct spawn s = { .argv = WORDS("true"), .cgroup = there, .fds = ON_NULL };
        CLEANUP(buf_finish) struct buf out = BUF_INIT;
        int fd;

        unlink(procs);
        expect_failure(s, SPAWN_FORK, ENOENT, "cannot start a process for 'true'");
        fd = open(procs, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(run(s, &out), 0);
        assert_int_equal(read(fd, word, sizeof(word)), 1);
        assert_string_equal(word, "0");
        fd_close(fd);
        fd_close(there);
        unlink(procs);
        free(procs);
}

static int wait_for_byte(void *ctx)
{
        char byte;

        return read(*(int *)ctx, &byte, 1) == 1 ? 0 : -EIO;
}

/* Called in the child before the exec. */
TEST(a_start_that_takes_long_can_be_looked_at)
{
        const char *argv[] = { "true", NULL };
        struct spawn s = { .argv = (char **)argv, .enter = wait_for_byte };
        struct spawning p;
        struct error err;
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        s.enter_ctx = &fds[0];
        assert_int_equal(spawn_begin(&p, &s, &err), 0);
        assert_false(spawn_wait(&p, 0));
        assert_false(spawn_wait(&p, 20));
        assert_int_equal(write(fds[1], "x", 1), 1);
        assert_true(spawn_wait(&p, 20000));
        assert_int_equal(spawn_confirm(&p, NULL, &err), 0);
        assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
        fd_close(fds[0]);
        fd_close(fds[1]);
}

static int handled[2]; /* a pipe, as that of an event loop */

static void tell_pipe(int signo)
{
        char byte = (char)signo;

        (void)!write(handled[1], &byte, 1);
}

TEST(a_signal_to_a_forked_child_is_none_to_the_parent)
{
        struct sigaction sa = { .sa_handler = tell_pipe }, before;
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(handled, O_CLOEXEC | O_NONBLOCK), 0);
        assert_int_equal(sigaction(SIGTERM, &sa, &before), 0);
        pid = fork_without_signals();
        if (!pid) {
                raise(SIGTERM);
                _exit(0);
        }
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(read(handled[0], &byte, 1), -1);
        /* The parent goes on as before. */
        raise(SIGTERM);
        assert_int_equal(read(handled[0], &byte, 1), 1);
        sigaction(SIGTERM, &before, NULL);
        fd_close(handled[0]);
        fd_close(handled[1]);
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN); /* before the first child */
        signal(SIGHUP, SIG_IGN);
        return unit_run(make_folder, remove_folder);
}
