/* Removing secrets from text that leaves the program.
 *
 * By value: registered values live in pages that are locked, kept out of core
 * dumps and masked with a random pad, so that neither a dump nor a search of
 * memory finds them here. Found are the value itself, each of its bytes plain or
 * percent-encoded, and its base64 in the three alignments it can have inside a
 * longer text, in both alphabets.
 * By pattern: tokens of known shape, and what follows the name of a header. */
#include <cct/util/log.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#define MAX_VALUES 64
#define MAX_TOKENS 32 /* the newest */
#define MIN_VALUE 8
#define PER_VALUE 4 /* needles: itself, three times base64 */
#define PAD 64
#define CHUNK (32u << 10)

/* One thing to look for; the bytes are masked with the pad. */
struct needle {
    unsigned char *p;
    size_t len, room;
    bool base64;
    unsigned char first; /* unmasked: what most places in a text fail at */
};

static struct {
    pthread_mutex_t lock;
    struct needle needles[(MAX_TOKENS + MAX_VALUES) * PER_VALUE]; /* tokens first */
    size_t n; /* needles to look at; those without a length are none */
    size_t tokens, values;
    unsigned char *chunk; /* the locked pages being filled */
    size_t used, size;
    unsigned char pad[PAD];
    bool first[256]; /* bytes a needle can begin with */
} red = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned char unmask(const struct needle *n, size_t i)
{
    return n->p[i] ^ red.pad[i % PAD];
}

/* Room in locked pages; `*unlocked` is set when the kernel refused the lock. */
static unsigned char *locked_room(size_t len, bool *unlocked)
{
    if (!red.chunk || len > red.size - red.used) {
        size_t size = len > CHUNK ? (len + CHUNK - 1) / CHUNK * CHUNK : CHUNK;
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            die("out of memory for the list of secrets: %s", strerror(errno));
        if (mlock(p, size) != 0 || madvise(p, size, MADV_DONTDUMP) != 0)
            *unlocked = true;
        if (!red.chunk)
            rand_bytes(red.pad, sizeof(red.pad));
        red.chunk = p;
        red.size = size;
        red.used = 0;
    }
    unsigned char *room = red.chunk + red.used;
    red.used += len;
    return room;
}

static int b64_class(unsigned char c)
{
    return c == '-' ? '+' : c == '_' ? '/' : c;
}

static void put_needle(struct needle *n, const char *text, size_t len, bool base64,
                       bool *unlocked)
{
    if (len > n->room) {
        n->p = locked_room(len, unlocked);
        n->room = len;
    }
    for (size_t i = 0; i < len; i++)
        n->p[i] = (unsigned char)text[i] ^ red.pad[i % PAD];
    unsigned char c = (unsigned char)text[0];
    n->len = len;
    n->base64 = base64;
    n->first = base64 ? (unsigned char)b64_class(c) : c;
    red.first[c] = true;
    if (base64 && c == '+')
        red.first['-'] = true;
    else if (base64 && c == '/')
        red.first['_'] = true;
    else if (!base64)
        red.first['%'] = true;
}

/* The letters of the value's base64 that do not depend on its neighbours when
 * `shift` bytes stand before it in the first group. */
static void put_base64(struct needle *n, const char *value, size_t len, size_t shift,
                       bool *unlocked)
{
    static const size_t skip[3] = {0, 2, 3}; /* letters that mix in a neighbour */
    char *padded = xcalloc(1, len + shift);

    memcpy(padded + shift, value, len);
    char *text = b64_encode(padded, len + shift);
    size_t whole = (len + shift) * 8 / 6;
    put_needle(n, text + skip[shift], whole - skip[shift], true, unlocked);
    explicit_bzero(padded, len + shift);
    explicit_bzero(text, strlen(text));
    free(padded);
    free(text);
}

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of text that the needle covers from its start, or 0. */
static size_t match(const struct needle *n, const char *text, size_t len)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t i = 0;

    for (size_t k = 0; k < n->len; k++) {
        unsigned char want = unmask(n, k);
        if (i >= len)
            return 0;
        if (n->base64 ? b64_class(t[i]) == b64_class(want) : t[i] == want) {
            i++;
        } else if (!n->base64 && t[i] == '%' && len - i >= 3 && hex_value(t[i + 1]) >= 0 &&
                   (hex_value(t[i + 1]) << 4 | hex_value(t[i + 2])) == want) {
            i += 3;
        } else {
            return 0;
        }
    }
    return i;
}

static bool known(const char *value, size_t len, bool token)
{
    for (size_t i = token ? 0 : MAX_TOKENS * PER_VALUE; i < red.n; i++)
        if (!red.needles[i].base64 && red.needles[i].len == len &&
            match(&red.needles[i], value, len) == len)
            return true;
    return false;
}

/* False: there is no room. */
static bool put(const char *value, size_t len, bool token, bool *unlocked)
{
    if (known(value, len, token))
        return true;
    if (!token && red.values == MAX_VALUES)
        return false;
    size_t at = token ? red.tokens++ % MAX_TOKENS : MAX_TOKENS + red.values++;
    struct needle *n = &red.needles[at * PER_VALUE];
    if (red.n < (at + 1) * PER_VALUE)
        red.n = (at + 1) * PER_VALUE;
    put_needle(&n[0], value, len, false, unlocked);
    for (size_t shift = 0; shift < 3; shift++)
        put_base64(&n[1 + shift], value, len, shift, unlocked);
    return true;
}

static void add(const char *value, size_t len, bool token)
{
    static bool said_full, said_unlocked;
    bool unlocked = false, full = false;

    if (!value || len < MIN_VALUE)
        return;
    pthread_mutex_lock(&red.lock);
    if (!put(value, len, token, &unlocked)) {
        full = !said_full;
        said_full = true;
    }
    unlocked = unlocked && !said_unlocked;
    said_unlocked = said_unlocked || unlocked;
    pthread_mutex_unlock(&red.lock);
    if (full)
        log_warn("more than %d secrets: later ones are removed from the log by shape only",
                 MAX_VALUES);
    if (unlocked)
        log_warn("secrets could not be locked in memory and may reach swap; raise ulimit -l");
}

void log_redact_value(const char *value, size_t len)
{
    add(value, len, false);
}

void log_redact_token(const char *value, size_t len)
{
    add(value, len, true);
}

static void redact_values(char *text, size_t len)
{
    pthread_mutex_lock(&red.lock);
    for (size_t i = 0; red.n > 0 && i < len; i++) {
        if (!red.first[(unsigned char)text[i]])
            continue;
        size_t longest = 0;
        unsigned char c = (unsigned char)text[i], class = (unsigned char)b64_class(c);
        for (size_t k = 0; k < red.n; k++) {
            const struct needle *n = &red.needles[k];
            if (n->len == 0 || (n->base64 ? n->first != class : n->first != c && c != '%'))
                continue;
            size_t m = match(n, text + i, len - i);
            longest = m > longest ? m : longest;
        }
        if (longest > 0) {
            memset(text + i, '*', longest);
            i += longest - 1;
        }
    }
    pthread_mutex_unlock(&red.lock);
}

static bool alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool token_char(char c)
{
    return alnum(c) || c == '-' || c == '_';
}

static bool e2b_char(char c)
{
    return hex_value((unsigned char)c) >= 0;
}

/* Token of a known shape: length of prefix + body at text, or 0. */
static size_t token_at(const char *text, size_t len, size_t *keep)
{
    static const struct {
        const char *prefix;
        size_t least; /* of the body */
        bool (*is_body)(char c);
    } shapes[] = {
        {"e2b_", 8, e2b_char},   {"sk-", 8, token_char},
        {"ghp_", 12, token_char}, {"gho_", 12, token_char},
        {"ghs_", 12, token_char}, {"ghu_", 12, token_char},
        {"ghr_", 12, token_char}, {"github_pat_", 12, token_char},
    };
    for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
        size_t n = strlen(shapes[k].prefix), i = n;
        if (len <= n || memcmp(text, shapes[k].prefix, n) != 0)
            continue;
        while (i < len && shapes[k].is_body(text[i]))
            i++;
        *keep = n;
        return i - n >= shapes[k].least ? i : 0;
    }
    return 0;
}

/* Names whose value is a secret, and whether the value may hold spaces. */
static const struct {
    const char *name;
    bool spaces;
} secret_names[] = {
    {"authorization", true}, {"x-api-key", false},    {"x-access-token", false},
    {"api_key", false},      {"access_token", false}, {"accesstoken", false},
    {"apikey", false},       {"auth_token", false},
};

/* The value behind `Name: value`, `"name": "value"` or `NAME=value`: where it
 * starts, and its length; 0 when no secret name stands at text. */
static size_t named_value(const char *text, size_t len, size_t *start)
{
    for (size_t k = 0; k < sizeof(secret_names) / sizeof(secret_names[0]); k++) {
        const char *name = secret_names[k].name;
        size_t i = strlen(name);
        if (len <= i || (text[1] | 0x20) != name[1] || strncasecmp(text, name, i) != 0)
            continue;
        while (i < len && (text[i] == '"' || text[i] == '\'' || text[i] == ' '))
            i++;
        if (i >= len || (text[i] != ':' && text[i] != '='))
            continue;
        i++;
        while (i < len && (text[i] == '"' || text[i] == '\'' || text[i] == ' '))
            i++;
        *start = i;
        while (i < len && !strchr("\r\n\"'", text[i]) &&
               (secret_names[k].spaces || !strchr(" \t,;&}", text[i])))
            i++;
        return i - *start;
    }
    return 0;
}

static void redact_patterns(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i] | 0x20;
        if (c != 'a' && c != 'x' && c != 'e' && c != 's' && c != 'g')
            continue;
        size_t at = 0, n;
        bool boundary = i == 0 || !alnum(text[i - 1]);
        if (boundary && (n = token_at(text + i, len - i, &at)) > 0) {
            memset(text + i + at, '*', n - at);
            i += n - 1;
        } else if ((c == 'a' || c == 'x') && (n = named_value(text + i, len - i, &at)) > 0) {
            memset(text + i + at, '*', n);
            i += at + n - 1;
        }
    }
}

void log_redact(char *text, size_t len)
{
    redact_values(text, len);
    redact_patterns(text, len);
}
