/* See json_scratch.h. cJSON takes its memory by the functions given here from the begin of the
 * program on. */
#include "json_scratch.h"

#include <cJSON.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { SCRATCH = 256 << 10, ALIGN = 16 };

static _Alignas(ALIGN) char block[SCRATCH];
static size_t used;            /* of whoever has it */
static bool more;              /* not all of the document found room */
static _Atomic(const struct cJSON *) document;
static atomic_flag taken = ATOMIC_FLAG_INIT;
static _Thread_local bool parsing;

static void *take(size_t n)
{
    if (parsing) {
        size_t room = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);

        if (n <= SCRATCH && room <= SCRATCH - used) {
            used += room;
            return block + used - room;
        }
        more = true;
    }
    return malloc(n); /* cJSON tells its caller when there is none */
}

static void give(void *p)
{
    if ((uintptr_t)p - (uintptr_t)block >= SCRATCH)
        free(p);
}

__attribute__((constructor)) static void hook(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){take, give});
}

bool json_scratch_begin(void)
{
    if (atomic_flag_test_and_set(&taken))
        return false;
    used = 0;
    more = false;
    parsing = true;
    return true;
}

void json_scratch_end(const struct cJSON *root)
{
    parsing = false;
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
