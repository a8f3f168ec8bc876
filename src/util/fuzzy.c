/* Finding by some of the letters. */
#include <cct/util/fuzzy.h>

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { EACH = 10, SIDE_BY_SIDE = 15, WORD_BEGIN = 12, WHOLE = 200, BEGIN = 100, LATE_MOST = 20 };

static char low(char c)
{
    return (char)tolower((unsigned char)c);
}

static bool begins_word(const char *text, size_t i)
{
    return i == 0 || !isalnum((unsigned char)text[i - 1]);
}

/* From text[at] on, each letter at its next place; -1 when one has none. */
static int score_from(const char *typed, const char *text, size_t at)
{
    int score = 0;
    size_t last = at;
    for (size_t i = at; *typed; i++) {
        if (!text[i])
            return -1;
        if (low(text[i]) != low(*typed))
            continue;
        score += EACH + (i == last + 1 ? SIDE_BY_SIDE : 0) + (begins_word(text, i) ? WORD_BEGIN : 0);
        last = i;
        typed++;
    }
    return score - (int)(at < LATE_MOST ? at : LATE_MOST);
}

int fuzzy_score(const char *typed, const char *text)
{
    int best = -1;
    size_t n = strlen(typed);
    if (!n)
        return 0;
    if (n > strlen(text))
        return -1;
    for (size_t i = 0; text[i]; i++) {
        int s = low(text[i]) == low(*typed) ? score_from(typed, text, i) : -1;
        if (s > best)
            best = s;
    }
    if (best >= 0 && strncasecmp(typed, text, n) == 0)
        best += text[n] ? BEGIN : WHOLE;
    return best;
}
