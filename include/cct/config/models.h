/* Models and their list prices: a compiled-in table, changed and extended by `models.conf`
 * in the configuration folder:
 *
 *     [model gpt-6.2-sol]          a known name changes that model, a new one adds one
 *     provider = openai
 *     label = GPT-6.2 Sol
 *     input = 2                    USD for 1M tokens; without input and output a model
 *     output = 10                  is unpriced
 *     cache_read = 0.1             input that came from a cache; without it, as input
 *     cache_write = 2.5            likewise
 *     date = 2026-11-20            when these prices held
 *
 *     [sandbox]                    what a running sandbox costs
 *     vcpu_second = 0.000014       USD for one vCPU in one second
 *     gib_second = 0.0000045       USD for one GiB of memory in one second
 *     date = 2026-08-06
 *
 * The same name with two providers: [model openrouter/openai/gpt-6.2-sol] says which one.
 * An unknown model is unpriced, never free. One owner, read-only after loading. */
#ifndef CCT_CONFIG_MODELS_H
#define CCT_CONFIG_MODELS_H

#include <cct/config/tools.h>
#include <cct/util/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model_info {
    char *provider, *name; /* "openrouter", "anthropic/claude-sonnet-5.5" */
    char *label, *date;    /* date may be NULL */
    double input, output, cache_read, cache_write; /* USD per 1M tokens; NaN unknown */
};

struct models;

struct models *models_new(void); /* the compiled-in ones */
void models_free(struct models *m);
/* As tools_load(). */
int models_load(struct models *m, const char *path, void (*say)(void *ctx, const char *message),
                void *ctx, struct err *e);
const struct model_info *models_at(const struct models *m, size_t i); /* NULL past the end */
/* By its name, with or without its provider before it; NULL when unknown. A name that ends
 * in a date (claude-sonnet-4-5-20250929) is the one without it, if it is not known itself. */
const struct model_info *models_find(const struct models *m, const char *name);
/* The i-th model that the tool can take, in the order of its providers; NULL past the end. */
const struct model_info *models_for(const struct models *m, const struct tool *t, size_t i);
/* What the tool is told: NAME or PROVIDER/NAME; free(). */
char *model_word(const struct tool *t, const struct model_info *i);
/* Price of a sandbox. */
struct sandbox_rate {
    double vcpu_second, gib_second; /* USD; NaN unknown */
    char *date;                     /* may be NULL */
    bool own;                       /* from models.conf */
};
const struct sandbox_rate *models_sandbox(const struct models *m);
/* USD a second of one with these sizes; NaN when unpriced. */
double sandbox_rate_of(const struct sandbox_rate *r, int cpu_count, int memory_mb);
/* The same for a sandbox of that account: those of our own provider ("local") are free. */
double models_sandbox_rate(const struct models *m, const char *account, int cpu_count,
                           int memory_mb);
/* List price of so many tokens, `input` without what the cache gave; NaN when unpriced. */
double models_cost(const struct models *m, const char *name, int64_t input, int64_t cache_read,
                   int64_t cache_write, int64_t output);

#endif
