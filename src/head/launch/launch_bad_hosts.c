/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts are compared with the file by name, before the filters of the plan. A launch with
 * --restart auto, --spares or --nodes MIN:MAX leaves bad hosts out: a spare host with as many slots
 * moves into the place of each bad host, so that ranks keep their order, and then all bad hosts
 * leave the list. If too few are left, the launch ends with an error. Any other launch only warns.
 * Trouble with the file is told once and never ends a launch.
 */
#include "head/launch/launch_bad_hosts.h"

#include <stdlib.h>
#include <time.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/printable.h"
#include "head/launch/launch_private.h"
#include "head/options/option_table.h"
#include "head/run/bad_hosts.h"

/* Returns the path of the file, malloc'ed; NULL: the launch has none. */
static char *find_bad_file(const struct launch *l)
{
        const char *given = l->o->restart.bad_hosts;

        if (l->o->local || l->config->dial_in || (given && !strcmp(given, "none")))
                return NULL;
        return bad_hosts_path(given);
}

/* Warns of the file once in a launch; @effect is what follows from it. */
static void warn_of_bad_file(struct launch *l, const char *text, const char *effect)
{
        if (l->end.told & TOLD_BAD_FILE)
                return;
        l->end.told |= TOLD_BAD_FILE;
        diag_note(diag_warn(&l->diags, HN_BAD_HOSTS_FILE, "%s", text), "%s", effect);
}

static bool leaves_bad_out(const struct options *o)
{
        /* Hosts of -w are wanted by the user. */
        return (o->restart.automatic || options_replace_nodes(o)) && !o->hostlists.n;
}

/* Tells the hosts at @index in one line. */
static void tell_left_out(const struct launch *l, const struct bad_hosts *b, const size_t *index,
                          size_t n)
{
        const struct bad_host *first = bad_hosts_find(b, l->hosts.v[*index].name);
        CLEANUP(free_textp) char *names = hosts_fold(&l->hosts, index, n);
        CLEANUP(free_textp) char *reason = printable_text(first->reason, PRINTABLE_ROW);
        CLEANUP(free_textp) char *run = printable_text(first->run, PRINTABLE_ROW);

        log_line(LOG_WARN,
                 "without %s, put out by earlier runs (%s%srun %s); hnlaunch bad lists %s", names,
                 n == 1 ? reason : "", n == 1 ? ", " : "", run, n == 1 ? "it" : "them");
}

/* Tells the reason for the use, and the next step. */
static void help_with_bad(const struct options *o, struct diag *d)
{
        if (o->restart.automatic || options_replace_nodes(o))
                diag_help(d, "-w names hosts to be used: name others, or take one back with "
                             "hnlaunch bad clear HOST");
        else if (option_belongs(option_by_name("spares"), o->command))
                diag_help(d, "--restart auto, --spares and --nodes MIN:MAX leave such hosts out; "
                             "hnlaunch bad clear HOST takes one back");
        else
                diag_help(d, "hnlaunch bad clear HOST takes one back");
}

/* The same for hosts of run.leave_out. */
static void tell_given(const struct launch *l, const size_t *index, size_t n)
{
        CLEANUP(free_textp) char *names = hosts_fold(&l->hosts, index, n);

        log_line(LOG_WARN, "without %s (run.leave_out)", names);
}

static void warn_of_use(struct launch *l, const struct bad_hosts *b, const size_t *index, size_t n)
{
        struct diag *d =
                diag_warn(&l->diags, HN_BAD_HOST_USED, "%zu host%s put out by an earlier run", n,
                          n == 1 ? " was" : "s were");

        for (size_t i = 0; i < MIN(n, 8); i++) {
                const struct bad_host *h = bad_hosts_find(b, l->hosts.v[index[i]].name);

                diag_row(d, "%s: %s (run %s)", h->host, h->reason, h->run);
        }
        if (n > 8)
                diag_row(d, "... and %zu more", n - 8);
        help_with_bad(l->o, d);
}

/* Gives the place of a bad host to a good spare host; the bad host becomes spare. */
static void move_spare_in(struct hosts *hosts, const struct bad_hosts *b, size_t bad)
{
        struct host was = hosts->v[bad];

        for (size_t i = 0; i < hosts->n && !was.spare; i++) {
                struct host *h = &hosts->v[i];

                if (!h->spare || h->slots < was.slots || bad_hosts_find(b, h->name))
                        continue;
                hosts->v[bad] = *h;
                hosts->v[bad].spare = false;
                *h = was;
                h->spare = true;
                return;
        }
}

/* Leaves the @n hosts at @index, which are in @b, out of the list; or adds an error: too few would
 * be left. */
static void leave_out(struct launch *l, const struct bad_hosts *b, const size_t *index, size_t n)
{
        size_t left = l->hosts.n - n;
        int least = options_min_nodes(l->o);
        bool given = !b->v[0].run; /* by run.leave_out */
        struct diag *d = NULL;
        bool *keep;

        if (!left)
                d = diag_add(&l->diags, HN_ALL_HOSTS_BAD, EX_UNAVAILABLE, "every host was %s",
                             given ? "left out by run.leave_out" : "put out by an earlier run");
        else if (left < (size_t)least)
                d = diag_add(&l->diags, HN_ALL_HOSTS_BAD, EX_UNAVAILABLE,
                             "%zu of %zu hosts %s %s, and at least %d are needed", n, l->hosts.n,
                             n == 1 ? "was" : "were",
                             given ? "left out by run.leave_out" : "put out by earlier runs",
                             least);
        if (d) {
                diag_help(d, "%s",
                          given ? "give further hosts, or leave -o run.leave_out out (hnlaunch "
                                  "rerun --without-bad gives it)"
                                : "hnlaunch bad lists them with reasons, hnlaunch bad clear HOST "
                                  "takes one back, --bad-hosts none uses all");
                return;
        }
        if (given)
                tell_given(l, index, n);
        else
                tell_left_out(l, b, index, n);
        for (size_t i = 0; i < n; i++)
                /* @index stays valid: hosts trade places, and none leaves yet. */
                move_spare_in(&l->hosts, b, index[i]);
        keep = xcalloc(l->hosts.n, sizeof(*keep));
        for (size_t i = 0; i < l->hosts.n; i++)
                keep[i] = !bad_hosts_find(b, l->hosts.v[i].name);
        hosts_retain(&l->hosts, keep);
        free(keep);
}

/* Sets @index to the hosts listed in @b. Returns their number. */
static size_t find_listed(const struct launch *l, const struct bad_hosts *b, size_t *index)
{
        size_t n = 0;

        for (size_t i = 0; i < l->hosts.n && b->n; i++)
                if (bad_hosts_find(b, l->hosts.v[i].name))
                        index[n++] = i;
        return n;
}

/* Leaves hosts of run.leave_out out, as bad ones without a run. */
static void leave_given_out(struct launch *l)
{
        const struct strv *names = &l->o->restart.leave_out;
        struct bad_hosts b = { .v = xcalloc(names->n + 1, sizeof(*b.v)), .n = names->n };
        size_t *index = xcalloc(l->hosts.n, sizeof(*index)), n;

        for (size_t i = 0; i < b.n; i++)
                b.v[i].host = names->v[i]; /* lent */
        n = find_listed(l, &b, index);
        if (n)
                leave_out(l, &b, index, n);
        free(index);
        free(b.v);
}

void launch_bad_hosts_apply(struct launch *l)
{
        CLEANUP(free_textp) char *path = find_bad_file(l);
        struct bad_hosts b;
        struct error err;
        size_t *index, n;

        /* Also of a launch without a file of bad hosts. */
        leave_given_out(l);
        if (!path || diags_errors(&l->diags))
                return;
        if (bad_hosts_load(&b, path, time(NULL), &err) < 0) {
                warn_of_bad_file(l, err.text, "hosts that earlier runs have put out are not known");
                return;
        }
        if (b.broken) {
                err_set(&err, 0, "%s: %zu line%s no entry", path, b.broken,
                        b.broken == 1 ? " is" : "s are");
                warn_of_bad_file(l, err.text, "the other lines are used");
        }
        index = xcalloc(l->hosts.n, sizeof(*index));
        n = find_listed(l, &b, index);
        if (n && leaves_bad_out(l->o))
                leave_out(l, &b, index, n);
        else if (n)
                warn_of_use(l, &b, index, n);
        free(index);
        bad_hosts_finish(&b);
}

void launch_bad_hosts_add(struct launch *l, const char *host, const char *reason,
                          const char *evidence)
{
        CLEANUP(free_textp) char *path = find_bad_file(l);
        int64_t now = time(NULL);
        struct bad_host h = { .host = (char *)host,
                              .reason = (char *)reason,
                              .evidence = (char *)evidence,
                              .run = l->config->run_id,
                              .since = now,
                              .until = now + BAD_HOST_S };
        struct error err;

        if (path && bad_hosts_add(path, &h, now, &err) < 0)
                warn_of_bad_file(l, err.text, "later runs do not know of hosts that were put out");
}

void launch_bad_hosts_acquit(struct launch *l, const char *host)
{
        CLEANUP(free_textp) char *path = find_bad_file(l);
        struct error err;

        if (path && bad_hosts_remove(path, host, l->config->run_id, time(NULL), &err) < 0)
                warn_of_bad_file(l, err.text, "a host that is innocent may still be listed");
}
