/* Allocation that cannot fail, and the one way the program dies. */
#include <cct/util/xalloc.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(void (*)(void)) die_hook;
static atomic_flag dying = ATOMIC_FLAG_INIT;
static _Thread_local int die_depth;

void die_set_hook(void (*hook)(void))
{
    atomic_store(&die_hook, hook);
}

static void write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(STDERR_FILENO, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* there is nobody left to tell */
        p += w;
        n -= (size_t)w;
    }
}

/* The first thread to die runs the hook and speaks; others wait for the end.
 * A hook that dies itself comes back here and only speaks. */
__attribute__((noreturn)) static void die_text(char *text, size_t len)
{
    if (die_depth++ == 0) {
        if (atomic_flag_test_and_set(&dying))
            for (;;)
                pause();
        void (*hook)(void) = atomic_load(&die_hook);
        if (hook)
            hook();
    }
    text[len++] = '\n';
    write_all(text, len);
    _exit(1);
}

/* Formats into the caller's storage: nothing is allocated on the way out. */
__attribute__((format(printf, 4, 0))) static size_t
add_text(char *dst, size_t size, size_t used, const char *fmt, va_list ap)
{
    int n = vsnprintf(dst + used, size - used, fmt, ap);
    if (n < 0)
        return used;
    return used + (size_t)n < size ? used + (size_t)n : size - 1;
}

static size_t add_name(char *dst, size_t size)
{
    int n = snprintf(dst, size, "%.32s: ", program_invocation_short_name);
    return n < 0 ? 0 : (size_t)n;
}

void die(const char *fmt, ...)
{
    char text[640];
    size_t len = add_name(text, sizeof(text));
    va_list ap;
    va_start(ap, fmt);
    len = add_text(text, sizeof(text), len, fmt, ap);
    va_end(ap);
    die_text(text, len);
}

void die_bug(const char *file, int line, const char *fmt, ...)
{
    char text[640];
    size_t len = add_name(text, sizeof(text));
    int n = snprintf(text + len, sizeof(text) - len, "bug at %.100s:%d: ", file, line);
    if (n > 0)
        len += (size_t)n;
    va_list ap;
    va_start(ap, fmt);
    len = add_text(text, sizeof(text), len, fmt, ap);
    va_end(ap);
    die_text(text, len);
}

static void *checked(void *p, size_t n)
{
    if (!p)
        die("out of memory (%zu bytes wanted)", n);
    return p;
}

void *xmalloc(size_t n)
{
    return checked(malloc(n ? n : 1), n);
}

void *xcalloc(size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        die("out of memory (%zu times %zu bytes wanted)", n, size);
    return checked(calloc(1, total ? total : 1), total);
}

void *xrealloc(void *p, size_t n)
{
    return checked(realloc(p, n ? n : 1), n);
}

void xkeep_small(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 1);
#endif
}

void xtrim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

char *xstrdup(const char *s)
{
    return s ? xstrndup(s, strlen(s)) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    size_t len = n ? strnlen(s, n) : 0;
    char *p = xmalloc(len + 1);
    if (len)
        memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

char *xasprintf(const char *fmt, ...)
{
    char *p = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&p, fmt, ap);
    va_end(ap);
    if (n < 0)
        die("out of memory while a text was put together");
    return p;
}
