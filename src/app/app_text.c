/* Texts for the screen and the commands alike: a message with the files that go along with it,
 * the word at the end. */
#include <cct/app.h>

#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/limits.h>
#include <cct/util/str.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool app_is_text(const char *s, size_t len)
{
    if (!utf8_valid(s, len))
        return false;
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)s[i] < ' ' && !strchr("\t\n\r", s[i])) || s[i] == 0x7F || !s[i])
            return false;
    return true;
}

char *app_own_path(const char *path)
{
    const char *home = str_starts(path, "~/") ? getenv("HOME") : NULL;

    return home && *home ? fs_join(home, path + 2) : xstrdup(path);
}

static int add_file(struct buf *b, const char *path, struct err *e)
{
    char *real = app_own_path(path), *text;
    size_t len = 0;

    text = fs_read(real, LIM_MESSAGE_BYTES, false, &len, e);
    free(real);
    if (!text)
        return err_wrap(e, "@%s cannot go along", path);
    if (!app_is_text(text, len)) {
        free(text);
        return err_set(e, ERR_INVALID, "@%s is not text: copy it into the sandbox instead", path);
    }
    buf_addf(b, "\n\n--- %s ---\n", path);
    buf_add(b, text, len);
    buf_addf(b, "%s--- end of %s ---", len && text[len - 1] == '\n' ? "" : "\n", path);
    free(text);
    return 0;
}

/* The same file twice goes along once. */
static bool is_repeated(const char *const *paths, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq(paths[k], paths[i]))
            return true;
    return false;
}

char *app_text_with_files(const char *text, const char *const *paths, struct err *e)
{
    struct buf b = BUF_INIT;
    int rc = 0;

    buf_adds(&b, text);
    for (size_t i = 0; rc == 0 && paths && paths[i]; i++)
        if (!is_repeated(paths, i))
            rc = add_file(&b, paths[i], e);
    if (rc == 0 && b.len > LIM_MESSAGE_BYTES)
        rc = err_set(e, ERR_LIMIT, "with its files it has %zu bytes, at most %u go into a message",
                     b.len, LIM_MESSAGE_BYTES);
    if (rc == 0)
        return buf_detach(&b, NULL);
    buf_release(&b);
    return NULL;
}

char *app_goodbye(const struct app *a)
{
    const struct model *m = app_model(a);
    const char *local = m->local ? " --local" : "";
    char money[32];
    size_t up = 0; /* of all projects, whatever the view was */
    double usd = 0;

    for (size_t i = 0; i < m->n_sandboxes; i++) {
        up += m->sandboxes[i].state == SB_RUNNING || m->sandboxes[i].state == SB_CREATING;
        usd += sandbox_usd_per_hour(&m->sandboxes[i]);
    }
    if (!up)
        return NULL;
    snprintf(money, sizeof(money), "$%.2f per hour", usd);
    return xasprintf("%zu sandbox%s still running (%s)\n"
                     "'cc-tui%s' shows %s again, 'cc-tui kill --all%s' ends %s",
                     up, up == 1 ? " is" : "es are", m->local ? "on this machine, free" : money,
                     local, up == 1 ? "it" : "them", local, up == 1 ? "it" : "them");
}
