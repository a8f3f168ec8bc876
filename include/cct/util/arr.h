/* Growing arrays of plain elements. `ARR(T)` declares one; one owner.
 *
 *     ARR(int) a = ARR_INIT;
 *     *ARR_PUSH(&a) = 7;
 *     for (size_t i = 0; i < a.n; i++) use(a.v[i]);
 *     ARR_RELEASE(&a);
 */
#ifndef CCT_UTIL_ARR_H
#define CCT_UTIL_ARR_H

#include <stddef.h>

#define ARR(T)         \
    struct {           \
        T *v;          \
        size_t n, cap; \
    }
#define ARR_INIT   \
    {              \
        NULL, 0, 0 \
    }
/* Pointer to a new zeroed element at the end. */
#define ARR_PUSH(a)                                                      \
    (arr_grow((void **)&(a)->v, &(a)->cap, (a)->n + 1, sizeof(*(a)->v)), \
     memset(&(a)->v[(a)->n], 0, sizeof(*(a)->v)), &(a)->v[(a)->n++])
/* Insert a zeroed element at index i (i <= n); pointer to it. i is looked at once. */
#define ARR_INSERT(a, i)                                                               \
    ((__typeof__((a)->v))arr_insert((void **)&(a)->v, &(a)->cap, &(a)->n, (size_t)(i), \
                                    sizeof(*(a)->v)))
#define ARR_REMOVE(a, i) arr_remove((a)->v, &(a)->n, (size_t)(i), sizeof(*(a)->v))
#define ARR_CLEAR(a) ((void)((a)->n = 0))
#define ARR_RELEASE(a) (arr_free((void **)&(a)->v), (a)->n = (a)->cap = 0)

#include <string.h>
void arr_grow(void **v, size_t *cap, size_t need, size_t size);
void *arr_insert(void **v, size_t *cap, size_t *n, size_t i, size_t size);
void arr_remove(void *v, size_t *n, size_t i, size_t size);
void arr_free(void **v);

#endif
