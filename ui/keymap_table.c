/* The actions and their keys as a Markdown table, for the README and `config keys`. */
#include <cct/ui/keymap.h>

#include <cct/util/buf.h>

/* A key may be '|', which ends a cell. */
static void add_cell(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '|')
            buf_addc(b, '\\');
        buf_addc(b, *s);
    }
}

char *keymap_table(const struct keymap *k)
{
    struct buf b = BUF_INIT;

    buf_adds(&b, "| Where | Keys | Action | Meaning |\n|---|---|---|---|\n");
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++) {
        enum action act = (enum action)a;
        buf_addf(&b, "| %s | `", scope_word(action_scope(act)));
        add_cell(&b, keymap_keys(k, act));
        buf_addf(&b, "` | %s | %s |\n", action_name(act), action_help(act));
    }
    return buf_detach(&b, NULL);
}
