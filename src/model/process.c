/* Processes as plain data. */
#include <cct/model/process.h>

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "process-"

void proc_release(struct proc *p)
{
    free(p->command);
    free(p->brief);
    free(p->cwd);
    free(p->tag);
    memset(p, 0, sizeof(*p));
}

void proc_copy(struct proc *dst, const struct proc *src)
{
    *dst = *src;
    dst->command = xstrdup(src->command);
    dst->brief = xstrdup(src->brief);
    dst->cwd = xstrdup(src->cwd);
    dst->tag = xstrdup(src->tag);
}

void procs_release(struct procs *p)
{
    for (size_t i = 0; i < p->n; i++)
        proc_release(&p->v[i]);
    free(p->v);
    free(p->text);
    free(p->watch_text);
    memset(p, 0, sizeof(*p));
}

const struct proc *procs_find(const struct procs *p, int pid)
{
    for (size_t i = 0; p && i < p->n; i++)
        if (p->v[i].pid == pid)
            return &p->v[i];
    return NULL;
}

void proc_session_name(char *dst, size_t size, int pid, uint64_t ident)
{
    snprintf(dst, size, PREFIX "%d-%016" PRIx64, pid, ident);
}

bool proc_session_parse(const char *session, int *pid, uint64_t *ident)
{
    char again[PROC_SESSION_SIZE];

    if (!session || !str_starts(session, PREFIX) ||
        sscanf(session + strlen(PREFIX), "%d-%" SCNx64, pid, ident) != 2 || *pid <= 0)
        return false;
    proc_session_name(again, sizeof(again), *pid, *ident);
    return str_eq(again, session);
}
