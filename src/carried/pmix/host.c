/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_start() follows the steps of a PMIx host: server_init with private folders, register_nspace
 * with the description of the job, then register_client and setup_fork for each local rank. The
 * library ends a call by a callback. No other callback comes before all ranks are registered, so
 * the main thread waits for that event.
 *
 * The description has maps of nodes and ranks in plain lists, which every version reads, and no
 * node number for the job: with a node number, Open MPI 5 would put each rank on a node of its own.
 * Ranks of the node are listed, or Open MPI 4 would not let these ranks share memory. The library
 * answers calls missing in the module with "not supported".
 *
 * An event is malloc'ed and the address written to a pipe: writes of an address are atomic.
 */
#include "carried/pmix/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum { INFOS_MAX = 16 /* beside the infos of ranks */ };

static struct {
        const struct pmix_functions *f;
        const struct pmix_job *job;
        char nspace[256];
        bool connected_late; /* 5.0.8 and later know success without a callback */
        int pipe[2];
} host;

/* --- events: the library's thread ------------------------------------------------------------- */

static void post_event(const struct host_event *event)
{
        struct host_event *e = malloc(sizeof(*e));

        if (!e)
                abort(); /* the library's thread cannot report, and the agent sees the end */
        *e = *event;
        /* A full pipe blocks the library's thread until the main thread has taken events. */
        while (write(host.pipe[1], &e, sizeof(e)) < 0 && errno == EINTR)
                ;
}

/* Returns a copy with a NUL behind the bytes, also of 0 bytes. */
static unsigned char *copy_blob(const void *data, size_t n)
{
        unsigned char *copy = xcalloc(n + 1, 1);

        if (n)
                memcpy(copy, data, n);
        return copy;
}

/* Ends await_call(): type 0 marks the end of a call of the helper. */
static void on_own_call_done(int status, void *cbdata UNUSED)
{
        post_event(&(struct host_event){ .note.status = status });
}

/* Posts an event of a rank, which waits until the agent has the event. Without a callback the rank
 * does not wait; versions before 5.0.8 then take any status but success for an error. */
static int post_of_rank(struct host_event e, pmix_op_fn *fn, void *cbdata)
{
        e.done = fn;
        e.cbdata = cbdata;
        post_event(&e);
        return fn || !host.connected_late ? PMIX_SUCCESS : PMIX_OPERATION_SUCCEEDED;
}

static int on_client_connected(const struct pmix_proc *p, void *object UNUSED, pmix_op_fn *fn,
                               void *cbdata)
{
        return post_of_rank((struct host_event){ .type = PMIX_MSG_CONNECTED, .note.rank = p->rank },
                            fn, cbdata);
}

static int on_client_finalized(const struct pmix_proc *p, void *object UNUSED, pmix_op_fn *fn,
                               void *cbdata)
{
        return post_of_rank((struct host_event){ .type = PMIX_MSG_FINALIZED, .note.rank = p->rank },
                            fn, cbdata);
}

/* Does not release the rank: the stop of the job ends the rank. A released rank would close
 * connections, and ranks of other nodes would abort in turn, perhaps before the head has heard of
 * the first abort. */
static int on_client_abort(const struct pmix_proc *p, void *object UNUSED, int status,
                           const char *text, struct pmix_proc *procs UNUSED, size_t n UNUSED,
                           pmix_op_fn *fn, void *cbdata UNUSED)
{
        bool said = text && strcmp(text, "N/A") != 0; /* of Open MPI */
        size_t len = said ? strnlen(text, PMIX_TEXT_MAX) : 0;

        post_of_rank((struct host_event){ .type = PMIX_MSG_ABORT,
                                          .note = { .rank = p->rank,
                                                    .status = status,
                                                    .data = copy_blob(text, len),
                                                    .len = len } },
                     NULL, NULL);
        return fn || !host.connected_late ? PMIX_SUCCESS : PMIX_OPERATION_SUCCEEDED;
}

static int compare_members(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Notes the members of a fence in ascending order; all ranks: none. False: another namespace. */
static bool note_members(struct pmix_note *m, const struct pmix_proc *procs, size_t n)
{
        uint32_t *ranks = xcalloc(n + 1, sizeof(*ranks));

        for (size_t i = 0; i < n; i++) {
                bool all = procs[i].rank == PMIX_RANK_WILDCARD;

                if (strcmp(procs[i].nspace, host.nspace) != 0 || (all && n > 1)) {
                        free(ranks);
                        return false;
                }
                /* The wildcard stands alone and means all ranks, as an empty list does. */
                if (all)
                        n = 0;
                else
                        ranks[i] = procs[i].rank;
        }
        qsort(ranks, n, sizeof(*ranks), compare_members);
        m->ranks = ranks;
        m->n_ranks = (uint32_t)n;
        return true;
}

static int on_fence(const struct pmix_proc *procs, size_t n_procs,
                    const struct pmix_info *info UNUSED, size_t n_info UNUSED, char *data, size_t n,
                    pmix_modex_fn *fn, void *cbdata)
{
        struct host_event e = { .type = PMIX_MSG_FENCE, .answer = fn, .cbdata = cbdata };

        if (n > PMIX_BLOB_MAX || !note_members(&e.note, procs, n_procs))
                return PMIX_ERR_NOT_SUPPORTED;
        e.note.data = copy_blob(data, n);
        e.note.len = n;
        post_event(&e); /* the ranks wait until host_answer() */
        return PMIX_SUCCESS;
}

static int on_direct_modex(const struct pmix_proc *p, const struct pmix_info *info UNUSED,
                           size_t n_info UNUSED, pmix_modex_fn *fn, void *cbdata)
{
        if (strcmp(p->nspace, host.nspace) != 0)
                return PMIX_ERR_NOT_FOUND;
        post_event(&(struct host_event){
                .type = PMIX_MSG_WANT, .note.rank = p->rank, .answer = fn, .cbdata = cbdata });
        return PMIX_SUCCESS;
}

static void on_fetched(int status, char *data, size_t n, void *cbdata)
{
        bool good = status == PMIX_SUCCESS && n <= PMIX_BLOB_MAX;

        post_event(&(struct host_event){ .type = PMIX_MSG_FETCHED,
                                         .note = { .id = (uint32_t)(uintptr_t)cbdata,
                                                   .status = good ? 0 : PMIX_ERR_NOT_FOUND,
                                                   .data = copy_blob(data, good ? n : 0),
                                                   .len = good ? n : 0 } });
}

/* --- events: the main thread ------------------------------------------------------------------ */

int host_fd(void)
{
        return host.pipe[0];
}

struct host_event *host_take(void)
{
        struct host_event *e;
        ssize_t n;

        do
                n = read(host.pipe[0], &e, sizeof(e));
        while (n < 0 && errno == EINTR);
        return n == sizeof(e) ? e : NULL;
}

void host_event_free(struct host_event *e)
{
        free(e->note.ranks);
        free((void *)(uintptr_t)e->note.data);
        free(e);
}

void host_release(const struct host_event *e)
{
        if (e->done)
                e->done(PMIX_SUCCESS, e->cbdata);
}

void host_answer(const struct host_event *e, int status, const void *data, size_t n)
{
        char *copy = (char *)copy_blob(data, n);

        e->answer(status, copy, n, e->cbdata, free,
                  copy); /* the library frees the copy after use */
}

void host_fetch(uint32_t id, uint32_t rank)
{
        struct pmix_proc p = { .rank = rank };
        int r;

        memcpy(p.nspace, host.nspace, sizeof(p.nspace));
        /* The id of the request travels in the pointer for the callback. */
        r = host.f->dmodex_request(&p, on_fetched, (void *)(uintptr_t)id);
        if (r != PMIX_SUCCESS)
                on_fetched(r, NULL, 0, (void *)(uintptr_t)id);
}

/* --- the description of the job --------------------------------------------------------------- */

struct infos {
        struct pmix_info *v;
        size_t n;
};

static struct infos *make_infos(size_t max)
{
        struct infos *l = xcalloc(1, sizeof(*l));

        l->v = xcalloc(max, sizeof(*l->v));
        return l;
}

static struct pmix_value *add_info(struct infos *l, const char *key, uint16_t type)
{
        struct pmix_info *i = &l->v[l->n++];

        snprintf(i->key, sizeof(i->key), "%s", key);
        i->value.type = type;
        return &i->value;
}

/* The text stays the caller's. */
static void add_text(struct infos *l, const char *key, char *text)
{
        add_info(l, key, PMIX_STRING)->data.string = text;
}

static void add_number(struct infos *l, const char *key, uint32_t number)
{
        add_info(l, key, PMIX_UINT32)->data.uint32 = number;
}

static void add_short(struct infos *l, const char *key, uint32_t number)
{
        add_info(l, key, PMIX_UINT16)->data.uint16 = (uint16_t)number;
}

static int fail_step(int status, const char *step, struct error *err)
{
        return err_set(err, EIO, "%s failed: %s", step, host.f->error_string(status));
}

/* Waits for the end of an asynchronous call with the result @status. */
static int await_call(int status, const char *step, struct error *err)
{
        struct host_event *e;

        if (status == PMIX_SUCCESS) {
                e = host_take();
                status = e ? e->note.status : PMIX_ERROR;
                if (e)
                        host_event_free(e);
        }
        return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED
                       ? 0
                       : fail_step(status, step, err);
}

static int init_server(struct error *err)
{
        static struct pmix_module module = { .client_connected = on_client_connected,
                                             .client_finalized = on_client_finalized,
                                             .abort = on_client_abort,
                                             .fence = on_fence,
                                             .direct_modex = on_direct_modex };
        struct infos *l = make_infos(INFOS_MAX);
        int major = 0, minor = 0, release = 0, r;
        const char *version = host.f->get_version();

        /* The text is like "OpenPMIx 5.0.3rc1, ...": the number is the first in the text. */
        sscanf(version + strcspn(version, "0123456789"), "%d.%d.%d", &major, &minor, &release);
        host.connected_late = major > 5 || (major == 5 && (minor > 0 || release >= 8));
        add_text(l, "pmix.srvr.tmpdir", host.job->folder);
        add_text(l, "pmix.sys.tmpdir", host.job->folder);
        r = host.f->server_init(&module, l->v, l->n);
        return r == PMIX_SUCCESS ? 0 : fail_step(r, "PMIx_server_init", err);
}

/* Adds the list of ranks of this node, which the caller frees. */
static char *add_local_peers(struct infos *l)
{
        CLEANUP(buf_finish) struct buf list = BUF_INIT;
        char *text;

        for (uint32_t i = 0; i < host.job->n_local; i++)
                buf_printf(&list, i ? ",%u" : "%u", host.job->local[i]);
        text = buf_steal(&list);
        add_text(l, "pmix.lpeers", text);
        return text;
}

/* Makes a folder for the files of an Open MPI session; the agent removes the folder. */
static char *make_session_folder(const char *below, const char *name)
{
        char *path = xasprintf("%s/%s", below, name);

        mkdir(path, 0700);
        return path;
}

/* Adds the facts of a rank that the maps lack. The library requires local rank and node rank in the
 * array of a rank. */
static void describe_rank(struct infos *l, struct pmix_data_array *array, uint32_t local_rank,
                          char *folder)
{
        struct infos *own = make_infos(INFOS_MAX);

        add_info(own, "pmix.rank", PMIX_PROC_RANK)->data.uint32 = host.job->local[local_rank];
        add_number(own, "pmix.appnum", host.job->programs[local_rank]);
        /* The server knows one job, so local rank and node rank are equal. */
        add_short(own, "pmix.lrank", local_rank);
        add_short(own, "pmix.nrank", local_rank);
        add_text(own, "pmix.pdir", folder);
        *array = (struct pmix_data_array){ .type = PMIX_INFO, .size = own->n, .array = own->v };
        add_info(l, "pmix.pdata", PMIX_DATA_ARRAY)->data.darray = array;
}

/* The memory of the description is kept: the process ends with the job. */
static int register_job(struct error *err)
{
        const struct pmix_job *job = host.job;
        struct infos *l = make_infos(INFOS_MAX + job->n_local);
        struct pmix_data_array *arrays = xcalloc(job->n_local, sizeof(*arrays));
        char *session = make_session_folder(job->folder, "session");
        char name[16];

        add_number(l, "pmix.job.size", job->world_size);
        /* No rank is added later, so all sizes are equal. */
        add_number(l, "pmix.univ.size", job->world_size);
        add_number(l, "pmix.max.size", job->world_size);
        add_number(l, "pmix.job.napps", 1);
        add_text(l, "pmix.nmap", job->nodes);
        add_text(l, "pmix.pmap", job->ranks);
        add_local_peers(l);
        add_number(l, "pmix.local.size", job->n_local);
        add_info(l, "pmix.ndosub", PMIX_BOOL)->data.flag = job->oversubscribed;
        add_text(l, "pmix.tmpdir", job->folder);
        add_text(l, "pmix.nsdir", session);
        add_info(l, "pmix.tdir.rmclean", PMIX_BOOL)->data.flag = true;
        for (uint32_t i = 0; i < job->n_local; i++) {
                snprintf(name, sizeof(name), "%u", job->local[i]);
                describe_rank(l, &arrays[i], i, make_session_folder(session, name));
        }
        return await_call(host.f->register_nspace(host.nspace, (int)job->n_local, l->v, l->n,
                                                  on_own_call_done, NULL),
                          "PMIx_server_register_nspace", err);
}

static int register_rank(uint32_t rank, void (*env)(void *ctx, const struct pmix_env *m), void *ctx,
                         struct error *err)
{
        struct pmix_env m = { .rank = rank, .vars = STRV_INIT };
        struct pmix_proc p = { .rank = rank };
        char **vars = NULL;
        int r;

        memcpy(p.nspace, host.nspace, sizeof(p.nspace));
        r = await_call(
                host.f->register_client(&p, geteuid(), getegid(), NULL, on_own_call_done, NULL),
                "PMIx_server_register_client", err);
        if (r < 0)
                return r;
        r = host.f->setup_fork(&p, &vars);
        if (r != PMIX_SUCCESS)
                return fail_step(r, "PMIx_server_setup_fork", err);
        for (char **v = vars; v && *v; v++) {
                strv_push(&m.vars, *v);
                free(*v);
        }
        free(vars);
        env(ctx, &m);
        strv_finish(&m.vars);
        return 0;
}

int host_start(const struct pmix_functions *f, const struct pmix_job *job,
               void (*env)(void *ctx, const struct pmix_env *m), void *ctx, struct error *err)
{
        int r;

        host.f = f;
        host.job = job;
        snprintf(host.nspace, sizeof(host.nspace), "hnlaunch-%s-%u", job->run_id, job->restart);
        if (pipe(host.pipe) < 0)
                return err_set(err, EIO, "cannot make a pipe: %s", strerror(errno));
        r = init_server(err);
        if (r == 0)
                r = register_job(err);
        for (uint32_t i = 0; i < job->n_local && r == 0; i++)
                r = register_rank(job->local[i], env, ctx, err);
        return r;
}
