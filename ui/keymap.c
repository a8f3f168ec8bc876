/* Keys to actions: the table of ACTIONS with the user's changes. */
#include <cct/ui/keymap.h>

#include <cct/config/options.h>
#include <cct/util/buf.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum key_scope scope;
    const char *keys, *hint, *help;
} actions[ACT_COUNT] = {
    {"", SCOPE_NAV, "", "", ""},
#define ACTION_ROW(id, name, scope, keys, hint, help) {name, scope, keys, hint, help},
    ACTIONS(ACTION_ROW)
#undef ACTION_ROW
};

static const struct {
    const char *word, *head;
    enum key_scope under; /* asked next */
} scopes[SCOPE_COUNT] = {
#define SCOPE_ROW(id, word, head, under) {word, head, SCOPE_##under},
    SCOPES(SCOPE_ROW)
#undef SCOPE_ROW
};

static const struct {
    const char *name;
    key_code code;
} names[] = {{"Up", K_UP},         {"Down", K_DOWN},     {"Left", K_LEFT},
             {"Right", K_RIGHT},   {"Home", K_HOME},     {"End", K_END},
             {"PgUp", K_PGUP},     {"PgDn", K_PGDN},     {"Delete", K_DELETE},
             {"Insert", K_INSERT}, {"BackTab", K_BACKTAB}, {"Enter", K_ENTER},
             {"Tab", K_TAB},       {"Esc", K_ESC},       {"Backspace", K_BACKSPACE},
             {"Space", ' '}};

/* One binding: one key, or two in a row ("gg", "za"). */
struct binding {
    key_code first, second; /* second 0: a single key */
    enum action action;
};

struct keymap {
    struct binding *v;
    size_t n;
    char *shown[ACT_COUNT]; /* "D F9" */
    key_code pending;       /* first key of a sequence */
};

const char *action_name(enum action a)
{
    return (unsigned)a < ACT_COUNT ? actions[a].name : "?";
}

const char *action_hint(enum action a)
{
    return (unsigned)a < ACT_COUNT ? actions[a].hint : "";
}

const char *action_help(enum action a)
{
    return (unsigned)a < ACT_COUNT ? actions[a].help : "";
}

const char *action_keys(enum action a)
{
    return actions[a].keys;
}

enum key_scope action_scope(enum action a)
{
    return actions[a].scope;
}

const char *scope_word(enum key_scope s)
{
    return scopes[s].word;
}

const char *scope_head(enum key_scope s)
{
    return scopes[s].head;
}

enum key_scope scope_under(enum key_scope s)
{
    return scopes[s].under;
}

bool scope_counts(enum key_scope s, enum key_scope other)
{
    while (s != other && s != SCOPE_NONE)
        s = scopes[s].under;
    return s == other;
}

/* One character that is a key by itself, or 0. */
static key_code parse_char(const char *s, size_t len)
{
    uint32_t cp;
    size_t used = len ? utf8_decode(s, len, &cp) : 0;
    return used && used == len && cp != UTF8_BAD && cp > ' ' ? cp : 0;
}

key_code key_parse(const char *name)
{
    if (strncmp(name, "Alt-", 4) == 0) {
        key_code k = key_parse(name + 4);
        return k ? k | KEYC_ALT : 0;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].code;
    int64_t n;
    if (name[0] == 'F' && str_to_i64(name + 1, 1, 12, &n))
        return K_F1 + (key_code)(n - 1);
    if (name[0] == '^' && name[1] && !name[2]) {
        char c = name[1];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c == 'I' || c == 'M' || c == '[') /* what a terminal sends for these keys */
            return c == 'I' ? K_TAB : c == 'M' ? K_ENTER : K_ESC;
        return c > '@' && c <= '_' ? (key_code)(c & 0x1F) : 0;
    }
    return parse_char(name, strlen(name));
}

void key_format(key_code k, char *dst, size_t size)
{
    char base[16] = "?";
    key_code code = k & ~KEYC_ALT;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].code == code) {
            snprintf(dst, size, "%s%s", k & KEYC_ALT ? "Alt-" : "", names[i].name);
            return;
        }
    if (code >= K_F1 && code <= K_F12) {
        snprintf(base, sizeof(base), "F%u", (unsigned)(code - K_F1 + 1));
    } else if (code < ' ') {
        snprintf(base, sizeof(base), "^%c", (char)(code + '@'));
    } else if (!(code & KEYC_SPECIAL)) {
        base[utf8_encode(base, code)] = 0;
    }
    snprintf(dst, size, "%s%s", k & KEYC_ALT ? "Alt-" : "", base);
}

/* "gg" and "^X^E" are sequences; "^D", "F9", "Down" and single characters are keys. */
static bool parse_binding(const char *word, struct binding *b)
{
    b->second = 0;
    b->first = key_parse(word);
    if (b->first)
        return true;
    if (strlen(word) == 2) {
        b->first = parse_char(word, 1);
        b->second = parse_char(word + 1, 1);
        return b->first && b->second;
    }
    if (strlen(word) == 4 && word[0] == '^' && word[2] == '^') {
        const char one[] = {'^', word[1], 0};
        b->first = key_parse(one);
        b->second = key_parse(word + 2);
        return b->first && b->second;
    }
    return false;
}

/* A key would hide what the scope right below binds; further down it may. */
static bool meet(enum key_scope a, enum key_scope b)
{
    if (a == SCOPE_REPLAY || b == SCOPE_REPLAY) /* arrows seek there, whatever they do elsewhere */
        return a == b;
    return a == b || scopes[a].under == b || scopes[b].under == a;
}

static const struct binding *find_clash(const struct keymap *k, const struct binding *b)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct binding *o = &k->v[i];
        if (o->action == b->action || o->first != b->first)
            continue;
        if (!meet(actions[o->action].scope, actions[b->action].scope))
            continue;
        if (o->second == b->second || !o->second || !b->second)
            return o;
    }
    return NULL;
}

static void unbind(struct keymap *k, enum action a)
{
    size_t keep = 0;
    for (size_t i = 0; i < k->n; i++)
        if (k->v[i].action != a)
            k->v[keep++] = k->v[i];
    k->n = keep;
}

static enum action find_action(const char *name)
{
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++)
        if (strcmp(name, actions[i].name) == 0)
            return (enum action)i;
    return ACT_NONE;
}

/* k: what must not be met; NULL for the table of ours, which a test holds against itself. */
static int check_keys(const struct keymap *k, enum action a, char *words, struct binding *out,
                      size_t max, size_t *n, struct err *e)
{
    char *save = NULL;
    *n = 0;
    for (char *w = strtok_r(words, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        struct binding b = {.action = a};
        if (*n == max)
            return err_set(e, ERR_INVALID, "action '%s': more than %zu keys", actions[a].name,
                           max);
        if (!parse_binding(w, &b))
            return err_set(e, ERR_INVALID,
                           "action '%s': '%s' is no key (write j, ^D, Alt-x, F9, Down, gg)",
                           actions[a].name, str_shown(w));
        const struct binding *o = k ? find_clash(k, &b) : NULL;
        if (o)
            return err_set(e, ERR_INVALID, "key '%.20s' is bound to '%s' and '%s' alike", w,
                           actions[o->action].name, actions[a].name);
        out[(*n)++] = b;
    }
    return 0;
}

enum { MAX_KEYS = 12 };

static void add_bindings(struct keymap *k, enum action a, const struct binding *v, size_t n,
                         const char *keys)
{
    k->v = xrealloc(k->v, (k->n + n + 1) * sizeof(*k->v));
    memcpy(k->v + k->n, v, n * sizeof(*v));
    k->n += n;
    free(k->shown[a]);
    k->shown[a] = xstrdup(keys);
}

int keymap_bind(struct keymap *k, const char *action, const char *keys, struct err *e)
{
    enum action a = find_action(action);
    if (a == ACT_NONE) {
        const char *all[ACT_COUNT];
        for (int i = 1; i < ACT_COUNT; i++)
            all[i - 1] = actions[i].name;
        int near = str_nearest(action, all, ACT_COUNT - 1);
        return err_set(e, ERR_INVALID, "unknown action '%s'%s%s%s", str_shown(action),
                       near >= 0 ? " (did you mean '" : "", near >= 0 ? all[near] : "",
                       near >= 0 ? "'?)" : "");
    }
    struct binding add[MAX_KEYS];
    size_t n;
    char *words = xstrdup(keys);
    int rc = check_keys(k, a, words, add, MAX_KEYS, &n, e);
    free(words);
    if (rc)
        return rc;
    unbind(k, a);
    add_bindings(k, a, add, n, keys);
    return 0;
}

static void no_keys(struct keymap *k, enum action a)
{
    unbind(k, a);
    free(k->shown[a]);
    k->shown[a] = xstrdup("");
}

void keymap_bind_all(struct keymap *k, const struct key_line *v, size_t n,
                     void (*bad)(void *ctx, const struct key_line *l, const struct err *e),
                     void *ctx)
{
    for (size_t i = 0; i < n; i++) {
        enum action a = find_action(v[i].action);
        if (a != ACT_NONE)
            no_keys(k, a);
    }
    bool fails[ACT_COUNT] = {false};
    for (size_t i = 0; i < n; i++) {
        struct err e = {0};
        bool failed = keymap_bind(k, v[i].action, v[i].keys, &e) != 0;
        fails[find_action(v[i].action)] = failed;
        if (failed && bad)
            bad(ctx, &v[i], &e);
    }
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
        if (fails[a] && !*k->shown[a])
            keymap_bind(k, actions[a].name, actions[a].keys, NULL);
}

struct keymap *keymap_new(void)
{
    struct keymap *k = xcalloc(1, sizeof(*k));
    for (int i = 1; i < ACT_COUNT; i++) {
        struct binding add[MAX_KEYS];
        struct err e = {0};
        char *words = xstrdup(actions[i].keys);
        size_t n;
        if (check_keys(NULL, (enum action)i, words, add, MAX_KEYS, &n, &e))
            BUG("default keys: %s", e.text);
        free(words);
        add_bindings(k, (enum action)i, add, n, actions[i].keys);
    }
    return k;
}

void keymap_free(struct keymap *k)
{
    if (!k)
        return;
    for (int i = 0; i < ACT_COUNT; i++)
        free(k->shown[i]);
    free(k->v);
    free(k);
}

const char *keymap_keys(const struct keymap *k, enum action a)
{
    return (unsigned)a < ACT_COUNT && k->shown[a] ? k->shown[a] : "";
}

int keymap_which(const struct keymap *k, enum action a, key_code key)
{
    int n = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (k->v[i].action != a)
            continue;
        if ((k->v[i].second ? k->v[i].second : k->v[i].first) == key)
            return n;
        n++;
    }
    return -1;
}

void keymap_reset(struct keymap *k)
{
    k->pending = 0;
}

static enum action find_in(struct keymap *k, enum key_scope scope, key_code key, bool *starts)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct binding *b = &k->v[i];
        if (actions[b->action].scope != scope)
            continue;
        if (k->pending ? b->first == k->pending && b->second == key
                       : b->first == key && !b->second)
            return b->action;
        if (!k->pending && b->first == key && b->second)
            *starts = true;
    }
    return ACT_NONE;
}

enum action keymap_find(struct keymap *k, enum key_scope scope, key_code key, bool *pending)
{
    bool starts = false;
    enum action a = ACT_NONE;
    for (; a == ACT_NONE && scope != SCOPE_NONE; scope = scopes[scope].under)
        a = find_in(k, scope, key, &starts);
    k->pending = a == ACT_NONE && starts ? key : 0;
    *pending = k->pending != 0;
    return a;
}
