/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_enter() finds the container's program, asks for the image or the container, so that the
 * usual faults are told before anything starts, looks at the node (devices, folders), and executes
 * the words of container_words.h. Into a running container the agent is copied first, by a shell
 * inside: a file copied by Docker belongs to root.
 */
#include "agent/container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/container/container_words.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/macros.h"
#include "base/program_output.h"
#include "base/token.h"

enum {
        ASK_MS = 30000, /* for an answer of the container's program */
        ANSWER_MAX = 64 << 10,
        GROUPS_MAX = 64,
        TOKEN_LEN = 12,
        ELF_MACHINE = 18, /* offset of e_machine in an ELF file, two bytes */
};

extern char **environ;

bool container_is_ordered(void)
{
        return getenv(CONTAINER_ORDER) != NULL;
}

/* Tells the head why the container cannot be entered. */
static int tell_refusal(const struct error *err)
{
        printf(CONTAINER_MARK "%s\n", err->text);
        fflush(stdout);
        return EX_UNAVAILABLE;
}

/* --- the container's program ------------------------------------------------------------------ */

static bool is_in_path(const char *program)
{
        const char *path = getenv("PATH");
        CLEANUP(free_textp) char *list = xstrdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
        char *rest = list, *folder;

        while ((folder = strsep(&rest, ":"))) {
                CLEANUP(free_textp)
                char *file = xasprintf("%s/%s", *folder ? folder : ".", program);

                if (access(file, X_OK) == 0)
                        return true;
        }
        return false;
}

/* Runs the program and waits for its answer. 0 with @ret_text unless NULL, or -errno with @err. */
static int ask_program(const char *const *argv, int in, char **ret_text, struct error *err)
{
        char *text;
        size_t len;
        int r = program_output(argv, in, ASK_MS, ANSWER_MAX, &text, &len, err);

        if (r < 0)
                return r;
        if (ret_text)
                *ret_text = text;
        else
                free(text);
        return 0;
}

/* Checks a running container. */
static int ask_for_container(const char *program, const char *name, struct error *err)
{
        const char *const argv[] = { program,    "container",          "inspect",
                                     "--format", "{{.State.Running}}", name,
                                     NULL };
        CLEANUP(free_textp) char *text = NULL;
        int r = ask_program(argv, SPAWN_NULL, &text, err);

        /* An engine without this container fails itself, and its message is the reason. */
        if (r == 0 && strncmp(text, "true", 4) != 0)
                r = err_set(err, ENOENT, "%s has it, but it is not running", program);
        return r;
}

/* Finds the engine of a running container. */
static int find_container(const struct container_order *o, struct container_site *s,
                          struct error *err)
{
        static const char *const engines[] = { "docker", "podman" };
        struct error first = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
                if (!is_in_path(engines[i]))
                        continue;
                if (ask_for_container(engines[i], o->name, err) == 0) {
                        s->program = engines[i];
                        return 0;
                }
                if (!first.code)
                        first = *err;
        }
        if (!first.code)
                return err_set(err, ENOENT, "neither docker nor podman is installed there");
        return err_set(err, ENOENT, "cannot use the container %.100s: %s", o->name, first.text);
}

/* Tells root's Docker, where containers run as root, from a Docker of the user. */
static bool is_engine_of_root(const struct container_order *o)
{
        const char *const argv[] = { "docker", "info", "--format", "{{.SecurityOptions}}", NULL };
        CLEANUP(free_textp) char *text = NULL;
        struct error err;

        return o->kind == CONTAINER_DOCKER && geteuid() != 0 &&
               ask_program(argv, SPAWN_NULL, &text, &err) == 0 && !strstr(text, "rootless");
}

/* Looks for the image if the name is a file: other names are known to the program only. */
static int find_image(const struct container_order *o, const struct container_site *s,
                      struct error *err)
{
        const char *const argv[] = { s->program, "image", "inspect", "--format",
                                     "{{.Id}}",  o->name, NULL };
        struct error why;
        int r = 0;

        if (o->kind == CONTAINER_DOCKER || o->kind == CONTAINER_PODMAN)
                r = ask_program(argv, SPAWN_NULL, NULL, &why);
        else if (*o->name == '/' && access(o->name, R_OK) < 0)
                r = err_set(&why, errno, "%s", strerror(errno));
        return r < 0 ? err_set(err, -r, "cannot use the image %.200s: %s", o->name, why.text) : 0;
}

/* Finds the program, and the image or the container. */
static int find_container_program(const struct container_order *o, struct container_site *s,
                                  struct error *err)
{
        static const char *const programs[] = {
                [CONTAINER_DOCKER] = "docker",
                [CONTAINER_PODMAN] = "podman",
                [CONTAINER_APPTAINER] = "apptainer",
                [CONTAINER_CHARLIECLOUD] = "ch-run",
        };

        if (o->kind == CONTAINER_EXEC)
                return find_container(o, s, err);
        s->program = programs[o->kind];
        if (o->kind == CONTAINER_APPTAINER && !is_in_path(s->program) && is_in_path("singularity"))
                s->program = "singularity";
        if (!is_in_path(s->program))
                return err_set(err, ENOENT,
                               "%s is not installed there, or not in PATH of a login "
                               "without a terminal",
                               s->program);
        return find_image(o, s, err);
}

/* --- the node --------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether a folder of the node may be mounted at the same place: not for folders of the system,
 * which the image has as well. */
static bool is_mountable(const char *dir)
{
        static const char *const system[] = { "/bin", "/dev",  "/etc", "/lib", "/lib64", "/proc",
                                              "/run", "/sbin", "/sys", "/usr", "/var",   "/tmp" };
        const char *second = *dir == '/' && dir[1] ? strchr(dir + 1, '/') : NULL;
        size_t len = second ? (size_t)(second - dir) : strlen(dir);

        /* A comma would end the path in the value of --mount. */
        if (*dir != '/' || !dir[1] || strchr(dir, ',') || !is_folder(dir))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(system); i++)
                if (strlen(system[i]) == len && !strncmp(dir, system[i], len))
                        return second && (!strcmp(system[i], "/tmp") || !strcmp(system[i], "/var"));
        return true;
}

/* Charliecloud: /tmp exists always, the home by an option, other folders if present in the
 * image. */
static void look_at_charliecloud(const struct container_order *o, struct container_site *s)
{
        CLEANUP(free_textp) char *inside = xasprintf("%s%s", o->name, o->dir);
        CLEANUP(free_textp) char *env = xasprintf("%s/ch/environment", o->name);
        const char *home = getenv("HOME"), *user = getenv("USER");
        CLEANUP(free_textp) char *usual = xasprintf("/home/%s", user ? user : "");
        size_t n = home ? strlen(home) : 0;

        s->image_env = access(env, R_OK) == 0;
        s->bind_home = s->bind_dir && n && !strcmp(home, usual) && !strncmp(o->dir, home, n) &&
                       strchr("/", o->dir[n]);
        if (s->bind_home || !strncmp(o->dir, "/tmp/", 5) || !is_folder(inside))
                s->bind_dir = false;
}

/* Lists the variables that the agent inside needs. */
static void list_inside_variables(const struct container_site *s, struct strv *names)
{
        static const char *const devices[] = { "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                               "ROCR_VISIBLE_DEVICES" };

        for (char **e = environ; *e; e++)
                if (!strncmp(*e, "HNLAUNCH_", 9) && strchr(*e, '='))
                        strv_push_mem(names, *e, strcspn(*e, "="));
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
                if (getenv(devices[i]))
                        strv_push(names, devices[i]);
        if (s->is_user && getenv("USER")) {
                strv_push(names, "USER");
                strv_push(names, "LOGNAME");
        }
}

/* --- entering --------------------------------------------------------------------------------- */

/* Copies this program into a running container, to @path. */
static int copy_agent(const struct container_order *o, const char *program, const char *path,
                      struct error *err)
{
        static const char script[] = "umask 077; cat >\"$0\" && chmod 700 \"$0\"";
        const char *const argv[] = { program, "exec",    "--interactive",
                                     o->name, "/bin/sh", "-c",
                                     script,  path,      NULL };
        CLEANUP(fd_closep) int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        struct error why;

        if (self < 0)
                return err_set(err, errno, "cannot read the agent: %s", strerror(errno));
        if (ask_program(argv, self, NULL, &why) < 0)
                return err_set(err, why.code, "cannot copy the agent into the container %.100s: %s",
                               o->name, why.text);
        return 0;
}

/* Prepares the files and folders of the kind. 0, or -errno with @err. */
static int prepare_entry(const struct container_order *o, const struct container_site *s,
                         struct error *err)
{
        int fd;

        if (o->kind == CONTAINER_EXEC)
                return copy_agent(o, s->program, s->agent, err);
        if (o->kind != CONTAINER_CHARLIECLOUD)
                return 0;
        setenv("USER", "user", 0); /* without it ch-run does not start */
        fd = open("/proc/self/exe", O_RDONLY);
        if (fd < 0 || dup2(fd, CONTAINER_AGENT_FD) < 0)
                return err_set(err, errno, "cannot open the agent: %s", strerror(errno));
        if (fd != CONTAINER_AGENT_FD)
                fd_close(fd);
        return 0;
}

/* Executes the container's program. Returns on failure only. */
static int execute_entry(const struct container_order *o, struct error *err)
{
        CLEANUP(strv_finish) struct strv argv = STRV_INIT, variables = STRV_INIT;
        char own[PATH_MAX], name[32], inside[64], token[TOKEN_LEN + 1];
        ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
        gid_t groups[GROUPS_MAX];
        /* Fails if the user has more groups: none is added then. */
        int n = getgroups(GROUPS_MAX, groups);
        struct container_site s = {
                .agent = o->kind == CONTAINER_EXEC ? inside : own,
                .name = name,
                .uid = geteuid(),
                .gid = getegid(),
                .groups = groups,
                .n_groups = (size_t)MAX(n, 0),
                .bind_dir = is_mountable(o->dir),
                .nvidia = access("/dev/nvidiactl", F_OK) == 0,
                .amd = access("/dev/kfd", F_OK) == 0,
                .infiniband = is_folder("/dev/infiniband"),
                .variables = &variables,
        };

        own[MAX(len, (ssize_t)0)] = '\0';
        /* Names are random: agents of several jobs may enter containers of one node at a time. */
        token_make(token, TOKEN_LEN);
        snprintf(name, sizeof(name), "hnlaunch-%s", token);
        snprintf(inside, sizeof(inside), "/tmp/.hnlaunch-agent-%s", token);
        if (find_container_program(o, &s, err) < 0)
                return -err->code;
        s.is_user = is_engine_of_root(o);
        s.is_root = s.is_user || geteuid() == 0;
        if (o->kind == CONTAINER_CHARLIECLOUD)
                look_at_charliecloud(o, &s);
        list_inside_variables(&s, &variables);
        if (prepare_entry(o, &s, err) < 0)
                return -err->code;
        container_words(o, &s, &argv);
        execvp(argv.v[0], argv.v);
        return err_set(err, errno, "cannot start %s: %s", argv.v[0], strerror(errno));
}

int container_enter(void)
{
        const char *text = getenv(CONTAINER_ORDER);
        CLEANUP(container_order_finish) struct container_order o = { 0 };
        struct error err;
        int r = container_order_decode(&o, text ? text : "", &err);

        /* The agent inside gets all variables HNLAUNCH_*, but not this one. */
        unsetenv(CONTAINER_ORDER);
        if (r == 0)
                r = execute_entry(&o, &err);
        return r < 0 ? tell_refusal(&err) : 0;
}

/* --- inside ----------------------------------------------------------------------------------- */

/* Returns the machine type of an ELF file, 0: it is none, or cannot be read. */
static unsigned read_machine_type(const char *path)
{
        unsigned char head[ELF_MACHINE + 2];
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || read(fd, head, sizeof(head)) != (ssize_t)sizeof(head) ||
            memcmp(head, "\177ELF", 4) != 0)
                return 0;
        return head[ELF_MACHINE] | (unsigned)head[ELF_MACHINE + 1] << 8;
}

/* Libraries of Python fill folders of the home, which a user without an entry in the image's
 * passwd does not have. */
static void choose_home(void)
{
        const char *home = getenv("HOME");

        if (!home || access(home, W_OK) < 0)
                setenv("HOME", "/tmp", 1);
}

/* 0 = go on as an agent; else the exit code, and the head was told. */
int container_arrive(bool remove)
{
        unsigned theirs = read_machine_type("/bin/sh");
        char own[PATH_MAX];
        ssize_t len = remove ? readlink("/proc/self/exe", own, sizeof(own) - 1) : -1;
        struct error err;

        if (len > 0) {
                own[len] = '\0';
                /* A running program needs no name. */
                unlink(own);
        }
        choose_home();
        if (!theirs || theirs == read_machine_type("/proc/self/exe"))
                return 0;
        err_set(&err, ENOEXEC, "the image is for another machine: its /bin/sh is of ELF machine %u",
                theirs);
        return tell_refusal(&err);
}
