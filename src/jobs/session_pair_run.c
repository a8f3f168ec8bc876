/* The script that a message of a pair is run by: it says whose turn it is, then becomes that
 * role's CLI, with the message as its stdin. */
#include "session_pair.h"
#include "session_priv.h"

#include <cct/jobs/pair.h>
#include <cct/util/json.h>
#include <cct/util/str.h>

static void add_mark(struct buf *out, const struct message *m, const char *id,
                     enum pair_role role, const char *adapter)
{
    struct buf line = BUF_INIT;
    struct jw w;

    jw_init(&w, &line);
    jw_obj(&w, NULL);
    jw_str(&w, "role", pair_role_name(role));
    jw_str(&w, "adapter", adapter);
    jw_str(&w, "message", id);
    jw_str(&w, "by", pair_is_key(m->key) ? "pair" : "you");
    jw_str(&w, "text", m->text);
    jw_end(&w);
    /* the time is that of the run's begin, which is not known here */
    buf_adds(out, "printf '{\"cc_tui\":\"turn\",\"at\":%s000,%s\\n' \"$(date +%s)\" ");
    session_quote(out, buf_str(&line) + 1);
    buf_addc(out, '\n');
    buf_release(&line);
}

int session_pair_script(struct session *s, const struct message *m, const char *id,
                        struct buf *out, struct err *e)
{
    enum pair_role role = pair_addressee(m->text, NULL);
    const struct pair_side *side = &s->pair->p->side[role];
    const struct tool *t = tools_find(s->j->o.tools, side->tool);
    const char *session = s->pair->sums[role].session, *adapter;
    char **words;

    if (!t)
        return err_set(e, ERR_NOTFOUND, "the %s's tool \"%s\" is not known here: add it to "
                       "tools.conf", pair_role_name(role), side->tool);
    words = pair_tool_command(t, side->model, session ? session : side->session, &adapter, e);
    if (!words)
        return e->code;
    add_mark(out, m, id, role, adapter);
    buf_adds(out, "cd \"$HOME\" || exit 1\nexec");
    for (size_t i = 0; words[i]; i++) {
        buf_addc(out, ' ');
        session_quote(out, words[i]);
    }
    buf_addc(out, '\n');
    str_list_free(words);
    return 0;
}
