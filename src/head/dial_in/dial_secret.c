/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret made by people is stretched by Argon2id to become the psk: an eavesdropper can try
 * guesses against a greeting, and each guess costs as much memory and time as here. Texts are wiped
 * after reading, and the variable is overwritten before the first start of a process: neither ranks
 * nor /proc/PID/environ show the secret.
 *
 * The file in the home is named by job and port. Node 0 makes the file after opening the port: a
 * second start on the same port fails before, and does not replace the file of the first. The other
 * nodes read the file before each call: a file left by an earlier start of the job costs a call
 * only. Each reading opens the folder anew, because NFS asks the server for names missing before
 * only then.
 */
#include "head/dial_in/dial_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/dial_in/dial_munge.h"
#include "head/run/run_folders.h"

#define SECRET_VARIABLE "HNLAUNCH_DIAL_SECRET"

enum {
        SECRET_FILE_MAX = 4096,
        STRETCH_TIMES = 2, /* with 19 MiB: OWASP's least for Argon2id */
        STRETCH_MEMORY = 19 << 20,
};

static char published[PATH_MAX]; /* "": no file */

/* --- a given secret --------------------------------------------------------------------------- */

/* Judges the readers and writers of a file with a secret. */
static int check_secret_file(const struct stat *st, const char *path, bool mounted, struct diags *d)
{
        if (!S_ISREG(st->st_mode))
                return 0; /* <(command), for example */
        /* Platforms mount secrets as root. */
        if (st->st_uid != geteuid() && st->st_uid != 0) {
                diag_help(diag_add(d, HN_SECRET_UNUSABLE, EX_NOPERM,
                                   "the dial-in secret %s belongs to user %u", path,
                                   (unsigned)st->st_uid),
                          "make one of your own: openssl rand -hex 32");
                return -EPERM;
        }
        if (st->st_mode & (S_IWGRP | S_IWOTH)) {
                diag_help(diag_add(d, HN_SECRET_UNUSABLE, EX_NOPERM,
                                   "the dial-in secret %s can be written by others", path),
                          "make a new one, for you alone: (umask 077; openssl rand -hex 32 >%s)",
                          path);
                return -EPERM;
        }
        /* Mounted secrets have mode 0444 or 0644, which the user cannot change. */
        if (st->st_mode & (S_IRGRP | S_IROTH) && !mounted)
                diag_help(diag_warn(d, HN_SECRET_SEEN,
                                    "the dial-in secret %s can be read by others, who can join the "
                                    "job",
                                    path),
                          "make a new one, for you alone: (umask 077; openssl rand -hex 32 >%s)",
                          path);
        return 0;
}

/* Reads the secret of a file, malloc'ed. 0, or -errno with an error in @d; -ENOENT: a mounted file
 * is not there. */
static int load_secret_file(const char *path, bool mounted, char **ret, struct diags *d)
{
        CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        struct stat st;
        int r;

        if (fd < 0 && mounted && (errno == ENOENT || errno == ENOTDIR))
                return -ENOENT;
        r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
        if (r == 0 && check_secret_file(&st, path, mounted, d) < 0)
                return -EPERM;
        if (r == 0)
                r = fd_read_all(fd, SECRET_FILE_MAX, ret, NULL);
        if (r < 0)
                diag_add(d, HN_SECRET_UNUSABLE, EX_NOINPUT, "cannot read the dial-in secret %s: %s",
                         path, strerror(-r));
        /* -ENOENT is for a mounted file alone. */
        return r == -ENOENT ? -EIO : r;
}

/* Takes the variable's value out of the environment; malloc'ed, or NULL. */
static char *take_secret_variable(void)
{
        char *variable = getenv(SECRET_VARIABLE), *text = variable ? xstrdup(variable) : NULL;

        if (variable) {
                sodium_memzero(variable, strlen(variable));
                unsetenv(SECRET_VARIABLE);
        }
        return text;
}

/* Makes the psk of a secret, which is wiped. */
static int stretch_secret(uint8_t psk[NOISE_KEY], char *text, struct diags *d)
{
        /* The same on all nodes, for the same key. */
        static const unsigned char salt[crypto_pwhash_SALTBYTES] = "hnlaunch dial-in";
        /* The first line of a file counts. */
        size_t len = strcspn(text, "\r\n");
        int r = -EINVAL;

        if (len < DIAL_SECRET_MIN)
                diag_help(diag_add(d, HN_SECRET_UNUSABLE, EX_CONFIG,
                                   "the dial-in secret has %zu characters, needs %d", len,
                                   DIAL_SECRET_MIN),
                          "make one for each job: openssl rand -hex 32");
        else if (crypto_pwhash(psk, NOISE_KEY, text, len, salt, STRETCH_TIMES, STRETCH_MEMORY,
                               crypto_pwhash_ALG_ARGON2ID13) < 0)
                diag_help(diag_add(d, HN_SECRET_UNUSABLE, EX_FAILED,
                                   "the dial-in secret cannot be stretched: %s", strerror(errno)),
                          "it needs %d MiB of memory, see ulimit -v", STRETCH_MEMORY >> 20);
        else
                r = 0;
        sodium_memzero(text, strlen(text));
        free(text);
        return r;
}

/* --- the file in the home --------------------------------------------------------------------- */

/* Whether there is a home for the file. Notes the folder. */
static bool find_home_folder(struct dial_secret *s)
{
        CLEANUP(free_textp) char *folder = run_folders_dial_in();

        if (!folder || strlen(folder) >= sizeof(s->folder))
                return false;
        snprintf(s->folder, sizeof(s->folder), "%s", folder);
        return true;
}

/* Makes the secret of a job, on node 0. */
static void make_home_secret(struct dial_secret *s)
{
        uint8_t random[NOISE_KEY];

        randombytes_buf(random, sizeof(random));
        sodium_bin2hex(s->text, sizeof(s->text), random, sizeof(random));
        sodium_memzero(random, sizeof(random));
        dial_psk(s->psk, s->text);
}

/* Opens the folder, which must be the user's alone; -errno with @err. */
static int open_home_folder(const struct dial_secret *s, struct error *err)
{
        int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return err_set(err, errno, "cannot open %s: %s", s->folder, strerror(errno));
        if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077))
                return fd;
        fd_close(fd);
        return err_set(err, EPERM, "%s belongs to another user, or others may enter it", s->folder);
}

/* Writes the secret to a new file. 0, or -errno. */
static int write_home_file(const struct dial_secret *s, int folder)
{
        CLEANUP(fd_closep) int fd = -1;
        int r;

        /* O_EXCL accepts no file of an earlier start, nor of anybody else. */
        if (unlinkat(folder, s->file, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(folder, s->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        /* Before the content, so that the file is removed after a failure, too. */
        snprintf(published, sizeof(published), "%s/%s", s->folder, s->file);
        r = fchmod(fd, 0600) < 0 ? -errno : fd_write_all(fd, s->text, strlen(s->text));
        /* From here on the server of NFS has the bytes. */
        return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

int dial_secret_publish(struct dial_secret *s, struct error *err)
{
        CLEANUP(fd_closep) int folder = -1;
        int r;

        if (s->kind != DIAL_SECRET_HOME)
                return 0;
        r = run_folders_make(s->folder, err);
        folder = r < 0 ? r : open_home_folder(s, err);
        if (folder < 0)
                return folder;
        r = write_home_file(s, folder);
        sodium_memzero(s->text, sizeof(s->text));
        return r < 0 ? err_set(err, -r, "cannot write the secret of the job to %s/%s: %s",
                               s->folder, s->file, strerror(-r))
                     : 0;
}

/* Reads the file into s->text. 0; -ENOENT: incomplete; another -errno: no file of node 0. */
static int read_home_file(struct dial_secret *s, int folder)
{
        CLEANUP(fd_closep)
        int fd = openat(folder, s->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        const ssize_t len = sizeof(s->text) - 1;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                /* The file was replaced at the server of NFS; the next call finds the new file. */
                return errno == ESTALE ? -ENOENT : -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077 || st.st_nlink > 1)
                return -EPERM;
        /* Shorter: node 0 is still writing. */
        return read(fd, s->text, (size_t)len) == len ? 0 : -ENOENT;
}

int dial_secret_read(struct dial_secret *s, struct error *err)
{
        CLEANUP(fd_closep) int folder = -1;
        int r;

        if (s->kind != DIAL_SECRET_HOME)
                return 0;
        folder = open_home_folder(s, err);
        r = folder < 0 ? folder : read_home_file(s, folder);
        if (r == -ENOENT)
                return err_set(err, ENOKEY, "node 0 has not put the secret of the job at %s/%s",
                               s->folder, s->file);
        if (folder >= 0 && r < 0)
                return err_set(err, EPERM, "%s/%s is no file of the user alone", s->folder,
                               s->file);
        if (r < 0)
                return r;
        dial_psk(s->psk, s->text);
        sodium_memzero(s->text, sizeof(s->text));
        return 0;
}

void dial_secret_remove(void)
{
        if (*published)
                unlink(published);
        *published = '\0';
}

/* --- the choice ------------------------------------------------------------------------------- */

static int refuse_no_secret(struct diags *d)
{
        struct diag *di = diag_add(d, HN_SECRET_REFUSED, EX_NOPERM, "--dial-in has no secret");

        diag_note(di, "a program that takes the port of node 0 first could run programs as this "
                      "user on the other nodes");
        diag_row(di, "%-28s the same on every node", SECRET_VARIABLE "=SECRET");
        diag_row(di, "%-28s a file that is the same on every node", "--dial-secret FILE");
        diag_row(di, "%-28s a mounted secret (Kubernetes)", DIAL_SECRET_MOUNTED);
        diag_row(di, "%-28s by itself in a job of Slurm", "munge");
        diag_row(di, "%-28s made by itself in a job of Slurm, PBS, LSF, Grid Engine or Flux",
                 "a home that all nodes share");
        diag_help(di,
                  "make one for each job: openssl rand -hex 32; --dial-secret none goes without");
        return -EINVAL;
}

static void warn_no_secret(const struct dial_place *p, struct diags *d)
{
        diag_help(diag_warn(d, HN_NO_SECRET,
                            p->rank ? "dial-in without a secret: what answers at port %d of node 0 "
                                      "can run programs as this user here"
                                    : "dial-in without a secret: every program that reaches port "
                                      "%d of this node can join the job",
                            p->port),
                  "give every node the same " SECRET_VARIABLE
                  " or --dial-secret FILE: openssl rand -hex 32");
}

/* Chooses the kind for a job of a resource manager. */
static int find_job_secret(struct dial_secret *s, int port, struct diags *d)
{
        char job[DIAL_JOB_MAX];

        if (dial_env_job(dial_env_get, NULL, job) < 0)
                return refuse_no_secret(d);
        snprintf(s->file, sizeof(s->file), "%s.%d", job, port);
        /* Elsewhere munge on this node says nothing about the other nodes. */
        if (!strncmp(job, "slurm-", 6) && dial_munge_works())
                s->kind = DIAL_SECRET_MUNGE;
        else if (find_home_folder(s))
                s->kind = DIAL_SECRET_HOME;
        else
                return refuse_no_secret(d);
        return 0;
}

int dial_secret_find(struct dial_secret *s, const struct dial_place *p, const struct options *o,
                     struct diags *d)
{
        CLEANUP(free_textp) char *variable = take_secret_variable();
        char *text = NULL;
        int r;

        *s = (struct dial_secret){ .kind = DIAL_SECRET_GIVEN };
        if (o->dial_secret && !strcmp(o->dial_secret, "none")) {
                s->kind = DIAL_SECRET_NONE;
                warn_no_secret(p, d);
                r = 0;
        } else if (o->dial_secret) {
                r = load_secret_file(o->dial_secret, false, &text, d);
        } else if (variable) {
                text = STEAL(&variable);
                r = 0;
        } else {
                r = load_secret_file(DIAL_SECRET_MOUNTED, true, &text, d);
                if (r == -ENOENT)
                        r = find_job_secret(s, p->port, d);
        }
        /* Not used: --dial-secret comes first. */
        if (variable)
                sodium_memzero(variable, strlen(variable));
        if (r == 0 && text)
                r = stretch_secret(s->psk, text, d);
        /* The other nodes read the file of node 0. */
        if (r == 0 && s->kind == DIAL_SECRET_HOME && p->rank == 0)
                make_home_secret(s);
        return r < 0 ? -EINVAL : 0;
}
