/* Bytes of a terminal to keys: every sequence whole and torn at every byte, late tails,
 * pastes; and that no noise can kill anything. */
#include "../lib/screenscript.h"

#include <cct/ui/term.h>
#include <cct/util/limits.h>
#include <cct/util/thread.h>
#include <cct/util/xalloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ESC_MS = 25, START = 1000, MAX_KEYS = 64 };

struct keys {
    key_code v[MAX_KEYS];
    size_t n;
    char paste[256];
};

static struct key_decoder *decoder(void)
{
    struct key_decoder *d = key_decoder_new(ESC_MS);
    key_decoder_learn(d, "\033[A", K_UP);
    key_decoder_learn(d, "\033OB", K_DOWN);
    key_decoder_learn(d, "\033[15~", K_F1 + 4);
    key_decoder_learn(d, NULL, K_F1);
    return d;
}

static void take(struct key_decoder *d, int64_t now, struct keys *out)
{
    const char *paste;
    size_t len;
    key_code k;
    while ((k = key_decoder_next(d, now, &paste, &len)) != 0) {
        assert_true(out->n < MAX_KEYS);
        out->v[out->n++] = k;
        if (k == K_PASTE) {
            size_t n = len < sizeof(out->paste) - 1 ? len : sizeof(out->paste) - 1;
            memcpy(out->paste, paste, n);
            out->paste[n] = 0;
        }
    }
}

static void expect(const struct keys *got, const key_code *want, const char *what)
{
    size_t n = 0;
    while (want[n])
        n++;
    bool same = got->n == n && memcmp(got->v, want, n * sizeof(*want)) == 0;
    if (!same)
        fail_msg("%s: %zu keys (first %x), want %zu (first %x)", what, got->n,
                 got->n ? got->v[0] : 0, n, n ? want[0] : 0);
}

static const struct {
    const char *bytes;
    key_code want[6];
} table[] = {
    {"j", {'j'}},
    {"\r", {K_ENTER}},
    {"\n", {'\n'}},
    {"\t", {K_TAB}},
    {"\x7f", {K_BACKSPACE}},
    {"\x03", {3}},
    {"\xc3\xa9", {0xE9}},
    {"\xe6\x97\xa5", {0x65E5}},
    {"\xf0\x9f\x98\x80", {0x1F600}},
    {"\033[A", {K_UP}},
    {"\033OA", {K_UP}},
    {"\033OB", {K_DOWN}},
    {"\033[D\033[C", {K_LEFT, K_RIGHT}},
    {"\033[H\033[F\033OH\033OF", {K_HOME, K_END, K_HOME, K_END}},
    {"\033[1~\033[4~\033[5~\033[6~", {K_HOME, K_END, K_PGUP, K_PGDN}},
    {"\033[3~\033[2~", {K_DELETE, K_INSERT}},
    {"\033[Z", {K_BACKTAB}},
    {"\033OP\033[15~\033[24~", {K_F1, K_F1 + 4, K_F12}},
    {"\033[[A\033[[E", {K_F1, K_F1 + 4}},
    {"\033[1;3A", {K_UP | KEYC_ALT}},
    {"\033[1;5D", {K_LEFT}},
    {"\033O5D", {K_LEFT}},
    {"\033[3;5~", {K_DELETE}},
    {"\033OM", {K_ENTER}},
    {"\033[1;5P", {K_F1}},
    {"\033a\033\r", {KEYC_ALT | 'a', KEYC_ALT | K_ENTER}},
    {"\033\x7f", {KEYC_ALT | K_BACKSPACE}},
    {"\033\xc3\xa9", {KEYC_ALT | 0xE9}},
    {"\033[13;2u\033[13u", {KEYC_ALT | K_ENTER, K_ENTER}},
    {"\033[27;2;13~", {KEYC_ALT | K_ENTER}},
    {"\033[97;5u\033[97;3u\033[97;2u", {1, KEYC_ALT | 'a', 'A'}},
    {"\033[97:65;2u", {'A'}},
    {"\033[9;2u\033[27u\033[91;5u", {K_BACKTAB, K_ESC, K_ESC}},
    {"\033[I\033[O", {K_FOCUS_IN, K_FOCUS_OUT}},
    /* swallowed whole */
    {"\033[?2026;2$yj", {'j'}},
    {"\033[?62;22c\033[>0;276;0cj", {'j'}},
    {"\033[24;80Rj\033[1;2R", {'j', K_F1 + 2}},
    {"\033[<0;10;20Mj\033[<0;10;20mk", {'j', 'k'}},
    {"\033[M KyD", {'D'}},
    {"\033[57399u\033[55296;1uj", {'j'}},
    {"\033[200;1$pj", {'j'}},
    {"\033]11;rgb:DDDD/KKKK/yyyy\007j", {'j'}},
    {"\033]11;rgb:DD/KK/yy\033\\j", {KEYC_ALT | '\\', 'j'}},
    {"\033P1$r0mKy\033\\", {KEYC_ALT | '\\'}},
    {"\033Ojj", {'j'}},
    {"\033O2Pj", {K_F1, 'j'}},
    {"\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30mj",
     {'j'}},
    {"\033[12\033[Aj", {K_UP, 'j'}},
    {"\033[12\x80\x80j", {'j'}},
    {"\xc3\x28j", {'(', 'j'}},
    {"\xff\xfe\xed\xa0\x80\xc2\x80j", {'j'}},
    {"\033[200~Ky\r\033[A\033[201~j", {K_PASTE, 'j'}},
};

/* A string's terminator may come as Alt-\ when it is torn: no command of anyone. */
static void drop_terminator(struct keys *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++)
        if (k->v[i] != (KEYC_ALT | '\\'))
            k->v[n++] = k->v[i];
    k->n = n;
}

static void check_torn(size_t row, size_t cut, int64_t pause)
{
    const char *s = table[row].bytes;
    struct keys got = {0}, want = {0};
    struct key_decoder *d = decoder();
    size_t len = strlen(s);
    char what[64];
    snprintf(what, sizeof(what), "row %zu cut at %zu", row, cut);
    key_decoder_feed(d, s, cut, START);
    take(d, START, &got);
    key_decoder_feed(d, s + cut, len - cut, START + pause);
    take(d, START + pause, &got);
    take(d, START + pause + 10 * ESC_MS, &got);
    while (table[row].want[want.n]) {
        want.v[want.n] = table[row].want[want.n];
        want.n++;
    }
    drop_terminator(&got);
    drop_terminator(&want);
    want.v[want.n] = 0;
    expect(&got, want.v, what);
    key_decoder_free(d);
}

static void test_sequences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        for (size_t cut = 0; cut <= strlen(table[i].bytes); cut++)
            check_torn(i, cut, 5);
}

/* Every byte for itself. */
static void test_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct keys got = {0}, want = {0};
        struct key_decoder *d = decoder();
        int64_t now = START;
        for (const char *p = table[i].bytes; *p; p++, now++) {
            key_decoder_feed(d, p, 1, now);
            take(d, now, &got);
        }
        take(d, now + 10 * ESC_MS, &got);
        while (table[i].want[want.n]) {
            want.v[want.n] = table[i].want[want.n];
            want.n++;
        }
        drop_terminator(&got);
        drop_terminator(&want);
        want.v[want.n] = 0;
        char what[32];
        snprintf(what, sizeof(what), "row %zu", i);
        expect(&got, want.v, what);
        key_decoder_free(d);
    }
}

/* On a slow line a sequence is torn for longer than the Esc delay: its rest must not
 * become keys, above all not D, K or y. */
static void test_torn_late(void **state)
{
    (void)state;
    static const char *const seqs[] = {"\033[D",         "\033OD",     "\033[1;5D",
                                       "\033[?2026;2$y", "\033[[D",    "\033[M KD",
                                       "\033[27;2;13~",  "\033[97;5u", "\033]0;KyD\007",
                                       "\033O5D",        "\033PKyD\033\\"};
    for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++) {
        size_t len = strlen(seqs[i]);
        bool is_string = seqs[i][1] == ']' || seqs[i][1] == 'P';
        for (size_t cut = is_string ? 3 : 1; cut < len; cut++) {
            struct keys got = {0};
            struct key_decoder *d = decoder();
            key_decoder_feed(d, seqs[i], cut, START);
            take(d, START, &got);
            take(d, START + ESC_MS, &got);
            for (size_t k = cut; k < len; k++) { /* the rest in single bytes */
                key_decoder_feed(d, seqs[i] + k, 1, START + ESC_MS + 40);
                take(d, START + ESC_MS + 40, &got);
            }
            take(d, START + 1000, &got);
            for (size_t k = 0; k < got.n; k++)
                if (got.v[k] != K_ESC && got.v[k] != (KEYC_ALT | '\\'))
                    fail_msg("'%s' cut at %zu gave key %x", seqs[i] + 1, cut, got.v[k]);
            got.n = 0;
            key_decoder_feed(d, "j", 1, START + 2000);
            take(d, START + 2000, &got);
            expect(&got, (key_code[]){'j', 0}, "after a torn sequence");
            key_decoder_free(d);
        }
    }
}

/* Whatever a terminal answers, to us or to the program before us, is no key: whole and late,
 * torn anywhere and held up for longer than any Esc delay, and however long it is. */
static void test_answers(void **state)
{
    static const char *const answers[] = {
        "\033[?62;1;6;22c", "\033[>0;276;0c", "\033P!|7E7E7E7E\033\\", "\033[24;80R",
        "\033[?24;80;1R", "\033[?2026;2$y", "\033[4;1$y", "\033[?1u", "\033[8;24;80t",
        "\033[3;0;0t", "\033[0n", "\033[<35;10;20M", "\033]11;rgb:1111/2222/3333\007",
        "\033]4;1;rgb:KK/yy/DD\033\\", "\033]52;c;S3lEIGtpbGwgYWxs\007",
        "\033]lK y D\033\\", "\033]LKyD\033\\", "\033P1$r0;1mK\033\\",
        "\033P>|term K(1) y\033\\", "\033P1+r4b=79\033\\", "\033_Gi=1;OK\033\\"};
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        size_t len = strlen(answers[i]);
        for (size_t cut = 2; cut <= len; cut++) {
            struct keys got = {0};
            struct key_decoder *d = decoder();
            bool alt = cut == 2 && strchr("]P_", answers[i][1]); /* as Alt and that letter */
            int64_t t = START + 400;
            if (!alt) {
                key_decoder_feed(d, answers[i], cut, t);
                take(d, t, &got);
                take(d, t + ESC_MS, &got);
                key_decoder_feed(d, answers[i] + cut, len - cut, t + 900);
                take(d, t + 900, &got);
                take(d, t + 900 + ESC_MS, &got);
                if (got.n)
                    fail_msg("'%s' cut at %zu gave key %x", answers[i] + 1, cut, got.v[0]);
                key_decoder_feed(d, "j", 1, t + 4000);
                take(d, t + 4000, &got);
                expect(&got, (key_code[]){'j', 0}, "after an answer");
            }
            key_decoder_free(d);
        }
    }
}

static void test_long_answer(void **state)
{
    struct buf b = BUF_INIT;
    struct keys got = {0};
    struct key_decoder *d = decoder();
    (void)state;
    buf_adds(&b, "\033]52;c;");
    for (int i = 0; i < 50000; i++)
        buf_adds(&b, "Kyq\r"[i % 4] == '\r' ? "D" : "Ky");
    buf_adds(&b, "\033\\");
    for (size_t n, at = 0; at < b.len; at += n) {
        n = b.len - at < 1000 ? b.len - at : 1000;
        key_decoder_feed(d, b.p + at, n, START + (int64_t)at / 10);
        take(d, START + (int64_t)at / 10, &got);
        take(d, START + (int64_t)at / 10 + ESC_MS, &got);
    }
    assert_int_equal(got.n, 0);
    key_decoder_free(d);
    buf_release(&b);
}

/* The begin of a paste torn late: what is pasted is still a paste. */
static void test_torn_paste(void **state)
{
    (void)state;
    static const char all[] = "\033[200~Kyq\033[201~";
    for (size_t cut = 1; cut < 6; cut++) {
        struct keys got = {0};
        struct key_decoder *d = decoder();
        key_decoder_feed(d, all, cut, START);
        take(d, START, &got);
        take(d, START + ESC_MS, &got);
        key_decoder_feed(d, all + cut, sizeof(all) - 1 - cut, START + 60);
        take(d, START + 60, &got);
        assert_true(got.n >= 1);
        assert_int_equal(got.v[got.n - 1], K_PASTE);
        assert_string_equal(got.paste, "Kyq");
        assert_true(got.n == 1 || (got.n == 2 && got.v[0] == K_ESC));
        key_decoder_free(d);
    }
}

static void test_lone_esc(void **state)
{
    (void)state;
    struct keys got = {0};
    struct key_decoder *d = decoder();
    key_decoder_feed(d, "\033", 1, START);
    take(d, START, &got);
    assert_int_equal(got.n, 0);
    assert_int_equal(key_decoder_wait(d, START), ESC_MS);
    take(d, START + ESC_MS - 1, &got);
    assert_int_equal(got.n, 0);
    take(d, START + ESC_MS, &got);
    expect(&got, (key_code[]){K_ESC, 0}, "lone Esc");
    assert_int_equal(key_decoder_wait(d, START + ESC_MS), -1);
    key_decoder_feed(d, "j", 1, START + ESC_MS + 1); /* no sequence begins so */
    take(d, START + ESC_MS + 1, &got);
    assert_int_equal(got.v[1], 'j');
    key_decoder_free(d);
}

/* Whatever is pending, waiting for its time must end: no wait of 0 without a key. */
static void test_never_spins(void **state)
{
    (void)state;
    static const char *const begins[] = {"\033",    "\033[",     "\033[[", "\033O",  "\033]",
                                         "\033]0;", "\033\xc3",  "\033[1", "\033[M", "\033[M1",
                                         "\xc3",    "\033[\033", "\033P",  "\033\033"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        struct keys got = {0};
        struct key_decoder *d = decoder();
        int64_t now = START;
        key_decoder_feed(d, begins[i], strlen(begins[i]), now);
        take(d, now, &got);
        for (int turn = 0; key_decoder_wait(d, now) >= 0; turn++) {
            assert_true(turn < 4);
            now += key_decoder_wait(d, now);
            take(d, now, &got);
        }
        key_decoder_free(d);
    }
}

static void test_paste(void **state)
{
    (void)state;
    struct keys got = {0};
    struct key_decoder *d = decoder();
    char *big = xmalloc(1 << 20);
    const char *paste;
    size_t len;
    memset(big, 'x', 1 << 20);
    key_decoder_feed(d, "\033[200~", 6, START);
    take(d, START, &got);
    for (size_t i = 0; i < 1 << 20; i += 4096) {
        key_decoder_feed(d, big + i, 4096, START);
        take(d, START, &got);
    }
    assert_int_equal(got.n, 0);
    key_decoder_feed(d, "\033[201~", 6, START);
    assert_int_equal(key_decoder_next(d, START, &paste, &len), K_PASTE_LONG); /* no half of it */
    /* its end lost: given up after a long silence, as a paste */
    key_decoder_feed(d, "\033[200~abc", 9, START);
    take(d, START, &got);
    assert_int_equal(got.n, 0);
    int wait = key_decoder_wait(d, START);
    assert_true(wait > 1000);
    take(d, START + wait, &got);
    expect(&got, (key_code[]){K_PASTE, 0}, "paste without an end");
    assert_string_equal(got.paste, "abc");
    /* ... and what comes of it after that is no key either */
    key_decoder_feed(d, "K\ry\033[201~j", 10, START + wait + 1);
    memset(&got, 0, sizeof(got));
    take(d, START + wait + 1, &got);
    expect(&got, (key_code[]){K_PASTE, 'j', 0}, "the rest of a torn paste");
    assert_string_equal(got.paste, "K\ry");
    /* whoever presses ^C meanwhile, for nothing happens, does not make it longer */
    int64_t now = START + 20000, until = now + wait;
    key_decoder_feed(d, "\033[200~abc", 9, now);
    memset(&got, 0, sizeof(got));
    take(d, now, &got);
    for (now += 300; now < until; now += 300) {
        key_decoder_feed(d, "\003", 1, now);
        take(d, now, &got);
        assert_int_equal(key_decoder_wait(d, now), until - now);
    }
    take(d, until, &got);
    expect(&got, (key_code[]){K_PASTE, 0}, "paste without an end, and ^C");
    key_decoder_feed(d, "\003", 1, until + 300);
    memset(&got, 0, sizeof(got));
    take(d, until + 300, &got);
    expect(&got, (key_code[]){3, 0}, "^C after it");
    free(big);
    key_decoder_free(d);
}

/* 64 KiB whole, whatever pieces a line brings it in. */
static void test_paste_in_pieces(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 2, 5, 7, 61, 1000, 4095, 4096};
    struct buf all = BUF_INIT;
    buf_adds(&all, "\033[200~");
    while (all.len < LIM_MESSAGE_BYTES + 6)
        buf_addc(&all, (char)("ab\033[201 ~\n"[all.len % 11]));
    buf_adds(&all, "\033[201~");
    for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
        struct key_decoder *d = decoder();
        const char *paste = NULL;
        size_t len = 0;
        key_code k = 0;
        for (size_t at = 0; at < all.len; at += pieces[p]) {
            assert_int_equal(k, 0);
            size_t n = all.len - at < pieces[p] ? all.len - at : pieces[p];
            key_decoder_feed(d, all.p + at, n, START + (int64_t)(at / 100));
            k = key_decoder_next(d, START + (int64_t)(at / 100), &paste, &len);
        }
        assert_int_equal(k, K_PASTE);
        assert_int_equal(len, LIM_MESSAGE_BYTES);
        assert_memory_equal(paste, all.p + 6, len);
        key_decoder_free(d);
    }
    buf_release(&all);
}

static void test_sync_answer(void **state)
{
    (void)state;
    struct keys got = {0};
    struct key_decoder *d = decoder();
    assert_int_equal(key_decoder_sync(d), 0);
    key_decoder_feed(d, "\033[?2026;2$y", 11, START);
    take(d, START, &got);
    assert_int_equal(key_decoder_sync(d), 1);
    key_decoder_feed(d, "\033[?2026;0$y", 11, START);
    take(d, START, &got);
    assert_int_equal(key_decoder_sync(d), -1);
    assert_int_equal(got.n, 0);
    key_decoder_free(d);
}

/* --- noise ------------------------------------------------------------------------ */

static const char many_rows[] = "link ok cloud\nloaded\nrows 12 1\ntool claude base\n"
                                "kill armed 12 14 0 0 0 0\n";

static uint32_t rnd(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    return *x ^= *x << 5;
}

/* Noise with much of what matters: Esc, brackets, and the keys of the kill questions. */
static void fill_noise(char *dst, size_t n, uint32_t *x)
{
    static const char often[] = "\033[[O~DKyjk\rn12/i q";
    for (size_t i = 0; i < n; i++) {
        uint32_t r = rnd(x);
        dst[i] = r % 5 < 2 ? often[(r >> 8) % (sizeof(often) - 1)] : (char)(r >> 16);
    }
}

/* The one key before which a question was drawn is all that may kill: for each kill call
 * the dialog was open, drawn, and the key was y. */
static void check_kills(struct script *s, key_code k, bool was_open, bool was_number)
{
    if (!strstr(buf_str(&s->app->calls), "call kill ") &&
        !strstr(buf_str(&s->app->calls), "call kill_all_confirm"))
        return;
    if (!was_open || (k != 'y' && !(was_number && k == K_ENTER)))
        fail_msg("key %x killed without its question", k);
}

static void test_noise_kills_nothing(void **state)
{
    (void)state;
    enum { TOTAL = 1000000, CHUNK = 61 };
    struct script s;
    uint32_t x = 2463534242u;
    script_init(&s);
    script_run(&s, many_rows);
    script_draw(&s);
    struct key_decoder *d = decoder();
    int64_t now = START;
    for (size_t at = 0; at < TOTAL; at += CHUNK, now += 3) {
        char noise[CHUNK];
        const char *paste;
        size_t len;
        key_code k;
        fill_noise(noise, sizeof(noise), &x);
        key_decoder_feed(d, noise, sizeof(noise), now);
        bool question = s.ui.n_overlays > 0 &&
                        strncmp(s.ui.overlays[s.ui.n_overlays - 1].ops->name, "kill", 4) == 0;
        while ((k = key_decoder_next(d, now, &paste, &len)) != 0) {
            bool open = s.ui.n_overlays > 0 &&
                        strncmp(s.ui.overlays[s.ui.n_overlays - 1].ops->name, "kill", 4) == 0;
            buf_clear(&s.app->calls);
            ui_key(&s.ui, k, paste, len);
            /* nothing was drawn in this batch: only a question from before it counts */
            check_kills(&s, k, open && question, true);
            question &= open;
        }
        if (at % 7 == 0)
            script_draw(&s);
    }
    key_decoder_free(d);
    script_release(&s);
}

/* Is it in what was allocated? `to_one` turns the place of a byte into it: the test must not hold
 * it itself. */
static bool heap_holds(char (*to_one)(size_t i), size_t from, size_t len)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];
    unsigned long begin = 0, end = 0;
    assert_non_null(f);
    while (begin == end && fgets(line, sizeof(line), f))
        if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &begin, &end) != 2)
            begin = end = 0;
    fclose(f);
    for (const char *p = (const char *)begin; p && p + len <= (const char *)end; p++) {
        size_t i = 0;
        while (i < len && p[i] == to_one(from + i))
            i++;
        if (i == len)
            return true;
    }
    return false;
}

static char hush(size_t i)
{
    return (char)('a' + (i * 7 + 3) % 26);
}

/* What is lent away with the terminal may be a password: the one who gets it has the only copy. */
static void test_rest_is_wiped(void **state)
{
    enum { LEN = 24 };
    (void)state;
    struct key_decoder *d = decoder();
    struct buf typed = BUF_INIT;
    for (size_t i = 0; i < LEN; i++) {
        char c = hush(i);
        key_decoder_feed(d, &c, 1, START);
    }
    key_decoder_rest(d, &typed);
    assert_int_equal(typed.len, LEN);
    for (size_t i = 0; i < LEN; i++)
        assert_int_equal(typed.p[i], hush(i));
    assert_true(key_decoder_empty(d));
    bool seen = heap_holds(hush, LEN / 2, LEN / 2); /* not below a sanitizer, which has a heap of its own */
    explicit_bzero(typed.p, typed.len);
    bool left = heap_holds(hush, LEN / 2, LEN / 2);
    buf_release(&typed);
    key_decoder_free(d);
    if (!seen)
        skip();
    assert_false(left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),    cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_torn_late),    cmocka_unit_test(test_torn_paste),
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_long_answer),
        cmocka_unit_test(test_lone_esc),     cmocka_unit_test(test_never_spins),
        cmocka_unit_test(test_paste),        cmocka_unit_test(test_sync_answer),
        cmocka_unit_test(test_paste_in_pieces),
        cmocka_unit_test(test_noise_kills_nothing), cmocka_unit_test(test_rest_is_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
