/* Projects: what sandboxes of one undertaking have in common. Plain data, owned by whoever
 * holds it; the model's copies belong to the main thread. A project's id is for life, its
 * name may change; keys and secret variables are sealed for the id. */
#ifndef CCT_MODEL_PROJECT_H
#define CCT_MODEL_PROJECT_H

#include <cct/model/ledger.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable of the environment of every sandbox of the project. */
struct project_var {
    char *name;
    char *value;   /* NULL for a secret one: it lies sealed in the store */
    bool secret;
    char last4[5]; /* of a secret one; "" when it is short */
};
/* What a form or `new` begins with; NULL and 0 = not said. */
struct project_choice {
    char *tool, *model, *template_id;
    char *repo, *branch; /* to check out; no password in the address */
    char *prompt;        /* first message; of a preset only */
    int timeout_s;
    int copies;          /* of a preset only */
    bool at_end_known, pause_at_end;
};
/* Choices under a name; project NULL in the store: the user's, for all projects. */
struct project_preset {
    char *name;
    bool of_user;
    struct project_choice c;
};
struct project {
    char *id;            /* for life */
    char *name;
    char *prompt;        /* system prompt for its agents, or NULL */
    char **skills;       /* folders and files on this machine, NULL at the end; or NULL */
    struct project_choice defaults;
    struct ledger_budget budget; /* USD that its day, week, month may cost */
    struct project_var *vars;
    size_t n_vars;
    struct project_preset *presets; /* its own, then the user's */
    size_t n_presets;
    int64_t created_at, used_at;
};

void project_release(struct project *p);
void project_copy(struct project *dst, const struct project *src);
void project_choice_release(struct project_choice *c);
void project_choice_copy(struct project_choice *dst, const struct project_choice *src);
/* What the metadata of a sandbox says of its project; values there are [A-Za-z0-9_-] alone.
 * A name of those characters is said as it is. Another one is said twice: with - in their
 * place ("cc-tui-project", for people and older programs), and exactly
 * ("cc-tui-project-name": _d for a dot, _s for a slash, __ for _). New strings. */
char *project_meta_plain(const char *name);
char *project_meta_exact(const char *name); /* NULL: the plain one is exact */
/* The name back, from the two (either may be NULL); NULL when they say none. */
char *project_of_meta(const char *plain, const char *exact);
/* 1..64 of letters, digits, - _ . and /, no - first; between slashes neither nothing nor
 * dots alone. */
bool project_name_ok(const char *name);

#endif
