/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer reads the new records. One connection to the run waits for the end of the run, which
 * comes after the last record; a second connection stays open as long as this command is attached.
 * The order of an attachment: wait for run.json (await_record()), fill plan and hosts from the
 * record as a launch would, connect, find the place of the first output to show, then run the loop
 * until the run has ended and all output is printed, or the user leaves. A run that has ended
 * already is shown in the same way, without connections.
 */
#include "head/commands/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/printable.h"
#include "head/commands/attach_input.h"
#include "head/hosts/range.h"
#include "head/model/role_list.h"
#include "head/output/printer.h"
#include "head/output/say.h"
#include "head/run/output_file.h"
#include "head/run/run_records.h"
#include "head/term/diag.h"
#include "head/term/escapes.h"

enum {
        LOOK_MS = 50,          /* between two looks at the records */
        RECORD_MS = 5000,      /* how long run.json may take once nodes are connected */
        ORDER_MS = 10000,      /* for an answer of the run */
        PENDING_MAX = 4 << 20, /* bytes not yet written to the terminal */
        AGAIN = 64 << 10,      /* bytes at the end, perhaps never shown by a terminal */
        PLACES = 1024,         /* pieces among which the beginning is chosen */
};

static const int attach_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

struct attach {
        const struct options *o;
        const struct run *run;
        int dir; /* of the records, -1 = there are none */
        uv_loop_t loop;
        uv_timer_t look;
        uv_signal_t signals[ARRAY_SIZE(attach_signals)];
        uv_pipe_t end; /* the answer to "wait" */
        bool has_end;  /* @end is open */
        int attached;  /* the connection of "attach", -1 = none */
        bool owner;
        struct thread_pool *pool;
        struct plan plan;
        struct role_list roles; /* lends the plan the names */
        struct hosts hosts;
        struct printer *printer;
        struct output_file file;
        struct attach_input *input;
        struct attach_question *question;
        json_t *answer;
        struct attach_result {
                bool over, broken; /* broken: stdout cannot be written */
                int code;
                char text[1000]; /* the last line, "" = none */
                struct buf line; /* the answer to "wait" so far */
        } result;
};

/* --- where the output was left ---------------------------------------------------------------- */

/* Reads the place of the last attached command. False: there was none. */
static bool load_shown_place(const struct attach *a, struct output_place *ret)
{
        FILE *f = run_records_file(a->dir, "shown");
        unsigned long long file, at;
        bool good = f && fscanf(f, "%llu %llu", &file, &at) == 2;

        if (f)
                fclose(f);
        if (good)
                *ret = (struct output_place){ (int64_t)file, (off_t)at };
        return good;
}

/* Failing to keep the place is no error: the next command only shows more than needed. */
static void save_shown_place(const struct attach *a)
{
        struct output_place place = output_file_tell(&a->file);
        CLEANUP(fd_closep)
        int fd = openat(a->dir, "shown", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                        0600);

        if (fd >= 0)
                dprintf(fd, "%llu %llu\n", (unsigned long long)place.file,
                        (unsigned long long)place.at);
}

/* Finds where the terminal of the run has ended, or the end of the output, less AGAIN bytes. */
static struct output_place find_first_place(const struct attach *a)
{
        struct {
                struct output_place place;
                uint64_t len;
        } ring[PLACES];
        struct output_file f;
        struct output_piece p;
        size_t first = 0, n = 0;
        uint64_t total = 0;
        bool more = true;

        output_file_open(&f, a->dir, (struct output_place){ 0 });
        while (more) {
                struct output_place place = output_file_tell(&f);

                /* The mark is written when the run leaves its terminal: what lies before was shown
                 * there, at least up to the bytes in the terminal's own buffer. */
                more = output_file_next(&f, &p) && p.kind != OUTPUT_DETACHED;
                /* The ring keeps the newest pieces with AGAIN bytes in all. */
                while (n && (n == PLACES || total - ring[first].len >= AGAIN)) {
                        total -= ring[first].len;
                        first = (first + 1) % PLACES;
                        n--;
                }
                ring[(first + n) % PLACES].place = place;
                ring[(first + n++) % PLACES].len = more ? p.len : 0;
                total += more ? p.len : 0;
        }
        output_file_finish(&f);
        return ring[first].place;
}

/* --- output ----------------------------------------------------------------------------------- */

/* Leaves the loop with the exit code of the command. */
static void end_attach(struct attach *a, int code)
{
        a->result.over = true;
        a->result.code = code;
        uv_stop(&a->loop);
}

/* Tells a message of the launching hnlaunch. The file may contain anything. */
static void tell_message(struct attach *a, const struct output_piece *p)
{
        CLEANUP(buf_finish) struct buf clean = BUF_INIT;
        struct escapes e = ESCAPES_INIT;

        escapes_filter(&e, &clean, p->bytes, p->len, false);
        printer_tell(a->printer, (const char *)buf_data(&clean), buf_len(&clean));
}

/* Prints a piece of the records; ranks that run.json does not have are left out. */
static void print_piece(struct attach *a, const struct output_piece *p)
{
        if (p->kind == OUTPUT_GAP)
                say("(%llu bytes of output were not kept here)\n", (unsigned long long)p->len);
        else if (p->kind == OUTPUT_BYTES && p->rank < 0)
                tell_message(a, p);
        else if (p->kind == OUTPUT_BYTES && p->rank < a->plan.world_size && p->len)
                printer_put(a->printer, p->rank, p->stream, p->bytes, p->len);
}

/* Prints the available output, as far as the terminal keeps up. True: all is printed. */
static bool print_new(struct attach *a)
{
        struct output_piece p;

        while (printer_pending(a->printer) < PENDING_MAX) {
                if (!output_file_next(&a->file, &p))
                        return true;
                print_piece(a, &p);
        }
        return false;
}

/* Prints what has come. The run ends here only when its last record is printed; while a question
 * waits for a key nothing is printed over it. */
static void on_look(uv_timer_t *t)
{
        struct attach *a = t->data;

        if (!a->question && print_new(a) && a->answer)
                end_attach(a, (int)json_integer_value(json_object_get(a->answer, "code")));
}

/* The ranks have no credit from here: the launching hnlaunch reads their output. */
static void on_attach_credit(void *ctx UNUSED, int rank UNUSED, uint8_t stream UNUSED,
                             uint32_t bytes UNUSED)
{
}

/* Stops when standard output is gone. A reader that has left gives the code of SIGPIPE in a shell;
 * errors of standard error are ignored. */
static void on_attach_broken(void *ctx, uint8_t stream, const char *what, int error)
{
        struct attach *a = ctx;

        if (stream != MSG_STDOUT || a->result.broken)
                return;
        a->result.broken = true;
        snprintf(a->result.text, sizeof(a->result.text), "cannot write to %s: %s", what,
                 strerror(error));
        end_attach(a, error == EPIPE ? EX_SIGNAL + SIGPIPE : EX_CANTCREAT);
}

/* --- the run ---------------------------------------------------------------------------------- */

/* One buffer for all: each piece is copied before the next is read. */
static void provide_end_buffer(uv_handle_t *h UNUSED, size_t hint UNUSED, uv_buf_t *buf)
{
        static char piece[2048];

        *buf = uv_buf_init(piece, sizeof(piece));
}

/* The end of the run, or of hnlaunch. */
static void on_end(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
        struct attach *a = s->data;

        if (n > 0)
                buf_append(&a->result.line, buf->base, (size_t)n);
        if (n == 0 || (n > 0 && !memchr(buf->base, '\n', (size_t)n)))
                return;
        uv_read_stop(s);
        a->answer = json_loadb((const char *)buf_data(&a->result.line), buf_len(&a->result.line), 0,
                               NULL);
        if (!json_is_object(a->answer)) {
                json_decref(a->answer);
                /* The connection broke: the run may still have written its summary. */
                a->answer = run_load_summary(a->run->id);
        }
        if (!a->answer)
                a->answer = json_pack("{s:i, s:s}", "code", EX_FAILED, "verdict",
                                      "failed: its hnlaunch was killed  (exit 125)");
        attach_ask_end(a->question); /* a run at its end needs no answer */
        a->question = NULL;
}

/* Sends an order to the run and waits for the answer; silence is told unless the run has ended. */
static void send_order(struct attach *a, const char *what)
{
        struct error err;
        json_t *answer = run_ask(a->run->socket, json_pack("{s:s}", "do", what), ORDER_MS, &err);

        if (!answer && !a->answer)
                say("hnlaunch: run %s does not answer: %s\n", a->run->id, err.text);
        json_decref(answer);
}

/* Acts on the key of the question; key 0 means that the terminal is gone. */
static void on_answer(void *ctx, int key)
{
        struct attach *a = ctx;

        attach_ask_end(a->question);
        a->question = NULL;
        if (key == 's' || key == 'S')
                send_order(a, "stop");
        else if (key == 'd' || key == 'D' || !key)
                end_attach(a, 0);
        else
                say("hnlaunch: goes on\n");
}

/* Ctrl-C asks what to do, because the run goes on without this process; a second Ctrl-C detaches.
 * Ctrl-\ shows the ranks. */
static void on_attach_signal(uv_signal_t *s, int signo)
{
        struct attach *a = s->data;
        bool asks = signo == SIGINT && !a->question && !a->answer && attach_input_has_terminal();

        if (a->result.over)
                _exit(EX_SIGNAL + signo); /* the terminal does not take the rest */
        say_after_key();
        /* Ctrl-\ never ends the command: on a terminal the key is next to others. */
        if (signo == SIGQUIT) {
                if (a->question) /* output waits for the answer */
                        on_answer(a, signo);
                if (!a->answer)
                        send_order(a, "status");
                return;
        }
        if (asks)
                a->question = attach_ask(&a->loop, a->input, on_answer, a);
        if (asks && a->question) {
                say("hnlaunch: run %s: d detaches, s stops the run, another key goes on\n",
                    a->run->id);
                return;
        }
        end_attach(a, signo == SIGINT && a->question ? 0 : EX_SIGNAL + signo);
}

/* Connects to the run. False: the run has ended meanwhile, or does not answer. */
static bool connect_attach(struct attach *a, struct error *err)
{
        json_t *answer;
        int fd;

        /* Kept open: the run takes the end of this connection for the end of the attachment. */
        a->attached = run_request(a->run->socket, json_pack("{s:s}", "do", "attach"), err);
        answer = a->attached < 0 ? NULL : run_answer(a->attached, ORDER_MS, err);
        a->owner = json_is_true(json_object_get(answer, "owner"));
        json_decref(answer);
        fd = answer ? run_request(a->run->socket, json_pack("{s:s}", "do", "wait"), err) : -1;
        if (fd < 0)
                return false;
        uv_pipe_init(&a->loop, &a->end, 0);
        a->end.data = a;
        a->has_end = true;
        uv_pipe_open(&a->end, fd);
        uv_read_start((uv_stream_t *)&a->end, provide_end_buffer, on_end);
        return true;
}

/* Gives the run the standard input named by --stdin; `auto`: a terminal. */
static void open_input(struct attach *a)
{
        const struct options *o = a->o;
        struct error err;
        int fd = STDIN_FILENO;

        if (!a->owner || a->answer || o->stdin_mode == STDIN_NONE ||
            (o->stdin_mode == STDIN_AUTO && !attach_input_has_terminal()))
                return;
        if (o->stdin_mode == STDIN_FILE && (fd = open(o->stdin_file, O_RDONLY | O_CLOEXEC)) < 0) {
                say("hnlaunch: cannot read --stdin %s: %s\n", o->stdin_file, strerror(errno));
                return;
        }
        a->input = attach_input_open(&a->loop, a->run->socket, fd, &err);
        if (!a->input && o->stdin_mode != STDIN_AUTO)
                say("hnlaunch: run %s takes no input: %s\n", a->run->id, err.text);
}

/* --- the ranks -------------------------------------------------------------------------------- */

/* Fills plan and hosts from run.json. False: no ranks are recorded. */
static bool load_ranks(struct attach *a, const json_t *record)
{
        json_int_t n = json_integer_value(json_object_get(record, "world_size"));
        const json_t *nodes = json_object_get(record, "nodes"), *node, *rank;
        size_t i, k;

        if (n <= 0 || n > PLAN_MAX_RANKS)
                return false;
        a->plan.world_size = (int)n;
        a->plan.num_nodes = (int)json_integer_value(json_object_get(record, "num_nodes"));
        a->plan.ranks = xcalloc((size_t)n, sizeof(*a->plan.ranks));
        a->plan.n_nodes = json_array_size(nodes);
        a->plan.nodes = xcalloc(a->plan.n_nodes, sizeof(*a->plan.nodes));
        json_array_foreach(nodes, i, node)
        {
                const char *name = json_string_value(json_object_get(node, "host"));

                hosts_add(&a->hosts)->name = printable_text(name ? name : "", PRINTABLE_QUOTE);
                a->plan.nodes[i].host = i;
                a->plan.nodes[i].node_rank =
                        (int)json_integer_value(json_object_get(node, "node_rank"));
                json_array_foreach(json_object_get(node, "ranks"), k, rank)
                {
                        json_int_t r = json_integer_value(rank);

                        if (r >= 0 && r < n)
                                a->plan.ranks[r] = (struct plan_rank){ .rank = (int)r,
                                                                       .local_rank = (int)k,
                                                                       .node = (int)i };
                }
        }
        role_list_load(&a->roles, json_object_get(record, "roles"), (int)n);
        role_list_fill_plan(&a->roles, &a->plan);
        return a->plan.n_nodes;
}

/* Returns the ranks to be shown, by --show here or of the run; NULL = all. */
static bool *choose_shown(const struct attach *a, const json_t *record)
{
        const char *show =
                a->o->show ? a->o->show : json_string_value(json_object_get(record, "show"));
        struct intlist ranks = { 0 };
        struct range_error e;
        bool *shown = NULL;

        if (!show || !strcmp(show, "all") ||
            range_numbers(show, strlen(show), a->plan.world_size - 1, &ranks, &e) < 0)
                return NULL;
        shown = xcalloc((size_t)a->plan.world_size, sizeof(*shown));
        for (size_t i = 0; i < ranks.n; i++)
                shown[ranks.v[i]] = true;
        intlist_finish(&ranks);
        return shown;
}

/* Returns the template of the run, or of this command line; lent. */
static const char *choose_template(const struct attach *a, const json_t *record)
{
        const char *recorded = json_string_value(json_object_get(record, "label"));

        if (a->o->label == LABEL_NONE)
                return NULL;
        if (a->o->label == LABEL_TEMPLATE)
                recorded = a->o->label_template;
        /* The record has no addresses of nodes for such a template. */
        if (!recorded || label_needs_network(recorded))
                return label_default(&a->plan);
        return *recorded ? recorded : NULL;
}

/* --- from the first byte to the last ---------------------------------------------------------- */

/* Shows the output of the run, by the same printer as the run's own, until the run ends or the user
 * detaches. */
static void follow_run(struct attach *a, const json_t *record)
{
        bool *shown = choose_shown(a, record);
        struct printer_options po = {
                .pool = a->pool,
                .fd = { [MSG_STDOUT] = STDOUT_FILENO, [MSG_STDERR] = STDERR_FILENO },
                .label = choose_template(a, record),
                .raw = a->o->raw,
                .bare = -1,
                .erase = isatty(STDOUT_FILENO),
                .shown = shown,
                .window = UINT32_MAX
        };
        struct printer_ops ops = { on_attach_credit, on_attach_broken };

        a->printer = printer_create(&a->loop, &a->plan, &a->hosts, &po, ops, a);
        say_through(a->printer);
        open_input(a);
        uv_timer_start(&a->look, on_look, 0, LOOK_MS);
        uv_run(&a->loop, UV_RUN_DEFAULT);
        uv_timer_stop(&a->look);
        /* Also after a signal: the terminal gets its modes back before the last lines. */
        attach_ask_end(a->question);
        attach_input_close(a->input);
        printer_flush(a->printer);
        /* All that was read is shown, so that the kept place is true. A second signal ends even
         * this. */
        while (printer_pending(a->printer))
                uv_run(&a->loop, UV_RUN_ONCE);
        say_through(NULL);
        printer_destroy(a->printer);
        free(shown);
        if (a->owner && !a->result.broken)
                save_shown_place(a);
}

/* Whether a signal was ignored at the start, as left by nohup. */
static bool is_ignored(int signo)
{
        struct sigaction was;

        return signo != SIGTERM && sigaction(signo, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
}

/* Opens loop, thread and signal handlers. Signals that this process was told to ignore stay
 * ignored. */
static int open_attach(struct attach *a, struct error *err)
{
        int r = uv_loop_init(&a->loop);

        if (r < 0)
                return err_set(err, -r, "cannot start the event loop: %s", strerror(-r));
        a->pool = thread_pool_create(&a->loop, 1, err);
        uv_timer_init(&a->loop, &a->look);
        a->look.data = a;
        for (size_t i = 0; i < ARRAY_SIZE(attach_signals); i++) {
                uv_signal_init(&a->loop, &a->signals[i]);
                a->signals[i].data = a;
                if (!is_ignored(attach_signals[i]))
                        uv_signal_start(&a->signals[i], on_attach_signal, attach_signals[i]);
                uv_unref((uv_handle_t *)&a->signals[i]);
        }
        return 0;
}

/* Closes everything that was opened, in any state. The loop turns once more for the handles. */
static void close_attach(struct attach *a)
{
        uv_close((uv_handle_t *)&a->look, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(attach_signals); i++)
                uv_close((uv_handle_t *)&a->signals[i], NULL);
        if (a->has_end)
                uv_close((uv_handle_t *)&a->end, NULL);
        fd_close(a->attached);
        thread_pool_close(a->pool);
        uv_run(&a->loop, UV_RUN_DEFAULT);
        uv_loop_close(&a->loop);
        output_file_finish(&a->file);
        plan_finish(&a->plan);
        role_list_finish(&a->roles);
        hosts_finish(&a->hosts);
        json_decref(a->answer);
        buf_finish(&a->result.line);
        fd_close(a->dir);
}

/* Opens the records when they are there. NULL: not yet. */
static json_t *load_attach_record(struct attach *a)
{
        struct error err;

        if (a->dir < 0)
                a->dir = run_records_open(a->run->id, &err);
        return run_records_load(a->dir, "run.json");
}

/* Loads run.json, which is there soon after the ranks have been ordered to start. NULL: it does not
 * come. */
static json_t *await_record(struct attach *a)
{
        json_t *record;
        struct error err;
        int looks = 0;

        while (!(record = load_attach_record(a)) && a->run->state == RUN_GOES_ON &&
               looks < RECORD_MS / LOOK_MS) {
                json_t *info =
                        run_ask(a->run->socket, json_pack("{s:s}", "do", "info"), ORDER_MS, &err);
                const char *state = json_string_value(json_object_get(info, "state"));

                /* Connecting may take minutes; only the time after it is limited. */
                looks += !state || strcmp(state, "connecting") != 0;
                json_decref(info);
                usleep(LOOK_MS * 1000);
        }
        return record;
}

/* Adds the last line: why this command ended, else the verdict, else that the run goes on. */
static void tell_attach_end(const struct attach *a, struct diags *d)
{
        const char *verdict = json_string_value(json_object_get(a->answer, "verdict"));
        const char *missing = json_string_value(json_object_get(a->answer, "incomplete"));

        if (missing)
                diag_warn(d, HN_RECORDS_INCOMPLETE, "the records of run %s are incomplete: %s",
                          a->run->id, missing);
        if (*a->result.text)
                diag_tell(d, "%s", a->result.text);
        else if (verdict)
                diag_tell(d, "run %s: %s", a->run->id, verdict);
        else if (!a->o->quiet)
                diag_tell(d, "run %s goes on: hnlaunch attach %s", a->run->id, a->run->id);
}

int attach_run(const struct options *o, const struct run *r, struct diags *d)
{
        struct attach a = { .o = o, .run = r, .dir = -1, .attached = -1, .hosts = HOSTS_INIT };
        struct output_place place;
        struct error err = { 0 };
        json_t *record;
        int code = EX_NOINPUT;

        record = await_record(&a);
        if (open_attach(&a, &err) < 0) {
                diag_add(d, HN_RUN_SILENT, EX_FAILED, "%s", err.text);
                json_decref(record);
                fd_close(a.dir);
                return EX_FAILED;
        }
        if (r->state == RUN_ENDED)
                a.answer = json_incref(r->summary);
        if (!load_ranks(&a, record)) {
                diag_add(d, HN_NO_RECORDED_OUTPUT, code, "there is no recorded output of run %s",
                         r->id);
        } else if (!a.answer && !connect_attach(&a, &err) &&
                   !(a.answer = run_load_summary(r->id))) {
                code = EX_UNAVAILABLE;
                diag_add(d, HN_RUN_SILENT, code, "run %s does not answer: %s", r->id, err.text);
        } else {
                a.owner |= a.answer != NULL; /* the run has ended: no other command is attached */
                if (!load_shown_place(&a, &place))
                        place = find_first_place(&a);
                output_file_open(&a.file, a.dir, place);
                follow_run(&a, record);
                tell_attach_end(&a, d);
                code = a.result.code;
        }
        json_decref(record);
        close_attach(&a);
        return code;
}
