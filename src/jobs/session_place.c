/* What belongs outside of the session folder, where the tool looks for it by itself: its
 * skills, and the system prompt of a tool that has no flag for it. At the first start. */
#include "session_priv.h"
#include "session_start.h"

#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_MS 60000

static void on_placed(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;
    char *said = session_git_says(r->errout ? r->errout : "", r->err_len, NULL);

    s->prov->call = 0;
    if (r->err.code || r->exit_code)
        session_provision_fail(s, r->err.code ? r->err.code : ERR_IO,
                               "putting the system prompt and the skills of %s in place failed: %s",
                               s->tool->name,
                               r->err.code ? r->err.text : *said ? said : "the sandbox refused it");
    else
        session_checkout(s);
    free(said);
}

void session_place(struct session *s)
{
    struct provision *p = s->prov;
    const struct tool *t = s->tool;
    bool skills = p->skills && t->skills_dir;
    bool prompt = p->system_prompt && !t->prompt_flag && t->prompt_file;
    const char *args[] = {s->dir, skills ? t->skills_dir : "", prompt ? t->prompt_file : "", NULL};

    if (!skills && !prompt) {
        session_checkout(s);
        return;
    }
    session_step(s, skills ? "unpacking the skills" : "placing the system prompt");
    p->call = session_sh(s, session_place_script, args, PLACE_MS, on_placed, s);
}
