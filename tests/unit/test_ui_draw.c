/* Canvas, themes and layout: the parts below the panes. */
#include "../lib/screenscript.h"

#include <cct/util/buf.h>
#include <cct/util/fs.h>
#include <cct/util/utf8.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WIDE "\xe6\x97\xa5"

static void expect_rows(struct canvas *c, const char *want)
{
    char *got = canvas_dump(c, false);
    assert_string_equal(got, want);
    free(got);
}

static void test_clipping(void **state)
{
    (void)state;
    struct canvas c;
    canvas_init(&c);
    canvas_resize(&c, 3, 8);
    assert_int_equal(canvas_text(&c, 0, 0, -1, ROLE_TEXT, "abcdefghij"), 8);
    assert_int_equal(canvas_text(&c, 1, 6, 3, ROLE_TEXT, "xyz"), 3);
    canvas_text(&c, 9, 0, -1, ROLE_TEXT, "no row");
    canvas_text(&c, -1, 0, -1, ROLE_TEXT, "no row");
    canvas_text(&c, 2, -2, -1, ROLE_TEXT, "abcd");
    expect_rows(&c, "abcdefgh\n      xy\ncd\n");
    canvas_erase(&c, ROLE_TEXT);
    struct rect old = canvas_clip(&c, (struct rect){1, 2, 1, 3});
    for (int y = 0; y < 3; y++)
        canvas_text(&c, y, 0, -1, ROLE_TEXT, "12345678");
    canvas_unclip(&c, old);
    expect_rows(&c, "\n  345\n\n");
    canvas_release(&c);
}

/* Half of a wide character never stays: at borders and under other text. */
static void test_wide(void **state)
{
    (void)state;
    struct canvas c;
    canvas_init(&c);
    canvas_resize(&c, 1, 5);
    assert_int_equal(canvas_text(&c, 0, 0, -1, ROLE_TEXT, WIDE WIDE WIDE), 6);
    expect_rows(&c, WIDE WIDE "\n");
    canvas_text(&c, 0, 1, 1, ROLE_TEXT, "x");
    expect_rows(&c, " x" WIDE "\n");
    canvas_text(&c, 0, 2, 1, ROLE_TEXT, "y");
    expect_rows(&c, " xy\n");
    assert_int_equal(canvas_text(&c, 0, 0, 3, ROLE_TEXT, WIDE WIDE), 2);
    expect_rows(&c, WIDE "y\n");
    c.ascii = true;
    canvas_text(&c, 0, 0, -1, ROLE_TEXT, WIDE "\xe2\x80\x94!");
    expect_rows(&c, "?""?-!\n");
    canvas_release(&c);
}

/* Marks stay on their base, what cannot be seen does not come out. */
static void test_marks(void **state)
{
    (void)state;
    struct canvas c;
    canvas_init(&c);
    canvas_resize(&c, 1, 6);
    canvas_text(&c, 0, 0, -1, ROLE_TEXT, "e\xcc\x81x\xe2\x80\xae" "y\xe2\x80\x8d\xef\xb8\x8fz");
    assert_string_equal(c.cells[0].ch, "e\xcc\x81");
    assert_string_equal(c.cells[1].ch, "x");
    assert_string_equal(c.cells[2].ch, "y");
    assert_string_equal(c.cells[3].ch, "z");
    canvas_text(&c, 0, 0, -1, ROLE_TEXT, "a\tb\x1b[c\x7f\xc2\x9b");
    for (int x = 0; x < 6; x++)
        assert_true((unsigned char)c.cells[x].ch[0] >= ' ' && c.cells[x].ch[0] != 0x7F);
    canvas_release(&c);
}

static void test_runs(void **state)
{
    (void)state;
    struct canvas c;
    static const struct text_run runs[] = {
        {0, {1, TEXT_COLOR_DEFAULT, 0}}, {2, {TEXT_COLOR_DEFAULT, 2, TEXT_BOLD}},
        {4, {TEXT_COLOR_DEFAULT, TEXT_COLOR_DEFAULT, 0}}};
    canvas_init(&c);
    canvas_resize(&c, 2, 8);
    canvas_runs(&c, 0, 0, -1, ROLE_TEXT, "abcdef", 6, runs, 3, 0);
    assert_int_equal(c.cells[1].fg, 1);
    assert_int_equal(c.cells[2].bg, 2);
    assert_int_equal(c.cells[2].flags, TEXT_BOLD);
    assert_int_equal(c.cells[4].bg, TEXT_COLOR_DEFAULT);
    /* from the middle of the text on */
    canvas_runs(&c, 1, 0, 2, ROLE_TEXT, "def", 3, runs, 3, 3);
    assert_int_equal(c.cells[8].flags, TEXT_BOLD);
    assert_int_equal(c.cells[9].flags, 0);
    assert_string_equal(c.cells[10].ch, " ");
    canvas_release(&c);
}

/* What a server says without end costs the details of it no more than its begin. */
static void test_long_values(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct script s;
    script_init(&s);
    script_run(&s, "loaded\nlink ok cloud\nrow 1 box claude running idle\n");
    script_draw(&s);
    struct sandbox x = *model_sandbox(s.ui.model, s.ui.selected);
    x.template_id = xmalloc(300001);
    for (size_t i = 0; i < 300000; i += 3)
        memcpy(x.template_id + i, WIDE, 3);
    x.template_id[300000] = 0;
    details_text(&s.ui, &x, &b, s.ui.now);
    free(x.template_id);
    assert_true(b.len < 4096);
    assert_true(utf8_valid(buf_str(&b), b.len));
    assert_non_null(strstr(buf_str(&b), " ... (300000 bytes in all)"));
    buf_release(&b);
    script_release(&s);
}

/* --- themes --------------------------------------------------------------------------- */

static void test_shipped_themes(void **state)
{
    (void)state;
    for (size_t i = 0; theme_shipped(i); i++) {
        const char *name = theme_shipped(i);
        struct theme t, from_file;
        struct err e = {0};
        char path[64];
        size_t len;
        if (theme_load(&t, name, NULL, &e))
            fail_msg("%s", e.text);
        assert_string_equal(t.name, name);
        snprintf(path, sizeof(path), "themes/%s.theme", name);
        char *text = fs_read(path, 1 << 16, false, &len, &e);
        assert_non_null(text);
        theme_builtin(&from_file);
        if (theme_parse(&from_file, text, len, path, &e))
            fail_msg("%s", e.text);
        for (size_t r = 0; r < ROLE_COUNT; r++) { /* by member: padding is nobody's */
            assert_int_equal(t.roles[r].fg, from_file.roles[r].fg);
            uint32_t bg = from_file.roles[r].bg;
            assert_int_equal(t.roles[r].bg, bg != TEXT_COLOR_DEFAULT ? bg
                                                                     : from_file.roles[ROLE_TEXT].bg);
            assert_int_equal(t.roles[r].flags, from_file.roles[r].flags);
        }
        free(text);
    }
}

static void test_theme_manners(void **state)
{
    (void)state;
    struct theme dark, light, mono;
    theme_load(&dark, "dark", NULL, NULL);
    theme_load(&light, "light", NULL, NULL);
    theme_load(&mono, "mono", NULL, NULL);
    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct theme_style *d = &dark.roles[r], *l = &light.roles[r], *m = &mono.roles[r];
        const char *name = theme_role_name((enum theme_role)r);
        /* the default uses the 16 colours and leaves the terminal's own background */
        if (d->fg != TEXT_COLOR_DEFAULT && d->fg > 15)
            fail_msg("dark: %s is not of the 16 colours", name);
        if (d->bg != TEXT_COLOR_DEFAULT && r != ROLE_MATCH)
            fail_msg("dark: %s sets a background", name);
        if (m->fg != TEXT_COLOR_DEFAULT || m->bg != TEXT_COLOR_DEFAULT)
            fail_msg("mono: %s has a colour", name);
        /* yellow, cyan, white and the bright ones cannot be read on white */
        bool pale = l->fg == 3 || l->fg == 6 || l->fg == 7 || (l->fg > 8 && l->fg <= 15) ||
                    (l->fg == TEXT_COLOR_DEFAULT && l->bg != TEXT_COLOR_DEFAULT);
        if (pale)
            fail_msg("light: %s cannot be read on white", name);
    }
}

static void test_theme_errors(void **state)
{
    (void)state;
    struct theme t;
    struct err e = {0};
    static const char text[] = "# mine\nerorr = red\nasks = mauve\nidle = blue bold\n";
    theme_builtin(&t);
    assert_true(theme_parse(&t, text, sizeof(text) - 1, "my.theme", &e) != 0);
    assert_non_null(strstr(e.text, "my.theme:2"));
    assert_non_null(strstr(e.text, "did you mean 'error'"));
    assert_int_equal(t.roles[ROLE_IDLE].fg, 4); /* the rest counts */
    assert_true(theme_load(&t, "nosuch", NULL, &e) != 0);
    assert_non_null(strstr(e.text, "nosuch"));
    assert_true(theme_load(&t, "../x", NULL, &e) != 0);
}

/* --- layout ------------------------------------------------------------------------------ */

static bool overlap(const struct rect *a, const struct rect *b)
{
    return a->y < b->y + b->h && b->y < a->y + a->h && a->x < b->x + b->w && b->x < a->x + a->w;
}

static void check_layout(struct ui *ui, int h, int w)
{
    for (int i = 0; i < PANE_COUNT; i++) {
        const struct pane *p = &ui->panes[i];
        const struct rect *r = &p->r;
        if (!p->visible)
            continue;
        if (ui->tiny || r->y < 1 || r->x < 0 || r->h < 1 || r->w < 1 || r->y + r->h > h - 2 ||
            r->x + r->w > w)
            fail_msg("%dx%d: pane %s at %d,%d %dx%d", w, h, p->ops->name, r->y, r->x, r->w, r->h);
        for (int k = 0; k < i; k++)
            if (ui->panes[k].visible && overlap(r, &ui->panes[k].r))
                fail_msg("%dx%d: panes %s and %s overlap", w, h, p->ops->name,
                         ui->panes[k].ops->name);
    }
}

static void test_layout(void **state)
{
    (void)state;
    struct script s;
    script_init(&s);
    script_run(&s, "loaded\nlink ok cloud\nrows 20 1\nlines 1 30 words and more words");
    script_draw(&s);
    for (int h = 0; h <= 60; h++)
        for (int w = 0; w <= 220; w++) {
            ui_resize(&s.ui, h, w);
            for (int f = 0; f < PANE_COUNT; f++) {
                s.ui.zoom = (h + w + f) % 3 == 0;
                ui_focus(&s.ui, (enum pane_id)f);
                check_layout(&s.ui, h, w);
                assert_true(s.ui.tiny || s.ui.panes[f].visible);
            }
        }
    script_release(&s);
}

static int rows_of(struct script *s, enum pane_id p)
{
    return s->ui.panes[p].visible ? s->ui.panes[p].r.h : 0;
}

/* The list keeps what it needs, and the least needed pane gives way first, from a screen that has
 * room for all of them to one that has not; nothing moves for one sandbox more. */
static void test_columns(void **state)
{
    (void)state;
    static const struct {
        int h, w, list;
        bool details, changes, builds, usage, events;
    } want[] = {{30, 100, 12, true, false, false, false, true},
                {40, 120, 20, true, false, false, true, true},
                {50, 140, 24, true, false, true, true, true},
                {45, 160, 20, true, false, true, true, true},
                {60, 200, 24, true, true, true, true, true},
                {70, 250, 24, true, true, true, true, true}};
    struct script s;
    script_init(&s);
    script_run(&s, "loaded\nlink ok cloud\nrows 20 1\n");
    script_draw(&s);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        ui_resize(&s.ui, want[i].h, want[i].w);
        int list = rows_of(&s, PANE_LIST), at = s.ui.panes[PANE_EVENTS].r.y;
        if (list < want[i].list || !rows_of(&s, PANE_DETAILS) != !want[i].details ||
            !rows_of(&s, PANE_CHANGES) != !want[i].changes ||
            !rows_of(&s, PANE_BUILDS) != !want[i].builds ||
            !rows_of(&s, PANE_USAGE) != !want[i].usage || !rows_of(&s, PANE_EVENTS) != !want[i].events)
            fail_msg("%dx%d: list %d details %d changes %d builds %d usage %d events %d", want[i].w,
                     want[i].h, list, rows_of(&s, PANE_DETAILS), rows_of(&s, PANE_CHANGES),
                     rows_of(&s, PANE_BUILDS), rows_of(&s, PANE_USAGE), rows_of(&s, PANE_EVENTS));
        script_line(&s, "row 77 more claude running idle", "test");
        script_draw(&s);
        assert_int_equal(s.ui.panes[PANE_EVENTS].r.y, at);
        script_line(&s, "gone 77", "test");
        script_draw(&s);
    }
    script_release(&s);
}

/* A small pane that has the keys keeps them, in sight, at every size. */
static void test_focus_through_sizes(void **state)
{
    (void)state;
    static const int sizes[][2] = {{24, 80}, {30, 100}, {12, 50}, {60, 200}, {45, 160}, {40, 120}};
    struct script s;
    script_init(&s);
    script_run(&s, "size 40 120\nloaded\nlink ok cloud\nrows 3 1\ntbuild 1 a claude 1 ready 90 60\n");
    script_line(&s, "keys 3", "test");
    assert_int_equal(s.ui.body, BODY_WORK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ui_resize(&s.ui, sizes[i][0], sizes[i][1]);
        script_draw(&s);
        assert_int_equal(s.ui.focus, PANE_BUILDS);
        assert_true(s.ui.panes[PANE_BUILDS].visible);
    }
    script_line(&s, "keys f", "test");
    assert_int_equal(s.ui.body, BODY_BUILDS);
    ui_resize(&s.ui, 24, 80); /* where it has no place beside others */
    script_line(&s, "keys q", "test");
    assert_int_equal(s.ui.body, BODY_WORK);
    assert_int_equal(s.ui.focus, PANE_LIST);
    script_line(&s, "keys 4", "test");
    assert_int_equal(s.ui.body, BODY_USAGE);
    script_line(&s, "keys 4", "test");
    assert_int_equal(s.ui.body, BODY_WORK);
    script_release(&s);
}

/* Every dialog at many sizes: nothing crashes, nothing is drawn outside. */
static void test_dialogs_at_sizes(void **state)
{
    (void)state;
    static const char *const open[] = {"keys ?", "keys K", "keys D", "keys n", "keys d",
                                       "keys t", "keys R", "keys /", "keys 2 / \"word\" Enter",
                                       "keys i \"some text\""};
    struct script s;
    script_init(&s);
    script_run(&s, "size 24 80\nloaded\nlink ok cloud\nrows 20 1\ntool claude base\n"
                   "lines 1 30 words\n");
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        script_line(&s, "size 24 80", "test");
        script_line(&s, open[i], "test");
        script_line(&s, "kill armed 12 14 0 0 0 0", "test");
        for (int h = 0; h <= 40; h += h < 12 ? 1 : 7)
            for (int w = 0; w <= 130; w += w < 64 ? 3 : 11) {
                ui_resize(&s.ui, h, w);
                script_draw(&s);
            }
        script_line(&s, "size 24 80", "test");
        script_line(&s, "keys Esc Esc Esc 1", "test");
        assert_int_equal(s.ui.n_overlays, 0);
    }
    script_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clipping),      cmocka_unit_test(test_wide),
        cmocka_unit_test(test_marks),         cmocka_unit_test(test_runs),
        cmocka_unit_test(test_shipped_themes), cmocka_unit_test(test_theme_manners),
        cmocka_unit_test(test_theme_errors),  cmocka_unit_test(test_layout),
        cmocka_unit_test(test_columns),       cmocka_unit_test(test_focus_through_sizes),
        cmocka_unit_test(test_dialogs_at_sizes), cmocka_unit_test(test_long_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
