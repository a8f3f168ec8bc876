/* What the demo agent remembers: a file per session below $HOME/.demo-agent, so that a
 * conversation that goes on can be told from a new one. A line per fact. */
#include "demo_agent.h"
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USD_IN 3e-6
#define USD_CACHED 0.3e-6
#define USD_OUT 15e-6

double demo_cost(const struct demo_usage *u)
{
    return (double)u->in * USD_IN + (double)u->cached * USD_CACHED + (double)u->out * USD_OUT;
}

void demo_usage_add(struct demo_usage *sum, const struct demo_usage *u)
{
    sum->in += u->in;
    sum->cached += u->cached;
    sum->out += u->out;
}

static char *file_of(const char *id)
{
    const char *home = getenv("HOME");
    char *dir;
    char *path = NULL;

    for (const char *p = id; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_", *p))
            return NULL;
    if (!home || !*id)
        return NULL;
    dir = xasprintf("%s/.demo-agent", home);
    if (mkdir(dir, 0700) == 0 || access(dir, W_OK) == 0)
        path = xasprintf("%s/%s", dir, id);
    free(dir);
    return path;
}

/* A memory that cannot be kept is only missed by a later --resume, which says so. */
static void note(const struct demo_memory *m, const char *line)
{
    FILE *f = m->path ? fopen(m->path, "ae") : NULL;

    if (!f)
        return;
    fprintf(f, "%s\n", line);
    if (fclose(f) != 0)
        perror("the demo agent's memory");
}

void demo_memory_new(struct demo_memory *m, const char *id)
{
    str_copy(m->id, sizeof(m->id), id);
    m->path = file_of(id);
    note(m, "new");
}

static void recall(struct demo_memory *m, const char *line)
{
    struct demo_usage u;
    struct cJSON *j = json_parse(line, strlen(line), NULL);
    const char *said = json_str(j, "said", NULL);

    if (said)
        *ARR_PUSH(&m->said) = xstrdup(said);
    else if (sscanf(line, "used %lld %lld %lld", (long long *)&u.in, (long long *)&u.cached,
                    (long long *)&u.out) == 3) {
        demo_usage_add(&m->used, &u);
        m->steps++;
    }
    json_free(j);
}

bool demo_memory_resume(struct demo_memory *m, const char *id)
{
    FILE *f;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    str_copy(m->id, sizeof(m->id), id);
    m->path = file_of(id);
    f = m->path ? fopen(m->path, "re") : NULL;
    if (!f)
        return false;
    while ((n = getline(&line, &cap, f)) > 0) {
        line[n - 1] = '\0';
        recall(m, line);
    }
    free(line);
    fclose(f);
    return true;
}

void demo_memory_said(struct demo_memory *m, const char *text)
{
    struct buf b = BUF_INIT;
    struct jw w;

    jw_init(&w, &b);
    jw_obj(&w, NULL);
    jw_str(&w, "said", text);
    jw_end(&w);
    note(m, buf_str(&b));
    buf_release(&b);
    *ARR_PUSH(&m->said) = xstrdup(text);
}

void demo_memory_used(struct demo_memory *m, const struct demo_usage *u)
{
    char line[96];

    snprintf(line, sizeof(line), "used %lld %lld %lld", (long long)u->in, (long long)u->cached,
             (long long)u->out);
    note(m, line);
    demo_usage_add(&m->used, u);
    m->steps++;
}

void demo_memory_release(struct demo_memory *m)
{
    for (size_t i = 0; i < m->said.n; i++)
        free(m->said.v[i]);
    ARR_RELEASE(&m->said);
    free(m->path);
}
