/* Templates in the control API. */
#include "ctl_priv.h"
#include <cct/local/http_srv.h>

void ctl_tpl_list(struct ctl_call *c)
{
    struct buf out = BUF_INIT;
    ctl_templates_json(&out);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

void ctl_tpl_get(struct ctl_call *c)
{
    const struct ctl_template *t = ctl_template_find(c->part[0]);
    if (!t) {
        http_reply_error(c->r, 404, "template '%.80s' not found", c->part[0]);
        return;
    }
    struct buf out = BUF_INIT;
    ctl_template_json(&out, t);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

void ctl_tpl_alias(struct ctl_call *c)
{
    const struct ctl_template *t = ctl_template_find(c->part[0]);
    if (!t) {
        http_reply_error(c->r, 404, "template alias '%.80s' not found", c->part[0]);
        return;
    }
    struct buf out = BUF_INIT;
    struct jw w;
    jw_init(&w, &out);
    jw_obj(&w, NULL);
    jw_str(&w, "templateID", t->id);
    jw_bool(&w, "public", false);
    jw_end(&w);
    http_reply(c->r, 200, out.p, out.len);
    buf_release(&out);
}

void ctl_tpl_build(struct ctl_call *c)
{
    http_reply_error(c->r, 501,
                     "the local provider builds no templates: the built-in ones are base, "
                     "demo, shell, claude, codex, opencode and pi");
}
