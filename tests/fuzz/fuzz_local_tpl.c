/* What the local provider reads about templates: the body that starts a build, names,
 * its own records, which somebody may have damaged. The first byte says which. */
#include <cct/local/tpl.h>
#include <cct/secrets/digest.h>
#include <cct/util/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

static void step(struct tpl_ctx *c, const struct tpl_step *s)
{
    char key[TPL_KEY_LEN + 1], again[TPL_KEY_LEN + 1];
    struct buf b = BUF_INIT;
    struct tpl_run r;
    struct err e = {0};
    tpl_step_key(key, c, s);
    tpl_step_key(again, c, s);
    must(tpl_hash_ok(key) && strcmp(key, again) == 0, "a key is a hash of what is given");
    tpl_step_text(&b, s);
    must(b.len > 0 && b.len < 400 && !strpbrk(buf_str(&b), "\n\r"), "a step is one line");
    must(tpl_step_user_ok(s, &e) || e.text[0], "a refusal says why");
    tpl_step_run(&r, c, s);
    /* whatever the arguments are, only RUN's own text is a command */
    must(s->type == TPL_RUN || r.command != s->args[0], "arguments are no commands");
    must(json_is_object(r.env), "a command has its variables");
    json_free(r.env);
    if (tpl_step_makes_layer(c, s))
        memcpy(c->key, key, sizeof(key));
    must(tpl_step_apply(c, s, &e) == 0 || e.text[0], "a refusal says why");
    must(c->env_bytes <= TPL_ENV_MAX, "variables are bounded");
    must(c->workdir[0] == '/' && c->user[0], "folder and user are known");
    buf_release(&b);
}

static void plan(const char *text, size_t len)
{
    struct cJSON *j = json_parse(text, len, NULL);
    struct tpl_plan p;
    struct err e = {0};
    int rc = tpl_plan_parse(&p, j, &e);
    must(rc == 0 || e.text[0], "a refusal says why");
    must(p.n_steps <= TPL_STEPS_MAX, "steps are bounded");
    if (rc == 0) {
        struct tpl_ctx c;
        must((p.image != NULL) != (p.from != NULL), "one base");
        if (p.image)
            tpl_image_is_base(p.image);
        tpl_ctx_init(&c, "");
        for (size_t i = 0; i < p.n_steps; i++)
            step(&c, &p.steps[i]);
        tpl_ctx_release(&c);
    }
    tpl_plan_release(&p);
    json_free(j);
}

static void name(const char *text)
{
    struct tpl_ref r;
    if (tpl_ref_parse(&r, text, NULL) == 0)
        must(tpl_name_ok(r.name) && !strpbrk(r.tag, "/:\n"), "a name is one");
}

static void record(const char *text, size_t len)
{
    struct tpl *t = tpl_read(text, len, NULL), *same;
    if (!t)
        return;
    struct buf b = BUF_INIT;
    tpl_write(&b, t);
    same = tpl_read(buf_str(&b), b.len, NULL);
    must(same && same->builds.n == t->builds.n && same->tags.n == t->tags.n,
         "what was read can be written and read again");
    struct buf again = BUF_INIT;
    tpl_write(&again, same);
    must(again.len == b.len && memcmp(again.p, b.p, b.len) == 0, "it stays the same");
    tpl_free(same);
    tpl_free(t);
    buf_release(&b);
    buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    digest_init();
    char *text = malloc(size); /* exact, so that a sanitizer sees one byte too many */
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 3) {
    case 0:
        plan(text, size - 1);
        break;
    case 1:
        name(text);
        break;
    default:
        record(text, size - 1);
        break;
    }
    free(text);
    return 0;
}
