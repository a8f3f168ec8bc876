/* The line editor: clusters, wide characters, history, limits, pastes. */
#include <cct/ui/inputline.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WIDE "\xe6\x97\xa5"
#define ACUTE "e\xcc\x81"
#define FLAG "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa"

/* A key, as it is bound by default. */
static bool press(struct inputline *l, key_code k)
{
    struct keymap *map = keymap_new();
    bool pending, taken;
    taken = inputline_key(l, keymap_find(map, SCOPE_LINE, k, &pending), k);
    keymap_free(map);
    return taken;
}

static void type(struct inputline *l, const char *s)
{
    for (; *s; s++)
        assert_true(press(l, (unsigned char)*s));
}

static void expect(struct inputline *l, const char *want, size_t cursor)
{
    assert_string_equal(inputline_text(l), want);
    assert_int_equal(l->cursor, cursor);
}

static void test_editing(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, false, 100);
    type(&l, "hello world");
    press(&l, 'W' & 0x1F);
    expect(&l, "hello ", 6);
    press(&l, 'A' & 0x1F);
    press(&l, 'Y' & 0x1F);
    expect(&l, "worldhello ", 5);
    press(&l, 'K' & 0x1F);
    expect(&l, "world", 5);
    press(&l, KEYC_ALT | 'b');
    expect(&l, "world", 0);
    press(&l, KEYC_ALT | 'd');
    expect(&l, "", 0);
    for (const char *p = "KUWYDH"; *p; p++) /* on an empty line */
        assert_true(press(&l, (key_code)(*p & 0x1F)));
    assert_true(press(&l, K_DELETE));
    assert_false(press(&l, K_F1));
    assert_false(press(&l, K_ENTER));
    inputline_release(&l);
}

static void test_clusters(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, false, 100);
    inputline_insert(&l, "a" ACUTE WIDE FLAG, strlen("a" ACUTE WIDE FLAG));
    size_t all = l.text.len;
    press(&l, K_LEFT);
    assert_int_equal(l.cursor, all - strlen(FLAG));
    press(&l, K_LEFT);
    press(&l, K_LEFT);
    assert_int_equal(l.cursor, 1);
    press(&l, K_DELETE);
    assert_string_equal(inputline_text(&l), "a" WIDE FLAG);
    press(&l, K_END);
    press(&l, K_BACKSPACE);
    assert_string_equal(inputline_text(&l), "a" WIDE);
    inputline_release(&l);
}

static void test_paste(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, true, 16);
    assert_true(inputline_insert(&l, "a\r\nb\rc\x1b[2J\x07\xc2\x9b", 14));
    expect(&l, "a\nb\nc[2J", 8);
    assert_false(inputline_insert(&l, "12345" WIDE WIDE, 11)); /* the whole or nothing */
    expect(&l, "a\nb\nc[2J", 8);
    assert_true(inputline_insert(&l, "12345" WIDE, 8));
    assert_false(inputline_insert(&l, "x", 1));
    expect(&l, "a\nb\nc[2J12345" WIDE, 16);
    inputline_release(&l);
    inputline_init(&l, false, 16);
    inputline_insert(&l, "a\nb\tc\xe6\x97", 7);
    expect(&l, "a b c", 5);
    inputline_release(&l);
    /* 1 MB at once is refused, and not slow */
    char *big = xmalloc(1 << 20);
    memset(big, 'x', 1 << 20);
    inputline_init(&l, true, 65536);
    assert_false(inputline_insert(&l, big, 1 << 20));
    assert_int_equal(l.text.len, 0);
    assert_true(inputline_insert(&l, big, 65536));
    assert_int_equal(l.text.len, 65536);
    inputline_release(&l);
    free(big);
}

/* --- what one character stands for ------------------------------------------------- */

static char *lines_of(int n)
{
    struct buf b = BUF_INIT;
    for (int i = 1; i <= n; i++)
        buf_addf(&b, "line %d%s", i, i < n ? "\n" : "");
    return buf_detach(&b, NULL);
}

static void test_folded_paste(void **state)
{
    (void)state;
    struct inputline l;
    char *ten = lines_of(10), *want = xasprintf("see  and %s<", ten);
    inputline_init(&l, true, 150);
    l.folds = true;
    type(&l, "see  and ");
    assert_true(inputline_paste(&l, ten, strlen(ten)));
    type(&l, "<");
    assert_string_equal(inputline_text(&l), want);
    assert_int_equal(inputline_bytes(&l), strlen(want));
    assert_int_equal(l.text.len, 9 + 3 + 1);
    assert_int_equal(inputline_rows(&l, 80), 1);
    /* it is one character: passed and taken out as a whole */
    press(&l, K_LEFT);
    press(&l, K_LEFT);
    assert_int_equal(l.cursor, 9);
    press(&l, K_DELETE);
    assert_string_equal(inputline_text(&l), "see  and <");
    assert_int_equal(l.n_objects, 0);
    /* cut and put back elsewhere, in order with others */
    inputline_paste(&l, ten, strlen(ten));
    press(&l, 'U' & 0x1F);
    assert_int_equal(l.n_objects, 0);
    press(&l, 'Y' & 0x1F);
    assert_string_equal(inputline_text(&l), want);
    assert_false(inputline_paste(&l, want, strlen(want)));
    assert_string_equal(inputline_text(&l), want);
    inputline_set(&l, "");
    assert_int_equal(l.n_objects, 0);
    inputline_paste(&l, ten, strlen(ten));
    press(&l, 'A' & 0x1F);
    char *nine = lines_of(9);
    inputline_paste(&l, nine, strlen(nine));
    assert_int_equal(l.n_objects, 2);
    assert_string_equal(l.objects[0].label, "[pasted 9 lines]");
    free(want);
    want = xasprintf("%s%s", nine, ten);
    assert_string_equal(inputline_text(&l), want);
    press(&l, K_END);
    assert_true(inputline_unfold(&l));
    assert_false(inputline_unfold(&l));
    assert_string_equal(inputline_text(&l), want);
    assert_string_equal(l.text.p, want);
    inputline_release(&l);
    free(ten);
    free(nine);
    free(want);
}

/* The character that stands for something cannot come from outside. */
static void test_no_false_object(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, true, 300);
    inputline_insert(&l, "a\xef\xbf\xbc" "b", 5);
    assert_string_equal(inputline_text(&l), "ab");
    assert_false(press(&l, 0xFFFC) && l.text.len != 2);
    inputline_release(&l);
}

static void test_files(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, true, 30);
    type(&l, "read @no");
    assert_true(inputline_attach(&l, 5, "notes.txt"));
    type(&l, " !");
    expect(&l, "read @notes.txt !", 10);
    assert_string_equal(inputline_file(&l, 0), "notes.txt");
    assert_null(inputline_file(&l, 1));
    assert_false(inputline_attach(&l, l.cursor, "a-name-that-is-too-long"));
    press(&l, 'U' & 0x1F);
    assert_null(inputline_file(&l, 0));
    press(&l, 'Y' & 0x1F); /* as text: only choosing it makes it a file */
    assert_string_equal(inputline_text(&l), "read @notes.txt !");
    assert_null(inputline_file(&l, 0));
    inputline_release(&l);
}

static void test_history(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, true, 100);
    assert_false(inputline_history_prev(&l));
    inputline_history_add(&l, "one");
    inputline_history_add(&l, "two");
    inputline_history_add(&l, "two");
    assert_int_equal(l.n_history, 2);
    type(&l, "draft");
    assert_true(inputline_history_prev(&l));
    expect(&l, "two", 3);
    assert_true(inputline_history_prev(&l));
    expect(&l, "one", 3);
    assert_false(inputline_history_prev(&l));
    assert_true(inputline_history_next(&l));
    assert_true(inputline_history_next(&l));
    expect(&l, "draft", 5);
    assert_false(inputline_history_next(&l));
    for (int i = 0; i < 300; i++)
        inputline_history_add(&l, i % 2 ? "x" : "y");
    assert_int_equal(l.n_history, 200);
    /* inside several lines it moves by rows first, keeping the column in cells */
    inputline_set(&l, WIDE WIDE "\nabcd");
    assert_true(inputline_history_prev(&l));
    assert_int_equal(l.cursor, 6);
    press(&l, K_HOME);
    press(&l, K_RIGHT);
    assert_true(inputline_history_next(&l));
    assert_int_equal(l.cursor, 9);
    inputline_release(&l);
}

/* What was recalled and thrown away is recalled again. */
static void test_history_begins_anew(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, false, 100);
    inputline_history_add(&l, "one");
    for (int i = 0; i < 2; i++) {
        assert_true(inputline_history_prev(&l));
        assert_string_equal(inputline_text(&l), "one");
        inputline_set(&l, "");
    }
    inputline_release(&l);
}

static void draw(struct inputline *l, struct canvas *c, int h, int w)
{
    canvas_resize(c, h, w);
    inputline_draw(l, c, (struct rect){0, 0, h, w}, ROLE_INPUT, true);
    assert_true(c->cursor_y >= 0 && c->cursor_y < h && c->cursor_x >= 0 && c->cursor_x < w);
}

static void test_drawing(void **state)
{
    (void)state;
    struct inputline l;
    struct canvas c;
    canvas_init(&c);
    inputline_init(&l, true, 1000);
    type(&l, "one two three");
    assert_int_equal(inputline_rows(&l, 8), 2);
    draw(&l, &c, 2, 8);
    char *got = canvas_dump(&c, false);
    assert_string_equal(got, "one two\nthree\n");
    free(got);
    assert_int_equal(c.cursor_y, 1);
    assert_int_equal(c.cursor_x, 5);
    /* a full row: the cursor stands on a row of its own */
    inputline_set(&l, "12345678");
    assert_int_equal(inputline_rows(&l, 8), 2);
    draw(&l, &c, 2, 8);
    assert_int_equal(c.cursor_y, 1);
    assert_int_equal(c.cursor_x, 0);
    inputline_set(&l, "12345678\n" WIDE "\tx");
    draw(&l, &c, 3, 8);
    assert_int_equal(c.cursor_y, 1);
    assert_int_equal(c.cursor_x, 4);
    /* too low for all rows: the cursor's is shown */
    inputline_set(&l, "a\nb\nc\nd");
    draw(&l, &c, 2, 8);
    got = canvas_dump(&c, false);
    assert_string_equal(got, "c\nd\n");
    free(got);
    for (int w = 1; w < 12; w++)
        draw(&l, &c, 1, w);
    canvas_release(&c);
    inputline_release(&l);
}

/* Backwards through what has the text in it; what is typed then begins anew. */
static void test_history_find(void **state)
{
    (void)state;
    struct inputline l;
    inputline_init(&l, false, 100);
    inputline_history_add(&l, "run make test");
    inputline_history_add(&l, "look at this");
    inputline_history_add(&l, "run make lint");
    inputline_set(&l, "MAKE");
    assert_true(inputline_history_find(&l));
    assert_string_equal(inputline_text(&l), "run make lint");
    assert_true(inputline_history_find(&l));
    assert_string_equal(inputline_text(&l), "run make test");
    assert_false(inputline_history_find(&l));
    assert_string_equal(inputline_text(&l), "run make test");
    assert_true(inputline_history_next(&l) && inputline_history_next(&l) && inputline_history_next(&l));
    assert_string_equal(inputline_text(&l), "MAKE"); /* the draft */
    inputline_set(&l, "look");
    assert_true(inputline_history_find(&l));
    assert_string_equal(inputline_text(&l), "look at this");
    inputline_set(&l, "nothing such");
    assert_false(inputline_history_find(&l));
    assert_string_equal(inputline_text(&l), "nothing such");
    inputline_release(&l);
}

/* As in readline: what was killed in one message can be put into another one. A form's own text
 * gets nowhere else, and takes nothing away. */
static void test_killed_is_for_all(void **state)
{
    struct inputline a, b, form;
    (void)state;
    inputline_init(&a, true, 100);
    inputline_init(&b, true, 100);
    inputline_init(&form, false, 100);
    a.folds = b.folds = true;
    type(&a, "for b");
    press(&a, 'U' & 0x1F);
    press(&form, 'Y' & 0x1F);
    expect(&form, "", 0);
    type(&form, "TOKEN=x");
    press(&form, 'U' & 0x1F);
    press(&b, 'Y' & 0x1F);
    expect(&b, "for b", 5);
    inputline_release(&a); /* it was not the field's own */
    press(&b, 'Y' & 0x1F);
    expect(&b, "for bfor b", 10);
    press(&form, 'Y' & 0x1F);
    expect(&form, "TOKEN=x", 7);
    inputline_release(&form);
    inputline_release(&b);
}

static size_t kept(const struct inputline *l)
{
    size_t n = l->text.cap + l->whole.cap + (l->draft ? strlen(l->draft) : 0) +
               (l->sought ? strlen(l->sought) : 0);
    for (size_t i = 0; i < l->n_history; i++)
        n += strlen(l->history[i]);
    return n;
}

/* There is a field for each agent, all day long. */
static void test_long_texts_do_not_stay(void **state)
{
    enum { LONG = 20000, TIMES = 50 };
    struct inputline l;
    char *text = xmalloc(LONG + 1);
    (void)state;
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    inputline_init(&l, true, 1 << 20);
    l.folds = true;
    inputline_history_add(&l, "short one");
    for (int i = 0; i < TIMES; i++) {
        text[0] = (char)('a' + i % 26); /* not the same as before */
        inputline_set(&l, "");
        inputline_insert(&l, text, LONG);
        inputline_paste(&l, text, LONG);
        assert_int_equal(strlen(inputline_text(&l)), 2 * LONG);
        inputline_history_add(&l, text);
    }
    inputline_set(&l, "");
    assert_true(kept(&l) <= (64 << 10));
    assert_int_equal(l.n_history, 4);
    assert_string_equal(l.history[0], "short one"); /* rather the long ones go */
    inputline_history_prev(&l);
    assert_string_equal(inputline_text(&l), text); /* the last one is whole */
    press(&l, 'U' & 0x1F);
    assert_true(kept(&l) <= (64 << 10));
    inputline_set(&l, text);
    inputline_history_prev(&l);
    inputline_history_find(&l);
    inputline_set(&l, "");
    assert_true(kept(&l) <= (64 << 10));
    inputline_history_add(&l, "short");
    assert_string_equal(l.history[l.n_history - 1], "short");
    inputline_release(&l);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_editing), cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_paste),   cmocka_unit_test(test_history),
        cmocka_unit_test(test_history_begins_anew),
        cmocka_unit_test(test_history_find),
        cmocka_unit_test(test_drawing), cmocka_unit_test(test_folded_paste),
        cmocka_unit_test(test_files),   cmocka_unit_test(test_no_false_object),
        cmocka_unit_test(test_killed_is_for_all), cmocka_unit_test(test_long_texts_do_not_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
