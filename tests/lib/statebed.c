/* See statebed.h. */
#include "statebed.h"

#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>


struct faultd *statebed_fake;

void statebed_serve(const char *sandboxes, const char *paused)
{
    const char *args[] = {"--sandboxes", sandboxes, "--paused", paused, NULL};

    statebed_fake = faultd_serve(args);
}

int statebed_teardown(void **state)
{
    appbed_teardown(state);
    faultd_stop(statebed_fake);
    statebed_fake = NULL;
    return 0;
}

void statebed_open_at(struct appbed *b, int poll_ms)
{
    struct app_opts o = {.follow_all = true, .poll_ms = poll_ms};

    setenv("E2B_API_KEY", APPBED_KEY, 1);
    appbed_open(b, &o);
}

const struct model *statebed_model(const struct appbed *b)
{
    return app_model(b->app);
}

const struct sandbox *statebed_row(const struct appbed *b, size_t i)
{
    return &statebed_model(b)->sandboxes[i];
}

static bool has_rows(struct appbed *b, const void *n)
{
    return statebed_model(b)->n_sandboxes == *(const size_t *)n;
}

void statebed_await_rows(struct appbed *b, size_t n)
{
    assert_true(appbed_wait(b, has_rows, &n));
}

static bool link_is(struct appbed *b, const void *st)
{
    return statebed_model(b)->link == *(const enum link_state *)st;
}

void statebed_await_link(struct appbed *b, enum link_state st)
{
    assert_true(appbed_wait(b, link_is, &st));
}

void statebed_lists_answer(const char *what)
{
    char *json = xasprintf("{\"rules\":[{\"method\":\"GET\",\"path\":\"/v2/sandboxes\",%s}]}",
                           what);

    assert_true(faultd_config(statebed_fake, json));
    free(json);
}

void statebed_lists_are_well(void)
{
    assert_true(faultd_config(statebed_fake, "{\"rules\":[]}"));
}

void statebed_kill_elsewhere(const char *id)
{
    char *path = xasprintf("/sandboxes/%s", id), *answer = faultd_http(statebed_fake, "DELETE", path, NULL);

    assert_non_null(answer);
    free(answer);
    free(path);
}

bool statebed_was_said(struct appbed *b, const void *arg)
{
    for (size_t i = 0; i < statebed_model(b)->n_events; i++)
        if (strstr(statebed_model(b)->events[i].text, arg))
            return true;
    return false;
}

bool statebed_lists_came(struct appbed *b, const void *n)
{
    (void)b;
    return faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n >= *(const size_t *)n;
}

void statebed_await_lists(struct appbed *b, size_t more)
{
    size_t n = faultd_asked(statebed_fake, "GET", "/v2/sandboxes*").n + more;

    assert_true(appbed_wait(b, statebed_lists_came, &n));
}

bool statebed_first_killed(struct appbed *b, const void *arg)
{
    (void)arg;
    return statebed_model(b)->n_sandboxes && statebed_row(b, 0)->state == SB_KILLED;
}
