/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spec is read item by item: take_filter_item() finds names and slots by the separators,
 * apply_item() expands both and notes each host in filter.whole or filter.part, the slots in
 * host.keep or host.drop. Nothing is dropped before all specs were read without an error; then
 * hosts_retain() keeps the included hosts without the excluded. -w beside -H parses the lists as
 * separate hosts and keeps the hosts of the file with the same names.
 */
#include "head/hosts/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_number.h"
#include "base/exit_code.h"
#include "head/hosts/hostfile.h"
#include "head/hosts/range.h"

enum {
        MAX_ERRORS = 20, /* of a filter; the rest is counted */
};

/* State of applying --include or --exclude. */
struct filter {
        struct hosts *hosts;
        struct diags *diags;
        const char *option, *spec; /* the spec at hand */
        size_t errors;
        bool exclude;
        bool *whole; /* by host: named without slots */
        bool *part;  /* by host: named with slots */
};

/* An item of a spec: names, and slots unless slots_at is 0. */
struct filter_item {
        size_t at, len, slots_at, slots_len;
};

/* Adds an error at spec[@at..@at+@len); NULL, which the diag_* functions take, when there are too
 * many already. */
static struct diag *add_filter_error(struct filter *f, int id, size_t at, size_t len,
                                     const char *fact, const char *label)
{
        struct diag *d;

        if (++f->errors > MAX_ERRORS)
                return NULL;
        d = diag_add(f->diags, id, EX_USAGE, "%s", fact);
        diag_place(d, "%s, column %zu", f->option, at + 1);
        diag_source(d, 0, f->spec, (int)at + 1, (int)len, '^', label);
        return d;
}

/* Adds an error of a range, with its place counted from @base. */
static void add_range_error(struct filter *f, size_t base, const struct range_error *e)
{
        add_filter_error(f, e->id, base + e->at, e->len, e->text, NULL);
}

/* ---- reading a spec ---- */

/* Whether an item ends here; the end of the text does. */
static bool is_separator(char c)
{
        return !c || strchr(",@ \t", c);
}

/* Returns the end of the names at spec[@at]. */
static size_t find_names_end(const char *spec, size_t at)
{
        return range_find(spec, at, strlen(spec), ":,@ \t");
}

/* Returns the end of an IPv6 address in brackets, which is no range; 0 = there is none. */
static size_t find_ipv6_end(const char *spec, size_t at)
{
        size_t len = spec[at] == '[' ? strcspn(spec + at, "]") : 0;

        return len && spec[at + len] && memchr(spec + at, ':', len) ? at + len + 1 : 0;
}

/* Returns the end of the slots, which continue behind a comma with a number or a range. */
static size_t find_slots_end(const char *spec, size_t at)
{
        for (;;) {
                size_t next;

                while (!is_separator(spec[at]))
                        at++;
                if (spec[at] != ',')
                        return at;
                /* "n1:0,2" has two slots, "n1:0,2nd" a slot and a host. */
                next = at + 1 + strspn(spec + at + 1, "0123456789-");
                if (next == at + 1 || !is_separator(spec[next]))
                        return at;
                at = next;
        }
}

/* Reads the item at spec[*at]; moves *at to the separator behind. */
static struct filter_item take_filter_item(const char *spec, size_t *at)
{
        struct filter_item item = { .at = *at };
        size_t end = find_ipv6_end(spec, *at);

        if (!end)
                end = find_names_end(spec, *at);
        item.len = end - *at;
        *at = end;
        if (spec[end] != ':')
                return item;
        item.slots_at = end + 1;
        *at = find_slots_end(spec, item.slots_at);
        item.slots_len = *at - item.slots_at;
        return item;
}

/* ---- applying ---- */

/* Adds an error for a name that is not in the list, with the nearest name; beyond MAX_ERRORS errors
 * are only counted. */
static void complain_unknown_host(struct filter *f, const struct filter_item *item,
                                  const char *name)
{
        char fact[RANGE_MAX_NAME + 64], label[RANGE_MAX_NAME + 64];
        const char **names;
        const char *near;

        /* The search for a near name goes through the whole list. */
        if (f->errors >= MAX_ERRORS) {
                f->errors++;
                return;
        }
        names = xcalloc(f->hosts->n, sizeof(*names));
        for (size_t i = 0; i < f->hosts->n; i++)
                names[i] = f->hosts->v[i].name;
        near = diag_did_you_mean(name, names, f->hosts->n);
        free(names);
        snprintf(fact, sizeof(fact), "no host `%s` in the list", name);
        snprintf(label, sizeof(label), "did you mean `%s`?", near ? near : "");
        add_filter_error(f, HN_UNKNOWN_HOST, item->at, item->len, fact, near ? label : NULL);
}

/* Returns the known number of slots of a host; SLOTS_MAX = not known. */
static int count_known_slots(const struct host *host)
{
        return host->slots ? host->slots : host->has_gpus ? (int)host->gpus.n : SLOTS_MAX;
}

/* Notes the slots for later; false when the host lacks a slot. */
static bool note_slots(struct filter *f, const struct filter_item *item, struct host *host,
                       const struct intlist *slots)
{
        struct intlist *to = f->exclude ? &host->drop : &host->keep;
        char fact[RANGE_MAX_NAME + 64];

        for (size_t i = 0; i < slots->n; i++) {
                if (slots->v[i] >= count_known_slots(host)) {
                        snprintf(fact, sizeof(fact), "%s has no slot %d, its slots are 0-%d",
                                 host->name, slots->v[i], count_known_slots(host) - 1);
                        add_filter_error(f, HN_NO_SUCH_SLOT, item->slots_at, item->slots_len, fact,
                                         NULL);
                        return false;
                }
                if (!intlist_has(to, slots->v[i]))
                        intlist_add(to, slots->v[i]);
        }
        host->filtered = true;
        return true;
}

/* Reports every unknown host, but only the first wrong slot: a range would repeat the error. */
static void apply_names(struct filter *f, const struct filter_item *item, const struct strv *names,
                        const struct intlist *slots)
{
        for (size_t i = 0; i < names->n; i++) {
                struct host *host = hosts_find(f->hosts, names->v[i]);

                if (!host)
                        complain_unknown_host(f, item, names->v[i]);
                else if (!item->slots_at)
                        f->whole[host - f->hosts->v] = true;
                else if (note_slots(f, item, host, slots))
                        f->part[host - f->hosts->v] = true;
                else
                        return;
        }
}

/* Applies HOSTS or HOSTS:SLOTS to the named hosts. */
static void apply_item(struct filter *f, const struct filter_item *item)
{
        const char *name = f->spec + item->at;
        struct intlist slots = { 0 };
        struct strv names = STRV_INIT;
        struct range_error e;

        /* Without the brackets, as the list has the address. */
        if (find_ipv6_end(f->spec, item->at))
                strv_push_mem(&names, name + 1, item->len - 2);
        else if (range_expand(name, item->len, &names, &e) < 0)
                add_range_error(f, item->at, &e);
        if (item->slots_at &&
            range_numbers(f->spec + item->slots_at, item->slots_len, SLOTS_MAX - 1, &slots, &e) < 0)
                add_range_error(f, item->slots_at, &e);
        else
                apply_names(f, item, &names, &slots);
        strv_finish(&names);
        intlist_finish(&slots);
}

/* Notes how many errors were only counted. */
static void finish_filter_errors(const struct filter *f)
{
        if (f->errors > MAX_ERRORS)
                diags_hide(f->diags, f->errors - MAX_ERRORS, f->option);
}

/* Fits CLEANUP(). */
static void filter_finish(struct filter *f)
{
        free(f->whole);
        free(f->part);
}

/* Applies all values of an option. Items are separated by commas, or by @ as in DeepSpeed. */
static void apply_specs(struct filter *f, struct hosts *h, const struct strv *specs, bool exclude,
                        struct diags *d)
{
        *f = (struct filter){ .hosts = h, .diags = d, .exclude = exclude };
        f->option = exclude ? "--exclude" : "--include";
        f->whole = xcalloc(h->n, sizeof(*f->whole));
        f->part = xcalloc(h->n, sizeof(*f->part));
        for (size_t i = 0; specs && i < specs->n; i++) {
                const char *spec = f->spec = specs->v[i];
                size_t at = strspn(spec, " \t");

                for (;;) {
                        struct filter_item item = take_filter_item(spec, &at);

                        apply_item(f, &item);
                        at += strspn(spec + at, " \t");
                        if (!spec[at])
                                break;
                        if (spec[at] == ',' || spec[at] == '@')
                                at++;
                        at += strspn(spec + at, " \t");
                }
        }
        finish_filter_errors(f);
}

/* Drops hosts: not included, or excluded whole. @all: there is no --include. */
static void drop_hosts(struct hosts *h, const struct filter *include, bool all,
                       const struct filter *exclude)
{
        bool *keep = xcalloc(h->n, sizeof(*keep));

        for (size_t i = 0; i < h->n; i++) {
                struct host *host = &h->v[i];

                /* A host of which slots alone are excluded stays. */
                keep[i] = (all || include->whole[i] || include->part[i]) && !exclude->whole[i];
                /* Named whole and by slots: whole. */
                if (include->whole[i]) {
                        intlist_finish(&host->keep);
                        host->filtered = host->drop.n > 0;
                }
        }
        hosts_retain(h, keep);
        free(keep);
}

/* Keeps the first hosts of the list (--nodes). 0, or -EINVAL with an error in @d. */
static int keep_first_nodes(struct hosts *h, int nodes, struct diags *d)
{
        bool *keep;

        if ((size_t)nodes > h->n) {
                struct diag *e = diag_add(d, HN_FEW_HOSTS, EX_USAGE, "--nodes %d, but there %s %zu",
                                          nodes, h->n == 1 ? "is only" : "are only", h->n);

                diag_help(e, "--nodes %zu, or add hosts", h->n);
                return -EINVAL;
        }
        keep = xcalloc(h->n, sizeof(*keep));
        memset(keep, true, (size_t)nodes);
        hosts_retain(h, keep);
        free(keep);
        return 0;
}

int filter_apply(struct hosts *h, const struct strv *include, const struct strv *exclude, int nodes,
                 struct diags *d)
{
        CLEANUP(filter_finish) struct filter in = { 0 };
        CLEANUP(filter_finish) struct filter ex = { 0 };
        bool all = !include || !include->n;
        size_t before = h->n;

        apply_specs(&in, h, include, false, d);
        apply_specs(&ex, h, exclude, true, d);
        if (in.errors || ex.errors)
                return -EINVAL;
        drop_hosts(h, &in, all, &ex);
        if (before && !h->n) {
                const char *leave = all ? "--exclude leaves" : "--include and --exclude leave";

                diag_help(before == 1 ? diag_add(d, HN_NO_HOST_LEFT, EX_USAGE, "%s no host", leave)
                                      : diag_add(d, HN_NO_HOST_LEFT, EX_USAGE,
                                                 "%s none of the %zu hosts", leave, before),
                          "exclude fewer hosts, or add some");
                return -EINVAL;
        }
        return nodes > 0 ? keep_first_nodes(h, nodes, d) : 0;
}

/* ---- -w beside -H ---- */

/* Parses the lists into @wanted and marks the hosts with these names. */
static void mark_wanted_hosts(struct filter *f, const struct strv *lists, struct hosts *wanted)
{
        for (size_t i = 0; i < lists->n; i++) {
                size_t before = wanted->n;

                f->spec = lists->v[i];
                if (hostlist_load(wanted, f->spec, f->diags) < 0)
                        f->errors++;
                /* All names of a list, also behind an unknown one: each gets its message. */
                for (size_t k = before; k < wanted->n; k++) {
                        const struct host *host = hosts_find(f->hosts, wanted->v[k].name);
                        size_t at = (size_t)wanted->v[k].col - 1,
                               user = find_names_end(f->spec, at);
                        struct filter_item item;

                        if (host) {
                                f->whole[host - f->hosts->v] = true;
                                continue;
                        }
                        /* The names stand between user and slots. */
                        if (f->spec[user] == '@')
                                at = user + 1;
                        item = take_filter_item(f->spec, &at);
                        complain_unknown_host(f, &item, wanted->v[k].name);
                }
        }
}

/* Slots and user of the list replace the host's own. */
static void narrow_host(struct filter *f, struct host *host, const struct host *wanted)
{
        if (wanted->slots > count_known_slots(host)) {
                size_t at = (size_t)(host - f->hosts->v);
                CLEANUP(free_textp) char *where = hosts_places(f->hosts, &at, 1);
                struct diag *d = diag_add(f->diags, HN_FEW_SLOTS, EX_USAGE,
                                          "-w takes %d slots of %s, which has %d", wanted->slots,
                                          host->name, count_known_slots(host));

                diag_place(d, "%s", where);
                diag_help(d, "-w %s:%d, or give it more slots in %s", host->name,
                          count_known_slots(host), host->file);
                f->errors++;
                return;
        }
        if (wanted->slots) {
                host->slots = wanted->slots;
                host->slots_given = true;
        }
        if (wanted->user) {
                free(host->user);
                host->user = xstrdup(wanted->user);
                /* Another user needs a login, also on this machine. */
                host->local = false;
        }
}

int filter_choose(struct hosts *h, const struct strv *lists, struct diags *d)
{
        CLEANUP(filter_finish)
        struct filter f = { .hosts = h, .diags = d, .option = "-w" };
        CLEANUP(hosts_finish) struct hosts wanted = HOSTS_INIT;

        f.whole = xcalloc(h->n, sizeof(*f.whole));
        mark_wanted_hosts(&f, lists, &wanted);
        if (f.errors) {
                finish_filter_errors(&f);
                diag_help(&d->v[d->n - 1],
                          "beside -H, -w chooses among the hosts of the file; a second -H adds "
                          "hosts: -H %s -H FILE",
                          h->n ? h->v[0].file : "FILE");
                return -EINVAL;
        }
        for (size_t i = 0; i < wanted.n; i++)
                narrow_host(&f, hosts_find(h, wanted.v[i].name), &wanted.v[i]);
        if (f.errors)
                return -EINVAL;
        hosts_retain(h, f.whole);
        return 0;
}
