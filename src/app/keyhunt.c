/* The one key that is ours among the bytes of a terminal that belong to somebody else. */
#include <cct/app/passage.h>

#include <cct/util/str.h>
#include <stdio.h>
#include <string.h>

int passage_key_parse(const char *name)
{
    if (str_eq_nocase(name, "none"))
        return PASSAGE_NO_KEY;
    if (strlen(name) == 2 && name[0] == '^' && name[1] >= '@' && name[1] <= 'z' && name[1] != '`') {
        int key = name[1] & 0x1f;

        /* what every shell needs: Tab, Enter, newline, Esc */
        return key == 0 || key == 9 || key == 10 || key == 13 || key == 27 ? PASSAGE_KEY_BAD : key;
    }
    return PASSAGE_KEY_BAD;
}

void passage_key_format(int key, char dst[8])
{
    if (key < 0)
        snprintf(dst, 8, "none");
    else
        snprintf(dst, 8, "^%c", key | 0x40);
}

static size_t matches(const char *p, size_t left, const char *seq)
{
    size_t n = strlen(seq);

    return left >= n && memcmp(p, seq, n) == 0 ? n : 0;
}

static size_t is_key(const char *p, size_t left, int key)
{
    int c = key | 0x40, lower = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
    char seq[20];
    size_t n;

    if (*p == (char)key)
        return 1;
    if (*p != '\033')
        return 0;
    snprintf(seq, sizeof(seq), "\033[%d;5u", lower); /* where the program asked for it */
    n = matches(p, left, seq);
    if (!n) {
        snprintf(seq, sizeof(seq), "\033[%d;5:1u", lower);
        n = matches(p, left, seq);
    }
    if (!n) {
        snprintf(seq, sizeof(seq), "\033[27;5;%d~", lower);
        n = matches(p, left, seq);
    }
    return n;
}

static void remember(struct keyhunt *h, char c)
{
    memmove(h->tail, h->tail + 1, sizeof(h->tail) - 1);
    h->tail[sizeof(h->tail) - 1] = c;
}

size_t keyhunt_feed(struct keyhunt *h, int key, const char *data, size_t len, size_t *span)
{
    static const char begin[] = "\033[200~", end[] = "\033[201~";
    const size_t n = sizeof(begin) - 1;

    for (size_t i = 0; i < len; i++) {
        if (!h->pasting && key >= 0 && (*span = is_key(data + i, len - i, key)))
            return i;
        remember(h, data[i]);
        if (data[i] == '~' && memcmp(h->tail + sizeof(h->tail) - n, begin, n) == 0)
            h->pasting = true;
        else if (data[i] == '~' && memcmp(h->tail + sizeof(h->tail) - n, end, n) == 0)
            h->pasting = false;
    }
    *span = 0;
    return len;
}
