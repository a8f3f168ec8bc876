/* Plain keys. A value lives in an arena of locked pages that no core dump and no
 * child sees, is counted instead of copied, and is overwritten when the last
 * holder lets go. */
#include <cct/secrets/secret.h>
#include <cct/util/log.h>
#include <cct/util/xalloc.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define UNIT 64u                  /* slots are whole units */
#define CHUNK_UNITS 512u          /* one chunk is 32 KiB of locked memory */
#define CHUNK_BYTES (UNIT * CHUNK_UNITS)

struct secret {
    atomic_uint holders;
    uint32_t units;
    size_t len;
    char value[]; /* len bytes and a NUL */
};
struct chunk {
    struct chunk *next;
    char *mem;
    size_t units;
    unsigned char *taken; /* one byte a unit */
};
static struct {
    pthread_mutex_t lock;
    struct chunk *chunks;
    atomic_bool unlocked;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The leak checker attaches to its own process like a debugger does, which a
 * non-dumpable process refuses. */
static bool may_forbid_dumps(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return false;
#else
    return true;
#endif
}

int secrets_init(struct err *e)
{
    struct rlimit none = {0, 0};

    if (sodium_init() < 0)
        return err_set(e, ERR_UNSUPPORTED, "cannot start libsodium: no source of random bytes");
    if (may_forbid_dumps() && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return err_sys(e, ERR_PERM, "cannot forbid memory dumps of this process");
    if (setrlimit(RLIMIT_CORE, &none) != 0)
        return err_sys(e, ERR_PERM, "cannot switch core dumps off");
    return 0;
}

bool secrets_memory_locked(void)
{
    return !atomic_load(&arena.unlocked);
}

static struct chunk *chunk_new(size_t units)
{
    struct chunk *c = xcalloc(1, sizeof(*c));
    size_t bytes = units * UNIT;

    c->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->mem == MAP_FAILED)
        die("out of memory for keys: %s", strerror(errno));
    if (mlock(c->mem, bytes) != 0 || madvise(c->mem, bytes, MADV_DONTDUMP) != 0)
        atomic_store(&arena.unlocked, true);
    /* Older kernels lack this one; children replace their image at once anyway. */
    (void)madvise(c->mem, bytes, MADV_WIPEONFORK);
    c->units = units;
    c->taken = xcalloc(units, 1);
    c->next = arena.chunks;
    arena.chunks = c;
    return c;
}

static char *take_units(struct chunk *c, size_t need)
{
    size_t run = 0;

    for (size_t i = 0; i < c->units; i++) {
        run = c->taken[i] ? 0 : run + 1;
        if (run == need) {
            memset(c->taken + i + 1 - need, 1, need);
            return c->mem + (i + 1 - need) * UNIT;
        }
    }
    return NULL;
}

static struct secret *slot_new(size_t len)
{
    size_t units = (sizeof(struct secret) + len + 1 + UNIT - 1) / UNIT;
    char *p = NULL;

    pthread_mutex_lock(&arena.lock);
    for (struct chunk *c = arena.chunks; c && !p; c = c->next)
        p = take_units(c, units);
    if (!p)
        p = take_units(chunk_new(units > CHUNK_UNITS ? units : CHUNK_UNITS), units);
    pthread_mutex_unlock(&arena.lock);
    struct secret *s = (struct secret *)(void *)p;
    s->units = (uint32_t)units;
    s->len = len;
    atomic_init(&s->holders, 1);
    return s;
}

static void slot_free(struct secret *s)
{
    size_t units = s->units;

    secret_wipe(s, units * UNIT);
    pthread_mutex_lock(&arena.lock);
    for (struct chunk *c = arena.chunks; c; c = c->next) {
        uintptr_t at = (uintptr_t)s - (uintptr_t)c->mem;
        if (at < c->units * UNIT)
            memset(c->taken + at / UNIT, 0, units);
    }
    pthread_mutex_unlock(&arena.lock);
}

static struct secret *filled(const char *value, size_t len)
{
    struct secret *s = slot_new(len);

    if (len)
        memcpy(s->value, value, len);
    s->value[len] = '\0';
    return s;
}

struct secret *secret_new(const char *value, size_t len)
{
    struct secret *s = filled(value, len);

    log_redact_value(s->value, len);
    return s;
}

struct secret *secret_new_token(const char *value, size_t len)
{
    struct secret *s = filled(value, len);

    log_redact_token(s->value, len);
    return s;
}

struct secret *secret_new_bytes(const void *p, size_t len)
{
    struct secret *s = slot_new(len);

    if (p && len)
        memcpy(s->value, p, len);
    else
        memset(s->value, 0, len);
    s->value[len] = '\0';
    return s;
}

struct secret *secret_dup(const struct secret *s)
{
    struct secret *same = (struct secret *)(uintptr_t)s;

    if (same)
        atomic_fetch_add_explicit(&same->holders, 1, memory_order_relaxed);
    return same;
}

void secret_free(struct secret *s)
{
    if (s && atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) == 1)
        slot_free(s);
}

const char *secret_value(const struct secret *s)
{
    return s->value;
}

size_t secret_len(const struct secret *s)
{
    return s->len;
}

void secret_mask(const struct secret *s, char *dst)
{
    size_t n = s->len;
    bool tail = n >= 12;

    memcpy(dst, "****", 5);
    for (size_t i = 0; tail && i < 4; i++)
        tail = s->value[n - 4 + i] > ' ' && s->value[n - 4 + i] < 0x7f;
    if (tail) {
        memcpy(dst + 4, s->value + n - 4, 4);
        dst[8] = '\0';
    }
}

void secret_wipe(void *p, size_t len)
{
    if (p && len)
        explicit_bzero(p, len);
}

/* A name can stand in the environment twice: go on until none is left. The value
 * is overwritten where it lies, because /proc/PID/environ shows that memory. */
struct secret *secret_take_env(const char *name)
{
    struct secret *found = NULL;

    for (char *v = getenv(name); v; v = getenv(name)) {
        size_t len = strlen(v);
        if (!found && len)
            found = secret_new(v, len);
        secret_wipe(v, len);
        if (unsetenv(name) != 0)
            break;
    }
    return found;
}
