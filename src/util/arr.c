/* Growing arrays: the untyped half behind the macros of arr.h. The element
 * pointer is copied in and out by memcpy since its real type is not `void *`. */
#include <cct/util/arr.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdlib.h>

void arr_grow(void **v, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return;
    size_t want = *cap ? *cap : 8;
    while (want < need)
        want *= 2;
    if (want > SIZE_MAX / 2 / size)
        die("out of memory (%zu elements wanted)", need);
    void *p;
    memcpy(&p, v, sizeof(p));
    p = xrealloc(p, want * size);
    memcpy(v, &p, sizeof(p));
    *cap = want;
}

void *arr_insert(void **v, size_t *cap, size_t *n, size_t i, size_t size)
{
    if (i > *n)
        BUG("element %zu inserted into %zu", i, *n);
    arr_grow(v, cap, *n + 1, size);
    void *p;
    memcpy(&p, v, sizeof(p));
    char *at = (char *)p + i * size;
    memmove(at + size, at, (*n - i) * size);
    memset(at, 0, size);
    ++*n;
    return at;
}

void arr_remove(void *v, size_t *n, size_t i, size_t size)
{
    if (i >= *n)
        BUG("element %zu removed of %zu", i, *n);
    char *at = (char *)v + i * size;
    memmove(at, at + size, (*n - i - 1) * size);
    --*n;
}

void arr_free(void **v)
{
    void *p;
    memcpy(&p, v, sizeof(p));
    free(p);
    p = NULL;
    memcpy(v, &p, sizeof(p));
}
