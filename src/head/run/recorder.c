/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers append to the pending buffer of a file under the lock. The thread takes all buffers at
 * once, in the order of enum record, and writes without the lock: at any time the summary on disk
 * is younger than the output. After the first error the thread only counts bytes, but still writes
 * the summary.
 *
 * Life: recorder_create() makes buffers only; recorder_open() starts the thread, which makes the
 * folder, writes what has waited, and writes until recorder_finish(). The thread removes the oldest
 * runs when this run has gone on for SETTLED_MS: removing takes longer than a short run. Short runs
 * remove them only when there are twice as many as are kept. A
 * thread that a file system holds up cannot be ended: recorder_finish() then leaves thread and
 * memory behind, and recorder_destroy() frees nothing.
 */
#include "head/run/recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "head/core/thread_pool.h"
#include "head/run/event_file.h"
#include "head/run/run_folders.h"
#include "head/run/run_list.h"
#include "head/run/run_records.h"
#include "wire/env/nccl_env.h"
#include "wire/msg.h"

enum {
        QUEUE_MAX = 2 << 20,    /* bytes of pending output */
        EVENTS_MAX = 64 << 20,  /* of pending events, which wait from the start on */
        TOUCH_MS = 60000,       /* the folder's time shows other machines a running run */
        SETTLED_MS = 1000,      /* the start is over, and the processors have time */
        ELSEWHERE_DAYS = 30,    /* then a run of another machine counts as killed */
        OUTPUT_MAX = 128 << 20, /* of a file of output; the file before is kept as well */
        BURST = 16 << 20,       /* bytes of output at any rate */
        RATE = 8 << 20,         /* then so many in a second: faster ranks need the processors */
        SUMMARY_ROOM = 16384,   /* needed by the file system beside the bytes of the summary */
};

/* By enum record; then the file of output before, and the place of `hnlaunch attach`. */
enum { OUTPUT_OLD = RECORDS };
static const char *const record_names[] = {
        "run.json",     "events.ndjson", "output",     "trace",
        "summary.json", "hang.txt",      "output.old", "shown"
};

/* Owned by the thread while it runs. */
struct record_files {
        int dir; /* -1 = there is none */
        int fd[RECORDS];
        uint64_t in_file, output; /* bytes of output in the file, and of the run */
        uint64_t events;          /* bytes in the file */
        int64_t bytes;            /* of all records */
        int64_t opened_ns, touched_ns;
        struct error err; /* code 0 = none */
};

/* After recorder_stand_alone(). */
struct recorder_alone {
        bool is_so, wants_room; /* room.call() is due */
        struct recorder_room room;
};

/* Awaited by recorder_await(). */
struct recorder_begin {
        bool over;
        struct error err; /* code 0 = none */
};

struct recorder {
        char *folder, *path, *elsewhere;
        struct recorder_keep keep;
        pthread_mutex_t lock;
        pthread_cond_t wake, ended;
        pthread_t thread;
        bool started, finishing, done, left_behind; /* done = no thread writes */
        struct recorder_begin begin;
        bool asleep; /* the thread waits for bytes */
        struct recorder_alone alone;
        struct buf pending[RECORDS];
        uint64_t gap;     /* bytes of output left out and not yet marked */
        bool has_gap;     /* at any time, because a write took SLOW_MS */
        int64_t taken_ns; /* when the thread took the present batch; 0 = no batch */
        struct record_files files;
};

/* --- old records: the thread ------------------------------------------------------------------ */

struct old_run {
        char name[64];
        struct timespec changed; /* modification time of the folder */
};

static bool is_safe_name(const char *name)
{
        return name[0] && name[0] != '.' && strlen(name) < sizeof(((struct old_run *)NULL)->name);
}

/* Whether a run without a summary may go on. On this machine, the process lives or the socket is
 * there; on another machine, the run has touched its folder within some weeks. */
static bool may_go_on(int run)
{
        json_t *j = run_records_load(run, record_names[RECORD_RUN]);
        const char *socket = json_string_value(json_object_get(j, "socket"));
        struct stat st = { 0 };
        bool may;

        fstat(run, &st);
        may = run_is_of_here(j) ? run_process_lives(j) || (socket && access(socket, F_OK) == 0)
                                : time(NULL) - st.st_mtime < ELSEWHERE_DAYS * INT64_C(86400);
        json_decref(j);
        return may;
}

/* Opens the folder of a run, also behind a link. */
static int open_run(int dir, const char *name)
{
        struct error err;

        return run_records_open_at(dir, name, &err);
}

/* Whether the entry is a run that has ended. A link to nowhere is one as well; files and folders of
 * the user are no runs. */
static bool has_run_ended(int dir, const struct old_run *old, bool is_link)
{
        CLEANUP(fd_closep) int fd = open_run(dir, old->name);
        struct stat st;

        if (fd < 0)
                return is_link && faccessat(dir, old->name, F_OK, 0) < 0 && errno == ENOENT;
        return fstatat(fd, record_names[RECORD_RUN], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISREG(st.st_mode) &&
               (faccessat(fd, record_names[RECORD_SUMMARY], F_OK, 0) == 0 || !may_go_on(fd));
}

/* Counts the bytes of the dumps of look @number, and removes the dumps if @remove. -1 = no such
 * folder. */
static int64_t scan_dumps(int run, int number, bool remove)
{
        CLEANUP(fd_closep) int fd = -1;
        int64_t bytes = 0;
        struct dirent *entry;
        struct stat st;
        char name[40];
        DIR *d;

        snprintf(name, sizeof(name), "flight-recorder-why-%d", number);
        fd = openat(run, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        d = fd < 0 ? NULL : fdopendir(dup(fd));
        while (d && (entry = readdir(d))) {
                if (strncmp(entry->d_name, NCCL_DUMP_NAME, sizeof(NCCL_DUMP_NAME) - 1) != 0)
                        continue;
                if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        bytes += st.st_size;
                if (remove)
                        unlinkat(fd, entry->d_name, 0);
        }
        if (d)
                closedir(d);
        if (remove)
                unlinkat(run, name, AT_REMOVEDIR);
        return fd < 0 ? -1 : bytes;
}

/* Returns the bytes of the records and dumps of a run; answers of `hnlaunch why` are small. Looks
 * are numbered from 1 without a gap, so the first missing number ends the search. */
static int64_t measure_run(int dir, const struct old_run *old)
{
        CLEANUP(fd_closep) int fd = open_run(dir, old->name);
        struct stat st;
        int64_t bytes = 0, dumps;

        for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(record_names); i++)
                if (fstatat(fd, record_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
                        bytes += st.st_size;
        for (int i = 1; fd >= 0 && (dumps = scan_dumps(fd, i, false)) >= 0; i++)
                bytes += dumps;
        return bytes;
}

/* Orders the newest run first. */
static int compare_age(const void *a, const void *b)
{
        const struct timespec *x = &((const struct old_run *)a)->changed;
        const struct timespec *y = &((const struct old_run *)b)->changed;

        return x->tv_sec != y->tv_sec ? (x->tv_sec < y->tv_sec) - (x->tv_sec > y->tv_sec)
                                      : (x->tv_nsec < y->tv_nsec) - (x->tv_nsec > y->tv_nsec);
}

/* Removes the file of the @number-th `hnlaunch why`. False: there is none. */
static bool remove_answer(int run, int number)
{
        char name[32];

        snprintf(name, sizeof(name), "why-%d.txt", number);
        return unlinkat(run, name, 0) == 0;
}

/* Removes only files made by hnlaunch, so that a folder with files of the user stays. A link is
 * removed, its target stays. The folder itself goes when nothing else is left in it. */
static void remove_run(int dir, const char *name)
{
        CLEANUP(fd_closep) int fd = -1;
        struct stat st;

        if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
                unlinkat(dir, name, 0);
                return;
        }
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(record_names); i++)
                unlinkat(fd, record_names[i], 0);
        for (int i = 1; fd >= 0 && remove_answer(fd, i); i++)
                ;
        for (int i = 1; fd >= 0 && scan_dumps(fd, i, true) >= 0; i++)
                ;
        unlinkat(dir, name, AT_REMOVEDIR);
}

/* Lists the ended runs, the newest first; malloc'ed. */
static struct old_run *list_old_runs(const struct recorder *r, int dir, size_t *ret_n)
{
        DIR *entries = dir < 0 ? NULL : fdopendir(dup(dir));
        const char *own = strrchr(r->path, '/') + 1;
        struct old_run *runs = NULL;
        struct dirent *entry;
        struct stat st;
        size_t n = 0, cap = 0;

        while (entries && (entry = readdir(entries))) {
                const char *name = entry->d_name;

                if (!is_safe_name(name) || !strcmp(name, own) ||
                    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (n == cap)
                        runs = xrealloc(runs, cap = MAX(2 * cap, (size_t)32), sizeof(*runs));
                runs[n] = (struct old_run){ .changed = st.st_mtim };
                memcpy(runs[n].name, name, strlen(name) + 1);
                n += has_run_ended(dir, &runs[n], S_ISLNK(st.st_mode));
        }
        if (entries)
                closedir(entries);
        if (n)
                qsort(runs, n, sizeof(*runs), compare_age);
        *ret_n = n;
        return runs;
}

/* Keeps the newest runs, including this run with @bytes; @bytes -1 = of any size, which saves
 * measuring. */
static void remove_oldest(const struct recorder *r, int64_t bytes)
{
        CLEANUP(fd_closep) int fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        size_t n = 0;
        struct old_run *runs = list_old_runs(r, fd, &n);

        for (size_t i = 0; i < n; i++) {
                bytes += bytes < 0 ? 0 : measure_run(fd, &runs[i]);
                /* The present run is one of those to keep. Behind the first run that exceeds the
                 * bytes, all older ones go, too. */
                if (i + 1 >= (size_t)r->keep.runs || bytes > r->keep.bytes)
                        remove_run(fd, runs[i].name);
        }
        free(runs);
}

/* --- files: the thread ------------------------------------------------------------------------ */

/* Makes the folder of the run, or the link to @elsewhere, and opens it. 0, or -errno with
 * files.err; a folder that was made and cannot be opened leaves files.err alone. */
static int make_run_folder(struct recorder *r)
{
        struct error *err = &r->files.err;

        if (run_folders_make(r->folder, err) < 0)
                return -err->code;
        if (r->elsewhere ? symlink(r->elsewhere, r->path) < 0 : mkdir(r->path, 0700) < 0)
                return err_set(err, errno, "cannot make %s: %s", r->path, strerror(errno));
        r->files.dir = run_records_open_at(AT_FDCWD, r->path, err);
        if (r->files.dir >= 0)
                *err = (struct error){ 0 };
        return 0;
}

/* Shows commands on other machines that the run goes on. */
static void touch_folder(struct recorder *r)
{
        if (clock_ns() - r->files.touched_ns < TOUCH_MS * INT64_C(1000000))
                return;
        r->files.touched_ns = clock_ns();
        futimens(r->files.dir, NULL);
}

/* Keeps a full file of output as the old file. */
static void turn_output(struct recorder *r)
{
        int dir = r->files.dir;

        r->files.fd[RECORD_OUTPUT] = fd_close(r->files.fd[RECORD_OUTPUT]);
        r->files.in_file = 0;
        if (renameat(dir, record_names[RECORD_OUTPUT], dir, record_names[OUTPUT_OLD]) < 0)
                /* The bytes go if the renaming fails: a file of output must
                 * not grow without a limit. */
                unlinkat(dir, record_names[RECORD_OUTPUT], 0);
}

/* Removes old lines of an events file that has become too long. */
static int shorten_events(struct recorder *r)
{
        int fd;

        if (r->files.events <= EVENT_FILE_MAX)
                return 0;
        fd = event_file_shorten(r->files.dir, record_names[RECORD_EVENTS], &r->files.events);
        if (fd < 0)
                return fd;
        fd_close(r->files.fd[RECORD_EVENTS]);
        r->files.fd[RECORD_EVENTS] = fd;
        return 0;
}

/* Cuts bytes off the end of the output. A last piece without its end tells readers that output is
 * missing. */
static int cut_output(struct recorder *r, off_t bytes)
{
        int fd = r->files.fd[RECORD_OUTPUT];
        struct stat st;

        return fd < 0 || fstat(fd, &st) < 0 ? -1 : ftruncate(fd, MAX(st.st_size - bytes, 0));
}

/* Whether the record is written even with --log-dir, which has the other records already. */
static bool goes_elsewhere(enum record record)
{
        return record == RECORD_OUTPUT || record == RECORD_HANG || record == RECORD_TRACE;
}

/* Appends to the file of the record, which is made if needed. Another run.json replaces the first.
 */
static int append_record(struct recorder *r, enum record record, const struct buf *b)
{
        struct record_files *f = &r->files;
        int ret;

        /* Whole batches are counted, so that a file begins with the head of a piece. */
        if (record == RECORD_OUTPUT && (f->in_file += buf_len(b)) > OUTPUT_MAX)
                turn_output(r);
        if (f->fd[record] < 0)
                f->fd[record] = openat(f->dir, record_names[record],
                                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        else if (record == RECORD_RUN &&
                 (ftruncate(f->fd[record], 0) < 0 || lseek(f->fd[record], 0, SEEK_SET) < 0))
                return -errno;
        ret = f->fd[record] < 0 ? -errno : fd_write_all(f->fd[record], buf_data(b), buf_len(b));
        if (ret || record != RECORD_EVENTS)
                return ret;
        f->events += buf_len(b);
        return shorten_events(r);
}

/* Writes a batch of a record, if the record belongs here. 0, or -errno; the first error of the run
 * is kept, and cuts the newline of the last piece of output, which marks the output as cut. */
static int write_record(struct recorder *r, enum record record, const struct buf *b)
{
        int ret;

        if (!buf_len(b) || (r->elsewhere && !goes_elsewhere(record)))
                return 0;
        ret = append_record(r, record, b);
        if (ret == 0 || r->files.err.code)
                return ret;
        cut_output(r, 1);
        return err_set(&r->files.err, -ret, "cannot write %s/%s: %s", r->path, record_names[record],
                       strerror(-ret));
}

/* Writes the summary. A run without one would seem to have been killed, so on a full disk the
 * summary takes the place of the last output. */
static void keep_summary(struct recorder *r, const struct buf *b)
{
        int ret = write_record(r, RECORD_SUMMARY, b), fd = r->files.fd[RECORD_SUMMARY];

        if ((ret != -ENOSPC && ret != -EDQUOT) ||
            cut_output(r, (off_t)buf_len(b) + SUMMARY_ROOM) < 0)
                return;
        if (fd < 0 || (ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0))
                write_record(r, RECORD_SUMMARY, b);
}

static void write_batch(struct recorder *r, struct buf batch[RECORDS])
{
        r->files.output += buf_len(&batch[RECORD_OUTPUT]);
        for (int i = 0; i < RECORDS; i++) {
                r->files.bytes += (int64_t)buf_len(&batch[i]);
                if (i == RECORD_SUMMARY)
                        keep_summary(r, &batch[i]);
                else if (!r->files.err.code)
                        write_record(r, (enum record)i, &batch[i]);
                buf_clear(&batch[i]); /* keeps the memory for the next batch */
        }
}

static struct timespec make_deadline(int ms)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec += ms / 1000;
        t.tv_nsec += ms % 1000 * 1000000L;
        if (t.tv_nsec >= 1000000000L) {
                t.tv_sec++;
                t.tv_nsec -= 1000000000L;
        }
        return t;
}

/* Takes pending bytes, waiting for @ms at most. False = no more will come. The buffers are
 * exchanged, not copied: empty ones of the last batch take the next bytes. True without bytes: the
 * time has passed. */
static bool take_batch(struct recorder *r, struct buf batch[RECORDS], int ms)
{
        struct timespec until = make_deadline(ms);
        bool any = false, over = false;

        pthread_mutex_lock(&r->lock);
        while (!any && !over) {
                for (int i = 0; i < RECORDS; i++) {
                        any |= buf_len(&r->pending[i]) > 0;
                        struct buf taken = r->pending[i];

                        r->pending[i] = batch[i];
                        batch[i] = taken;
                }
                r->taken_ns = any ? clock_ns() : 0;
                if (any && r->alone.wants_room)
                        r->alone.room.call(r->alone.room.ctx);
                r->alone.wants_room &= !any;
                if (any || r->finishing)
                        break;
                r->asleep = true;
                over = pthread_cond_timedwait(&r->wake, &r->lock, &until) != 0;
                r->asleep = false;
        }
        pthread_mutex_unlock(&r->lock);
        return any || over;
}

/* Waits while the output is ahead of the rate, unless the run is over or must leave nothing out. */
static void keep_rate(struct recorder *r)
{
        int64_t ns = r->files.output <= BURST
                             ? 0
                             : (int64_t)((r->files.output - BURST) * 1000 / RATE) * 1000000;
        struct timespec until = { (r->files.opened_ns + ns) / 1000000000,
                                  (r->files.opened_ns + ns) % 1000000000 };
        int over = 0;

        if (r->files.opened_ns + ns <= clock_ns())
                return;
        pthread_mutex_lock(&r->lock);
        r->taken_ns = 0;
        /* New bytes do not end the pause: only recorder_finish() and
         * recorder_stand_alone() signal here. */
        while (!r->finishing && !r->alone.is_so && !over)
                over = pthread_cond_timedwait(&r->wake, &r->lock, &until);
        pthread_mutex_unlock(&r->lock);
}

/* Tells recorder_await() that the run has records, or has failed to make records. */
static void set_begun(struct recorder *r)
{
        pthread_mutex_lock(&r->lock);
        r->begin = (struct recorder_begin){ true, r->files.err };
        pthread_cond_signal(&r->ended);
        pthread_mutex_unlock(&r->lock);
}

/* Counts runs, with this run and those of the user's files that lie among them. */
static int count_runs(const struct recorder *r)
{
        DIR *entries = opendir(r->folder);
        struct dirent *entry;
        int n = 0;

        while (entries && (entry = readdir(entries)))
                n += is_safe_name(entry->d_name);
        if (entries)
                closedir(entries);
        return n;
}

/* Whether it is time to remove the oldest of @runs runs. */
static bool is_removal_due(const struct recorder *r, int runs)
{
        return runs > 2 * r->keep.runs ||
               (runs > r->keep.runs &&
                clock_ns() - r->files.opened_ns >= SETTLED_MS * INT64_C(1000000));
}

/* The thread of the recorder: writes batches until the run ends, and removes old runs when the run
 * has settled and, for a large run, at the end. */
static void *run_recorder(void *arg)
{
        struct recorder *r = arg;
        struct buf batch[RECORDS] = { 0 };
        bool made = make_run_folder(r) == 0;
        int runs = 0; /* in the folder, until the oldest are removed */

        r->files.opened_ns = r->files.touched_ns = clock_ns();
        if (r->elsewhere)
                set_begun(r); /* run.json is there already */
        for (bool first = true; take_batch(r, batch, runs > r->keep.runs ? SETTLED_MS : TOUCH_MS);
             first = false) {
                write_batch(r, batch);
                if (first)
                        set_begun(r);
                if (first && made)
                        runs = count_runs(r);
                if (is_removal_due(r, runs)) {
                        remove_oldest(r, -1);
                        runs = 0;
                }
                touch_folder(r);
                keep_rate(r);
        }
        for (int i = 0; i < RECORDS; i++) {
                fd_close(r->files.fd[i]);
                buf_finish(&batch[i]);
        }
        fd_close(r->files.dir);
        /* A run with little output cannot make the sum of all runs too large. */
        if (r->files.bytes > r->keep.bytes / 1024)
                remove_oldest(r, r->files.bytes);
        pthread_mutex_lock(&r->lock);
        r->done = true;
        pthread_cond_signal(&r->ended);
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

/* --- the caller ------------------------------------------------------------------------------- */

struct recorder *recorder_create(const char *folder, const char *run, const char *elsewhere,
                                 struct recorder_keep keep)
{
        struct recorder *r = xcalloc(1, sizeof(*r));
        pthread_condattr_t attr;

        r->folder = xstrdup(folder);
        r->path = xasprintf("%s/%s", folder, run);
        r->elsewhere = elsewhere ? xstrdup(elsewhere) : NULL;
        r->keep = keep;
        pthread_mutex_init(&r->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&r->wake, &attr);
        pthread_cond_init(&r->ended, &attr);
        pthread_condattr_destroy(&attr);
        r->files.dir = -1;
        for (int i = 0; i < RECORDS; i++)
                r->files.fd[i] = -1;
        return r;
}

void recorder_open(struct recorder *r)
{
        int error;

        if (r->started || r->done)
                return;
        error = thread_start(&r->thread, run_recorder, r);
        r->started = !error;
        if (!error)
                return;
        err_set(&r->files.err, error, "cannot start a thread: %s", strerror(error));
        /* Without a thread nothing is recorded: recorder_await() and
         * recorder_finish() tell the error. */
        r->begin.err = r->files.err;
        r->done = true;
}

/* With the lock. A busy thread looks at the buffers again anyway, which saves a system call for
 * each line of output. */
static void wake_thread(struct recorder *r)
{
        if (r->asleep)
                pthread_cond_signal(&r->wake);
}

void recorder_put(struct recorder *r, enum record record, const void *data, size_t len)
{
        if (!r || (r->elsewhere && !goes_elsewhere(record)))
                return;
        pthread_mutex_lock(&r->lock);
        if (record == RECORD_RUN)
                buf_clear(&r->pending[record]);
        if (record != RECORD_EVENTS || buf_len(&r->pending[record]) + len <= EVENTS_MAX)
                buf_append(&r->pending[record], data, len);
        else
                r->has_gap = true;
        wake_thread(r);
        pthread_mutex_unlock(&r->lock);
}

/* With the lock. Writes the gap in front of the next piece, so that readers see
 * where bytes are missing. */
static void mark_gap(struct recorder *r, int64_t us)
{
        if (r->gap)
                buf_printf(&r->pending[RECORD_OUTPUT], "%lld - gap %llu\n", (long long)us,
                           (unsigned long long)r->gap);
        r->gap = 0;
}

bool recorder_put_output(struct recorder *r, int64_t us, int rank, uint8_t stream, const void *data,
                         size_t len)
{
        bool stuck, room;
        struct buf *b;

        if (!r || !len)
                return true;
        b = &r->pending[RECORD_OUTPUT];
        pthread_mutex_lock(&r->lock);
        /* A file system that takes so long may never answer. Ranks must not wait for it. */
        stuck = r->taken_ns && clock_ns() - r->taken_ns > RECORDER_SLOW_MS * INT64_C(1000000);
        if (buf_len(b) + len > QUEUE_MAX && (!r->alone.is_so || stuck)) {
                r->gap += len;
                /* Output that is only too fast is marked in the file; a stuck disk
                 * is told at the end, too. */
                r->has_gap |= stuck;
        } else {
                mark_gap(r, us);
                buf_printf(b, "%lld %d %s %zu\n", (long long)us, rank,
                           stream == MSG_STDOUT ? "out" : "err", len);
                buf_append(b, data, len);
                buf_append(b, "\n", 1);
        }
        room = !r->alone.is_so || stuck || r->done || buf_len(b) < QUEUE_MAX / 2;
        r->alone.wants_room |= !room;
        wake_thread(r);
        pthread_mutex_unlock(&r->lock);
        return room;
}

void recorder_stand_alone(struct recorder *r, int64_t us, struct recorder_room room)
{
        pthread_mutex_lock(&r->lock);
        r->alone.room = room;
        r->alone.is_so = true;
        mark_gap(r, us);
        buf_printf(&r->pending[RECORD_OUTPUT], "%lld - detached\n", (long long)us);
        pthread_cond_signal(&r->wake);
        pthread_mutex_unlock(&r->lock);
}

int recorder_await(struct recorder *r, struct error *err)
{
        struct timespec until = make_deadline(RECORDER_SLOW_MS);
        int late = 0, ret = 0;

        pthread_mutex_lock(&r->lock);
        while (!r->begin.over && !r->done && !late)
                late = pthread_cond_timedwait(&r->ended, &r->lock, &until);
        if (!r->begin.over && !r->done)
                ret = err_set(err, ETIME, "%s is too slow", r->folder);
        else if (r->begin.err.code)
                ret = err_set(err, r->begin.err.code, "%s", r->begin.err.text);
        pthread_mutex_unlock(&r->lock);
        return ret;
}

bool recorder_has_failed(struct recorder *r)
{
        bool ret;

        pthread_mutex_lock(&r->lock);
        ret = r->begin.err.code != 0;
        pthread_mutex_unlock(&r->lock);
        return ret;
}

int recorder_finish(struct recorder *r, int ms, struct error *err)
{
        struct timespec until = make_deadline(ms);
        int late = 0;

        if (!r->started && !r->done)
                return 0;
        pthread_mutex_lock(&r->lock);
        mark_gap(r, 0);
        r->finishing = true;
        pthread_cond_signal(&r->wake);
        while (!r->done && !late)
                late = pthread_cond_timedwait(&r->ended, &r->lock, &until);
        r->left_behind = !r->done;
        r->alone.wants_room = false;
        pthread_mutex_unlock(&r->lock);
        if (r->left_behind)
                return err_set(err, ETIME, "%s is too slow", r->folder);
        if (r->files.err.code)
                *err = r->files.err;
        else if (r->has_gap)
                return err_set(err, ENOSPC, "part of the output was left out of %s/output",
                               r->path);
        return r->files.err.code ? -r->files.err.code : 0;
}

void recorder_destroy(struct recorder *r)
{
        if (!r || r->left_behind)
                return;
        if (r->started)
                pthread_join(r->thread, NULL);
        for (int i = 0; i < RECORDS; i++)
                buf_finish(&r->pending[i]);
        pthread_mutex_destroy(&r->lock);
        pthread_cond_destroy(&r->wake);
        pthread_cond_destroy(&r->ended);
        free(r->folder);
        free(r->path);
        free(r->elsewhere);
        free(r);
}
