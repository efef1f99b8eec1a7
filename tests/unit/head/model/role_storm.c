/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2,000 seeded jobs of 2 to 5 roles: readiness, ends and drains come in random orders. The inputs
 * and decisions of a job are kept in a log, and a second reading of the rules, which looks for
 * places in the log, tells the end that the job should have had.
 */

#include "head/model/role_order.h"
#include "lib/unit.h"

enum { ROUNDS = 2000, ROLES = 5, RANKS = 6, ITEMS = 400, NEVER = ITEMS };

enum item_kind { ITEM_STARTED, ITEM_READY, ITEM_ENDED, ITEM_TICK };

/* An input, to come or in the log. */
struct item {
        enum item_kind kind;
        int64_t time;
        int role, part, code; /* @part: rank or instance */
};

struct role_storm {
        struct role_rule rules[ROLES];
        int n;
        int64_t linger_ms;
        struct item agenda[ITEMS], log[ITEMS];
        int n_agenda, n_log;
        /* decisions, with the place in the log of the input before them; 0 is the begin */
        int started[ROLES], drained[ROLES], told[ROLES];
        int ended;
        int failed; /* reason of ROLE_FAIL */
        struct role_decision end;
};

static unsigned seed;

static int pick(int n)
{
        seed = seed * 1103515245u + 12345u;
        return (int)((seed >> 16) % (unsigned)n);
}

static void plan_item(struct role_storm *s, enum item_kind kind, int64_t time, int role, int part,
                      int code)
{
        assert_true(s->n_agenda < ITEMS);
        s->agenda[s->n_agenda++] = (struct item){ kind, time, role, part, code };
}

/* ---- making a job ---- */

static void make_rules(struct role_storm *s)
{
        s->n = 2 + pick(ROLES - 1);
        s->linger_ms = pick(2) * pick(200);
        for (int r = 0; r < s->n; r++) {
                struct role_rule *rule = &s->rules[r];

                *rule = (struct role_rule){ .n_instances = 1 + pick(3), .probed = pick(3) > 0 };
                rule->n_ranks = rule->n_instances * (1 + pick(2));
                rule->ready_timeout_ms = pick(3) ? 100 + pick(500) : 0;
                rule->is_main = pick(3) == 0;
                rule->ends_ok = pick(4) == 0;
                rule->drain_ms = pick(3) ? 0 : 1 + pick(200);
                /* The order of numbers is not that of starts. */
                for (int other = 0; other < s->n; other++) {
                        if ((other * 7 + 3) % 5 < (r * 7 + 3) % 5 && pick(3) == 0)
                                intlist_add(&rule->after, other);
                        if (other != r && pick(6) == 0)
                                intlist_add(&rule->refers, other);
                }
        }
}

/* Plans what a role does after its start: each rank ends, some of them at once. */
static void plan_life(struct role_storm *s, int role, int64_t now)
{
        const struct role_rule *rule = &s->rules[role];
        int64_t start = now + pick(30);
        int mood = pick(5); /* of all its ranks */

        plan_item(s, ITEM_STARTED, start, role, 0, 0);
        for (int i = 0; rule->probed && i < rule->n_instances; i++)
                for (int times = pick(12) ? 1 + (pick(5) == 0) : 0; times > 0; times--)
                        plan_item(s, ITEM_READY, start + pick(pick(4) ? 90 : 700), role, i, 0);
        for (int rank = 0; rank < rule->n_ranks; rank++) {
                int64_t end = mood == 0  ? now + pick(100)
                              : mood < 3 ? start + 50 + pick(500)
                                         : start + 600 + pick(2000);

                plan_item(s, ITEM_ENDED, end, role, rank, pick(7) ? 0 : 1 + pick(140));
        }
}

/* Its living ranks end soon, or as planned. */
static void drain_role(struct role_storm *s, int role, int64_t now)
{
        for (int i = 0; i < s->n_agenda; i++)
                if (s->agenda[i].kind == ITEM_ENDED && s->agenda[i].role == role)
                        s->agenda[i].time = MIN(s->agenda[i].time, now + pick(300));
}

/* ---- running it ---- */

static void obey(struct role_storm *s, struct role_order *o, int64_t now)
{
        struct role_decision d;

        while (role_order_next(o, &d)) {
                assert_int_equal(s->ended, NEVER); /* nothing follows the end */
                if (d.verb == ROLE_START) {
                        assert_int_equal(s->started[d.role], NEVER);
                        assert_int_equal(d.instance, -1);
                        s->started[d.role] = s->n_log;
                        plan_life(s, d.role, now);
                } else if (d.verb == ROLE_TERM) {
                        assert_int_equal(s->drained[d.role], NEVER);
                        assert_int_equal(d.time_ms, s->rules[d.role].drain_ms);
                        s->drained[d.role] = s->n_log;
                        drain_role(s, d.role, now);
                } else if (d.verb == ROLE_TELL) {
                        assert_int_equal(s->told[d.role], NEVER);
                        s->told[d.role] = s->n_log;
                } else if (d.verb == ROLE_FAIL) {
                        assert_int_equal(s->failed, NEVER);
                        s->failed = d.reason;
                } else {
                        bool by_rule = d.reason == ROLE_END_LEFT || d.reason == ROLE_END_UNREADY ||
                                       d.reason == ROLE_END_TIMEOUT;

                        assert_int_equal(s->failed, by_rule ? (int)d.reason : NEVER);
                        s->ended = s->n_log;
                        s->end = d;
                }
        }
}

/* Takes the next input out of the agenda. */
static struct item take_item(struct role_storm *s, const struct role_order *o)
{
        int64_t limit = role_order_deadline(o);
        int first = 0;
        struct item item;

        for (int i = 1; i < s->n_agenda; i++)
                if (s->agenda[i].time < s->agenda[first].time)
                        first = i;
        if (limit >= 0 && (!s->n_agenda || limit <= s->agenda[first].time))
                return (struct item){ .kind = ITEM_TICK, .time = limit };
        item = s->agenda[first];
        s->agenda[first] = s->agenda[--s->n_agenda];
        return item;
}

static void run_storm(struct role_storm *s)
{
        struct role_order *o = role_order_create(s->rules, (size_t)s->n, s->linger_ms);

        for (int r = 0; r < ROLES; r++)
                s->started[r] = s->drained[r] = s->told[r] = NEVER;
        s->ended = s->failed = NEVER;
        s->log[0] = (struct item){ .kind = ITEM_TICK };
        obey(s, o, 0);
        s->n_log = 1;
        /* Inputs that come after the end of the job, too. */
        while (s->n_agenda || role_order_deadline(o) >= 0) {
                struct item item = take_item(s, o);

                assert_true(s->n_log < ITEMS);
                s->log[s->n_log] = item;
                if (item.kind == ITEM_STARTED)
                        role_order_started(o, item.role, item.time);
                else if (item.kind == ITEM_READY)
                        role_order_ready(o, item.role, item.part, item.time);
                else if (item.kind == ITEM_ENDED)
                        role_order_ended(o, item.role, item.part, item.code, 0, item.time);
                else
                        role_order_tick(o, item.time);
                obey(s, o, item.time);
                s->n_log++;
        }
        role_order_destroy(o);
}

/* ---- the second reading: places in the log ---- */

static int find_item(const struct role_storm *s, enum item_kind kind, int role, int part)
{
        for (int i = 0; i < s->n_log; i++)
                if (s->log[i].kind == kind && s->log[i].role == role && s->log[i].part == part)
                        return i;
        return NEVER;
}

/* Returns where the last of the ranks [first, end) of a role has ended. */
static int find_ends(const struct role_storm *s, int role, int first, int end)
{
        int last = 0;

        for (int rank = first; rank < end; rank++)
                last = MAX(last, find_item(s, ITEM_ENDED, role, rank));
        return last;
}

static int find_role_end(const struct role_storm *s, int role)
{
        return find_ends(s, role, 0, s->rules[role].n_ranks);
}

static int find_instance_end(const struct role_storm *s, int role, int instance)
{
        int size = s->rules[role].n_ranks / s->rules[role].n_instances;

        return find_ends(s, role, instance * size, (instance + 1) * size);
}

static int find_instance_ready(const struct role_storm *s, int role, int instance)
{
        int ready = find_item(s, ITEM_READY, role, instance);

        if (!s->rules[role].probed)
                return MIN(find_item(s, ITEM_STARTED, role, 0), find_role_end(s, role));
        return ready < find_instance_end(s, role, instance) ? ready : NEVER;
}

static int find_role_ready(const struct role_storm *s, int role)
{
        int last = 0;

        for (int i = 0; i < s->rules[role].n_instances; i++)
                last = MAX(last, find_instance_ready(s, role, i));
        return last;
}

static bool is_alone(const struct role_storm *s)
{
        for (int r = 0; r < s->n; r++)
                if (s->rules[r].is_main)
                        return false;
        return true;
}

static bool is_allowed(const struct role_storm *s, int role)
{
        return s->rules[role].ends_ok && !s->rules[role].is_main;
}

static bool is_needed(const struct role_storm *s, int role, int place)
{
        for (int r = 0; r < s->n; r++)
                if (r != role && find_role_end(s, r) > place &&
                    (intlist_has(&s->rules[r].after, role) ||
                     intlist_has(&s->rules[r].refers, role)))
                        return true;
        return false;
}

static bool is_waited_for(const struct role_storm *s, int role, int place)
{
        for (int r = 0; r < s->n; r++)
                if (intlist_has(&s->rules[r].after, role) && s->started[r] >= place)
                        return true;
        return false;
}

/* Whether all roles that the job is for have ended at or before a place. */
static bool is_done(const struct role_storm *s, int place)
{
        for (int r = 0; r < s->n; r++)
                if ((s->rules[r].is_main || is_alone(s)) && find_role_end(s, r) > place)
                        return false;
        return true;
}

/* Fills in the role whose readiness is over its limit at a place. */
static bool is_late(const struct role_storm *s, int place, struct role_decision *ret)
{
        bool found = false;
        int64_t first = 0;

        for (int r = 0; r < s->n; r++) {
                int started = find_item(s, ITEM_STARTED, r, 0);
                int64_t limit;

                if (!s->rules[r].probed || !s->rules[r].ready_timeout_ms || started >= place ||
                    find_role_ready(s, r) < place || find_role_end(s, r) < place)
                        continue;
                limit = s->log[started].time + s->rules[r].ready_timeout_ms;
                if (limit > s->log[place].time || (found && limit >= first))
                        continue;
                found = true;
                first = limit;
                *ret = (struct role_decision){ .reason = ROLE_END_TIMEOUT, .role = r, .code = 124 };
                while (find_instance_ready(s, r, ret->instance) < place)
                        ret->instance++;
                ret->rank = ret->instance * s->rules[r].n_ranks / s->rules[r].n_instances;
        }
        return found;
}

/* Whether the job has its end by the input at a place, and which. */
static bool ends_at(const struct role_storm *s, int place, struct role_decision *ret)
{
        const struct item *item = &s->log[place];
        int role = item->role, size, instance;
        bool allowed, helper, gone;

        if (item->kind == ITEM_TICK)
                return is_late(s, place, ret);
        if (item->kind != ITEM_ENDED)
                return false;
        allowed = is_allowed(s, role);
        helper = !s->rules[role].is_main && !is_alone(s);
        size = s->rules[role].n_ranks / s->rules[role].n_instances;
        instance = item->part / size;
        gone = find_instance_end(s, role, instance) == place;
        *ret = (struct role_decision){
                .role = role, .rank = item->part, .instance = -1, .code = item->code
        };
        ret->reason = ROLE_END_FAILED;
        if (item->code && !allowed && (!helper || is_needed(s, role, place)))
                return true;
        if (is_done(s, place)) {
                *ret = (struct role_decision){ .reason = ROLE_END_DONE, .role = -1, .rank = -1 };
                return true;
        }
        ret->code = item->code ? item->code : 1;
        ret->reason = ROLE_END_UNREADY;
        if (gone && s->rules[role].probed && find_instance_ready(s, role, instance) > place &&
            is_waited_for(s, role, place))
                return true;
        ret->reason = ROLE_END_LEFT;
        return gone && !item->code && helper && !allowed && is_needed(s, role, place);
}

/* Checks starts, and that there are none from the place of the cause on. */
static void check_starts(const struct role_storm *s, int cause)
{
        for (int r = 0; r < s->n; r++) {
                const struct intlist *after = &s->rules[r].after;
                int place = 0;

                for (size_t i = 0; i < after->n; i++)
                        place = MAX(place, find_role_ready(s, after->v[i]));
                assert_int_equal(s->started[r], place < cause ? place : NEVER);
        }
}

/* Checks drains after a failure, and returns the time when the job has to end. */
static int64_t check_drains(const struct role_storm *s, int cause)
{
        int64_t failed = s->log[cause].time, last = failed;

        for (int r = 0; r < s->n; r++) {
                int end = find_role_end(s, r);
                bool drains = s->rules[r].drain_ms && s->started[r] < cause && end > cause;
                int64_t over = failed + s->rules[r].drain_ms;

                assert_int_equal(s->drained[r], drains ? cause : NEVER);
                if (drains)
                        last = MAX(last, end < NEVER ? MIN(over, s->log[end].time) : over);
        }
        return last;
}

static int64_t check_linger(const struct role_storm *s, int cause)
{
        int64_t last = s->log[cause].time;

        for (int r = 0; r < s->n; r++) {
                assert_int_equal(s->drained[r], NEVER);
                if (s->started[r] < cause)
                        last = MAX(last, s->log[find_role_end(s, r)].time);
        }
        return MIN(last, s->log[cause].time + s->linger_ms);
}

/* Helpers that are told of: without --ends ok, and the job went on. */
static void check_told(const struct role_storm *s, int cause)
{
        for (int r = 0; r < s->n; r++) {
                int place = find_role_end(s, r);

                for (int rank = 0; rank < s->rules[r].n_ranks; rank++) {
                        int end = find_item(s, ITEM_ENDED, r, rank);

                        if (end < place && s->log[end].code)
                                place = end;
                }
                if (s->rules[r].is_main || is_alone(s) || s->rules[r].ends_ok)
                        place = NEVER;
                assert_int_equal(s->told[r], place < cause ? place : NEVER);
        }
}

static enum role_end_reason check_storm(const struct role_storm *s)
{
        struct role_decision should = { 0 };
        int64_t end;
        int cause = 0;

        while (cause < s->n_log && !ends_at(s, cause, &should))
                cause++;
        assert_true(cause < s->n_log); /* all ranks end, and so do all jobs */
        assert_true(s->ended < s->n_log);
        assert_int_equal(s->end.reason, should.reason);
        assert_int_equal(s->end.code, should.code);
        assert_int_equal(s->end.role, should.role);
        assert_int_equal(s->end.rank, should.rank);
        if (should.reason == ROLE_END_TIMEOUT)
                assert_int_equal(s->end.instance, should.instance);
        check_starts(s, cause);
        check_told(s, cause);
        end = should.reason == ROLE_END_DONE ? check_linger(s, cause) : check_drains(s, cause);
        assert_int_equal(s->log[s->ended].time, end);
        return should.reason;
}

TEST(two_thousand_jobs_start_and_end_by_the_rules)
{
        int times[ROLE_END_ORDER + 1] = { 0 }, drains = 0, lingers = 0, told = 0;

        for (int round = 0; round < ROUNDS; round++) {
                struct role_storm *s = calloc(1, sizeof(*s));
                struct intlist path = { 0 };

                seed = (unsigned)round;
                make_rules(s);
                assert_false(role_order_find_cycle(s->rules, (size_t)s->n, &path));
                run_storm(s);
                times[check_storm(s)]++;
                for (int r = 0; r < s->n; r++) {
                        drains += s->drained[r] < NEVER;
                        told += s->told[r] < NEVER;
                        intlist_finish(&s->rules[r].after);
                        intlist_finish(&s->rules[r].refers);
                }
                lingers += s->end.reason == ROLE_END_DONE && s->linger_ms &&
                           s->log[s->ended].kind == ITEM_TICK;
                free(s);
        }
        print_message("%d done, %d failed, %d left, %d unready, %d late; %d drains, %d lingered, "
                      "%d told\n",
                      times[ROLE_END_DONE], times[ROLE_END_FAILED], times[ROLE_END_LEFT],
                      times[ROLE_END_UNREADY], times[ROLE_END_TIMEOUT], drains, lingers, told);
        /* Each kind of end is there often enough to mean something. */
        for (int i = ROLE_END_DONE; i < ROLE_END_ORDER; i++)
                assert_true(times[i] >= ROUNDS / 40);
        assert_true(drains > ROUNDS / 10 && lingers > ROUNDS / 40 && told > ROUNDS / 40);
}
