/* SPDX-License-Identifier: Apache-2.0 */
#include "head/hosts/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "head/hosts/hostfile.h"
#include "head/hosts/range.h"

enum {
        HN_UNKNOWN_HOST = 140,
        HN_NO_SLOT = 142,
        HN_NO_HOST_LEFT = 143,
        HN_FEW_HOSTS = 144,
        HN_FEW_SLOTS = 145,
        MAX_ERRORS = 20, /* of one filter; the rest is counted */
};

/* One --include or --exclude while it is applied. */
struct filter {
        struct hosts *hosts;
        struct diags *diags;
        const char *option, *spec; /* the spec at hand */
        size_t errors;
        bool exclude;
        bool *whole; /* by host: named without slots */
        bool *part;  /* by host: named with slots */
};

/* spec[at..at+len): the names, then the slots, len 0 = none. */
struct item {
        size_t at, len, slots_at, slots_len;
};

/* NULL when there are too many errors; the diag_* functions take that. */
static struct diag *complain(struct filter *f, int id, size_t at, size_t len, const char *fact,
                             const char *label)
{
        struct diag *d;

        if (++f->errors > MAX_ERRORS)
                return NULL;
        d = diag_add(f->diags, id, EX_USAGE, "%s", fact);
        diag_place(d, "%s, column %zu", f->option, at + 1);
        diag_source(d, 0, f->spec, (int)at + 1, (int)len, '^', label);
        return d;
}

static void complain_about(struct filter *f, size_t base, const struct range_error *e)
{
        complain(f, e->id, base + e->at, e->len, e->text, NULL);
}

/* ---- reading a spec ---- */

static bool separates(char c)
{
        return !c || strchr(",@ \t", c);
}

static size_t names_end(const char *spec, size_t at)
{
        bool inside = false;

        for (; spec[at]; at++) {
                if (spec[at] == '[' || spec[at] == ']')
                        inside = spec[at] == '[';
                else if (!inside && (separates(spec[at]) || spec[at] == ':'))
                        break;
        }
        return at;
}

/* "[fe80::1]" is a name in itself. */
static size_t ipv6_end(const char *spec, size_t at)
{
        size_t len = spec[at] == '[' ? strcspn(spec + at, "]") : 0;

        return len && spec[at + len] && memchr(spec + at, ':', len) ? at + len + 1 : 0;
}

/* Slots go on behind a comma as long as numbers and ranges of them come. */
static size_t slots_end(const char *spec, size_t at)
{
        for (;;) {
                size_t next;

                while (!separates(spec[at]))
                        at++;
                if (spec[at] != ',')
                        return at;
                next = at + 1 + strspn(spec + at + 1, "0123456789-");
                if (next == at + 1 || !separates(spec[next]))
                        return at;
                at = next;
        }
}

/* The item at spec[*at]; moves *at to the separator behind it. */
static struct item take_item(const char *spec, size_t *at)
{
        struct item item = { .at = *at };
        size_t end = ipv6_end(spec, *at);

        if (!end)
                end = names_end(spec, *at);
        item.len = end - *at;
        *at = end;
        if (spec[end] != ':')
                return item;
        item.slots_at = end + 1;
        *at = slots_end(spec, item.slots_at);
        item.slots_len = *at - item.slots_at;
        return item;
}

/* ---- applying ---- */

static void unknown_host(struct filter *f, const struct item *item, const char *name)
{
        char fact[RANGE_MAX_NAME + 64], label[RANGE_MAX_NAME + 64];
        const char **names;
        const char *near;

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
        complain(f, HN_UNKNOWN_HOST, item->at, item->len, fact, near ? label : NULL);
}

/* How many slots the host is known to have; SLOTS_MAX = not known. */
static int known_slots(const struct host *host)
{
        return host->slots ? host->slots : host->has_gpus ? (int)host->gpus.n : SLOTS_MAX;
}

static void no_slot(struct filter *f, const struct item *item, const struct host *host, int slot)
{
        char fact[RANGE_MAX_NAME + 64];

        snprintf(fact, sizeof(fact), "%s has no slot %d, its slots are 0-%d", host->name, slot,
                 known_slots(host) - 1);
        complain(f, HN_NO_SLOT, item->slots_at, item->slots_len, fact, NULL);
}

/* False when the host has no such slot. */
static bool note_slots(struct filter *f, const struct item *item, struct host *host,
                       const struct intlist *slots)
{
        struct intlist *to = f->exclude ? &host->drop : &host->keep;

        for (size_t i = 0; i < slots->n; i++) {
                if (slots->v[i] >= known_slots(host)) {
                        no_slot(f, item, host, slots->v[i]);
                        return false;
                }
                if (!intlist_has(to, slots->v[i]))
                        intlist_add(to, slots->v[i]);
        }
        host->filtered = true;
        return true;
}

/* One name at a time: of a range the first wrong slot is told, and every unknown host. */
static void apply_names(struct filter *f, const struct item *item, const struct strv *names,
                        const struct intlist *slots)
{
        for (size_t i = 0; i < names->n; i++) {
                const struct host *host = hosts_find(f->hosts, names->v[i]);
                size_t at;

                if (!host) {
                        unknown_host(f, item, names->v[i]);
                        continue;
                }
                at = (size_t)(host - f->hosts->v);
                if (!item->slots_at)
                        f->whole[at] = true;
                else if (note_slots(f, item, &f->hosts->v[at], slots))
                        f->part[at] = true;
                else
                        return;
        }
}

static void apply_item(struct filter *f, const struct item *item)
{
        const char *name = f->spec + item->at;
        struct intlist slots = { 0 };
        struct strv names = STRV_INIT;
        struct range_error e;

        if (ipv6_end(f->spec, item->at))
                strv_push_mem(&names, name + 1, item->len - 2);
        else if (range_expand(name, item->len, &names, &e) < 0)
                complain_about(f, item->at, &e);
        if (item->slots_at &&
            range_numbers(f->spec + item->slots_at, item->slots_len, SLOTS_MAX - 1, &slots, &e) < 0)
                complain_about(f, item->slots_at, &e);
        else
                apply_names(f, item, &names, &slots);
        strv_finish(&names);
        intlist_finish(&slots);
}

static void apply_spec(struct filter *f)
{
        size_t at = 0;

        for (;;) {
                struct item item;

                at += strspn(f->spec + at, " \t");
                item = take_item(f->spec, &at);
                apply_item(f, &item);
                at += strspn(f->spec + at, " \t");
                if (!f->spec[at])
                        return;
                if (f->spec[at] == ',' || f->spec[at] == '@')
                        at++;
        }
}

static void tell_rest(const struct filter *f)
{
        if (f->errors > MAX_ERRORS)
                diags_hide(f->diags, f->errors - MAX_ERRORS, f->option);
}

static void filter_finish(struct filter *f)
{
        free(f->whole);
        free(f->part);
}

static void read_specs(struct filter *f, struct hosts *h, const struct strv *specs, bool exclude,
                       struct diags *d)
{
        *f = (struct filter){ .hosts = h, .diags = d, .exclude = exclude };
        f->option = exclude ? "--exclude" : "--include";
        f->whole = xcalloc(h->n, sizeof(*f->whole));
        f->part = xcalloc(h->n, sizeof(*f->part));
        for (size_t i = 0; specs && i < specs->n; i++) {
                f->spec = specs->v[i];
                apply_spec(f);
        }
        tell_rest(f);
}

/* Slots were noted on the way; @all: there was no include. */
static void drop_hosts(struct hosts *h, const struct filter *include, bool all,
                       const struct filter *exclude)
{
        bool *keep = xcalloc(h->n, sizeof(*keep));

        for (size_t i = 0; i < h->n; i++) {
                struct host *host = &h->v[i];

                keep[i] = (all || include->whole[i] || include->part[i]) && !exclude->whole[i];
                if (include->whole[i]) {
                        intlist_finish(&host->keep);
                        host->filtered = host->drop.n > 0;
                }
        }
        hosts_retain(h, keep);
        free(keep);
}

static void none_left(size_t before, bool included, struct diags *d)
{
        const char *options = included ? "--include and --exclude leave" : "--exclude leaves";
        struct diag *e;

        if (before == 1)
                e = diag_add(d, HN_NO_HOST_LEFT, EX_USAGE, "%s no host", options);
        else
                e = diag_add(d, HN_NO_HOST_LEFT, EX_USAGE, "%s none of the %zu hosts", options,
                             before);
        diag_help(e, "exclude fewer hosts, or add some");
}

static int take_first(struct hosts *h, int nodes, struct diags *d)
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
        size_t before = h->n;

        read_specs(&in, h, include, false, d);
        read_specs(&ex, h, exclude, true, d);
        if (in.errors || ex.errors)
                return -EINVAL;
        drop_hosts(h, &in, !include || !include->n, &ex);
        if (before && !h->n) {
                none_left(before, include && include->n, d);
                return -EINVAL;
        }
        return nodes > 0 ? take_first(h, nodes, d) : 0;
}

/* ---- -w beside -H ---- */

/* The names of the word at list[at]: behind its user, before its slots. */
static struct item item_of_word(const char *list, size_t at)
{
        size_t end = names_end(list, at);

        if (list[end] == '@')
                at = end + 1;
        end = ipv6_end(list, at);
        return (struct item){ .at = at, .len = (end ? end : names_end(list, at)) - at };
}

/* Parses the lists into @wanted and keeps what they name. */
static void read_lists(struct filter *f, const struct strv *lists, struct hosts *wanted)
{
        for (size_t i = 0; i < lists->n; i++) {
                size_t before = wanted->n;

                f->spec = lists->v[i];
                if (hostlist_load(wanted, f->spec, f->diags) < 0)
                        f->errors++;
                for (size_t k = before; k < wanted->n; k++) {
                        const struct host *host = hosts_find(f->hosts, wanted->v[k].name);
                        struct item item = item_of_word(f->spec, (size_t)wanted->v[k].col - 1);

                        if (host)
                                f->whole[host - f->hosts->v] = true;
                        else
                                unknown_host(f, &item, wanted->v[k].name);
                }
        }
}

/* What the list says about a host wins over its line. */
static void narrow_host(struct filter *f, struct host *host, const struct host *wanted)
{
        if (wanted->slots > known_slots(host)) {
                struct diag *d = diag_add(f->diags, HN_FEW_SLOTS, EX_USAGE,
                                          "-w takes %d slots of %s, which has %d", wanted->slots,
                                          host->name, known_slots(host));

                diag_place(d, "%s:%d", host->file, host->line);
                diag_help(d, "-w %s:%d, or give it more slots in %s", host->name, known_slots(host),
                          host->file);
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
                host->local = false;
        }
}

int filter_choose(struct hosts *h, const struct strv *lists, struct diags *d)
{
        CLEANUP(filter_finish)
        struct filter f = { .hosts = h, .diags = d, .option = "-w" };
        CLEANUP(hosts_finish) struct hosts wanted = HOSTS_INIT;

        f.whole = xcalloc(h->n, sizeof(*f.whole));
        read_lists(&f, lists, &wanted);
        if (f.errors) {
                tell_rest(&f);
                diag_help(&d->v[d->n - 1],
                          "beside -H, -w chooses among the hosts of the file; a second -H adds "
                          "hosts: -H %s -H FILE",
                          h->n ? h->v[0].file : "FILE");
                return -EINVAL;
        }
        for (size_t i = 0; i < wanted.n; i++)
                narrow_host(&f, &h->v[hosts_find(h, wanted.v[i].name) - h->v], &wanted.v[i]);
        if (f.errors)
                return -EINVAL;
        hosts_retain(h, f.whole);
        return 0;
}
