/* A field whose contents are not shown. */
#include <cct/ui/secretfield.h>

#include <cct/util/utf8.h>
#include <string.h>

void secretfield_init(struct secretfield *f)
{
    f->room = secret_new_bytes(NULL, SECRETFIELD_MAX);
    f->p = (char *)(uintptr_t)secret_value(f->room);
    f->len = 0;
}

void secretfield_release(struct secretfield *f)
{
    secret_free(f->room);
    *f = (struct secretfield){0};
}

void secretfield_clear(struct secretfield *f)
{
    secret_wipe(f->p, SECRETFIELD_MAX);
    f->len = 0;
}

static bool add(struct secretfield *f, const char *s, size_t len)
{
    if (len > SECRETFIELD_MAX - f->len)
        return false;
    memcpy(f->p + f->len, s, len);
    f->len += len;
    return true;
}

static void drop_last(struct secretfield *f)
{
    while (f->len && ((unsigned char)f->p[f->len - 1] & 0xC0) == 0x80)
        f->p[--f->len] = '\0';
    if (f->len)
        f->p[--f->len] = '\0';
}

bool secretfield_key(struct secretfield *f, enum action a, key_code k, const char *paste, size_t len)
{
    char one[8];

    if (k == K_PASTE) {
        while (len && (paste[len - 1] == '\n' || paste[len - 1] == '\r'))
            len--;
        return add(f, paste, len);
    }
    if (a == ACT_ERASE) {
        drop_last(f);
        return true;
    }
    if (a == ACT_CUT_TO_BEGIN) {
        secretfield_clear(f);
        return true;
    }
    if (k < ' ' || k & (KEYC_ALT | KEYC_SPECIAL))
        return false;
    len = utf8_encode(one, k);
    bool ok = add(f, one, len);
    secret_wipe(one, sizeof(one));
    return ok;
}

struct secret *secretfield_take(struct secretfield *f, bool text)
{
    struct secret *s = NULL;

    if (f->len)
        s = text ? secret_new(f->p, f->len) : secret_new_bytes(f->p, f->len);
    secretfield_clear(f);
    return s;
}

void secretfield_draw(const struct secretfield *f, struct canvas *c, int y, int x, int w)
{
    canvas_fill(c, (struct rect){y, x, 1, w}, ROLE_FIELD, " ");
    canvas_text(c, y, x, w, ROLE_FIELD, f->len ? "(not shown)" : "");
    c->cursor_y = y;
    c->cursor_x = x + (f->len ? 11 : 0);
}
