/* The facade without threads: keys, and projects with what is set for them. */
#include "fakeapp.h"

#include <cct/secrets/secret.h>

const struct app_key *app_key_list(struct app *a)
{
    static const char *const names[] = {"e2b",    "anthropic",  "anthropic_token",
                                        "openai", "openrouter", "github"};
    static struct app_key list[7];

    (void)a;
    for (size_t i = 0; i < 6; i++)
        list[i] = (struct app_key){.provider = names[i], .text = (char *)"none"};
    list[1] = (struct app_key){names[1], "****1111", "****2222", true,
                               (char *)"anthropic ****2222 (project key); hides anthropic ****1111 "
                                       "(user key)"};
    return list;
}

struct secret *app_key_clean(struct secret *take, const char *provider, struct err *e)
{
    (void)provider;
    (void)e;
    return take;
}

static uint64_t with_secret(struct app *a, const char *what, const char *name, struct secret *take)
{
    uint64_t req = fake_called(a, "%s %s %zu bytes", what, name, take ? secret_len(take) : 0);

    secret_free(take);
    return req;
}

uint64_t app_key_add(struct app *a, const char *provider, bool project, struct secret *take)
{
    return with_secret(a, project ? "key_add project" : "key_add user", provider, take);
}

uint64_t app_key_rm(struct app *a, const char *provider, bool project)
{
    return fake_called(a, "key_rm %s %s", project ? "project" : "user", provider);
}

uint64_t app_key_test(struct app *a, const char *provider)
{
    return fake_called(a, "key_test %s", provider);
}

uint64_t app_unlock(struct app *a, struct secret *take)
{
    return with_secret(a, "unlock", "-", take);
}

uint64_t app_lock(struct app *a)
{
    return fake_called(a, "lock");
}

void app_touch(struct app *a)
{
    (void)a;
}

uint64_t app_project_switch(struct app *a, const char *project)
{
    return fake_called(a, "project_switch %s", project);
}

uint64_t app_project_var(struct app *a, const char *name, const char *value)
{
    return fake_called(a, value ? "project_var %s=%s" : "project_var %s removed", name, value);
}

uint64_t app_project_secret(struct app *a, const char *name, struct secret *take)
{
    return with_secret(a, "project_secret", name, take);
}

void app_project_view(struct app *a, bool all)
{
    fake_called(a, "project_view %s", all ? "all" : "one");
}

uint64_t app_project_rename(struct app *a, const char *project, const char *name)
{
    return fake_called(a, "project_rename %s %s", project, name);
}
