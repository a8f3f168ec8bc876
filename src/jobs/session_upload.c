/* What belongs into the session folder: uploaded under temporary names, moved into place
 * together. */
#include "session_priv.h"
#include "session_start.h"

#include <cct/model/repo.h>
#include <cct/util/json.h>
#include <cct/util/str.h>
#include <cct/util/xalloc.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MS 30000

static const unsigned char runner_sh[] = {
#include <runner.sh.h>
};
static const unsigned char opencode_sh[] = {
#include <opencode-driver.sh.h>
};
static const unsigned char driver_sh[] = {
#include <shell-driver.sh.h>
};

static void on_installed(void *ctx, const struct envd_run_result *r)
{
    struct session *s = ctx;

    s->prov->call = 0;
    if (r->err.code || r->exit_code)
        session_provision_fail(s, r->err.code ? r->err.code : ERR_IO,
                               "moving the uploaded files into '%s' failed: %s", s->dir,
                               r->err.code  ? r->err.text
                               : r->err_len ? r->errout
                                            : "the sandbox refused it");
    else
        session_place(s);
}

static void install(struct session *s)
{
    struct provision *p = s->prov;
    const char *args[PROVISION_FILES + 2] = {s->dir};

    for (size_t i = 0; i < p->n_files; i++)
        args[i + 1] = p->files[i].name;
    p->call = session_sh(s, session_install_script, args, STEP_MS, on_installed, s);
}

/* --- uploads --------------------------------------------------------------------- */

static void one_is_there(struct session *s)
{
    struct provision *p = s->prov;

    if (--p->left)
        return;
    if (p->err.code)
        session_provision_fail(s, p->err.code, "%s", p->err.text);
    else
        install(s);
}

static void on_written(void *ctx, const struct envd_result *r)
{
    struct file *f = ctx;
    struct session *s = f->s;
    struct provision *p = s->prov;

    f->call = 0;
    if (r->err.code && !p->err.code) {
        p->err = r->err;
        err_wrap(&p->err, "uploading '%s' to '%s' failed", f->name, s->dir);
    }
    one_is_there(s);
}

static void upload(struct session *s, const char *name, const void *data, size_t len)
{
    struct provision *p = s->prov;
    struct file *f = &p->files[p->n_files];
    char *path = xasprintf("%s/.up-%s", s->dir, name);

    if (p->n_files++ == PROVISION_FILES)
        BUG("more than %d files for a session", PROVISION_FILES);

    p->left++;
    *f = (struct file){s, name, 0};
    f->call = envd_write(s->envd, path, data, len, on_written, f);
    free(path);
}

static bool wants_driver(const struct session *s)
{
    char **argv = s->tool->argv;

    return s->ad->pty && !s->prov->command && argv && argv[0] && !argv[1] &&
           (str_eq(argv[0], "sh") || str_eq(argv[0], "bash") || str_eq(argv[0], "dash"));
}

static void add_meta(struct session *s, struct buf *out)
{
    const struct sandbox *r = session_row(s);
    struct jw w;

    jw_init(&w, out);
    jw_obj(&w, NULL);
    jw_i64(&w, "format", SESSION_FORMAT);
    jw_str(&w, "session", s->name);
    jw_str(&w, "tool", s->tool->name);
    jw_str(&w, "adapter", s->tool->adapter);
    jw_str(&w, "project", r ? r->project : NULL);
    jw_arr(&w, "argv");
    for (size_t i = 0; s->tool->argv && s->tool->argv[i]; i++)
        jw_str(&w, NULL, s->tool->argv[i]);
    jw_end(&w);
    if (s->prov->model)
        jw_str(&w, "model", s->prov->model);
    if (s->prov->repo)
        jw_str(&w, "repo", s->prov->repo);
    if (s->prov->branch)
        jw_str(&w, "branch", s->prov->branch);
    jw_end(&w);
    buf_addc(out, '\n');
}

/* With its end: sh reads no line without. */
static void upload_line(struct session *s, const char *name, const char *text)
{
    char *line = xasprintf("%s\n", text);

    upload(s, name, line, strlen(line));
    free(line);
}

/* What was chosen when it was made: cli.sh reads it, now and when the CLI starts again. */
static void upload_choices(struct session *s)
{
    struct provision *p = s->prov;
    struct repo r;

    if (p->model)
        upload_line(s, SESSION_MODEL, p->model);
    if (p->ask)
        upload_line(s, SESSION_ASK, p->ask);
    if (p->system_prompt)
        upload(s, SESSION_SYSTEM_PROMPT, p->system_prompt, strlen(p->system_prompt));
    if (p->skills)
        upload(s, SESSION_SKILLS, p->skills, p->skills_len);
    if (p->repo && repo_parse(p->repo, &r, NULL) == 0) {
        upload_line(s, SESSION_WORKDIR, r.folder);
        repo_release(&r);
    }
}

/* A restart keeps the command that was given at the start, unless the tool goes on with
 * its own session. */
bool session_upload_cli(const struct session *s)
{
    bool resumes = s->out.agent_session && s->ad->mode != AGENT_ONE_RUN && s->tool->resume;

    return !s->prov->restart || !s->fo.p.has_cli || resumes;
}

struct session_cli session_cli_of(const struct session *s, const char *resume_id)
{
    const struct tool *t = s->tool;

    return t ? (struct session_cli){.argv = t->argv,
                                    .resume = t->resume,
                                    .resume_id = resume_id,
                                    .model_flag = t->model_flag,
                                    .model = t->model,
                                    .prompt_flag = t->prompt_flag,
                                    .ask_argv = t->ask_argv,
                                    .asks = t->asks}
             : (struct session_cli){.resume_id = resume_id};
}

void session_upload(struct session *s)
{
    struct provision *p = s->prov;
    bool driver = wants_driver(s);
    const char *mode =
        s->ad->mode == AGENT_ONE_RUN ? SESSION_MODE_ONE_RUN "\n" : SESSION_MODE_PERSISTENT "\n";
    struct session_cli cli = session_cli_of(s, p->restart ? s->out.agent_session : NULL);
    struct buf text = BUF_INIT;
    bool with_cli = session_upload_cli(s);

    cli.command = p->command;
    cli.driver = driver;
    session_step(s, "uploading the runner");
    p->left = 1; /* ours: no answer comes before all are on their way */
    upload(s, SESSION_RUNNER, runner_sh, sizeof(runner_sh));
    upload(s, SESSION_MODE, mode, strlen(mode));
    session_cli_script(&text, &cli);
    if (with_cli)
        upload(s, SESSION_CLI, text.p, text.len);
    buf_clear(&text);
    add_meta(s, &text);
    upload(s, SESSION_META, text.p, text.len);
    if (session_cli_drives(s->tool->argv))
        upload(s, SESSION_OPENCODE_DRIVER, opencode_sh, sizeof(opencode_sh));
    if (driver)
        upload(s, SESSION_SHELL_DRIVER, driver_sh, sizeof(driver_sh));
    if (s->ad->pty)
        upload(s, SESSION_PTY, "", 0);
    if (s->ad->hello)
        upload(s, SESSION_HELLO, s->ad->hello, strlen(s->ad->hello));
    upload_choices(s);
    buf_release(&text);
    one_is_there(s);
}
