/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hnlaunch bad` lists the entries of the file that have not ended, and `bad clear HOST` removes
 * the entries of a host. Runs add entries at their end (head/launch/launch_bad_hosts.c); the file
 * and its rules are in head/run/bad_hosts.h.
 */
#include "head/commands/run_bad.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "head/core/json_text.h"
#include "head/run/bad_hosts.h"

static void print_bad_json(const struct bad_hosts *b)
{
        json_t *hosts = json_array(), *all;

        for (size_t i = 0; i < b->n; i++) {
                const struct bad_host *h = &b->v[i];

                json_array_append_new(hosts,
                                      json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "host",
                                                json_text(h->host), "reason", json_text(h->reason),
                                                "evidence", json_text(h->evidence), "run",
                                                json_text(h->run), "since", (json_int_t)h->since,
                                                "until", (json_int_t)h->until));
        }
        all = json_pack("{s:i, s:o}", "v", 1, "bad", hosts);
        json_write_plain(all, stdout);
        json_decref(all);
}

static void print_bad_table(const struct bad_hosts *b)
{
        int width = 4;

        if (!b->n)
                puts("no host is put out");
        for (size_t i = 0; i < b->n; i++)
                /* A longer name moves only the row of the host. */
                width = MAX(width, (int)MIN(strlen(b->v[i].host), 40));
        if (b->n)
                printf("%-*s  %-16s  %-7s  REASON\n", width, "HOST", "UNTIL", "RUN");
        for (size_t i = 0; i < b->n; i++) {
                const struct bad_host *h = &b->v[i];
                CLEANUP(free_textp) char *host = printable_text(h->host, PRINTABLE_ROW);
                CLEANUP(free_textp) char *run = printable_text(h->run, PRINTABLE_ROW);
                CLEANUP(free_textp) char *reason = printable_text(h->reason, PRINTABLE_ROW);
                time_t until = (time_t)h->until;
                char end[32] = "";
                struct tm tm;

                if (localtime_r(&until, &tm))
                        strftime(end, sizeof(end), "%Y-%m-%d %H:%M", &tm);
                printf("%-*s  %-16s  %-7s  %s\n", width, host, end, run, reason);
        }
}

/* Lines that are no entry are a warning: a newer hnlaunch may have written the lines. */
static int list_bad(const struct options *o, const char *path, struct diags *d)
{
        struct bad_hosts b;
        struct error err;

        if (bad_hosts_load(&b, path, time(NULL), &err) < 0) {
                diag_add(d, HN_BAD_HOSTS_FILE, EX_NOINPUT, "%s", err.text);
                return EX_NOINPUT;
        }
        if (b.broken)
                diag_warn(d, HN_BAD_HOSTS_FILE, "%s: %zu line%s no entry", path, b.broken,
                          b.broken == 1 ? " is" : "s are");
        if (o->json)
                print_bad_json(&b);
        else
                print_bad_table(&b);
        bad_hosts_finish(&b);
        return 0;
}

/* Removes the entries of a host, of any run. A host without an entry is an error, as the name may
 * be misspelled. */
static int clear_bad(const char *path, const char *host, struct diags *d)
{
        struct error err;
        int n = bad_hosts_remove(path, host, NULL, time(NULL), &err);

        if (n < 0)
                diag_add(d, HN_BAD_HOSTS_FILE, EX_CANTCREAT, "%s", err.text);
        else if (!n)
                diag_help(diag_add(d, HN_NOT_BAD, EX_NOINPUT, "%s is not put out", host),
                          "hnlaunch bad lists the hosts that are");
        return n < 0 ? EX_CANTCREAT : n ? 0 : EX_NOINPUT;
}

int run_bad_do(const struct options *o, struct diags *d)
{
        const char *word = o->argv.n ? o->argv.v[0] : "list";
        bool clears = !strcmp(word, "clear");
        CLEANUP(free_textp) char *path = bad_hosts_path(o->restart.bad_hosts);

        /* "list" may be left out, and takes no further word; "clear" takes one host. */
        if ((strcmp(word, "list") != 0 && !clears) ||
            o->argv.n != (clears ? 2 : MIN(o->argv.n, 1))) {
                diag_help(diag_add(d, HN_COMMAND_WORDS, EX_USAGE,
                                   "`bad` takes `list`, or `clear` and a host"),
                          "hnlaunch bad; hnlaunch bad clear gpu017");
                return EX_USAGE;
        }
        if (!path) {
                diag_add(d, HN_BAD_HOSTS_FILE, EX_NOINPUT,
                         "there is no home, and so no list of hosts");
                return EX_NOINPUT;
        }
        return clears ? clear_bad(path, o->argv.v[1], d) : list_bad(o, path, d);
}
