/* What a user or a file gives for a new sandbox: files of variables, addresses of
 * repositories, and what git says of them. */
#include "../../src/jobs/session_start.h"

#include <cct/model/env_file.h>
#include <cct/model/repo.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void variables(const char *text, size_t len)
{
    struct err e = {0};
    struct kv *v = env_file_parse(text, len, "f", &e);

    if (!v != (e.code != 0) || (e.code && strncmp(e.text, "f:", 2) != 0))
        abort();
    for (struct kv *k = v; k && k->k; k++)
        if (!env_name_ok(k->k) || !k->v || !utf8_valid(k->v, strlen(k->v)))
            abort();
    kv_free(v);
}

/* Nothing that git would take for an option or run; GitHub's key for GitHub alone. */
static void address(const char *text)
{
    struct repo r;
    struct err e = {0};

    if (repo_parse(text, &r, &e) != 0)
        return;
    if (*r.url == '-' || strstr(r.url, "::") || strpbrk(r.url, " \t\n'\"\\$`;&|<>*?()") ||
        !*r.folder || *r.folder == '.' || *r.folder == '-' || strchr(r.folder, '/') ||
        (r.github && (!str_starts(r.url, "https://github.com/") || strchr(r.url, '@'))))
        abort();
    repo_release(&r);
}

static void says(const char *text, size_t len)
{
    char *s = session_git_says(text, len, "secret-key-01");

    if (strstr(s, "secret-key-01") || strchr(s, '\n') || strchr(s, '\033') ||
        !utf8_valid(s, strlen(s)))
        abort();
    free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);

    variables((const char *)data, size);
    address(text);
    repo_branch_check(text, NULL);
    says((const char *)data, size);
    free(text);
    return 0;
}
