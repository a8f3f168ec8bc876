/* See json_scratch.h. cJSON frees what it is given by the function given here from the begin of
 * the program on. */
#include "json_scratch.h"

#include <cJSON.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { SCRATCH = 256 << 10, ALIGN = 8 };

static _Alignas(ALIGN) char block[SCRATCH];
static size_t used; /* of whoever has it */
static bool more;   /* not all of the document found room */
static _Atomic(const struct cJSON *) document;
static atomic_flag taken = ATOMIC_FLAG_INIT;

void *json_scratch_take(bool scratch, size_t n)
{
    if (scratch && n <= SCRATCH - used) {
        char *p = block + used;

        used += (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        return p;
    }
    if (scratch)
        more = true;
    return malloc(n); /* as large as foreign text wants it: no reason to end the program */
}

static void give(void *p)
{
    if ((uintptr_t)p - (uintptr_t)block >= SCRATCH)
        free(p);
}

__attribute__((constructor)) static void hook(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){malloc, give}); /* cJSON tells its caller when there is none */
}

bool json_scratch_begin(void)
{
    if (atomic_flag_test_and_set(&taken))
        return false;
    used = 0;
    more = false;
    return true;
}

void json_scratch_end(const struct cJSON *root)
{
    atomic_store(&document, root);
    if (!root)
        atomic_flag_clear(&taken);
}

bool json_scratch_free(struct cJSON *j)
{
    if (!j || j != atomic_load(&document))
        return false;
    if (more)
        cJSON_Delete(j);
    atomic_store(&document, NULL);
    atomic_flag_clear(&taken);
    return true;
}
