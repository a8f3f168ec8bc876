/* A designer-checker pair as data: copies, names, keys of its messages. */
#include <cct/model/pair.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define KEY_PREFIX "pair_"

static const char *const states[PAIR_STATE_COUNT] = {"running", "stopped", "passed", "capped",
                                                     "failed"};
static const char *const roles[PAIR_ROLES] = {"designer", "checker"};

void pair_free(struct pair *p)
{
    if (!p)
        return;
    for (int i = 0; i < PAIR_ROLES; i++) {
        free(p->side[i].tool);
        free(p->side[i].model);
        free(p->side[i].prompt);
        free(p->side[i].session);
    }
    free(p->task);
    free(p->report);
    free(p->review);
    free(p->reason);
    free(p);
}

struct pair *pair_dup(const struct pair *p, bool texts)
{
    struct pair *d;

    if (!p)
        return NULL;
    d = xmalloc(sizeof(*d));
    *d = *p;
    for (int i = 0; i < PAIR_ROLES; i++) {
        struct pair_side *s = &d->side[i];

        s->tool = xstrdup(s->tool);
        s->model = xstrdup(s->model);
        s->prompt = texts ? xstrdup(s->prompt) : NULL;
        s->session = xstrdup(s->session);
    }
    d->task = texts ? xstrdup(p->task) : NULL;
    d->report = texts ? xstrdup(p->report) : NULL;
    d->review = texts ? xstrdup(p->review) : NULL;
    d->reason = xstrdup(p->reason);
    return d;
}

static bool same_cost(double a, double b)
{
    return isnan(a) ? isnan(b) : fabs(a - b) < 1e-9;
}

bool pair_same(const struct pair *a, const struct pair *b)
{
    if (!a || !b)
        return a == b;
    for (int i = 0; i < PAIR_ROLES; i++) {
        const struct pair_side *x = &a->side[i], *y = &b->side[i];

        if (!str_eq(x->tool, y->tool) || !str_eq(x->model, y->model) || x->turns != y->turns ||
            x->tokens_in != y->tokens_in || x->tokens_out != y->tokens_out ||
            !same_cost(x->cost_usd, y->cost_usd))
            return false;
    }
    return a->rev == b->rev && a->state == b->state && a->role == b->role &&
           a->round == b->round && a->rounds == b->rounds && a->waiting == b->waiting &&
           str_eq(a->reason, b->reason);
}

const char *pair_state_name(enum pair_state s)
{
    return (size_t)s < COUNT(states) ? states[s] : "?";
}

static int find_name(const char *const *names, size_t n, const char *s)
{
    for (size_t i = 0; s && i < n; i++)
        if (strcmp(names[i], s) == 0)
            return (int)i;
    return -1;
}

int pair_state_parse(const char *s)
{
    return find_name(states, COUNT(states), s);
}

const char *pair_role_name(enum pair_role r)
{
    return (size_t)r < COUNT(roles) ? roles[r] : "?";
}

int pair_role_parse(const char *s)
{
    return find_name(roles, COUNT(roles), s);
}

void pair_doing(const struct pair *p, char *dst, size_t size)
{
    snprintf(dst, size, "%s %d/%d",
             p->state == PAIR_RUNNING ? pair_role_name(p->role) : pair_state_name(p->state),
             p->round, p->rounds);
}

/* --- messages ------------------------------------------------------------------- */

enum pair_role pair_addressee(const char *text, const char **body)
{
    static const char space[] = " \t\r\n:,";

    text += strspn(text, " \t\r\n");
    for (int i = 0; *text == '@' && i < PAIR_ROLES; i++) {
        size_t n = strlen(roles[i]);

        if (strncmp(text + 1, roles[i], n) != 0 || (text[1 + n] && !strchr(space, text[1 + n])))
            continue;
        text += 1 + n;
        if (body)
            *body = text + strspn(text, space);
        return (enum pair_role)i;
    }
    if (body)
        *body = text;
    return PAIR_DESIGNER;
}

void pair_key(const struct pair *p, int turn, char *dst, size_t size)
{
    snprintf(dst, size, KEY_PREFIX "%s_%d", p->uid, turn);
}

int pair_turn_of(const struct pair *p, const char *key)
{
    size_t n = strlen(p->uid);
    char *end;
    long turn;

    if (!key || !n || !pair_is_key(key))
        return 0;
    key += strlen(KEY_PREFIX);
    if (strncmp(key, p->uid, n) != 0 || key[n] != '_')
        return 0;
    turn = strtol(key + n + 1, &end, 10);
    /* in the sandbox it has a time behind it when it was sent once more */
    return end > key + n + 1 && (!*end || *end == '_') && turn > 0 && turn < 1000000 ? (int)turn
                                                                                     : 0;
}

bool pair_is_key(const char *key)
{
    return key && str_starts(key, KEY_PREFIX);
}
